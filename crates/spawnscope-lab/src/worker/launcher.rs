//! Starts a program by any mechanism, waits for it, and checks that it ran.
//!
//! Some launches are made by bare system calls. A library also blocks signals, reports errors and
//! sets up descriptors, which these launches do not. Their child runs in the parent's memory; it
//! only makes system calls, and never returns.

use std::ffi::{CStr, CString, c_char};
use std::fs::File;
use std::io::{self, Read};
use std::mem::ManuallyDrop;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use nix::fcntl::OFlag;
use nix::unistd::pipe2;
use vspawn::{Command, Prepared, Stdio};

use super::protocol::{Mechanism, Program};
use crate::LabError;
use spawnscope_system::ExecStrings;
use spawnscope_system::arch::call;
use spawnscope_system::launch_timing::clone::{ChildStack, CloneCall};
use spawnscope_system::process::reap;

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

/// A child that has not yet been waited for, and the pipe from which its output is read.
pub struct RunningChild {
    pub process: ChildProcess,
    output: Option<File>,
}

pub enum ChildProcess {
    Pid(i32),
    /// A child that runs on the stack of its `RawLaunch`.
    Raw(i32, Box<RawLaunch>),
    Vspawn(vspawn::Child),
    Stream(*mut libc::FILE),
    /// The wait status of a child that had ended when the call returned.
    Ended(i32),
}

