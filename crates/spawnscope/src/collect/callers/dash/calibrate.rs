//! Finds dash's variables: runs it on a script that stops at known places, and looks which of its variables hold what they
//! must at all of them. Nothing is taken that is not the only one.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{MemfdFlags, memfd_create};

use super::memory::Memory;
use crate::collect::callers::elf::Elf;
use crate::collect::ebpf::wire::WireDash;

/// A place at which the script stops.
#[derive(Clone, Copy)]
struct Stop {
    /// `None`: in a string, which has lines of its own.
    line: Option<u32>,
    function_line: u32,
    reads: Reads,
}

/// What the script's commands come from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reads {
    Script,
    File,
    String,
}

/// Lines are far from those that other counts may have by chance.
const FUNCTION: usize = 331;
const IN_FUNCTION: usize = 347;
const FIRST: usize = 419;
const SOURCED: usize = 523;
const LAST: usize = 617;

const STOPS: [Stop; 5] = [
    Stop {
        line: Some(FIRST as u32),
        function_line: 0,
        reads: Reads::Script,
    },
    Stop {
        line: Some(IN_FUNCTION as u32),
        function_line: FUNCTION as u32,
        reads: Reads::Script,
    },
    Stop {
        line: Some(SOURCED as u32),
        function_line: 0,
        reads: Reads::File,
    },
    Stop {
        line: None,
        function_line: 0,
        reads: Reads::String,
    },
    Stop {
        line: Some(LAST as u32),
        function_line: 0,
        reads: Reads::Script,
    },
];

/// Stops until a line comes; the shell itself waits for it, with all its variables as for this command.
const STOP: &str = "(echo; read -r x)";
const NAME: &str = "calibrated";
const ARGUMENT: &str = "argument";

/// Longer than any stop takes on a busy machine; what does not come to it is no dash.
const PATIENCE: Timespec = Timespec { tv_sec: 2, tv_nsec: 0 };

/// The layout of the dash in `file`; `Some(None)`: it is none, or another one than those known. `None`: that did not come out.
pub(super) fn layout(program: &Elf<'_>, file: &File) -> Option<Option<WireDash>> {
    if !is_trustworthy(file)? {
        return None;
    }
    let sourced = script(&[(SOURCED, STOP)]).ok()?;
    let own = format!("/proc/self/fd/{}", sourced.as_raw_fd());
    let (blocked, blocker) = io::pipe().ok()?;
    let text = script(&[
        // A job that keeps the first place in the table of jobs.
        (1, &format!("read -r x <&{} &", blocked.as_raw_fd())),
        (FUNCTION, &format!("{NAME}() {{")),
        (IN_FUNCTION, STOP),
        (IN_FUNCTION + 1, "}"),
        (FIRST, STOP),
        (FIRST + 1, &format!("{NAME} {ARGUMENT}")),
        (FIRST + 2, &format!(". {own}")),
        (FIRST + 3, &format!("eval '{STOP}'")),
        (LAST, STOP),
    ]);
    let text = text.ok()?;
    let name = format!("/proc/self/fd/{}", text.as_raw_fd());
    let inherited = [sourced.as_raw_fd(), text.as_raw_fd(), blocked.as_raw_fd()];
    let mut shell = Shell::start(file, &name, inherited).ok()?;
    let mut search = Search::new(&name, &own);
    for stop in STOPS {
        shell.come_to_stop()?;
        search.narrow(&Memory::of(&shell.child, program)?, stop);
        shell.go_on()?;
    }
    drop(blocker);
    let code_start = program.code_start()?;
    Some(search.found(code_start))
}

/// Whether the file is nobody else's to change.
fn is_trustworthy(file: &File) -> Option<bool> {
    let found = file.metadata().ok()?;
    let is_ours = found.uid() == 0 || found.uid() == nix::unistd::geteuid().as_raw();
    Some(is_ours && found.mode() & 0o022 == 0)
}

/// A file in memory with these lines at these places.
fn script(lines: &[(usize, &str)]) -> io::Result<File> {
    let mut text = String::new();
    let mut at = 1;
    for (line, command) in lines {
        text.push_str(&"\n".repeat(line - at));
        text.push_str(command);
        text.push('\n');
        at = line + 1;
    }
    let mut file = File::from(memfd_create("calibration", MemfdFlags::CLOEXEC)?);
    file.write_all(text.as_bytes())?;
    Ok(file)
}

/// A dash that runs the script.
struct Shell {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Shell {
    fn start(file: &File, script: &str, inherited: [RawFd; 3]) -> io::Result<Shell> {
        let mut command = Command::new(format!("/proc/self/fd/{}", file.as_raw_fd()));
        command.arg0("sh").arg(script).env_clear().current_dir("/");
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let keep = move || {
            for fd in inherited {
                // SAFETY: a plain system call on a descriptor that the parent holds open.
                if unsafe { libc::fcntl(fd, libc::F_SETFD, 0) } < 0 {
                    return Err(io::Error::last_os_error());
                }
            }
            Ok(())
        };
        // SAFETY: between fork and exec it makes only system calls.
        unsafe { command.pre_exec(keep) };
        let mut child = command.spawn()?;
        let pipes = (child.stdin.take(), child.stdout.take());
        let (Some(input), Some(output)) = pipes else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        Ok(Shell {
            child,
            input,
            output: BufReader::new(output),
        })
    }

