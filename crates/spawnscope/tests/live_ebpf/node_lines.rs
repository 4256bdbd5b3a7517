//! The lines of Node.js programs that launch, with `record --node-lines`: every function that
//! launches has its line, and the hook changes nothing else.

use std::fs;
use std::process::Command;

use crate::support::chains::{chain_of, labelled_chains, write_files};
use crate::support::prelude::*;

const NODE: &str = "/usr/bin/node";

#[apply(live_test)]
#[needs(Node)]
fn every_function_that_launches_has_its_line() {
    let script = "\
const cp = require('child_process');
cp.spawnSync('@t', ['spawnSync']);
cp.execFileSync('@t', ['execFileSync']);
cp.execSync('exec @t execSync');
cp.spawn('@t', ['spawn']);
cp.execFile('@t', ['execFile']);
function outer() {
  inner();
}
function inner() {
  cp.exec('exec @t exec');
}
outer();
require('lib').launch('module');
setTimeout(function later() {
  cp.spawnSync('@t', ['timer']);
}, 1);
require('util').promisify(cp.execFile)('@t', ['promised']);
";
    let library =
        "const cp = require('child_process');\nexports.launch = function launch(x) {\n  cp.spawnSync('@t', [x]);\n};\n";
    let files = [("node_modules/lib/index.js", library), ("main.js", script)];
    let chains = record(&files, "main.js");
    let truth = [
        ("spawnSync", "main.js:2"),
        ("execFileSync", "main.js:3"),
        ("execSync", "main.js:4"),
        ("spawn", "main.js:5"),
        ("execFile", "main.js:6"),
        ("exec", "main.js:11 inner < main.js:8 outer < main.js:13"),
        ("module", "index.js:3 launch < main.js:14"),
        ("timer", "main.js:16 later"),
        ("promised", "main.js:18"),
    ];
    for (label, chain) in truth {
        assert!(chain_of(&chains, label).starts_with(chain), "{label}: {chains:#?}");
    }
}

#[apply(live_test)]
#[needs(Node)]
fn modules_and_worker_threads_have_lines() {
    let script = "\
import { spawnSync, spawn } from 'node:child_process';
import { Worker, isMainThread } from 'node:worker_threads';
if (isMainThread) {
  spawnSync('@t', ['sync']);
  spawn('@t', ['async']);
  new Worker(new URL(import.meta.url));
} else {
  spawnSync('@t', ['worker']);
}
";
    let chains = record(&[("main 1.mjs", script)], "main 1.mjs");
    for (label, chain) in [("sync", "main 1.mjs:4"), ("async", "main 1.mjs:5"), ("worker", "main 1.mjs:8")] {
        assert!(chain_of(&chains, label).starts_with(chain), "{label}: {chains:#?}");
    }
}

#[apply(live_test)]
#[needs(Node)]
fn a_program_behaves_the_same_with_the_hook() {
    let script = "\
const cp = require('child_process');
Error.stackTraceLimit = 3;
const own = () => 'own';
Error.prepareStackTrace = own;
console.log(cp.execSync('echo said').toString().trim());
console.log(Error.prepareStackTrace === own, Error.stackTraceLimit, new Error().stack);
console.log(typeof cp.execSync, cp.execSync.name, cp.spawnSync.length,
  cp.exec[require('util').promisify.custom] !== undefined);
try { cp.spawn(7); } catch (error) { console.log(error.code); }
console.log(cp.spawnSync('/does/not/exist').error.code);
console.log(process.execArgv.length, process.env.OWN);
process.exitCode = 3;
";
    let directory = tempfile::tempdir().expect("a temporary directory");
    write_files(directory.path(), &[("main.js", script), ("own.js", "process.env.OWN = 'loaded';\n")]);
    let [file, own] = ["main.js", "own.js"].map(|name| directory.path().join(name));
    let options = format!("--require={}", own.display());
    let alone = run(Command::new(NODE).arg(&file).env("NODE_OPTIONS", &options));
    let record = Record::new().flags(&["--node-lines", "--quiet"]);
    let recorded = run(record.command([NODE.as_ref(), file.as_os_str()]).env("NODE_OPTIONS", &options));
    assert_eq!((alone.code(), recorded.code()), (3, 3), "{}", recorded.errors());
    let output = alone.output();
    let is_complete = output.contains("said\ntrue 3 own\n") && output.ends_with("0 loaded\n");
    assert!(is_complete, "{output}");
    let with_hook = recorded.output();
    assert!(with_hook.starts_with(&output), "{output}\n{with_hook}");
}

#[apply(live_test)]
#[needs(Node)]
fn without_the_option_node_gets_no_hook_and_no_file_remains() {
    let script = "require('child_process').spawnSync('@t', [String(process.env.NODE_OPTIONS)]);\n";
    let directory = tempfile::tempdir().expect("a temporary directory");
    write_files(directory.path(), &[("main.js", script)]);
    let file = directory.path().join("main.js");
    let [without_option, with_option] = [&[][..], &["--node-lines"]].map(|flags| {
        let record = Record::new().flags(flags);
        let mut command = record.command([NODE.as_ref(), file.as_os_str()]);
        run(command.env("TMPDIR", directory.path()).env_remove("NODE_OPTIONS")).expect_code(0);
        labelled_chains(&record.file())
    });
    assert_eq!(chain_of(&without_option, "undefined"), "");
    let mut labelled = with_option.iter();
    let options = labelled.find(|(label, _)| label.starts_with("--require="));
    let options = options.expect("the launch");
    assert!(options.0.contains("/spawnscope-node-"), "{options:?}");
    assert!(options.1.starts_with("main.js:1"), "{options:?}");
    let remaining = fs::read_dir(directory.path()).expect("the directory");
    let remaining: Vec<_> = remaining.flatten().collect();
    assert_eq!(remaining.len(), 1, "{remaining:?}");
}

/// Records a program, in whose files `@t` is replaced by the path of a small program. Returns the
/// chains of the launches.
fn record(files: &[(&str, &str)], main: &str) -> Vec<(String, String)> {
    let directory = tempfile::tempdir().expect("a temporary directory");
    write_files(directory.path(), files);
    let main = directory.path().join(main);
    let record = Record::new().flags(&["--node-lines"]).recorded([NODE.as_ref(), main.as_os_str()]);
    labelled_chains(&record.file())
}
