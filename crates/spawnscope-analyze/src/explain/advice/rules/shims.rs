//! Programs that are launched through other programs: `#!/usr/bin/env`, the shims of pyenv, rbenv,
//! asdf and rustup, and wrapper scripts that only exec or launch the real program.

use crate::explain::advice::context::{MIN_REPETITIONS, RuleContext};
use crate::explain::advice::finding::Finding;
use crate::explain::advice::phrases::{self, literal, name, option, quoted, time};
use crate::explain::advice::thresholds::longest_groups;
use crate::model::grouped::grouped;
use crate::model::launch::{Exec, Launch, base_name};
use crate::model::phases::Phase;
use crate::patterns::chains::{
    Link, chain_start, direct_manager_call, is_in_version_manager, is_recursion, is_same_script, is_shell_script,
};
use crate::patterns::package_scripts::ScriptCall;
use crate::patterns::shells::wrapped_child;
use crate::predict::whatif::changes::Change;
use spawnscope_data::event::Nanos;

const MAX_FINDINGS: usize = 3;

/// A program that is launched through other programs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Chain<'a> {
    /// The program that calls the first link: the parent, or the previous program of the process.
    /// `None` for the recorded command.
    caller: Option<&'a [u8]>,
    /// The program of the parent. `None` for the recorded command.
    parent: Option<&'a [u8]>,
    /// The programs in order, the real program last.
    links: Vec<&'a [u8]>,
    /// Path of the real program.
    real: &'a [u8],
    kind: Link,
}

impl Chain<'_> {
    /// Whether the process ran another program before, and the chain is its last command.
    fn is_last_command(&self) -> bool {
        self.caller != self.parent
    }
}

pub(super) fn find(context: &RuleContext<'_, '_>) -> Vec<Finding> {
    let launches = (0..).zip(&context.forest().launches).filter(|(_, launch)| launch.is_launch());
    // The user does not maintain the scripts of a version manager.
    let own = launches.filter(|(index, _)| !is_in_version_manager(context.forest(), *index));
    let chain = |index| executed_chain(context, index).or_else(|| launched_chain(context, index));
    let chains = grouped(own.filter_map(|(index, _)| Some((chain(index)?, index))))
        .into_iter()
        .filter(|(chain, all)| is_frequent(chain, all) && does_little(context, chain, all));
    longest_groups(context, chains, MAX_FINDINGS)
        .into_iter()
        .map(|(chain, all)| finding(context, &chain, all))
        .collect()
}

/// Whether there are enough launches to report. For a version manager, whose work is never needed,
/// a single launch is enough.
fn is_frequent(chain: &Chain<'_>, all: &[u32]) -> bool {
    chain.kind == Link::VersionManager || all.len() >= MIN_REPETITIONS
}

/// Whether a wrapper script does little besides running the real program. A script that does more
/// is not only a wrapper.
fn does_little(context: &RuleContext<'_, '_>, chain: &Chain<'_>, all: &[u32]) -> bool {
    chain.kind != Link::Wrapper
        || sum(all, |index| own_work(context, index))
            <= sum(all, |index| context.launch(index).tax().unwrap_or_default())
}

fn sum(all: &[u32], span: impl Fn(u32) -> Nanos) -> Nanos {
    Nanos(all.iter().map(|index| span(*index).0).sum())
}

/// Returns the chain of a process that execs one program after the other.
fn executed_chain<'a>(context: &RuleContext<'_, 'a>, index: u32) -> Option<Chain<'a>> {
    let forest = context.forest();
    let launch = &forest.launches[index as usize];
    let start = chain_start(forest, context.timelines(), index);
    let (real, before) = launch.execs[start..].split_last()?;
    // Without the launch of a package manager for a script, much more than its `#!` line is saved.
    let is_other_advice = direct_manager_call(launch).is_some() || ScriptCall::of(forest, index).is_some();
    if before.is_empty() || is_other_advice {
        return None;
    }
    let kinds: Option<Vec<Link>> = before.iter().map(|exec| Link::of(exec, real)).collect();
    // A script that execs itself is not a shim. But `#!/usr/bin/env` followed by a shell that reads
    // the same script is a shim.
    let mut others = before.iter().filter(|exec| Link::of(exec, real) != Some(Link::EnvLine));
    if others.any(|exec| is_same_script(exec, real)) {
        return None;
    }
    let previous = start.checked_sub(1).map(|before| base_name(launch.execs[before].path()));
    Some(Chain {
        caller: previous.or(parent_of(launch)),
        parent: parent_of(launch),
        links: launch.execs[start..].iter().map(|exec| base_name(exec.path())).collect(),
        real: real.path(),
        kind: kinds?.into_iter().max()?,
    })
}

fn parent_of<'a>(launch: &Launch<'a>) -> Option<&'a [u8]> {
    launch.parent.get().map(|_| launch.birth_command.name)
}

