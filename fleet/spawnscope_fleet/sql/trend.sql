-- The cost of a run on each day: means, and the wall time of the middle run and of the run that 95 % do not exceed (nearest rank).
WITH
-- One row for each run, as in the table. A window over the table itself takes DuckDB more than 600 MB for 2,800 files.
days_of_runs AS (
  SELECT run, date, SUM(launches) AS launches, SUM(wall_ns) AS wall_ns, SUM(tax_ns) AS tax_ns, SUM(critical_tax_ns) AS critical_tax_ns,
         SUM(failed_execs) AS failed_execs
  FROM runs
  GROUP BY run, date
),
ranked AS (
  SELECT r.date AS date, r.launches AS launches, r.wall_ns AS wall_ns, r.tax_ns AS tax_ns, r.critical_tax_ns AS critical_tax_ns,
         r.failed_execs AS failed_execs, ROW_NUMBER() OVER (PARTITION BY r.date ORDER BY r.wall_ns) AS place,
         COUNT(*) OVER (PARTITION BY r.date) AS places
  FROM days_of_runs AS r
),
days AS (
  SELECT q.date AS date, COUNT(*) AS runs, SUM(q.launches) AS launches, SUM(q.wall_ns) AS wall_ns, SUM(q.tax_ns) AS tax_ns,
         COUNT(q.tax_ns) AS taxed, SUM(q.critical_tax_ns) AS critical_tax_ns, COUNT(q.critical_tax_ns) AS critically_taxed,
         SUM(q.failed_execs) AS failed_execs, MIN(CASE WHEN q.place * 2 >= q.places THEN q.wall_ns END) AS wall_p50_ns,
         MIN(CASE WHEN q.place * 20 >= q.places * 19 THEN q.wall_ns END) AS wall_p95_ns
  FROM ranked AS q
  GROUP BY q.date
)
SELECT date, runs, launches, launches * 1e0 / runs AS launches_per_run, wall_ns * 1e0 / runs AS wall_ns_per_run, wall_p50_ns, wall_p95_ns,
       tax_ns * 1e0 / NULLIF(taxed, 0) AS tax_ns_per_run, critical_tax_ns * 1e0 / NULLIF(critically_taxed, 0) AS critical_tax_ns_per_run,
       failed_execs * 1e0 / runs AS failed_execs_per_run
FROM days
ORDER BY date
