//! The available changes. Each adds adjustments for a set of launches, and returns the launches
//! that it applies to.

mod batch;
mod images;
mod parent_memory;
mod polling;
mod removal;
mod shells;
mod start_up;
pub(crate) mod work;

use super::WhatIf;
use super::adjustments::Adjustments;
use crate::model::external_wait::{ExternalWait, external_wait_of};
use crate::model::launch::Launch;
use crate::model::phases::Phase;
pub use images::search_share;
pub use polling::overslept;
use spawnscope_data::event::Nanos;

/// A change to launches or to the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Removes the launches and their descendants.
    Remove,
    /// Lets the shell do the work itself: removes exec, load and a part of run; a fork for `$( )`
    /// stays.
    Builtin,
    /// Merges up to this many launches of a program into one.
    Batch(u32),
    /// Creates the launches as with vfork or `posix_spawn`.
    Vfork,
    HugePages,
    /// Keeps the memory of the parents as small as at their first launches.
    SteadyParent,
    /// Removes the shell between the parent and the program.
    NoShell,
    Static,
    /// Lets the loader find each library at the first lookup.
    NoSearch,
    /// Executes the real program directly, without the chain of execs before it.
    Direct,
    /// Launches the program by its path, without a PATH search.
    Absolute,
    CloseRange,
    /// Lets the parent reap the launches at once.
    ReapNow,
    /// Ends launches before their memory is freed, so that no process waits for that.
    NoTeardown,
    /// Limits the launch cost to that of a healthy machine.
    QuickLaunch,
    NoScan,
    /// Does the work of the launches in their parents' processes.
    InProcess,
    /// Starts each program once per parent, and sends the work of further launches to that process.
    Coprocess,
    /// Lets another program do the work. Its run takes this many thousandths of the recorded time.
    Replace(u32),
    /// Runs up to this many launches at a time, instead of one after the other.
    Jobs(u32),
    /// Ends each `sleep` of a polling parent when the child that it waits for ends.
    WakeInTime,
    Cpus(u32),
}

impl<'c, 'a> WhatIf<'c, 'a> {
    fn launch(&self, launch: u32) -> &'c Launch<'a> {
        &self.forest.launches[launch as usize]
    }
}

/// Edits each launch by itself. Returns the launches for which `edit` says that it applies.
fn each(launches: &[u32], edit: impl FnMut(&u32) -> bool) -> Vec<u32> {
    launches.iter().copied().filter(edit).collect()
}

impl Change {
    /// Adds the adjustments of the change. Returns the launches that it applies to.
    pub(super) fn edit(self, context: WhatIf<'_, '_>, launches: &[u32], adjustments: &mut Adjustments) -> Vec<u32> {
        match self {
            Change::Remove => each(launches, |launch| removal::remove(context, *launch, adjustments)),
            Change::Builtin => removal::builtin(context, launches, adjustments),
            Change::Batch(size) => batch::batch(context, launches, size, adjustments),
            Change::Vfork => each(launches, |launch| parent_memory::vfork(context, *launch, adjustments)),
            Change::HugePages => each(launches, |launch| parent_memory::huge_pages(context, *launch, adjustments)),
            Change::SteadyParent => parent_memory::steady_parent(context, launches, adjustments),
            Change::NoShell => each(launches, |launch| shells::no_shell(context, *launch, adjustments)),
            Change::Static => each(launches, |launch| images::without_loader(context, *launch, adjustments)),
            Change::NoSearch => each(launches, |launch| images::without_search(context, *launch, adjustments)),
            Change::Direct => shells::direct(context, launches, adjustments),
            Change::Absolute => each(launches, |launch| images::absolute(context, *launch, adjustments)),
            Change::CloseRange => each(launches, |launch| images::close_range(context, *launch, adjustments)),
            Change::ReapNow => each(launches, |launch| polling::without_late_reaping(context, *launch, adjustments)),
            Change::NoTeardown => scale_all(context, launches, Phase::Teardown, 0.0, adjustments),
            Change::QuickLaunch => each(launches, |launch| quick_launch(context, *launch, adjustments)),
            Change::NoScan => without_scanner(context, adjustments),
            Change::InProcess => work::in_process(context, launches, adjustments),
            Change::Coprocess => work::coprocess(context, launches, adjustments),
            Change::Replace(thousandths) => {
                scale_all(context, launches, Phase::Run, f64::from(thousandths) / 1000.0, adjustments)
            }
            Change::Jobs(jobs) => work::jobs(context, launches, jobs, adjustments),
            Change::WakeInTime => each(launches, |launch| polling::wake_in_time(context, *launch, adjustments)),
            Change::Cpus(cpus) => {
                adjustments.cpus = Some(cpus);
                // Programs outside of the recording hold as many CPUs as before, if they need no
                // more.
                adjustments.contention = (f64::from(context.replay.cpus) / f64::from(cpus.max(1))).min(1.0);
                launches.to_vec()
            }
        }
    }
}

fn scale_all(
    context: WhatIf<'_, '_>,
    launches: &[u32],
    phase: Phase,
    factor: f64,
    adjustments: &mut Adjustments,
) -> Vec<u32> {
    let affected = each(launches, |launch| context.launch(*launch).phases.ns(phase) > 0.0);
    affected.iter().for_each(|launch| adjustments.scale(*launch, phase, factor));
    affected
}

/// Maximum launch cost on a healthy machine. Launches of large dynamic programs take a few
/// milliseconds.
pub const QUICK_LAUNCH: Nanos = Nanos(10_000_000);

/// Reduces the launch cost to `QUICK_LAUNCH`, every phase by the same share.
fn quick_launch(context: WhatIf<'_, '_>, launch: u32, adjustments: &mut Adjustments) -> bool {
    let cost = context.launch(launch).launch_cost().unwrap_or_default();
    if cost > QUICK_LAUNCH {
        let remains = QUICK_LAUNCH.0 as f64 / cost.0 as f64;
        adjustments.uncertainty_ns += QUICK_LAUNCH.0 as f64 / 2.0;
        Phase::COST.iter().for_each(|phase| adjustments.scale(launch, *phase, remains));
    }
    cost > QUICK_LAUNCH
}

/// Removes all waits for a permission scanner, of every launch, because a scanner affects all
/// launches.
fn without_scanner(context: WhatIf<'_, '_>, adjustments: &mut Adjustments) -> Vec<u32> {
    adjustments.no_scan = true;
    let mut affected = Vec::new();
    for (thread, each) in (0..).zip(&context.timelines.threads) {
        let slices = context.timelines.slices(thread).iter();
        let scanned = slices.filter(|slice| matches!(external_wait_of(slice), ExternalWait::Scanner(_)));
        let waited: u64 = scanned.filter_map(|slice| Some(slice.wake_span.or(slice.off_span)?.0)).sum();
        if waited > 0 {
            adjustments.add_saving(each.launch, waited as f64);
            affected.push(each.launch);
        }
    }
    affected.sort_unstable();
    affected.dedup();
    affected
}
