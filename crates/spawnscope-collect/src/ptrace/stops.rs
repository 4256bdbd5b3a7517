//! Turns the stops of traced threads into events.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use spawnscope_data::event::{EventKind, Executed, Exited, LaunchId, Loaded, Nanos, Pid, Slice, TaskId};
use spawnscope_system::ptrace::unblocking::BlockedSignals;
use spawnscope_system::ptrace::{CallInfo, EntryDetour, NATIVE_AUDIT_ARCH, Registers, Stop, execute_again};
use spawnscope_system::{clock, procfs};

use super::blocked::{self, Activity};
use super::idle::Pipes;
use super::image::Image;
use super::processes::{Executes, Loading, Process, Thread};
use super::programs;
use super::setup::{ExecCall, Setup};
use super::shared::lock;
use super::tracing::Tracing;
use crate::{ROOT, scripts};

impl Tracing {
    /// Handles the stop of a thread. The thread continues before this returns, unless its creation
    /// has not been reported yet.
    pub(super) fn handle_stop(&mut self, tid: Pid, stop: Stop) {
        let Some(thread) = self.processes.thread(tid) else {
            match stop {
                // This is a new thread, whose creation has not been reported yet.
                Stop::Interrupted if !self.is_detaching => drop(self.early.insert(tid, clock::now())),
                _ => self.resume(tid, stop),
            }
            return;
        };
        self.waits.on_stop(tid);
        self.note_first_run(tid, thread, stop);
        if let Stop::Signal(signal) = stop
            && let Some(call) = self.detoured_call(tid, thread, signal)
        {
            return self.handle_first_threads_call(tid, thread, call);
        }
        match stop {
            Stop::Interrupted if thread.is_new => return self.handle_start(tid),
            Stop::Created { how, child } => self.handle_creation(tid, how, child),
            Stop::Exec => return self.handle_exec(tid),
            Stop::Exiting(Some(status)) => self.handle_exit(tid, thread, status),
            Stop::Signal(signal)
                if self.handle_load_end(tid, thread, signal)
                    || self.handle_command(tid, thread, signal)
                    || self.handle_unblocking(tid, thread, signal) =>
            {
                return self.resume(tid, Stop::Interrupted);
            }
            Stop::Signal(libc::SIGCHLD) => self.handle_child_end(tid, thread),
            Stop::SystemCall => return self.handle_system_call(tid, thread),
            Stop::Group(_) if self.processes.process(ROOT).is_some_and(|command| command.pid == tid) => {
                self.shared.command_stopped.store(true, Ordering::Release);
            }
            _ => {}
        }
        self.resume(tid, stop);
    }

    /// If this is the second stop of a process, notes when the process first ran.
    fn note_first_run(&mut self, tid: Pid, thread: Thread, stop: Stop) {
        if let Some(process) = self.processes.process_of(tid).filter(|process| process.pid == tid)
            && let Some(first_stop) = process.first_stop.take()
        {
            let at_first_call = matches!(stop, Stop::SystemCall | Stop::Signal(libc::SIGURG));
            let (second, first) = (self.stop_times.begin(tid, clock::now()), self.stop_times.last_span(thread.task));
            let ran = self.stop_times.cpu_time_of(tid);
            process.first_run = first_stop.first_run(tid, second, first, ran, at_first_call);
            if let Some(first_run) = process.first_run {
                self.stop_times.move_first(thread.task, first_run);
            }
        }
    }

