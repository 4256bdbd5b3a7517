//! Programs that are reached through others: `#!/usr/bin/env`, the shims of pyenv, rbenv, asdf and rustup, and wrapper scripts that
//! exec or launch the real program and do nothing else.

use std::collections::BTreeMap;

use super::super::ground::{name, time};
use super::super::shell::{Dialect, runs};
use super::super::wording::{HABIT, launches, literal, longest, option, quoted};
use super::super::{Basis, Finding, Ground};
use crate::analyze::launch::{Exec, Launch, base_name};
use crate::analyze::phases::Phase;
use crate::analyze::tree::Forest;
use crate::analyze::whatif::Fix;
use crate::analyze::whatif::changes::{Change, is_captured, needless_shell, wrapped_child};
use crate::event::Nanos;
use crate::units;

const MOST_FINDINGS: usize = 3;
/// Programs that look up which version is meant, and exec it.
const CHOOSERS: [&[u8]; 7] = [b"pyenv", b"rbenv", b"nodenv", b"goenv", b"asdf", b"mise", b"rustup"];

/// A program reached through others.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Chain<'a> {
    /// `None` for the command itself.
    parent: Option<&'a [u8]>,
    /// As they come after each other, the real program last.
    links: Vec<&'a [u8]>,
    /// File of the real program.
    real: &'a [u8],
    kind: Link,
}

/// What stands before a program; of several, the last of these tells what the chain is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Link {
    /// `env` in a command, which changes nothing in the environment.
    Env,
    /// `#!/usr/bin/env`, which looks for an interpreter along PATH.
    EnvLine,
    /// A script that sets something, at most.
    Wrapper,
    /// A program of the same name elsewhere.
    Namesake,
    /// What chooses a version.
    Chooser,
}

pub(super) fn find(ground: &Ground<'_, '_>) -> Vec<Finding> {
    let mut chains: BTreeMap<Chain<'_>, Vec<u32>> = BTreeMap::new();
    for (index, launch) in (0..).zip(&ground.forest().launches) {
        if !launch.is_launch() {
            continue;
        }
        if let Some(chain) = executed_chain(ground.forest(), index).or_else(|| launched_chain(ground, index)) {
            chains.entry(chain).or_default().push(index);
        }
    }
    // A script that does much before it comes to the program is more than a way to it.
    let does_little = |chain: &Chain<'_>, all: &[u32]| {
        let of = |time: fn(&Ground<'_, '_>, u32) -> Nanos| all.iter().map(|index| time(ground, *index).0).sum::<u64>();
        chain.kind != Link::Wrapper
            || of(own_work) <= of(|ground, index| ground.launch(index).tax().unwrap_or_default())
    };
    // What a version manager does before a program is known from a single time, and need never be done.
    let is_habit = |chain: &Chain<'_>, all: &[u32]| chain.kind == Link::Chooser || all.len() >= HABIT;
    let chains = chains
        .into_iter()
        .filter(|(chain, all)| is_habit(chain, all) && does_little(chain, all));
    longest(ground, chains, MOST_FINDINGS)
        .into_iter()
        .map(|(chain, all)| finding(ground, &chain, all))
        .collect()
}

/// A process that becomes one program after the other.
fn executed_chain<'a>(forest: &Forest<'a>, index: u32) -> Option<Chain<'a>> {
    let launch = &forest.launches[index as usize];
    let (real, before) = launch.execs.split_last()?;
    if before.is_empty() || needless_shell(forest, index).is_some() {
        return None;
    }
    let kinds: Option<Vec<Link>> = before.iter().map(|exec| link(exec, real)).collect();
    Some(Chain {
        parent: parent_of(launch),
        links: launch.execs.iter().map(|exec| base_name(exec.path)).collect(),
        real: real.path,
        kind: kinds?.into_iter().max()?,
    })
}

fn parent_of<'a>(launch: &Launch<'a>) -> Option<&'a [u8]> {
    launch.parent.map(|_| launch.birth_command.name)
}

