//! Waits with a timeout, while unrelated launches run. The timer's interrupt may arrive while an unrelated process is on the CPU: that
//! process must not be recorded as the waker. A process that does end a wait must be, whether or not the recorder sees interrupts.

use serde_json::Value;

use crate::support::launches::{Launch, Launches};
use crate::support::recording::{launches, report};
use crate::support::run::{Record, run, spawnscope};
use crate::support::workloads::{Truth, path};
use crate::support::{apply, live_test};

/// The calls in which `timed_waits` waits, the timeout of each, and the number of waits.
const CALLS: &str = "poll ppoll select pselect epoll epoll_pwait futex condition semtimedop sigtimedwait mq_timedreceive \
                     io_getevents recv_unix recv_internet nanosleep timerfd alarm";
const TIME_OUT_NS: u64 = 10_000_000;
const TIMES: u64 = 60;

/// The calls that another process can end, after how long a child ends each, and the number of children.
const WAKEABLE: &str = "poll ppoll select pselect epoll epoll_pwait futex condition semtimedop sigtimedwait mq_timedreceive \
                        recv_unix recv_internet";
const WAKE_AFTER_NS: u64 = 30_000_000;
const CHILDREN: usize = 4;

/// The exit status of `timed_waits` on a kernel without the call.
const CANNOT_RUN_HERE: i64 = 77;
/// Calls that every kernel has.
const ALWAYS: [&str; 6] = ["poll", "select", "epoll", "futex", "condition", "nanosleep"];

/// The number of the system call; exports contain numbers.
const WAIT4: u64 = 61;

/// Parts of the kernel that the recorder treats as missing (`SPAWNSCOPE_EBPF_REFUSE`).
const NOTHING: &str = "";
const NO_NAME: &str = "on_waking";
const NO_INTERRUPTS: &str = "on_waking,runqueues";

#[apply(live_test)]
#[needs(Ebpf, Cc)]
fn a_wait_that_times_out_has_no_waker() {
    timed_out(NOTHING);
}

#[apply(live_test)]
#[needs(Ebpf, Cc)]
fn a_wait_that_times_out_has_no_waker_without_the_name_of_the_preempt_count() {
    timed_out(NO_NAME);
}

#[apply(live_test)]
#[needs(Ebpf, Cc)]
fn a_wait_that_times_out_has_no_waker_without_interrupt_detection() {
    timed_out(NO_INTERRUPTS);
}

#[apply(live_test)]
#[needs(Ebpf, Cc)]
fn the_waker_of_a_wait_with_a_timeout_is_recorded() {
    woken(NOTHING);
}

#[apply(live_test)]
#[needs(Ebpf, Cc)]
fn the_waker_of_a_wait_with_a_timeout_is_recorded_without_interrupt_detection() {
    woken(NO_INTERRUPTS);
}

/// Records one `timed_waits` for each call, all at the same time, while a shell launches 150 other programs.
fn recorded(calls: &str, how: &str, times: usize, absent: &str) -> (Record, Vec<u8>) {
    let record = Record::new();
    let script = "for call in $2; do \"$1\" $call \"$3\" \"$4\" & done; for i in {1..150}; do /bin/true; done; wait";
    let (workload, times) = (path("timed_waits"), times.to_string());
    let workload = workload.to_str().expect("a path of characters");
    let words = ["bash", "-c", script, "bash", workload, calls, how, &times];
    let mut command = record.command(words);
    let finished = run(command.env("SPAWNSCOPE_EBPF_REFUSE", absent)).expect_code(0);
    let reports_it = finished.errors().contains("preempt count");
    assert_eq!(
        reports_it,
        !sees_interrupts(&record),
        "a missing preempt count is reported"
    );
    if absent == NOTHING {
        assert!(!reports_it, "{}", finished.errors());
    }
    (record, finished.stdout)
}

fn sees_interrupts(record: &Record) -> bool {
    let report = report(&record.file());
    let mut missing = report["missing"].as_array().expect("an array").iter();
    missing.all(|part| part["what"] != "the kernel's preempt count")
}

/// Returns each launch of the workload with its call. Prints and skips calls that this kernel does not have.
fn by_call<'l>(launches: &'l Launches, calls: &'l str) -> impl Iterator<Item = (&'l str, &'l Launch)> {
    let of_call = |call| launches.only(|launch| is_waiter(launch) && launch.arguments().get(1) == Some(&call));
    let all = calls.split_whitespace().map(move |call| (call, of_call(call)));
    all.filter(|(call, launch)| match launch.exit_code() {
        Some(CANNOT_RUN_HERE) if !ALWAYS.contains(call) => {
            eprintln!("this kernel has no {call}");
            false
        }
        code => {
            assert_eq!(code, Some(0), "{call}");
            true
        }
    })
}

/// Whether it is the workload itself, not a child that it forked.
fn is_waiter(launch: &Launch) -> bool {
    launch.programs() == ["timed_waits"]
}

