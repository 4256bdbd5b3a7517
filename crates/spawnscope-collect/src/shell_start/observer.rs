//! Finds out what a running shell does, from its memory and from /proc: whether it waits for input,
//! which line it executes, and which program it waits for. Nothing stops the shell. Its memory may
//! change while it is read, so inconsistent answers are dropped.

use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use spawnscope_data::event::{Frame, Language, Pid};
use spawnscope_data::shell_start::LaunchedProgram;
use spawnscope_system::procfs;

use super::fish::Trace;
use super::terminal::Terminal;
use crate::ptrace::blocked::descriptors;
use crate::ptrace::lines::{Interpreters, Program, position};

/// The depth to which the processes below the shell are followed.
const MAX_DEPTH: usize = 32;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    WaitsForInput,
    Waits,
    Works,
}

pub(super) struct Observer<'i> {
    shell: Pid,
    interpreters: &'i mut Interpreters,
    /// The shell's program, with the device and inode number of its file. A start-up file may
    /// execute another one.
    program: Option<((u64, u64), Program)>,
    /// The trace of fish, whose memory does not show its lines.
    trace: Option<Trace>,
}

impl Observer<'_> {
    pub(super) fn new(shell: Pid, interpreters: &mut Interpreters, trace: Option<Trace>) -> Observer<'_> {
        Observer { shell, interpreters, program: None, trace }
    }

    pub(super) fn state(&mut self, terminal: &Terminal, may_read: bool) -> State {
        let may_read = may_read && !self.trace.as_mut().is_some_and(Trace::is_starting);
        let text = fs::read_to_string(format!("/proc/{}/syscall", self.shell.0)).unwrap_or_default();
        let Some(call) = procfs::blocking_call(&text) else { return State::Works };
        let waits_for_terminal =
            may_read && descriptors(call, self.shell).into_iter().any(|fd| terminal.is_open_as(fd));
        if waits_for_terminal { State::WaitsForInput } else { State::Waits }
    }

    /// Returns the lines of files that the shell executes, the innermost first. At its prompt, it
    /// executes none.
    pub(super) fn frames(&mut self) -> Vec<Frame> {
        if let Some(trace) = &mut self.trace {
            return trace.frames();
        }
        let found = fs::metadata(format!("/proc/{}/exe", self.shell.0)).ok();
        let Some(file) = found.map(|found| (found.dev(), found.ino())) else { return Vec::new() };
        if self.program.as_ref().is_none_or(|(known, _)| *known != file) {
            let entry_point = procfs::entry_point(self.shell);
            self.program = entry_point.map(|entry_point| (file, Program::Unexamined { entry_point, file: None }));
        }
        let Some((_, program)) = &mut self.program else { return Vec::new() };
        let chain = position(self.interpreters, self.shell, program);
        let mut frames = chain.as_ref().map_or(Vec::new(), |chain| chain.frames.clone());
        // dash has a line even if it reads commands from the terminal, and it does not store the
        // name of the file in ENV.
        if let [only] = frames.as_mut_slice()
            && only.language == Language::Dash
            && only.file.is_none()
        {
            only.file = self.read_file().filter(|_| chain.is_some_and(|chain| chain.is_truncated));
        }
        if frames.iter().any(|frame| frame.file.is_some()) { frames } else { Vec::new() }
    }

    /// Returns the lines that ask for input, if a line of a file does so; none at the prompt. At
    /// its prompt, fish still shows its last line until the next statement.
    pub(super) fn asking_frames(&mut self) -> Vec<Frame> {
        let frames = self.frames();
        if self.trace.as_ref().is_some_and(|trace| !trace.is_asking()) { Vec::new() } else { frames }
    }

    /// Returns the file that the shell reads: the regular file that it has opened last.
    fn read_file(&self) -> Option<Vec<u8>> {
        let entries = fs::read_dir(format!("/proc/{}/fd", self.shell.0)).ok()?.flatten().map(|entry| entry.path());
        let number = |path: &PathBuf| path.file_name()?.to_str()?.parse::<i32>().ok();
        let files = entries.filter(|path| fs::metadata(path).is_ok_and(|found| found.is_file()));
        let last = files.filter(|path| number(path) > Some(2)).max_by_key(number)?;
        Some(fs::read_link(last).ok()?.into_os_string().into_vec())
    }

    /// Returns the program that the shell waits for: the latest child of its latest child, and so
    /// on.
    pub(super) fn program(&self) -> Option<LaunchedProgram> {
        let mut process = self.shell;
        for _ in 0..MAX_DEPTH {
            let children = fs::read_to_string(format!("/proc/{0}/task/{0}/children", process.0)).unwrap_or_default();
            let Some(child) = children.split_ascii_whitespace().next_back().and_then(|pid| pid.parse().ok()) else {
                break;
            };
            process = Pid(child);
        }
        if process == self.shell {
            return None;
        }
        let name = procfs::name(process)?;
        let is_fork = procfs::executable(process).is_some_and(|file| Some(file) == procfs::executable(self.shell));
        let name = if is_fork { [b"(", &name[..], b")"].concat() } else { name };
        Some(LaunchedProgram { name, pid: process })
    }
}
