//! Waits with a time limit, beside launches that have nothing to do with them: a timer's interrupt hits one of these, which has not
//! ended the wait. A process that did end one is still known, whether or not the recorder sees interrupts.

use serde_json::Value;

use crate::support::launches::{Launch, Launches};
use crate::support::recording::{launches, report};
use crate::support::run::{Record, run, spawnscope};
use crate::support::workloads::{Truth, path};
use crate::support::{apply, live_test};

/// How `timed_waits` waits, and for how long at least where no thread ends it.
const CALLS: &str = "poll ppoll select pselect epoll epoll_pwait futex condition semtimedop sigtimedwait mq_timedreceive \
                     io_getevents recv_unix recv_internet nanosleep timerfd alarm";
const TIME_OUT_NS: u64 = 10_000_000;
const TIMES: u64 = 60;

/// Those that another process can end, and how often that is done.
const WAKEABLE: &str = "poll ppoll select pselect epoll epoll_pwait futex condition semtimedop sigtimedwait mq_timedreceive \
                        recv_unix recv_internet";
const WAKE_AFTER_NS: u64 = 30_000_000;
const CHILDREN: usize = 4;

/// Its exit status where the kernel was built without what it needs.
const CANNOT_RUN_HERE: i64 = 77;
/// What every kernel has.
const ALWAYS: [&str; 6] = ["poll", "select", "epoll", "futex", "condition", "nanosleep"];

/// By number, as an export has it.
const WAIT4: u64 = 61;

/// What the recorder is to take for absent.
const NOTHING: &str = "";
const NAME: &str = "on_waking";
const NAME_AND_PLACE: &str = "on_waking,runqueues";

#[apply(live_test)]
#[needs(Ebpf, Cc)]
fn a_wait_that_times_out_has_no_waker() {
    timed_out(NOTHING);
}

#[apply(live_test)]
#[needs(Ebpf, Cc)]
fn a_wait_that_times_out_has_no_waker_without_the_name_of_the_preempt_count() {
    timed_out(NAME);
}

#[apply(live_test)]
#[needs(Ebpf, Cc)]
fn a_wait_that_times_out_has_no_waker_without_interrupt_detection() {
    timed_out(NAME_AND_PLACE);
}

#[apply(live_test)]
#[needs(Ebpf, Cc)]
fn the_waker_of_a_wait_with_a_timeout_is_recorded() {
    woken(NOTHING);
}

#[apply(live_test)]
#[needs(Ebpf, Cc)]
fn the_waker_of_a_wait_with_a_timeout_is_recorded_without_interrupt_detection() {
    woken(NAME_AND_PLACE);
}

/// Records `timed_waits` once for each call, all at the same time, beside a storm of launches.
fn recorded(calls: &str, how: &str, times: usize, absent: &str) -> (Record, Vec<u8>) {
    let record = Record::new();
    let script = "for call in $2; do \"$1\" $call \"$3\" \"$4\" & done; for i in {1..150}; do /bin/true; done; wait";
    let (workload, times) = (path("timed_waits"), times.to_string());
    let workload = workload.to_str().expect("a path of characters");
    let words = ["bash", "-c", script, "bash", workload, calls, how, &times];
    let mut command = record.command(words);
    let finished = run(command.env("SPAWNSCOPE_EBPF_REFUSE", absent)).expect_code(0);
    let said = finished.errors().contains("preempt count");
    assert_eq!(said, !sees_interrupts(&record), "what is unknown is said");
    if absent == NOTHING {
        assert!(!said, "{}", finished.errors());
    }
    (record, finished.stdout)
}

fn sees_interrupts(record: &Record) -> bool {
    let report = report(&record.file());
    let mut missing = report["missing"].as_array().expect("an array").iter();
    missing.all(|part| part["what"] != "the kernel's preempt count")
}

/// Each launch of the workload, by its call. Those that this kernel knows nothing of are named.
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

/// Not a child that a waiter forked.
fn is_waiter(launch: &Launch) -> bool {
    launch.programs() == ["timed_waits"]
}

/// Its waits that took at least so long, and how they ended. Those that no signal can end are for what the kernel does: at its
/// end, say, for other CPUs.
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
    expect_nothing_false(&record);
}

/// The waits alone take that long, whatever becomes of the launches.
fn expect_nothing_false(record: &Record) {
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
            // What comes through the network is an interrupt's where these are not seen, and where the kernel leaves it to a later one.
            if !sees_all {
                continue;
            }
            ended.retain(|wait| wait["waker"]["kind"] == "task");
        }
        expect_woken_by(&own, &ended, sees_all);
    }
    assert_eq!(children, [] as [i64; 0], "each is known");
}

/// Each long wait was ended by a child, whatever else ran then. A busy machine may let a parent come too late to wait for some.
/// Where interrupts are not seen, a wait whose thread loses its CPU before the call returns stays in doubt.
#[track_caller]
fn expect_woken_by(children: &[&Launch], ended: &[&Value], sees_all: bool) {
    // That for a child's own end has no limit.
    let limited = ended.iter().filter(|wait| wait["syscall"] != WAIT4);
    let by_child = |wait: &Value| children.iter().any(|child| wait["waker"]["launch"] == child.id());
    let (certain, in_doubt): (Vec<&&Value>, Vec<&&Value>) = limited.partition(|wait| wait["waker_in_doubt"].is_null());
    assert!(
        !certain.is_empty() && certain.iter().all(|wait| by_child(wait)),
        "{ended:#?}"
    );
    assert!(!sees_all || in_doubt.is_empty(), "{in_doubt:#?}");
}
