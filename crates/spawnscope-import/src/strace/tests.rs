//! Tests of whole logs: the events that they become.

use spawnscope_data::event::{EventKind, Mechanism, Waker};

use super::*;

mod forms;

/// A log of one file.
fn log(text: &str) -> Log {
    Log::of_one(Lines::of_text(text.as_bytes())).unwrap()
}

fn events(text: &str) -> Vec<Event> {
    let mut log = log(text);
    assert!(!log.read().unwrap());
    assert_eq!(log.count().refused, None);
    log.finish();
    log.take_events()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim_end_matches('\0').replace('\0', " ")
}

/// Describes events in short: the microsecond, the launch, and what happened.
fn described(text: &str) -> Vec<String> {
    let events = events(text);
    let origin = log(text).about().origin;
    let us = |at: Nanos| at.since(origin).0 / 1_000;
    let lines = events.iter().map(|event| format!("{} {}: {}", us(event.at), event.launch.0, description(event, &us)));
    lines.collect()
}

fn description(event: &Event, us: &dyn Fn(Nanos) -> u64) -> String {
    match &event.kind {
        EventKind::Adopted { pid, .. } => format!("existed as {}", pid.0),
        EventKind::Released { pid } => format!("command {}", pid.0),
        EventKind::Launched(launched) => {
            let (mechanism, create) = (launched.mechanism.map_or("?", Mechanism::name), launched.create.map(us));
            format!("{} by {} from {}", mechanism, launched.parent.0, create.unwrap_or_default())
        }
        EventKind::ThreadStarted { tid, creator } => format!("thread {} by {}", tid.0, creator.0),
        EventKind::ExecFailed { path, errno, .. } => format!("no {} ({errno})", text(path)),
        EventKind::Executed(executed) => {
            let cwd = executed.cwd.as_deref().map_or_else(String::new, |cwd| format!(" in {}", text(cwd)));
            let cut = if executed.argv_bytes > executed.argv.len() as u64 { " (cut)" } else { "" };
            format!("{} [{}]{cut}{cwd}", text(&executed.path), text(&executed.argv))
        }
        EventKind::Loaded(loaded) => {
            format!("returned {}, loaded {:?}", us(loaded.returned), loaded.load_end.map(us))
        }
        EventKind::Exited(exited) => format!("exit {:?}", exited.wait_status),
        EventKind::Gone { zombie, .. } => format!("gone{}", if zombie.is_some() { ", zombie" } else { "" }),
        EventKind::Reaped { pid } => format!("reaped {}", pid.0),
        EventKind::Slice(slice) => {
            let waker = slice.wake.as_ref().map(|wake| match &wake.by {
                Waker::Task(task) => format!(" for {} at {}", task.0, us(wake.at)),
                _ => " for a timer".to_owned(),
            });
            format!("waited from {}{}", us(slice.off), waker.unwrap_or_default())
        }
        EventKind::Called(chain) => format!("at line {:?}", chain.frames[0].line),
        other => format!("{other:?}"),
    }
}

