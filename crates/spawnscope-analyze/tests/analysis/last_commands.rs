//! A shell that execs its last command: the earlier work of the shell is not part of the chain to
//! that program.

use crate::prelude::*;
use crate::serial::{advices, is_silent, only};

const COUNT: u64 = 10;
const MILLI: u64 = 1_000_000;
/// The time from the exec of the shim to that of the real program.
const CHAIN: u64 = 6 * MILLI;
const REAL: &str = "/home/user/.pyenv/versions/3.12/bin/python3";

/// A recipe: a shell that does work, with `python3` as its last command.
struct Recipe<'r> {
    shell: &'r str,
    argv: &'r [&'r str],
    /// The program that the shell launches first, and how long it runs, in nanoseconds.
    launches: Option<(&'r str, u64)>,
    /// The programs and their interpreters that the shell execs before the real program, one every
    /// millisecond.
    chain: &'r [(&'r str, Option<&'r str>)],
}

const ENV: Option<&str> = Some("/usr/bin/env");
const SHIM: &[(&str, Option<&str>)] = &[("/home/user/.pyenv/shims/python3", ENV), ("/bin/bash", None)];
const BUILD: Recipe<'_> = Recipe {
    shell: "/bin/bash",
    argv: &["bash", "-c", "gcc -c a.c; python3 -c pass"],
    launches: Some(("/usr/bin/gcc", 5 * MILLI)),
    chain: SHIM,
};

/// Builds a recording of a make that runs the recipe repeatedly.
fn repeated_recipe(recipe: &Recipe<'_>) -> ((Recording, Vec<SliceRow>), Vec<LaunchId>) {
    let mut serial = Serial::with_command("/usr/bin/make", &["make"]);
    let spans = Spans { run: 20 * MILLI, ..Spans::USUAL };
    let mut shells = Vec::new();
    for _ in 0..COUNT {
        let shell = serial.launch(&spans, Some((recipe.shell, recipe.argv)));
        let loaded = serial.builder.recording.execs.last().unwrap().load_end.unwrap().0;
        if let Some((program, run)) = recipe.launches {
            run_in_parallel(&mut serial, shell, loaded + 100_000, run, program, None);
        }
        let mut at = loaded + 8 * MILLI;
        for (path, interpreter) in recipe.chain {
            exec(&mut serial, shell, (path, *interpreter), &["bash", "shims/python3", "-c", "pass"], at);
            at += MILLI;
        }
        if !recipe.chain.is_empty() {
            // The shim launches a helper script of the version manager.
            let hooks = "/home/user/.pyenv/libexec/pyenv-hooks";
            let helper = run_in_parallel(&mut serial, shell, at, 2 * MILLI, hooks, ENV);
            let argv = ["bash", hooks, "exec"];
            exec(&mut serial, helper, ("/bin/bash", None), &argv, at + 2 * MILLI);
        }
        exec(&mut serial, shell, (REAL, None), &["python3", "-c", "pass"], loaded + 8 * MILLI + CHAIN);
        shells.push(shell);
    }
    (serial.finish(), shells)
}

fn exec(serial: &mut Serial, launch: LaunchId, program: (&str, Option<&str>), argv: &[&str], at: u64) {
    let argv: Vec<&[u8]> = argv.iter().map(|word| word.as_bytes()).collect();
    let at = [at, at + 300_000, at + 400_000];
    serial.builder.exec_at(launch, program.0.as_bytes(), &argv, at);
    let interpreter = program.1.map(|path| serial.builder.text(path.as_bytes()));
    serial.builder.recording.execs.last_mut().unwrap().interpreter = interpreter;
}

/// Adds a launch that the shell does not wait for.
fn run_in_parallel(
    serial: &mut Serial,
    shell: LaunchId,
    at: u64,
    run: u64,
    program: &str,
    interpreter: Option<&str>,
) -> LaunchId {
    let spans = Spans { run, ..Spans::USUAL };
    let child = serial.builder.launch(shell, at, &spans, Some((program, &[program])));
    let interpreter = interpreter.map(|path| serial.builder.text(path.as_bytes()));
    serial.builder.recording.execs.last_mut().unwrap().interpreter = interpreter;
    let row = serial.builder.row(child);
    row.parent_task = Some(TaskId(shell.0));
    let (born, gone) = (row.created.unwrap().0, row.zombie.unwrap().0);
    serial.slices.push(created(child.0, born, spans.queue));
    serial.slices.push(ended(child.0, born + spans.queue, gone));
    child
}

