//! Joins the rows of several tables into launches. Each launch is handled by itself; `tree` adds
//! its name and depth, which depend on other launches.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::Arc;

use crate::model::grouped::GroupedItems;
use crate::model::launch::{Command, Counts, Exec, Execs, Instants, Launch, Outcome, base_name};
use crate::model::pieces::{cpu_times, end_of_load, last_run_cpu, wall_times};
use spawnscope_data::event::{LaunchId, Nanos};
use spawnscope_data::ids::Ids;
use spawnscope_data::rows::{ExecRow, LaunchRow, Recording};
use spawnscope_data::words::Words;

/// Maximum unused capacity of the rows of launches: about 10 MiB.
const MAX_SPARE: usize = 1 << 15;

pub(crate) struct Joiner<'a> {
    pub(crate) recording: &'a Recording,
    /// The end of the recording, which ends the phases that are still open.
    pub(crate) end: Nanos,
    /// The command of each launch until `tree` assigns the real one.
    pub(crate) unnamed: Arc<Command<'a>>,
}

impl<'a> Joiner<'a> {
    /// Returns one launch per row, in the same order. `ids` are those of the rows. The rows are
    /// joined from the last to the first, so that their memory can be used for the launches.
    pub(crate) fn join(&self, mut rows: Cow<'_, [LaunchRow]>, execs: &[ExecRow], ids: &Ids) -> Vec<Launch<'a>> {
        let owned = execs.iter().filter_map(|row| Some((index_of(ids, row.launch)?, row)));
        let execs = GroupedItems::new(ids.len(), owned.collect());
        let mut launches = VecDeque::with_capacity(ids.len());
        while let Some(row) = take_last(&mut rows) {
            launches.push_front(self.launch(&row, execs.items_of(rows.len())));
        }
        launches.into()
    }

    /// Returns indices into the table of failed execs, grouped by launch and sorted by time. The
    /// rows are not copied, because there may be millions.
    pub(crate) fn failed_execs(&self, launches: &Ids) -> GroupedItems<u32> {
        let rows = &self.recording.failed_execs;
        let mut owned: Vec<(u32, u32)> =
            (0..).zip(rows).filter_map(|(position, row)| Some((index_of(launches, row.launch)?, position))).collect();
        owned.sort_unstable_by_key(|(owner, position)| (*owner, rows[*position as usize].enter, *position));
        GroupedItems::new(launches.len(), owned)
    }

    /// Returns when the collector stopped the first thread of each launch, grouped by launch and
    /// sorted by time.
    pub(crate) fn stops(&self, launches: &Ids) -> GroupedItems<(Nanos, Nanos)> {
        let rows = self.recording.stops.iter().filter(|row| row.task.0 == row.launch.0);
        let spans = rows.filter_map(|row| {
            Some((index_of(launches, row.launch)?, (row.at, Nanos(row.at.0.saturating_add(row.span.0)))))
        });
        let mut owned: Vec<_> = spans.collect();
        owned.sort_unstable();
        GroupedItems::new(launches.len(), owned)
    }

    /// Returns one launch without its name and depth, which depend on its ancestors.
    fn launch(&self, row: &LaunchRow, exec_rows: &[&ExecRow]) -> Launch<'a> {
        let execs = self.execs(exec_rows);
        let instants = Instants {
            prepare: row.prepare.into(),
            parent_tidied: row.parent_tidied.into(),
            create: row.create.into(),
            created: row.created.into(),
            first_run: row.first_run.into(),
            worked_until: None.into(),
            was_stopped_at_birth: !self.recording.info.sees_first_waits(),
            exit: row.exit.into(),
            zombie: row.zombie.into(),
            reaped: row.reaped.into(),
        };
        let outcome = row.wait_status.map_or(Outcome::Unknown, Outcome::of_wait_status);
        let ended = row.exit.or(row.zombie).or(row.reaped).is_some();
        Launch {
            id: row.id,
            parent: row.parent.into(),
            parent_task: row.parent_task.into(),
            depth: 0,
            pid: row.pid.into(),
            origin: row.origin,
            mechanism: row.mechanism,
            birth_command: self.unnamed.clone(),
            command: self.unnamed.clone(),
            parent_rss_bytes: row.parent_rss_bytes.into(),
            instants,
            phases: wall_times(row.origin, &instants, &execs, (!ended).then_some(self.end)),
            cpu_phases: cpu_times(row, exec_rows),
            last_run_cpu: last_run_cpu(row, exec_rows),
            start_up: start_up(row, exec_rows, execs.last().map(|exec| base_name(exec.path()))).into(),
            execs,
            cpu: row.cpu.into(),
            counts: Counts::of(row),
            script_stack: row.script_stack,
            native_stack: row.native_stack,
            outcome: if ended { outcome } else { Outcome::Running },
        }
    }