impl<'p> Launcher<'p> {
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
        let mut output = None;
        let started = match mechanism {
            Mechanism::ForkExit => self.fork(false).map(ChildProcess::Pid),
            Mechanism::ForkExec => self.fork(true).map(ChildProcess::Pid),
            Mechanism::VforkExec => self.raw(CloneCall::Vfork),
            Mechanism::Clone => self.raw(CloneCall::Clone { flags: libc::CLONE_VM | libc::CLONE_VFORK }),
            Mechanism::Clone3 => self.raw(CloneCall::Clone3),
            Mechanism::CloneDetached => self.raw(CloneCall::Clone { flags: libc::CLONE_VM }),
            Mechanism::PosixSpawn => self.posix_spawn(None).map(ChildProcess::Pid),
            Mechanism::PosixSpawnPipe => {
                pipe2(OFlag::O_CLOEXEC).map_err(io::Error::from).and_then(|(reader, writer)| {
                    output = Some(File::from(reader));
                    self.posix_spawn(Some(writer.as_raw_fd())).map(ChildProcess::Pid)
                })
            }
            // SAFETY: the string is valid.
            Mechanism::System => Ok(ChildProcess::Ended(unsafe { libc::system(self.shell_command.as_ptr()) })),
            Mechanism::Popen => self.popen(),
            Mechanism::VspawnPrepared => self.prepared.spawn().map(ChildProcess::Vspawn).map_err(io::Error::other),
            Mechanism::VspawnDetached => {
                let child = command(mechanism, self.program).spawn_nowait();
                child.map(ChildProcess::Vspawn).map_err(io::Error::other)
            }
            Mechanism::Vspawn | Mechanism::VspawnCloseOthers | Mechanism::VspawnPipe => {
                let child = command(mechanism, self.program).spawn();
                child.map_err(io::Error::other).map(|mut child| {
                    output = child.stdout.take().map(|pipe| File::from(OwnedFd::from(pipe)));
                    ChildProcess::Vspawn(child)
                })
            }
        };
        let doing = LabError::doing(format!("start a child with {}", mechanism.name()));
        started.map(|process| RunningChild { process, output }).map_err(doing)
    }

    /// Returns the time until the child was waited for, and that of the call that started it.
    pub fn time(&mut self, mechanism: Mechanism) -> Result<[Duration; 2], LabError> {
        let began = Instant::now();
        let running = self.start(mechanism)?;
        let call = began.elapsed();
        self.finish(mechanism, running)?;
        Ok([began.elapsed(), call])
    }

    pub fn finish(&mut self, mechanism: Mechanism, running: RunningChild) -> Result<(), LabError> {
        // A child that writes ends only when its output is read.
        let output = running.output.map(read).transpose().map_err(LabError::doing("wait for a child"))?;
        let ended = match running.process {
            ChildProcess::Pid(pid) => wait(pid).map(|status| (status, output)),
            ChildProcess::Raw(pid, raw) => {
                let status = wait(pid);
                self.idle.push(raw);
                status.map(|status| (status, output))
            }
            ChildProcess::Vspawn(mut child) => match child.wait() {
                Ok(status) => Ok((status.into_raw(), output)),
                Err(error) => Err(io::Error::other(error)),
            },
            ChildProcess::Stream(stream) => Ok(read_stream(stream)),
            ChildProcess::Ended(status) => Ok((status, output)),
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

    fn raw(&mut self, call: CloneCall) -> io::Result<ChildProcess> {
        let raw = match self.idle.pop() {
            Some(raw) => raw,
            None => RawLaunch::new(&self.path, &self.argv)?,
        };
        let pid = raw.start(call)?;
        Ok(ChildProcess::Raw(pid, raw))
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

    fn popen(&self) -> io::Result<ChildProcess> {
        // SAFETY: both strings are valid.
        let stream = unsafe { libc::popen(self.shell_command.as_ptr(), c"r".as_ptr()) };
        if stream.is_null() {
            return Err(io::Error::last_os_error());
        }
        Ok(ChildProcess::Stream(stream))
    }
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

fn wait(pid: i32) -> io::Result<i32> {
    loop {
        match reap(pid) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            reaped => return reaped.map(|(_, status)| status),
        }
    }
}

fn read(mut pipe: File) -> io::Result<String> {
    let mut output = String::new();
    pipe.read_to_string(&mut output)?;
    Ok(output)
}

/// Reads the output of a child of popen, and waits for the child. Returns the wait status and the
/// output.
fn read_stream(stream: *mut libc::FILE) -> (i32, Option<String>) {
    // SAFETY: the descriptor is that of the stream, which closes it. Nothing was read through the
    // stream before.
    let pipe = ManuallyDrop::new(unsafe { File::from_raw_fd(libc::fileno(stream)) });
    let mut output = Vec::new();
    let _ = (&*pipe).read_to_end(&mut output);
    // SAFETY: the stream is closed once.
    let status = unsafe { libc::pclose(stream) };
    (status, Some(String::from_utf8_lossy(&output).into_owned()))
}

/// The program of a child, and the child's stack. The value is boxed, because the child receives
/// its address.
pub struct RawLaunch {
    path: *const c_char,
    argv: *const *const c_char,
    envp: *const *const c_char,
    stack: ChildStack,
}

impl RawLaunch {
    /// Prepares launches of a program. `path` and `argv` must outlive all children.
    fn new(path: &CStr, argv: &ExecStrings) -> io::Result<Box<RawLaunch>> {
        unsafe extern "C" {
            static environ: *const *const c_char;
        }
        Ok(Box::new(RawLaunch {
            path: path.as_ptr(),
            argv: argv.as_ptr(),
            // SAFETY: a worker never changes its environment.
            envp: unsafe { environ },
            stack: ChildStack::map()?,
        }))
    }

    /// Starts a child and returns its pid. The `RawLaunch` of a detached child must not be used
    /// again before the child has ended.
    fn start(&self, call: CloneCall) -> io::Result<i32> {
        // SAFETY: the child only makes system calls, with memory that the parent keeps. The caller
        // waits before it uses the stack again.
        unsafe { self.stack.start(call, child, std::ptr::from_ref(self).cast()) }
    }
}

unsafe extern "C" fn child(raw: *const u8) -> ! {
    // SAFETY: the parent keeps everything that the pointers point to.
    unsafe {
        let raw = &*raw.cast::<RawLaunch>();
        let arguments = [raw.path as usize, raw.argv as usize, raw.envp as usize];
        call(libc::SYS_execve, arguments);
        loop {
            call(libc::SYS_exit_group, [127, 0, 0]);
        }
    }
}
