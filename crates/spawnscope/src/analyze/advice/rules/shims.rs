//! Programs that are reached through others: `#!/usr/bin/env`, the shims of pyenv, rbenv, asdf and rustup, and wrapper scripts that
//! exec or launch the real program and do nothing else.

use std::collections::BTreeMap;

use super::super::ground::{name, time};
use super::super::shell::{Dialect, runs};
use super::super::wording::{largest, launches, option};
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
    parent: &'a [u8],
    /// As they come after each other, the real program last.
    links: Vec<&'a [u8]>,
    /// File of the real program.
    real: &'a [u8],
    kind: Link,
}

/// What stands before a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Link {
    /// `env`, which looks for an interpreter along PATH.
    Env,
    /// What chooses a version.
    Chooser,
    /// A script that sets something, at most.
    Wrapper,
}

pub(super) fn find(ground: &Ground<'_, '_>) -> Vec<Finding> {
    let mut chains: BTreeMap<Chain<'_>, Vec<u32>> = BTreeMap::new();
    for (index, launch) in (0..).zip(&ground.forest().launches) {
        if !launch.is_launch() || launch.parent.is_none() {
            continue;
        }
        if let Some(chain) = executed_chain(ground.forest(), index).or_else(|| launched_chain(ground, index)) {
            chains.entry(chain).or_default().push(index);
        }
    }
    largest(ground, chains, MOST_FINDINGS)
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
    let links: Option<Vec<Link>> = before.iter().map(|exec| link(exec, real)).collect();
    let kind = links?.into_iter().max_by_key(|link| *link == Link::Chooser)?;
    let kind = if before.iter().all(|exec| link(exec, real) == Some(Link::Env)) {
        Link::Env
    } else {
        kind
    };
    let is_chosen = before.iter().any(|exec| link(exec, real) == Some(Link::Chooser));
    if !is_chosen && work_before(launch) > launch.tax()? {
        return None;
    }
    Some(Chain {
        parent: launch.birth_command.name,
        links: launch.execs.iter().map(|exec| base_name(exec.path)).collect(),
        real: real.path,
        kind: if is_chosen { Link::Chooser } else { kind },
    })
}

/// What an exec is for, when another program follows it; `None` when it may have a purpose of its own (nice, sudo, `sh -c`).
fn link(exec: &Exec<'_>, real: &Exec<'_>) -> Option<Link> {
    let program = base_name(exec.path);
    let is_shim = exec.path.windows(7).any(|part| part == b"/shims/");
    if CHOOSERS.contains(&program) || is_shim {
        return Some(Link::Chooser);
    }
    if runs(exec) == b"env" {
        let first = exec.arguments().nth(1).unwrap_or_default();
        let sets_nothing = !first.starts_with(b"-") && !first.contains(&b'=');
        return (sets_nothing || exec.interpreter.is_some()).then_some(Link::Env);
    }
    if program == base_name(real.path) && exec.path != real.path {
        return Some(Link::Chooser);
    }
    is_shell_script(exec).then_some(Link::Wrapper)
}

/// A shell that runs a file, not the text behind `-c`.
fn is_shell_script(exec: &Exec<'_>) -> bool {
    let of_file = || exec.arguments().nth(1).is_some_and(|first| !first.starts_with(b"-"));
    Dialect::of_program(runs(exec)).is_some() && (exec.interpreter.is_some() || of_file())
}

/// What the programs before the last one did.
fn work_before(launch: &Launch<'_>) -> Nanos {
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
    let wrapped = &forest.launches[child as usize];
    let own = launch.phases.get(Phase::Run)?.since(wrapped.total(forest.end)?);
    let real = wrapped.execs.last()?;
    let is_wrapper = own <= launch.tax()? && !is_captured(forest, ground.whatif.timelines, child);
    is_wrapper.then(|| Chain {
        parent: launch.birth_command.name,
        links: vec![base_name(exec.path), base_name(real.path)],
        real: real.path,
        kind: Link::Wrapper,
    })
}

fn finding(ground: &Ground<'_, '_>, chain: &Chain<'_>, all: Vec<u32>) -> Finding {
    let links: Vec<String> = chain.links.iter().map(|link| name(link)).collect();
    let real = name(chain.real);
    let program = chain.links.last().copied().unwrap_or_default();
    let selected = match chain.kind {
        // A wrapper that launches the program keeps its own name.
        Link::Wrapper => chain.links[0],
        _ => program,
    };
    let before: u64 = all.iter().map(|index| before_real(ground, *index).0).sum();
    Finding {
        rule: "shims",
        title: format!(
            "{} reaches {} through {} {} times",
            name(chain.parent),
            name(program),
            links[..links.len() - 1].join(" and "),
            units::count(all.len() as u64)
        ),
        evidence: vec![
            format!("the chain: {}", links.join(" -> ")),
            format!(
                "{} take {} in all, {} of it before {real} begins",
                launches(all.len()),
                time(ground.spent_on(&all)),
                time(Nanos(before))
            ),
        ],
        example: ground.example(&all),
        fix: instructions(chain, &real),
        limits: match chain.kind {
            Link::Env => "the path of the interpreter is then fixed: other machines may have it elsewhere",
            Link::Chooser => {
                "the version is then fixed: what the shim looks up (a .tool-versions, a toolchain file) has no effect"
            }
            Link::Wrapper => {
                "what the wrapper sets (environment, arguments, limits) has to be set by who calls the program"
            }
        }
        .to_owned(),
        whatif: option("--direct", selected, chain.parent),
        tries: vec![Fix {
            change: Change::Direct,
            launches: all.clone(),
        }],
        basis: Basis::Measured,
        launches: all,
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
        Link::Env => vec![format!("name the interpreter in the script's first line: #!{real}")],
        Link::Chooser => vec![
            format!("call the program itself: {real}"),
            "  its path: pyenv which, rbenv which, asdf which, mise which, rustup which".to_owned(),
            "  or put its directory before the shims' in PATH for the length of the script".to_owned(),
        ],
        Link::Wrapper => vec![
            format!("call the program itself: {real}, with the arguments that the wrapper adds"),
            "  or end the wrapper with `exec PROGRAM ...`, which saves its waiting process".to_owned(),
        ],
    }
}
