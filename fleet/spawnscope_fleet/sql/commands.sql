-- The programs that cost the most across all runs. ${order}: critical_ns or launches.
-- own_tax_ns leaves out the waits for a CPU and for a reaping parent.
WITH
-- Sums launches first: the join and COUNT(*) below then see one row for each run and command.
run_sums AS (
  SELECT run, command, COUNT(*) AS launches, SUM(total_ns) AS total_ns,
         SUM(create_ns + setup_ns + exec_ns + load_ns + teardown_ns) AS own_tax_ns,
         SUM(critical_tax_ns) AS critical_tax_ns, SUM(critical_ns) AS critical_ns, SUM(cpu_ns) AS cpu_ns
  FROM launches
  GROUP BY run, command
)
SELECT s.command AS command, COUNT(*) AS runs, SUM(s.launches) AS launches, SUM(s.total_ns) AS total_ns,
       SUM(s.own_tax_ns) AS own_tax_ns, SUM(s.critical_tax_ns) AS critical_tax_ns, SUM(s.critical_ns) AS critical_ns, SUM(s.cpu_ns) AS cpu_ns
FROM runs AS r JOIN run_sums AS s ON r.run = s.run
GROUP BY s.command
ORDER BY ${order} DESC NULLS LAST, launches DESC, command
LIMIT ${rows}
