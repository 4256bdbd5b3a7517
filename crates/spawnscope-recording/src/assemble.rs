//! Combines events into rows. This code does no I/O: it receives events, and returns the new and
//! changed rows in batches. Only unfinished launches are kept in memory. A late event for a launch
//! that is no longer kept produces an incomplete row. `store` merges that row into the row in the
//! file, so it can add values but not remove any.

use std::collections::{HashMap, HashSet};

use spawnscope_data::event::{
    Chain, Event, EventKind, Executed, Exited, LaunchId, Launched, LeftCpu, Loaded, Nanos, Pid, Sampled, Slice,
};
use spawnscope_data::event::{TaskId, Waker};

use super::intern::{Interner, NewStacks, Objects, Stacks};
use super::ninja::{Edge, Invocation, Invocations};
use super::redact::Redaction;
use super::tables::TextRow;
use super::unfinished::{OrderedExec, UnfinishedLaunch};
use spawnscope_data::rows::{
    EdgeRow, ExecRow, FailedExecRow, LaunchRow, NewRows, ObjectRef, ObjectRow, Origin, PeerRow, SampleRow, SliceRow,
    StopRow, TextId, ThreadRow, WakerRow,
};

#[derive(Debug, Default)]
pub(super) struct Batch {
    /// Strings that the rows refer to and that the file does not contain yet.
    pub(super) texts: Vec<TextRow>,
    pub(super) launches: Vec<LaunchRow>,
    /// Launches that slices belong to and that are not kept in memory. If the file does not contain
    /// such a launch, it becomes an orphan.
    pub(super) referenced: HashSet<LaunchId>,
    pub(super) execs: Vec<OrderedExec>,
    pub(super) failed_execs: Vec<FailedExecRow>,
    pub(super) stops: Vec<StopRow>,
    /// New and changed threads. If a thread occurs twice, the later row counts.
    pub(super) threads: Vec<ThreadRow>,
    /// Objects that the slices refer to and that the file does not contain yet.
    pub(super) objects: Vec<(ObjectRef, ObjectRow)>,
    pub(super) peers: Vec<PeerRow>,
    pub(super) edges: Vec<EdgeRow>,
    /// Frames and call chains that launches and samples refer to and that the file does not contain
    /// yet.
    pub(super) stacks: NewStacks,
    pub(super) slices: Vec<SliceRow>,
    pub(super) samples: Vec<SampleRow>,
    /// Launches for which no more events are expected.
    pub(super) finished: Vec<LaunchId>,
    /// The oldest string that later rows may refer to.
    pub(super) oldest_text: TextId,
    /// The launch of the command, in the first batch after the call of `set_root`.
    pub(super) root: Option<LaunchId>,
    /// The time of the latest event of the recording so far.
    pub(super) last_event: Nanos,
}

impl Batch {
    /// Returns the rows that live views need, and drops the other rows. `Follower::send` adds which
    /// recording they belong to.
    pub(super) fn into_new_rows(self) -> NewRows {
        NewRows {
            texts: self.texts.into_iter().map(|text| (text.id, text.bytes)).collect(),
            oldest_text: self.oldest_text,
            launches: self.launches,
            execs: self.execs,
            finished: self.finished,
            last_event: self.last_event,
            ..NewRows::default()
        }
    }
}

#[derive(Debug)]
pub(super) struct Assembler {
    origin: Nanos,
    interner: Interner,
    objects: Objects,
    stacks: Stacks,
    unfinished: HashMap<LaunchId, UnfinishedLaunch>,
    /// For each pid in the recorder's pid namespace, the unfinished launch that has the pid or had
    /// it last.
    by_pid: HashMap<Pid, LaunchId>,
    invocations: Invocations,
    dirty: Vec<LaunchId>,
    next_exec: i64,
    /// The number of unfinished launches above which orphans are forgotten.
    forget_orphans_above: usize,
    batch: Batch,
}

