//! What ptrace records: the tree, arguments and exits are those that eBPF records, and what the
//! tracer cannot see is unknown.

use crate::support::chains::labelled_chains;
use crate::support::launches::{Launch, Launches};
use crate::support::recording::{contains, launches, report};
use crate::support::run::{Record, run};
use crate::support::{apply, live_test};

/// Returns what all runs have in common: the properties of a launch that do not vary, followed by
/// those of the launches below it.
fn shape(all: &Launches, launch: &Launch) -> String {
    let below = all.children_of(launch);
    let below: Vec<String> = below.into_iter().map(|child| shape(all, child)).collect();
    let programs = launch.programs();
    let arguments = if programs.is_empty() { Vec::new() } else { launch.arguments() };
    let line = format!("{:?}", (programs, arguments, launch.exit_code(), launch.failed_execs()));
    let mechanism = &launch.json()["mechanism"];
    let directory = launch.json()["execs"].as_array().and_then(|execs| execs.last()?.get("cwd").cloned());
    format!("{line} {mechanism} {directory:?} {:?} [{}]", launch.exit_signal(), below.join(", "))
}

#[apply(live_test)]
#[needs(Ebpf)]
fn the_tree_is_the_one_that_ebpf_records() {
    let script = "ls / | wc -l; (exit 3); /bin/sh -c 'kill -9 $$'; env -i /usr/bin/env true; \
                  PATH=/nonexistent:$PATH /usr/bin/env true; cd /usr; nice /nonexistent; \
                  /bin/sh -c 'exec /bin/true'; /bin/sh -c 'PATH=/nonexistent:$PATH; exec true'; \
                  x=$(printf a b | sort); exit 7";
    for shell in ["sh", "bash"] {
        assert_same(&[shell, "-c", script], 7);
    }
}

/// Records a command with eBPF and with ptrace, and compares the trees and the script lines.
/// Returns the script lines.
#[track_caller]
fn assert_same(words: &[&str], code: i32) -> Vec<(String, String)> {
    let [ebpf, ptrace] = ["ebpf", "ptrace"].map(|collector| {
        let record = Record::new().flags(&["--collector", collector]);
        record.run(words).expect_code(code);
        let all = launches(&record.file());
        (labelled_chains(&record.file()), shape(&all, all.root()))
    });
    assert_eq!(ebpf, ptrace, "{words:?}");
    ebpf.0
}

#[apply(live_test)]
#[needs(Ebpf, Make, Perl, Python)]
fn the_lines_are_those_that_ebpf_records() {
    let script = "\
#!/bin/sh
f() {
  cd /; /bin/true \"$1\"
}
f in_function
x=$(/bin/echo substituted; :)
/bin/ls . | /usr/bin/wc -l
(/bin/true subshell; :)
eval '/bin/true evaluated'
trap '/bin/true trapped' USR1
kill -USR1 $$
/bin/true background & wait
for i in 1 2; do /bin/true \"loop$i\"; done
";
    let python = "import os, subprocess\ndef f():\n    subprocess.run(['/bin/true', 'f'])\nf()\nos.system('/bin/true shell')\n\
                  if os.fork() == 0:\n    os._exit(0)\nos.wait()\n";
    let perl = "sub f { system '/bin/true', 'f' }\nf();\nmy $x = `/bin/echo x`;\neval q{system '/bin/true', 'text'};\n";
    let make = "X := $(shell /bin/echo read)\nall: one\n\t@/bin/true $(X)\none:\n\t@/bin/true a; /bin/true b\n";
    let directory = tempfile::tempdir().expect("a temporary directory");
    for (command, name, text) in [
        (&["bash"][..], "s.sh", script),
        (&["dash"], "s.sh", script),
        (&["/usr/bin/python3"], "p.py", python),
        (&["perl"], "p.pl", perl),
        (&["make", "-f"], "makefile", make),
    ] {
        let file = directory.path().join(name);
        std::fs::write(&file, text).expect("a script");
        let lines = assert_same(&[command, &[&file.display().to_string()]].concat(), 0);
        assert!(lines.iter().any(|(_, chain)| chain.contains(':')), "{lines:#?}");
    }
}

