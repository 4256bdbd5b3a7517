//! Commands that a program starts through a shell again and again, as coding agents do: how long
//! each waits from the launch of its shell until its own program is executed, and what happens
//! until then. The rule `tool_calls` makes advice of it.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use crate::model::launch::{Exec, Launch, base_name};
use crate::model::tree::Forest;
use crate::patterns::runtimes::Runtime;
use crate::patterns::shells::is_shell;
use spawnscope_data::event::Nanos;
use spawnscope_data::statistics::quantile;

pub use crate::explain::advice::fixes;

/// Fewer commands of a kind are not reported.
const MIN_CALLS: usize = 5;
/// A place in a program that launches at least this many different programs gets its commands from
/// elsewhere. Fewer may be named in its code.
const MIN_PROGRAMS: usize = 3;
/// The shell whose lines are never recorded.
pub(super) const FISH: &[u8] = b"fish";

/// Commands that one process started in the same way.
#[derive(Clone, Debug)]
pub struct ToolCalls {
    /// The program that started them.
    pub caller: Vec<u8>,
    /// How: the programs before the shell, and the shell with its options, as in `bwrap bash -lc`.
    pub shape: String,
    /// Whether the shell reads the files of a login shell.
    pub is_login: bool,
    /// The number of commands.
    pub count: usize,
    /// The median, the 95th percentile and the maximum of the time from the launch to the exec of
    /// the command's own program.
    pub delay: [Nanos; 3],
    /// What the shell started until then, the longest first.
    pub causes: Vec<Cause>,
    /// The launches that lines of files caused, by index.
    pub launches: Vec<u32>,
    /// Whether the texts of the commands name these files.
    pub sources_files: bool,
}

/// Why commands wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// Their shell starts something for a line of a file. The lines of fish are unknown.
    StartUp,
    /// A program starts the shell, such as a sandbox.
    Wrapper,
    /// The program that they name is a script that executes the real one.
    Shim,
    /// The same command is executed before each of them.
    Hook,
}

/// Something that delays commands.
#[derive(Clone, Debug)]
pub struct Cause {
    /// Why it does so.
    pub reason: Reason,
    /// The line of a file and the program, the program that starts the shell, the file of the shim,
    /// or the command line of the hook.
    pub label: Vec<u8>,
    /// The number of commands that it delays.
    pub calls: usize,
    /// Its time per command.
    pub time: Nanos,
}

/// One command: from its launch to its own exec.
struct Call<'a> {
    /// The launch and its shell, by their indices.
    top: usize,
    shell: usize,
    text: &'a [u8],
    /// The name of its own program.
    program: &'a [u8],
    delay: Nanos,
    causes: BTreeMap<(Reason, Vec<u8>), u64>,
    launches: Vec<u32>,
    sources_files: bool,
}

/// Calls by caller, by `shape`, and by whether their shells are login shells.
type Kinds<'a> = BTreeMap<(usize, String, bool), Vec<Call<'a>>>;

/// Returns the calls that a program makes again and again.
fn kinds_of<'a>(forest: &Forest<'a>) -> Kinds<'a> {
    let mut kinds: Kinds<'a> = BTreeMap::new();
    for (index, launch) in forest.launches.iter().enumerate() {
        let Some((at, shell)) = launch.execs.iter().enumerate().find_map(|(at, exec)| Some((at, ShellCall::of(exec)?)))
        else {
            continue;
        };
        let (top, mut wrappers) = outermost(forest, index);
        let Some(caller) = forest.parent(top).filter(|caller| !is_shell(forest.launches[*caller].command.name)) else {
            continue;
        };
        let own = launch.execs[..at].iter();
        wrappers.extend(own.map(|exec| String::from_utf8_lossy(exec.program_name()).into_owned()));
        if let Some(call) = call(forest, top, index, at, &shell) {
            let shape = wrappers.iter().chain([&shell.shape]).map(String::as_str).collect::<Vec<_>>().join(" ");
            kinds.entry((caller, shape, shell.is_login)).or_default().push(call);
        }
    }
    kinds.retain(|_, calls| calls.len() >= MIN_CALLS);
    kinds
}