#[test]
fn a_shell_that_reads_the_output_of_a_program() {
    let found = described(
        r#"10 1795837965.000000 execve("/bin/sh", ["sh", "-c", "x=$(date)"], 0x7ffe /* 35 vars */) = 0 <0.000300>
10 1795837965.000500 chdir("/tmp") = 0 <0.000010>
10 1795837965.000600 pipe2([3, 4], 0) = 0 <0.000010>
10 1795837965.001000 clone(child_stack=NULL, flags=CLONE_CHILD_CLEARTID|CLONE_CHILD_SETTID|SIGCHLD <unfinished ...>
11 1795837965.001100 dup2(4, 1 <unfinished ...>
10 1795837965.001200 <... clone resumed>, child_tidptr=0x7f) = 11 <0.000200>
10 1795837965.001300 close(4 <unfinished ...>
11 1795837965.001350 <... dup2 resumed>) = 1 <0.000250>
10 1795837965.001400 <... close resumed>) = 0 <0.000100>
11 1795837965.001450 close(4) = 0 <0.000010>
10 1795837965.001500 read(3,  <unfinished ...>
11 1795837965.001600 execve("date", ["date"], 0x55 /* 35 vars */) = -1 ENOENT (No such file or directory) <0.000010>
11 1795837965.001700 execve("/bin/date", ["date", "a long argument that"...], 0x55 /* 35 vars */) = 0 <0.000300>
11 1795837965.002100 write(1, "now\n", 4) = 4 <0.000020>
10 1795837965.002200 <... read resumed>"now\n", 128) = 4 <0.000700>
11 1795837965.002300 exit_group(3) = ?
10 1795837965.002310 read(3,  <unfinished ...>
11 1795837965.002500 +++ exited with 3 +++
10 1795837965.002550 <... read resumed>"", 128) = 0 <0.000240>
10 1795837965.002600 --- SIGCHLD {si_signo=SIGCHLD, si_code=CLD_EXITED, si_pid=11, si_uid=0, si_status=3} ---
10 1795837965.002700 wait4(-1, [{WIFEXITED(s) && WEXITSTATUS(s) == 3}], 0, NULL) = 11 <0.000050>
10 1795837965.002800 exit_group(0) = ?
10 1795837965.002900 +++ exited with 0 +++
"#,
    );
    assert_eq!(
        found,
        [
            "0 1: command 10",
            "300 1: /bin/sh [sh -c x=$(date)]",
            "300 1: returned 300, loaded None",
            "1100 2: fork by 1 from 1000",
            "1100 2: at line Some(1)",
            "1610 2: no date (2)",
            "2200 1: waited from 1500 for 2 at 2100",
            "2000 2: /bin/date [date a long argument that...] (cut) in /tmp",
            "2000 2: returned 2000, loaded None",
            "2300 2: exit Some(768)",
            "2500 2: gone, zombie",
            "2550 1: waited from 2310 for 2 at 2550",
            "2750 1: reaped 11",
            "2800 1: exit Some(0)",
            "2900 1: gone, zombie",
        ]
    );
}

/// A line of a log whose times are tenths of a microsecond after midnight.
fn lines(lines: &[(u32, &str)]) -> String {
    let line = |(us, text): &(u32, &str)| match text.split_once(' ') {
        Some((pid, rest)) => format!("{pid} 00:00:00.{us:06} {rest}\n"),
        None => panic!("{text}"),
    };
    lines.iter().map(line).collect()
}

const FORK: &str = "clone(child_stack=NULL, flags=CLONE_CHILD_CLEARTID|SIGCHLD, child_tidptr=0x7f) =";
const STARTED: &str = r#"1 execve("/bin/a", ["a"], NULL) = 0 <0.000001>"#;

