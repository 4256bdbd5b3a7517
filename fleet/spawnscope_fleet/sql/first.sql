-- The first later run in which a site launches more than in any earlier run of the same job. ${changes}: a query with the columns number, file,
-- line and command. ${since}: a timestamp.
WITH
changes AS (${changes}),
by_caller AS (
  SELECT run, caller, command, COUNT(*) AS launches
  FROM launches
  WHERE command IN (SELECT c.command FROM changes AS c)
  GROUP BY run, caller, command
),
site_runs AS (
  SELECT x.number AS number, r.run AS run, r.job AS job, r.started AS started, r.commit AS commit, r.ci_run AS ci_run, SUM(b.launches) AS launches
  FROM runs AS r
  JOIN by_caller AS b ON r.run = b.run
  LEFT JOIN callers AS c ON b.run = c.run AND b.caller = c.caller
  JOIN changes AS x ON x.file = COALESCE(c.file, '') AND x.line = COALESCE(c.line, 0) AND x.command = b.command
  WHERE r.lost_events = 0
  GROUP BY x.number, r.run, r.job, r.started, r.commit, r.ci_run
),
with_most AS (
  SELECT *, MAX(CASE WHEN started < ${since} THEN launches ELSE 0 END) OVER (PARTITION BY number, job) AS most_before
  FROM site_runs
),
placed AS (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY number ORDER BY started, run) AS place
  FROM with_most
  WHERE started >= ${since} AND launches > most_before
)
SELECT number, job AS first_job, commit AS first_commit, ci_run AS first_run, started AS first_started
FROM placed
WHERE place = 1
ORDER BY number