/// Returns for each launch whether it is a command that its launcher was given, as commands are
/// given to a coding agent: one place in the launcher's code executes different commands. What a
/// script or a start-up file launches does not count.
#[must_use]
pub fn given_commands(forest: &Forest<'_>) -> Vec<bool> {
    let mut given = vec![false; forest.launches.len()];
    let mut places: BTreeMap<_, Vec<Call<'_>>> = BTreeMap::new();
    for ((caller, shape, _), calls) in kinds_of(forest) {
        for call in calls {
            let launch = &forest.launches[call.top];
            places.entry((caller, shape.clone(), launch.script_stack.or(launch.native_stack))).or_default().push(call);
        }
    }
    for ((caller, _, stack), calls) in places {
        let programs: BTreeSet<&[u8]> = calls.iter().map(|call| call.program).collect();
        // A script whose lines were not recorded may name each of the commands itself.
        let runtime = Runtime::named(forest.launches[caller].command.name);
        let is_place = runtime != Runtime::Make && (stack.is_some() || runtime == Runtime::Native);
        if is_place && programs.len() >= MIN_PROGRAMS {
            calls.iter().for_each(|call| (given[call.top], given[call.shell]) = (true, true));
        }
    }
    // Parents come before their children.
    for index in 0..given.len() {
        let is_below = forest.parent(index).is_some_and(|parent| given[parent])
            && forest.launcher(index).is_some_and(|shell| is_shell(shell.program_name()));
        given[index] |= is_below && file_line(forest, index).is_none();
    }
    given
}

/// Returns the kinds of commands whose own program is delayed by what their shell does first.
#[must_use]
pub fn tool_calls(forest: &Forest<'_>) -> Vec<ToolCalls> {
    let kinds = kinds_of(forest)
        .into_iter()
        .map(|((caller, shape, is_login), calls)| kind(forest, caller, shape, is_login, calls));
    // Shells that start nothing of their own are an ordinary way to start a command.
    let mut kinds: Vec<ToolCalls> = kinds.filter(|kind| kind.is_login || !kind.causes.is_empty()).collect();
    kinds.sort_by_key(|kind| Reverse(kind.delay[0].0 * kind.count as u64));
    kinds
}

fn kind(forest: &Forest<'_>, caller: usize, shape: String, is_login: bool, mut calls: Vec<Call<'_>>) -> ToolCalls {
    add_hook(forest, caller, &mut calls);
    let delays = || calls.iter().map(|call| call.delay.0 as f64).collect();
    ToolCalls {
        caller: forest.launches[caller].command.label(),
        shape,
        is_login,
        count: calls.len(),
        delay: [0.5, 0.95, 1.0].map(|share| Nanos(quantile(delays(), share) as u64)),
        causes: causes(&calls),
        launches: calls.iter().flat_map(|call| call.launches.iter().copied()).collect(),
        sources_files: calls.iter().any(|call| call.sources_files),
    }
}

/// Adds the command that the caller executes right before each call, if it is the same each time
/// although the calls differ.
fn add_hook(forest: &Forest<'_>, caller: usize, calls: &mut [Call<'_>]) {
    let siblings = forest.children(caller);
    let before = calls.iter().map(|call| {
        let at = siblings.binary_search(&call.top).ok()?.checked_sub(1)?;
        let launch = &forest.launches[siblings[at]];
        let has_ended = launch.end()? <= forest.launches[call.top].start()?;
        let words: Vec<&[u8]> = launch.execs.first().filter(|_| has_ended)?.arguments().collect();
        Some((words.join(&b' '), length(launch, launch.end()?)))
    });
    let Some(before) = before.collect::<Option<Vec<_>>>() else { return };
    let is_same = before.iter().all(|(words, _)| *words == before[0].0);
    if is_same && calls.iter().any(|call| call.text != calls[0].text) {
        for (call, (words, time)) in calls.iter_mut().zip(before) {
            call.causes.insert((Reason::Hook, words), time);
        }
    }
}

/// A shell that executes a text.
struct ShellCall<'a> {
    name: &'a [u8],
    shape: String,
    is_login: bool,
    text: &'a [u8],
}

