//! Losses, refusals, analyses of recordings by perf, and how a recording ends.

use std::ffi::OsStr;

use crate::support::inherited::assert_a_recorded_command_inherits_the_same;
use crate::support::job_control::assert_a_shell_sees_stops_of_a_recorded_command;
use crate::support::recording::{launches, read, report};
use crate::support::run::{Record, run, spawnscope};
use crate::support::workloads::word;
use crate::support::{apply, live_test};

const STORM: &str = "i=0; while [ $i -lt 500 ]; do /bin/true; i=$((i+1)); done; exit 0";

#[apply(live_test)]
fn records_that_do_not_fit_are_counted_as_lost() {
    let record = Record::new().flags(&["--buffer", "4"]);
    let finished = record.run(["sh", "-c", STORM]).expect_code(0);
    finished.expect_errors(["lost: "]);
    let lost = report(&record.file())["lost_events"].as_u64();
    assert!(lost.is_some_and(|lost| lost > 0), "{lost:?}");
}

#[apply(live_test)]
fn a_report_without_losses_mentions_none() {
    let record = Record::new();
    let finished = record.run(["sh", "-c", "/bin/true; :"]).expect_code(0);
    assert!(!finished.errors().contains("lost"), "{}", finished.errors());
}

#[apply(live_test)]
fn every_analysis_accepts_a_recording_by_perf() {
    let record = Record::new();
    record.run(["sh", "-c", "sleep 0.1 & /bin/true; (:); wait"]).expect_code(0);
    let lossy = Record::new().flags(&["--buffer", "4", "-q"]);
    lossy.run(["sh", "-c", STORM]).expect_code(0);
    let page = record.directory().join("page.html");
    let page = page.to_str().expect("a path in UTF-8");
    let trace = record.directory().join("trace");
    let trace = trace.to_str().expect("a path in UTF-8");
    for file in [record.file(), lossy.file()] {
        for words in [
            &["report", "--full"][..],
            &["report", "--json"],
            &["report", "--by", "args"],
            &["tree"],
            &["advise", "--all"],
            &["flame"],
            &["html", "-o", page],
            &["export", "--format", "ndjson"],
            &["export", "--format", "perfetto", "-o", trace],
            &["export", "--format", "otlp"],
        ] {
            let errors = read(words, &file).errors();
            assert!(!errors.contains("panicked"), "{words:?}: {errors}");
        }
        let finished = spawnscope(["whatif", "--remove", "true"].map(OsStr::new).iter().chain([&file.as_os_str()]));
        assert!(!finished.errors().contains("panicked"), "{}", finished.errors());
    }
}

#[apply(live_test)]
fn after_the_duration_the_command_continues_and_its_processes_are_unfinished() {
    let record = Record::new().flags(&["-q", "--duration", "0.3"]);
    record.run(["sh", "-c", "sleep 1; exit 3"]).expect_code(3);
    assert_eq!(report(&record.file())["ended"], "duration");
    let all = launches(&record.file());
    let sleep = all.only(|launch| launch.command() == "sleep");
    assert_eq!(sleep.json()["phases"]["teardown"], serde_json::Value::Null);
    assert!(sleep.end_ns().is_none_or(|end| end < 900_000_000), "{sleep}");
}

#[apply(live_test)]
fn descendants_that_outlive_the_command_are_recorded_to_their_end_on_request() {
    let record = Record::new().flags(&["-q", "--wait-for-all"]);
    record.run(["sh", "-c", "sh -c 'sleep 0.4; exit 0' & exit 0"]).expect_code(0);
    let wall = report(&record.file())["wall_ns"].as_u64();
    assert!(wall.is_some_and(|wall| wall >= 400_000_000), "{wall:?}");
}

#[apply(live_test)]
fn running_processes_need_ebpf() {
    for flags in [&["-p", "1"][..], &["-a"]] {
        let finished = run(&mut Record::new().flags(flags).command([""; 0]));
        finished.expect_code(125).expect_errors(["only eBPF can follow"]);
    }
}

#[apply(live_test)]
#[needs(Cc)]
fn a_refusal_says_why_perf_events_are_missing() {
    let finished = Record::new().through(&[&word("without_perf")]).run(["true"]);
    let reasons = ["failed to collect with perf", "no perf events"];
    finished.expect_code(125).expect_errors(reasons);
}

#[apply(live_test)]
#[needs(Cc)]
fn a_recorded_command_inherits_what_it_would_inherit_without_a_recorder() {
    assert_a_recorded_command_inherits_the_same();
}

#[apply(live_test)]
#[needs(Pty)]
fn a_shell_sees_that_the_recorded_command_has_stopped() {
    assert_a_shell_sees_stops_of_a_recorded_command("perf");
}
