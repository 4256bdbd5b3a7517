//! Programs that are launched through other programs: `#!/usr/bin/env`, the shims of pyenv, rbenv,
//! asdf and rustup, and wrapper scripts that only exec or launch the real program. Commands for a
//! shell's start-up file that print the same text each time: `npm completion`, `direnv hook bash`,
//! and calls of version managers, such as `eval "$(pyenv init -)"`, which starts a dozen scripts.

use crate::explain::advice::context::{MIN_REPETITIONS, RuleContext};
use crate::explain::advice::finding::Finding;
use crate::explain::advice::phrases::{literal, name, option, quoted, time};
use crate::model::grouped::grouped;
use crate::model::launch::{Exec, Launch, base_name, remembered};
use crate::model::phases::Phase;
use crate::patterns::calls::Call;
use crate::patterns::chains::{
    Link, chain_start, direct_manager_call, is_in_version_manager, is_recursion, is_same_script, is_shell_script,
};
use crate::patterns::package_scripts::ScriptCall;
use crate::patterns::shells::{Dialect, is_shell, wrapped_child};
use crate::patterns::words::Words;
use crate::predict::whatif::changes::Change;
use spawnscope_data::event::Nanos;

const MAX_FINDINGS: usize = 3;
/// First arguments with which any program prints its completions.
const COMPLETIONS: [&[u8]; 2] = [b"completion", b"completions"];
/// Programs that print other code, and their first argument. Programs whose output differs from
/// shell to shell (`fnm env`), or has the value of PATH (`mise activate`, `opam env`), are not
/// listed.
const PRINTERS: Words = Words(
    "atuin:init brew:shellenv broot:--print-shell-function conda:shell.bash conda:shell.zsh dircolors:-b
     direnv:hook fzf:--bash fzf:--zsh jump:shell mcfly:init nodenv:init oh-my-posh:init plenv:init
     pyenv:init pyenv:virtualenv-init rbenv:init starship:init thefuck:--alias zoxide:init",
);
/// Commands of version managers whose output a start-up file evaluates.
const INIT: [&[u8]; 3] = [b"activate", b"init", b"virtualenv-init"];

/// A program that is launched through other programs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Chain<'a> {
    /// The program that calls the first link: the parent, or the previous program of the process.
    /// `None` for the recorded command.
    caller: Option<&'a [u8]>,
    /// The program of the parent. `None` for the recorded command.
    parent: Option<&'a [u8]>,
    /// The names of the programs in order, the real program last.
    links: Vec<&'a [u8]>,
    /// Path of the real program.
    real: &'a [u8],
    kind: Link,
}

pub(super) fn find(context: &RuleContext<'_, '_>) -> Vec<Finding> {
    let launches = (0..).zip(&context.forest().launches).filter(|(_, launch)| launch.is_launch());
    // The user does not maintain the scripts of a version manager.
    let own = launches.filter(|(index, _)| !is_in_version_manager(context.forest(), *index));
    // The work of a version manager is never needed.
    let is_frequent = |kind: Link, all: &[u32]| kind == Link::VersionManager || all.len() >= MIN_REPETITIONS;
    let chain = |index| executed_chain(context, index).or_else(|| launched_chain(context, index));
    let chains = grouped(own.filter_map(|(index, _)| Some((chain(index)?, index))))
        .into_iter()
        .filter(|(chain, all)| is_frequent(chain.kind, all) && does_little(context, chain.kind, all));
    context.longest(chains, MAX_FINDINGS).map(|(chain, all)| finding(context, &chain, all)).collect()
}

/// Whether a wrapper script does little besides running the real program. A script that does more
/// is not only a wrapper.
fn does_little(context: &RuleContext<'_, '_>, kind: Link, all: &[u32]) -> bool {
    let tax = |index| context.launch(index).tax().unwrap_or_default();
    kind != Link::Wrapper || sum(all, |index| own_work(context, index)) <= sum(all, tax)
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
        links: names(&launch.execs[start..].iter().map(Exec::path).collect::<Vec<_>>()),
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
        links: names(&[exec.path(), real.path()]),
        real: real.path(),
        kind: Link::Wrapper,
    })
}

