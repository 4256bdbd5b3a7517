//! Samples name the function that runs, and show what the loader does and where threads wait.
//! Without the option, nothing is sampled.

use spawnscope::record::reader::RecordingFile;

use crate::support::prelude::*;

/// Records the workload `sampled` with these arguments.
fn record(flags: &[&str], words: &[&str]) -> Record {
    Record::new().flags(flags).recorded([&[word("sampled").as_str()], words].concat())
}

/// Returns the stacks of a recording with their weights in microseconds.
fn stacks(record: &Record, flags: &[&str]) -> Vec<(String, u64)> {
    let folded = read(&[&["flame", "--folded"], flags].concat(), &record.file()).output();
    let lines = folded.lines().map(|line| {
        let (stack, weight) = line.rsplit_once(' ').expect("a weight");
        (stack.to_owned(), weight.parse().expect("a number"))
    });
    lines.collect()
}

/// Returns the weight of the stacks that have all these boxes, and that of all stacks.
fn weights(stacks: &[(String, u64)], boxes: &[&str]) -> (u64, u64) {
    let wanted = stacks.iter().filter(|(stack, _)| boxes.iter().all(|wanted| has_box(stack, wanted)));
    let sum = wanted.map(|(_, weight)| weight).sum();
    (sum, stacks.iter().map(|(_, weight)| weight).sum())
}

fn has_box(stack: &str, wanted: &str) -> bool {
    stack.split(';').any(|shown| shown.split(' ').next() == Some(wanted))
}

#[apply(live_test)]
fn nothing_is_sampled_by_default() {
    let record = record(&[], &["spin", "20"]);
    for flag in ["--on-cpu", "--off-cpu"] {
        let file = record.file();
        let refused = spawnscope(["flame".as_ref(), flag.as_ref(), file.as_os_str()]).expect_code(125);
        refused.expect_errors(["record --sample"]);
    }
    let wall = stacks(&record, &["--phase", "run"]);
    assert!(wall.iter().all(|(stack, _)| stack == "sampled;run"), "{wall:?}");
}

/// Returns the weight of the function that runs, and that of all stacks of the run phase.
fn working_weights(record: &Record) -> (u64, u64) {
    let run = stacks(record, &["--phase", "run"]);
    weights(&run, &["sampled", "run", "_start", "main", "spinning"])
}

/// This holds even if the function makes no system call for 5,000 samples, longer than the BPF
/// program holds back the samples of a thread.
#[apply(live_test)]
fn samples_name_the_function_that_runs() {
    for frequency in ["999", "10000"] {
        let record = record(&["--sample", frequency], &["spin", "500"]);
        assert_eq!(report(&record.file())["lost_events"], 0);
        let (spinning, all) = working_weights(&record);
        assert!(spinning * 10 >= all * 8, "{spinning} of {all}");
        let file = RecordingFile::open(&record.file()).expect("the recording");
        file.samples(&mut |row| assert_ne!(row.task.0, 0, "no sample is of the recorder")).expect("its samples");
    }
}

/// The process must live until the recorder reads its mappings in /proc. The recorder reads the
/// kernel's symbols first.
#[apply(live_test)]
fn samples_name_the_function_without_mappings_from_the_kernel() {
    with_growing_lengths(|length| {
        let record = Record::new().flags(&["--sample", "199"]);
        let milliseconds = (2500 * length).to_string();
        let mut command = record.command([path("sampled").into_os_string(), "spin".into(), milliseconds.into()]);
        run(command.env("SPAWNSCOPE_EBPF_REFUSE", "bpf_iter_task_vma_new")).expect_code(0);
        let (spinning, all) = working_weights(&record);
        ok_if(all > 0 && spinning * 10 >= all, || format!("{spinning} of {all}"))
    });
}

#[apply(live_test)]
fn samples_of_the_loader_show_what_it_searches() {
    best_of_three(try_searching);
}

fn try_searching() -> Result<(), String> {
    let record = record(&["--sample", "10000"], &["search"]);
    assert_eq!(report(&record.file())["lost_events"], 0);
    let load = stacks(&record, &["--phase", "load", "--by", "command"]);
    assert!(load.iter().all(|(stack, _)| stack.starts_with("sampled;load;")), "{load:#?}");
    let is_search =
        |name: &str| name.ends_with("_[k]") && ["open", "stat", "lookup"].iter().any(|part| name.contains(part));
    let searching: u64 =
        load.iter().filter(|(stack, _)| stack.split(';').any(is_search)).map(|(_, weight)| weight).sum();
    let all: u64 = load.iter().map(|(_, weight)| weight).sum();
    // How much of the rest is page faults differs between processors.
    ok_if(searching * 6 >= all, || format!("{searching} of {all}: {load:#?}"))
}

#[apply(live_test)]
fn samples_of_waits_name_the_waiting_function_and_sum_to_its_time() {
    best_of_three(try_waiting);
}

fn try_waiting() -> Result<(), String> {
    let record = record(&["--sample", "199"], &["wait", "300"]);
    assert_eq!(report(&record.file())["lost_events"], 0);
    let waits = stacks(&record, &["--off-cpu"]);
    let (parent, _) = weights(&waits, &["sampled", "run", "_start", "main", "waiting", "do_wait_[k]"]);
    let of_child = ["sampled", "(sampled)", "run", "main", "waiting", "do_nanosleep_[k]"];
    let (child, all) = weights(&waits, &of_child);
    let switch = waits.iter().find(|(stack, _)| stack.contains("__schedule"));
    assert_eq!(switch, None, "the kernel functions that switch threads are left out");
    // The parent waits as long as the child, less at most the time of a sample, unless it gets no
    // CPU in time. No other thread waits for long.
    let is_right = child >= 300_000 && parent + 5_000 >= child && parent + child + 50_000 >= all;
    ok_if(is_right, || format!("{waits:#?}"))
}

#[apply(live_test)]
#[needs(MountNs, Fanotify)]
fn a_wait_inside_execve_has_kernel_frames() {
    best_of_three(try_scanned);
}

/// Each of seven children waits 20 ms for a permission scanner. Some kernels do not report that a
/// thread of pid 1 leaves the CPU, so that the end of the child's wait is unknown and the wait is
/// not reported.
fn try_scanned() -> Result<(), String> {
    let mount_point = tempfile::tempdir().expect("a temporary directory");
    let words = [path("long_exec"), "long".into(), path("tiny"), mount_point.path().into()];
    let record = Record::new().flags(&["--sample", "999"]).recorded(words);
    let waits = stacks(&record, &["--off-cpu", "--phase", "exec"]);
    let (scanned, all) = weights(&waits, &["long_exec", "exec", "fanotify_handle_event_[k]"]);
    ok_if(scanned >= 7 * 20_000 && scanned * 10 >= all * 9, || format!("{waits:#?}"))
}

#[apply(live_test)]
fn samples_that_do_not_fit_are_counted() {
    let record = record(&["--sample", "10000", "--buffer", "4"], &["spin", "300"]);
    let lost = report(&record.file())["lost_events"].as_u64().expect("a number");
    assert!(lost > 0, "4 KiB are too small for several stacks");
}
