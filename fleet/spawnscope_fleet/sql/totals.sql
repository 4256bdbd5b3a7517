-- The size of the dataset, and the total cost of launches.
SELECT COUNT(*) AS runs, COUNT(DISTINCT job) AS jobs, COUNT(DISTINCT host) AS hosts, MIN(date) AS first_date, MAX(date) AS last_date,
       SUM(launches) AS launches, SUM(failed_execs) AS failed_execs, SUM(wall_ns) AS wall_ns, SUM(tax_ns) AS tax_ns,
       SUM(critical_tax_ns) AS critical_tax_ns, SUM(CASE WHEN lost_events > 0 THEN 1 ELSE 0 END) AS runs_with_losses
FROM runs
