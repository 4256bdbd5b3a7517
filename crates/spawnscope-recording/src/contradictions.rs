//! Finds rows that cannot all be true: a child older than its parent, an exit before the start, more CPU time than elapsed. No recorder
//! writes such rows, but a file may contain them; readers get their number. Two CPUs may stamp neighbouring events slightly out of order,
//! which does not count as a contradiction.

use spawnscope_data::contradictions::Contradictions;
use spawnscope_data::event::{LaunchId, Nanos, TaskId};

use super::fields::Ids;
use super::limits::MAX_LIVES;
use spawnscope_data::rows::{ExecRow, FailedExecRow, LaunchRow, Origin, Recording, SampleRow, SliceRow, ThreadRow};

/// How far an instant may precede the one that it should follow. Recordings with 180,000 slices contained no such case.
const CLOCKS_APART: Nanos = Nanos(1_000_000);

/// The ids of the launches and threads of a recording.
pub(super) struct Tasks {
    launches: Ids,
    threads: Ids,
}

impl Tasks {
    /// Indexes ids, which must ascend.
    pub(super) fn new(launches: Vec<i64>, threads: Vec<i64>) -> Tasks {
        Tasks {
            launches: Ids::new(launches),
            threads: Ids::new(threads),
        }
    }

    fn holds(&self, task: TaskId) -> bool {
        let id = task.0.cast_signed();
        self.launches.index_of(id).is_some() || self.threads.index_of(id).is_some()
    }
}

/// Checks the rows of a recording against each other. `Stretches` checks slices and samples.
pub(super) fn between(recording: &Recording, threads: &[ThreadRow]) -> Contradictions {
    let ids = recording.launches.iter().map(|row| row.id.0.cast_signed()).collect();
    let rows = Rows {
        recording,
        launches: Ids::new(ids),
        found: Contradictions::default(),
    };
    rows.check(threads)
}

struct Rows<'a> {
    recording: &'a Recording,
    launches: Ids,
    found: Contradictions,
}

impl Rows<'_> {
    fn check(mut self, threads: &[ThreadRow]) -> Contradictions {
        let Recording {
            info,
            launches,
            execs,
            failed_execs,
            ..
        } = self.recording;
        if let Some(root) = info.root.filter(|root| self.launch(*root).is_none()) {
            self.found.note("commands without a launch in the recording", root.0);
        }
        launches.iter().for_each(|row| self.check_launch(row));
        execs.iter().for_each(|row| self.check_exec(row));
        failed_execs.iter().for_each(|row| self.check_failed_exec(row));
        threads.iter().for_each(|row| self.check_thread(row));
        self.found
    }

    fn launch(&self, id: LaunchId) -> Option<&LaunchRow> {
        self.recording.launches.get(self.launches.index_of(id.0.cast_signed())?)
    }

    fn check_launch(&mut self, row: &LaunchRow) {
        let id = row.id.0;
        let parent = row
            .parent
            .map(|parent| (parent, self.launch(parent).map(|parent| parent.created)));
        let has_too_much_time = !in_order(&[row.exit_cpu, row.cpu]) || self.has_too_much_time(row);
        let found = &mut self.found;
        let life = [row.create, row.created, row.first_run, row.exit, row.zombie, row.reaped];
        found.note_if(!in_order(&life), "launches that end before they begin", id);
        found.note_if(
            ends_after(&life, self.recording.info.last),
            "launches that end after the recording",
            id,
        );
        match parent {
            None => {}
            Some((_, None)) => found.note("launches by a process that is not recorded", id),
            Some((parent, Some(_))) if parent >= row.id => found.note("launches that came before their parent", id),
            Some((_, Some(created))) => {
                let is_older = row.origin == Origin::Launched && !in_order(&[created, row.created]);
                found.note_if(is_older, "launches that came before their parent", id);
            }
        }
        found.note_if(
            has_too_much_time,
            "launches whose CPU or set-up time exceeds their life",
            id,
        );
    }

    /// Whether a process had more CPU time than fits into its life, or a longer set-up.
    fn has_too_much_time(&self, row: &LaunchRow) -> bool {
        if row.origin == Origin::Existed {
            // Its CPU time counts from its creation, which was before the recording.
            return false;
        }
        let Some(life) = row
            .zombie
            .or(row.exit)
            .zip(row.created)
            .map(|(end, start)| end.since(start))
        else {
            return false;
        };
        // CPU time comes from a different kernel clock.
        let most = (life.0 + life.0 / 8).saturating_add(CLOCKS_APART.0);
        let cpus = u64::from(self.recording.info.cpus);
        row.cpu.is_some_and(|cpu| cpu.0 > most.saturating_mul(cpus))
            || row.setup_close_span.is_some_and(|span| span.0 > most)
    }

    fn check_exec(&mut self, row: &ExecRow) {
        let id = row.launch.0;
        let Some(launch) = self.launch(row.launch) else {
            return self.found.note("execs by a process that is not recorded", id);
        };
        let end = launch.zombie.or(launch.exit);
        let is_in_order = in_order(&[launch.created, row.enter, row.returned, row.load_end, end])
            && in_order(&[row.enter_cpu, row.return_cpu, row.load_cpu]);
        self.found.note_if(
            !is_in_order,
            "execs that end before they begin, or outside of their process's life",
            id,
        );
    }

    fn check_failed_exec(&mut self, row: &FailedExecRow) {
        let id = row.launch.0;
        let Some(launch) = self.launch(row.launch) else {
            return self.found.note("failed execs by a process that is not recorded", id);
        };
        let end = launch.zombie.or(launch.exit);
        let is_in_order = in_order(&[launch.created, Some(row.enter), Some(row.returned), end]);
        let what = "failed execs that end before they begin, or outside of their process's life";
        self.found.note_if(!is_in_order, what, id);
    }

    fn check_thread(&mut self, row: &ThreadRow) {
        let id = row.task.0;
        let Some(launch) = self.launch(row.launch) else {
            return self.found.note("threads of a process that is not recorded", id);
        };
        let is_in_order = in_order(&[launch.created, Some(row.created), row.ended, launch.zombie]);
        let what = "threads that end before they begin, or outside of their process's life";
        self.found.note_if(!is_in_order, what, id);
    }
}

