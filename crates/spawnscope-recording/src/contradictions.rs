//! Finds rows that cannot all be true: a child older than its parent, an exit before the start,
//! more CPU time than elapsed. No recorder writes such rows, but a file may contain them, so they
//! are counted and reported. Small differences do not count as contradictions, because the
//! timestamps of two CPUs may be slightly out of order.

use spawnscope_data::contradictions::Contradictions;
use spawnscope_data::event::{LaunchId, Nanos, TaskId};
use spawnscope_data::ids::Ids;

use super::limits::MAX_TOTAL_LIFE_NS;
use super::tables::RecordingRow;
use rusqlite::types::ValueRef;
use spawnscope_data::rows::{
    ExecRow, FailedExecRow, LaunchRow, Origin, Recording, SampleRow, SliceRow, StopRow, ThreadRow,
};
use spawnscope_data::table::{Limit, Table};

/// How far an instant may precede another one that it should follow. In recordings with 180,000
/// slices in total, no instant did so.
const MAX_CLOCK_DIFFERENCE: Nanos = Nanos(1_000_000);

/// What the values of columns cannot exceed (`Limit`), in the unit of each.
#[derive(Debug)]
pub(super) struct Limits {
    duration_ns: u64,
    cpu_time_ns: u64,
    count: u64,
}

impl Limits {
    pub(super) fn of(recording: &RecordingRow) -> Limits {
        let duration_ns = recording.last_event.0.saturating_add(MAX_CLOCK_DIFFERENCE.0);
        // Lost events may be later than the last one that is stored.
        let longest_ns = duration_ns.max(recording.wall.unwrap_or_default().0);
        // If the number of CPUs is unknown, no CPU times are known either.
        let cpus = u64::from(recording.cpus.max(1));
        Limits {
            duration_ns,
            cpu_time_ns: longest_ns.saturating_add(recording.origin).saturating_mul(cpus),
            count: longest_ns.saturating_mul(cpus),
        }
    }

    /// Returns the columns of a table that have a limit: the index of each, the limit, and the
    /// contradiction that a larger value is.
    pub(super) fn of_columns(&self, table: &Table) -> Vec<(usize, u64, &'static str)> {
        let columns = table.columns.iter().enumerate();
        let limited = columns.filter_map(|(index, column)| match column.column_type.limit {
            Limit::None => None,
            Limit::Duration => Some((index, self.duration_ns, "times from after the recording, or longer than it")),
            Limit::CpuTime => Some((index, self.cpu_time_ns, "CPU times that exceed the time of all CPUs")),
            Limit::Count => Some((index, self.count, "counts above one per nanosecond on each CPU")),
        });
        limited.collect()
    }
}

/// Counts values of a row that exceed their limits. The first column is the id of the launch or
/// task, if the row has one.
pub(super) fn check_limits(limits: &[(usize, u64, &'static str)], values: &[ValueRef<'_>], found: &mut Contradictions) {
    let number = |index: usize| match values.get(index) {
        Some(ValueRef::Integer(value)) => u64::try_from(*value).unwrap_or_default(),
        _ => 0,
    };
    for (index, limit, what) in limits {
        found.count_row_if(number(*index) > *limit, what, number(0));
    }
}

/// Checks the rows of a recording against each other, except slices and samples, which
/// `SpanChecker` checks.
pub(super) fn find(recording: &Recording, threads: &[ThreadRow]) -> Contradictions {
    let ids = recording.launches.iter().map(|row| row.id.0.cast_signed());
    let checker = RowChecker { recording, launches: Ids::new(ids), found: Contradictions::default() };
    checker.check(threads)
}

struct RowChecker<'a> {
    recording: &'a Recording,
    launches: Ids,
    found: Contradictions,
}

