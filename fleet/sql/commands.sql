-- The programs that cost most, over all runs. ${order}: critical_ns, launches or tax_ns.
SELECT l.command AS command, COUNT(DISTINCT l.run) AS runs, COUNT(*) AS launches, SUM(l.total_ns) AS total_ns,
       SUM(l.create_ns + l.setup_ns + l.exec_ns + l.load_ns + l.teardown_ns) AS own_tax_ns,
       SUM(l.critical_tax_ns) AS critical_tax_ns, SUM(l.critical_ns) AS critical_ns, SUM(l.cpu_ns) AS cpu_ns
FROM launches AS l JOIN runs AS r ON l.run = r.run
GROUP BY l.command
ORDER BY ${order} DESC NULLS LAST, launches DESC, command
LIMIT ${rows}