impl Assembler {
    /// The minimum of `forget_orphans_above`. Orphans are forgotten because an orphan whose end was
    /// also lost would stay forever.
    const MANY_UNFINISHED: usize = 65_536;

    pub(super) fn new(origin: Nanos, redaction: Redaction) -> Self {
        Assembler {
            origin,
            interner: Interner::new(redaction),
            objects: Objects::default(),
            stacks: Stacks::default(),
            unfinished: HashMap::new(),
            by_pid: HashMap::new(),
            invocations: Invocations::default(),
            dirty: Vec::new(),
            next_exec: 1,
            forget_orphans_above: Self::MANY_UNFINISHED,
            batch: Batch::default(),
        }
    }

    pub(super) fn set_root(&mut self, root: LaunchId) {
        self.batch.root = Some(root);
    }

    /// Whether the next batch contains the root or edges, which do not come from events.
    pub(super) fn has_rows_without_events(&self) -> bool {
        self.batch.root.is_some() || !self.batch.edges.is_empty()
    }

    pub(super) fn apply(&mut self, event: &Event) {
        let Event { launch, task, .. } = *event;
        let at = self.relative(event.at);
        self.batch.last_event = self.batch.last_event.max(at);
        match &event.kind {
            EventKind::Adopted { pid, name } => self.apply_adopted(at, launch, *pid, name),
            EventKind::Released { pid } => self.apply_released(at, launch, *pid),
            EventKind::Launched(launched) => self.apply_launched(at, launch, launched),
            EventKind::ThreadStarted { tid, creator } => self.apply_thread_started(at, launch, task, *tid, *creator),
            EventKind::ExecFailed { enter, path, errno } => {
                self.apply_exec_failed(at, launch, *enter, path, *errno);
            }
            EventKind::Executed(executed) => self.apply_executed(launch, executed),
            EventKind::Loaded(loaded) => self.apply_loaded(launch, loaded),
            EventKind::Exited(exited) => self.apply_exited(at, launch, task, exited),
            EventKind::Gone { zombie, auto_reaped, cpu } => {
                let zombie = zombie.map(|zombie| self.relative(zombie));
                self.launch(launch).apply_thread_end(zombie, *auto_reaped, *cpu);
            }
            EventKind::Reaped { pid } => self.apply_reaped(at, launch, *pid),
            EventKind::Stopped { since } => {
                let since = self.relative(*since);
                self.batch.stops.push(StopRow { launch, task, at: since, span: at.since(since) });
            }
            EventKind::Slice(slice) => {
                self.set_first_run(at, launch, task, slice);
                self.add_slice((slice.reason != LeftCpu::Ended).then_some(at), launch, task, slice);
            }
            EventKind::LastSeen(slice) => self.add_slice(None, launch, task, slice),
            EventKind::FileNamed { device, inode, path } => {
                self.objects.set_path(*device, *inode, self.interner.intern(path));
            }
            EventKind::PeerFound { device, inode, pid, name } => {
                let name = self.interner.intern(name);
                self.batch.peers.push(PeerRow { device: *device, inode: *inode, pid: *pid, name });
            }
            EventKind::Called(chain) => self.apply_called(launch, chain),
            EventKind::Sampled(sampled) => self.apply_sampled(at, task, sampled),
        }
    }

    /// Returns the invocations of ninja that have ended since the last call. If the recording ends,
    /// all invocations have ended.
    pub(super) fn take_ended_invocations(&mut self, recording_ends: bool) -> Vec<Invocation> {
        if recording_ends {
            self.invocations.end_all();
        }
        self.invocations.take_ended()
    }

    pub(super) fn add_edges(&mut self, edges: &[Edge]) {
        for Edge { launch, outputs } in edges {
            let rows = outputs.iter().map(|output| EdgeRow { launch: *launch, output: self.interner.intern(output) });
            self.batch.edges.extend(rows);
        }
    }

