-- The findings of the latest `spawnscope doctor` on each machine: problems, notes, and items that could not be checked, in this order, and
-- within each kind by decreasing effect. `place` is the position in this order. A result without findings has one row, without a severity.
SELECT e.host AS host, e.date AS date, e.place AS place, e.severity AS severity, e.check_name AS check_name, e.title AS title, e.evidence AS evidence,
       e.effect_ns AS effect_ns, CASE WHEN e.effect_is_lower_bound THEN 1 WHEN e.effect_ns IS NOT NULL THEN 0 END AS is_lower_bound,
       e.effect_of AS effect_of, e.effect_basis AS effect_basis, e.fix AS fix, e.fix_cost AS fix_cost
FROM (
  SELECT d.host AS host, d.date AS date, d.place AS place, d.severity AS severity, d.check_name AS check_name, d.title AS title,
         d.evidence AS evidence, d.effect_ns AS effect_ns, d.effect_is_lower_bound AS effect_is_lower_bound, d.effect_of AS effect_of,
         d.effect_basis AS effect_basis, d.fix AS fix, d.fix_cost AS fix_cost,
         RANK() OVER (PARTITION BY d.host ORDER BY d.examined DESC, d.examination DESC) AS age
  FROM doctor AS d
) AS e
WHERE e.age = 1
ORDER BY host, place
LIMIT ${rows}
