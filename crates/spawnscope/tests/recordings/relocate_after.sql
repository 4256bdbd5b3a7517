-- The same as relocate_before.sql, of the script that runs one mv for each directory.
INSERT INTO recording VALUES
    (1, '0.2.0', 'ebpf', 'command', CAST('bash' || char(0) || 'relocate.sh' || char(0) AS BLOB), CAST('/srv/package' AS BLOB), '6.18.44', 'x86_64', 'host', 2, 1795401019204575675, 2402450241232, 1, 144640459, 26479943, 'exited', 2.0);
INSERT INTO calibration VALUES
    ('page_free', 24633.875, 13804.125, 103469.5), ('cow_fault', 2600.35, 2396.56, 2711.81), ('reuse_fault', 1012.81, 924.47, 1062.68),
    ('cpuid', 5396.75, 5118.875, 5759.875), ('recorded_call', 367.04, 365.54, 375.15000000000003);
INSERT INTO text VALUES
    (1, CAST('bash' || char(0) || 'relocate.sh' || char(0) AS BLOB)), (2, CAST('/usr/bin/bash' AS BLOB)), (3, CAST('/srv/package' AS BLOB)),
    (4, CAST('relocate.sh' AS BLOB)),
    (5, CAST('mv' || char(0) || 'parcel/file1' || char(0) || 'parcel/file3' || char(0) || 'parcel/file5' || char(0) || 'parcel/file7' || char(0) || 'parcel/file9' || char(0) || 'usr/section1/' || char(0) AS BLOB)),
    (6, CAST('/usr/bin/mv' AS BLOB)),
    (7, CAST('mv' || char(0) || 'parcel/file0' || char(0) || 'parcel/file2' || char(0) || 'parcel/file4' || char(0) || 'parcel/file6' || char(0) || 'parcel/file8' || char(0) || 'usr/section0/' || char(0) AS BLOB));
INSERT INTO launch VALUES
    (1, NULL, NULL, 6773, 1, NULL, NULL, 118157011, 118259618, 144500111, 144636954, NULL, 0, NULL, NULL, 2548946, 2685789, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
    (2, 1, 1, 6819, 0, 0, 120191540, 120343345, 129826455, 135374721, 135517232, 141825068, 0, 3186688, 45056, 1738286, 1880797, NULL, 1, 3425, 120189517, NULL, NULL, 1, NULL, NULL, NULL, NULL),
    (3, 1, 1, 6821, 0, 0, 141923013, 142066165, 142182998, 144295769, 144426142, 144451349, 0, 3186688, 45056, 1408538, 1538911, NULL, 1, 1442, 141921040, 141824818, 2, 1, NULL, NULL, NULL, NULL);
INSERT INTO exec VALUES
    (1, 118335661, 118770315, 119426216, 1, 76043, 510697, 1166598, 2, NULL, 1, 17, 3, 2, 1, 1, NULL),
    (2, 129950419, 134133753, 134894550, 1, 123964, 497318, 1258115, 6, NULL, 5, 82, 3, 5, 1, 1, NULL),
    (3, 142256647, 142464596, 143863338, 1, 73649, 281598, 976107, 6, NULL, 7, 82, 3, 5, 1, 1, NULL);
INSERT INTO frame VALUES
    (1, 2, NULL, 4, 10, NULL, NULL, 0);
INSERT INTO stack VALUES
    (1, 1, NULL, 0);
INSERT INTO slice VALUES
    (2, 120343345, NULL, 9483110, NULL, 0, NULL, NULL, NULL, NULL, NULL, 0, NULL),
    (1, 120360411, 2100793, 9670067, NULL, 1, NULL, NULL, NULL, NULL, NULL, 278, NULL),
    (2, 130017028, 190573, 3809980, NULL, 1, 59, 94305582399664, NULL, NULL, NULL, 11, NULL),
    (2, 135530682, 1703674, NULL, NULL, 5, NULL, NULL, NULL, NULL, NULL, 168, NULL),
    (1, 130084978, 54500, 11718939, 5433927, 2, 61, 4294967295, 2, NULL, NULL, 6, 1),
    (1, 141841572, 37655, 12118, NULL, 1, NULL, NULL, NULL, NULL, NULL, 0, NULL),
    (1, 142083381, 229691, 38707, NULL, 1, NULL, NULL, NULL, NULL, NULL, 10, NULL),
    (3, 142066165, NULL, 116833, NULL, 0, NULL, NULL, NULL, NULL, NULL, 0, NULL),
    (3, 142465988, 282990, 704233, NULL, 1, NULL, NULL, NULL, NULL, NULL, 11, NULL),
    (3, 144434714, 1264493, NULL, NULL, 5, NULL, NULL, NULL, NULL, NULL, 168, NULL),
    (1, 142182998, 60910, 2251716, 2244666, 2, 61, 4294967295, 3, NULL, NULL, 6, 1),
    (1, 144640459, 205745, NULL, NULL, 5, NULL, NULL, NULL, NULL, NULL, 11, NULL);
