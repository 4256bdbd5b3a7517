-- The format of a recording, which is one SQLite file. While a recording is written, or if its recorder was killed, its last
-- batches are in SQLite's write-ahead log beside it (FILE-wal). A finished recording ends with 24 bytes after the database,
-- which SQLite ignores: a checksum of the whole file (trailer.rs).
--
-- Times `*_ns` are nanoseconds since recording.origin_ns unless the comment says "span" or "CPU".
-- NULL means unknown: the collector did not see the value, or the event has not happened yet. It never means zero.
-- Byte strings (paths, argv, names) are BLOBs as the kernel reports them, with any encoding and any control characters.
-- `*_text` columns refer to text.id. A change to the schema increments user_version (version.rs says which versions are readable).
-- The versions added:
--
--  2: `calibration`, and columns of `launch` and `exec`
--  3: `object`, and the column that refers to it. Before, waits for scanners count as waits for a disk.
--  4: what a parent does around launches
--  5: call chains, and the number of system calls in each slice
--  6: slices that are not over when the recording ends
--  7: whether a waker is certain
--  8: checksums. Before, the log was a rollback journal.
--  9: the CPUs that the command may use, and when programs begin their work
-- 10: labels, variables that name packages and tests, page faults of a parent after its last launch, and more constants
-- 11: addresses of the peers of internet sockets, and the local processes that listen there
-- 12: edges of ninja, which of several files a thread waited for, and logs of other tools; these may lack the number of CPUs
-- 13: the times in which the collector stopped threads

PRAGMA application_id = 0x53504e53; -- "SPNS"
PRAGMA user_version = 13;

-- What was recorded: exactly one row.
CREATE TABLE recording (
    id              INTEGER PRIMARY KEY CHECK (id = 1),
    version         TEXT NOT NULL,    -- version of spawnscope, such as '0.1.0'
    collector       TEXT NOT NULL,    -- 'ebpf' or 'ptrace'; of an imported log 'import:' and its format, such as 'import:strace'
    scope           TEXT NOT NULL,    -- 'command', 'process' (-p) or 'system' (-a)
    command         BLOB NOT NULL,    -- the command's argv, each argument NUL-terminated; empty if there is no command
    cwd             BLOB NOT NULL,    -- working directory of the recorder
    kernel          TEXT NOT NULL,    -- uname -r
    arch            TEXT NOT NULL,    -- uname -m; the architecture of system call numbers
    hostname        TEXT NOT NULL,
    cpus            INTEGER NOT NULL, -- CPUs online at the start; 0: unknown, as in an imported log
    started_unix_ns INTEGER NOT NULL, -- wall clock at origin_ns, nanoseconds since 1970-01-01 UTC
    origin_ns       INTEGER NOT NULL, -- CLOCK_MONOTONIC at the recording's time zero
    root_launch     INTEGER,          -- launch.id of the command; NULL: there is no command
    last_ns         INTEGER NOT NULL, -- latest event stored so far
    wall_ns         INTEGER,          -- span: from the start to the end of the command or of the recording; NULL: the recorder did not finish
    ended           TEXT,             -- 'exited' (command ended), 'interrupted', 'duration', 'failed: WHY'; NULL: the recorder did not finish
    allowed_cpus    REAL              -- number of CPUs that the command was allowed to use, such as 1.5, by affinity, cpuset, and the quota of its
                                      -- control groups; measured at the end of the command (for -p and until then: at the start); NULL:
                                      -- unknown, or -a without a command
);

-- Features that the collector could not use on this machine, and what is unknown (NULL) as a result.
CREATE TABLE missing (
    what   TEXT NOT NULL,
    effect TEXT NOT NULL
);

-- Constants of this machine, measured just before the recording: the medians of some rounds, with their quartiles. No row: unknown.
-- Children of a small process:
--   'fork_create'      from entering fork to the child's first instruction
--   'fork_exit'        from entering fork to the return of the parent's wait; the child only exits
--   'cold_fork_exit'   like fork_exit, after a pause of 3 ms
--   'vfork_create'     like fork_create, with CLONE_VM and CLONE_VFORK
--   'vfork_exit'       like fork_exit, with CLONE_VM and CLONE_VFORK
-- Effects of the parent's memory:
--   'page_copy'        increase of fork_create for each MiB that the parent has touched, in pages of 4 KiB
--   'page_free'        increase of fork_exit minus fork_create for each such MiB
--   'cow_fault'        one copy-on-write fault in the parent while the child lives
--   'reuse_fault'      one such fault after the child has ended
-- Effects of recording:
--   'recorded_call'    how much longer a system call takes during a recording
--   'recorded_launch'  how much longer a launch without exec takes, up to its reaping
--   'recorded_exec'    how much longer an exec takes
-- Others:
--   'cpuid'            one CPUID instruction (x86 only)
--   'identify'         all CPUID instructions at the start of a program (x86 only)
--   'failed_open'      one open of a file that does not exist
CREATE TABLE calibration (
    what    TEXT PRIMARY KEY,
    ns      REAL NOT NULL,
    low_ns  REAL,
    high_ns REAL
);

