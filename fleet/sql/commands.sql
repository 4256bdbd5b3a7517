-- The programs that cost most, over all runs. ${order}: critical_ns, launches or tax_ns.
WITH
-- The only query on launches. Its result, which is joined and counted below, has a row for each command of a run.
run_sums AS (
  SELECT run, command, COUNT(*) AS launches, SUM(total_ns) AS total_ns,
         SUM(create_ns + setup_ns + exec_ns + load_ns + teardown_ns) AS own_tax_ns,
         SUM(critical_tax_ns) AS critical_tax_ns, SUM(critical_ns) AS critical_ns, SUM(cpu_ns) AS cpu_ns
  FROM launches
  GROUP BY run, command
)
SELECT o.command AS command, COUNT(*) AS runs, SUM(o.launches) AS launches, SUM(o.total_ns) AS total_ns,
       SUM(o.own_tax_ns) AS own_tax_ns, SUM(o.critical_tax_ns) AS critical_tax_ns, SUM(o.critical_ns) AS critical_ns, SUM(o.cpu_ns) AS cpu_ns
FROM runs AS r JOIN run_sums AS o ON r.run = o.run
GROUP BY o.command
ORDER BY ${order} DESC NULLS LAST, launches DESC, command
LIMIT ${rows}