/// Checks slices or samples, one after the other, against their threads.
pub(super) struct Stretches {
    tasks: Tasks,
    /// The end of the recording.
    end: Nanos,
    /// The sum of their durations.
    sum: u128,
    found: Contradictions,
}

impl Stretches {
    pub(super) fn new(tasks: Tasks, end: Nanos) -> Stretches {
        Stretches {
            tasks,
            end,
            sum: 0,
            found: Contradictions::default(),
        }
    }

    pub(super) fn check_slice(&mut self, row: &SliceRow) {
        let (task, off) = (row.task.0, row.off.0);
        let [on, away] = [row.on_span, row.off_span].map(|span| span.unwrap_or_default().0);
        self.sum += u128::from(on) + u128::from(away);
        self.found.note_if(
            !self.tasks.holds(row.task),
            "slices of a thread that is not recorded",
            task,
        );
        let end = Nanos(off.saturating_add(away));
        self.found.note_if(
            ends_after(&[Some(end)], self.end),
            "slices that end after the recording",
            task,
        );
        let is_woken_late = row.off_span.is_some() && !in_order(&[row.wake_span, row.off_span]);
        self.found
            .note_if(is_woken_late, "slices of a thread that was woken after it ran", task);
    }

    pub(super) fn check_sample(&mut self, row: &SampleRow) {
        let task = row.task.0;
        self.sum += u128::from(row.span.0);
        self.found.note_if(
            !self.tasks.holds(row.task),
            "samples of a thread that is not recorded",
            task,
        );
        self.found.note_if(
            ends_after(&[Some(row.at)], self.end),
            "samples from after the recording",
            task,
        );
    }

    /// Returns the contradictions, or `None` if the durations overflow their limit.
    pub(super) fn finish(self) -> Option<Contradictions> {
        (self.sum <= MAX_LIVES).then_some(self.found)
    }
}

/// Whether the lives of all launches can be summed up within the limit.
pub(super) fn can_be_summed(recording: &Recording) -> bool {
    let end = recording.info.last.max(recording.info.wall.unwrap_or_default());
    let life = |row: &LaunchRow| {
        let start = row.create.or(row.created).unwrap_or_default();
        let ended = row.reaped.or(row.zombie).unwrap_or_default().max(end);
        u128::from(ended.since(start).0.max(row.cpu.unwrap_or_default().0))
    };
    recording.launches.iter().map(life).sum::<u128>() <= MAX_LIVES
}

/// Whether the known instants follow each other.
fn in_order(instants: &[Option<Nanos>]) -> bool {
    let mut latest = Nanos(0);
    instants.iter().flatten().all(|instant| {
        let follows = latest.since(*instant) <= CLOCKS_APART;
        latest = latest.max(*instant);
        follows
    })
}

fn ends_after(instants: &[Option<Nanos>], end: Nanos) -> bool {
    instants
        .iter()
        .flatten()
        .any(|instant| instant.since(end) > CLOCKS_APART)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_values_contradict_nothing() {
        let at = |ns: u64| Some(Nanos(ns));
        assert!(in_order(&[None, at(5), None, at(5), at(7)]));
        assert!(!in_order(&[at(5_000_000), None, at(3_000_000)]));
        assert!(
            !in_order(&[at(5_000_000), at(6_000_000), at(4_500_000)]),
            "compared with the latest instant, not with the last"
        );
        assert!(in_order(&[at(5_000_000), at(4_500_000)]), "two clocks");
        assert!(!ends_after(&[None, at(9)], Nanos(8)));
        assert!(ends_after(&[at(3_000_000)], Nanos(8)));
    }
}