-- Events that were lost, by kind. No row: nothing was lost.
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
    parent             INTEGER,             -- launch.id of the process that requested it; NULL: unknown, or not recorded
    parent_task        INTEGER,             -- the thread that requested it (thread.task, or for a first thread its launch.id)
    pid                INTEGER,             -- in the recorder's pid namespace
    origin             INTEGER NOT NULL,    -- 0 launched, 1 the command itself, 2 existed before, 3 orphan: its creation was lost
    mechanism          INTEGER,             -- 0 fork, 1 vfork, 2 posix_spawn-like, 3 clone, 4 clone3
    create_ns          INTEGER,             -- parent entered the call
    created_ns         INTEGER,             -- the process exists (the command: was released by the recorder; existed before: first seen)
    first_run_ns       INTEGER,             -- first on a CPU
    exit_ns            INTEGER,             -- exit began
    zombie_ns          INTEGER,             -- the parent may reap it
    reaped_ns          INTEGER,             -- the parent's wait returned (auto-reaped: equals zombie_ns)
    wait_status        INTEGER,             -- as wait(2) encodes it: exit code << 8, or the signal, plus 128 if it dumped core
    parent_rss_bytes   INTEGER,             -- the parent's resident set at creation
    parent_table_bytes INTEGER,             -- the parent's page tables at creation
    exit_cpu_ns        INTEGER,             -- CPU time of all its threads, each up to the start of the thread's exit
    cpu_ns             INTEGER,             -- CPU time of all its ended threads, including teardown
    name_text          INTEGER,             -- comm, only for processes that existed before
    setup_closes       INTEGER,             -- calls of close and close_range between its creation and its first successful execve;
                                            -- NULL: unknown, it never executed a program, or it is the command, which the recorder sets up
    setup_close_span   INTEGER,             -- span: time in those calls, and from each to the next if no other system call is between them
    prepare_ns         INTEGER,             -- the parent began the system calls that prepare the launch: on signals, pipes and descriptors, less than
                                            -- 30 us apart, and without other calls between them; NULL: unknown, or there are none
    parent_tidied_ns   INTEGER,             -- the end of such calls after the last reaping by the parent before this launch; NULL: unknown, or none
    parent_faults      INTEGER,             -- minor page faults (without input) of the parent's thread since its last launch or reaping
    script_stack       INTEGER,             -- stack.id of the call chain in the parent's script that requested it
    native_stack       INTEGER,             -- stack.id of the call chain in the parent's machine code that requested it
    work_cpu_ns        INTEGER,             -- CPU time of its first thread when, after its last exec, the thread first used one of the program's first
                                            -- eight arguments as a file name, or read standard input; if it opened libraries or modules of the system
                                            -- after that: when it opened the last one, or then first used an argument again; NULL: unknown, or never
    exit_faults        INTEGER,             -- minor page faults of its first thread since its last launch or reaping; NULL: unknown, or it had neither
    exit_rss_bytes     INTEGER              -- resident set when its first thread began to exit; NULL: unknown, or already freed
);

-- One row per successful execve, in chronological order (rowid).
CREATE TABLE exec (
    launch            INTEGER NOT NULL,
    enter_ns          INTEGER,          -- entered execve
    return_ns         INTEGER,          -- returned to user space
    load_ns           INTEGER,          -- the dynamic loader was done
    has_loader        INTEGER,          -- 0: static, so there is no load phase; 1: has a dynamic loader; NULL: not known yet
    enter_cpu_ns      INTEGER,          -- CPU time of the thread at enter_ns
    return_cpu_ns     INTEGER,          -- CPU time of the thread at return_ns
    load_cpu_ns       INTEGER,          -- CPU time of the thread at load_ns
    path_text         INTEGER NOT NULL, -- the file name passed to execve
    interpreter_text  INTEGER,          -- interpreter of a #! script
    argv_text         INTEGER NOT NULL, -- each argument NUL-terminated; secrets masked
    argv_bytes        INTEGER NOT NULL, -- bytes of the whole argv, with masks instead of secrets; larger than the text if the text was truncated
    cwd_text          INTEGER,
    load_opens        INTEGER,          -- files that the loader opened up to load_ns, except /etc/ld.so.cache: libraries; NULL: load_ns is unknown
    load_failed_opens INTEGER,          -- failed opens by the loader, except of the cache, and other calls (access, stat, readlink) that found
                                        -- no such file; glibc looks for /etc/ld.so.preload once; NULL: load_ns is unknown
    load_cache        INTEGER,          -- /etc/ld.so.cache: 1 opened, 0 could not be opened; NULL: no attempt, or load_ns is unknown
    variables_text    INTEGER           -- CARGO_PKG_NAME, PYTEST_CURRENT_TEST, npm_package_name and npm_lifecycle_event of its environment,
                                        -- as NAME=VALUE, each NUL-terminated; secrets masked. No other variable is ever stored.
                                        -- NULL: it has none of them, or the environment was not read
);