impl<'a> ShellCall<'a> {
    fn of(exec: &Exec<'a>) -> Option<ShellCall<'a>> {
        let name = Some(base_name(exec.path())).filter(|name| is_shell(name) || *name == FISH)?;
        let mut shape = String::from_utf8_lossy(name).into_owned();
        let (mut is_command, mut is_login, mut has_value) = (false, false, false);
        let mut text = None;
        for argument in exec.arguments().skip(1) {
            let options = argument.strip_prefix(b"-").or_else(|| argument.strip_prefix(b"+"));
            let Some(options) = options.or_else(|| has_value.then_some(&b"-"[..])) else {
                text = Some(argument);
                break;
            };
            let is_long = options.starts_with(b"-");
            is_command |= !is_long && options.contains(&b'c');
            is_login |= options == b"-login" || !is_long && options.contains(&b'l');
            has_value = !is_long && matches!(options.last(), Some(b'o' | b'O'));
            shape.push(' ');
            shape.push_str(&String::from_utf8_lossy(argument));
        }
        text.filter(|_| is_command).map(|text| ShellCall { name, shape, is_login, text })
    }

    fn names(&self, program: &[u8]) -> bool {
        let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || b"._-+/".contains(byte);
        self.text.split(|byte| !is_word(byte)).any(|word| base_name(word) == program)
    }
}

/// Returns the launch of the program that was started in order to start this shell, and the names
/// of such programs from there on. Each has started nothing else.
fn outermost(forest: &Forest<'_>, shell: usize) -> (usize, Vec<String>) {
    let (mut top, mut wrappers) = (shell, Vec::new());
    while let Some(parent) = forest.parent(top) {
        let launch = &forest.launches[parent];
        let has_caller = launch.is_launch() && forest.parent(parent).is_some();
        if !has_caller || forest.children(parent).len() != 1 || is_shell(launch.command.name) {
            break;
        }
        wrappers.insert(0, String::from_utf8_lossy(launch.command.name).into_owned());
        top = parent;
    }
    (top, wrappers)
}

/// Returns how long the command's own program was delayed, and by what; `None` if no such program
/// was executed.
fn call<'a>(forest: &Forest<'a>, top: usize, shell: usize, at: usize, command: &ShellCall<'a>) -> Option<Call<'a>> {
    let launch = &forest.launches[shell];
    let start = forest.launches[top].start()?;
    let shell_exec = launch.execs[at].entered()?;
    let children = forest.children(shell);
    let in_child = children.iter().filter(|child| file_line(forest, **child).is_none());
    let in_child = in_child.filter_map(|child| own_execs(&forest.launches[*child].execs, command));
    let in_place = own_execs(&launch.execs[at + 1..], command);
    let [own, real] = in_place.into_iter().chain(in_child).min_by_key(|[own, _]| own.entered())?;
    let (real, own, shim, program) = (real.entered()?, own.entered()?, own.path(), own.file_name());
    let (mut causes, mut launches, mut sources_files) = (BTreeMap::new(), Vec::new(), false);
    if top != shell || at > 0 {
        let name = forest.launches[top].execs.first().map_or(&b""[..], |exec| exec.program_name());
        causes.insert((Reason::Wrapper, name.to_vec()), shell_exec.since(start).0);
    }
    if real > own {
        causes.insert((Reason::Shim, shim.to_vec()), real.since(own).0);
    }
    // What a program before the shell launched is no line of the shell's files.
    let is_before =
        |child: &&usize| forest.launches[**child].start().is_some_and(|start| start >= shell_exec && start < own);
    for index in children.iter().filter(is_before) {
        let child = &forest.launches[*index];
        let line = file_line(forest, *index);
        let place = match line {
            Some((file, line)) => [file, format!(":{line}").as_bytes()].concat(),
            None if command.name == FISH && own_execs(&child.execs, command).is_none() => b"config.fish".to_vec(),
            None => continue,
        };
        launches.push(*index as u32);
        sources_files |= line.is_some_and(|(file, _)| command.names(base_name(file)));
        let label = [&place, &b"  "[..], &child.command.label()].concat();
        *causes.entry((Reason::StartUp, label)).or_default() += length(child, own);
    }
    let (text, delay) = (command.text, real.since(start));
    Some(Call { top, shell, text, program, delay, causes, launches, sources_files })
}

/// Returns the exec of the program that a command names, and the last one of this name: the first
/// one may be a script that executes the real program.
fn own_execs<'f, 'a>(execs: &'f [Exec<'a>], command: &ShellCall<'_>) -> Option<[&'f Exec<'a>; 2]> {
    let own = execs.iter().find(|exec| command.names(exec.file_name()) && exec.entered().is_some())?;
    let real = execs.iter().rfind(|exec| exec.file_name() == own.file_name() && exec.entered().is_some())?;
    Some([own, real])
}

fn length(launch: &Launch<'_>, until: Nanos) -> u64 {
    let end = launch.end().map_or(until, |end| end.min(until));
    launch.start().map_or(0, |start| end.since(start).0)
}

/// Returns the line of a file that requested a launch: of the outermost file, which the shell reads
/// first.
fn file_line<'a>(forest: &Forest<'a>, launch: usize) -> Option<(&'a [u8], u32)> {
    let frames = forest.frames(forest.launches[launch].script_stack);
    let frame = frames.filter(|frame| frame.file.is_some() && frame.line.is_some()).last()?;
    frame.file.zip(frame.line)
}

fn causes(calls: &[Call<'_>]) -> Vec<Cause> {
    let mut found: BTreeMap<&(Reason, Vec<u8>), (usize, u64)> = BTreeMap::new();
    for (cause, time) in calls.iter().flat_map(|call| &call.causes) {
        let (count, sum) = found.entry(cause).or_default();
        (*count, *sum) = (*count + 1, *sum + time);
    }
    let cause = |((reason, label), (count, sum)): (&(Reason, Vec<u8>), (usize, u64))| Cause {
        reason: *reason,
        label: label.clone(),
        calls: count,
        time: Nanos(sum / calls.len() as u64),
    };
    let mut causes: Vec<Cause> = found.into_iter().map(cause).collect();
    causes.sort_by_key(|cause| Reverse(cause.time));
    causes
}
