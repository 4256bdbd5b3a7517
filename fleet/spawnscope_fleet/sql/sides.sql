-- The numbers of runs of each job before and after ${since}, a timestamp, and of those that lost events, and the mean wall time of a run.
SELECT job, SUM(CASE WHEN lost_events = 0 AND started < ${since} THEN 1 ELSE 0 END) AS earlier,
       SUM(CASE WHEN lost_events = 0 AND started >= ${since} THEN 1 ELSE 0 END) AS later,
       SUM(CASE WHEN lost_events > 0 THEN 1 ELSE 0 END) AS lost,
       AVG(CASE WHEN lost_events = 0 AND started < ${since} THEN wall_ns END) AS wall_before_ns,
       AVG(CASE WHEN lost_events = 0 AND started >= ${since} THEN wall_ns END) AS wall_after_ns
FROM runs
GROUP BY job
ORDER BY job NULLS LAST
