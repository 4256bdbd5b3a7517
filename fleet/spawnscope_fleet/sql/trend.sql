-- The mean cost of a run on each day.
SELECT date, runs, launches, launches * 1e0 / runs AS launches_per_run, wall_ns * 1e0 / runs AS wall_ns_per_run,
       tax_ns * 1e0 / NULLIF(taxed, 0) AS tax_ns_per_run, critical_tax_ns * 1e0 / NULLIF(critically_taxed, 0) AS critical_tax_ns_per_run,
       failed_execs * 1e0 / runs AS failed_execs_per_run
FROM (
  SELECT r.date AS date, COUNT(*) AS runs, SUM(r.launches) AS launches, SUM(r.wall_ns) AS wall_ns, SUM(r.tax_ns) AS tax_ns, COUNT(r.tax_ns) AS taxed,
         SUM(r.critical_tax_ns) AS critical_tax_ns, COUNT(r.critical_tax_ns) AS critically_taxed, SUM(r.failed_execs) AS failed_execs
  FROM runs AS r
  GROUP BY r.date
) AS days
ORDER BY date