    /// Returns what is new or changed since the last call, and forgets finished launches.
    pub(super) fn take_batch(&mut self) -> Batch {
        for id in std::mem::take(&mut self.dirty) {
            let Some(launch) = self.unfinished.get_mut(&id) else { continue };
            launch.is_dirty = false;
            self.batch.launches.push(launch.row());
            self.batch.execs.extend(launch.take_changed_exec());
            if launch.is_finished() {
                self.forget(id);
            }
        }
        if self.unfinished.len() > self.forget_orphans_above {
            self.unfinished.retain(|_, launch| !launch.is_orphan());
            self.forget_orphans_above = Self::MANY_UNFINISHED.max(2 * self.unfinished.len());
        }
        self.batch.oldest_text = self.interner.oldest();
        self.batch.texts = self.interner.take_new();
        self.batch.objects = self.objects.take_new();
        self.batch.stacks = self.stacks.take_new();
        let last_event = self.batch.last_event;
        std::mem::replace(&mut self.batch, Batch { last_event, ..Batch::default() })
    }

    fn forget(&mut self, id: LaunchId) {
        self.batch.finished.push(id);
        let pid = self.unfinished.remove(&id).and_then(|launch| launch.row.pid);
        if let Some(pid) = pid.filter(|pid| self.by_pid.get(pid) == Some(&id)) {
            self.by_pid.remove(&pid);
        }
    }

    /// Converts an instant to recording time. Instants before time zero become zero, such as the
    /// start of a sleep that has not ended yet.
    fn relative(&self, instant: Nanos) -> Nanos {
        instant.since(self.origin)
    }

    /// Returns a launch so that the caller can change it, and marks it as changed. An unknown
    /// launch becomes an orphan.
    fn launch(&mut self, id: LaunchId) -> &mut UnfinishedLaunch {
        let launch = self.unfinished.entry(id).or_insert_with(|| UnfinishedLaunch::orphan(id));
        if !launch.is_dirty {
            launch.is_dirty = true;
            self.dirty.push(id);
        }
        launch
    }

    /// Records that a launch now has this pid. The previous owner of the pid must have been reaped,
    /// even if no event said so. This limits the number of unfinished launches to the number of
    /// pids.
    fn give_pid(&mut self, pid: Pid, id: LaunchId) {
        if pid == Pid(0) {
            // The pid is not visible in the recorder's pid namespace.
            return;
        }
        let before = self.by_pid.insert(pid, id);
        if let Some(before) = before.filter(|before| *before != id && self.unfinished.contains_key(before)) {
            self.launch(before).is_superseded = true;
        }
        self.launch(id).row.pid = Some(pid);
    }

    fn apply_adopted(&mut self, at: Nanos, id: LaunchId, pid: Pid, name: &[u8]) {
        let name = self.interner.intern(name);
        self.give_pid(pid, id);
        let row = &mut self.launch(id).row;
        row.origin = Origin::Existed;
        row.created = Some(at);
        row.name = Some(name);
    }

    fn apply_released(&mut self, at: Nanos, id: LaunchId, pid: Pid) {
        self.give_pid(pid, id);
        let row = &mut self.launch(id).row;
        row.origin = Origin::Command;
        row.created = Some(at);
    }

    fn apply_launched(&mut self, at: Nanos, id: LaunchId, launched: &Launched) {
        let [create, prepare, parent_tidied] = [launched.create, launched.prepare, launched.parent_tidied]
            .map(|instant| instant.map(|instant| self.relative(instant)));
        self.give_pid(launched.pid, id);
        self.launch(launched.parent);
        if let Some(reaper) = launched.reaper {
            self.launch(reaper).unreaped.insert(launched.pid_for_reaper, id);
        }
        let row = &mut self.launch(id).row;
        row.parent = Some(launched.parent);
        row.parent_task = Some(launched.parent_task);
        row.origin = Origin::Launched;
        row.mechanism = launched.mechanism;
        row.create = create;
        row.created = Some(at);
        row.prepare = prepare;
        row.parent_tidied = parent_tidied;
        row.parent_faults = launched.parent_faults;
        row.parent_rss_bytes = launched.parent_rss_bytes;
        row.parent_table_bytes = launched.parent_table_bytes;
    }

