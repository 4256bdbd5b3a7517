-- The call sites that cost the most across all runs. ${order}: critical_ns, saving_ns, launches or tax_ns.
-- A line of a file is one site, whichever shells run the file. Without a file, the other names tell sites apart.
WITH
site_runs AS (
  SELECT c.run AS run, c.language AS language, c.file AS file, c.line AS line, c.function AS function, c.module AS module,
         c.program AS program, c.text AS text,
         CASE WHEN c.file IS NULL THEN c.language END AS own_language, CASE WHEN c.file IS NULL THEN c.function END AS own_function,
         CASE WHEN c.file IS NULL THEN c.module END AS own_module, CASE WHEN c.file IS NULL THEN c.program END AS own_program,
         CASE WHEN c.file IS NULL THEN c.text END AS own_text, c.launches AS launches, c.total_ns AS total_ns, c.tax_ns AS tax_ns, c.critical_ns AS critical_ns
  FROM runs AS r JOIN callers AS c ON r.run = c.run
),
sites AS (
  SELECT MIN(language) AS language, file, line, MIN(function) AS function, MIN(module) AS module, MIN(program) AS program,
         MIN(text) AS text, COUNT(DISTINCT run) AS runs, SUM(launches) AS launches, SUM(total_ns) AS total_ns,
         SUM(tax_ns) AS tax_ns, SUM(critical_ns) AS critical_ns
  FROM site_runs
  GROUP BY file, line, own_language, own_function, own_module, own_program, own_text
),
savings AS (
  -- Findings overlap, so only the largest saving of a line in a run counts.
  SELECT file, line, SUM(saving_ns) AS saving_ns
  FROM (
    SELECT a.run AS run, a.file AS file, a.line AS line, MAX(a.saving_ns) AS saving_ns
    FROM runs AS r JOIN advice AS a ON r.run = a.run
    WHERE a.file IS NOT NULL
    GROUP BY a.run, a.file, a.line
  ) AS largest
  GROUP BY file, line
)
SELECT s.language AS language, s.file AS file, s.line AS line, s.function AS function, s.module AS module, s.program AS program,
       s.text AS text, s.runs AS runs, s.launches AS launches, s.total_ns AS total_ns, s.tax_ns AS tax_ns, s.critical_ns AS critical_ns,
       a.saving_ns AS saving_ns
FROM sites AS s LEFT JOIN savings AS a ON s.file = a.file AND s.line = a.line
ORDER BY ${order} DESC NULLS LAST, launches DESC, file NULLS LAST, line NULLS LAST, module NULLS LAST, function NULLS LAST,
         program NULLS LAST, text NULLS LAST, language
LIMIT ${rows}
