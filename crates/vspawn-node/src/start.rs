//! Starts a child: makes its pipes, and reports what failed.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, IntoRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Weak};

use napi_derive::napi;
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use vspawn::pty::{Pty, Size};
use vspawn::{Child, Command, Error, Stage, Stdio};

use crate::request::Request;
use crate::shell_words::shell_words;
use crate::terminal;

/// What `Request::stdio` has for a descriptor, if not a number of the parent.
const PIPE: i32 = -1;
const IGNORE: i32 = -2;
// The terminal of `Request::pty`, which is the default there: -3.

/// A child that was started, or the failure.
#[napi(object, object_from_js = false)]
#[derive(Default)]
pub struct Started {
    pub id: u32,
    pub pid: u32,
    /// The parent's ends of the pipes, which the caller owns from now on; -1 for other descriptors.
    /// Also after a failure, because users expect streams that end.
    pub fds: Vec<RawFd>,
    /// The socket that is connected with the pseudo-terminal. The caller owns it, too.
    pub pty: Option<RawFd>,
    /// 0 if nothing failed.
    pub errno: i32,
    pub stage: Option<String>,
    pub action: Option<String>,
}

/// Starts a child, and fills in its streams or the failure.
pub(crate) fn start(request: &Request, started: &mut Started) -> Option<(Child, Weak<Pty>)> {
    match start_into(request, started) {
        Ok(child) => return Some(child),
        Err(Failure::Step(error)) => {
            started.errno = error.raw_os_error();
            started.stage = Some(format!("{:?}", error.stage()));
            started.action = Some(error.action().to_owned());
        }
        Err(Failure::Before(stage, error)) => {
            started.errno = error.raw_os_error().unwrap_or_default();
            started.stage = Some(stage.to_owned());
        }
    }
    None
}

enum Failure {
    Step(Error),
    /// Preparations of this crate, with the names of `vspawn::Stage`.
    Before(&'static str, io::Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::Step(error)
    }
}

fn start_into(request: &Request, started: &mut Started) -> Result<(Child, Weak<Pty>), Failure> {
    let streams = streams(&request.stdio).map_err(|error| Failure::Before("Pipe", error))?;
    started.fds = streams.iter().map(Stream::parents_end).collect();
    let pty = request.pty.as_ref().map(|size| Pty::open(Size::new(size[0], size[1]))).transpose()?.map(Arc::new);
    let stream = pty.as_ref().map(terminal::connect).transpose().map_err(|error| Failure::Before("Pty", error))?;
    let child = start_shell_or_program(request, |file, args| {
        let mut command = request.command(file, args).map_err(|error| Failure::Before("Cgroup", error))?;
        streams.iter().enumerate().for_each(|(target, stream)| stream.set(&mut command, target as i32));
        Ok(match &pty {
            Some(pty) => pty.spawn(command),
            None => command.spawn(),
        }?)
    })?;
    started.pty = stream.map(IntoRawFd::into_raw_fd);
    Ok((child, pty.as_ref().map_or(Weak::new(), Arc::downgrade)))
}

/// Starts the program of a shell text that is simple. Otherwise, and if that program cannot be
/// executed (only the shell has the right message and status then), starts what was asked for.
fn start_shell_or_program(
    request: &Request,
    start: impl Fn(&str, &[String]) -> Result<Child, Failure>,
) -> Result<Child, Failure> {
    if let Some(words) = request.is_shell.then(|| simple_words(request)).flatten() {
        match start(&words[0], &words[1..]) {
            Err(Failure::Step(error)) if error.stage() == Stage::Exec => {}
            result => return result,
        }
    }
    start(&request.file, &request.args)
}

fn simple_words(request: &Request) -> Option<Vec<String>> {
    let env: Vec<(OsString, OsString)> = match &request.env {
        Some(env) => env.chunks_exact(2).map(|pair| (OsString::from(&pair[0]), OsString::from(&pair[1]))).collect(),
        None => std::env::vars_os().collect(),
    };
    let path = env.iter().find(|(name, _)| name == "PATH").map(|(_, path)| path.as_os_str());
    let words = shell_words(request.args.last()?.as_bytes(), env.iter().map(|(name, _)| name), path);
    words.ok()?.into_iter().map(|word| String::from_utf8(word).ok()).collect()
}

enum Stream {
    /// The child's end, and the number of the parent's end.
    Pipe(OwnedFd, RawFd),
    Number(RawFd),
    Null,
    Default,
}

/// Makes the pipes. They are not those of `Stdio::piped`, so that they remain after a failure.
fn streams(stdio: &[i32]) -> io::Result<Vec<Stream>> {
    let mut parents_ends = Vec::new();
    let streams = stdio.iter().enumerate().map(|(target, source)| {
        Ok(match *source {
            PIPE => {
                let (childs_end, parents_end) = pipe(target)?;
                let number = parents_end.as_raw_fd();
                parents_ends.push(parents_end);
                Stream::Pipe(childs_end, number)
            }
            IGNORE if target < 3 => Stream::Null,
            number @ 0.. => Stream::Number(number),
            _ => Stream::Default,
        })
    });
    let streams = streams.collect::<io::Result<Vec<Stream>>>()?;
    for end in parents_ends {
        let _number = end.into_raw_fd();
    }
    Ok(streams)
}

/// Returns the child's and the parent's end. As with child_process, further descriptors can be read
/// and written.
fn pipe(target: usize) -> io::Result<(OwnedFd, OwnedFd)> {
    if target > 2 {
        return UnixStream::pair().map(|(childs_end, parents_end)| (childs_end.into(), parents_end.into()));
    }
    let (reader, writer) = io::pipe()?;
    Ok(if target == 0 { (reader.into(), writer.into()) } else { (writer.into(), reader.into()) })
}

impl Stream {
    fn parents_end(&self) -> RawFd {
        if let Stream::Pipe(_, number) = self { *number } else { -1 }
    }

    fn set(&self, command: &mut Command, target: i32) {
        match self {
            Stream::Pipe(childs_end, _) => drop(command.fd_number(target, childs_end.as_raw_fd())),
            Stream::Number(number) => {
                if target < 3 {
                    make_blocking(*number);
                }
                command.fd_number(target, *number);
            }
            Stream::Null => match target {
                0 => drop(command.stdin(Stdio::null())),
                1 => drop(command.stdout(Stdio::null())),
                _ => drop(command.stderr(Stdio::null())),
            },
            Stream::Default => {}
        }
    }
}

/// Clears O_NONBLOCK, which Node may have set and programs do not expect, as child_process does.
fn make_blocking(number: RawFd) {
    // SAFETY: only used for two calls of fcntl, which report a closed descriptor; the spawn does,
    // too.
    let file = unsafe { BorrowedFd::borrow_raw(number) };
    if let Ok(flags) = fcntl_getfl(file)
        && flags.contains(OFlags::NONBLOCK)
    {
        let _ = fcntl_setfl(file, flags - OFlags::NONBLOCK);
    }
}
