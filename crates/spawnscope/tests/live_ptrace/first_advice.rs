//! The first advice is right although ptrace does not see what ends waits: those of a pipeline, of
//! a pool of threads, of make for a shell whose output it reads, and of a parent that polls.

use std::fs;

use crate::support::attempts::{best_of_three, ok_if};
use crate::support::recording::read;
use crate::support::run::Record;
use crate::support::{apply, live_test};

/// Records a command, and compares the rule of the first advice, and the least share that it saves
/// of the wall time without recording: a busy machine makes recording slower than the command.
#[track_caller]
fn assert_first(words: &[&str], rules: &[&str], min_share: f64) {
    best_of_three(|| {
        let record = Record::new().flags(&["--quiet"]).recorded(words);
        let found = read(&["advise", "--json"], &record.file()).json();
        let first = found["advice"].get(0).ok_or("no advice")?;
        let (rule, saved) = (first["rule"].as_str().expect("a rule"), first["saving_ns"].as_f64().expect("a saving"));
        let wall = found["unrecorded_ns"].as_f64().expect("a wall time");
        ok_if(rules.contains(&rule) && saved > min_share * wall, || format!("{rule} saves {saved} of {wall}"))
    });
}

#[apply(live_test)]
fn of_a_pipeline_whose_last_program_reads_to_the_end() {
    let script = "for i in {1..60}; do expr \"$i\" + 1; done | sort -n | tail -n 1; exit 0";
    assert_first(&["bash", "-c", script], &["builtin", "shell-line"], 0.4);
}

#[apply(live_test)]
#[needs(Python)]
fn of_a_pool_of_threads() {
    let script = "import concurrent.futures, subprocess\n\
                  def work(n):\n\
                  \x20 return subprocess.run(['cksum', '/etc/passwd', f'/proc/{n}/stat'], capture_output=True)\n\
                  with concurrent.futures.ThreadPoolExecutor(1) as pool: list(pool.map(work, [1] * 80))\n";
    assert_first(&["/usr/bin/python3", "-S", "-c", script], &["once", "in-language", "many-per-launch"], 0.1);
}

#[apply(live_test)]
#[needs(Make)]
fn of_a_shell_whose_output_make_reads() {
    let directory = tempfile::tempdir().expect("a directory");
    let makefile = directory.path().join("Makefile");
    let targets: Vec<String> = (0..60).map(|number| format!("t{number}")).collect();
    let text =
        format!("V = $(shell echo 1 | cat | cat)\nall: {0}\n{0}:\n\t@: $(V)\n.PHONY: all {0}\n", targets.join(" "));
    fs::write(&makefile, text).expect("a file");
    assert_first(&["make", "-s", "-f", makefile.to_str().expect("a path")], &["once"], 0.3);
}

#[apply(live_test)]
#[needs(Python)]
fn of_a_parent_that_polls() {
    let script = "import subprocess, time\n\
                  for _ in range(8):\n\
                  \x20   child = subprocess.Popen(['/bin/true'])\n\
                  \x20   while child.poll() is None: time.sleep(0.05)\n";
    assert_first(&["/usr/bin/python3", "-S", "-c", script], &["late-reaping"], 0.2);
}
