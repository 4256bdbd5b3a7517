//! One unfinished launch: its row so far, and the data that is needed to complete the row. Times
//! are relative to the recording's origin.

use std::collections::HashMap;

use spawnscope_data::event::{Exited, LaunchId, Loaded, Nanos, Pid, TaskId};

use spawnscope_data::rows::{ExecRow, LaunchRow, Origin, ThreadRow};

/// The row of a successful `execve`, after its rowid. Rowids are in chronological order. Rows may
/// be written in another order, because each is written when its batch is due.
pub(super) type OrderedExec = (i64, ExecRow);

/// The latest exec of a launch until its image is loaded.
#[derive(Debug)]
struct LoadingExec {
    exec: OrderedExec,
    is_written: bool,
}

/// A launch that may receive more events.
#[derive(Debug, Default)]
pub(super) struct UnfinishedLaunch {
    /// The values known so far.
    pub(super) row: LaunchRow,
    /// Threads that are not known to have ended, except the first thread.
    pub(super) threads: HashMap<TaskId, ThreadRow>,
    /// Children that have not been reaped yet, by the pid that its wait calls will return.
    pub(super) unreaped: HashMap<Pid, LaunchId>,
    /// Whether the row has changed since it was written.
    pub(super) is_dirty: bool,
    /// Whether another launch got the pid, so that no more events are expected.
    pub(super) is_superseded: bool,
    exec: Option<LoadingExec>,
    /// Sum of the CPU time that exiting threads had used when they began to exit; `None` if the
    /// time of one is unknown.
    cpu_until_exit: Option<Nanos>,
    /// Sum of the CPU time of ended threads; `None` if the time of one is unknown.
    cpu_of_ended: Option<Nanos>,
    /// The number of threads that have not ended. Negative if the creations of threads were lost.
    remaining_threads: i64,
    /// The first call of `exit_group` by any thread.
    group_exit: Option<Nanos>,
    /// When the last thread began to exit.
    last_exit: Option<Nanos>,
    is_auto_reaped: bool,
    /// Whether a wait call has returned this process.
    is_waited_for: bool,
}

impl UnfinishedLaunch {
    /// Creates a launch of which only the id is known.
    pub(super) fn orphan(id: LaunchId) -> Self {
        UnfinishedLaunch {
            row: LaunchRow { id, ..LaunchRow::default() },
            cpu_until_exit: Some(Nanos(0)),
            cpu_of_ended: Some(Nanos(0)),
            remaining_threads: 1,
            ..UnfinishedLaunch::default()
        }
    }

    pub(super) fn row(&self) -> LaunchRow {
        let mut row = self.row.clone();
        if row.origin == Origin::Command {
            // Before its release, the process of the command ran up to the point where the recorder
            // held it. That run is not part of its setup, which begins at the release (`created`).
            row.first_run =
                row.first_run.map(|first_run| row.created.map_or(first_run, |created| first_run.max(created)));
        }
        row
    }

    /// Sets when the process first got a CPU, unless that is already known.
    pub(super) fn set_first_run(&mut self, at: Option<Nanos>) {
        self.row.first_run = self.row.first_run.or(at);
    }

    pub(super) fn add_thread(&mut self, thread: ThreadRow) {
        self.remaining_threads += 1;
        self.threads.insert(thread.task, thread);
    }

    /// Adds a successful `execve`. Returns the previous exec if it was not written yet.
    pub(super) fn add_exec(&mut self, exec: OrderedExec) -> Option<OrderedExec> {
        let before = self.exec.replace(LoadingExec { exec, is_written: false });
        before.filter(|before| !before.is_written).map(|before| before.exec)
    }

    /// Completes the latest exec when its image is loaded.
    pub(super) fn complete_exec(&mut self, returned: Nanos, load_end: Option<Nanos>, loaded: &Loaded) {
        let Some(loading) = &mut self.exec else { return };
        let (_, row) = &mut loading.exec;
        row.returned = Some(returned);
        row.return_cpu = loaded.return_cpu;
        row.has_loader = Some(loaded.has_loader);
        row.load_end = load_end;
        row.load_cpu = loaded.load_cpu;
        row.load_opens = loaded.load_opens;
        row.load_failed_opens = loaded.load_failed_opens;
        row.load_cache = loaded.load_cache;
        loading.is_written = false;
    }

