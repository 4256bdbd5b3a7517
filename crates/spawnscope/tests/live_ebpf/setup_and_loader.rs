//! What a child does before its exec, and what its loader looks for, compared with what the
//! workloads report about themselves; and the constants of the machine that the recorder measures
//! first.

use std::fs;
use std::path::Path;

use serde_json::Value;
use spawnscope::event::{Calibration, Constant};
use spawnscope::record::RecordingFile;

use crate::support::prelude::*;
use crate::support::workloads;

const CLOSES: i64 = 1009;
/// The number of libraries that `needs_libraries` loads, including the C library.
const LIBRARIES: i64 = 4;

/// bash masks signals and creates a pipe before a fork, and closes and unmasks after reaping. The
/// counting in between is work of its own.
#[apply(live_test)]
fn system_calls_of_a_shell_for_a_launch_are_separated_from_its_own_work() {
    let script = "for i in {1..20}; do x=$(/bin/true); for ((n = 0; n < 3000; n++)); do :; done; done";
    // If the shell gets no CPU for long in the middle of these calls, they seem to have ended.
    best_of_three(|| {
        let record = Record::new().recorded(["bash", "-c", script]);
        let file = RecordingFile::open(&record.file()).expect("a recording");
        let recording = file.read().expect("its rows");
        let children: Vec<_> = recording.launches.iter().filter(|row| row.prepare.is_some()).collect();
        let count = children.len();
        ok_if(count >= 19, || format!("system calls before {count} launches"))?;
        children.windows(2).try_for_each(|pair| {
            let [before, next] = pair else { unreachable!() };
            let in_order = before.reaped <= next.parent_tidied
                && next.parent_tidied < next.prepare
                && next.prepare < next.create
                && before.reaped.is_some();
            ok_if(in_order, || format!("{before:?} {next:?}"))
        })
    });
}

#[apply(live_test)]
fn closes_before_an_exec_are_counted_and_timed() {
    let command = [word("closing"), CLOSES.to_string(), word("tiny")];
    let (truth, launches) = Record::new().truth_and_launches(command);
    let amounts = truth.all("amount_ns");
    let methods = [("one_by_one", CLOSES), ("at_once", 1), ("with_a_break", 1 + CLOSES), ("nothing", 0)];
    for ((method, closes), amount) in methods.into_iter().zip(amounts) {
        let child = launches.with_pid(truth.one(method)).json();
        assert_eq!(child["setup_closes"], closes, "{method}");
        let span = child["setup_close_ns"].as_i64().expect("known, as the count is");
        assert!(span <= amount, "{method}: {span} of {amount} ns");
        assert_eq!(span > 0, closes > 0, "{method}: {span} ns");
    }
    let no_exec = launches.with_pid(truth.one("no_exec")).json();
    assert_eq!(no_exec["setup_closes"], Value::Null);
    assert_eq!(no_exec["setup_close_ns"], Value::Null);
}

/// Returns the last exec of the command.
fn last_exec(file: &Path) -> Value {
    let launches = launches(file);
    let execs = launches.root().json()["execs"].as_array().expect("execs").clone();
    execs.last().expect("an exec").clone()
}

/// Runs a program with this search path, and returns its exec. The program must exit with `code`.
pub fn exec_with_search_path(program: &str, search: &str, code: i32) -> Value {
    let record = Record::new();
    record.run(["/usr/bin/env", &format!("LD_LIBRARY_PATH={search}"), program]).expect_code(code);
    last_exec(&record.file())
}

#[apply(live_test)]
fn the_search_of_the_loader_grows_with_the_number_of_directories() {
    let [none, some, more] = [0, 5, 10].map(failed_opens);
    assert!(some - none >= 5 * LIBRARIES, "{none}, then {some}");
    assert_eq!(more - some, some - none, "each directory costs the same");
}

fn failed_opens(directories: usize) -> i64 {
    let empty = tempfile::tempdir().expect("a temporary directory");
    let libraries = workloads::directory().to_str().expect("UTF-8");
    let mut search = String::new();
    for number in 0..directories {
        let directory = empty.path().join(format!("empty{number}"));
        fs::create_dir_all(&directory).expect("a directory");
        search += &format!("{}:", directory.display());
    }
    let exec = exec_with_search_path(&word("needs_libraries"), &(search + libraries), 0);
    assert_eq!(exec["load_opens"], LIBRARIES, "{exec}");
    assert_eq!(exec["load_cache"], true, "for the C library: {exec}");
    exec["load_failed_opens"].as_i64().expect("known, as the opens are")
}

#[apply(live_test)]
#[needs(MountNs)]
fn a_missing_loader_cache_is_distinguished_from_an_unused_one() {
    let search = format!("LD_LIBRARY_PATH={}", workloads::directory().display());
    let exec = last_exec_after("mount -t tmpfs none /etc", &search);
    assert_eq!(exec["load_cache"], false, "{exec}");
    assert_eq!(exec["load_opens"], LIBRARIES, "{exec}");
    // All libraries, including the C library, are found before the cache is needed.
    let all = tempfile::tempdir().expect("a temporary directory");
    let libc = "ln -s \"$(ldconfig -p | sed -n 's/.*libc\\.so\\.6.*x86-64.* => //p' | head -n 1)\"";
    let link = format!("PATH=$PATH:/sbin; {libc} {}/libc.so.6", all.path().display());
    let exec = last_exec_after(&link, &format!("{search}:{}", all.path().display()));
    assert_eq!(exec["load_cache"], Value::Null, "{exec}");
    assert_eq!(exec["load_opens"], LIBRARIES, "{exec}");
}

fn last_exec_after(prepare: &str, search: &str) -> Value {
    let script = format!("{prepare} && exec env \"$0\" \"$1\"");
    let command = ["/bin/sh", "-c", &script, search, &word("needs_libraries")];
    let record = Record::new().through(&["unshare", "--mount"]).recorded(command);
    last_exec(&record.file())
}

/// The setup of the command is the recorder's own.
#[apply(live_test)]
fn a_static_command_has_neither_closes_nor_a_loader_that_could_search() {
    let launches = launches(&Record::new().recorded([path("tiny")]).file());
    let command = launches.root().json();
    assert_eq!(command["setup_closes"], Value::Null);
    for column in ["load_opens", "load_failed_opens", "load_cache"] {
        assert_eq!(command["execs"][0][column], Value::Null, "{column}");
    }
}

#[apply(live_test)]
fn the_constants_of_the_machine_are_in_the_recording() {
    // On a busy machine, the time may be up before all constants are measured, but not in every
    // attempt.
    let mut attempts: Vec<Calibration> = Vec::new();
    best_of_three(|| {
        let record = Record::new().recorded(["true"]);
        let recording = RecordingFile::open(&record.file()).and_then(|file| file.read());
        attempts.extend(recording.expect("a recording").calibration);
        // Only old recordings have it, and only by ptrace.
        let expected = Constant::ALL.into_iter().filter(|what| *what != Constant::RecordedStop);
        let missing: Vec<Constant> =
            expected.filter(|what| attempts.iter().all(|constant| constant.what != *what)).collect();
        ok_if(missing.is_empty(), || format!("missing until now: {missing:?}"))
    });
    for found in attempts {
        let [low, high] = [found.low_ns, found.high_ns].map(|quartile| quartile.expect("a quartile"));
        assert!(found.ns > 0.0 && low <= found.ns && found.ns <= high, "{found:?}");
    }
}
