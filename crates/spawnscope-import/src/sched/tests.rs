//! Tests of whole logs: the events that they become.

use spawnscope_data::event::{EventKind, LeftCpu};

use super::*;

fn log(text: &str) -> Log {
    Log::of_one(Lines::of_text(text.as_bytes())).unwrap()
}

/// Describes the events of a log in short: the microsecond, the launch, the thread, and what
/// happened.
fn described(text: &str) -> Vec<String> {
    let mut log = log(text);
    assert!(!log.read().unwrap());
    log.finish();
    let lines = log.take_events().into_iter().filter_map(|event| {
        let what = match event.kind {
            EventKind::Adopted { pid, .. } => format!("existed as {}", pid.0),
            EventKind::Released { pid } => format!("command {}", pid.0),
            EventKind::Launched(launched) => format!("{} by {}", launched.pid.0, launched.parent.0),
            EventKind::ThreadStarted { tid, .. } => format!("thread {}", tid.0),
            EventKind::Executed(executed) => String::from_utf8(executed.path).unwrap(),
            EventKind::Exited(exited) => {
                format!("exit, last {}, cpu {:?}", exited.last_thread, exited.cpu.map(|cpu| cpu.0 / 1_000))
            }
            EventKind::Gone { zombie, .. } => format!("gone, zombie {}", zombie.is_some()),
            EventKind::Slice(slice) if matches!(slice.reason, LeftCpu::Interruptible) => {
                let waker = slice.wake.map(|wake| (wake.at.0 / 1_000, wake.by));
                format!("waited from {} for {waker:?}", slice.off.0 / 1_000)
            }
            _ => return None,
        };
        Some(format!("{} {} {}: {what}", event.at.0 / 1_000, event.launch.0, event.task.0))
    });
    lines.collect()
}

const EXEC: &str = "perf-exec 9 [000] 0.000001: sched:sched_waking: comm=perf-exec pid=10 prio=0 target_cpu=0
perf-exec 10 [000] 0.000002: sched_switch: x:9 [0] S ==> perf-exec:10 [0]
sh 10 [000] 0.000010: sched:sched_process_exec: filename=/bin/sh pid=10 old_pid=10
";

#[test]
fn a_recording_begins_when_the_command_is_executed() {
    let mut log = log(EXEC);
    assert!(!log.read().unwrap());
    log.finish();
    assert_eq!(log.about().origin, Nanos(10_000));
}

#[test]
fn a_command_is_followed_with_its_children_and_waits() {
    let text = format!(
        "{EXEC}sh 10 [000] 0.000020: sched:sched_process_fork: comm=sh pid=10 child_comm=sh child_pid=11
x 77 [001] 0.000021: sched:sched_process_fork: comm=x pid=77 child_comm=x child_pid=78
sh 10 [000] 0.000030: sched_switch: sh:10 [0] S ==> sh:11 [0]
ls 11 [000] 0.000040: sched:sched_process_exec: filename=/bin/ls pid=11 old_pid=11
ls 11 [000] 0.000090: sched:sched_process_exit: comm=ls pid=11 prio=0
ls 11 [000] 0.000095: sched:sched_waking: comm=sh pid=10 prio=0 target_cpu=000
ls 11 [000] 0.000100: sched_switch: ls:11 [0] Z ==> sh:10 [0]
sh 10 [000] 0.000120: sched:sched_process_exit: comm=sh pid=10 prio=0
"
    );
    assert_eq!(
        described(&text),
        [
            "10 1 1: command 10",
            "10 1 1: /bin/sh",
            "20 2 2: 11 by 1",
            "40 2 2: /bin/ls",
            "90 2 2: exit, last true, cpu Some(60)",
            "100 2 2: gone, zombie true",
            "100 1 1: waited from 30 for Some((95, Task(TaskId(2))))",
            "120 1 1: exit, last true, cpu Some(40)",
            "120 1 1: gone, zombie true",
        ]
    );
}

#[test]
fn new_threads_are_told_apart_from_processes_by_what_they_do() {
    let fork = |child: i32| {
        format!("sh 10 [000] 0.000020: sched:sched_process_fork: comm=sh pid=10 child_comm=sh child_pid={child}\n")
    };
    let exit = |last: &str| format!("sh 11 [000] 0.000030: sched:sched_process_exit: comm=sh pid=11 prio=0{last}\n");
    let woken = "sh 11 [000] 0.000035: sched:sched_waking: comm=sh pid=10 prio=0 target_cpu=000\n";
    let end = "sh 11 [000] 0.000040: sched_switch: sh:11 [0] X ==> a:1 [0]\n";
    let (process, thread) = ("20 2 2: 11 by 1", "20 1 2: thread 11");
    for (text, expected) in [
        (format!("{}{}{end}", fork(11), exit(" group_dead=true")), process),
        (format!("{}{}{end}", fork(11), exit(" group_dead=false")), thread),
        (format!("{}{}{woken}{end}", fork(11), exit("")), process),
        (format!("{}{}{end}", fork(11), exit("")), thread),
        (format!("{}sh 11/11 [000] 0.000025: sched:sched_stat: x\n", fork(11)), process),
        (format!("{}sh 10/11 [000] 0.000025: sched:sched_stat: x\n", fork(11)), thread),
        (format!("sh 10 [000] 0.000020: PERF_RECORD_FORK(10:11):(10:10)\n{}", fork(11)), thread),
    ] {
        let found = described(&format!("{EXEC}{text}"));
        assert_eq!(found[2], expected, "{text}");
        assert!(found[3..].iter().all(|line| !line.contains("11")), "{found:?}");
    }
}

#[test]
fn lines_out_of_order_are_sorted_and_others_are_counted() {
    let text = format!(
        "{EXEC}hello\nCPU:0 [LOST 7 EVENTS]\nsh 10 [000] 99999999.5: sched_stat: x\nsh 10 [000] 0.000009: sched:sched_stat: x\n"
    );
    let mut log = log(&text);
    while log.read().unwrap() {}
    log.finish();
    let about = log.about();
    assert_eq!(
        (about.lost, about.cpus, log.count().refused.as_ref().map(|refused| (refused.number, refused.count))),
        (7, 1, Some((4, 2)))
    );
    assert_eq!(about.end, Nanos(10_000));
}

#[test]
fn without_a_command_the_machine_is_recorded() {
    let text = "a-5 [000] d..2. 0.000010: sched_switch: a:5 [120] S ==> swapper/0:0 [120]
<idle>-0 [000] d.h2. 0.000020: sched_waking: comm=a pid=5 prio=120 target_cpu=000
<idle>-0 [000] d..2. 0.000030: sched_switch: swapper/0:0 [120] R ==> a:5 [120]
";
    assert_eq!(described(text), ["10 1 1: existed as 5", "30 1 1: waited from 10 for Some((20, Interrupt))"]);
}