    fn apply_called(&mut self, id: LaunchId, chain: &Chain) {
        let is_script = chain.frames.first().is_some_and(|frame| frame.language.is_script());
        let stack = self.stacks.intern(chain, &mut self.interner);
        let row = &mut self.launch(id).row;
        if is_script {
            row.script_stack = stack;
        } else {
            row.native_stack = stack;
        }
    }

    fn apply_sampled(&mut self, at: Nanos, task: TaskId, sampled: &Sampled) {
        let stack = self.stacks.intern(&sampled.chain, &mut self.interner);
        self.batch.samples.extend(stack.map(|stack| SampleRow {
            task,
            at,
            span: sampled.span,
            is_waiting: sampled.is_waiting,
            stack,
        }));
    }

    fn apply_thread_started(&mut self, at: Nanos, launch: LaunchId, task: TaskId, tid: Pid, creator: TaskId) {
        let thread = ThreadRow { task, launch, creator: Some(creator), tid, created: at, ended: None, cpu: None };
        self.launch(launch).add_thread(thread.clone());
        self.batch.threads.push(thread);
    }

    fn apply_exec_failed(&mut self, at: Nanos, launch: LaunchId, enter: Nanos, path: &[u8], errno: i32) {
        self.launch(launch);
        let row = FailedExecRow {
            launch,
            enter: self.relative(enter),
            returned: at,
            path: self.interner.intern(path),
            errno,
        };
        self.batch.failed_execs.push(row);
    }

    fn apply_executed(&mut self, launch: LaunchId, executed: &Executed) {
        let parent = self.unfinished.get(&launch).and_then(|state| state.row.parent);
        self.invocations.handle_exec(launch, parent, executed);
        let first_run = executed.first_run.map(|first_run| self.relative(first_run));
        let enter = executed.enter.map_or(Nanos(u64::MAX), |enter| self.relative(enter));
        let exec = (self.next_exec, self.exec_row(launch, executed));
        self.next_exec += 1;
        let state = self.launch(launch);
        state.set_first_run(first_run);
        if executed.setup_closes.is_some() {
            state.row.setup_closes = executed.setup_closes;
            state.row.setup_close_span = executed.setup_close_span.map(|span| span.min(enter));
        }
        let before = state.add_exec(exec);
        self.batch.execs.extend(before);
    }

    fn exec_row(&mut self, launch: LaunchId, executed: &Executed) -> ExecRow {
        let argv = self.interner.intern_argv(&executed.argv);
        // Masking must neither make an argv look truncated nor reveal the length of a secret.
        let omitted_bytes = executed.argv_bytes.saturating_sub(executed.argv.len() as u64);
        ExecRow {
            launch,
            enter: executed.enter.map(|enter| self.relative(enter)),
            enter_cpu: executed.enter_cpu,
            path: self.interner.intern(&executed.path),
            interpreter: executed.interpreter.as_deref().map(|path| self.interner.intern(path)),
            argv: argv.id,
            argv_bytes: argv.bytes as u64 + omitted_bytes,
            cwd: executed.cwd.as_deref().map(|path| self.interner.intern(path)),
            variables: (!executed.variables.is_empty()).then(|| self.interner.intern_argv(&executed.variables).id),
            ..ExecRow::default()
        }
    }

    fn apply_loaded(&mut self, launch: LaunchId, loaded: &Loaded) {
        let returned = self.relative(loaded.returned);
        let load_end = loaded.load_end.map(|load_end| self.relative(load_end));
        self.launch(launch).complete_exec(returned, load_end, loaded);
    }

