//! Programs that are reached through others: `#!/usr/bin/env`, the shims of pyenv, rbenv, asdf and rustup, and wrapper scripts that
//! exec or launch the real program and do nothing else.

use std::collections::BTreeMap;

use super::super::context::{name, time};
use super::super::phrases::{launches, literal, option, quoted};
use super::super::thresholds::{HABIT, longest};
use super::super::{Basis, Finding, RuleContext};
use crate::analyze::launch::{Exec, Launch, base_name};
use crate::analyze::phases::Phase;
use crate::analyze::whatif::Fix;
use crate::analyze::whatif::changes::chains::{
    Link, begin, is_inside, is_recursion, is_same_script, is_shell_script, own_call,
};
use crate::analyze::whatif::changes::{Change, is_captured, wrapped_child};
use crate::event::Nanos;
use crate::units;

const MOST_FINDINGS: usize = 3;

/// A program reached through others.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Chain<'a> {
    /// Who calls the first of them: the parent, or what the process was before; `None` for the command itself.
    caller: Option<&'a [u8]>,
    /// The parent; `None` for the command itself.
    parent: Option<&'a [u8]>,
    /// As they come after each other, the real program last.
    links: Vec<&'a [u8]>,
    /// File of the real program.
    real: &'a [u8],
    kind: Link,
}

impl Chain<'_> {
    /// Whether its process was another program before, whose last command this is.
    fn is_last_command(&self) -> bool {
        self.caller != self.parent
    }
}

pub(super) fn find(context: &RuleContext<'_, '_>) -> Vec<Finding> {
    let mut chains: BTreeMap<Chain<'_>, Vec<u32>> = BTreeMap::new();
    for (index, launch) in (0..).zip(&context.forest().launches) {
        // What a version manager calls is no shim of its user's.
        if !launch.is_launch() || is_inside(context.forest(), index) {
            continue;
        }
        if let Some(chain) = executed_chain(context, index).or_else(|| launched_chain(context, index)) {
            chains.entry(chain).or_default().push(index);
        }
    }
    // A script that does much before it comes to the program is more than a way to it.
    let does_little = |chain: &Chain<'_>, all: &[u32]| {
        let of =
            |time: fn(&RuleContext<'_, '_>, u32) -> Nanos| all.iter().map(|index| time(context, *index).0).sum::<u64>();
        chain.kind != Link::Wrapper
            || of(own_work) <= of(|context, index| context.launch(index).tax().unwrap_or_default())
    };
    // What a version manager does before a program is known from a single time, and need never be done.
    let is_habit = |chain: &Chain<'_>, all: &[u32]| chain.kind == Link::Chooser || all.len() >= HABIT;
    let chains = chains
        .into_iter()
        .filter(|(chain, all)| is_habit(chain, all) && does_little(chain, all));
    longest(context, chains, MOST_FINDINGS)
        .into_iter()
        .map(|(chain, all)| finding(context, &chain, all))
        .collect()
}

/// A process that becomes one program after the other, in the end or all along.
fn executed_chain<'a>(context: &RuleContext<'_, 'a>, index: u32) -> Option<Chain<'a>> {
    let forest = context.forest();
    let launch = &forest.launches[index as usize];
    let begin = begin(forest, context.whatif.timelines, index);
    let (real, before) = launch.execs[begin..].split_last()?;
    if before.is_empty() || own_call(launch).is_some() {
        return None;
    }
    let kinds: Option<Vec<Link>> = before.iter().map(|exec| Link::of(exec, real)).collect();
    // A script that execs itself is no way to itself; that `#!/usr/bin/env` finds a shell, which reads the same script, is.
    let is_again = |exec: &&Exec<'_>| Link::of(exec, real) != Some(Link::EnvLine) && is_same_script(exec, real);
    if before.iter().any(|exec| is_again(&exec)) {
        return None;
    }
    let became = begin
        .checked_sub(1)
        .map(|before| base_name(launch.execs[before].path()));
    Some(Chain {
        caller: became.or(parent_of(launch)),
        parent: parent_of(launch),
        links: launch.execs[begin..]
            .iter()
            .map(|exec| base_name(exec.path()))
            .collect(),
        real: real.path(),
        kind: kinds?.into_iter().max()?,
    })
}

