-- The recording: one SQLite file. This file is the documentation of the format. While it is written, or when its recorder was
-- killed, its last batches are in the write-ahead log beside it (FILE-wal), as SQLite has it. A finished one ends with
-- 24 bytes after the database, which SQLite ignores: a checksum of the whole file (src/record/trailer.rs).
--
-- Times `*_ns` are nanoseconds since recording.origin_ns unless the comment says "span" or "CPU".
-- NULL is "unknown": not seen by the collector, or not yet happened. It never means zero.
-- Byte strings (paths, argv, names) are BLOBs exactly as the kernel had them: any encoding, any control character.
-- `*_text` columns refer to text.id. A change here raises user_version (version.rs says who can still read it).

PRAGMA application_id = 0x53504e53; -- "SPNS"
PRAGMA user_version = 12;

-- What was recorded: exactly one row.
CREATE TABLE recording (
    id              INTEGER PRIMARY KEY CHECK (id = 1),
    version         TEXT NOT NULL,    -- of spawnscope, such as '0.1.0'
    collector       TEXT NOT NULL,    -- 'ebpf', 'ptrace' or 'perf'
    scope           TEXT NOT NULL,    -- 'command', 'process' (-p) or 'system' (-a)
    command         BLOB NOT NULL,    -- the command's argv, each argument ended by NUL; empty without a command
    cwd             BLOB NOT NULL,    -- working directory of the recorder
    kernel          TEXT NOT NULL,    -- uname -r
    arch            TEXT NOT NULL,    -- uname -m; system call numbers are of this architecture
    hostname        TEXT NOT NULL,
    cpus            INTEGER NOT NULL, -- CPUs online at the start
    started_unix_ns INTEGER NOT NULL, -- wall clock at origin_ns, nanoseconds since 1970-01-01 UTC
    origin_ns       INTEGER NOT NULL, -- CLOCK_MONOTONIC where this recording's time zero is
    root_launch     INTEGER,          -- launch.id of the command; NULL without a command
    last_ns         INTEGER NOT NULL, -- latest event stored so far
    wall_ns         INTEGER,          -- span: from the start to the command's end or the recording's; NULL: recorder was cut off
    ended           TEXT,             -- 'exited' (command ended), 'interrupted', 'duration', 'failed: WHY'; NULL: recorder was cut off
    allowed_cpus    REAL              -- CPUs that the command might use at its end: affinity, cpuset, and the quota of its control groups,
                                      -- such as 1.5; while it runs, and for -p: at the start; NULL: unknown, or -a without a command
);

-- What this machine did not let the collector see; the phases it names are NULL.
CREATE TABLE missing (
    what   TEXT NOT NULL,
    effect TEXT NOT NULL
);

-- What creating processes cost on this machine just before the recording: medians of some rounds, with their quartiles.
-- No row: unknown. A create is from entering the call to the child's first instruction, an exit from there to the return of
-- the parent's wait included, all in a small process:
-- 'fork_create', 'fork_exit' (fork + _exit + wait), 'cold_fork_exit' (the same after a pause of 3 ms), 'vfork_create', 'vfork_exit' (with CLONE_VM and CLONE_VFORK),
-- 'page_copy' (longer create for each MiB that the parent has touched in pages of 4 KiB), 'page_free' (longer rest of the exit
-- for each such MiB), 'cow_fault' (one copy-on-write fault in the parent while the child lives), 'reuse_fault' (one after its end).
-- Besides: 'recorded_call' (how much longer a system call takes while there is a recording), 'recorded_launch' (the same of a launch without
-- exec, up to its reaping), 'recorded_exec' (what an exec adds to that), 'cpuid' (one CPUID instruction),
-- 'identify' (all CPUID instructions at the start of a program, counted in one; both x86 only), and 'failed_open' (one open of a file that does not exist).
CREATE TABLE calibration (
    what    TEXT PRIMARY KEY,
    ns      REAL NOT NULL,
    low_ns  REAL,
    high_ns REAL
);

-- Events that were dropped, by kind. No row: nothing was lost.
CREATE TABLE lost (
    kind   TEXT PRIMARY KEY,
    events INTEGER NOT NULL
);

-- Strings that repeat: paths, argv, directories, names. The same bytes may occur under several ids.
CREATE TABLE text (
    id    INTEGER PRIMARY KEY,
    bytes BLOB NOT NULL
);