impl RowChecker<'_> {
    fn check(mut self, threads: &[ThreadRow]) -> Contradictions {
        let Recording { info, launches, execs, failed_execs, stops, .. } = self.recording;
        if let Some(root) = info.root.filter(|root| self.launch(*root).is_none()) {
            self.found.count_row("commands without a launch in the recording", root.0);
        }
        launches.iter().for_each(|row| self.check_launch(row));
        execs.iter().for_each(|row| self.check_exec(row));
        failed_execs.iter().for_each(|row| self.check_failed_exec(row));
        stops.iter().for_each(|row| self.check_stop(row));
        threads.iter().for_each(|row| self.check_thread(row));
        self.found
    }

    fn launch(&self, id: LaunchId) -> Option<&LaunchRow> {
        self.recording.launches.get(self.launches.index_of(id.0.cast_signed())?)
    }

    fn check_launch(&mut self, row: &LaunchRow) {
        let id = row.id.0;
        let parent = row.parent.map(|parent| (parent, self.launch(parent).map(|parent| parent.created)));
        let has_too_much_time = !are_in_order(&[row.exit_cpu, row.cpu]) || self.has_too_much_time(row);
        let found = &mut self.found;
        let life = [row.create, row.created, row.first_run, row.exit, row.zombie, row.reaped];
        found.count_row_if(!are_in_order(&life), "launches that end before they begin", id);
        match parent {
            None => {}
            Some((_, None)) => found.count_row("launches by a process that is not recorded", id),
            Some((parent, Some(_))) if parent >= row.id => {
                found.count_row("launches that came before their parent", id);
            }
            Some((_, Some(created))) => {
                let is_older = row.origin == Origin::Launched && !are_in_order(&[created, row.created]);
                found.count_row_if(is_older, "launches that came before their parent", id);
            }
        }
        found.count_row_if(has_too_much_time, "launches whose CPU or setup time exceeds their life", id);
    }

    /// Whether the CPU time or the setup of a process is longer than its life allows.
    fn has_too_much_time(&self, row: &LaunchRow) -> bool {
        if row.origin == Origin::Existed {
            // The CPU time of such a process includes its time before the recording.
            return false;
        }
        // In a ring of recordings, a launch of an earlier file seems to be created at 0.
        let created = row.created.filter(|created| created.0 > 0);
        let Some(life) = row.zombie.or(row.exit).zip(created).map(|(end, start)| end.since(start)) else {
            return false;
        };
        // Some tolerance is needed, because CPU time comes from a different kernel clock.
        let max_ns = (life.0 + life.0 / 8).saturating_add(MAX_CLOCK_DIFFERENCE.0);
        let cpus = u64::from(self.recording.info.cpus.max(1));
        row.cpu.is_some_and(|cpu| cpu.0 > max_ns.saturating_mul(cpus))
            || row.setup_close_span.is_some_and(|span| span.0 > max_ns)
    }

    fn check_exec(&mut self, row: &ExecRow) {
        let what = [
            "execs by a process that is not recorded",
            "execs that end before they begin, or outside of their process's life",
        ];
        self.check_within(row.launch, row.launch.0, what, |launch| {
            let end = launch.zombie.or(launch.exit);
            are_in_order(&[launch.created, row.enter, row.returned, row.load_end, end])
                && are_in_order(&[row.enter_cpu, row.return_cpu, row.load_cpu])
        });
    }

    fn check_failed_exec(&mut self, row: &FailedExecRow) {
        let what = [
            "failed execs by a process that is not recorded",
            "failed execs that end before they begin, or outside of their process's life",
        ];
        self.check_within(row.launch, row.launch.0, what, |launch| {
            are_in_order(&[launch.created, Some(row.enter), Some(row.returned), launch.zombie.or(launch.exit)])
        });
    }

    fn check_stop(&mut self, row: &StopRow) {
        let what = ["stops of a process that is not recorded", "stops outside of their process's life"];
        self.check_within(row.launch, row.launch.0, what, |launch| {
            // The recorder stops the command before the time that is recorded as its creation.
            are_in_order(&[Some(row.at), launch.zombie])
        });
    }

    fn check_thread(&mut self, row: &ThreadRow) {
        let what = [
            "threads of a process that is not recorded",
            "threads that end before they begin, or outside of their process's life",
        ];
        self.check_within(row.launch, row.task.0, what, |launch| {
            are_in_order(&[launch.created, Some(row.created), row.ended, launch.zombie])
        });
    }

    /// Checks that the process of a row is recorded, and that the row fits it.
    fn check_within(
        &mut self,
        launch: LaunchId,
        id: u64,
        what: [&'static str; 2],
        fits: impl FnOnce(&LaunchRow) -> bool,
    ) {
        match self.launch(launch).map(fits) {
            None => self.found.count_row(what[0], id),
            Some(fits) => self.found.count_row_if(!fits, what[1], id),
        }
    }
}