    /// Handles a process that has executed a program and is stopped before the program's first
    /// instruction.
    fn handle_exec(&mut self, pid: Pid) {
        let at = clock::now();
        let Some(thread) = self.processes.thread(pid) else {
            return self.resume(pid, Stop::Interrupted);
        };
        let launch = thread.launch;
        self.leave_program(at, pid, thread);
        let info = CallInfo::read(pid).ok();
        let native = info.filter(|info| info.architecture == NATIVE_AUDIT_ARCH);
        let image = native.and_then(|info| Image::read(pid, info.stack_pointer));
        let Some(process) = self.processes.process(launch) else { return };
        process.begin_image(native.is_some(), image.as_ref().map(|image| image.entry_point));
        let mut setup = EndedSetup::take(process);
        let mut call = setup.call.take();
        let facts = call.as_mut().and_then(|call| call.facts.take());
        let is_judged = image.as_ref().zip(call.as_ref()).is_some_and(|(image, call)| image.path == call.path);
        process.pipes = facts.as_ref().map(|facts| Pipes(facts.pipes));
        let first_run = process.first_run.take();
        let executed = describe(pid, image.as_ref(), call, facts.as_ref().map(|facts| &facts.cwd), first_run);
        let path = executed.path.clone();
        let program = executed.interpreter.clone().unwrap_or_else(|| path.clone());
        let executes = self.traces_setup.then(|| Executes::of([&path, &program], &self.replaced));
        process.executes = executes.unwrap_or_default();
        let file = facts.filter(|_| is_judged && executed.interpreter.is_none()).map(|facts| facts.file);
        // The entry of the exec has shown whether the file gives privilege, but not whether a
        // script's interpreter does.
        let cannot_lose_privilege = self.keeps_privilege || is_judged && executed.interpreter.is_none();
        process.program.set_file(file);
        self.report(at, launch, thread.task, EventKind::Executed(executed));
        if !cannot_lose_privilege && programs::has_lost_privilege(pid) {
            return self.restore_privilege(pid, &path, image.as_ref());
        }
        self.begin_load(pid, thread, image.as_ref(), program);
        if self.tracers.is_tracer(pid, &path, file) {
            return self.leave_tracer(pid, &String::from_utf8_lossy(&path));
        }
        self.end_setup(pid, launch, &setup);
        self.resume(pid, Stop::Interrupted);
        self.note_pipes(pid, launch);
    }

    /// Reads the pipes of a process that has just executed a program, unless they are known. The
    /// program may close them, but its loader takes longer than this.
    fn note_pipes(&mut self, pid: Pid, launch: LaunchId) {
        if let Some(process) = self.processes.process(launch) {
            process.pipes.get_or_insert_with(|| Pipes::of(pid));
        }
    }

    /// Handles the end of a setup. The process is still stopped by its exec.
    fn end_setup(&mut self, pid: Pid, launch: LaunchId, setup: &EndedSetup) {
        if let Some(creator) = setup.creator_to_forget.and_then(|creator| self.processes.process(creator)) {
            creator.child_keeps_signal = None;
        }
        if setup.has_bypassed_detour {
            self.note_bypassed_detour(setup.creator);
        }
        if setup.may_have_pending_signal
            && let Some(process) = self.processes.process(launch)
        {
            process.blocked_signals = BlockedSignals::unblock(pid);
        }
    }

    /// Handles the end of the program that an exec has replaced, and of its other threads.
    fn leave_program(&mut self, at: Nanos, pid: Pid, thread: Thread) {
        let launch = thread.launch;
        let wait = self.waits.on_executed(pid, thread.task, at);
        self.report_parent_wait(wait, at);
        self.waits.on_parent_released(pid, at);
        self.waits.on_exec(pid);
        self.launchers.forget(pid);
        for other in self.processes.remove_other_threads(launch) {
            let gone = EventKind::Gone { zombie: None, auto_reaped: false, cpu: None };
            self.report(at, launch, other.task, gone);
        }
        // The thread that called exec is now the first thread.
        if let Some(first) = self.processes.thread_mut(pid) {
            (first.is_new, first.has_exited) = (false, false);
        }
        if let Some(loading) = self.processes.process(launch).and_then(|process| process.loading.as_ref()) {
            self.replaced.insert(loading.program.clone());
            self.report_load_end(at, launch, None);
        }
    }

    /// Handles a program that the kernel has executed without its privilege: lets the process
    /// execute it again, untraced.
    fn restore_privilege(&mut self, pid: Pid, path: &[u8], image: Option<&Image>) {
        let name = String::from_utf8_lossy(path).into_owned();
        // The path may not lead to the program any more, or not without a descriptor that the exec
        // has closed.
        let same = image.filter(|image| programs::is_executed_at(pid, &image.path));
        if same.is_some_and(|image| execute_again(pid, image.exec_arguments).is_ok()) {
            self.notify_of_privilege(&name);
            return self.leave_untraced(pid, Stop::Interrupted);
        }
        self.notify(format!(
            "{name} gets privilege from its file, and ran without that privilege because it was traced (to let it keep the privilege, use \
             eBPF: run spawnscope with sudo)"
        ));
        self.resume(pid, Stop::Interrupted);
    }

