//! The reading thread. In each round it reads the ring buffers of all CPUs, reads details of newly executed programs in /proc and in copied
//! stacks, and turns records into events in chronological order.
//!
//! A round applies only records that are older than the end of the previous round, because all of these have arrived, whichever CPU wrote
//! them. Later records wait for the next round, which also shows whether a process executed another program while its details were read.

use std::collections::HashMap;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::perf::kernel::{Record, RecordKind, Ring, Rings, parse, parse_stacks};
use rustix::event::{PollFd, PollFlags};
use spawnscope_data::event::{Loss, Nanos, Pid};
use spawnscope_system::clock;
use spawnscope_system::process::{is_readable_within, status_of_ended, wait_until};

use super::followed::{CommandEnd, FollowedProcesses};
use super::pace::{MIN_INTERVAL, Pace};
use super::program_details::ProgramDetails;
use super::{Shared, lock};

/// Maximum time between two rounds.
const MAX_INTERVAL: Duration = Duration::from_millis(40);
/// Maximum time between two rounds if there are records that wait for the second.
const SHORT_INTERVAL: Duration = Duration::from_millis(1);

/// A record that waits for its round.
#[derive(Debug)]
struct PendingRecord {
    record: Record,
    details: Option<ProgramDetails>,
    /// Whether a copied stack was read for this record.
    has_copy: bool,
}

/// All state of the reading thread.
#[derive(Debug)]
pub(super) struct Reader {
    rings: Rings,
    command: Pid,
    /// A pidfd of the command, until the end of the command was observed.
    running: Option<OwnedFd>,
    shared: Arc<Shared>,
    followed: FollowedProcesses,
    /// When the command's end was observed, until all earlier records have become events.
    settling: Option<Nanos>,
    pending: Vec<PendingRecord>,
    /// All records up to this time have been read.
    read_until: Nanos,
    malformed: u64,
    bytes: Vec<u8>,
    /// The copied stacks of this round.
    copies: Vec<u8>,
    pace: Pace,
}

impl Reader {
    pub(super) fn new(rings: Rings, command: Pid, running: OwnedFd, shared: Arc<Shared>) -> Reader {
        Reader {
            command,
            running: Some(running),
            shared,
            followed: FollowedProcesses::new(command),
            settling: None,
            pending: Vec::new(),
            read_until: Nanos(0),
            malformed: 0,
            bytes: Vec::new(),
            copies: Vec::new(),
            pace: Pace::new(!rings.stacks.is_empty()),
            rings,
        }
    }

    /// Reads until the collector is detached.
    pub(super) fn run(mut self) {
        while !self.shared.should_detach.load(Ordering::Acquire) {
            let is_urgent = self.settling.is_some() || !self.pending.is_empty();
            match self.pace.sleep().filter(|_| self.settling.is_none()) {
                Some(sleep) => self.wait(sleep, false),
                None => self.wait(if is_urgent { SHORT_INTERVAL } else { MAX_INTERVAL }, true),
            }
            self.check_for_end_of_command();
            self.run_round();
            self.wait(MIN_INTERVAL, false);
        }
        let end = clock::now();
        self.rings.stacks.iter().for_each(Ring::stop);
        self.rings.records.iter().for_each(Ring::stop);
        self.check_for_end_of_command();
        self.run_round();
        self.apply_until(Nanos(u64::MAX));
        self.followed.finish(end);
        self.send();
        *lock(&self.shared.losses) = self.losses();
        lock(&self.shared.notices).extend(self.arguments_notice());
    }

    /// Waits for the end of the command or of an unfollowed process, for the end of the recording and, if `for_records`, for records.
    fn wait(&self, limit: Duration, for_records: bool) {
        let mut watched = vec![self.shared.wake.as_fd()];
        watched.extend(self.running.as_ref().map(|running| running.as_fd()));
        watched.extend(self.followed.unfollowed.readiness());
        if for_records {
            watched.extend(self.rings.records.iter().map(|ring| ring.readiness()));
        }
        let mut polled: Vec<_> = watched.into_iter().map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
        wait_until(&mut polled, Instant::now() + limit);
    }

    fn check_for_end_of_command(&mut self) {
        if self.running.take_if(|running| is_readable_within(running.as_fd(), Duration::ZERO)).is_some() {
            let at = clock::now();
            self.settling = Some(at);
            self.followed.set_command_end(CommandEnd { at, status: status_of_ended(self.command) });
        }
    }

    fn run_round(&mut self) {
        let without_details = self.pending.iter_mut().filter(|waiting| waiting.details.is_none());
        without_details.for_each(PendingRecord::read_process);
        self.read_rings();
        let until = std::mem::replace(&mut self.read_until, clock::now());
        self.apply_until(until);
        self.followed.report_ended_unfollowed();
        self.send();
        if self.settling.take_if(|end| *end <= until).is_some() {
            self.shared.has_settled.store(true, Ordering::Release);
        }
    }

