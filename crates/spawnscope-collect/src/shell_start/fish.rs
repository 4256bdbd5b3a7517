//! Follows which lines a fish executes. Its memory does not show them: fish exports nothing.
//! Instead, fish is started with `fish_trace`, and writes each statement when it begins, indented
//! by its depth. A trace has neither files nor lines, but `source FILE`, and the words of each
//! statement, which are looked for in that file.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;

use rustix::fs::{MemfdFlags, memfd_create};
use spawnscope_data::event::{Frame, Language};

/// The statements of a file, or of a function, are deeper by this than its call. Blocks and
/// substitutions are deeper by one.
const DEPTH_OF_CALL: usize = 2;
/// Larger files are not read.
const MAX_BYTES: u64 = 1 << 20;

pub(super) struct Trace {
    trace: File,
    /// Where fish writes a profile when it has read its start-up files. Only the time at which it
    /// does so is of interest.
    profile: File,
    has_started_up: bool,
    /// The beginning of a line whose end is not written yet.
    rest: Vec<u8>,
    /// The statements that are executed, the outermost first.
    stack: Vec<Statement>,
    /// The files in which functions are defined.
    functions: HashMap<Vec<u8>, Vec<u8>>,
    /// The lines of files; none of files that cannot be read.
    files: HashMap<Vec<u8>, Vec<String>>,
}

struct Statement {
    depth: usize,
    text: String,
    /// The call whose file or function has this statement, by its index in the stack.
    call: Option<usize>,
    /// Its index in the lines of that file.
    line: Option<usize>,
    /// The line of the last statement of what it calls.
    inner_line: Option<usize>,
}

impl Trace {
    pub(super) fn new() -> io::Result<Trace> {
        let [trace, profile] = ["trace", "profile"].map(|name| memfd_create(name, MemfdFlags::CLOEXEC));
        let (trace, profile): (OwnedFd, OwnedFd) = (trace?, profile?);
        Ok(Trace {
            trace: trace.into(),
            profile: profile.into(),
            has_started_up: false,
            rest: Vec::new(),
            stack: Vec::new(),
            functions: HashMap::new(),
            files: HashMap::new(),
        })
    }

    /// Returns the command line with which fish writes here; its statements only if it is observed.
    pub(super) fn words(&self, words: &[OsString], observes: bool) -> Vec<OsString> {
        let option = |name: &str, file: &File| {
            OsString::from(format!("--{name}=/proc/{}/fd/{}", std::process::id(), file.as_raw_fd()))
        };
        // `all` includes the functions of prompts, since fish 4.
        let traced = observes.then(|| ["/usr/bin/env", "fish_trace=all"].map(OsString::from));
        let options = [option("debug-output", &self.trace), option("profile-startup", &self.profile)];
        traced
            .into_iter()
            .flatten()
            .chain([words[0].clone()])
            .chain(options)
            .chain(words[1..].iter().cloned())
            .collect()
    }

    /// Whether fish reads its start-up files, so that it is not at its prompt.
    pub(super) fn is_starting(&mut self) -> bool {
        self.read();
        !self.has_started_up && !self.is_asking()
    }

    /// Whether the innermost statement asks the user for input.
    pub(super) fn is_asking(&self) -> bool {
        self.stack.last().is_some_and(|statement| statement.text.split(' ').next() == Some("read"))
    }

    pub(super) fn frames(&mut self) -> Vec<Frame> {
        self.read();
        let mut frames = Vec::new();
        let mut at = self.stack.len().checked_sub(1);
        while let Some(statement) = at.map(|at| &self.stack[at]) {
            if let Some(call) = statement.call {
                let (file, function) = self.origin(call);
                let line = statement.line.map(|line| line as u32 + 1);
                // Texts that fish executes from a file of its own have no line.
                if line.is_some() || function.is_some() {
                    frames.push(Frame { file, line, function, ..Frame::unknown(Language::Native) });
                }
            }
            at = statement.call;
        }
        frames
    }

    /// Returns the file that a call executes, and the function.
    fn origin(&self, call: usize) -> (Option<Vec<u8>>, Option<Vec<u8>>) {
        let text = &self.stack[call].text;
        match sourced(text) {
            Some(file) => (Some(file.into()), None),
            None => {
                let name = text.split(' ').next().unwrap_or_default().as_bytes();
                (self.functions.get(name).cloned(), Some(name.to_vec()))
            }
        }
    }