    fn come_to_stop(&mut self) -> Option<()> {
        let mut ready = [PollFd::new(self.output.get_ref(), PollFlags::IN)];
        (poll(&mut ready, Some(&PATIENCE)).ok()? == 1).then_some(())?;
        let mut line = String::new();
        (self.output.read_line(&mut line).ok()? == 1).then_some(())
    }

    fn go_on(&mut self) -> Option<()> {
        self.input.write_all(b"\n").ok()
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A variable that is searched for: what may still be it.
#[derive(Default)]
struct Candidates(Option<Vec<u64>>);

impl Candidates {
    fn keep(&mut self, fitting: impl Iterator<Item = u64>) {
        let fitting: Vec<u64> = fitting.collect();
        self.0 = Some(match self.0.take() {
            Some(before) => before.into_iter().filter(|address| fitting.contains(address)).collect(),
            None => fitting,
        });
    }

    fn only(self) -> Option<u64> {
        <[u64; 1]>::try_from(self.0?).ok().map(|[address]| address)
    }
}

/// All that is searched for.
struct Search<'a> {
    script: &'a str,
    sourced: &'a str,
    line: Candidates,
    function_line: Candidates,
    own_name: Candidates,
    command_name: Candidates,
    input: Candidates,
    job: Candidates,
    parameters: Candidates,
}

impl<'a> Search<'a> {
    fn new(script: &'a str, sourced: &'a str) -> Search<'a> {
        Search {
            script,
            sourced,
            line: Candidates::default(),
            function_line: Candidates::default(),
            own_name: Candidates::default(),
            command_name: Candidates::default(),
            input: Candidates::default(),
            job: Candidates::default(),
            parameters: Candidates::default(),
        }
    }

    fn narrow(&mut self, memory: &Memory, stop: Stop) {
        let is = |wanted: u32| move |(address, value): (u64, u32)| (value == wanted).then_some(address);
        if let Some(line) = stop.line {
            self.line.keep(memory.numbers().filter_map(is(line)));
        }
        self.function_line
            .keep(memory.numbers().filter_map(is(stop.function_line)));
        let points = |to: &dyn Fn(u64) -> bool| -> Vec<u64> {
            memory
                .pointers()
                .filter(|(_, value)| to(*value))
                .map(|(address, _)| address)
                .collect()
        };
        self.own_name
            .keep(points(&|name| memory.holds(name, self.script)).into_iter());
        let command: &dyn Fn(u64) -> bool = match stop.reads {
            Reads::Script => &|name| name == 0,
            Reads::File => &|name| memory.holds(name, self.sourced),
            Reads::String => &|name| memory.holds(name, "eval"),
        };
        self.command_name.keep(points(command).into_iter());
        self.input
            .keep(points(&|input| is_input(memory, input, stop.reads)).into_iter());
        self.job.keep(
            points(&|job| memory.number(job) == Some(memory.job) && memory.pointer(job + 16) == Some(job)).into_iter(),
        );
        if stop.function_line != 0 {
            self.parameters
                .keep(points(&|words| are_parameters(memory, words)).into_iter());
        }
    }

    fn found(self, code_start: u64) -> Option<WireDash> {
        Some(WireDash {
            code_start,
            line: self.line.only()?,
            function_line: self.function_line.only()?,
            own_name: self.own_name.only()?,
            command_name: self.command_name.only()?,
            input: self.input.only()?,
            job: self.job.only()?,
            parameters: self.parameters.only()?,
        })
    }
}

/// Whether this is what commands are read from: an outer input, the line there, and a descriptor.
fn is_input(memory: &Memory, input: u64, reads: Reads) -> bool {
    let read = || Some((memory.pointer(input)?, memory.number(input + 12)? as i32));
    match (read(), reads) {
        (Some((outer, fd)), Reads::Script) => outer == 0 && (10..64).contains(&fd),
        (Some((outer, fd)), Reads::File) => is_input(memory, outer, Reads::Script) && (10..64).contains(&fd),
        (Some((outer, fd)), Reads::String) => is_input(memory, outer, Reads::Script) && fd == -1,
        (None, _) => false,
    }
}

fn are_parameters(memory: &Memory, words: u64) -> bool {
    let word = |address: u64, text: &str| memory.pointer(address).is_some_and(|word| memory.holds(word, text));
    word(words, ARGUMENT) && words.checked_sub(8).is_some_and(|name| word(name, NAME))
}