fn finding(context: &RuleContext<'_, '_>, chain: &Chain<'_>, all: Vec<u32>) -> Finding {
    let program = base_name(chain.real);
    // A wrapper that launches the program keeps its own name. One that execs it can be selected by
    // either name.
    let selected = if chain.kind == Link::Wrapper { base_name(chain.links[0]) } else { program };
    let option = match chain.parent {
        Some(parent) => option("--direct", selected, parent),
        None => quoted(&format!("--direct={}", literal(selected))),
    };
    let links: Vec<String> = chain.links.iter().map(|link| name(link)).collect();
    let between = match &links[..links.len() - 1] {
        [link] => link.clone(),
        // Counts execs, not programs, because a file may be executed several times.
        others => format!("{} earlier execs", others.len()),
    };
    let caller = chain.caller.map(name).unwrap_or_default();
    let values = [
        ("caller", &caller[..]),
        // The process ran another program before.
        ("last", if chain.caller == chain.parent { "" } else { &caller }),
        ("program", &name(program)),
        ("between", &between),
        ("links", &links.join(" -> ")),
        ("took", &time(sum(&all, |index| spent(context, index)))),
        ("before", &time(sum(&all, |index| before_real(context, index)))),
        ("real", &name(chain.real)),
    ];
    let cases = [
        &format!("{:?}", chain.kind)[..],
        if all.len() == 1 { "once" } else { "several" },
        // A wrapper that execs the program already saves that process.
        if context.launch(all[0]).execs.len() == 1 { "launched" } else { "" },
    ];
    Finding::of(context, "shims", all, &cases, &values).predicted_by(Change::Direct, option)
}

/// Returns the names of programs. One with the same name as its neighbour is shown with its path.
fn names<'a>(paths: &[&'a [u8]]) -> Vec<&'a [u8]> {
    let is_ambiguous = |at: usize| {
        let neighbours = [at.checked_sub(1), Some(at + 1)].into_iter().flatten();
        neighbours.filter_map(|other| paths.get(other)).any(|other| base_name(other) == base_name(paths[at]))
    };
    (0..paths.len()).map(|at| if is_ambiguous(at) { paths[at] } else { base_name(paths[at]) }).collect()
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

pub(super) fn printed_code(context: &RuleContext<'_, '_>) -> Vec<Finding> {
    let printed_by = remembered(|exec| {
        let call = Call::of(exec).filter(|call| prints_constant_code(call.name, &call.arguments))?;
        Some([&[call.name], &call.arguments[..]].concat())
    });
    let calls = context.grouped_by(|index, launch| {
        let manager = direct_manager_call(launch).filter(|_| !is_in_version_manager(context.forest(), index));
        let words = manager.or_else(|| {
            let words = launch.execs.last().and_then(&printed_by)?;
            is_shell(context.forest().launcher(index as usize)?.program_name()).then_some(words)
        });
        Some((launch.birth_command.name, words?))
    });
    let calls = context.longest(calls, MAX_FINDINGS);
    calls.filter_map(|((_, words), all)| constant_code(context, &words, all)).collect()
}

/// Returns the finding about a call. `None` for commands that change something, such as `pyenv
/// install`.
fn constant_code(context: &RuleContext<'_, '_>, words: &[&[u8]], all: Vec<u32>) -> Option<Finding> {
    let (program, command, call) = (name(words.first()?), *words.get(1)?, name(&words.join(&b' ')));
    let is_manager = direct_manager_call(context.launch(all[0])).is_some();
    let is_completion = COMPLETIONS.contains(&command);
    let is_zsh = Dialect::of_parent(context.forest(), all[0] as usize) == Some(Dialect::Zsh);
    let prints_code = is_completion || !is_manager || INIT.contains(&command);
    let (key, case) = match prints_code {
        true => ("printed-code", if is_completion && !is_zsh { "completion" } else { "" }.to_owned()),
        false => ("manager-query", name(command)),
    };
    let purpose = match command {
        _ if is_completion => "completion".to_owned(),
        _ if INIT.contains(&command) => name(command),
        _ => "init".to_owned(),
    };
    let rule = if is_manager { "version-manager" } else { "shell-code" };
    let count = if all.len() == 1 { "once" } else { "several" };
    let values = [("program", &program[..]), ("call", &call), ("purpose", &purpose)];
    let finding = Finding::of(context, rule, all, &[count], &values)
        .recipe(context, key, &[&case], &values)
        .predicted_as(context, Change::Remove);
    // Other commands change something.
    (!finding.fix.is_empty()).then_some(finding)
}

/// Whether a program prints code for a shell that is the same each time.
pub(crate) fn prints_constant_code(program: &[u8], arguments: &[&[u8]]) -> bool {
    let first = arguments.first().copied().unwrap_or_default();
    COMPLETIONS.contains(&first) || PRINTERS.contains(&[program, b":", first].concat())
}
