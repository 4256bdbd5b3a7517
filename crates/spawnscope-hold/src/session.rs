//! One run of `hold`, from the start of the command to its end: a loop on one thread, because a
//! tracer is bound to its thread. If anything fails here, no process stays stopped, and the command
//! runs to its end.

use std::collections::HashSet;
use std::fs;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::attach::Tool;
use super::held_process::{HeldProcess, State};
use super::launch_selector::LaunchSelector;
use super::prompt::Prompt;
use super::{CHECK_INTERVAL, ContinuedBy, HoldError, Notice, Request, Run, SHORT_CHECK_INTERVAL};
use spawnscope_data::event::Pid;
use spawnscope_system::held::{HeldCommand, Identity, ReleasedCommand};
use spawnscope_system::ptrace::{Event, Options, Resume, Stop, Tracer, Tracers, named_processes, refusal};
use spawnscope_system::signals::{ArrivedSignal, ChildChanges, Signals};
use spawnscope_system::{files, job_control, procfs};

pub(super) struct Session<'a> {
    command: Pid,
    /// Set until the command has executed its program, or has failed to do so.
    released: Option<ReleasedCommand>,
    tracer: Tracer,
    tracers: Tracers,
    children: ChildChanges,
    /// The launch to hold; `None`: the command itself.
    selector: Option<LaunchSelector>,
    run: Option<Run<'a>>,
    signals: &'a Signals,
    /// The user that the command and the command of `--run` run as, if it is not the current one.
    identity: Option<Identity>,
    notify: &'a mut dyn FnMut(Notice),
    held: Option<HeldProcess>,
    releaser: Releaser,
    tool: Option<Tool>,
    status: Option<i32>,
    /// The arguments of the programs that a `LostPrivilege` notice was sent for.
    unprivileged: HashSet<Vec<Vec<u8>>>,
}

enum Releaser {
    Undecided,
    Terminal(Prompt),
    AnyProcess,
    Tool,
}