    fn read(&mut self) {
        // Before the trace is read, so that it then contains all of the start-up files.
        let has_started_up = self.profile.read_at(&mut [0], 0).is_ok_and(|count| count > 0);
        // Errors would only mean that there is nothing.
        let _ = self.trace.read_to_end(&mut self.rest);
        let end = self.rest.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let rest = self.rest.split_off(end);
        let lines = std::mem::replace(&mut self.rest, rest);
        for line in String::from_utf8_lossy(&lines).lines() {
            let depth = line.bytes().take_while(|byte| *byte == b'-').count();
            if let Some(text) = line[depth..].strip_prefix("> ") {
                self.begin(depth, text);
            }
        }
        if has_started_up && !self.has_started_up {
            self.has_started_up = true;
            self.stack.clear();
        }
    }

    fn begin(&mut self, depth: usize, text: &str) {
        while self.stack.pop_if(|last| last.depth >= depth).is_some() {}
        let is_call = |outer: &Statement| {
            let name = outer.text.split(' ').next().unwrap_or_default();
            sourced(&outer.text).is_some() || self.functions.contains_key(name.as_bytes())
        };
        let call = self.stack.iter().rposition(|outer| outer.depth + DEPTH_OF_CALL <= depth && is_call(outer));
        let file = call.and_then(|call| self.origin(call).0);
        if let (Some(file), Some(definition)) = (&file, text.strip_prefix("function ")) {
            let name = definition.split(' ').next().unwrap_or_default();
            self.functions.insert(name.into(), file.clone());
        }
        let line = file.zip(call).and_then(|(file, call)| self.line(&file, call, text));
        self.stack.push(Statement { depth, text: text.to_owned(), call, line, inner_line: None });
    }

    /// Returns the line of a statement: the one with the most of its words, from the last known one
    /// on. The end of a block and an evaluated text are not found; they count for the statement
    /// before or around them.
    fn line(&mut self, file: &[u8], call: usize, text: &str) -> Option<usize> {
        let lines = self.files.entry(file.to_vec()).or_insert_with(|| read_lines(file));
        let name = sourced(&self.stack[call].text).is_none().then(|| self.stack[call].text.split(' ').next());
        let definition = name.flatten().and_then(|name| {
            let is_definition = |line: &String| {
                let definition = line.trim_start().strip_prefix("function ").and_then(|rest| rest.strip_prefix(name));
                definition.is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', ';']))
            };
            lines.iter().position(is_definition)
        });
        let known = &mut self.stack[call].inner_line;
        let first = definition.unwrap_or(0);
        let from = known.unwrap_or(first);
        let found =
            (first..lines.len()).max_by_key(|at| (score(&lines[*at], text), *at >= from, std::cmp::Reverse(*at)));
        let found = found.filter(|at| score(&lines[*at], text) > 0);
        *known = found.or(*known);
        *known
    }
}

fn sourced(text: &str) -> Option<&str> {
    text.strip_prefix("source ").or_else(|| text.strip_prefix(". "))
}

/// Returns how many words of a statement a line of a file has; 0 if it lacks the command. Variables
/// are expanded in the statement.
fn score(line: &str, statement: &str) -> usize {
    let mut words = statement.split(' ');
    let command = words.next().unwrap_or_default();
    // Most lines lack it, and this is faster than splitting them.
    if !line.contains(command) {
        return 0;
    }
    let is_word = |byte: &char| !byte.is_ascii_whitespace() && !";|&()\"'".contains(*byte);
    let has_command = line.split(|letter| !is_word(&letter)).any(|word| word == command);
    let is_comment = line.trim_start().starts_with('#');
    if !has_command || is_comment { 0 } else { 1 + words.filter(|word| line.contains(word)).count() }
}

fn read_lines(file: &[u8]) -> Vec<String> {
    let path = OsStr::from_bytes(file);
    let is_small = fs::metadata(path).is_ok_and(|found| found.is_file() && found.len() <= MAX_BYTES);
    let text = is_small.then(|| fs::read(path).ok()).flatten().unwrap_or_default();
    String::from_utf8_lossy(&text).lines().map(str::to_owned).collect()
}