    /// Returns the latest exec if it has changed since it was written, and forgets it if it is
    /// complete.
    pub(super) fn take_changed_exec(&mut self) -> Option<OrderedExec> {
        let loading = self.exec.as_mut().filter(|loading| !loading.is_written)?;
        loading.is_written = true;
        let exec = loading.exec.clone();
        if exec.1.returned.is_some() {
            self.exec = None;
        }
        Some(exec)
    }

    /// Records that the thread `task` began to exit at `at`. Returns the thread's row, unless it is
    /// the first thread.
    pub(super) fn apply_exit(
        &mut self,
        at: Nanos,
        task: TaskId,
        group_exit: Option<Nanos>,
        exited: &Exited,
    ) -> Option<ThreadRow> {
        // Several threads may call exit_group. The process begins to exit with the first call.
        self.group_exit = [self.group_exit, group_exit].into_iter().flatten().min();
        if exited.last_thread {
            self.last_exit = Some(at);
        }
        self.row.exit = self.group_exit.or(self.last_exit);
        if exited.last_thread || group_exit.is_some() {
            self.row.wait_status = exited.wait_status;
        }
        self.cpu_until_exit = sum(self.cpu_until_exit, exited.cpu);
        if exited.last_thread {
            self.row.exit_cpu = self.cpu_until_exit;
        }
        if task.0 == self.row.id.0 {
            self.row.work_cpu = exited.work_cpu;
            self.row.exit_faults = exited.exit_faults;
            self.row.exit_rss_bytes = exited.exit_rss_bytes;
        }
        let thread = self.threads.remove(&task)?;
        Some(ThreadRow { ended: Some(at), cpu: exited.cpu, ..thread })
    }

    /// Records that a thread left the CPU for the last time.
    pub(super) fn apply_thread_end(&mut self, zombie: Option<Nanos>, auto_reaped: bool, cpu: Option<Nanos>) {
        self.cpu_of_ended = sum(self.cpu_of_ended, cpu);
        self.remaining_threads -= 1;
        // A recording may end between the ends of two threads.
        self.row.cpu = self.cpu_of_ended.filter(|_| self.remaining_threads <= 0);
        // The kernel auto-reaps every thread that is not the last one, which says nothing about the
        // process.
        self.is_auto_reaped |= auto_reaped && zombie.is_some();
        self.row.zombie = self.row.zombie.max(zombie);
        if self.is_auto_reaped && !self.is_waited_for {
            self.row.reaped = self.row.zombie;
        }
    }

    /// Records that a wait call has returned this process. The call may return before the child
    /// leaves the CPU for the last time.
    pub(super) fn apply_wait(&mut self, at: Nanos) {
        self.is_waited_for = true;
        self.row.reaped = Some(at);
    }

    /// Whether the whole process has begun to exit.
    pub(super) fn has_exited(&self) -> bool {
        self.last_exit.is_some() || self.row.zombie.is_some()
    }

    /// Whether the event that reports its creation was lost.
    pub(super) fn is_orphan(&self) -> bool {
        self.row.origin == Origin::Orphan
    }

    /// Whether no more events are expected.
    pub(super) fn is_finished(&self) -> bool {
        let has_ended = self.remaining_threads <= 0;
        // A wait cannot be matched to an orphan, because its parent and pid are unknown.
        let is_complete = if self.is_orphan() {
            has_ended || self.row.reaped.is_some()
        } else {
            has_ended && self.last_exit.is_some() && self.row.reaped.is_some()
        };
        is_complete || self.is_superseded
    }
}

/// Returns the sum of two times; `None` if one of them is unknown.
fn sum(a: Option<Nanos>, b: Option<Nanos>) -> Option<Nanos> {
    Some(Nanos(a?.0.saturating_add(b?.0)))
}