/// Returns the waits of a launch that took at least `least_ns`. Uninterruptible ones are skipped: they are not those of its call (at its
/// exit, for instance, the kernel waits for other CPUs).
fn waits(launch: &Launch, least_ns: u64) -> impl Iterator<Item = &Value> {
    let all = launch.json()["waits"].as_array().expect("waits").iter();
    all.filter(move |wait| {
        let woken = wait["woken_ns"].as_u64().filter(|_| wait["reason"] == "interruptible");
        woken.is_some_and(|woken| woken - wait["start_ns"].as_u64().expect("a start") >= least_ns)
    })
}

fn timed_out(absent: &str) {
    let (record, _) = recorded(CALLS, "out", TIMES as usize, absent);
    let (launches, sees_all) = (launches(&record.file()), sees_interrupts(&record));
    for (call, launch) in by_call(&launches, CALLS) {
        // A thread that loses its CPU on the way into the call waits for less.
        let ended: Vec<&Value> = waits(launch, TIME_OUT_NS / 2).collect();
        assert!(ended.len() as u64 >= TIMES / 2, "{call}: {} waits", ended.len());
        for wait in ended {
            let by_interrupt = wait["waker"].is_null() || wait["waker"]["kind"] == "interrupt";
            let in_doubt = wait["waker_in_doubt"] == true && !sees_all;
            assert!(by_interrupt || in_doubt, "{call}: {wait}");
        }
    }
    expect_no_false_attribution(&record);
}

/// No wait may be attributed to an unrelated launch, and no predicted wall may be shorter than the waits alone.
fn expect_no_false_attribution(record: &Record) {
    let file = record.file();
    let attribution = report(&file)["waits"].clone();
    let of_waiters = attribution.as_array().expect("an array").iter();
    let charged =
        of_waiters.filter(|row| row["command"] == "timed_waits" && row["total_ns"].as_u64() >= Some(TIME_OUT_NS));
    assert_eq!(charged.count(), 0, "{attribution}");

    let least = TIME_OUT_NS * TIMES;
    let whatif = spawnscope(
        ["whatif", "--json", "--remove", "true"]
            .map(AsRef::as_ref)
            .into_iter()
            .chain([file.as_os_str()]),
    );
    let whatif: Value = serde_json::from_slice(&whatif.expect_code(0).stdout).expect("JSON");
    assert!(whatif["predicted_ns"].as_u64() >= Some(least), "{whatif}");
    let advise = spawnscope(["advise".as_ref(), "--json".as_ref(), file.as_os_str()]).expect_code(0);
    let advise: Value = serde_json::from_slice(&advise.stdout).expect("JSON");
    for advice in advise["advice"].as_array().expect("an array") {
        let saving = advice["saving_ns"].as_u64().expect("nanoseconds");
        let wall = advise["wall_ns"].as_u64().expect("nanoseconds");
        assert!(saving + least <= wall, "of {wall}: {advice}");
    }
}

fn woken(absent: &str) {
    let (record, stdout) = recorded(WAKEABLE, "woken", CHILDREN, absent);
    let (launches, sees_all) = (launches(&record.file()), sees_interrupts(&record));
    let mut children = Truth::new(&stdout).all("child");
    for (call, launch) in by_call(&launches, WAKEABLE) {
        let own: Vec<&Launch> = launches.children_of(launch);
        children.retain(|pid| own.iter().all(|child| child.pid() != Some(*pid)));
        let mut ended: Vec<&Value> = waits(launch, WAKE_AFTER_NS * 2 / 3).collect();
        if call == "recv_internet" {
            // A packet is delivered in an interrupt, so without interrupt detection the sender is not recorded as the waker. The kernel may also
            // leave the delivery to a later interrupt.
            if !sees_all {
                continue;
            }
            ended.retain(|wait| wait["waker"]["kind"] == "task");
        }
        expect_woken_by(&own, &ended, sees_all);
    }
    assert_eq!(children, [] as [i64; 0], "every child that ended a wait is recorded");
}

/// Each long wait was ended by a child, whatever else ran then. A busy machine may let a parent come too late to wait for some.
/// Where interrupts are not seen, a wait whose thread loses its CPU before the call returns stays in doubt.
#[track_caller]
fn expect_woken_by(children: &[&Launch], ended: &[&Value], sees_all: bool) {
    // The wait for the child's own end has no timeout.
    let limited = ended.iter().filter(|wait| wait["syscall"] != WAIT4);
    let by_child = |wait: &Value| children.iter().any(|child| wait["waker"]["launch"] == child.id());
    let (certain, in_doubt): (Vec<&&Value>, Vec<&&Value>) = limited.partition(|wait| wait["waker_in_doubt"].is_null());
    assert!(
        !certain.is_empty() && certain.iter().all(|wait| by_child(wait)),
        "{ended:#?}"
    );
    assert!(!sees_all || in_doubt.is_empty(), "{in_doubt:#?}");
}