-- One row per failed execve.
CREATE TABLE failed_exec (
    launch    INTEGER NOT NULL,
    enter_ns  INTEGER NOT NULL,
    return_ns INTEGER NOT NULL,
    path_text INTEGER NOT NULL,
    errno     INTEGER NOT NULL
);

-- Times in which the collector stopped a thread, as tracing by ptrace does: from the moment at which the thread would have continued without the
-- collector until it continued. Several short stops may be one row. Other times and CPU times include these. No row: no stops.
CREATE TABLE stop (
    launch  INTEGER NOT NULL,
    task    INTEGER NOT NULL, -- thread.task, or for a first thread its launch.id
    at_ns   INTEGER NOT NULL,
    span_ns INTEGER NOT NULL  -- span
);

-- Threads other than the first of their process.
CREATE TABLE thread (
    task       INTEGER PRIMARY KEY, -- unique among threads and launches
    launch     INTEGER NOT NULL,
    creator    INTEGER,             -- the thread that created it
    tid        INTEGER NOT NULL,    -- in the recorder's pid namespace
    created_ns INTEGER NOT NULL,
    ended_ns   INTEGER,             -- began to exit
    cpu_ns     INTEGER              -- CPU time when it began to exit
);

-- Frames of call chains. Equal frames may occur under several ids.
CREATE TABLE frame (
    id            INTEGER PRIMARY KEY,
    language      INTEGER NOT NULL, -- 0 native (machine code), 1 kernel, 2 bash, 3 dash, 4 python, 5 perl, 6 make, 7 node, 8 zsh
    function_text INTEGER,          -- make: the target; NULL: unknown, or outside of all functions of a script
    file_text     INTEGER,          -- source file
    line          INTEGER,          -- line in the source file, from 1
    module_text   INTEGER,          -- the ELF file that contains the machine code; make: the template that the makefile was generated from
    address       INTEGER,          -- virtual address in that file; without a file, in the process's memory (as a signed 64-bit number)
    is_inlined    INTEGER NOT NULL  -- 1: the compiler inlined it into the next frame outwards
);

-- Call chains, as a tree: each row is a frame and the chain that called it. Equal chains may occur under several ids.
CREATE TABLE stack (
    id           INTEGER PRIMARY KEY, -- larger than `caller`
    frame        INTEGER NOT NULL,    -- frame.id
    caller       INTEGER,             -- stack.id of the next frame outwards; NULL: none is known
    is_truncated INTEGER NOT NULL     -- 1: there are further outer frames, which could not be read; only if `caller` is NULL
);

-- Objects that threads waited for inside system calls. Equal objects may occur under several ids.
CREATE TABLE object (
    id        INTEGER PRIMARY KEY,
    kind      INTEGER NOT NULL, -- 0 pipe, 1 fifo, 2 unix socket, 3 other socket, 4 character device, 5 block device, 6 file, 7 directory,
                                -- 8 epoll, 9 eventfd, 10 signalfd, 11 timerfd, 12 pidfd, 13 another anonymous inode,
                                -- 14 the permission of a scanner (fanotify) to open or execute a file
    device    INTEGER NOT NULL, -- device of its file system: major << 20 | minor; identifies a pipe together with the inode
    inode     INTEGER NOT NULL, -- 0 for kinds from 8 on whose objects all share one inode (as a signed 64-bit number)
    path_text INTEGER           -- path of kinds 1 and 4 to 7; begins with '...' if the beginning of the path is unknown. For kind 3, since version 11:
                                -- the address of the other end of an internet socket, such as '10.0.0.7:443' or '[::1]:9777'
);

-- Processes of this machine at the other end of internet sockets that threads waited for: the process that listened at the address that a
-- socket was connected to, whether or not that process was recorded. No row: no process listened there, or the recorder could not see it. If
-- several threads waited for a socket, it may have several rows.
CREATE TABLE peer (
    device    INTEGER NOT NULL, -- object.device
    inode     INTEGER NOT NULL, -- object.inode
    pid       INTEGER NOT NULL, -- in the recorder's pid namespace
    name_text INTEGER NOT NULL  -- name of the process
);

