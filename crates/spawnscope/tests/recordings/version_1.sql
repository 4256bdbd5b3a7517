-- A recording as version 1 of the format had it, which must stay readable: its tables, and two launches.
PRAGMA application_id = 0x53504e53;
PRAGMA user_version = 1;
CREATE TABLE recording (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    version TEXT NOT NULL,
    collector TEXT NOT NULL,
    scope TEXT NOT NULL,
    command BLOB NOT NULL,
    cwd BLOB NOT NULL,
    kernel TEXT NOT NULL,
    arch TEXT NOT NULL,
    hostname TEXT NOT NULL,
    cpus INTEGER NOT NULL,
    started_unix_ns INTEGER NOT NULL,
    origin_ns INTEGER NOT NULL,
    root_launch INTEGER,
    last_ns INTEGER NOT NULL,
    wall_ns INTEGER,
    ended TEXT
);
CREATE TABLE missing (
    what TEXT NOT NULL,
    effect TEXT NOT NULL
);
CREATE TABLE lost (
    kind TEXT PRIMARY KEY,
    events INTEGER NOT NULL
);
CREATE TABLE text (
    id INTEGER PRIMARY KEY,
    bytes BLOB NOT NULL
);
CREATE TABLE launch (
    id INTEGER PRIMARY KEY,
    parent INTEGER,
    parent_task INTEGER,
    pid INTEGER,
    origin INTEGER NOT NULL,
    mechanism INTEGER,
    create_ns INTEGER,
    created_ns INTEGER,
    first_run_ns INTEGER,
    exit_ns INTEGER,
    zombie_ns INTEGER,
    reaped_ns INTEGER,
    wait_status INTEGER,
    parent_rss_bytes INTEGER,
    parent_table_bytes INTEGER,
    exit_cpu_ns INTEGER,
    cpu_ns INTEGER,
    name_text INTEGER
);
CREATE TABLE exec (
    launch INTEGER NOT NULL,
    enter_ns INTEGER,
    return_ns INTEGER,
    load_ns INTEGER,
    has_loader INTEGER,
    enter_cpu_ns INTEGER,
    return_cpu_ns INTEGER,
    load_cpu_ns INTEGER,
    path_text INTEGER NOT NULL,
    interpreter_text INTEGER,
    argv_text INTEGER NOT NULL,
    argv_bytes INTEGER NOT NULL,
    cwd_text INTEGER
);
CREATE TABLE failed_exec (
    launch INTEGER NOT NULL,
    enter_ns INTEGER NOT NULL,
    return_ns INTEGER NOT NULL,
    path_text INTEGER NOT NULL,
    errno INTEGER NOT NULL
);
CREATE TABLE thread (
    task INTEGER PRIMARY KEY,
    launch INTEGER NOT NULL,
    creator INTEGER,
    tid INTEGER NOT NULL,
    created_ns INTEGER NOT NULL,
    ended_ns INTEGER,
    cpu_ns INTEGER
);
CREATE TABLE slice (
    task INTEGER NOT NULL,
    off_ns INTEGER NOT NULL,
    on_span INTEGER,
    off_span INTEGER,
    wake_span INTEGER,
    reason INTEGER NOT NULL,
    syscall INTEGER,
    argument INTEGER,
    waker INTEGER,
    waker_text INTEGER
);
INSERT INTO recording VALUES (1, '0.1.0', 'ebpf', 'command', CAST('sh' || char(0) || '-c' || char(0) || 'true' || char(0) AS BLOB),
    CAST('/tmp' AS BLOB), '6.18.0', 'x86_64', 'host', 2, 1790000000000000000, 5000, 1, 30000000, 20000000, 'exited');
INSERT INTO text VALUES (1, CAST('/bin/sh' AS BLOB)), (2, CAST('sh' || char(0) || '-c' || char(0) || 'true' || char(0) AS BLOB)),
    (3, CAST('/tmp' AS BLOB)), (4, CAST('/bin/true' AS BLOB)), (5, CAST('true' || char(0) AS BLOB)), (6, CAST('/opt/bin/true' AS BLOB));
INSERT INTO launch VALUES
    (1, NULL, NULL, 100, 1, NULL, NULL, 0, 10000, 19000000, 20000000, NULL, 1792, NULL, NULL, 700000, 750000, NULL),
    (2, 1, 1, 101, 0, 1, 5000000, 5100000, 5300000, 14000000, 14500000, 16000000, 1792, 2097152, 65536, 400000, 420000, NULL);
INSERT INTO exec VALUES
    (1, 50000, 1050000, 2050000, 1, 10000, 300000, 500000, 1, NULL, 2, 11, 3),
    (2, 5700000, 7700000, 8500000, 1, 30000, 200000, 300000, 4, NULL, 5, 5, 3);
INSERT INTO failed_exec VALUES (2, 5400000, 5420000, 6, 2);
INSERT INTO slice VALUES (1, 5200000, 100000, 800000, 790000, 3, 58, 0, 2, NULL), (2, 5100000, NULL, 200000, NULL, 0, NULL, NULL, NULL, NULL);
