//! Follows which lines a fish executes. They are not read from its memory, because fish exports no
//! symbols. Instead, fish is started with `fish_trace`, so that it writes each statement before
//! executing it, indented by its depth. This trace has no line numbers, and names a file only in
//! `source FILE`. So the words of each statement are searched for in that file.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;

use rustix::fs::{MemfdFlags, memfd_create};
use spawnscope_data::event::{Frame, Language};

/// How much deeper than a call the statements of its file or function are. Those of blocks and
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
    /// The file that defines each function, by the function's name.
    functions: HashMap<Vec<u8>, Vec<u8>>,
    /// The lines of each file. Empty for a file that cannot be read.
    files: HashMap<Vec<u8>, Vec<String>>,
}

struct Statement {
    depth: usize,
    text: String,
    /// The index in the stack of the call whose file or function contains this statement.
    call: Option<usize>,
    /// The index of the statement in the lines of that file.
    line: Option<usize>,
    /// For a call, the index of the last line that was found in its file or function.
    last_line: Option<usize>,
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

    /// Returns the command line of a fish that writes to these files. It traces its statements only
    /// if `observes`.
    pub(super) fn command_line(&self, words: &[OsString], observes: bool) -> Vec<OsString> {
        let option = |name: &str, file: &File| {
            OsString::from(format!("--{name}=/proc/{}/fd/{}", std::process::id(), file.as_raw_fd()))
        };
        // `all` includes the functions of prompts, since fish 4.
        let traced = observes.then(|| ["/usr/bin/env", "fish_trace=all"].map(OsString::from));
        let options = [option("debug-output", &self.trace), option("profile-startup", &self.profile)];
        [traced.as_slice().as_flattened(), &words[..1], &options, &words[1..]].concat()
    }

    /// Whether fish executes its start-up files, and none of them asks for input.
    pub(super) fn is_starting(&mut self) -> bool {
        self.read();
        !self.has_started_up && !self.is_asking()
    }

    /// Whether the innermost statement asks the user for input.
    pub(super) fn is_asking(&self) -> bool {
        self.stack.last().is_some_and(|statement| command_of(&statement.text) == "read")
    }

    pub(super) fn frames(&mut self) -> Vec<Frame> {
        self.read();
        let mut frames = Vec::new();
        let mut at = self.stack.len().checked_sub(1);
        while let Some(statement) = at.map(|at| &self.stack[at]) {
            if let Some(call) = statement.call {
                let (file, function) = self.origin(call);
                let line = statement.line.map(|line| line as u32 + 1);
                // A text that is built into fish has neither, because its file cannot be read.
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
                let name = command_of(text).as_bytes();
                (self.functions.get(name).cloned(), Some(name.to_vec()))
            }
        }
    }

    fn read(&mut self) {
        // Checked first: if the profile exists, the trace contains all of the start-up files.
        let has_started_up = self.profile.read_at(&mut [0], 0).is_ok_and(|count| count > 0);
        // After an error, there are no new lines.
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
            sourced(&outer.text).is_some() || self.functions.contains_key(command_of(&outer.text).as_bytes())
        };
        let call = self.stack.iter().rposition(|outer| outer.depth + DEPTH_OF_CALL <= depth && is_call(outer));
        let file = call.and_then(|call| self.origin(call).0);
        if let (Some(file), Some(definition)) = (&file, text.strip_prefix("function ")) {
            self.functions.insert(command_of(definition).into(), file.clone());
        }
        let line = file.zip(call).and_then(|(file, call)| self.line(&file, call, text));
        self.stack.push(Statement { depth, text: text.to_owned(), call, line, last_line: None });
    }

    /// Returns the line of a statement: the one that contains most of its words, preferably at or
    /// after the last line that was found. The end of a block and an evaluated text are in no line,
    /// so they get the last line that was found.
    fn line(&mut self, file: &[u8], call: usize, text: &str) -> Option<usize> {
        let lines = self.files.entry(file.to_vec()).or_insert_with(|| read_lines(file));
        let caller = &self.stack[call].text;
        let name = sourced(caller).is_none().then(|| command_of(caller));
        let definition = name.and_then(|name| {
            let is_definition = |line: &String| {
                let definition = line.trim_start().strip_prefix("function ").and_then(|rest| rest.strip_prefix(name));
                definition.is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', ';']))
            };
            lines.iter().position(is_definition)
        });
        let known = &mut self.stack[call].last_line;
        let first = definition.unwrap_or(0);
        let from = known.unwrap_or(first);
        let found =
            (first..lines.len()).max_by_key(|at| (score(&lines[*at], text), *at >= from, std::cmp::Reverse(*at)));
        let found = found.filter(|at| score(&lines[*at], text) > 0);
        *known = found.or(*known);
        *known
    }
}

/// Returns the first word of a statement.
fn command_of(text: &str) -> &str {
    text.split(' ').next().unwrap_or_default()
}

fn sourced(text: &str) -> Option<&str> {
    text.strip_prefix("source ").or_else(|| text.strip_prefix(". "))
}

/// Returns how many words of a statement a line contains; 0 if the line lacks the command. Other
/// words may differ, because the trace shows variables expanded.
fn score(line: &str, statement: &str) -> usize {
    let mut words = statement.split(' ');
    let command = words.next().unwrap_or_default();
    // Most lines lack the command, and this test is faster than splitting them.
    if !line.contains(command) {
        return 0;
    }
    let is_delimiter = |letter: char| letter.is_ascii_whitespace() || ";|&()\"'".contains(letter);
    let has_command = line.split(is_delimiter).any(|word| word == command);
    let is_comment = line.trim_start().starts_with('#');
    if !has_command || is_comment { 0 } else { 1 + words.filter(|word| line.contains(word)).count() }
}

fn read_lines(file: &[u8]) -> Vec<String> {
    let path = OsStr::from_bytes(file);
    let is_small = fs::metadata(path).is_ok_and(|found| found.is_file() && found.len() <= MAX_BYTES);
    let text = is_small.then(|| fs::read(path).ok()).flatten().unwrap_or_default();
    String::from_utf8_lossy(&text).lines().map(str::to_owned).collect()
}
