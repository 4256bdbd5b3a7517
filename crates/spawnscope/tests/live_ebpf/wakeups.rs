//! Waits with a timeout, while unrelated launches run. The timer's interrupt may arrive while an
//! unrelated process is on the CPU: that process must not be recorded as the waker. A process that
//! does end a wait must be, whether or not the recorder sees interrupts.

use serde_json::Value;

use crate::support::prelude::*;

/// The calls in which `timed_waits` waits.
const CALLS: &str = "poll ppoll select pselect epoll epoll_pwait futex condition semtimedop sigtimedwait mq_timedreceive \
                     io_getevents recv_unix recv_internet nanosleep timerfd alarm";
/// The timeout of each wait.
const TIME_OUT_NS: u64 = 10_000_000;
/// The number of waits in each call.
const WAITS: u64 = 60;

/// The calls that another process can end.
const WAKEABLE: &str = "poll ppoll select pselect epoll epoll_pwait futex condition semtimedop sigtimedwait mq_timedreceive \
                        recv_unix recv_internet";
/// The time after which a child ends a wait.
const WAKE_AFTER_NS: u64 = 30_000_000;
/// The number of children that end a wait in each call.
const CHILDREN: usize = 4;

/// The exit status of `timed_waits` on a kernel without the call.
const CALL_IS_MISSING: i64 = 77;
/// The calls that every kernel has.
const CALLS_OF_EVERY_KERNEL: [&str; 6] = ["poll", "select", "epoll", "futex", "condition", "nanosleep"];

/// The number of the system call, as in exports.
const WAIT4: u64 = 61;

/// Parts of the kernel that the recorder treats as missing (values of `SPAWNSCOPE_EBPF_REFUSE`).
const NOTHING: &str = "";
const NO_PREEMPT_COUNT_NAME: &str = "on_waking";
const NO_INTERRUPTS: &str = "on_waking,runqueues";

live_test! {
    #[needs(Ebpf)]
    fn a_wait_that_times_out_has_no_waker = assert_timeouts_have_no_waker(NOTHING);
    fn a_wait_that_times_out_has_no_waker_without_the_name_of_the_preempt_count =
        assert_timeouts_have_no_waker(NO_PREEMPT_COUNT_NAME);
    fn a_wait_that_times_out_has_no_waker_without_interrupt_detection = assert_timeouts_have_no_waker(NO_INTERRUPTS);
    fn the_waker_of_a_wait_with_a_timeout_is_recorded = assert_waker_is_recorded(NOTHING);
    fn the_waker_of_a_wait_with_a_timeout_is_recorded_without_interrupt_detection =
        assert_waker_is_recorded(NO_INTERRUPTS);
}

/// Records one `timed_waits` for each call, all at the same time, while a shell launches 150 other
/// programs.
fn record_waits(calls: &str, how: &str, times: usize, absent: &str) -> (Record, Vec<u8>) {
    let record = Record::new();
    let script = "for call in $2; do \"$1\" $call \"$3\" \"$4\" & done; for i in {1..150}; do /bin/true; done; wait";
    let (workload, times) = (path("timed_waits"), times.to_string());
    let workload = workload.to_str().expect("a path of characters");
    let words = ["bash", "-c", script, "bash", workload, calls, how, &times];
    let mut command = record.command(words);
    let finished = run(command.env("SPAWNSCOPE_EBPF_REFUSE", absent)).expect_code(0);
    // A missing preempt count is reported.
    let is_reported = finished.errors().contains("preempt count");
    assert_eq!(is_reported, !sees_interrupts(&record));
    if absent == NOTHING {
        assert!(!is_reported, "{}", finished.errors());
    }
    (record, finished.stdout)
}

fn sees_interrupts(record: &Record) -> bool {
    let report = report(&record.file());
    let mut missing = report["missing"].as_array().expect("an array").iter();
    missing.all(|part| part["what"] != "the kernel's preempt count")
}

/// Returns each launch of the workload with its call. Prints and skips calls that this kernel does
/// not have.
fn launches_by_call<'l>(launches: &'l Launches, calls: &'l str) -> impl Iterator<Item = (&'l str, &'l Launch)> {
    let all = calls
        .split_whitespace()
        .map(|call| (call, launches.only(|launch| is_waiter(launch) && launch.arguments().get(1) == Some(&call))));
    all.filter(|(call, launch)| match launch.exit_code() {
        Some(CALL_IS_MISSING) if !CALLS_OF_EVERY_KERNEL.contains(call) => {
            eprintln!("this kernel has no {call}");
            false
        }
        code => {
            assert_eq!(code, Some(0), "{call}");
            true
        }
    })
}

/// Whether a launch is the workload itself, not a child that it forked.
fn is_waiter(launch: &Launch) -> bool {
    launch.programs() == ["timed_waits"]
}