fn parent_of<'a>(launch: &Launch<'a>) -> Option<&'a [u8]> {
    launch.parent.get().map(|_| launch.birth_command.name)
}

/// The execs of a process from the first of its chain on.
fn chained<'g, 'a>(context: &'g RuleContext<'_, 'a>, index: u32) -> &'g [Exec<'a>] {
    let begin = begin(context.forest(), context.whatif.timelines, index);
    context.launch(index).execs.get(begin..).unwrap_or_default()
}

/// Wall time of a launch without what its process did before the chain.
fn spent(context: &RuleContext<'_, '_>, index: u32) -> Nanos {
    let (launch, chained) = (context.launch(index), chained(context, index));
    let first = chained.first().filter(|_| chained.len() < launch.execs.len());
    let before = first.and_then(|first| Some(first.enter.get()?.since(launch.start()?)));
    context.spent_on(&[index]).since(before.unwrap_or_default())
}

/// What a launch did that was not the real program's.
fn own_work(context: &RuleContext<'_, '_>, index: u32) -> Nanos {
    let launch = context.launch(index);
    if let [_] = &launch.execs[..] {
        let of_real = wrapped_child(context.forest(), index).map(|child| context.spent_on(&[child]));
        let run = launch.phases.get(Phase::Run).unwrap_or_default();
        return run.since(of_real.unwrap_or_default());
    }
    let between = chained(context, index).windows(2).filter_map(|pair| {
        let ready = pair[0].loaded.get().or(pair[0].returned.get())?;
        Some(pair[1].enter.get()?.since(ready).0)
    });
    Nanos(between.sum())
}

/// A script that launches one program, waits for it, and ends.
fn launched_chain<'a>(context: &RuleContext<'_, 'a>, index: u32) -> Option<Chain<'a>> {
    let forest = context.forest();
    let launch = &forest.launches[index as usize];
    let [exec] = &launch.execs[..] else { return None };
    let child = wrapped_child(forest, index).filter(|_| is_shell_script(exec))?;
    let real = forest.launches[child as usize].execs.last()?;
    let is_read = is_captured(forest, context.whatif.timelines, child);
    (!is_read && !is_recursion(forest, index, real)).then(|| Chain {
        caller: parent_of(launch),
        parent: parent_of(launch),
        links: vec![base_name(exec.path()), base_name(real.path())],
        real: real.path(),
        kind: Link::Wrapper,
    })
}

fn finding(context: &RuleContext<'_, '_>, chain: &Chain<'_>, all: Vec<u32>) -> Finding {
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
    Finding {
        rule: "shims",
        title: format!(
            "{} reaches {} through {between}{}",
            chain.caller.map_or_else(|| "the command".to_owned(), name),
            name(program),
            times(chain, all.len())
        ),
        evidence: evidence(context, chain, &all),
        example: context.example(&all),
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

fn evidence(context: &RuleContext<'_, '_>, chain: &Chain<'_>, all: &[u32]) -> Vec<String> {
    let links: Vec<String> = chain.links.iter().map(|link| name(link)).collect();
    let sum = |of: fn(&RuleContext<'_, '_>, u32) -> Nanos| Nanos(all.iter().map(|index| of(context, *index).0).sum());
    let took = match all.len() {
        1 => "it takes".to_owned(),
        count => format!("{} take", launches(count)),
    };
    let mut evidence = vec![
        format!("the chain: {}", links.join(" -> ")),
        format!(
            "{took} {} in all, {} of it before {} begins",
            time(sum(spent)),
            time(sum(before_real)),
            name(chain.real)
        ),
    ];
    if let Some(caller) = chain.caller.filter(|_| chain.is_last_command()) {
        evidence.push(format!(
            "it is the last command of {}, whose process becomes it; what that did before stays",
            name(caller)
        ));
    }
    evidence
}

fn times(chain: &Chain<'_>, count: usize) -> String {
    match (chain.caller, count) {
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
fn before_real(context: &RuleContext<'_, '_>, index: u32) -> Nanos {
    let launch = context.launch(index);
    let first = chained(context, index).first().and_then(|exec| exec.enter.get());
    let real = match &launch.execs[..] {
        [_] => wrapped_child(context.forest(), index).and_then(|child| context.launch(child).start()),
        execs => execs.last().and_then(|exec| exec.enter.get()),
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
