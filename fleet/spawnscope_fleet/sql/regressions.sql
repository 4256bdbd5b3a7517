-- What changed at ${since}, a timestamp. A command of a call site is compared within each job, so that differences between jobs do not matter,
-- and the evidence of all jobs is added up by van Elteren's test, a stratified Wilcoxon rank-sum test, corrected for ties. A change is
-- significant if its z score exceeds sqrt(2 ln(tests / 0.05)), an upper bound of the Bonferroni-corrected normal quantile.
-- A count that is the same in all runs of a job before, and another in all runs after, needs no test: a rank test of few runs could never be
-- significant. At least 3 runs on each side must agree, and the count of no other job of the site may vary by as much on a side.
-- Load makes all launches of a job slower, so times alone prove little. Waits for a CPU are left out: they depend on nothing else. What is left is
-- compared with the factor by which a launch of the job's other sites became slower, their median. A site's time counts if it differs from what
-- this factor explains by more than the factor's own effect and the noise.
-- Runs that lost events are left out: their counts are too low.
WITH
compared_runs AS (
  SELECT run, COALESCE(job, '') AS job, wall_ns, CASE WHEN started >= ${since} THEN 1 ELSE 0 END AS is_after
  FROM runs
  WHERE lost_events = 0
),
by_caller AS (
  SELECT run, caller, command, COUNT(*) AS launches, SUM(critical_ns - COALESCE(critical_cpu_wait_ns, 0)) AS critical_ns
  FROM launches
  GROUP BY run, caller, command
),
by_site AS (
  SELECT m.run AS run, m.job AS job, m.is_after AS is_after, COALESCE(c.file, '') AS file, COALESCE(c.line, 0) AS line, b.command AS command,
         SUM(b.launches) AS launches, COALESCE(SUM(b.critical_ns), 0) AS critical_ns
  FROM compared_runs AS m
  JOIN by_caller AS b ON m.run = b.run
  LEFT JOIN callers AS c ON b.run = c.run AND b.caller = c.caller
  GROUP BY m.run, m.job, m.is_after, COALESCE(c.file, ''), COALESCE(c.line, 0), b.command
),
ranked AS (
  SELECT job, file, line, command, is_after, launches, critical_ns, CASE WHEN critical_ns > 0 THEN 0 ELSE 1 END AS is_zero,
         RANK() OVER (PARTITION BY job, file, line, command ORDER BY launches) AS launches_rank,
         COUNT(*) OVER (PARTITION BY job, file, line, command, launches) AS launches_ties,
         RANK() OVER (PARTITION BY job, file, line, command ORDER BY critical_ns) AS critical_rank,
         COUNT(*) OVER (PARTITION BY job, file, line, command, critical_ns) AS critical_ties
  FROM by_site
),
-- Sums over the k runs that have a launch of the site. `zeros` is the number of these runs whose launches take no critical time.
present AS (
  SELECT job, file, line, command,
         COUNT(*) * 1e0 AS k, SUM(1 - is_after) * 1e0 AS k_before, SUM(is_after) * 1e0 AS k_after,
         SUM(is_zero) * 1e0 AS zeros, SUM(is_after * is_zero) * 1e0 AS zeros_after,
         SUM(is_after * (launches_rank + (launches_ties - 1) / 2e0)) AS launches_sum,
         SUM(launches_ties * launches_ties - 1) * 1e0 AS launches_tied,
         SUM(is_after * (critical_rank + (critical_ties - 1) / 2e0)) AS critical_sum,
         SUM((1 - is_zero) * (critical_ties * critical_ties - 1)) * 1e0 AS critical_tied,
         SUM((1 - is_after) * launches) * 1e0 AS launches_before, SUM(is_after * launches) * 1e0 AS launches_after,
         SUM((1 - is_after) * critical_ns) * 1e0 AS critical_ns_before, SUM(is_after * critical_ns) * 1e0 AS critical_ns_after,
         MIN(CASE WHEN is_after = 0 THEN launches END) AS least_before, MAX(CASE WHEN is_after = 0 THEN launches END) AS most_before,
         MIN(CASE WHEN is_after = 1 THEN launches END) AS least_after, MAX(CASE WHEN is_after = 1 THEN launches END) AS most_after,
         VAR_POP(CASE WHEN is_after = 0 THEN critical_ns * 1e0 END) AS variance_before,
         VAR_POP(CASE WHEN is_after = 1 THEN critical_ns * 1e0 END) AS variance_after
  FROM ranked
  GROUP BY job, file, line, command
),
jobs AS (
  SELECT job, COUNT(*) * 1e0 AS n, SUM(is_after) * 1e0 AS n_after, AVG(wall_ns) AS wall_ns
  FROM compared_runs
  GROUP BY job
),
-- A job's run without a launch of the site has a count of 0. Such runs tie for the lowest rank, so their part of each sum is known without a row
-- for each: the `absent` runs raise the rank of every other run by their number, or by half of it if the other run ties with them.
strata AS (
  SELECT p.job AS job, p.file AS file, p.line AS line, p.command AS command,
         j.n AS n, j.n - j.n_after AS n_before, j.n_after AS n_after, j.wall_ns AS wall_ns,
         j.n - p.k AS absent, j.n_after - p.k_after AS absent_after, p.zeros AS zeros, p.zeros_after AS zeros_after,
         p.k_before AS k_before, p.k_after AS k_after, p.launches_sum AS launches_sum, p.launches_tied AS launches_tied,
         p.critical_sum AS critical_sum, p.critical_tied AS critical_tied, p.launches_before AS launches_before,
         p.launches_after AS launches_after, p.critical_ns_before AS critical_ns_before, p.critical_ns_after AS critical_ns_after,
         p.variance_before AS variance_before, p.variance_after AS variance_after,
         -- How much the count varies on a side. A run without a launch of the site has a count of 0.
         COALESCE(p.most_before - CASE WHEN p.k_before = j.n - j.n_after THEN p.least_before ELSE 0 END, 0) AS spread_before,
         COALESCE(p.most_after - CASE WHEN p.k_after = j.n_after THEN p.least_after ELSE 0 END, 0) AS spread_after,
         CASE WHEN j.n - j.n_after > 2 AND j.n_after > 2 THEN 1 ELSE 0 END AS has_enough
  FROM jobs AS j JOIN present AS p ON j.job = p.job
  WHERE j.n_after > 1 AND j.n - j.n_after > 1
),
usable AS (
  SELECT job, file, line, command, n, wall_ns, launches_before / n_before AS mean_before, launches_after / n_after AS mean_after,
         CASE WHEN spread_before > spread_after THEN spread_before ELSE spread_after END AS spread,
         CASE WHEN has_enough = 1 AND spread_before = 0 AND spread_after = 0 AND launches_before / n_before <> launches_after / n_after
              THEN ABS(launches_after / n_after - launches_before / n_before) END AS steady_change,
         critical_ns_before / n_before AS critical_before, critical_ns_after / n_after AS critical_after,
         -- The squared errors of the means: from the variance of the present runs, and from the absent runs, whose value is 0 ns.
         CASE WHEN k_before > 0
              THEN (k_before * variance_before + critical_ns_before * critical_ns_before * (1 / k_before - 1 / n_before)) / (n_before - 1) / n_before
              ELSE 0e0 END AS error_before,
         CASE WHEN k_after > 0
              THEN (k_after * variance_after + critical_ns_after * critical_ns_after * (1 / k_after - 1 / n_after)) / (n_after - 1) / n_after
              ELSE 0e0 END AS error_after,
         launches_sum + k_after * absent + absent_after * (absent + 1) / 2 - n_after * (n + 1) / 2 AS launches_excess,
         n_after * n_before / 12 * (n + 1 - (launches_tied + absent * (absent * absent - 1)) / (n * (n - 1))) AS launches_variance,
         critical_sum + (k_after - zeros_after / 2) * absent + absent_after * (absent + zeros + 1) / 2 - n_after * (n + 1) / 2 AS critical_excess,
         n_after * n_before / 12
         * (n + 1 - (critical_tied + (absent + zeros) * ((absent + zeros) * (absent + zeros) - 1)) / (n * (n - 1))) AS critical_variance
  FROM strata
),
-- The factor of a site that has launches on both sides, and a share of the time that is worth a comparison.
compared AS (
  SELECT *,
         CASE WHEN critical_before > 0.001e0 * wall_ns AND critical_after > 0 AND mean_before > 0 AND mean_after > 0
              THEN (critical_after / mean_after) / (critical_before / mean_before) END AS factor
  FROM usable
),
placed AS (
  SELECT *, COUNT(factor) OVER (PARTITION BY job) AS factors,
         2 * ROW_NUMBER() OVER (PARTITION BY job ORDER BY factor NULLS LAST, file, line, command) AS place
  FROM compared
),
-- The factors in the middle: `middle` of an odd number, `below` and `above` of an even one. Without the middle one, `before_middle` and `after_middle` are left.
middles AS (
  SELECT *,
         MAX(CASE WHEN place = factors - 1 THEN factor END) OVER (PARTITION BY job) AS before_middle,
         MAX(CASE WHEN place = factors THEN factor END) OVER (PARTITION BY job) AS below,
         MAX(CASE WHEN place = factors + 1 THEN factor END) OVER (PARTITION BY job) AS middle,
         MAX(CASE WHEN place = factors + 2 AND place <= 2 * factors THEN factor END) OVER (PARTITION BY job) AS above,
         MAX(CASE WHEN place = factors + 3 AND place <= 2 * factors THEN factor END) OVER (PARTITION BY job) AS after_middle
  FROM placed
),
paced AS (
  SELECT *,
         -- Without another site, nothing tells the site's time from a change of load.
         COALESCE(critical_before * CASE WHEN place > 2 * factors THEN COALESCE(middle, (below + above) / 2)
                                         WHEN place = factors + 1
                                         THEN (COALESCE(before_middle, after_middle) + COALESCE(after_middle, before_middle)) / 2
                                         WHEN middle IS NOT NULL THEN middle
                                         WHEN place > factors THEN below
                                         ELSE above END, critical_after) AS expected
  FROM middles
),
combined AS (
  SELECT file, line, command, COUNT(*) AS jobs, SUM(n) AS runs,
         SUM(CASE WHEN mean_before <> mean_after THEN 1 ELSE 0 END) AS changed_jobs,
         COUNT(steady_change) AS constant_jobs, COALESCE(MAX(steady_change), 0) AS constant_change, MAX(spread) AS largest_spread,
         SUM(n * wall_ns) / SUM(n) AS wall_ns,
         SUM(n * mean_before) / SUM(n) AS launches_before, SUM(n * mean_after) / SUM(n) AS launches_after,
         SUM(n * critical_before) / SUM(n) AS critical_before, SUM(n * critical_after) / SUM(n) AS critical_after,
         1.96e0 * SQRT(SUM(n * n * (error_before + error_after))) / SUM(n) AS half_width,
         SUM(n * expected) / SUM(n) AS critical_expected,
         SUM(launches_excess / (n + 1)) AS launches_excess, SUM(launches_variance / ((n + 1) * (n + 1))) AS launches_variance,
         SUM(critical_excess / (n + 1)) AS critical_excess, SUM(critical_variance / ((n + 1) * (n + 1))) AS critical_variance
  FROM paced
  GROUP BY file, line, command
),
tested AS (
  SELECT file, line, command, jobs, runs, changed_jobs, wall_ns, launches_before, launches_after, critical_before, critical_after,
         critical_expected, half_width, constant_jobs, CASE WHEN constant_change > largest_spread THEN 1 ELSE 0 END AS is_constant,
         CASE WHEN launches_variance > 1e-9 THEN launches_excess / SQRT(launches_variance) ELSE 0e0 END AS launches_z,
         CASE WHEN critical_variance > 1e-9 THEN critical_excess / SQRT(critical_variance) ELSE 0e0 END AS critical_z,
         SQRT(2 * LN(2e0 * COUNT(*) OVER () / 0.05e0)) AS threshold
  FROM combined
)
SELECT file, line, command, jobs, changed_jobs, runs, launches_before, launches_after,
       critical_before AS critical_before_ns, critical_after AS critical_after_ns, half_width AS critical_half_width_ns,
       wall_ns AS wall_ns_per_run, launches_z, critical_z, threshold, is_constant, constant_jobs
FROM tested
WHERE (ABS(launches_z) > threshold OR is_constant = 1) AND ABS(launches_after - launches_before) >= 0.01e0 * (launches_before + launches_after)
   OR ABS(critical_z) > threshold AND ABS(critical_after - critical_before) >= 0.001e0 * wall_ns
                                  AND ABS(critical_after - critical_expected) > half_width + ABS(critical_expected - critical_before)
ORDER BY ABS(critical_after - critical_before) DESC, file, line, command
LIMIT ${rows}
