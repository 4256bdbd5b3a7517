//! The system calls of traced threads: execs of processes that are about to execute a program,
//! including failed ones, calls that do not work while the process is traced, and calls in which
//! launching threads wait for children.

use std::sync::Arc;

use spawnscope_data::event::{EventKind, Executed, LeftCpu, Nanos, Pid, Slice, Syscall};
use spawnscope_system::ptrace::{CallInfo, CallStop, Stop};
use spawnscope_system::{clock, memory, procfs};

use super::blocked::reaped_by_waitid;
use super::idle::Pipes;
use super::image::{MAX_PATH, arguments_passed};
use super::launchers::Call;
use super::processes::Thread;
use super::setup::ExecCall;
use super::tracing::Tracing;
use super::waits::MIN_OFF_NS;

impl Tracing {
    pub(super) fn handle_system_call(&mut self, tid: Pid, thread: Thread) {
        self.handle_launcher_call(tid, thread);
        let process = self.processes.process(thread.launch);
        let Some(process) = process.filter(|process| process.pid == tid && process.is_native) else {
            return self.resume(tid, Stop::Interrupted);
        };
        if std::mem::take(&mut process.is_in_call) {
            if let Some(setup) = &mut process.setup {
                setup.stops_left = setup.stops_left.saturating_sub(1);
                setup.on_exit(tid);
            }
            return self.resume(tid, Stop::Interrupted);
        }
        let stop = CallInfo::read(tid).map_or(CallStop::Neither, |info| info.stop);
        process.is_in_call = matches!(stop, CallStop::Enters(number, _) if !is_exec(number));
        self.handle_first_threads_call(tid, thread, stop);
    }

    /// Handles a stop at the entry or exit of a system call, which matters if the thread is the
    /// first of its process.
    pub(super) fn handle_first_threads_call(&mut self, tid: Pid, thread: Thread, stop: CallStop) {
        let Some(process) = self.processes.process(thread.launch).filter(|process| process.pid == tid) else {
            return self.resume(tid, Stop::Interrupted);
        };
        if let Some(chain) = process.call_site_at(stop, &mut self.interpreters.files) {
            let called = EventKind::Called(Arc::new(chain));
            self.report(clock::now(), thread.launch, thread.task, called);
        }
        if !self.handle_setup_call(tid, thread, stop) {
            self.resume(tid, Stop::Interrupted);
        }
    }

    /// Handles the entry or exit of a system call by a process in setup, before its exec. Returns
    /// whether the process was released.
    fn handle_setup_call(&mut self, tid: Pid, thread: Thread, stop: CallStop) -> bool {
        let Some(process) = self.processes.process(thread.launch) else {
            return false;
        };
        let Some(setup) = &mut process.setup else {
            return false;
        };
        setup.stops_left = setup.stops_left.saturating_sub(1);
        if setup.stops_left == 0 && setup.exec.is_none() {
            process.setup = None;
            return false;
        }
        match (stop, setup.exec.take()) {
            (CallStop::Enters(number, arguments), _) => self.handle_setup_entry(tid, thread, number, arguments),
            (CallStop::Leaves(result), Some(ExecCall { enter, path, .. })) if result < 0 => {
                let errno = i32::try_from(-result).unwrap_or(0);
                let failed = EventKind::ExecFailed { enter, path, errno };
                self.report(clock::now(), thread.launch, thread.task, failed);
                false
            }
            _ => false,
        }
    }

    /// Handles the stop of a thread that enters or leaves a system call. If the thread may launch,
    /// reports its waits for children.
    pub(super) fn handle_launcher_call(&mut self, tid: Pid, thread: Thread) {
        if !self.launchers.is_watched(tid) {
            return;
        }
        let is_native = self.processes.process_of(tid).is_some_and(|process| process.is_native);
        if !is_native {
            return self.launchers.forget(tid);
        }
        let stop = CallInfo::read(tid).map_or(CallStop::Neither, |info| info.stop);
        let at = clock::now();
        if let Some((call, result)) = self.launchers.on_stop(tid, stop, at) {
            self.report_wait(tid, thread, call, result, at);
        }
    }

