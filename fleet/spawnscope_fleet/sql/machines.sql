-- The cost of a launch on each machine, compared with the cost of the same commands of the same jobs on the other machines. A machine is an
-- outlier if its launches cost at least a tenth more or less than those of the others, and if the z score of a Wilcoxon rank-sum test of its runs
-- against all others, corrected for ties, exceeds sqrt(2 ln(machines / 0.05)), an upper bound of the Bonferroni-corrected normal quantile.
-- The cost is the time of create, setup, exec, load and teardown: waits for a CPU and for a reaping parent do not depend on the machine's speed.
WITH
command_sums AS (
  SELECT run, command, COUNT(create_ns + setup_ns + exec_ns + load_ns + teardown_ns) * 1e0 AS launches,
         SUM(create_ns + setup_ns + exec_ns + load_ns + teardown_ns) * 1e0 AS cost_ns
  FROM launches
  GROUP BY run, command
),
costs AS (
  SELECT r.run AS run, COALESCE(r.job, '') AS job, COALESCE(r.host, '') AS host, s.command AS command,
         s.launches AS launches, s.cost_ns AS cost_ns
  FROM runs AS r JOIN command_sums AS s ON r.run = s.run
  WHERE s.launches > 0
),
-- Uses sums over windows, not joins with sums: an engine may compute the rows of `costs` again for each join.
summed AS (
  SELECT run, host, launches, cost_ns,
         SUM(launches) OVER (PARTITION BY job, command) AS all_launches, SUM(cost_ns) OVER (PARTITION BY job, command) AS all_ns,
         SUM(launches) OVER (PARTITION BY job, command, host) AS host_launches, SUM(cost_ns) OVER (PARTITION BY job, command, host) AS host_ns
  FROM costs
),
-- The ratio compares a run with the mean cost on the other machines. A job's command that only one machine ran is left out.
run_ratios AS (
  SELECT s.run AS run, s.host AS host, SUM(s.launches) AS launches, SUM(s.cost_ns) AS cost_ns,
         SUM(s.cost_ns) / SUM(s.launches * ((s.all_ns - s.host_ns) / (s.all_launches - s.host_launches))) AS ratio
  FROM summed AS s
  WHERE s.all_launches > s.host_launches
  GROUP BY s.run, s.host
),
ranked AS (
  SELECT host, launches, cost_ns, ratio, RANK() OVER (ORDER BY ratio) AS ratio_rank, COUNT(*) OVER (PARTITION BY ratio) AS ties,
         COUNT(*) OVER () * 1e0 AS n
  FROM run_ratios
),
with_tied AS (SELECT host, launches, cost_ns, ratio, ratio_rank, ties, n, SUM(ties * ties - 1) OVER () * 1e0 AS tied FROM ranked),
hosts AS (
  SELECT host, COUNT(*) * 1e0 AS runs, MAX(n) AS n, MAX(tied) AS tied, SUM(launches) AS launches, SUM(cost_ns) AS cost_ns,
         SUM(ratio) AS ratio_sum, SUM(ratio_rank + (ties - 1) / 2e0) AS rank_sum, VAR_SAMP(ratio) AS variance
  FROM with_tied
  GROUP BY host
),
compared AS (
  SELECT host, runs, launches, cost_ns / launches AS launch_ns, ratio_sum / runs AS against_others,
         1.96e0 * SQRT(variance / runs) AS half_width,
         CASE WHEN n > runs AND n > 1
              THEN (rank_sum - runs * (n + 1) / 2) / SQRT(runs * (n - runs) / 12 * (n + 1 - tied / (n * (n - 1)))) END AS z,
         SQRT(2 * LN(COUNT(*) OVER () / 0.05e0)) AS threshold
  FROM hosts
),
scanned AS (
  SELECT COALESCE(r.host, '') AS host, SUM(w.total_ns) AS scanner_ns
  FROM runs AS r JOIN waits AS w ON r.run = w.run
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