    /// Finds the forks that launched processes before their first exec, and divides their time
    /// before that exec into work and `setup`.
    pub(crate) fn divide_forks(&self, launches: &mut [Launch<'a>], children: &GroupedItems<usize>) {
        for index in 0..launches.len() {
            let launch = &launches[index];
            let exec = launch.execs.first().and_then(|exec| exec.enter.get());
            let Some(exec) = exec.filter(|_| launch.may_work_before_exec()) else { continue };
            let children = children.items_of(index).iter().map(|child| &launches[*child].instants);
            let steps = children.flat_map(|child| [child.created.get(), child.reaped.get()]).flatten();
            let worked_until = steps.filter(|at| *at < exec).max();
            if let Some(worked_until) = worked_until {
                launches[index].divide_setup(worked_until, self.end);
            }
        }
    }

    fn execs(&self, rows: &[&ExecRow]) -> Execs<'a> {
        match rows {
            [only] => Execs::One(self.exec(only)),
            _ => Execs::Others(rows.iter().map(|exec| self.exec(exec)).collect()),
        }
    }

    fn exec(&self, row: &ExecRow) -> Exec<'a> {
        let texts = &self.recording.texts;
        Exec {
            enter: row.enter.into(),
            returned: row.returned.into(),
            load_end: end_of_load(row.has_loader, row.returned, row.load_end).into(),
            has_loader: row.has_loader,
            argv_cut: row.argv_bytes > texts.get(row.argv).len() as u64,
            load_opens: row.load_opens.into(),
            load_failed_opens: row.load_failed_opens.into(),
            load_cache: row.load_cache,
            texts,
            path: row.path,
            argv: row.argv,
            interpreter: row.interpreter.into(),
            cwd: row.cwd.into(),
            variables: row.variables.into(),
        }
    }
}

/// Returns the last row. Frees its memory, if there is much that is unused.
fn take_last(rows: &mut Cow<'_, [LaunchRow]>) -> Option<LaunchRow> {
    match rows {
        Cow::Borrowed(all) => {
            let (last, before) = all.split_last()?;
            *all = before;
            Some(last.clone())
        }
        Cow::Owned(all) => {
            if all.capacity() - all.len() > MAX_SPARE {
                all.shrink_to_fit();
            }
            all.pop()
        }
    }
}

/// Returns the index of a launch.
pub(crate) fn index_of(ids: &Ids, id: LaunchId) -> Option<u32> {
    ids.index_of(id.0.cast_signed()).map(|index| index as u32)
}

/// Compilers and linkers, whose input includes files below /usr/lib. For other programs, opening
/// such files is part of starting up.
const LIBRARY_READERS: Words = Words(
    "cc1 cc1obj cc1plus clang clang++ collect2 d21 f951 gnat1 ld ld.bfd ld.gold ld.lld lto1 \
     mold rust-lld rustc",
);

/// Returns the CPU time that the last program used before it began its work. `None` if the recorder
/// could not recognize that moment.
fn start_up(row: &LaunchRow, execs: &[&ExecRow], program: Option<&[u8]>) -> Option<Nanos> {
    let last = execs.last()?;
    if LIBRARY_READERS.contains(program?) {
        return None;
    }
    let loaded = end_of_load(last.has_loader, last.return_cpu, last.load_cpu)?;
    row.work_cpu.filter(|work| *work >= loaded).map(|work| work.since(loaded))
}
