//! Finds dash's variables: runs it on a script that stops at known lines, and searches its memory
//! at each stop.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{MemfdFlags, memfd_create};

use super::memory::Memory;
use super::search::{ARGUMENT, CommandSource, FUNCTION_NAME, Search, Stop};
use crate::callers::elf::Elf;
use crate::wire::WireDash;

/// Lines of the script. They are far from values that other variables may have by chance.
const FUNCTION_LINE: usize = 331;
const IN_FUNCTION_LINE: usize = 347;
const FIRST_LINE: usize = 419;
const SOURCED_LINE: usize = 523;
const LAST_LINE: usize = 617;

const STOPS: [Stop; 5] = [
    Stop { line: Some(FIRST_LINE as u32), function_line: 0, source: CommandSource::Script },
    Stop { line: Some(IN_FUNCTION_LINE as u32), function_line: FUNCTION_LINE as u32, source: CommandSource::Script },
    Stop { line: Some(SOURCED_LINE as u32), function_line: 0, source: CommandSource::File },
    Stop { line: None, function_line: 0, source: CommandSource::String },
    Stop { line: Some(LAST_LINE as u32), function_line: 0, source: CommandSource::Script },
];

/// A command that blocks until it reads a line. The shell waits for this subshell; meanwhile, the
/// shell's variables describe this command.
const STOP: &str = "(echo; read -r x)";

/// Maximum time until the shell reaches a stop, even on a busy machine. A program that takes longer
/// is not a dash.
const STOP_TIMEOUT: Timespec = Timespec { tv_sec: 2, tv_nsec: 0 };

/// Finds the layout of the dash in `file`. `Some(None)`: the program is not a dash, or an unknown
/// variant of it. `None`: calibration failed.
pub(super) fn layout(program: &Elf<'_>, file: &File) -> Option<Option<WireDash>> {
    if !is_trustworthy(file)? {
        return None;
    }
    let sourced = script(&[(SOURCED_LINE, STOP)]).ok()?;
    let sourced_name = format!("/proc/self/fd/{}", sourced.as_raw_fd());
    let (blocked, blocker) = io::pipe().ok()?;
    let text = script(&[
        // This job occupies the first slot of the table of jobs.
        (1, &format!("read -r x <&{} &", blocked.as_raw_fd())),
        (FUNCTION_LINE, &format!("{FUNCTION_NAME}() {{")),
        (IN_FUNCTION_LINE, STOP),
        (IN_FUNCTION_LINE + 1, "}"),
        (FIRST_LINE, STOP),
        (FIRST_LINE + 1, &format!("{FUNCTION_NAME} {ARGUMENT}")),
        (FIRST_LINE + 2, &format!(". {sourced_name}")),
        (FIRST_LINE + 3, &format!("eval '{STOP}'")),
        (LAST_LINE, STOP),
    ]);
    let text = text.ok()?;
    let name = format!("/proc/self/fd/{}", text.as_raw_fd());
    let inherited = [sourced.as_raw_fd(), text.as_raw_fd(), blocked.as_raw_fd()];
    let mut shell = Shell::start(file, &name, inherited).ok()?;
    let mut search = Search::new(&name, &sourced_name);
    for stop in STOPS {
        shell.reach_stop()?;
        search.narrow(&Memory::read(&shell.child, program)?, stop);
        shell.resume()?;
    }
    drop(blocker);
    let code_start = program.code_start()?;
    Some(search.into_layout(code_start))
}

/// Whether only root or this user may change the file.
fn is_trustworthy(file: &File) -> Option<bool> {
    let found = file.metadata().ok()?;
    let is_ours = found.uid() == 0 || found.uid() == nix::unistd::geteuid().as_raw();
    Some(is_ours && found.mode() & 0o022 == 0)
}

/// Creates a memory file with these commands at these lines.
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

fn keep_open_at_exec(descriptors: [RawFd; 3]) -> io::Result<()> {
    for fd in descriptors {
        // SAFETY: a plain system call on a descriptor that the parent keeps open.
        if unsafe { libc::fcntl(fd, libc::F_SETFD, 0) } < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
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
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        // SAFETY: between fork and exec, the closure only makes system calls.
        unsafe { command.pre_exec(move || keep_open_at_exec(inherited)) };
        let mut child = command.spawn()?;
        let pipes = (child.stdin.take(), child.stdout.take());
        let (Some(input), Some(output)) = pipes else { return Err(io::ErrorKind::BrokenPipe.into()) };
        Ok(Shell { child, input, output: BufReader::new(output) })
    }

    fn reach_stop(&mut self) -> Option<()> {
        let mut ready = [PollFd::new(self.output.get_ref(), PollFlags::IN)];
        (poll(&mut ready, Some(&STOP_TIMEOUT)).ok()? == 1).then_some(())?;
        let mut line = String::new();
        (self.output.read_line(&mut line).ok()? == 1).then_some(())
    }

    fn resume(&mut self) -> Option<()> {
        self.input.write_all(b"\n").ok()
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