#[test]
fn lines_before_the_return_of_the_creating_call_belong_to_the_child_that_it_names() {
    let found = described(&lines(&[
        (0, STARTED),
        (10, "1 vfork( <unfinished ...>"),
        (20, r#"2 execve("/no", ["no"], NULL) = -1 EACCES (Permission denied) <0.000001>"#),
        (30, "2 exit_group(127) = ?"),
        (40, "2 +++ exited with 127 +++"),
        (150, "1 <... vfork resumed>) = 2"),
        (160, "1 wait4(2, [{WIFEXITED(s) && WEXITSTATUS(s) == 127}], 0, NULL) = 2 <0.000001>"),
        (170, "1 +++ killed by SIGTERM +++"),
    ]));
    assert_eq!(
        found[3..],
        [
            "20 2: vfork by 1 from 10",
            "150 1: waited from 20 for 2 at 40",
            "21 2: no /no (13)",
            "30 2: exit Some(32512)",
            "40 2: gone, zombie",
            "161 1: reaped 2",
            "170 1: exit Some(15)",
            "170 1: gone, zombie",
        ]
    );
}

#[test]
fn children_of_several_creators_are_told_apart_by_what_the_calls_return() {
    let found = described(&lines(&[
        (0, STARTED),
        (1, &format!("1 {FORK} 2 <0.000001>")),
        (10, "1 clone(flags=SIGCHLD <unfinished ...>"),
        (11, "2 fork( <unfinished ...>"),
        (12, "3 getpid() = 3"),
        (13, "4 getpid() = 4"),
        (14, "1 <... clone resumed>) = 4"),
        (15, "2 <... fork resumed>) = 3"),
    ]));
    assert_eq!(found[4..], ["13 3: fork by 1 from 10", "12 4: fork by 2 from 11"]);
}

#[test]
fn data_ends_a_wait_for_data_even_if_the_call_that_writes_it_returns_later() {
    let found = described(&lines(&[
        (0, STARTED),
        (10, "1 pipe2([3, 4], 0) = 0"),
        (20, &format!("1 {FORK} 2 <0.000001>")),
        (30, &format!("1 {FORK} 3 <0.000001>")),
        (40, "1 read(3,  <unfinished ...>"),
        (50, "3 close(4) = 0"),
        (200, r#"2 write(4, "x", 1 <unfinished ...>"#),
        (210, "3 exit_group(0) = ?"),
        (220, r#"1 <... read resumed>"x", 1) = 1"#),
        (230, "2 <... write resumed>) = 1"),
        (240, "1 close(4) = 0"),
        (250, "1 read(3,  <unfinished ...>"),
        (350, "2 close(4 <unfinished ...>"),
        (360, r#"1 <... read resumed>"", 1) = 0"#),
    ]));
    let waits: Vec<&String> = found.iter().filter(|line| line.contains("waited")).collect();
    assert_eq!(waits, ["220 1: waited from 40 for 2 at 200", "360 1: waited from 250 for 2 at 360"]);
}

#[test]
fn in_a_pid_namespace_the_only_new_thread_is_the_child() {
    let log = [(0, STARTED), (10, "1 clone(flags=CLONE_NEWPID|SIGCHLD <unfinished ...>"), (12, "30 getpid() = 1")];
    for returned in ["1 <... clone resumed>) = 2", "1 <... clone resumed>) = 2 /* 30 in strace's PID NS */"] {
        let found = described(&lines(&[&log[..], &[(14, returned)]].concat()));
        assert_eq!(found[3..], ["12 2: clone by 1 from 10"]);
    }
}

#[test]
fn without_durations_calls_end_by_the_next_line_of_their_thread() {
    let found = described(&lines(&[
        (0, r#"1 execve("/bin/a", ["a"], NULL) = 0"#),
        (300, "1 brk(NULL) = 0x55"),
        (400, &format!("1 {FORK} 2")),
        (450, "2 getpid() = 2"),
        (1000, "1 nanosleep({tv_sec=1}, NULL) = 0"),
        (2000, "1 getpid() = 1"),
        (2100, r#"2 execve("/bin/b", ["b"], NULL) = 0"#),
        (9000, "2 exit_group(0) = ?"),
    ]));
    assert_eq!(
        found,
        [
            "0 1: command 1",
            "300 1: /bin/a [a]",
            "300 1: returned 300, loaded None",
            "450 2: fork by 1 from 400",
            "2000 1: waited from 1000 for a timer",
            "2100 2: /bin/b [b]",
            "9000 2: exit Some(0)",
            "9000 2: gone, zombie",
        ],
        "when the second exec returned is unknown"
    );
}

#[test]
fn only_the_executed_file_names_an_interpreter() {
    let cases = [
        ("./s", "[/bin/sh ./s]"),
        ("/d/./s", "[/bin/sh ./s]"),
        ("/d/s", "[/bin/sh ./s]"),
        ("/d/ss", "[./s]"),
        ("./other", "[./s]"),
    ];
    for (opened, argv) in cases {
        let found = described(
            &r##"00:00:00.000000 execve("./s", ["./s"], NULL) = 0 <0.000001>
00:00:00.000010 openat(AT_FDCWD, "OPENED", O_RDONLY) = 3 <0.000001>
00:00:00.000020 fcntl(3, F_DUPFD_CLOEXEC, 10) = 10 <0.000001>
00:00:00.000030 read(10, "#!/bin/sh\necho\n", 80) = 15 <0.000001>
"##
            .replace("OPENED", opened),
        );
        assert!(found[1].ends_with(argv), "{found:?}");
    }
}

#[test]
fn a_process_without_a_number_gets_it_when_it_is_not_alone_any_more() {
    for name in ["strace", "/usr/bin/strace"] {
        let found = described(
            r#"00:00:00.000000 execve("/bin/a", ["a"], NULL) = 0 <0.000001>
00:00:00.000010 clone(child_stack=NULL, flags=SIGCHLDNAME: Process 8 attached
, child_tidptr=0x7f) = 8 <0.000002>
[pid     8] 00:00:00.000020 chdir("/tmp" <unfinished ...>
[pid     7] 00:00:00.000030 wait4(-1,  <unfinished ...>
[pid     8] 00:00:00.000040 <... chdir resumed>) = 0 <0.000020>
[pid     8] 00:00:00.000500 exit_group(1) = ?
[pid     8] 00:00:00.000600 +++ exited with 1 +++
<... wait4 resumed>[{WIFEXITED(s) && WEXITSTATUS(s) == 1}], 0, NULL) = 8 <0.000620>
"#
            .replace("<... wait4", "00:00:00.000700 <... wait4")
            .replace("NAME", name)
            .as_str(),
        );
        assert_eq!(
            found,
            [
                "0 1: command 0",
                "1 1: /bin/a [a]",
                "1 1: returned 1, loaded None",
                "12 2: fork by 1 from 10",
                "0 1: command 7",
                "500 2: exit Some(256)",
                "600 2: gone, zombie",
                "650 1: waited from 30 for 2 at 600",
                "650 1: reaped 8",
            ]
        );
    }
}

#[test]
fn threads_belong_to_their_process_and_an_exec_ends_the_others() {
    let found = described(&lines(&[
        (0, STARTED),
        (10, "1 clone(flags=CLONE_VM|CLONE_THREAD|CLONE_SIGHAND) = 2 <0.000001>"),
        (20, "1 futex(0x7f10, FUTEX_WAIT_PRIVATE, 0, NULL <unfinished ...>"),
        (500, "2 futex(0x7f10, FUTEX_WAKE_PRIVATE, 1) = 1 <0.000001>"),
        (520, "1 <... futex resumed>) = 0 <0.000500>"),
        (600, r#"2 execve("/bin/b", ["b"], NULL <unfinished ...>"#),
        (610, "1 +++ superseded by execve in pid 2 +++"),
        (700, "1 <... execve resumed>) = 0 <0.000100>"),
        (800, "1 exit_group(0) = ?"),
        (900, "1 +++ exited with 0 +++"),
    ]));
    assert_eq!(
        found[1..],
        [
            "11 1: thread 2 by 1",
            "520 1: waited from 20 for 2 at 500",
            "610 1: gone",
            "1 1: /bin/a [a]",
            "1 1: returned 1, loaded None",
            "700 1: /bin/b [b]",
            "700 1: returned 700, loaded None",
            "800 1: exit Some(0)",
            "900 1: gone, zombie",
        ]
    );
}

#[test]
fn logs_may_begin_and_end_in_the_middle_and_numbers_are_used_again() {
    let found = described(&lines(&[
        (0, "5 <... read resumed>\"x\", 1) = 1 <0.000001>"),
        (10, &format!("5 {FORK} 6 <0.000001>")),
        (20, "6 getpid() = 6"),
        (30, &format!("5 {FORK} 6 <0.000001>")),
        (40, "7 +++ exited with 0 +++"),
        (50, "6 read(0,  <unfinished ...>"),
    ]));
    assert_eq!(found, ["0 1: existed as 5", "11 2: fork by 1 from 10", "31 3: fork by 1 from 30"]);
}

#[test]
fn without_following_the_parent_knows_how_a_child_ended() {
    let found = described(&lines(&[
        (0, STARTED),
        (10, &format!("1 {FORK} 2 <0.000001>")),
        (900, "1 --- SIGCHLD {si_signo=SIGCHLD, si_code=CLD_KILLED, si_pid=2, si_uid=0, si_status=SIGKILL} ---"),
        (
            950,
            "1 waitid(P_PID, 2, {si_signo=SIGCHLD, si_code=CLD_KILLED, si_pid=2, si_uid=0, si_status=SIGKILL, \
               si_utime=0}, WEXITED, NULL) = 0 <0.000001>",
        ),
    ]));
    assert_eq!(
        found[3..],
        [
            "11 2: fork by 1 from 10",
            "900 2: exit Some(9)",
            "900 2: gone, zombie",
            "950 1: waited from 11 for 2 at 950",
            "951 1: reaped 2",
        ]
    );
}

#[test]
fn lines_of_others_and_torn_lines_are_counted() {
    let mut log = log("1 00:00:00.1 getpid() = 1\nmake: *** [all] Error 1\n\n1 00:00:00.2 read(3, \"ab\n\
                       printf(1)\n1 00:00:00.3 wait4(-1, NULL, 0\n1 00:00:00.4 getpid() = 1\n");
    assert!(!log.read().unwrap());
    let refused = log.count().refused.as_ref().unwrap();
    assert_eq!((refused.count, refused.number, &refused.text[..]), (4, 2, &b"make: *** [all] Error 1"[..]));
    assert_eq!(log.count().lines, 7);
}

#[test]
fn a_log_without_times_has_no_waits() {
    let found = described("1 execve(\"/bin/a\", [\"a\"], NULL) = 0\n1 wait4(-1, NULL, 0, NULL) = -1 ECHILD (x)\n");
    assert_eq!(found, ["0 1: command 1", "0 1: /bin/a [a]"]);
}

#[test]
fn a_wait_for_the_output_of_a_child_is_assumed_if_the_log_leaves_reads_out() {
    let log = |reaps: &str, other: &str| {
        format!(
            "1 00:00:00.000000 vfork() = 2 <0.000010>\n{other}2 00:00:00.000500 exit_group(0) = ?\n\
             2 00:00:00.001000 +++ exited with 0 +++\n\
             1 {reaps} wait4(-1, [{{WIFEXITED(s) && WEXITSTATUS(s) == 0}}], 0, NULL) = 2 <0.000010>\n"
        )
    };
    let waits = |text: String| described(&text).into_iter().filter(|line| line.contains("waited")).collect::<Vec<_>>();
    assert_eq!(waits(log("00:00:00.001050", "")), ["1050 1: waited from 10 for 2 at 1050"]);
    assert!(waits(log("00:00:00.009000", "")).is_empty(), "it worked after the end of the child");
    assert!(waits(log("00:00:00.001050", "2 00:00:00.000300 read(3</a>, \"\", 1) = 0\n")).is_empty());
}

#[test]
fn files_of_single_threads_are_merged_by_time() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = directory.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let paths = [
        write("log-6.1.3", "00:00:00.2 exit_group(1) = ?\n00:00:00.3 +++ exited with 1 +++\n"),
        write(
            "log-6.1.2",
            "23:59:59.9 execve(\"/bin/a\", [\"a\"], NULL) = 0 <0.01>\n00:00:00.1 fork() = 3 <0.01>\n\
             00:00:00.4 wait4(-1, [{WIFEXITED(s) && WEXITSTATUS(s) == 1}], 0, NULL) = 3 <0.01>\n",
        ),
        write("log-6.1.4", ""),
    ];
    let mut log = Log::open(&paths).unwrap();
    assert!(!log.read().unwrap());
    log.finish();
    let kinds: Vec<String> = log
        .take_events()
        .iter()
        .map(|event| description(event, &|at| at.since(log.about().origin).0 / 1_000_000))
        .collect();
    assert_eq!(
        kinds,
        [
            "command 2", "/bin/a [a]", "returned 10, loaded None", "fork by 1 from 200", "exit Some(256)",
            "gone, zombie", "waited from 500 for 2 at 500", "reaped 3",
        ]
    );
    let relative = write("log.5", "     0.000000 fork() = 3\n");
    assert!(matches!(Log::open(&[relative, paths[0].clone()]), Err(ImportError::NoCommonTimes { .. })));
}

/// The microseconds after the load until programs began their work, in order of their ends.
fn start_ups(text: &str) -> Vec<Option<u64>> {
    let exits = events(text).into_iter().filter_map(|event| match event.kind {
        EventKind::Exited(exited) => Some(exited.work_cpu.map(|span| span.0 / 1_000)),
        _ => None,
    });
    exits.collect()
}

#[test]
fn a_program_begins_its_work_when_it_uses_an_argument_or_its_input() {
    let begins = |calls: &str| {
        let text = format!(
            r#"10 1795837965.000000 execve("/bin/x", ["x", "-v", "a/file"], 0x7ffe /* 35 vars */) = 0 <0.000100>
10 1795837965.001000 openat(AT_FDCWD, "/lib/libc.so.6", O_RDONLY|O_CLOEXEC) = 3 <0.000010>
10 1795837965.001100 mprotect(0x7f12, 16384, PROT_READ) = 0 <0.000010>
10 1795837965.001200 getpid() = 10 <0.000010>
10 1795837965.002000 openat(AT_FDCWD, "/etc/x.conf", O_RDONLY) = 3 <0.000010>
{calls}10 1795837965.099000 exit_group(0) = ?
10 1795837965.099900 +++ exited with 0 +++
"#
        );
        start_ups(&text)
    };
    let argument = "10 1795837965.003110 newfstatat(AT_FDCWD, \"a/file\", {st_mode=S_IFREG|0644}, 0) = 0 <0.000010>\n";
    let library = "10 1795837965.004110 openat(AT_FDCWD, \"/usr/lib/plugin.so\", O_RDONLY) = 4 <0.000010>\n";
    let again = "10 1795837965.005110 openat(AT_FDCWD, \"a/file\", O_RDONLY) = 5 <0.000010>\n";
    let input = "10 1795837965.003110 read(0, \"x\", 1) = 1 <0.000010>\n";
    let sleep = "10 1795837965.002110 nanosleep({tv_sec=0, tv_nsec=500000}, NULL) = 0 <0.000500>\n";
    assert_eq!(begins(""), [None]);
    assert_eq!(begins(argument), [Some(2_000)]);
    assert_eq!(begins(input), [Some(2_000)]);
    assert_eq!(begins(&[sleep, argument].concat()), [Some(1_500)], "a wait is no start-up");
    assert_eq!(begins(&[argument, library].concat()), [Some(3_000)], "it loads a plugin");
    assert_eq!(begins(&[argument, library, again].concat()), [Some(4_000)]);
    assert_eq!(begins(&[argument, again].concat()), [Some(2_000)]);
}

#[test]
fn what_a_script_of_one_line_launches_has_that_line_as_its_call_site() {
    let sites = |option: &str, script: &str| {
        let text = format!(
            r#"10 1795837965.000000 execve("/bin/dash", ["sh", "{option}", "{script}"], 0x7ffe /* 35 vars */) = 0 <0.000100>
10 1795837965.001000 fork() = 11 <0.000100>
11 1795837965.001200 fork() = 12 <0.000100>
12 1795837965.001400 execve("/bin/tr", ["tr"], 0x55 /* 35 vars */) = 0 <0.000100>
12 1795837965.001600 fork() = 13 <0.000100>
"#
        );
        let called = events(&text).into_iter().filter_map(|event| match event.kind {
            EventKind::Called(chain) => Some((event.launch.0, chain.frames[0].language.name(), chain.frames[0].line)),
            _ => None,
        });
        called.collect::<Vec<_>>()
    };
    assert_eq!(sites("-ec", "echo a | (tr a b)"), [(2, "dash", Some(1)), (3, "dash", Some(1))], "tr is no shell");
    assert_eq!(sites("-c", r"a\nb"), [], "the line is unknown");
    assert_eq!(sites("-c", ". ./functions; f"), []);
    assert_eq!(sites("-lc", "tr a b"), [], "files of the user may launch, too");
}