/// Whether a launch was made while a version manager looked for the program that is meant: its scripts are nobody's to change.
pub(super) fn is_inside(forest: &Forest<'_>, launch: u32) -> bool {
    let mut child = launch as usize;
    while let Some(parent) = forest.parent(child) {
        let at = forest.launches[child].start().unwrap_or_default();
        let execs = &forest.launches[parent].execs;
        let entered = |exec: &Exec<'_>| exec.enter.or(exec.returned).is_none_or(|entered| entered <= at);
        let program = match &execs[..execs.partition_point(entered)] {
            // The shell of a script that begins with `#!/usr/bin/env`.
            [.., script, shell] if runs(script) == b"env" && Dialect::of_program(base_name(shell.path)).is_some() => {
                Some(script)
            }
            others => others.last(),
        };
        if program.is_some_and(is_chooser) {
            return true;
        }
        child = parent;
    }
    false
}

/// Whether an exec is of a version manager: `pyenv`, its `pyenv-exec`, or one of its shims.
fn is_chooser(exec: &Exec<'_>) -> bool {
    let program = base_name(exec.path);
    let is_shim = exec.path.windows(7).any(|part| part == b"/shims/") || exec.path.starts_with(b"shims/");
    let is_of = |chooser: &&[u8]| {
        let rest = program.strip_prefix(*chooser);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"-"))
    };
    is_shim || CHOOSERS.iter().any(is_of)
}

/// What an exec is for, when another program follows it; `None` when it may have a purpose of its own (nice, sudo, `sh -c`).
fn link(exec: &Exec<'_>, real: &Exec<'_>) -> Option<Link> {
    let program = base_name(exec.path);
    if is_chooser(exec) {
        return Some(Link::Chooser);
    }
    if program == base_name(real.path) && exec.path != real.path {
        return Some(Link::Namesake);
    }
    if exec.interpreter.is_some() && runs(exec) == b"env" {
        return Some(Link::EnvLine);
    }
    if program == b"env" {
        let first = exec.arguments().nth(1).unwrap_or_default();
        return (!first.starts_with(b"-") && !first.contains(&b'=')).then_some(Link::Env);
    }
    is_shell_script(exec).then_some(Link::Wrapper)
}

/// A shell that runs a file, not the text behind `-c`.
fn is_shell_script(exec: &Exec<'_>) -> bool {
    let of_file = || exec.arguments().nth(1).is_some_and(|first| !first.starts_with(b"-"));
    Dialect::of_program(runs(exec)).is_some() && (exec.interpreter.is_some() || of_file())
}

/// What a launch did that was not the real program's.
fn own_work(ground: &Ground<'_, '_>, index: u32) -> Nanos {
    let launch = ground.launch(index);
    if let [_] = &launch.execs[..] {
        let of_real = wrapped_child(ground.forest(), index).map(|child| ground.spent_on(&[child]));
        let run = launch.phases.get(Phase::Run).unwrap_or_default();
        return run.since(of_real.unwrap_or_default());
    }
    let between = launch.execs.windows(2).filter_map(|pair| {
        let ready = pair[0].loaded.or(pair[0].returned)?;
        Some(pair[1].enter?.since(ready).0)
    });
    Nanos(between.sum())
}

/// A script that launches one program, waits for it, and ends.
fn launched_chain<'a>(ground: &Ground<'_, 'a>, index: u32) -> Option<Chain<'a>> {
    let forest = ground.forest();
    let launch = &forest.launches[index as usize];
    let [exec] = &launch.execs[..] else { return None };
    let child = wrapped_child(forest, index).filter(|_| is_shell_script(exec))?;
    let real = forest.launches[child as usize].execs.last()?;
    let is_read = is_captured(forest, ground.whatif.timelines, child);
    (!is_read).then(|| Chain {
        parent: parent_of(launch),
        links: vec![base_name(exec.path), base_name(real.path)],
        real: real.path,
        kind: Link::Wrapper,
    })
}

