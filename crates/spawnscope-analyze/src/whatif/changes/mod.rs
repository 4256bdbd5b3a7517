//! The available changes. Each adds adjustments for a set of launches, and returns the launches
//! that it applies to.

mod batch;
mod images;
mod machine;
mod memory;
mod polling;
mod removal;
mod shells;
mod start_up;
mod work;

use super::adjustments::Adjustments;
use super::constants::Constants;
use crate::timeline::Timelines;
use crate::tree::Forest;

pub use images::search_share;
pub use machine::QUICK_LAUNCH;
pub use polling::overslept;

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
    /// Puts the memory of the parents into huge pages.
    HugePages,
    /// Keeps the memory of the parents as small as at their first launches.
    SteadyParent,
    /// Removes the shell between the parent and the program.
    NoShell,
    /// Links the programs statically.
    Static,
    /// Lets the loader find each library at the first lookup.
    NoSearch,
    /// Executes the real program directly, without the chain of execs before it.
    Direct,
    /// Launches the program by its path, without a PATH search.
    Absolute,
    /// Closes descriptors in one call.
    CloseRange,
    /// Lets the parent reap the launches at once.
    ReapNow,
    /// Ends launches before their memory is freed, so that no process waits for that.
    NoTeardown,
    /// Limits the launch cost to that of a healthy machine.
    QuickLaunch,
    /// Removes the permission scanner.
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
    /// Changes the number of CPUs.
    Cpus(u32),
}

/// The data that changes read.
#[derive(Clone, Copy)]
pub(crate) struct Context<'c, 'a> {
    pub(crate) forest: &'c Forest<'a>,
    pub(crate) timelines: &'c Timelines,
    pub(crate) constants: &'c Constants,
    /// Number of CPUs of the replay.
    pub(crate) cpus: u32,
}

impl Change {
    /// Adds the adjustments of the change. Returns the launches that it applies to.
    pub(super) fn edit(self, context: Context<'_, '_>, launches: &[u32], adjustments: &mut Adjustments) -> Vec<u32> {
        let forest = context.forest;
        match self {
            Change::Remove => removal::remove(forest, launches, adjustments),
            Change::Builtin => removal::builtin(context, launches, adjustments),
            Change::Batch(size) => batch::batch(context, launches, size, adjustments),
            Change::Vfork => memory::vfork(context, launches, adjustments),
            Change::HugePages => memory::huge_pages(context, launches, adjustments),
            Change::SteadyParent => memory::steady_parent(context, launches, adjustments),
            Change::NoShell => shells::no_shell(forest, launches, adjustments),
            Change::Static => images::without_loader(context, launches, adjustments),
            Change::NoSearch => images::without_search(context, launches, adjustments),
            Change::Direct => shells::direct(context, launches, adjustments),
            Change::Absolute => images::absolute(forest, launches, adjustments),
            Change::CloseRange => images::close_range(forest, launches, adjustments),
            Change::ReapNow => polling::without_late_reaping(context, launches, adjustments),
            Change::NoTeardown => machine::without_teardown(forest, launches, adjustments),
            Change::QuickLaunch => machine::quick_launch(forest, launches, adjustments),
            Change::NoScan => machine::without_scanner(context, adjustments),
            Change::InProcess => work::in_process(context, launches, adjustments),
            Change::Coprocess => work::coprocess(context, launches, adjustments),
            Change::Replace(thousandths) => work::replace(forest, launches, thousandths, adjustments),
            Change::Jobs(jobs) => work::jobs(context, launches, jobs, adjustments),
            Change::WakeInTime => polling::wake_in_time(forest, launches, adjustments),
            Change::Cpus(cpus) => {
                adjustments.cpus = Some(cpus);
                launches.to_vec()
            }
        }
    }
}
