//! Connects a pseudo-terminal with a socket, which is the stream in JavaScript. Node's own streams
//! write to a pseudo-terminal with calls that block the event loop: a child that waits for Node to
//! read would never go on.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::thread;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::retry_on_intr;
use vspawn::pty::Pty;

/// Copies in both directions, in two threads, until the other end of the socket is closed or no
/// process has the terminal open. Returns that other end.
pub(crate) fn connect(pty: &Arc<Pty>) -> io::Result<OwnedFd> {
    let (ours, nodes) = UnixStream::pair()?;
    let (typing, mut typed) = (Arc::clone(pty), ours.try_clone()?);
    let shown = Arc::clone(pty);
    let thread = |name: &str| thread::Builder::new().name(format!("vspawn {name}"));
    thread("input").spawn(move || io::copy(&mut typed, &mut &*typing))?;
    thread("output").spawn(move || {
        let _end = show(&shown, &ours);
        let _closed = ours.shutdown(Shutdown::Write);
    })?;
    Ok(nodes.into())
}

/// Copies what is shown on the terminal. When Node has closed its end, the terminal is closed, too,
/// and its processes get SIGHUP.
fn show(pty: &Pty, mut socket: &UnixStream) -> io::Result<()> {
    // More than the kernel returns at once.
    let mut buffer = [0; 8192];
    loop {
        let mut polls = [PollFd::new(pty, PollFlags::IN), PollFd::new(socket, PollFlags::empty())];
        retry_on_intr(|| poll(&mut polls, None))?;
        if polls[1].revents().contains(PollFlags::HUP) {
            return Ok(());
        }
        match (&mut &*pty).read(&mut buffer)? {
            0 => return Ok(()),
            count => socket.write_all(&buffer[..count])?,
        }
    }
}
