//! What perf records: the tree and the programs are those that eBPF records, and what perf events do not contain is unknown.

use std::collections::BTreeMap;

use crate::support::attempts::{best_of_three, ok_if};
use crate::support::launches::{Launch, Launches};
use crate::support::recording::{launches, report};
use crate::support::run::Record;
use crate::support::workloads::{Truth, path};
use crate::support::{apply, live_test};

/// Returns the properties of a launch that do not differ from run to run, and those of the launches below it in order.
fn shape(all: &Launches, launch: &Launch) -> String {
    let below = all.children_of(launch);
    let below: Vec<String> = below.into_iter().map(|child| shape(all, child)).collect();
    format!("{} {:?} [{}]", launch.command(), launch.programs(), below.join(", "))
}

#[apply(live_test)]
#[needs(Ebpf)]
fn the_tree_is_the_one_that_ebpf_records() {
    let script = "ls / | wc -l; (exit 3); /bin/sh -c 'kill -9 $$'; env -i /usr/bin/env true; \
                  x=$(printf a b | sort); exit 7";
    for shell in ["sh", "bash"] {
        let shapes = ["ebpf", "perf"].map(|collector| {
            let record = Record::new().flags(&["--collector", collector, "-q"]);
            record.run([shell, "-c", script]).expect_code(7);
            let all = launches(&record.file());
            shape(&all, all.root())
        });
        assert_eq!(shapes[0], shapes[1], "{shell}");
    }
}

#[apply(live_test)]
fn each_of_several_hundred_launches_is_recorded() {
    let record = Record::new().flags(&["-q"]);
    let script = "i=0; while [ $i -lt 400 ]; do /bin/true; (:); i=$((i+1)); done; exit 4";
    record.run(["sh", "-c", script]).expect_code(4);
    let report = report(&record.file());
    assert_eq!((&report["launches"], &report["lost_events"]), (&801.into(), &0.into()));
    assert_eq!(report["forks_without_exec"], 400);
    let all = launches(&record.file());
    let programs = all.all(|launch| launch.command() == "true");
    assert_eq!(programs.len(), 400);
    for launch in programs {
        for phase in ["queue", "load", "run"] {
            assert!(launch.phase_ns(phase).is_some(), "{phase}: {launch}");
        }
    }
    assert_eq!(all.root().exit_code(), Some(4));
}

#[apply(live_test)]
fn a_program_that_lives_on_has_its_arguments_directory_and_file() {
    let record = Record::new().flags(&["-q"]);
    record.run(["sh", "-c", "cd /usr; /bin/sleep 0.3; :"]).expect_code(0);
    let all = launches(&record.file());
    let sleep = all.only(|launch| launch.command() == "sleep");
    assert_eq!(sleep.arguments(), ["/bin/sleep", "0.3"]);
    let exec = &sleep.json()["execs"][0];
    assert_eq!((&exec["path"], &exec["cwd"]), (&"/bin/sleep".into(), &"/usr".into()));
    assert!(sleep.phase_ns("run").is_some_and(|span| span >= 290_000_000), "{sleep}");
}

#[apply(live_test)]
fn most_arguments_of_short_programs_are_known_and_none_are_wrong() {
    let record = Record::new().flags(&["-q"]);
    let script = "for ((i = 0; i < 2000; i++)); do CARGO_PKG_NAME=p$i /bin/true $i; done";
    record.run(["bash", "-c", script]).expect_code(0);
    let all = launches(&record.file());
    let programs = all.all(|launch| launch.command() == "true");
    assert_eq!(programs.len(), 2000);
    let mut known = 0;
    for (number, launch) in programs.iter().enumerate() {
        let exec = &launch.json()["execs"][0];
        if exec["argv_cut"] == true {
            assert!(launch.arguments().is_empty(), "{exec}");
            continue;
        }
        known += 1;
        assert_eq!(launch.arguments(), ["/bin/true".to_owned(), number.to_string()]);
        // If the process ended before the path was read, the path is that of the mapped file, with the symbolic link resolved.
        assert!(["/bin/true", "/usr/bin/true"].iter().any(|path| exec["path"] == *path), "{exec}");
    }
    assert!(known >= 1000, "{known} of 2000 are known");
}

#[apply(live_test)]
fn a_chain_of_execs_is_one_launch_with_the_arguments_of_each_program_or_none() {
    let record = Record::new().flags(&["-q"]);
    record.run(["sh", "-c", "sh -c 'exec env env sleep 0.2'; :"]).expect_code(0);
    let all = launches(&record.file());
    let chain = all.only(|launch| launch.command() == "sleep");
    assert_eq!(chain.programs(), ["sh", "env", "env", "sleep"]);
    assert_eq!(chain.arguments(), ["sleep", "0.2"]);
    let execs = chain.json()["execs"].as_array().expect("execs");
    for (exec, first) in execs.iter().zip(["sh", "env", "env", "sleep"]) {
        let known = exec["argv"].as_array().expect("arguments");
        assert!(known.is_empty() || known[0] == first, "{exec}");
        assert_eq!(known.is_empty(), exec["argv_cut"] == true, "{exec}");
    }
}