    fn read_rings(&mut self) {
        // Read the copies before the records, so that the exec that precedes each copy is among the records.
        self.copies.clear();
        for ring in &mut self.rings.stacks {
            ring.take(&mut self.copies);
        }
        let (mut execs, mut filled) = (0, 0.0);
        for ring in &mut self.rings.records {
            filled = ring.take(&mut self.bytes).max(filled);
            let waiting = &mut self.pending;
            self.malformed += parse(&self.bytes, &mut |record| {
                let mut one = PendingRecord { record, details: None, has_copy: false };
                execs += u32::from(one.is_exec());
                one.read_process();
                waiting.push(one);
            });
            self.bytes.clear();
        }
        self.pending.sort_by_key(|waiting| waiting.record.at);
        forget_later_programs(&mut self.pending);
        read_copies(&mut self.pending, &self.copies);
        if self.pace.adjust(Instant::now(), execs, filled) {
            let is_needed = self.pace.sleep().is_some();
            let switch = if is_needed { Ring::start } else { Ring::stop };
            self.rings.stacks.iter().for_each(switch);
        }
    }

    fn apply_until(&mut self, until: Nanos) {
        let count = self.pending.partition_point(|waiting| waiting.record.at <= until);
        for PendingRecord { record, details, .. } in self.pending.drain(..count) {
            self.followed.apply(record, details);
        }
    }

    fn send(&mut self) {
        self.shared.send(&mut self.followed.events);
        lock(&self.shared.notices).append(&mut self.followed.notices);
    }

    fn losses(&self) -> Vec<Loss> {
        let counted: Option<u64> = self.rings.records.iter().map(Ring::lost).sum();
        let lost = counted.unwrap_or_default().max(self.followed.counts.lost);
        let losses = [("perf record", lost), ("malformed record", self.malformed)];
        let losses = losses.into_iter().filter(|(_, events)| *events > 0);
        losses.map(|(kind, events)| Loss { kind: kind.to_owned(), events }).collect()
    }

    fn arguments_notice(&self) -> Option<String> {
        let counts = self.followed.counts;
        (counts.without_arguments > 0).then(|| {
            format!(
                "the arguments of {} of {} executed programs are unknown, because the processes ended or executed another program too soon",
                counts.without_arguments, counts.programs
            )
        })
    }
}

impl PendingRecord {
    fn is_exec(&self) -> bool {
        matches!(self.record.kind, RecordKind::Executed { .. })
    }

    /// Reads from /proc what the process runs, if the record reports an exec.
    fn read_process(&mut self) {
        if self.is_exec() {
            self.details = ProgramDetails::read(self.record.pid);
        }
    }
}

/// Reads the arguments of programs in copied stacks. The first copy after an exec belongs to the executed program.
fn read_copies(waiting: &mut [PendingRecord], stacks: &[u8]) {
    let mut execs: HashMap<Pid, Vec<usize>> = HashMap::new();
    for (index, waiting) in waiting.iter().enumerate() {
        if waiting.is_exec() {
            execs.entry(waiting.record.pid).or_default().push(index);
        }
    }
    parse_stacks(stacks, &mut |stack| {
        let execs = execs.get(&stack.pid).map(Vec::as_slice).unwrap_or_default();
        let later = execs.partition_point(|exec| waiting[*exec].record.at <= stack.at);
        let last = later.checked_sub(1).and_then(|last| waiting.get_mut(execs[last]));
        if let Some(exec) = last.filter(|exec| !exec.has_copy)
            && let Some(copied) = ProgramDetails::from_stack(&stack)
        {
            exec.has_copy = true;
            match &mut exec.details {
                Some(details) => {
                    details.variables = copied.variables;
                    details.path = details.path.take().or(copied.path);
                }
                None => exec.details = Some(copied),
            }
        }
    });
}

/// Removes details that were read after the process had executed another program, because they belong to that program.
fn forget_later_programs(waiting: &mut [PendingRecord]) {
    let mut next: HashMap<Pid, Nanos> = HashMap::new();
    for PendingRecord { record, details, .. } in waiting.iter_mut().rev() {
        if let RecordKind::Executed { .. } = record.kind {
            let later = next.insert(record.pid, record.at);
            if later.is_some_and(|later| details.as_ref().is_some_and(|details| later <= details.read_at)) {
                *details = None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiting(pid: i32, at: u64, read_at: Option<u64>) -> PendingRecord {
        let details = read_at.map(|read_at| ProgramDetails {
            read_at: Nanos(read_at),
            argv: Vec::new(),
            argv_bytes: 0,
            path: None,
            interpreter: None,
            cwd: None,
            variables: Vec::new(),
            is_copied: false,
        });
        let kind = RecordKind::Executed { name: Vec::new() };
        let (pid, at) = (Pid(pid), Nanos(at));
        PendingRecord { record: Record { at, pid, tid: pid, kind }, details, has_copy: false }
    }

    #[test]
    fn details_that_were_read_after_a_further_exec_are_removed() {
        let mut all = [
            waiting(1, 10, Some(15)),
            waiting(2, 11, Some(30)),
            waiting(1, 20, Some(30)),
            waiting(1, 25, Some(31)),
            waiting(2, 40, None),
        ];
        forget_later_programs(&mut all);
        let kept: Vec<bool> = all.iter().map(|waiting| waiting.details.is_some()).collect();
        assert_eq!(kept, [true, true, false, true, false]);
    }
}