-- One row per process. Phases (docs: create, queue, setup, exec, load, run, teardown, reap) lie between these instants and those of exec.
CREATE TABLE launch (
    id                 INTEGER PRIMARY KEY, -- unique within the recording, in order of creation
    parent             INTEGER,             -- launch.id of the process that asked for it; NULL: unknown, or none is recorded
    parent_task        INTEGER,             -- the thread that asked (thread.task, or a launch.id: its first thread)
    pid                INTEGER,             -- in the recorder's pid namespace
    origin             INTEGER NOT NULL,    -- 0 launched, 1 the command itself, 2 existed before, 3 orphan: its creation was lost
    mechanism          INTEGER,             -- 0 fork, 1 vfork, 2 posix_spawn-like, 3 clone, 4 clone3
    create_ns          INTEGER,             -- parent entered the call
    created_ns         INTEGER,             -- the process exists (the command: was let go by the recorder; existed before: first seen)
    first_run_ns       INTEGER,             -- first on a CPU
    exit_ns            INTEGER,             -- exit began
    zombie_ns          INTEGER,             -- the parent may reap it
    reaped_ns          INTEGER,             -- the parent's wait returned (auto-reaped: equals zombie_ns)
    wait_status        INTEGER,             -- as wait(2) encodes it: exit code << 8, or the signal, + 128 with a core dump
    parent_rss_bytes   INTEGER,             -- the parent's resident set at creation
    parent_table_bytes INTEGER,             -- the parent's page tables at creation
    exit_cpu_ns        INTEGER,             -- CPU of all its threads, each up to where its exit began
    cpu_ns             INTEGER,             -- CPU of all its ended threads, teardown included, up to where it can be reaped
    name_text          INTEGER,             -- comm, only for processes that existed before
    setup_closes       INTEGER,             -- calls of close and close_range between its creation and its first successful execve;
                                            -- NULL: unknown, never executed anything, or is the command itself, set up by the recorder
    setup_close_span   INTEGER,             -- span: time in those calls, and between two of them with no other system call between
    prepare_ns         INTEGER,             -- the parent began the system calls that go before the launch: on signals, pipes, descriptors, less than
                                            -- 30 us apart and nothing else between; NULL: unknown, or none
    parent_tidied_ns   INTEGER,             -- the same calls after the parent's last reaping before this launch were done; NULL: unknown, or none
    parent_faults      INTEGER,             -- page faults of the parent's thread, without input, since its last launch or reaping
    script_stack       INTEGER,             -- stack.id: where in a script the parent asked for it
    native_stack       INTEGER,             -- stack.id: where in its machine code
    work_cpu_ns        INTEGER,             -- CPU of its first thread when, after its last exec, it first named one of its first eight arguments
                                            -- as a file, or read standard input; if it opened libraries or modules of the system later: when
                                            -- it opened the last of them, or then first named an argument again; NULL: unknown, or never
    exit_faults        INTEGER,             -- page faults of its first thread, without input, since its last launch or reaping; NULL: unknown, or never
    exit_rss_bytes     INTEGER              -- resident set when its first thread began to exit; NULL: unknown, or freed already
);

-- One row per successful execve, in the order they happened (rowid).
CREATE TABLE exec (
    launch            INTEGER NOT NULL,
    enter_ns          INTEGER,          -- entered execve
    return_ns         INTEGER,          -- returned to user space
    load_ns           INTEGER,          -- the dynamic loader was done
    has_loader        INTEGER,          -- 0 static: no load phase; 1 has one; NULL not known yet
    enter_cpu_ns      INTEGER,          -- CPU of the thread at enter_ns, return_ns, load_ns
    return_cpu_ns     INTEGER,
    load_cpu_ns       INTEGER,
    path_text         INTEGER NOT NULL, -- the file as given to execve
    interpreter_text  INTEGER,          -- interpreter of a #! script
    argv_text         INTEGER NOT NULL, -- each argument ended by NUL; secrets masked
    argv_bytes        INTEGER NOT NULL, -- bytes the whole argv took, masks counted as they are; larger than the text when that was cut
    cwd_text          INTEGER,
    load_opens        INTEGER,          -- files that the loader opened up to load_ns, /etc/ld.so.cache apart: libraries; NULL: no load_ns
    load_failed_opens INTEGER,          -- opens of it that failed, that of the cache apart, and other calls (access, stat, readlink) that
                                        -- found no such file; glibc asks for /etc/ld.so.preload once; NULL: no load_ns
    load_cache        INTEGER,          -- /etc/ld.so.cache: 1 opened, 0 could not be opened; NULL: not asked for, or no load_ns
    variables_text    INTEGER           -- CARGO_PKG_NAME, PYTEST_CURRENT_TEST, npm_package_name and npm_lifecycle_event of its environment,
                                        -- as NAME=VALUE, each ended by NUL; secrets masked. No other variable is ever stored.
                                        -- NULL: has none of them, or was not looked at
);