#[apply(live_test)]
#[needs(Cc)]
fn every_mechanism_creates_a_recorded_process() {
    let record = Record::new().flags(&["-q"]);
    let truth = Truth::new(&record.run([path("mechanisms"), path("tiny")]).expect_code(0).stdout);
    let mechanisms = ["fork", "vfork", "posix_spawn", "clone", "clone3"];
    let created: i64 = mechanisms.into_iter().map(|mechanism| truth.one(mechanism)).sum();
    let all = launches(&record.file());
    assert_eq!(i64::try_from(all.0.len()), Ok(1 + created));
    assert!(all.0.iter().all(|launch| launch.json()["mechanism"].is_null()));
}

#[apply(live_test)]
#[needs(Python)]
fn concurrent_launches_by_vfork_are_recorded() {
    let script = "import subprocess, threading\n\
                  work = lambda: [subprocess.run(['/bin/true'], check=True) for _ in range(5)]\n\
                  threads = [threading.Thread(target=work) for _ in range(40)]\n\
                  [thread.start() for thread in threads]; [thread.join() for thread in threads]\n";
    let record = Record::new().flags(&["-q"]);
    record.run(["/usr/bin/python3", "-S", "-c", script]).expect_code(0);
    let all = launches(&record.file());
    let parent = all.root().id();
    let programs = all.all(|launch| launch.command() == "true" && launch.parent() == Some(parent));
    assert_eq!(programs.len(), 200);
}

#[apply(live_test)]
#[needs(Cc)]
fn an_exec_by_a_later_thread_belongs_to_the_process() {
    let record = Record::new().flags(&["-q"]);
    let truth = Truth::new(&record.run([path("thread_exec"), path("tiny")]).expect_code(0).stdout);
    let all = launches(&record.file());
    let child = all.with_pid(truth.one("child"));
    assert_eq!(child.programs(), ["tiny"]);
    assert!(child.phase_ns("run").is_some(), "{child}");
}

#[apply(live_test)]
fn what_perf_events_do_not_contain_is_reported_as_unknown() {
    let record = Record::new().flags(&["-q"]);
    record.run(["sh", "-c", "/bin/true; :"]).expect_code(0);
    let all = launches(&record.file());
    let child = all.only(|launch| launch.command() == "true");
    for phase in ["create", "setup", "exec", "teardown", "reap"] {
        assert_eq!(child.phase_ns(phase), None, "{phase}");
    }
    assert_eq!((child.exit_code(), child.exit_signal()), (None, None));
    let report = report(&record.file());
    assert_eq!(report["waits_reconstructed"], true, "{report}");
    let text = report.to_string();
    for what in ["what wakes threads", "system calls", "the ends of processes"] {
        assert!(text.contains(what), "{what}: {text}");
    }
}

/// Compares the medians of many launches, for the phases that both collectors record.
#[apply(live_test)]
#[needs(Ebpf)]
fn phases_are_as_long_as_ebpf_measures_them() {
    best_of_three(|| {
        let (exact, perf) = (medians("ebpf"), medians("perf"));
        let is_close = exact.iter().all(|(phase, span)| (span - perf[phase]).abs() < 1_000_000);
        ok_if(is_close, || format!("{exact:?} {perf:?}"))
    });
}

fn medians(collector: &str) -> BTreeMap<&'static str, i64> {
    let record = Record::new().flags(&["--collector", collector, "-q"]);
    let script = "i=0; while [ $i -lt 200 ]; do /bin/true; i=$((i+1)); done; exit 0";
    record.run(["sh", "-c", script]).expect_code(0);
    let all = launches(&record.file());
    let programs = all.all(|launch| launch.command() == "true");
    let medians = ["queue", "load", "run"].map(|phase| {
        let mut spans: Vec<i64> = programs.iter().filter_map(|launch| launch.phase_ns(phase)).collect();
        spans.sort_unstable();
        (phase, spans[spans.len() / 2])
    });
    BTreeMap::from(medians)
}

#[apply(live_test)]
fn a_killed_command_has_its_signal_and_a_killed_child_is_recorded() {
    let record = Record::new().flags(&["-q"]);
    let script = "sleep 60 & kill -9 $!; wait; kill -TERM $$; sleep 60";
    record.run(["sh", "-c", script]).expect_signal(libc::SIGTERM);
    let all = launches(&record.file());
    assert_eq!(all.root().exit_signal(), Some("SIGTERM"));
    assert_eq!(all.children_of(all.root()).len(), 1);
}
