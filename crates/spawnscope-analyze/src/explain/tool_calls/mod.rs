//! Commands that a program starts through a shell again and again, as coding agents do: how long
//! each waits from the launch of its shell until its own program is executed, and what happens
//! until then. `finding` makes advice of it.

mod finding;

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::model::launch::{Exec, Launch, base_name};
use crate::model::tree::Forest;
use crate::patterns::shells::is_shell;
use spawnscope_data::event::Nanos;
use spawnscope_data::statistics::quantile;

pub(crate) use finding::find;
pub use finding::fixes;

/// Fewer commands of a kind are not reported.
const MIN_CALLS: usize = 5;

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

/// Something that delays commands.
#[derive(Clone, Debug)]
pub struct Cause {
    /// The line of a file and the program, or the program that starts the shell.
    pub label: Vec<u8>,
    /// The number of commands that it delays.
    pub calls: usize,
    /// Its time per command.
    pub time: Nanos,
}

/// One command: from its launch to its own exec.
struct Call {
    delay: Nanos,
    causes: BTreeMap<Vec<u8>, u64>,
    launches: Vec<u32>,
    sources_files: bool,
}

/// Returns the kinds of commands whose own program is delayed by what their shell does first.
#[must_use]
pub fn tool_calls(forest: &Forest<'_>) -> Vec<ToolCalls> {
    let mut kinds: BTreeMap<(usize, String, bool), Vec<Call>> = BTreeMap::new();
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
    let kinds = kinds.into_iter().filter(|(_, calls)| calls.len() >= MIN_CALLS);
    let kinds = kinds.map(|((caller, shape, is_login), calls)| ToolCalls {
        caller: forest.launches[caller].command.label(),
        shape,
        is_login,
        count: calls.len(),
        delay: [0.5, 0.95, 1.0]
            .map(|share| Nanos(quantile(calls.iter().map(|call| call.delay.0 as f64).collect(), share) as u64)),
        causes: causes(&calls),
        launches: calls.iter().flat_map(|call| call.launches.iter().copied()).collect(),
        sources_files: calls.iter().any(|call| call.sources_files),
    });
    // Shells that start nothing of their own are an ordinary way to start a command.
    let mut kinds: Vec<ToolCalls> = kinds.filter(|kind| kind.is_login || !kind.causes.is_empty()).collect();
    kinds.sort_by_key(|kind| Reverse(kind.delay[0].0 * kind.count as u64));
    kinds
}

/// A shell that executes a text.
struct ShellCall<'a> {
    shape: String,
    is_login: bool,
    text: &'a [u8],
}

impl<'a> ShellCall<'a> {
    fn of(exec: &Exec<'a>) -> Option<ShellCall<'a>> {
        let name = base_name(exec.path());
        let mut shape = String::from_utf8_lossy(name).into_owned();
        let (mut is_command, mut is_login) = (false, false);
        let mut text = None;
        for argument in exec.arguments().skip(1) {
            let Some(options) = argument.strip_prefix(b"-") else {
                text = Some(argument);
                break;
            };
            let is_long = options.starts_with(b"-");
            is_command |= !is_long && options.contains(&b'c');
            is_login |= options == b"-login" || !is_long && options.contains(&b'l');
            shape.push(' ');
            shape.push_str(&String::from_utf8_lossy(argument));
        }
        text.filter(|_| is_command && is_shell(name)).map(|text| ShellCall { shape, is_login, text })
    }

    /// Whether the text names a program.
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
fn call(forest: &Forest<'_>, top: usize, shell: usize, at: usize, text: &ShellCall<'_>) -> Option<Call> {
    let launch = &forest.launches[shell];
    let start = forest.launches[top].start()?;
    let shell_exec = launch.execs[at].entered()?;
    let own_exec = |exec: &Exec<'_>| exec.entered().filter(|_| text.names(exec.file_name()));
    let in_place = launch.execs[at + 1..].iter().find_map(own_exec);
    let children = forest.children(shell);
    let in_child = children.iter().filter(|child| file_line(forest, **child).is_none());
    let in_child = in_child.filter_map(|child| forest.launches[*child].execs.iter().find_map(own_exec)).min();
    let own = in_place.into_iter().chain(in_child).min()?;
    let (mut causes, mut launches, mut sources_files) = (BTreeMap::new(), Vec::new(), false);
    if top != shell || at > 0 {
        let name = forest.launches[top].execs.first().map_or(&b""[..], |exec| exec.program_name());
        causes.insert(name.to_vec(), shell_exec.since(start).0);
    }
    for child in children.iter().filter(|child| forest.launches[**child].start() < Some(own)) {
        let Some((file, line)) = file_line(forest, *child) else { continue };
        launches.push(*child as u32);
        sources_files |= text.names(base_name(file));
        let child = &forest.launches[*child];
        let label = [file, format!(":{line}  ").as_bytes(), &child.command.label()].concat();
        *causes.entry(label).or_default() += length(child, own);
    }
    Some(Call { delay: own.since(start), causes, launches, sources_files })
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

fn causes(calls: &[Call]) -> Vec<Cause> {
    let mut found: BTreeMap<&[u8], (usize, u64)> = BTreeMap::new();
    for (label, time) in calls.iter().flat_map(|call| &call.causes) {
        let (count, sum) = found.entry(label).or_default();
        (*count, *sum) = (*count + 1, *sum + time);
    }
    let cause = |(label, (count, sum)): (&[u8], (usize, u64))| Cause {
        label: label.to_vec(),
        calls: count,
        time: Nanos(sum / calls.len() as u64),
    };
    let mut causes: Vec<Cause> = found.into_iter().map(cause).collect();
    causes.sort_by_key(|cause| Reverse(cause.time));
    causes
}