#[apply(live_test)]
#[needs(Python)]
fn failed_execs_of_a_new_process_are_recorded() {
    let script = "import os; os.environ['PATH'] = '/nonexistent:/usr/bin'; os.spawnvp(os.P_WAIT, 'true', ['true'])";
    let record = Record::new().recorded(["/usr/bin/python3", "-S", "-c", script]);
    let all = launches(&record.file());
    let child = all.only(|launch| launch.command() == "true");
    assert_eq!(child.failed_execs(), [("/nonexistent/true".to_owned(), 2)]);
}

#[apply(live_test)]
fn phases_that_the_tracer_sees_are_known_and_create_is_not() {
    let record = Record::new();
    record.run(["sh", "-c", "/bin/true; :"]).expect_code(0);
    let all = launches(&record.file());
    let child = all.only(|launch| launch.command() == "true");
    // Unlike the fork call, these phases end at stops that the tracer sees. Each may be zero: a
    // process may get a CPU at once, and what a busy tracer held back is no part of a phase.
    assert_eq!(child.phase_ns("create"), None);
    for phase in ["queue", "setup", "exec", "load", "run", "teardown"] {
        assert!(child.phase_ns(phase).is_some(), "{phase}: {child}");
    }
    let report = report(&record.file());
    assert_eq!(report["waits_reconstructed"], true, "{report}");
}

#[apply(live_test)]
fn without_failed_execs_setup_and_exec_are_unknown() {
    let record = Record::new().flags(&["--no-failed-execs"]);
    record.run(["sh", "-c", "/bin/true; :"]).expect_code(0);
    let all = launches(&record.file());
    let child = all.only(|launch| launch.command() == "true");
    assert_eq!((child.phase_ns("setup"), child.phase_ns("exec")), (None, None));
    assert!(child.phase_ns("load").is_some() && child.phase_ns("run").is_some());
}

/// A parent that blocks in wait4 stops for SIGCHLD right after the call, so the end of the wait is
/// known.
#[apply(live_test)]
#[needs(Python)]
fn a_wait_for_a_child_and_its_reap_are_known() {
    let script = "import os, time\n\
                  for _ in range(20):\n\
                  \x20   child = os.fork()\n\
                  \x20   if child == 0: time.sleep(0.01); os._exit(0)\n\
                  \x20   os.waitpid(child, 0)\n";
    let record = Record::new().recorded(["/usr/bin/python3", "-S", "-c", script]);
    let all = launches(&record.file());
    let children = all.children_of(all.root());
    assert_eq!(children.len(), 20);
    let reaped = children.iter().filter(|child| child.phase_ns("reap").is_some()).count();
    assert!(reaped >= 15, "{reaped}");
}

#[apply(live_test)]
fn running_processes_need_ebpf() {
    for flags in [&["-p", "1"][..], &["-a"]] {
        let finished = run(&mut Record::new().flags(flags).command([""; 0]));
        finished.expect_code(125).expect_errors(["only eBPF can follow"]);
    }
}

#[apply(live_test)]
fn labels_are_stored_and_other_variables_are_not() {
    let labels = ["runner=large", "token=hunter2", "run=mine"];
    let record = Record::new().flags(&["-q"]).flags(&labels.map(|label| ["--label", label]).concat());
    let mut command = record.command(["true"]);
    command.env("GITHUB_ACTIONS", "true").env("GITHUB_SHA", "c0ffee");
    command.env("GITHUB_RUN_ID", "7").env("GITHUB_TOKEN", "never-stored");
    run(&mut command).expect_code(0);
    let labels = &report(&record.file())["labels"];
    for (key, value) in [("ci", "github"), ("commit", "c0ffee"), ("run", "mine"), ("runner", "large"), ("token", "***")]
    {
        assert_eq!(labels[key], value, "{labels}");
    }
    let host = rustix::system::uname();
    assert_eq!(labels["host"], host.nodename().to_string_lossy().as_ref());
    for secret in ["never-stored", "hunter2"] {
        assert!(!contains(&record.file(), secret), "{secret}");
    }
}
