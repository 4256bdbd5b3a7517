-- A recording by hand: sh runs `true` through vfork, after one miss along PATH, in a function of a script. Every phase has another length.
INSERT INTO recording VALUES (1, '0.1.0', 'ebpf', 'command', CAST('sh' || char(0) || '-c' || char(0) || 'true' || char(0) AS BLOB),
    CAST('/tmp' AS BLOB), '6.18.0', 'x86_64', 'host', 2, 1790000000000000000, 5000, 1, 30000000, 20000000, 'exited', NULL);
INSERT INTO text VALUES (1, CAST('/bin/sh' AS BLOB)), (2, CAST('sh' || char(0) || '-c' || char(0) || 'true' || char(0) AS BLOB)),
    (3, CAST('/tmp' AS BLOB)), (4, CAST('/bin/true' AS BLOB)), (5, CAST('true' || char(0) AS BLOB)), (6, CAST('/opt/bin/true' AS BLOB)),
    (7, CAST('/srv/job.sh' AS BLOB)), (8, CAST('step' AS BLOB));
INSERT INTO frame VALUES (1, 3, NULL, 7, 12, NULL, NULL, 0), (2, 3, 8, 7, 5, NULL, NULL, 0);
INSERT INTO stack VALUES (1, 1, NULL, 0), (2, 2, 1, 0);
INSERT INTO launch VALUES
    (1, NULL, NULL, 100, 1, NULL, NULL, 0, 10000, 19000000, 20000000, NULL, 1792, NULL, NULL, 700000, 750000, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
    (2, 1, 1, 101, 0, 1, 5000000, 5100000, 5300000, 14000000, 14500000, 16000000, 1792, 2097152, 65536, 400000, 420000, NULL, 4, 2500, 4990000, NULL, 12, 2, NULL, NULL, NULL, NULL);
INSERT INTO exec VALUES
    (1, 50000, 1050000, 2050000, 1, 10000, 300000, 500000, 1, NULL, 2, 11, 3, 2, 1, 1, NULL),
    (2, 5700000, 7700000, 8500000, 1, 30000, 200000, 300000, 4, NULL, 5, 5, 3, 1, 3, 0, NULL);
INSERT INTO failed_exec VALUES (2, 5400000, 5420000, 6, 2);
INSERT INTO slice VALUES (1, 5200000, 100000, 800000, 790000, 3, 58, 0, 2, NULL, NULL, 3, 1), (2, 5100000, NULL, 200000, NULL, 0, NULL, NULL, NULL, NULL, NULL, 0, NULL);
