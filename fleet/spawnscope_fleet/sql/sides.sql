-- The numbers of runs of each job before and after ${since}, a timestamp, and of those that lost events.
SELECT job, SUM(CASE WHEN lost_events = 0 AND started < ${since} THEN 1 ELSE 0 END) AS earlier,
       SUM(CASE WHEN lost_events = 0 AND started >= ${since} THEN 1 ELSE 0 END) AS later,
       SUM(CASE WHEN lost_events > 0 THEN 1 ELSE 0 END) AS lost
FROM runs
GROUP BY job
ORDER BY job NULLS LAST