-- One row per failed execve.
CREATE TABLE failed_exec (
    launch    INTEGER NOT NULL,
    enter_ns  INTEGER NOT NULL,
    return_ns INTEGER NOT NULL,
    path_text INTEGER NOT NULL,
    errno     INTEGER NOT NULL
);

-- Threads other than the first of their process.
CREATE TABLE thread (
    task       INTEGER PRIMARY KEY, -- unique among threads and launches
    launch     INTEGER NOT NULL,
    creator    INTEGER,             -- the thread that made it
    tid        INTEGER NOT NULL,    -- in the recorder's pid namespace
    created_ns INTEGER NOT NULL,
    ended_ns   INTEGER,             -- began to exit
    cpu_ns     INTEGER              -- CPU at its exit
);

-- Places in programs, each stored once. The same may occur under several ids.
CREATE TABLE frame (
    id            INTEGER PRIMARY KEY,
    language      INTEGER NOT NULL, -- 0 native (machine code), 1 kernel, 2 bash, 3 dash, 4 python, 5 perl, 6 make, 7 node
    function_text INTEGER,          -- make: the target; NULL also outside of all functions of a script
    file_text     INTEGER,          -- source file
    line          INTEGER,          -- in it, from 1
    module_text   INTEGER,          -- the ELF file that holds the machine code; make: the template that the makefile was generated from
    address       INTEGER,          -- in that file's own numbering; without one, in the process's memory (as a signed 64-bit number)
    is_inlined    INTEGER NOT NULL  -- 1: the compiler put it into the next frame outwards
);

-- Call chains, as a tree: each row is a frame and the chain that called it. The same may occur under several ids.
CREATE TABLE stack (
    id           INTEGER PRIMARY KEY, -- larger than `caller`
    frame        INTEGER NOT NULL,    -- frame.id
    caller       INTEGER,             -- stack.id of the next frame outwards; NULL: none is known
    is_truncated INTEGER NOT NULL     -- 1: more frames follow outwards that could not be read; only without `caller`
);

-- What threads waited for inside system calls. The same may occur under several ids.
CREATE TABLE object (
    id        INTEGER PRIMARY KEY,
    kind      INTEGER NOT NULL, -- 0 pipe, 1 fifo, 2 unix socket, 3 other socket, 4 character device, 5 block device, 6 file, 7 directory,
                                -- 8 epoll, 9 eventfd, 10 signalfd, 11 timerfd, 12 pidfd, 13 another anonymous inode,
                                -- 14 the permission of a scanner (fanotify) to open or execute a file
    device    INTEGER NOT NULL, -- of its file system: major << 20 | minor; a pipe is known by this and the inode
    inode     INTEGER NOT NULL, -- 0 for the kinds from 8 on that all have the same (as a signed 64-bit number)
    path_text INTEGER           -- of kinds 1 and 4 to 7; begins with '...' where the process's root was not reached. Of kind 3, since version 11:
                                -- the address of the other end of an internet socket, such as '10.0.0.7:443' or '[::1]:9777'
);

-- Processes of this machine at the other end of internet sockets that threads waited for: who listened at the address that a socket was
-- connected to, whether or not that process was recorded. No row if no process listened there, or if the recorder could not see it. Several
-- threads that waited for one socket give several rows.
CREATE TABLE peer (
    device    INTEGER NOT NULL, -- object.device
    inode     INTEGER NOT NULL, -- object.inode
    pid       INTEGER NOT NULL, -- in the recorder's pid namespace
    name_text INTEGER NOT NULL  -- of the process
);