    /// If a loader runs before the program, lets the process store the time at which the program
    /// begins. It must also stop then if its system calls are traced from then on, or if it may
    /// execute another program in its place. Otherwise reports that the program has begun.
    fn begin_load(&mut self, pid: Pid, thread: Thread, image: Option<&Image>, program: Vec<u8>) {
        let (cpu, cpu_of_stops) = (clock::cpu_time_of(pid), self.stop_times.cpu_of_stops(pid));
        let returned = clock::now();
        let Some(return_cpu) = cpu else {
            // The process was killed in the meantime.
            return;
        };
        let process = self.processes.process(thread.launch);
        let (executes, is_filtered) =
            process.map(|process| (process.executes, process.is_filtered)).unwrap_or_default();
        if let Some(process) = self.processes.process(thread.launch) {
            process.begun = Some((returned, return_cpu.since(cpu_of_stops)));
        }
        if image.is_none_or(|image| !image.has_loader) {
            self.note_pipes(pid, thread.launch);
        }
        let stops = executes != Executes::Unlikely || self.replaced.contains(&program) || self.launchers.is_enabled;
        let entry_of = |image: &Image| image.entry.filter(|_| !is_filtered);
        let loaded = match image {
            Some(image) if !image.has_loader => Loaded::default(),
            Some(image) => match entry_of(image).map(|entry| EntryDetour::install(pid, entry, stops)) {
                Some(Ok(detour)) => {
                    let loading = Loading { program, detour, returned, return_cpu, cpu_of_stops };
                    if let Some(process) = self.processes.process(thread.launch) {
                        process.loading = Some(loading);
                    }
                    return;
                }
                _ => Loaded::by_loader(None),
            },
            None => Loaded::by_loader(None),
        };
        self.begin_program(pid, thread.launch);
        self.launchers.watch(pid);
        let loaded = Loaded { returned, return_cpu: Some(return_cpu.since(cpu_of_stops)), ..loaded };
        self.report(returned, thread.launch, thread.task, EventKind::Loaded(loaded));
    }

    /// Returns whether the signal comes from the detour that `begin_load` installed. If so, the
    /// program begins, and the signal must not be delivered.
    fn handle_load_end(&mut self, tid: Pid, thread: Thread, signal: i32) -> bool {
        let Some(process) = self.processes.process(thread.launch) else {
            return false;
        };
        if !process.loading.as_ref().is_some_and(|loading| loading.detour.is_reached_by(tid, signal)) {
            return false;
        }
        self.begin_program(tid, thread.launch);
        self.launchers.watch(tid);
        self.report_load(thread.launch, true);
        true
    }

    /// Returns whether the signal comes from a forked shell that begins its first command. If so,
    /// it must not be delivered.
    fn handle_command(&mut self, tid: Pid, thread: Thread, signal: i32) -> bool {
        let process = self.processes.process(thread.launch);
        let begins = process.is_some_and(|process| process.program.begins_command(tid, signal));
        if begins {
            self.report_own_call_site(tid, thread);
        }
        begins
    }

    /// Reports the call site of a forked shell, if it was to stop for that.
    pub(super) fn report_own_call_site(&mut self, tid: Pid, thread: Thread) {
        let creator = self.waits.creator_of(tid);
        let files = &mut self.interpreters.files;
        if let Some(process) = self.processes.process(thread.launch)
            && let Some(chain) = process.shell.call_site_at_command(tid, &mut process.program, creator, files)
        {
            self.report(clock::now(), thread.launch, thread.task, EventKind::Called(Arc::new(chain)));
        }
    }

    /// Reports how long the loader of a process has run, unless this was reported before. The
    /// process's memory is read. `is_last`: whether this is no longer possible later.
    pub(super) fn report_load(&mut self, launch: LaunchId, is_last: bool) {
        let process = self.processes.process(launch);
        let Some((pid, loading)) = process.and_then(|process| Some((process.pid, process.loading.as_ref()?))) else {
            return;
        };
        let now = clock::now();
        let is_plausible =
            |(end, cpu): &(Nanos, Nanos)| (loading.returned..=now).contains(end) && *cpu >= loading.return_cpu;
        let end = loading.detour.times(pid).filter(is_plausible);
        if end.is_some() || is_last {
            self.report_load_end(now, launch, end);
        }
    }