/// Returns the execs of a process from the beginning of its chain.
fn chain_execs<'g, 'a>(context: &'g RuleContext<'_, 'a>, index: u32) -> &'g [Exec<'a>] {
    let start = chain_start(context.forest(), context.timelines(), index);
    context.launch(index).execs.get(start..).unwrap_or_default()
}

/// Returns the wall time of a launch, without the time before the chain.
fn spent(context: &RuleContext<'_, '_>, index: u32) -> Nanos {
    let (launch, chain_execs) = (context.launch(index), chain_execs(context, index));
    let first = chain_execs.first().filter(|_| chain_execs.len() < launch.execs.len());
    let before = first.and_then(|first| Some(first.enter.get()?.since(launch.start()?)));
    context.spent_on(&[index]).since(before.unwrap_or_default())
}

/// Returns the work of the programs before the real program.
fn own_work(context: &RuleContext<'_, '_>, index: u32) -> Nanos {
    let launch = context.launch(index);
    if let [_] = &launch.execs[..] {
        let real_time = wrapped_child(context.forest(), index).map(|child| context.spent_on(&[child]));
        let run = launch.phases.get(Phase::Run).unwrap_or_default();
        return run.since(real_time.unwrap_or_default());
    }
    let between = chain_execs(context, index).windows(2).filter_map(|pair| {
        let loaded = pair[0].load_end.get().or(pair[0].returned.get())?;
        Some(pair[1].enter.get()?.since(loaded).0)
    });
    Nanos(between.sum())
}

/// Returns the chain of a script that launches one program, waits for it, and ends.
fn launched_chain<'a>(context: &RuleContext<'_, 'a>, index: u32) -> Option<Chain<'a>> {
    let forest = context.forest();
    let launch = &forest.launches[index as usize];
    let [exec] = &launch.execs[..] else { return None };
    let child = wrapped_child(forest, index).filter(|_| is_shell_script(exec))?;
    let real = forest.launches[child as usize].execs.last()?;
    let is_read = context.is_captured(child);
    // A wrapper passes its arguments on.
    let mut own = exec.arguments().skip(2).peekable();
    let passes = own.peek().is_none() || own.any(|argument| real.arguments().any(|other| other == argument));
    (passes && !is_read && !is_recursion(forest, index, real)).then(|| Chain {
        caller: parent_of(launch),
        parent: parent_of(launch),
        links: vec![base_name(exec.path()), base_name(real.path())],
        real: real.path(),
        kind: Link::Wrapper,
    })
}

fn finding(context: &RuleContext<'_, '_>, chain: &Chain<'_>, all: Vec<u32>) -> Finding {
    let links = named_links(context, chain, all[0]);
    let real = name(chain.real);
    let program = chain.links.last().copied().unwrap_or_default();
    // A wrapper that launches the program keeps its own name. One that execs it can be selected by
    // either name.
    let is_wrapper = chain.kind == Link::Wrapper;
    let selected = if is_wrapper { chain.links[0] } else { program };
    let title = title(chain, &links, &name(program), all.len());
    let option = match chain.parent {
        Some(parent) => option("--direct", selected, parent),
        None => quoted(&format!("--direct={}", literal(selected))),
    };
    let took = match all.len() {
        1 => "it takes".to_owned(),
        count => format!("{} take a total of", phrases::launches(count)),
    };
    let spent = time(sum(&all, |index| spent(context, index)));
    let before = time(sum(&all, |index| before_real(context, index)));
    let caller = chain.caller.filter(|_| chain.is_last_command());
    let is_launched = context.launch(all[0]).execs.len() == 1;
    let kind = format!("{:?}", chain.kind);
    let in_process = if is_launched { "" } else { " of execs in one process" };
    Finding::measured("shims", title, all)
        .fixed_elsewhere()
        .evidence(format!("the chain{in_process}: {}", links.join(" -> ")))
        .evidence(format!("{took} {spent}, {before} of it before {real} begins"))
        .evidence_lines(caller.map(|caller| {
            format!(
                "it is the last command of {}, which execs it; the earlier work of that process remains",
                name(caller)
            )
        }))
        .with_example(context)
        // A wrapper that execs the program already saves that process.
        .recipe("shims", &[&kind, if is_launched { "launched" } else { "" }], &[("real", &real)])
        .predicted_by(Change::Direct, option)
}

fn title(chain: &Chain<'_>, links: &[String], program: &str, count: usize) -> String {
    let between = match &links[..links.len() - 1] {
        [link] => link.clone(),
        // Counts execs, not programs, because a file may be executed several times.
        others => format!("{} earlier execs", others.len()),
    };
    // The command itself is launched once, by the recorder.
    let launches = chain.caller.map_or_else(
        || "the recorded command reaches the real".to_owned(),
        |caller| format!("{} launches", name(caller)),
    );
    format!("{launches} {program} through {between}{}", times(chain, count))
}

/// Returns the names of the links. A link with the same name as its neighbour is shown with its
/// path.
fn named_links(context: &RuleContext<'_, '_>, chain: &Chain<'_>, example: u32) -> Vec<String> {
    let execs = chain_execs(context, example);
    let child = wrapped_child(context.forest(), example).filter(|_| execs.len() == 1);
    let launched = child.and_then(|child| context.launch(child).execs.last());
    let paths: Vec<&[u8]> = execs.iter().chain(launched).map(|exec| exec.path()).collect();
    let links = chain.links.iter().enumerate().map(|(at, link)| {
        let neighbours = [at.checked_sub(1), Some(at + 1)].into_iter().flatten();
        let is_ambiguous = neighbours.filter_map(|other| chain.links.get(other)).any(|other| other == link);
        match paths.get(at) {
            Some(path) if is_ambiguous => name(path),
            _ => name(link),
        }
    });
    links.collect()
}

fn times(chain: &Chain<'_>, count: usize) -> String {
    match (chain.caller, count) {
        (None, 1) => String::new(),
        (_, 1) => " once".to_owned(),
        _ => format!(" {}", phrases::times(count)),
    }
}

/// Returns the time from the first exec of the chain until the exec or the launch of the real
/// program.
fn before_real(context: &RuleContext<'_, '_>, index: u32) -> Nanos {
    let launch = context.launch(index);
    let first = chain_execs(context, index).first().and_then(|exec| exec.enter.get());
    let real = match &launch.execs[..] {
        [_] => wrapped_child(context.forest(), index).and_then(|child| context.launch(child).start()),
        execs => execs.last().and_then(|exec| exec.enter.get()),
    };
    first.zip(real).map(|(first, real)| real.since(first)).unwrap_or_default()
}
