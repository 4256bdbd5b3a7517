//! Handles the ends of followed threads and processes, of the command, and of the recording.

use spawnscope_data::event::{EventKind, Exited, LaunchId, Loaded, Nanos, Pid, TaskId};
use spawnscope_system::clock;

use super::followed::{CommandEnd, FollowedProcesses};
use super::image::Image;
use crate::ROOT;

impl FollowedProcesses {
    /// Stores how the command ended.
    pub(super) fn set_command_end(&mut self, end: CommandEnd) {
        self.command_end = Some(end);
        self.report_end_of_command();
    }

    /// Reports what has not been reported yet when the recording ends.
    pub(super) fn finish(&mut self, end: Nanos) {
        let pids: Vec<Pid> = self.processes.keys().copied().collect();
        for pid in pids {
            self.report_image(end, pid, Loaded::by_loader(None));
        }
        for thread in std::mem::take(&mut self.threads).into_values() {
            if let Some(slice) = thread.cpu.last_seen(end) {
                self.report(end, thread.launch, thread.task, EventKind::LastSeen(slice));
            }
        }
        self.processes.clear();
        // If the command exited, its status did not become known in time.
        if let Some((at, task, exited)) = self.pending_exit.take() {
            self.report_exit(at, ROOT, task, exited, None);
        }
    }

    /// Reports the ends of processes that the kernel does not report on.
    pub(super) fn report_ended_unfollowed(&mut self) {
        for (launch, at) in self.unfollowed.ended() {
            self.report_end_of_unfollowed(launch, at);
        }
    }

    fn report_end_of_unfollowed(&mut self, launch: LaunchId, at: Nanos) {
        let gone = EventKind::Gone { zombie: Some(at), auto_reaped: false, cpu: None };
        self.report(at, launch, TaskId(launch.0), gone);
    }

    pub(super) fn handle_exit(&mut self, at: Nanos, pid: Pid, tid: Pid) {
        let Some(process) = self.processes.get_mut(&pid) else {
            return;
        };
        if process.image.as_ref().is_some_and(Image::has_no_mappings) {
            return self.unfollow(at, pid);
        }
        let Some(mut thread) = self.threads.remove(&tid) else {
            return;
        };
        process.threads = process.threads.saturating_sub(1);
        let (last_thread, first_run) = (process.threads == 0, process.first_run);
        let cpu = thread.cpu.used_until(at);
        let slice = thread.cpu.ended(at);
        if last_thread {
            self.report_image(at, pid, Loaded::by_loader(None));
            self.processes.remove(&pid);
        }
        self.report(at, thread.launch, thread.task, EventKind::Slice(slice));
        let exited = Exited { first_run, last_thread, cpu, ..Exited::default() };
        if last_thread && thread.launch == ROOT {
            self.pending_exit = Some((at, thread.task, exited));
            self.report_end_of_command();
        } else {
            self.report_exit(at, thread.launch, thread.task, exited, None);
        }
    }

    fn report_exit(&mut self, at: Nanos, launch: LaunchId, task: TaskId, exited: Exited, zombie: Option<Nanos>) {
        self.report(at, launch, task, EventKind::Exited(exited));
        let gone = EventKind::Gone { zombie, auto_reaped: false, cpu: None };
        self.report(zombie.unwrap_or(at), launch, task, gone);
    }

    fn report_end_of_command(&mut self) {
        let Some(end) = self.command_end else { return };
        if let Some((at, task, exited)) = self.pending_exit.take() {
            let exited = Exited { wait_status: end.status, ..exited };
            self.report_exit(at, ROOT, task, exited, Some(end.at));
        }
    }

    /// Handles a process whose perf events the kernel has removed right after its exec, because the program has privilege.
    fn unfollow(&mut self, at: Nanos, pid: Pid) {
        let path = self.processes.get(&pid).and_then(|process| Some(process.image.as_ref()?.path()));
        self.report_exec(at, pid);
        self.threads.retain(|_, thread| thread.process != pid);
        let Some(process) = self.processes.remove(&pid) else {
            return;
        };
        if !self.unfollowed.add(pid, process.launch) {
            self.report_end_of_unfollowed(process.launch, clock::now());
        }
        let name = String::from_utf8_lossy(&path.unwrap_or_default()).into_owned();
        let notice = format!(
            "{name} runs with privilege or cannot be read, so perf events end at its exec: only its start and end are recorded, not what it \
             launches (to record everything, use eBPF: run spawnscope with sudo)"
        );
        if !self.notices.contains(&notice) {
            self.notices.push(notice);
        }
    }
}
