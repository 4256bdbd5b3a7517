//! `vspawn_popen` and `vspawn_pclose`: a child with one stream to or from it. `noshell` uses these
//! streams too.

use std::ffi::{c_char, c_int};
use std::os::fd::{AsRawFd, IntoRawFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use libc::{FILE, pid_t};
use vspawn_core::{Child, Command, Stdio};

use crate::entry::entry_or;
use crate::failure::{Failure, Stage};
use crate::options::command_from_argv;
use crate::pointers::string;
use crate::state;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    /// The caller reads what the child writes.
    Read,
    /// The caller writes what the child reads.
    Write,
}

/// An open stream that is not in the table yet. Dropping it closes the stream.
pub(crate) struct NewStream {
    file: *mut FILE,
}

impl NewStream {
    fn new(fd: OwnedFd, direction: Direction) -> Result<NewStream, Failure> {
        let mode = match direction {
            Direction::Read => c"r",
            Direction::Write => c"w",
        };
        // SAFETY: an open descriptor and a constant string.
        let file = unsafe { libc::fdopen(fd.as_raw_fd(), mode.as_ptr()) };
        if file.is_null() {
            return Err(Failure::last_os_error(Stage::Pipe, "make a stream of a pipe"));
        }
        // The stream owns the descriptor now.
        let _ = fd.into_raw_fd();
        Ok(NewStream { file })
    }

    /// Adds the stream to the table. From now on, `close` closes it.
    fn add_to_table(self, child: Child) -> *mut FILE {
        let file = self.file;
        std::mem::forget(self);
        let address = file as usize;
        // An entry at this address belongs to a stream that the caller has closed with fclose,
        // which is an error.
        let stale = state::with_lock(|state| {
            let stale = state.streams.iter().position(|(other, _)| *other == address);
            let stale = stale.map(|index| state.streams.swap_remove(index));
            state.streams.push((address, child));
            stale
        });
        drop(stale);
        file
    }
}

impl Drop for NewStream {
    fn drop(&mut self) {
        // SAFETY: an open stream that no other code knows.
        unsafe { libc::fclose(self.file) };
    }
}

fn pipe() -> Result<(OwnedFd, OwnedFd), Failure> {
    let (reader, writer) = std::io::pipe().map_err(|error| {
        let errno = error.raw_os_error().unwrap_or(libc::EMFILE);
        Failure::new(Stage::Pipe, errno, "make a pipe")
    })?;
    Ok((reader.into(), writer.into()))
}

/// Starts a command with a stream. `connect` gives the child its end of the pipe. As with popen,
/// the child keeps the caller's mask and its disposition of SIGPIPE.
pub(crate) fn open(
    mut command: Command,
    direction: Direction,
    connect: impl FnOnce(&mut Command, Stdio),
) -> Result<(*mut FILE, pid_t), Failure> {
    let (reader, writer) = pipe()?;
    let (own_end, child_end) = match direction {
        Direction::Read => (reader, writer),
        Direction::Write => (writer, reader),
    };
    let stream = NewStream::new(own_end, direction)?;
    command.inherit_sigpipe().inherit_signal_mask();
    connect(&mut command, child_end.into());
    // A stream shows no pidfd, and popen identifies its child by the pid, too.
    let child = command.with_pidfd(false).spawn()?;
    let pid = child.id() as pid_t;
    Ok((stream.add_to_table(child), pid))
}

/// Closes a stream and waits for its child. The child must have the pid `expected_pid`, if that is
/// given.
pub(crate) fn close(file: *mut FILE, expected_pid: Option<pid_t>) -> Result<c_int, Failure> {
    let taken = state::with_lock(|state| {
        let index = state.streams.iter().position(|(address, child)| {
            *address == file as usize && expected_pid.is_none_or(|pid| child.id() as pid_t == pid)
        })?;
        Some(state.streams.swap_remove(index).1)
    });
    let mut child = taken.ok_or_else(|| Failure::invalid("close something other than an open vspawn_popen stream"))?;
    // SAFETY: it was in the table, so it is open and now ours.
    let closed = match unsafe { libc::fclose(file) } {
        0 => Ok(()),
        _ => Err(Failure::last_os_error(Stage::Communicate, "write the rest of the stream")),
    };
    match child.wait().map(ExitStatus::into_raw)? {
        // As in glibc's pclose: a failure of the child is more useful than one of the stream.
        0 => closed.map(|()| 0),
        status => Ok(status),
    }
}

/// # Safety
/// `type` is NULL or a string.
pub(crate) unsafe fn direction(r#type: *const c_char) -> Result<Direction, Failure> {
    // SAFETY: the caller's promise.
    match unsafe { string(r#type, "type") }?.as_encoded_bytes() {
        b"r" | b"re" | b"er" => Ok(Direction::Read),
        b"w" | b"we" | b"ew" => Ok(Direction::Write),
        _ => Err(Failure::invalid("open a stream of a type that is neither r nor w")),
    }
}

/// Starts a program with a stream: popen without a shell.
///
/// argv: as for vspawn; borrowed for the call. type: "r" to read what the program writes to its
/// standard output, "w" to write its standard input. An added "e" changes nothing, since the stream
/// is always close-on-exec, so that no other child inherits it. Returns a stream that the caller
/// owns and passes to vspawn_pclose; NULL with errno on failure, for example if the program cannot
/// be executed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vspawn_popen(argv: *const *const c_char, r#type: *const c_char) -> *mut FILE {
    entry_or(std::ptr::null_mut(), || {
        // SAFETY: strings as documented, or NULL.
        let (command, direction) = unsafe { (command_from_argv(std::ptr::null(), argv)?, direction(r#type)?) };
        let (file, _) = open(command, direction, |command, end| {
            match direction {
                Direction::Read => command.stdout(end),
                Direction::Write => command.stdin(end),
            };
        })?;
        Ok(file)
    })
}

/// Closes a stream of vspawn_popen and waits for its program. Any thread may call it.
///
/// stream: consumed. Returns what waitpid stores, or -1 with errno: EINVAL for NULL or for a stream
/// that is not an open stream of vspawn_popen (which is then not touched), ECHILD if other code has
/// waited for the child, and the errno of a failed write if the program itself ended with 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vspawn_pclose(stream: *mut FILE) -> c_int {
    entry_or(-1, || close(stream, None))
}
