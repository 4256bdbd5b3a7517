//! Starts a program by any mechanism, waits for it, and checks that it ran.

use std::ffi::{CString, c_char};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use nix::fcntl::OFlag;
use nix::unistd::pipe2;
use vspawn::{Command, Prepared, Stdio};

use super::Mechanism;
use super::protocol::Program;
use super::raw::RawLaunch;
use crate::LabError;
use spawnscope_system::ExecStrings;
use spawnscope_system::launch_timing::clone::CloneCall;
use spawnscope_system::launch_timing::timing::{LaunchTimer, LaunchTimes};
use spawnscope_system::process::reap;

/// Everything that launches of one program need, prepared before the first launch.
pub struct Launcher<'p> {
    program: &'p Program,
    path: CString,
    argv: ExecStrings,
    /// The program and its arguments, quoted for a shell.
    shell_command: CString,
    prepared: Prepared,
    /// `RawLaunch` values without a running child, for further launches.
    #[expect(clippy::vec_box, reason = "a RawLaunch stays in its box: its child receives its address")]
    idle: Vec<Box<RawLaunch>>,
}

/// A child that has not yet been waited for.
pub enum RunningChild {
    /// A child without further resources.
    Pid(i32),
    /// A child that runs on the stack of its `RawLaunch`.
    Raw(i32, Box<RawLaunch>),
    Vspawn(vspawn::Child),
    Piped(i32, File),
    VspawnPiped(vspawn::Child, File),
    Stream(*mut libc::FILE),
    /// The wait status of a child that had ended when the call returned.
    Ended(i32),
}