/// Checks slices or samples, one after the other, against their threads and the end of the
/// recording.
pub(super) struct SpanChecker {
    launches: Ids,
    threads: Ids,
    end: Nanos,
    sum: u128,
    found: Contradictions,
}

impl SpanChecker {
    pub(super) fn new(launches: Ids, threads: Ids, end: Nanos) -> SpanChecker {
        SpanChecker { launches, threads, end, sum: 0, found: Contradictions::default() }
    }

    fn is_recorded(&self, task: TaskId) -> bool {
        let id = task.0.cast_signed();
        self.launches.index_of(id).is_some() || self.threads.index_of(id).is_some()
    }

    pub(super) fn check_slice(&mut self, row: &SliceRow) {
        let (task, off) = (row.task.0, row.off.0);
        let [on_ns, off_ns] = [row.on_span, row.off_span].map(|span| span.unwrap_or_default().0);
        self.sum += u128::from(on_ns) + u128::from(off_ns);
        self.found.count_row_if(!self.is_recorded(row.task), "slices of a thread that is not recorded", task);
        let is_late = Nanos(off.saturating_add(off_ns)).since(self.end) > MAX_CLOCK_DIFFERENCE;
        self.found.count_row_if(is_late, "slices that end after the recording", task);
        let is_woken_late = row.off_span.is_some() && !are_in_order(&[row.wake_span, row.off_span]);
        self.found.count_row_if(is_woken_late, "slices of a thread that was woken after it ran", task);
    }

    pub(super) fn check_sample(&mut self, row: &SampleRow) {
        let task = row.task.0;
        self.sum += u128::from(row.span.0);
        self.found.count_row_if(!self.is_recorded(row.task), "samples of a thread that is not recorded", task);
    }

    /// Returns the contradictions, or `None` if the sum of the spans exceeds `MAX_TOTAL_LIFE_NS`.
    pub(super) fn finish(self) -> Option<Contradictions> {
        (self.sum <= MAX_TOTAL_LIFE_NS).then_some(self.found)
    }
}

/// Whether the sum of the lives of all launches is within `MAX_TOTAL_LIFE_NS`.
pub(super) fn can_be_summed(recording: &Recording) -> bool {
    let end = recording.info.last_event.max(recording.info.wall.unwrap_or_default());
    let lives = recording.launches.iter().map(|row| {
        let start = row.create.or(row.created).unwrap_or_default();
        let ended = row.reaped.or(row.zombie).unwrap_or_default().max(end);
        u128::from(ended.since(start).0.max(row.cpu.unwrap_or_default().0))
    });
    lives.sum::<u128>() <= MAX_TOTAL_LIFE_NS
}

fn are_in_order(instants: &[Option<Nanos>]) -> bool {
    let mut latest = Nanos(0);
    instants.iter().flatten().all(|instant| {
        let follows = latest.since(*instant) <= MAX_CLOCK_DIFFERENCE;
        latest = latest.max(*instant);
        follows
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ns: u64) -> Option<Nanos> {
        Some(Nanos(ns))
    }

    #[test]
    fn unknown_values_contradict_nothing() {
        assert!(are_in_order(&[None, at(5), None, at(5), at(7)]));
        assert!(!are_in_order(&[at(5_000_000), None, at(3_000_000)]));
        assert!(
            !are_in_order(&[at(5_000_000), at(6_000_000), at(4_500_000)]),
            "compared with the latest instant, not with the one before"
        );
        assert!(are_in_order(&[at(5_000_000), at(4_500_000)]), "the clocks of two CPUs may differ");
    }
}
