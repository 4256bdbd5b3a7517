//! Traces real shells, each from before its exec.

use std::ffi::OsString;
use std::time::{Duration, Instant};

use nix::sys::signal::{SigSet, Signal, kill};

use super::*;
use crate::held::HeldCommand;
use crate::procfs::Status;

/// A traced shell.
struct TracedShell {
    shell: Pid,
    tracer: Tracer,
}

impl TracedShell {
    fn start(script: &str, options: Options) -> TracedShell {
        let command = ["sh", "-c", script].map(OsString::from);
        let held = HeldCommand::start(&command, None, &[], &SigSet::empty()).unwrap();
        let shell = held.pid();
        let mut tracer = Tracer::new();
        tracer.seize(shell, options).unwrap();
        held.release_without_waiting().unwrap();
        TracedShell { shell, tracer }
    }

    fn next(&mut self) -> Event {
        let began = Instant::now();
        loop {
            if let Some(event) = self.tracer.next_event() {
                return event;
            }
            assert!(began.elapsed() < Duration::from_secs(60), "no event");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Returns all events up to the end of the shell, and passes each stop on.
    fn events(&mut self) -> Vec<Event> {
        let mut events = Vec::new();
        loop {
            let event = self.next();
            events.push(event);
            match event {
                Event::Stopped(thread, stop) => self.tracer.pass_on(thread, stop),
                Event::Ended(process, _) if process == self.shell => return events,
                Event::Ended(..) => {}
            }
        }
    }

    /// Passes stops on until the shell is in the wanted stop.
    fn run_to(&mut self, wanted: Stop) {
        loop {
            match self.next() {
                Event::Stopped(thread, stop) if (thread, stop) == (self.shell, wanted) => return,
                Event::Stopped(thread, stop) => self.tracer.pass_on(thread, stop),
                Event::Ended(..) => panic!("ended before {wanted:?}"),
            }
        }
    }

    /// Runs the shell to its end, and returns its wait status.
    fn status(&mut self) -> i32 {
        match self.events().last() {
            Some(Event::Ended(_, status)) => *status,
            _ => panic!("no end"),
        }
    }
}

fn exec(thread: Pid) -> Event {
    Event::Stopped(thread, Stop::Exec)
}

fn exiting(thread: Pid, status: i32) -> Event {
    Event::Stopped(thread, Stop::Exiting(Some(status)))
}

/// Whether this thread has any tracees or other children left.
fn has_children() -> bool {
    let flags = libc::WEXITED | libc::WSTOPPED | libc::WNOWAIT | libc::WNOHANG | CHILDREN;
    // SAFETY: all zeroes is a valid `siginfo_t`, which the kernel fills.
    unsafe {
        let mut information: libc::siginfo_t = std::mem::zeroed();
        libc::waitid(libc::P_ALL, 0, &raw mut information, flags) == 0
    }
}

#[test]
fn a_launch_is_reported_as_a_creation_an_exec_and_an_end() {
    let options = Options::CREATION | Options::EXEC | Options::EXITING;
    let mut traced = TracedShell::start("/bin/sh -c 'exit 2'; exit 3", options);
    let events = traced.events();
    let child = events.iter().find_map(|event| match event {
        Event::Stopped(_, Stop::Created { child, .. }) => *child,
        _ => None,
    });
    let child = child.unwrap();
    for expected in [
        exec(traced.shell),
        Event::Stopped(child, Stop::Interrupted),
        exec(child),
        exiting(child, 2 << 8),
        Event::Ended(child, 2 << 8),
        exiting(traced.shell, 3 << 8),
        Event::Ended(traced.shell, 3 << 8),
    ] {
        assert_eq!(events.iter().filter(|event| **event == expected).count(), 1, "{expected:?}, {events:?}");
    }
    assert!(traced.tracer.threads.is_empty() && !has_children());
}

#[test]
fn a_signal_is_delivered_only_if_it_is_passed_on() {
    let script = "trap 'exit 7' USR1; kill -USR1 $$; exit 1";
    assert_eq!(TracedShell::start(script, Options::default()).status(), 7 << 8);
    let mut traced = TracedShell::start(script, Options::default());
    traced.run_to(Stop::Signal(libc::SIGUSR1));
    traced.tracer.resume(traced.shell, Resume::Continue(0));
    assert_eq!(traced.status(), 1 << 8);
}

#[test]
fn a_stopped_process_stays_stopped_until_it_is_continued() {
    let mut traced = TracedShell::start("kill -STOP $$; exit 5", Options::default());
    let shell = traced.shell;
    traced.run_to(Stop::Group(libc::SIGSTOP));
    traced.tracer.pass_on(shell, Stop::Group(libc::SIGSTOP));
    assert_eq!(traced.tracer.next_event(), None);
    assert!(Status::read(shell).unwrap().is_stopped());
    kill(nix::unistd::Pid::from_raw(shell.0), Signal::SIGCONT).unwrap();
    let events = traced.events();
    assert!(events.contains(&Event::Stopped(shell, Stop::Interrupted)), "{events:?}");
    assert_eq!(events.last(), Some(&Event::Ended(shell, 5 << 8)));
}

#[test]
fn system_calls_are_reported_on_request() {
    let mut traced = TracedShell::start("exit 0", Options::EXEC | Options::SYSTEM_CALLS);
    let exec = Stop::Exec;
    traced.run_to(exec);
    traced.tracer.resume(traced.shell, Resume::ToSystemCall(0));
    assert_eq!(traced.next(), Event::Stopped(traced.shell, Stop::SystemCall));
    traced.tracer.resume(traced.shell, Resume::Continue(0));
    assert_eq!(traced.status(), 0);
}

#[test]
fn a_process_that_blocks_all_signals_stops_when_it_unblocks_them() {
    let (go, release) = nix::unistd::pipe().unwrap();
    let (has_blocked, blocked) = nix::unistd::pipe().unwrap();
    // SAFETY: the child only makes system calls.
    let child = match unsafe { nix::unistd::fork() }.unwrap() {
        nix::unistd::ForkResult::Child => {
            let _ = SigSet::all().thread_set_mask();
            let _ = nix::unistd::write(&blocked, b"b");
            let _ = nix::unistd::read(&go, &mut [0]);
            let _ = SigSet::empty().thread_set_mask();
            // SAFETY: exits at once.
            unsafe { libc::_exit(3) }
        }
        nix::unistd::ForkResult::Parent { child } => Pid(child.as_raw()),
    };
    assert_eq!(nix::unistd::read(&has_blocked, &mut [0]), Ok(1));
    let mut traced = TracedShell { shell: child, tracer: Tracer::new() };
    traced.tracer.seize(child, Options::default()).unwrap();
    traced.tracer.interrupt_all();
    traced.run_to(Stop::Interrupted);
    assert!(unblocking::blocks_all_signals(child));
    assert!(unblocking::stop_at_unblocking(child));
    traced.tracer.pass_on(child, Stop::Interrupted);
    nix::unistd::write(release, b"g").unwrap();
    traced.run_to(Stop::Signal(libc::SIGURG));
    assert!(unblocking::is_unblocking(child, libc::SIGURG));
    assert!(!unblocking::blocks_all_signals(child));
    traced.tracer.resume(child, Resume::Continue(0));
    assert_eq!(traced.status(), 3 << 8);
}

fn is_traced(process: Pid) -> bool {
    Status::read(process).is_none_or(|status| status.tracer.is_some())
}

#[test]
fn detached_processes_continue_untraced() {
    let mut traced = TracedShell::start("read line </dev/null; sleep 60 & wait; exit 1", Options::CREATION);
    let shell = traced.shell;
    let child = loop {
        match traced.next() {
            Event::Stopped(thread, stop) => {
                traced.tracer.pass_on(thread, stop);
                if let Stop::Created { child: Some(child), .. } = stop {
                    break child;
                }
            }
            Event::Ended(..) => panic!("no child"),
        }
    };
    traced.tracer.detach_all();
    let began = Instant::now();
    while is_traced(shell) || is_traced(child) {
        assert_eq!(traced.tracer.next_event(), None);
        assert!(began.elapsed() < Duration::from_secs(60), "still traced");
        std::thread::sleep(Duration::from_millis(1));
    }
    kill(nix::unistd::Pid::from_raw(child.0), Signal::SIGKILL).unwrap();
    assert_eq!(traced.next(), Event::Ended(shell, 1 << 8), "the child belongs to the shell alone");
}

#[test]
fn a_process_that_does_not_exist_cannot_be_traced() {
    let refused = Tracer::new().seize(Pid(i32::MAX), Options::default());
    assert_eq!(refused.unwrap_err().raw_os_error(), Some(libc::ESRCH));
}