    fn apply_exited(&mut self, at: Nanos, launch: LaunchId, task: TaskId, exited: &Exited) {
        if exited.last_thread {
            self.invocations.end(launch);
        }
        let first_run = exited.first_run.map(|first_run| self.relative(first_run));
        let group_exit = exited.exit_group_entered.map(|entered| self.relative(entered));
        let state = self.launch(launch);
        state.set_first_run(first_run);
        let thread = state.apply_exit(at, task, group_exit, exited);
        self.batch.threads.extend(thread);
    }

    fn apply_reaped(&mut self, at: Nanos, waiter: LaunchId, pid: Pid) {
        // A wait also returns for a stopped child. Only a child that has exited can have been
        // reaped.
        match self.launch(waiter).unreaped.get(&pid).copied() {
            Some(child) if self.unfinished.get(&child).is_none_or(UnfinishedLaunch::has_exited) => {
                self.launch(waiter).unreaped.remove(&pid);
                self.launch(child).apply_wait(at);
            }
            Some(_) => {}
            None => {
                if let Some(child) = self.orphaned_zombie(pid) {
                    self.launch(child).apply_wait(at);
                }
            }
        }
    }

    /// Returns the zombie with this pid whose parent has ended, so that a subreaper or init reaps
    /// it. Only the pid identifies that zombie, and only if the reaper and the recorder see the
    /// same pids. The parent must have ended, because a tracer's wait also returns other zombies.
    fn orphaned_zombie(&self, pid: Pid) -> Option<LaunchId> {
        let id = *self.by_pid.get(&pid)?;
        let child = self.unfinished.get(&id)?;
        let is_zombie = child.has_exited() && child.row.reaped.is_none();
        (is_zombie
            && child
                .row
                .parent
                .is_some_and(|parent| self.unfinished.get(&parent).is_none_or(UnfinishedLaunch::has_exited)))
        .then_some(id)
    }

    /// Records when a process first ran on a CPU, if this slice ends at that moment.
    fn set_first_run(&mut self, at: Nanos, launch: LaunchId, task: TaskId, slice: &Slice) {
        let state = self.unfinished.get(&launch);
        if is_first_slice(slice, launch, task) && state.is_some_and(|state| state.row.first_run.is_none()) {
            self.launch(launch).set_first_run(Some(at));
        }
    }

    /// Adds a slice. `back` is when the thread got a CPU again.
    fn add_slice(&mut self, back: Option<Nanos>, launch: LaunchId, task: TaskId, slice: &Slice) {
        if !self.unfinished.contains_key(&launch) {
            // The launch is in the file, unless the event of its creation was lost.
            self.batch.referenced.insert(launch);
        }
        // What began before time zero, such as a wait of a carried process, begins at zero here.
        let off = self.relative(slice.off);
        let (wake_span, waker) = match &slice.wake {
            Some(wake) => (Some(self.relative(wake.at).since(off)), Some(self.waker(&wake.by))),
            None => (None, None),
        };
        self.batch.slices.push(SliceRow {
            task,
            off,
            on_span: slice.on.map(|on| off.since(self.relative(on))),
            off_span: back.map(|back| back.since(off)),
            wake_span,
            reason: slice.reason,
            syscall: slice.syscall.and_then(|syscall| u16::try_from(syscall.number).ok()),
            argument: slice.syscall.map(|syscall| syscall.argument),
            waker,
            is_waker_certain: slice.wake.as_ref().map(|wake| wake.is_certain),
            object: slice.object.and_then(|object| self.objects.intern(object)),
            calls: slice.calls,
        });
    }

    fn waker(&mut self, waker: &Waker) -> WakerRow {
        match waker {
            Waker::Task(task) => WakerRow::Task(*task),
            Waker::Interrupt => WakerRow::Interrupt,
            Waker::Other { pid, name } => WakerRow::Other(*pid, Some(self.interner.intern(name))),
        }
    }
}

fn is_first_slice(slice: &Slice, launch: LaunchId, task: TaskId) -> bool {
    slice.reason == LeftCpu::Created && task.0 == launch.0
}

#[cfg(test)]
mod tests;
