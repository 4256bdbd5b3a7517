-- What a launch costs on each machine, compared with what the same commands of the same jobs cost on all of them. A machine is an outlier if its launches
-- cost at least a tenth more or less than those of the others, and if a Wilcoxon rank test of its runs against all others, with ties,
-- exceeds sqrt(2 ln(machines / 0.05)), which bounds the normal quantile of Bonferroni's correction from above.
-- The cost is that of create, setup, exec, load and teardown: waiting for a CPU and for a reaping parent are not the machine's.
WITH
of_commands AS (
  SELECT run, command, COUNT(*) * 1e0 AS launches,
         SUM(create_ns + setup_ns + exec_ns + load_ns + teardown_ns) * 1e0 AS cost_ns
  FROM launches
  WHERE create_ns + setup_ns + exec_ns + load_ns + teardown_ns IS NOT NULL
  GROUP BY run, command
),
costs AS (
  SELECT r.run AS run, COALESCE(r.job, '') AS job, COALESCE(r.host, '') AS host, o.command AS command,
         o.launches AS launches, o.cost_ns AS cost_ns
  FROM of_commands AS o JOIN runs AS r ON o.run = r.run
),
of_hosts AS (SELECT job, command, host, SUM(launches) AS launches, SUM(cost_ns) AS cost_ns FROM costs GROUP BY job, command, host),
of_all AS (SELECT job, command, SUM(launches) AS launches, SUM(cost_ns) AS cost_ns FROM costs GROUP BY job, command),
-- The mean cost on the other machines. A command of a job that only one machine ran compares with nothing.
others AS (
  SELECT h.job AS job, h.command AS command, h.host AS host, (a.cost_ns - h.cost_ns) / (a.launches - h.launches) AS mean_ns
  FROM of_hosts AS h JOIN of_all AS a ON h.job = a.job AND h.command = a.command
  WHERE a.launches > h.launches
),
of_runs AS (
  SELECT c.run AS run, c.host AS host, SUM(c.launches) AS launches, SUM(c.cost_ns) AS cost_ns,
         SUM(c.cost_ns) / SUM(c.launches * o.mean_ns) AS ratio
  FROM costs AS c JOIN others AS o ON c.job = o.job AND c.command = o.command AND c.host = o.host
  GROUP BY c.run, c.host
),
ranked AS (
  SELECT host, launches, cost_ns, ratio, RANK() OVER (ORDER BY ratio) AS place, COUNT(*) OVER (PARTITION BY ratio) AS ties,
         COUNT(*) OVER () * 1e0 AS n
  FROM of_runs
),
tied AS (SELECT SUM(ties * ties - 1) * 1e0 AS tied FROM ranked),
hosts AS (
  SELECT host, COUNT(*) * 1e0 AS runs, MAX(n) AS n, SUM(launches) AS launches, SUM(cost_ns) AS cost_ns,
         SUM(ratio) AS ratios, SUM(place + (ties - 1) / 2e0) AS place_sum, VAR_SAMP(ratio) AS variance
  FROM ranked
  GROUP BY host
),
compared AS (
  SELECT host, runs, launches, cost_ns / launches AS launch_ns, ratios / runs AS against_others,
         1.96e0 * SQRT(variance / runs) AS half_width,
         CASE WHEN n > runs AND n > 1
              THEN (place_sum - runs * (n + 1) / 2) / SQRT(runs * (n - runs) / 12 * (n + 1 - tied / (n * (n - 1)))) END AS z,
         SQRT(2 * LN(COUNT(*) OVER () / 0.05e0)) AS threshold
  FROM hosts CROSS JOIN tied
),
scanned AS (
  SELECT COALESCE(r.host, '') AS host, SUM(w.total_ns) AS scanner_ns
  FROM waits AS w JOIN runs AS r ON w.run = r.run
  WHERE w."on" = 'scanner'
  GROUP BY COALESCE(r.host, '')
)
SELECT c.host AS host, c.runs AS runs, c.launches AS launches, c.launch_ns AS launch_ns, c.against_others AS against_others,
       c.half_width AS half_width, c.z AS z, c.threshold AS threshold,
       CASE WHEN ABS(c.z) > c.threshold AND (c.against_others >= 1.1e0 OR c.against_others <= 0.9e0) THEN 1 ELSE 0 END AS is_outlier,
       s.scanner_ns AS scanner_ns
FROM compared AS c LEFT JOIN scanned AS s ON c.host = s.host
ORDER BY against_others DESC NULLS LAST, host
LIMIT ${rows}