fn finding(ground: &Ground<'_, '_>, chain: &Chain<'_>, all: Vec<u32>) -> Finding {
    let links: Vec<String> = chain.links.iter().map(|link| name(link)).collect();
    let real = name(chain.real);
    let program = chain.links.last().copied().unwrap_or_default();
    // A wrapper that launches the program keeps its own name; one that execs it is found by either.
    let is_wrapper = chain.kind == Link::Wrapper;
    let selected = if is_wrapper { chain.links[0] } else { program };
    let between = match &links[..links.len() - 1] {
        [link] => link.clone(),
        others => format!("{} other programs", others.len()),
    };
    let before: u64 = all.iter().map(|index| before_real(ground, *index).0).sum();
    Finding {
        rule: "shims",
        title: format!(
            "{} reaches {} through {between}{}",
            chain.parent.map_or_else(|| "the command".to_owned(), name),
            name(program),
            times(chain, all.len())
        ),
        evidence: vec![
            format!("the chain: {}", links.join(" -> ")),
            format!(
                "{} {} in all, {} of it before {real} begins",
                if all.len() == 1 {
                    "it takes".to_owned()
                } else {
                    format!("{} take", launches(all.len()))
                },
                time(ground.spent_on(&all)),
                time(Nanos(before))
            ),
        ],
        example: ground.example(&all),
        fix: instructions(chain, &real),
        limits: limits(chain.kind).to_owned(),
        whatif: match chain.parent {
            Some(parent) => option("--direct", selected, parent),
            None => quoted(&format!("--direct={}", literal(selected))),
        },
        tries: vec![Fix {
            change: Change::Direct,
            launches: all.clone(),
        }],
        basis: Basis::Measured,
        launches: all,
    }
}

fn times(chain: &Chain<'_>, count: usize) -> String {
    match (chain.parent, count) {
        (None, 1) => String::new(),
        (_, 1) => " once".to_owned(),
        _ => format!(" {} times", units::count(count as u64)),
    }
}

fn limits(kind: Link) -> &'static str {
    match kind {
        Link::Env => "env also makes sure that a program and not a builtin of the shell is meant",
        Link::EnvLine => "the path of the interpreter is then fixed: other machines may have it elsewhere",
        Link::Namesake | Link::Chooser => {
            "the version is then fixed: what the shim looks up (a .tool-versions, a toolchain file) has no effect"
        }
        Link::Wrapper => {
            "what the wrapper sets (environment, arguments, limits) has to be set by who calls the program"
        }
    }
}

/// From the first exec until the real program's, or until it is launched.
fn before_real(ground: &Ground<'_, '_>, index: u32) -> Nanos {
    let launch = ground.launch(index);
    let first = launch.execs.first().and_then(|exec| exec.enter);
    let real = match &launch.execs[..] {
        [_] => wrapped_child(ground.forest(), index).and_then(|child| ground.launch(child).start()),
        execs => execs.last().and_then(|exec| exec.enter),
    };
    first
        .zip(real)
        .map(|(first, real)| real.since(first))
        .unwrap_or_default()
}

fn instructions(chain: &Chain<'_>, real: &str) -> Vec<String> {
    match chain.kind {
        Link::Env => vec![format!("call the program without env: {real}")],
        Link::EnvLine => vec![format!("name the interpreter in the script's first line: #!{real}")],
        Link::Namesake | Link::Chooser => vec![
            format!("call the program itself: {real}"),
            "  its path: pyenv which, rbenv which, asdf which, mise which, rustup which".to_owned(),
            "  or put its directory before the shims' in the script's PATH".to_owned(),
        ],
        Link::Wrapper => vec![
            format!("call the program itself: {real}, with the arguments that the wrapper adds"),
            "  or end the wrapper with `exec PROGRAM ...`: one process less".to_owned(),
        ],
    }
}