impl<'a> Session<'a> {
    /// Starts the command. It is traced from before its exec.
    pub(super) fn start(
        request: Request<'a>,
        signals: &'a Signals,
        notify: &'a mut dyn FnMut(Notice),
    ) -> Result<Session<'a>, HoldError> {
        let identity = request.identity.clone();
        let waiting = HeldCommand::start(request.command, request.identity, &[], signals.inherited_mask())?;
        let command = waiting.pid();
        let children = ChildChanges::catch().map_err(|error| HoldError::System { action: "watch processes", error })?;
        let mut tracer = Tracer::new();
        let options = if request.selector.is_some() { Options::EXEC | Options::CREATION } else { Options::EXEC };
        let seized = tracer.seize(command, options);
        seized.map_err(|error| HoldError::Refused { error, why: refusal::reason(command) })?;
        Ok(Session {
            command,
            released: Some(waiting.release_without_waiting()?),
            tracer,
            tracers: Tracers::default(),
            children,
            selector: request.selector,
            run: request.run,
            signals,
            notify,
            held: None,
            releaser: Releaser::Undecided,
            tool: None,
            identity,
            status: None,
            unprivileged: HashSet::new(),
        })
    }

    pub(super) fn run(mut self) -> Result<i32, HoldError> {
        loop {
            self.wait()?;
            while let Some(arrived) = self.signals.next() {
                self.forward(arrived);
            }
            // The held process is checked before the tracer's changes are read, so that the wait
            // status is known below if the process has ended.
            let was_held = self.is_holding();
            let state = self.held.as_mut().map(HeldProcess::update);
            while let Some(event) = self.tracer.next_event() {
                self.handle_event(event)?;
            }
            self.handle_held_process(state.filter(|_| was_held));
            // While the command is traced, the tracer reports its stops.
            let is_untraced = self.status.is_none() && !self.tracer.is_tracing(self.command);
            if is_untraced && job_control::has_stopped(self.command) {
                self.stop_with_command(self.command);
            }
            self.finish_tool();
            if let Some(status) = self.status.filter(|_| self.is_over()) {
                self.send_final_notices();
                return Ok(status);
            }
        }
    }

    fn is_holding(&self) -> bool {
        self.held.as_ref().is_some_and(HeldProcess::is_held)
    }

    fn is_over(&self) -> bool {
        !self.is_holding() && self.tool.as_ref().is_none_or(Tool::is_over)
    }

    /// Returns the time until the next check; `None` if every change will make a descriptor
    /// readable.
    fn check_interval(&self) -> Option<Duration> {
        let is_held = self.is_holding();
        let should_finish = self.has_held_ended() && !self.is_over();
        match self.releaser {
            Releaser::Tool if is_held => Some(SHORT_CHECK_INTERVAL),
            _ => (is_held || should_finish).then_some(CHECK_INTERVAL),
        }
    }

    fn has_held_ended(&self) -> bool {
        self.held.as_ref().is_some_and(|held| held.end_readiness().is_none())
    }

    fn wait(&self) -> Result<(), HoldError> {
        let mut watched: Vec<BorrowedFd<'_>> = vec![self.signals.readiness(), self.children.readiness()];
        watched.extend(self.held.as_ref().and_then(HeldProcess::end_readiness));
        watched.extend(self.tool.as_ref().and_then(Tool::end_readiness));
        if let (Releaser::Terminal(prompt), true) = (&self.releaser, self.is_holding()) {
            watched.extend(prompt.readiness());
        }
        let mut fds: Vec<PollFd<'_>> =
            watched.into_iter().map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
        let interval =
            self.check_interval().map(|interval| Timespec { tv_sec: 0, tv_nsec: i64::from(interval.subsec_nanos()) });
        match poll(&mut fds, interval.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(HoldError::System { action: "wait for processes", error: error.into() }),
        }
        // One SIGCHLD may stand for several changes, so the caller reads all of them each time.
        self.children.clear();
        Ok(())
    }

    /// Forwards a signal to the command, unless the kernel has already sent it there. A signal that
    /// should end the command also continues the held process.
    fn forward(&mut self, arrived: ArrivedSignal) {
        if self.status.is_none() {
            arrived.forward_to(self.command.0);
        }
        let should_end = arrived.should_end() && !matches!(arrived.signal, libc::SIGUSR1 | libc::SIGUSR2);
        if let (Some(held), true) = (&mut self.held, should_end) {
            held.release();
        }
    }

    fn handle_event(&mut self, event: Event) -> Result<(), HoldError> {
        match event {
            Event::Ended(pid, status) => return self.handle_end(pid, status),
            Event::Stopped(pid, Stop::Exec) => return self.handle_exec(pid),
            Event::Stopped(thread, stop) => {
                self.tracer.pass_on(thread, stop);
                if matches!(stop, Stop::Group(_)) {
                    self.stop_with_command(thread);
                }
            }
        }
        Ok(())
    }

    /// Stops this process with the command, unless the command is the held process, which a
    /// debugger stops and continues.
    fn stop_with_command(&self, stopped: Pid) {
        let is_held = self.held.as_ref().is_some_and(|held| held.is_held() && held.pid == stopped);
        if stopped == self.command && !is_held {
            job_control::stop_with(stopped);
        }
    }

    fn handle_exec(&mut self, pid: Pid) -> Result<(), HoldError> {
        self.released = None;
        let arguments = procfs::arguments(pid);
        if !is_root()
            && fs::metadata(format!("/proc/{}/exe", pid.0)).is_ok_and(|file| files::is_set_id(&file))
            && self.unprivileged.insert(arguments.clone())
        {
            (self.notify)(Notice::LostPrivilege { arguments: arguments.clone() });
        }
        let program = procfs::program(pid);
        let selector = self.selector.as_mut();
        if !selector.is_none_or(|selector| selector.count_exec(pid, program.as_deref(), &arguments)) {
            if program.is_some_and(|program| self.tracers.is_tracer(pid, &program, None)) {
                for target in named_processes(&arguments).filter(|target| *target != pid) {
                    self.tracer.let_go(target);
                }
                self.tracer.detach_after_others(pid);
                (self.notify)(Notice::Tracer { arguments });
            } else {
                self.tracer.resume(pid, Resume::Continue(0));
            }
            return Ok(());
        }
        let held = HeldProcess::new(pid).map_err(|error| HoldError::System { action: "hold the process", error })?;
        self.held = Some(held);
        // A signal passed with PTRACE_DETACH would be ignored here, because the process is not in a
        // signal-delivery stop. SAFETY: a plain system call.
        unsafe { libc::kill(pid.0, libc::SIGSTOP) };
        self.tracer.resume(pid, Resume::Detach(0));
        // A process can have only one tracer, and the debugger must attach.
        self.tracer.detach_all();
        Ok(())
    }

    fn handle_end(&mut self, pid: Pid, status: i32) -> Result<(), HoldError> {
        if let Some(selector) = &mut self.selector {
            selector.forget(pid);
        }
        if let Some(tool) = self.tool.as_mut().filter(|tool| tool.pid == pid) {
            tool.status = Some(status);
        }
        if pid == self.command {
            self.status = Some(status);
            if let Some(released) = self.released.take() {
                released.outcome()?;
            }
        }
        Ok(())
    }

    /// Handles the state of the held process: asks whether a stopped process may continue, and
    /// reports that it has continued or ended.
    fn handle_held_process(&mut self, state: Option<State>) {
        let Some(pid) = self.held.as_ref().map(|held| held.pid) else { return };
        match state {
            Some(State::Stopped(None)) => self.continue_if_decided(pid),
            Some(State::Continued) => (self.notify)(Notice::Continued(pid)),
            Some(State::Ended) => {
                let status = self.status.filter(|_| pid == self.command);
                (self.notify)(match status {
                    // A stopped process cannot exit, so it must have been continued.
                    Some(status) if libc::WIFEXITED(status) => Notice::Continued(pid),
                    _ => Notice::Ended(pid, status),
                });
            }
            Some(State::Stopping | State::Stopped(_)) | None => {}
        }
    }

    /// Reports the stop when it is seen for the first time. After that, continues the stopped
    /// process if the releaser has decided so.
    fn continue_if_decided(&mut self, pid: Pid) {
        let may_continue = match &mut self.releaser {
            Releaser::Undecided => {
                self.report_stop(pid);
                false
            }
            Releaser::Terminal(prompt) => prompt.is_answered(),
            Releaser::AnyProcess => false,
            Releaser::Tool => self.is_tool_done(pid),
        };
        if let (Some(held), true) = (&mut self.held, may_continue) {
            held.release();
        }
    }

    fn report_stop(&mut self, pid: Pid) {
        let prompt = if self.run.is_some() { None } else { Prompt::open() };
        let (releaser, continued_by) = match (self.run, prompt) {
            (Some(_), _) => (Releaser::Tool, ContinuedBy::RunCommand),
            (None, Some(prompt)) => (Releaser::Terminal(prompt), ContinuedBy::Enter),
            (None, None) => (Releaser::AnyProcess, ContinuedBy::Signal),
        };
        (self.notify)(Notice::Stopped {
            pid,
            arguments: procfs::arguments(pid),
            continued_by,
            needs_root: procfs::yama_scope().is_some_and(|scope| scope > 0) && (self.identity.is_some() || !is_root()),
        });
        self.releaser = releaser;
        let Some(run) = self.run else { return };
        match Tool::start(run.text, pid, *self.signals.inherited_mask(), self.identity.as_ref()) {
            Ok(tool) => self.tool = Some(tool),
            Err(error) => (self.notify)(Notice::ToolNotStarted(pid, error.to_string())),
        }
    }

    /// Whether the process may continue, because the tool has attached, has failed to do so in
    /// time, has ended, or could not be started.
    fn is_tool_done(&mut self, target: Pid) -> bool {
        let Some(tool) = &mut self.tool else { return true };
        let notice = tool.progress(target);
        let is_done = notice.is_some();
        notice.into_iter().for_each(|notice| (self.notify)(notice));
        is_done
    }

    fn finish_tool(&mut self) {
        let Some(run) = self.run.filter(|_| self.has_held_ended()) else { return };
        if let Some(signal) = self.tool.as_mut().and_then(|tool| tool.finish(run.grace)) {
            (self.notify)(Notice::Sending(signal));
        }
    }

    /// Reports at the end of the run that no launch was held, or that the tool failed or was left
    /// running.
    fn send_final_notices(&mut self) {
        if let (Some(selector), None) = (&self.selector, &self.held) {
            (self.notify)(Notice::NoMatch { count: selector.count });
        }
        if let Some(tool) = &self.tool {
            if tool.was_left_running() {
                (self.notify)(Notice::ToolLeftRunning(tool.pid));
            } else if let Some(status) = tool.failure() {
                (self.notify)(Notice::ToolFailed(status));
            }
        }
    }
}

fn is_root() -> bool {
    nix::unistd::geteuid().is_root()
}
