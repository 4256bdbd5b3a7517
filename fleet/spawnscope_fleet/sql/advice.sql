-- Sums of each finding over all runs. Savings of different findings overlap, so they must not be added up.
SELECT a.rule AS rule, a.file AS file, a.line AS line, MIN(a.title) AS title, MIN(a.fix) AS fix,
       COUNT(DISTINCT a.run) AS runs, SUM(a.launches) AS launches,
       SUM(a.saving_ns) AS saving_ns, SUM(a.saving_low_ns) AS saving_low_ns, SUM(a.saving_high_ns) AS saving_high_ns,
       MAX(CASE WHEN a.is_foreign THEN 1 ELSE 0 END) AS is_foreign
FROM runs AS r JOIN advice AS a ON r.run = a.run
GROUP BY a.rule, a.file, a.line
ORDER BY saving_ns DESC, rule, file NULLS LAST, line NULLS LAST
LIMIT ${rows}