    fn report_load_end(&mut self, at: Nanos, launch: LaunchId, end: Option<(Nanos, Nanos)>) -> Option<()> {
        let loading = self.processes.process(launch)?.loading.take()?;
        let (returned, return_cpu) = (loading.returned, Some(loading.return_cpu.since(loading.cpu_of_stops)));
        let end = end.map(|(end, cpu)| (end, cpu.since(loading.cpu_of_stops)));
        let loaded = Loaded { returned, return_cpu, ..Loaded::by_loader(end) };
        self.report(at, launch, TaskId(launch.0), EventKind::Loaded(loaded));
        Some(())
    }

    fn handle_exit(&mut self, tid: Pid, thread: Thread, status: i32) {
        let at = clock::now();
        // The process may be killed before it starts.
        self.report_launched(thread.launch);
        let Some(process) = self.processes.process(thread.launch) else {
            return;
        };
        process.thread_count = process.thread_count.saturating_sub(1);
        let (last_thread, had_threads) = (process.thread_count == 0, process.had_threads);
        let (pid, first_run) = (process.pid, process.first_run.take());
        let cpu = if had_threads { cpu_of_thread(pid, tid) } else { clock::cpu_time_of(pid) };
        let cpu = cpu.map(|cpu| cpu.since(self.stop_times.cpu_of_stops(tid)));
        if last_thread {
            let pipes = self.processes.process(thread.launch).and_then(|process| process.pipes);
            self.waits.on_exiting(pid, || pipes.unwrap_or_else(|| Pipes::of(pid)));
            self.report_own_call_site(tid, thread);
            self.report_load(thread.launch, true);
            self.report_idle(tid, thread, at, cpu);
            self.note_output(pid, thread, at);
        }
        let ends_process = had_threads && is_in_exit_group(tid);
        let exited = Exited {
            first_run,
            exit_group_entered: ends_process.then_some(at),
            last_thread,
            wait_status: Some(status),
            cpu,
            ..Exited::default()
        };
        if let Some(thread) = self.processes.thread_mut(tid) {
            thread.has_exited = true;
        }
        self.report(at, thread.launch, thread.task, EventKind::Exited(exited));
    }

    /// Handles a thread that is stopped because a child of its process has ended.
    pub(super) fn handle_child_end(&mut self, tid: Pid, thread: Thread) {
        if self.launchers.is_watched(tid) {
            // Its system calls are traced, so the call that reaps the child will be observed.
            return;
        }
        let is_native = self.processes.process(thread.launch).is_some_and(|process| process.is_native);
        let activity = if is_native { blocked::activity(tid) } else { Activity::Interrupted };
        if let Activity::Asleep(call) = activity {
            return self.waits.on_interrupted_sleep(tid, call);
        }
        let wait = self.waits.wait_since_last_stop(tid);
        let at = wait.as_ref().map_or_else(clock::now, |(_, _, at)| *at);
        let slice = wait.and_then(|(slice, has_just_ended, _)| match activity {
            Activity::Waiting(call, _) => Some(Slice { syscall: Some(call), ..slice }),
            Activity::Working => Some(slice).filter(|_| has_just_ended),
            Activity::Asleep(_) | Activity::Interrupted => None,
        });
        if let Some(slice) = slice {
            self.report(at, thread.launch, thread.task, EventKind::Slice(slice));
        }
        if let Activity::Waiting(_, Some(pid)) = activity {
            self.report(at, thread.launch, thread.task, EventKind::Reaped { pid });
        }
    }

    /// Reports the wait of a parent for a child, if the parent's own calls do not show it.
    fn report_parent_wait(&mut self, wait: Option<(Pid, Slice)>, at: Nanos) {
        if let Some((waiting, slice)) = wait
            && let Some(parent) = self.processes.thread(waiting).filter(|_| !self.launchers.is_watched(waiting))
        {
            self.report(at, parent.launch, parent.task, EventKind::Slice(slice));
        }
    }