-- Outputs of the ninja edge that a launch belongs to, from ninja's log. Only launches of `/bin/sh -c COMMAND` by ninja have outputs here, if
-- the log contains the hash of COMMAND for exactly one edge. The outputs of a launch are in consecutive rows, in ascending order, at most 64.
-- No row: unknown, or no edge.
CREATE TABLE edge (
    launch      INTEGER NOT NULL,
    output_text INTEGER NOT NULL -- path in ninja's log, relative to the directory that ninja works in
);

-- One row per stretch on a CPU and the stretch off it that followed, of every followed thread.
CREATE TABLE slice (
    task      INTEGER NOT NULL, -- thread.task, or for a first thread its launch.id
    off_ns    INTEGER NOT NULL, -- the thread left the CPU (new thread: was created)
    on_span   INTEGER,          -- span on the CPU before off_ns; NULL: never ran, or not seen
    off_span  INTEGER,          -- span off the CPU after off_ns; NULL: the thread ended (reason 5), or it was still off the CPU at the end of the
                                -- recording: runnable if wake_span is known or the reason is 1, otherwise waiting. A thread that had a CPU at
                                -- the end has reason 1, and off_ns is the end. Before version 6, NULL means only that the thread ended
    wake_span INTEGER,          -- span from off_ns to the wake-up; NULL: was not blocked, or not seen
    reason    INTEGER NOT NULL, -- 0 created, 1 preempted, 2 interruptible sleep, 3 uninterruptible sleep, 4 stopped, 5 ended
    syscall   INTEGER,          -- number of the system call that the thread was in
    argument  INTEGER,          -- that call's first argument (as a signed 64-bit number)
    waker     INTEGER,          -- what woke the thread: thread.task or launch.id of a followed thread; 0: an interrupt; negative: minus the pid of a
                                -- thread that is not followed; NULL with a waker_text: a thread outside of the recorder's pid namespace
    waker_text INTEGER,         -- the name of a waker that is not followed
    object    INTEGER,          -- object.id of what it was blocked on. For poll, select and epoll_wait: the socket, if there is only one and the call
                                -- did not time out; if there are no sockets, the first descriptor or the epoll instance. Before version 12, always the
                                -- first descriptor of poll and select. NULL: no object, several sockets, or not seen (`missing`: permissions not seen)
    calls     INTEGER,          -- system calls that the thread entered while on the CPU; NULL: not counted
    waker_certain INTEGER       -- 0: an interrupt that hit the waker may have ended the wait, which this kernel does not show;
                                -- 1: the waker is certain; NULL: no waker, or before version 7, when certainty was not recorded
);

-- Samples of what threads did when a CPU was sampled, and of their waits; only with `record --sample`. In no particular order.
CREATE TABLE sample (
    task       INTEGER NOT NULL, -- thread.task, or for a first thread its launch.id
    at_ns      INTEGER NOT NULL, -- when the thread had the CPU, or when it left the CPU to wait
    span_ns    INTEGER NOT NULL, -- span that the sample represents: the time between two samples of a CPU; for a wait, its time off the CPU, plus that
                                 -- of shorter waits, which have no samples, since the thread's last sample of a wait
    is_waiting INTEGER NOT NULL, -- 1: the thread waited; 0: it had a CPU
    stack      INTEGER NOT NULL  -- stack.id of the call chain, frames of the kernel first
);

-- What the recording is about: labels from `record --label`, and labels that the recorder found itself: 'ci', 'commit', 'branch', 'job', 'run' and
-- 'attempt' from the variables of a CI service, 'cpu' (the processor's model) and 'image' (the container's image). At most 64 rows. A key has at most
-- 64 bytes and matches [A-Za-z][A-Za-z0-9_.-]*; a value has at most 1024 bytes. Secrets in values are masked. No row: unknown.
CREATE TABLE label (
    key   TEXT PRIMARY KEY,
    value TEXT NOT NULL
);

-- Checksums of the tables above, one row for each table, updated with every batch. No row at all: the program that wrote the recording does not
-- maintain checksums. A program that changes rows of other tables must delete all rows of this one.
-- The checksum of a table is the sum of its rows' checksums, modulo 2^64. The checksum of a row is the XXH3-64 (seed 0) of its rowid, as 8 bytes,
-- little-endian, and of its columns in order. A column is a byte for its type, followed by its value: 0 NULL, nothing; 1 INTEGER, 8 bytes,
-- little-endian; 2 REAL, the 8 bytes of IEEE 754, little-endian; 3 TEXT and 4 BLOB, the length as 8 bytes, little-endian, and the bytes.
CREATE TABLE checksum (
    name TEXT NOT NULL,
    rows INTEGER NOT NULL,
    sum  INTEGER NOT NULL  -- as a signed 64-bit number
);