fn saved_by_direct(recipe: &Recipe<'_>) -> u64 {
    let (recorded, shells) = repeated_recipe(recipe);
    let prediction = predict(&recorded, &Default::default(), &[(Change::Direct, &shells)]);
    prediction.wall.since(prediction.predicted).0
}

#[test]
fn a_shim_that_a_working_shell_becomes_counts_from_its_exec() {
    let (recorded, shells) = repeated_recipe(&BUILD);
    let found = advices(&recorded);
    let advice = only(&found, "shims");
    assert_eq!(advice.finding.launches.len(), shells.len());
    assert_eq!(advice.finding.title, "bash launches python3 through 2 earlier execs 10 times");
    assert_eq!(advice.finding.whatif, "--direct=python3,parent=make");
    assert!(advice.finding.evidence[0].ends_with(": python3 -> bash -> python3"), "{advice:?}");
    assert!(advice.finding.evidence[1].contains("60.0 ms of it before /home"), "{advice:?}");
    assert!(advice.finding.evidence[2].starts_with("it is the last command of bash"), "{advice:?}");
    assert_eq!(advice.saving[0], Nanos(COUNT * CHAIN));
}

#[test]
fn direct_cuts_only_the_execs_that_lead_to_the_program() {
    assert_eq!(saved_by_direct(&BUILD), COUNT * CHAIN);
}

#[test]
fn a_shell_or_script_that_launched_work_does_not_merely_lead_to_a_program() {
    let alone = Recipe { chain: &[], ..BUILD };
    assert_eq!(saved_by_direct(&alone), 0, "what -c was given");
    let script = Recipe { argv: &["bash", "build.sh"], ..alone };
    assert_eq!(saved_by_direct(&script), 0, "a script that compiles");
    let helped = Recipe { launches: Some(("/usr/bin/mkdir", 100_000)), ..script };
    assert!(saved_by_direct(&helped) > COUNT * 13 * MILLI, "a script that makes a directory");
}

#[test]
fn a_shell_with_more_than_one_command_stays_although_it_launched_nothing() {
    let changes = Recipe { argv: &["bash", "-c", "umask 077; python3 -c pass"], launches: None, ..BUILD };
    assert_eq!(saved_by_direct(&changes), COUNT * CHAIN);
    assert_eq!(saved_by_direct(&Recipe { chain: &[], ..changes }), 0);
    // Every call that launches a program can set its directory, so that the shell is not needed for
    // `cd`.
    let directory = Recipe { argv: &["bash", "-c", "cd x && python3 -c pass"], chain: &[], ..changes };
    assert!(saved_by_direct(&directory) > 0);
}

#[test]
fn shells_that_worked_before_cannot_become_one_interpreter() {
    let (recorded, shells) = repeated_recipe(&BUILD);
    assert!(is_silent(&advices(&recorded), "resident"));
    let prediction = predict(&recorded, &Default::default(), &[(Change::Batch(5), &shells)]);
    assert!(prediction.changed[0].is_empty());
    assert_eq!(prediction.predicted, prediction.wall);
}

#[test]
fn launches_of_a_version_manager_by_itself_get_no_advice() {
    let found = advices(&repeated_recipe(&BUILD).0);
    let all = found.worth.iter().chain(found.not_worth.iter().map(|(_, advice)| advice));
    let about_hooks = all.filter(|advice| advice.finding.title.contains("pyenv"));
    assert_eq!(about_hooks.count(), 0, "{found:?}");
}

#[test]
fn a_subshell_that_worked_before_its_first_exec_keeps_that_work() {
    let mut serial = Serial::with_command("/bin/bash", &["bash", "build.sh"]);
    let spans = Spans { setup: 8 * MILLI, run: 20 * MILLI, ..Spans::USUAL };
    let subshell = serial.launch(&spans, Some((SHIM[0].0, &["bash", "shims/python3"])));
    serial.builder.recording.execs.last_mut().unwrap().interpreter = Some(serial.builder.text(b"/usr/bin/env"));
    let shim = serial.builder.recording.execs.last().unwrap().enter.unwrap().0;
    run_in_parallel(&mut serial, subshell, shim - 7 * MILLI, 5 * MILLI, "/usr/bin/gcc", None);
    exec(&mut serial, subshell, SHIM[1], &["bash", "shims/python3"], shim + MILLI);
    exec(&mut serial, subshell, (REAL, None), &["python3"], shim + CHAIN);
    let recorded = serial.finish();
    let prediction = predict(&recorded, &Default::default(), &[(Change::Direct, &[subshell])]);
    assert_eq!(prediction.wall.since(prediction.predicted), Nanos(CHAIN));
}