    /// Handles the end of a thread and, if it was the first thread, of its process.
    pub(super) fn handle_end(&mut self, tid: Pid, status: i32) {
        let at = clock::now();
        self.early.remove(&tid);
        if let Some(thread) = self.processes.thread(tid) {
            self.report_launched(thread.launch);
        }
        self.launchers.forget(tid);
        self.waits.on_parent_released(tid, at);
        let task = self.processes.thread(tid).map(|thread| thread.task);
        let wait = self.waits.on_end(tid, task, at);
        self.report_parent_wait(wait, at);
        self.waits.forget(tid);
        let since = self.stop_times.forget(tid, at);
        let Some((thread, process)) = self.processes.remove(tid) else {
            return;
        };
        if !thread.has_exited {
            // The thread was killed before it could stop at its exit.
            let exited = Exited { last_thread: process.is_some(), wait_status: Some(status), ..Exited::default() };
            if let Some(process) = self.processes.process(thread.launch) {
                process.thread_count = process.thread_count.saturating_sub(1);
            }
            self.report(at, thread.launch, thread.task, EventKind::Exited(exited));
        }
        if process.is_some() {
            self.report(at, thread.launch, thread.task, EventKind::Stopped { since });
        }
        let gone = EventKind::Gone { zombie: process.is_some().then_some(at), auto_reaped: false, cpu: None };
        self.report(at, thread.launch, thread.task, gone);
        if process.is_some() && thread.launch == ROOT {
            *lock(&self.shared.command_status) = Some(status);
        }
    }
}

/// What the setup of a process leaves to be done at its end, an exec.
struct EndedSetup {
    call: Option<ExecCall>,
    creator: Option<LaunchId>,
    creator_to_forget: Option<LaunchId>,
    has_bypassed_detour: bool,
    may_have_pending_signal: bool,
}

impl EndedSetup {
    fn take(process: &mut Process) -> EndedSetup {
        let setup = process.setup.take();
        let is_detoured = setup.as_ref().is_some_and(Setup::is_detoured);
        let creator_to_forget = setup.as_ref().and_then(Setup::creator_to_forget);
        let call = setup.and_then(|setup| setup.exec);
        let had_detour = std::mem::take(&mut process.execs).installed().is_some();
        let has_passed_detour = is_detoured && call.is_some();
        EndedSetup {
            has_bypassed_detour: is_detoured && !has_passed_detour,
            may_have_pending_signal: had_detour && !has_passed_detour || creator_to_forget.is_some(),
            call,
            creator: process.creator.take(),
            creator_to_forget,
        }
    }
}

fn describe(
    pid: Pid,
    image: Option<&Image>,
    call: Option<ExecCall>,
    cwd: Option<&Vec<u8>>,
    first_run: Option<Nanos>,
) -> Executed {
    let (argv, argv_bytes) = match image {
        Some(image) => (image.argv.clone(), image.argv_bytes),
        None => arguments_from_proc(pid),
    };
    let path = match (image, &call) {
        (Some(image), _) => image.path.clone(),
        (None, Some(call)) => call.path.clone(),
        (None, None) => procfs::executable(pid).unwrap_or_default(),
    };
    // The time of the entry is reported only together with the CPU time at the entry.
    let (enter, enter_cpu) = call.and_then(|call| Some((call.enter, call.enter_cpu?))).unzip();
    Executed {
        first_run,
        enter,
        enter_cpu,
        path,
        interpreter: image.and_then(|image| scripts::interpreter(pid, &image.argv, &image.path)),
        argv,
        argv_bytes,
        cwd: cwd.cloned().or_else(|| procfs::working_directory(pid)),
        variables: image.map(|image| image.variables.clone()).unwrap_or_default(),
        ..Executed::default()
    }
}

/// Returns the arguments of a program whose stack cannot be read, such as one of another
/// architecture.
fn arguments_from_proc(pid: Pid) -> (Vec<u8>, u64) {
    let mut argv = procfs::arguments(pid).join(&0);
    argv.push(0);
    let bytes = argv.len() as u64;
    (argv, bytes)
}

/// Returns the CPU time of a thread that is about to end. A process's CPU clock counts all its
/// threads.
fn cpu_of_thread(pid: Pid, tid: Pid) -> Option<Nanos> {
    let text = std::fs::read_to_string(format!("/proc/{}/task/{}/schedstat", pid.0, tid.0)).ok()?;
    text.split(' ').next()?.parse().ok().map(Nanos)
}

fn is_in_exit_group(tid: Pid) -> bool {
    Registers::read(tid).is_ok_and(|registers| registers.system_call().0 == libc::SYS_exit_group)
}
