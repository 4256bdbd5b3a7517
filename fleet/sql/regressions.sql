-- What changed at ${since}, a timestamp. A command of a call site is compared within each job, so jobs that differ do not blur each other,
-- and the jobs' evidence is added up: van Elteren's test, a Wilcoxon rank test with strata, with ties. A change is significant if its
-- statistic exceeds sqrt(2 ln(tests / 0.05)), which bounds the normal quantile of Bonferroni's correction from above.
-- Runs that lost events are left out: their counts are too low.
WITH
moments AS (
  SELECT run, COALESCE(job, '') AS job, wall_ns, CASE WHEN started >= ${since} THEN 1 ELSE 0 END AS is_after
  FROM runs
  WHERE lost_events = 0
),
by_caller AS (
  SELECT run, caller, command, COUNT(*) AS launches, SUM(critical_ns) AS critical_ns
  FROM launches
  GROUP BY run, caller, command
),
by_site AS (
  SELECT m.run AS run, m.job AS job, COALESCE(c.file, '') AS file, COALESCE(c.line, 0) AS line, b.command AS command,
         SUM(b.launches) AS launches, SUM(b.critical_ns) AS critical_ns
  FROM by_caller AS b
  JOIN moments AS m ON b.run = m.run
  LEFT JOIN callers AS c ON b.run = c.run AND b.caller = c.caller
  GROUP BY m.run, m.job, COALESCE(c.file, ''), COALESCE(c.line, 0), b.command
),
sites AS (SELECT DISTINCT job, file, line, command FROM by_site),
-- A run of a job without a launch of the site has 0 of them.
measured AS (
  SELECT m.job AS job, s.file AS file, s.line AS line, s.command AS command, m.is_after AS is_after, m.wall_ns AS wall_ns,
         COALESCE(b.launches, 0) AS launches, COALESCE(b.critical_ns, 0) AS critical_ns
  FROM moments AS m
  JOIN sites AS s ON m.job = s.job
  LEFT JOIN by_site AS b ON b.run = m.run AND b.file = s.file AND b.line = s.line AND b.command = s.command
),
ranked AS (
  SELECT job, file, line, command, is_after, wall_ns, launches, critical_ns,
         RANK() OVER (PARTITION BY job, file, line, command ORDER BY launches) AS launches_rank,
         COUNT(*) OVER (PARTITION BY job, file, line, command, launches) AS launches_ties,
         RANK() OVER (PARTITION BY job, file, line, command ORDER BY critical_ns) AS critical_rank,
         COUNT(*) OVER (PARTITION BY job, file, line, command, critical_ns) AS critical_ties
  FROM measured
),
strata AS (
  SELECT job, file, line, command, COUNT(*) * 1e0 AS n, SUM(is_after) * 1e0 AS n_after, AVG(wall_ns) AS wall_ns,
         SUM(is_after * (launches_rank + (launches_ties - 1) / 2e0)) AS launches_sum,
         SUM(launches_ties * launches_ties - 1) * 1e0 AS launches_tied,
         SUM(is_after * (critical_rank + (critical_ties - 1) / 2e0)) AS critical_sum,
         SUM(critical_ties * critical_ties - 1) * 1e0 AS critical_tied,
         AVG(CASE WHEN is_after = 0 THEN launches * 1e0 END) AS mean_before,
         AVG(CASE WHEN is_after = 1 THEN launches * 1e0 END) AS mean_after,
         AVG(CASE WHEN is_after = 0 THEN critical_ns * 1e0 END) AS critical_before,
         AVG(CASE WHEN is_after = 1 THEN critical_ns * 1e0 END) AS critical_after,
         VAR_SAMP(CASE WHEN is_after = 0 THEN critical_ns * 1e0 END) AS variance_before,
         VAR_SAMP(CASE WHEN is_after = 1 THEN critical_ns * 1e0 END) AS variance_after
  FROM ranked
  GROUP BY job, file, line, command
),
usable AS (
  SELECT job, file, line, command, n, n_after, n - n_after AS n_before, wall_ns, mean_before, mean_after,
         critical_before, critical_after, variance_before, variance_after,
         launches_sum - n_after * (n + 1) / 2 AS launches_excess,
         n_after * (n - n_after) / 12 * (n + 1 - launches_tied / (n * (n - 1))) AS launches_variance,
         critical_sum - n_after * (n + 1) / 2 AS critical_excess,
         n_after * (n - n_after) / 12 * (n + 1 - critical_tied / (n * (n - 1))) AS critical_variance
  FROM strata
  WHERE n_after > 1 AND n - n_after > 1
),
combined AS (
  SELECT file, line, command, COUNT(*) AS jobs, SUM(n) AS runs,
         SUM(CASE WHEN mean_before <> mean_after THEN 1 ELSE 0 END) AS changed_jobs,
         SUM(n * wall_ns) / SUM(n) AS wall_ns,
         SUM(n * mean_before) / SUM(n) AS launches_before, SUM(n * mean_after) / SUM(n) AS launches_after,
         SUM(n * critical_before) / SUM(n) AS critical_before, SUM(n * critical_after) / SUM(n) AS critical_after,
         1.96e0 * SQRT(SUM(n * n * (variance_before / n_before + variance_after / n_after))) / SUM(n) AS half_width,
         SUM(launches_excess / (n + 1)) AS launches_excess, SUM(launches_variance / ((n + 1) * (n + 1))) AS launches_variance,
         SUM(critical_excess / (n + 1)) AS critical_excess, SUM(critical_variance / ((n + 1) * (n + 1))) AS critical_variance
  FROM usable
  GROUP BY file, line, command
),
tested AS (
  SELECT file, line, command, jobs, runs, changed_jobs, wall_ns, launches_before, launches_after, critical_before, critical_after,
         half_width,
         CASE WHEN launches_variance > 1e-9 THEN launches_excess / SQRT(launches_variance) ELSE 0e0 END AS launches_z,
         CASE WHEN critical_variance > 1e-9 THEN critical_excess / SQRT(critical_variance) ELSE 0e0 END AS critical_z,
         SQRT(2 * LN(2e0 * COUNT(*) OVER () / 0.05e0)) AS threshold
  FROM combined
)
SELECT file, line, command, jobs, changed_jobs, runs, launches_before, launches_after,
       critical_before AS critical_before_ns, critical_after AS critical_after_ns, half_width AS critical_half_width_ns,
       wall_ns AS wall_ns_per_run, launches_z, critical_z, threshold
FROM tested
WHERE ABS(launches_z) > threshold AND ABS(launches_after - launches_before) >= 0.01e0 * (launches_before + launches_after)
   OR ABS(critical_z) > threshold AND ABS(critical_after - critical_before) >= 0.001e0 * wall_ns
                                  AND ABS(critical_after - critical_before) > half_width
ORDER BY ABS(critical_after - critical_before) DESC, file, line, command
LIMIT ${rows}