    fn report_wait(&mut self, tid: Pid, thread: Thread, call: Call, result: i64, at: Nanos) {
        let reaped = match call.number {
            libc::SYS_wait4 if result > 0 => i32::try_from(result).ok().map(Pid),
            libc::SYS_waitid if result == 0 && call.arguments[3] & libc::WNOWAIT as u64 == 0 => {
                reaped_by_waitid(tid, call.arguments[2])
            }
            _ => return,
        };
        if at.since(call.entered).0 >= MIN_OFF_NS {
            let number = u32::try_from(call.number).ok();
            let slice = Slice {
                syscall: number.map(|number| Syscall { number, argument: call.arguments[0] }),
                ..Slice::new(call.entered, LeftCpu::Interruptible)
            };
            self.report(at, thread.launch, thread.task, EventKind::Slice(slice));
        }
        if let Some(pid) = reaped {
            self.report(at, thread.launch, thread.task, EventKind::Reaped { pid });
        }
    }

    /// Handles the entry of a system call in setup. Releases the process if the call does not work
    /// while the process is traced. Returns whether it was released.
    fn handle_setup_entry(&mut self, tid: Pid, thread: Thread, number: u64, arguments: [u64; 6]) -> bool {
        let Ok(number) = libc::c_long::try_from(number) else { return false };
        let (path, argv) = match number {
            libc::SYS_execve => (arguments[0], arguments[1]),
            libc::SYS_execveat => (arguments[1], arguments[2]),
            libc::SYS_ptrace if arguments[0] == libc::PTRACE_TRACEME as u64 => {
                self.notify(format!(
                    "process {} asked its parent to trace it, but a process can have only one tracer: from now on it is not recorded",
                    tid.0
                ));
                self.leave_untraced(tid, Stop::Interrupted);
                return true;
            }
            _ => {
                self.note_call(tid, thread.launch, number, &arguments);
                return false;
            }
        };
        let facts = self.processes.process(thread.launch).and_then(|process| process.setup.as_mut()?.facts.take());
        self.waits.on_exec_entered(tid, facts.as_ref().map(|facts| Pipes(facts.pipes)));
        self.report_own_call_site(tid, thread);
        if number == libc::SYS_execve {
            self.note_exec_call(tid, thread.launch);
        }
        // Not before, because finding the call takes a while.
        let (enter, enter_cpu) = (clock::now(), self.stop_times.cpu_time_of(tid));
        let path = memory::read_string(tid, path, MAX_PATH).unwrap_or_default();
        let gains_privilege = !self.keeps_privilege && self.privileges.are_given(tid, &path, facts.as_ref());
        let call = ExecCall { enter, enter_cpu, path, facts };
        if gains_privilege {
            self.release_privileged(tid, thread, call, argv);
            return true;
        }
        if let Some(setup) = self.processes.process(thread.launch).and_then(|process| process.setup.as_mut()) {
            setup.exec = Some(call);
        }
        false
    }

    /// Releases a process at the entry of its exec, because the kernel would execute the program of
    /// a traced process without its privilege.
    fn release_privileged(&mut self, pid: Pid, thread: Thread, call: ExecCall, argv: u64) {
        let (argv, argv_bytes) = arguments_passed(pid, argv);
        let first_run = self.processes.process_of(pid).and_then(|process| process.first_run.take());
        let name = String::from_utf8_lossy(&call.path).into_owned();
        self.notify_of_privilege(&name);
        let executed = Executed {
            first_run,
            enter: call.enter_cpu.map(|_| call.enter),
            enter_cpu: call.enter_cpu,
            path: call.path,
            argv,
            argv_bytes,
            cwd: procfs::working_directory(pid),
            ..Executed::default()
        };
        self.report(call.enter, thread.launch, thread.task, EventKind::Executed(executed));
        self.leave_untraced(pid, Stop::Interrupted);
    }
}

fn is_exec(number: u64) -> bool {
    matches!(libc::c_long::try_from(number), Ok(libc::SYS_execve | libc::SYS_execveat))
}