impl<'p> Launcher<'p> {
    /// Prepares launches of a program by one mechanism.
    pub fn new(mechanism: Mechanism, program: &'p Program) -> Result<Launcher<'p>, LabError> {
        let strings: Result<Vec<CString>, _> = program.argv.iter().map(|text| CString::new(text.as_str())).collect();
        let strings = strings.map_err(|_| LabError::Unavailable("an argument contains a NUL byte".to_owned()))?;
        let path = strings.first().cloned().unwrap_or_default();
        let words = program.argv.iter().map(String::as_str);
        let line = shlex::try_join(words).ok().and_then(|line| CString::new(line).ok());
        Ok(Launcher {
            program,
            path,
            argv: ExecStrings::new(strings),
            shell_command: line.unwrap_or_default(),
            prepared: command(mechanism, program)
                .prepare()
                .map_err(|error| LabError::Unavailable(error.to_string()))?,
            idle: Vec::new(),
        })
    }

    pub fn start(&mut self, mechanism: Mechanism) -> Result<RunningChild, LabError> {
        let started = match mechanism {
            Mechanism::ForkExit => self.fork(false).map(RunningChild::Pid),
            Mechanism::ForkExec => self.fork(true).map(RunningChild::Pid),
            Mechanism::VforkExec => self.raw(CloneCall::Vfork),
            Mechanism::Clone => self.raw(CloneCall::Clone { flags: libc::CLONE_VM | libc::CLONE_VFORK }),
            Mechanism::Clone3 => self.raw(CloneCall::Clone3),
            Mechanism::CloneDetached => self.raw(CloneCall::Clone { flags: libc::CLONE_VM }),
            Mechanism::PosixSpawn => self.posix_spawn(None).map(RunningChild::Pid),
            Mechanism::PosixSpawnPipe => self.posix_spawn_with_pipe(),
            // SAFETY: the string is valid.
            Mechanism::System => Ok(RunningChild::Ended(unsafe { libc::system(self.shell_command.as_ptr()) })),
            Mechanism::Popen => self.popen(),
            Mechanism::VspawnPrepared => self.prepared.spawn().map(RunningChild::Vspawn).map_err(to_io_error),
            Mechanism::Vspawn | Mechanism::VspawnCloseOthers => {
                let child = command(mechanism, self.program).spawn();
                child.map(RunningChild::Vspawn).map_err(to_io_error)
            }
            Mechanism::VspawnDetached => {
                let child = command(mechanism, self.program).spawn_nowait();
                child.map(RunningChild::Vspawn).map_err(to_io_error)
            }
            Mechanism::VspawnPipe => vspawn_with_pipe(self.program),
        };
        started.map_err(LabError::doing(format!("start a child with {}", mechanism.name())))
    }

    /// Makes an uncounted launch before `count` timed ones, because a launch after other work finds
    /// cold caches. Does nothing before a single launch.
    pub fn warm_up(&mut self, mechanism: Mechanism, count: u32) -> Result<(), LabError> {
        if count < 2 {
            return Ok(());
        }
        let running = self.start(mechanism)?;
        self.finish(mechanism, running)
    }

    pub fn time(&mut self, mechanism: Mechanism) -> Result<LaunchTimes, LabError> {
        let mut timer = LaunchTimer::begin();
        let running = self.start(mechanism)?;
        timer.end_call();
        self.finish(mechanism, running)?;
        Ok(timer.end())
    }

    /// Waits for a child, and checks its exit status and its output.
    pub fn finish(&mut self, mechanism: Mechanism, running: RunningChild) -> Result<(), LabError> {
        let ended = match running {
            RunningChild::Pid(pid) => wait(pid).map(|status| (status, None)),
            RunningChild::Raw(pid, raw) => {
                let status = wait(pid);
                self.idle.push(raw);
                status.map(|status| (status, None))
            }
            RunningChild::Vspawn(mut child) => wait_for(&mut child).map(|status| (status, None)),
            RunningChild::Piped(pid, pipe) => read(pipe).and_then(|output| Ok((wait(pid)?, Some(output)))),
            RunningChild::VspawnPiped(mut child, pipe) => {
                read(pipe).and_then(|output| Ok((wait_for(&mut child)?, Some(output))))
            }
            RunningChild::Stream(stream) => Ok(read_stream(stream)),
            RunningChild::Ended(status) => Ok((status, None)),
        };
        let (status, output) = ended.map_err(LabError::doing("wait for a child"))?;
        let is_expected_status = libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == self.program.status;
        match output {
            _ if !is_expected_status => Err(LabError::Invalid(format!(
                "a child of {} ended with {}, not with exit status: {}",
                mechanism.name(),
                ExitStatus::from_raw(status),
                self.program.status
            ))),
            Some(output) if output != self.program.output => Err(LabError::Invalid(format!(
                "a child of {} wrote {output:?} instead of {:?}",
                mechanism.name(),
                self.program.output
            ))),
            _ => Ok(()),
        }
    }

    fn fork(&self, exec: bool) -> io::Result<i32> {
        // SAFETY: the child only makes system calls and exits.
        match unsafe { libc::fork() } {
            // SAFETY: see above.
            0 => unsafe {
                if exec {
                    libc::execv(self.path.as_ptr(), self.argv.as_ptr());
                    libc::_exit(127)
                }
                libc::_exit(self.program.status)
            },
            -1 => Err(io::Error::last_os_error()),
            pid => Ok(pid),
        }
    }

    fn raw(&mut self, call: CloneCall) -> io::Result<RunningChild> {
        let raw = match self.idle.pop() {
            Some(raw) => raw,
            None => RawLaunch::new(&self.path, &self.argv)?,
        };
        let pid = raw.start(call)?;
        Ok(RunningChild::Raw(pid, raw))
    }

    fn posix_spawn(&self, output: Option<i32>) -> io::Result<i32> {
        unsafe extern "C" {
            static environ: *const *mut c_char;
        }
        let mut pid = 0;
        // SAFETY: valid strings and arrays; the actions are initialized before use and destroyed
        // afterwards.
        let result = unsafe {
            let mut actions: libc::posix_spawn_file_actions_t = std::mem::zeroed();
            libc::posix_spawn_file_actions_init(&raw mut actions);
            if let Some(fd) = output {
                libc::posix_spawn_file_actions_adddup2(&raw mut actions, fd, 1);
            }
            let (path, argv) = (self.path.as_ptr(), self.argv.as_ptr().cast());
            let result = libc::posix_spawn(&raw mut pid, path, &raw const actions, std::ptr::null(), argv, environ);
            libc::posix_spawn_file_actions_destroy(&raw mut actions);
            result
        };
        match result {
            0 => Ok(pid),
            error => Err(io::Error::from_raw_os_error(error)),
        }
    }

    fn posix_spawn_with_pipe(&self) -> io::Result<RunningChild> {
        let (reader, writer): (OwnedFd, OwnedFd) = pipe2(OFlag::O_CLOEXEC)?;
        let pid = self.posix_spawn(Some(writer.as_raw_fd()))?;
        Ok(RunningChild::Piped(pid, File::from(reader)))
    }

    fn popen(&self) -> io::Result<RunningChild> {
        // SAFETY: both strings are valid.
        let stream = unsafe { libc::popen(self.shell_command.as_ptr(), c"r".as_ptr()) };
        if stream.is_null() {
            return Err(io::Error::last_os_error());
        }
        Ok(RunningChild::Stream(stream))
    }
}

fn vspawn_with_pipe(program: &Program) -> io::Result<RunningChild> {
    let mut child = command(Mechanism::VspawnPipe, program).spawn().map_err(to_io_error)?;
    let output = child.stdout.take().ok_or_else(|| io::Error::other("no pipe"))?;
    Ok(RunningChild::VspawnPiped(child, File::from(OwnedFd::from(output))))
}

fn command(mechanism: Mechanism, program: &Program) -> Command {
    let mut command = Command::new(program.argv.first().map_or("", String::as_str));
    command.args(program.argv.iter().skip(1));
    command.close_others(mechanism == Mechanism::VspawnCloseOthers);
    if mechanism == Mechanism::VspawnPipe {
        command.stdout(Stdio::piped());
    }
    command
}

fn to_io_error(error: vspawn::Error) -> io::Error {
    io::Error::other(error)
}

fn wait(pid: i32) -> io::Result<i32> {
    loop {
        match reap(pid) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            reaped => return reaped.map(|(_, status)| status),
        }
    }
}

fn wait_for(child: &mut vspawn::Child) -> io::Result<i32> {
    use std::os::unix::process::ExitStatusExt;
    child.wait().map(ExitStatusExt::into_raw).map_err(to_io_error)
}

fn read(mut pipe: File) -> io::Result<String> {
    let mut output = String::new();
    pipe.read_to_string(&mut output)?;
    Ok(output)
}

/// Reads the output of a child of popen, and waits for the child. Returns the wait status and the
/// output.
fn read_stream(stream: *mut libc::FILE) -> (i32, Option<String>) {
    let mut output = Vec::new();
    let mut buffer = [0u8; 256];
    // SAFETY: the length is that of the buffer; the stream is read to its end and closed once.
    let status = unsafe {
        loop {
            match libc::fread(buffer.as_mut_ptr().cast(), 1, buffer.len(), stream) {
                0 => break,
                length => output.extend_from_slice(&buffer[..length]),
            }
        }
        libc::pclose(stream)
    };
    (status, Some(String::from_utf8_lossy(&output).into_owned()))
}