/// Returns the waits of a launch that took at least `min_ns`. Uninterruptible waits are skipped,
/// since they are not waits of the tested call (at exec, for instance, the kernel waits for other
/// CPUs).
fn waits(launch: &Launch, min_ns: u64) -> impl Iterator<Item = &Value> {
    let all = launch.json()["waits"].as_array().expect("waits").iter();
    all.filter(move |wait| {
        let woken_ns = wait["woken_ns"].as_u64().filter(|_| wait["reason"] == "interruptible");
        woken_ns.is_some_and(|woken_ns| woken_ns - wait["start_ns"].as_u64().expect("a start") >= min_ns)
    })
}

fn assert_timeouts_have_no_waker(absent: &str) {
    let (record, _) = record_waits(CALLS, "out", WAITS as usize, absent);
    let (launches, sees_all) = (launches(&record.file()), sees_interrupts(&record));
    for (call, launch) in launches_by_call(&launches, CALLS) {
        // A thread that is preempted on its way into the call waits for less.
        let ended: Vec<&Value> = waits(launch, TIME_OUT_NS / 2).collect();
        assert!(ended.len() as u64 >= WAITS / 2, "{call}: {} waits", ended.len());
        for wait in ended {
            let by_interrupt = wait["waker"].is_null() || wait["waker"]["kind"] == "interrupt";
            let in_doubt = wait["waker_in_doubt"] == true && !sees_all;
            assert!(by_interrupt || in_doubt, "{call}: {wait}");
        }
    }
    assert_no_false_attribution(&record);
}

/// Checks that no wait is attributed to an unrelated launch, and that no predicted wall is shorter
/// than the waits alone.
fn assert_no_false_attribution(record: &Record) {
    let file = record.file();
    let attribution = report(&file)["waits"].clone();
    let of_waiters = attribution.as_array().expect("an array").iter();
    let charged =
        of_waiters.filter(|row| row["command"] == "timed_waits" && row["total_ns"].as_u64() >= Some(TIME_OUT_NS));
    assert_eq!(charged.count(), 0, "{attribution}");

    let waits_ns = TIME_OUT_NS * WAITS;
    let whatif = read(&["whatif", "--json", "--remove", "true"], &file).json();
    assert!(whatif["predicted_ns"].as_u64() >= Some(waits_ns), "{whatif}");
    let advise = read(&["advise", "--json"], &file).json();
    for advice in advise["advice"].as_array().expect("an array") {
        let saving = advice["saving_ns"].as_u64().expect("nanoseconds");
        let wall = advise["wall_ns"].as_u64().expect("nanoseconds");
        assert!(saving + waits_ns <= wall, "of {wall}: {advice}");
    }
}

fn assert_waker_is_recorded(absent: &str) {
    let (record, stdout) = record_waits(WAKEABLE, "woken", CHILDREN, absent);
    let (launches, sees_all) = (launches(&record.file()), sees_interrupts(&record));
    let mut children = Truth::new(&stdout).all("child");
    for (call, launch) in launches_by_call(&launches, WAKEABLE) {
        let own: Vec<&Launch> = launches.children_of(launch);
        children.retain(|pid| own.iter().all(|child| child.pid() != Some(*pid)));
        let mut ended: Vec<&Value> = waits(launch, WAKE_AFTER_NS * 2 / 3).collect();
        if call == "recv_internet" {
            // A packet is delivered in an interrupt, so without interrupt detection the sender is
            // not recorded as the waker. The kernel may also leave the delivery to a later
            // interrupt.
            if !sees_all {
                continue;
            }
            ended.retain(|wait| wait["waker"]["kind"] == "task");
        }
        assert_woken_by(&own, &ended, sees_all);
    }
    assert_eq!(children, [] as [i64; 0], "every child that ended a wait is recorded");
}

/// Checks that a child ended each long wait, whatever else ran at that time. On a busy machine, a
/// parent may come too late for some of the waits. If interrupts are not seen, the waker of a wait
/// stays in doubt if its thread is preempted before the call returns.
#[track_caller]
fn assert_woken_by(children: &[&Launch], ended: &[&Value], sees_all: bool) {
    // The wait4 for the child has no timeout.
    let limited = ended.iter().filter(|wait| wait["syscall"] != WAIT4);
    let (certain, in_doubt): (Vec<&&Value>, Vec<&&Value>) = limited.partition(|wait| wait["waker_in_doubt"].is_null());
    let are_right = certain.iter().all(|wait| children.iter().any(|child| wait["waker"]["launch"] == child.id()));
    assert!(!certain.is_empty() && are_right, "{ended:#?}");
    assert!(!sees_all || in_doubt.is_empty(), "{in_doubt:#?}");
}