-- Outputs of the ninja edge that a launch was made for, from ninja's log, in ascending order: only of a launch `/bin/sh -c COMMAND` by ninja whose
-- log has the hash of COMMAND for one edge. Those of a launch are in consecutive rows, at most 64. No row: unknown, or no edge.
CREATE TABLE edge (
    launch      INTEGER NOT NULL,
    output_text INTEGER NOT NULL -- as ninja names it, relative to the directory that it works in
);

-- One row per stretch on a CPU and the stretch off it that followed, of every followed thread.
CREATE TABLE slice (
    task      INTEGER NOT NULL, -- thread.task, or a launch.id: its first thread
    off_ns    INTEGER NOT NULL, -- left the CPU (new thread: was created)
    on_span   INTEGER,          -- span on the CPU before off_ns; NULL: never ran, or not seen
    off_span  INTEGER,          -- span off the CPU after off_ns; NULL: it ended (reason 5), or was not back when the recording ended: it
                                -- waited to the end, or, from wake_span on or with reason 1, could run. One that had a CPU to
                                -- the end has reason 1, and off_ns is the end. Before version 6, NULL is of those that ended only
    wake_span INTEGER,          -- span from off_ns to the wake-up; NULL: was not blocked, or not seen
    reason    INTEGER NOT NULL, -- 0 created, 1 preempted, 2 interruptible sleep, 3 uninterruptible sleep, 4 stopped, 5 ended
    syscall   INTEGER,          -- number of the system call it sat in
    argument  INTEGER,          -- that call's first argument (as a signed 64-bit number)
    waker     INTEGER,          -- task that woke it: thread.task or launch.id; 0: an interrupt; negative: minus the pid of one not followed;
                                -- NULL with a waker_text: one that the recorder's pid namespace does not see
    waker_text INTEGER,         -- the name of that one's process
    object    INTEGER,          -- object.id, what it was blocked on; of poll, select and epoll_wait the only socket, if there is one and the call did not
                                -- time out; without sockets the first descriptor, and the epoll. Before version 12, of poll and select always the first
                                -- descriptor. NULL: nothing that has one, several sockets, or not seen (`missing` says whether permissions are seen)
    calls     INTEGER,          -- system calls that it entered in the stretch on the CPU; NULL: not counted
    waker_certain INTEGER       -- 0: an interrupt that hit the waker may have ended the wait, which this kernel did not let anybody see;
                                -- 1: it was the waker; NULL: no waker, or before version 7, when 0 was not recorded
);

-- What threads did at instants of each CPU's clock, and what they waited for; only with `record --sample`. In no order.
CREATE TABLE sample (
    task       INTEGER NOT NULL, -- thread.task, or a launch.id: its first thread
    at_ns      INTEGER NOT NULL, -- it had a CPU then, or left it to wait
    span_ns    INTEGER NOT NULL, -- span that it stands for: from one look at a CPU to the next; of a wait, its time off the CPU and that of
                                 -- shorter waits since the thread's last sample of one, which have none of their own
    is_waiting INTEGER NOT NULL, -- 1: it waited; 0: it had a CPU
    stack      INTEGER NOT NULL  -- stack.id: where, frames of the kernel first
);

-- What the recording is about: `record --label`, and what the recorder knew by itself: 'ci', 'commit', 'branch', 'job', 'run' and 'attempt' from
-- the variables of a CI service, 'cpu' (the processor's model) and 'image' (of the container). At most 64 rows. A key has at most 64 bytes and
-- matches [A-Za-z][A-Za-z0-9_.-]*, a value has at most 1024; secrets in values are masked. No row: unknown.
CREATE TABLE label (
    key   TEXT PRIMARY KEY,
    value TEXT NOT NULL
);

-- Checksums of the tables above, a row each, renewed with every batch; none at all: whoever wrote the recording keeps none.
-- The checksum of a table is the sum, modulo 2^64, of those of its rows. That of a row is XXH3-64 (seed 0) of its rowid and
-- then its columns in order. The rowid is 8 bytes, little-endian; a column is a byte for its type and its value: 0 NULL; 1 INTEGER,
-- 8 bytes, little-endian; 2 REAL, the 8 bytes of IEEE 754, little-endian; 3 TEXT and 4 BLOB, their length in 8 bytes,
-- little-endian, and their bytes. A program that changes rows deletes the rows here.
CREATE TABLE checksum (
    name TEXT NOT NULL,
    rows INTEGER NOT NULL,
    sum  INTEGER NOT NULL  -- as a signed 64-bit number
);
