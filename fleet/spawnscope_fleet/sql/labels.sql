-- The cost of the launches with each value of a label, over all runs. ${label}: a column of launches (l.target) or runs (r.job, r.host, r.branch).
-- ${order}: critical_ns or launches. own_tax_ns leaves out the waits for a CPU and for a reaping parent.
WITH
run_sums AS (
  SELECT l.run AS run, ${label} AS label, COUNT(*) AS launches, SUM(l.total_ns) AS total_ns,
         SUM(l.create_ns + l.setup_ns + l.exec_ns + l.load_ns + l.teardown_ns) AS own_tax_ns,
         SUM(l.critical_tax_ns) AS critical_tax_ns, SUM(l.critical_ns) AS critical_ns, SUM(l.cpu_ns) AS cpu_ns
  FROM runs AS r JOIN launches AS l ON r.run = l.run
  GROUP BY l.run, ${label}
)
SELECT s.label AS label, COUNT(*) AS runs, SUM(s.launches) AS launches, SUM(s.total_ns) AS total_ns,
       SUM(s.own_tax_ns) AS own_tax_ns, SUM(s.critical_tax_ns) AS critical_tax_ns, SUM(s.critical_ns) AS critical_ns, SUM(s.cpu_ns) AS cpu_ns
FROM run_sums AS s
GROUP BY s.label
ORDER BY ${order} DESC NULLS LAST, launches DESC, label NULLS LAST
LIMIT ${rows}
