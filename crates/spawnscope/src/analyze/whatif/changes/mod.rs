//! The fixes that can be tried: each turns a set of launches into edits, and says of how many of them it holds.

pub mod chains;
mod images;
mod machine;
mod memory;
mod reaping;
mod removal;
mod shells;

use super::adjustments::Adjustments;
use super::constants::Constants;
use crate::analyze::timeline::Timelines;
use crate::analyze::tree::Forest;

pub use images::search_share;
pub use machine::QUICK_LAUNCH;
pub use memory::copies_tables;
pub use removal::is_captured;
pub(in crate::analyze) use shells::command_of;
pub use shells::{Shell, is_shell, needless_shell, wrapped_child};

/// A fix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The launches and all below them do not happen.
    Remove,
    /// The shell does it itself: exec, loader and work are gone, a fork for `$( )` stays.
    Builtin,
    /// So many launches of one parent become one.
    Batch(u32),
    /// They are created as by vfork or `posix_spawn`.
    Vfork,
    /// Their parents' memory is in huge pages.
    HugePages,
    /// Their parents stay as small as they were at first.
    SteadyParent,
    /// No shell between the parent and the program.
    NoShell,
    /// They are linked statically.
    Static,
    /// Their loaders find each library where they look first.
    NoSearch,
    /// The program itself is executed, without what comes before it in a chain of execs.
    Direct,
    /// The program's file is given, so that it is not looked for along PATH.
    Absolute,
    /// Descriptors are closed in one call.
    CloseRange,
    /// Their parent does not sleep through their end.
    ReapNow,
    /// Nobody waits until their memory is given back.
    NoTeardown,
    /// Launching costs no more than on a machine without faults.
    QuickLaunch,
    /// No permission scanner.
    NoScan,
    /// So many CPUs.
    Cpus(u32),
}

/// What changes are decided upon.
#[derive(Clone, Copy)]
pub(in crate::analyze) struct Context<'c, 'a> {
    pub(in crate::analyze) forest: &'c Forest<'a>,
    pub(in crate::analyze) timelines: &'c Timelines,
    pub(in crate::analyze) constants: &'c Constants,
}

impl Change {
    /// Adds the edits; gives the launches that it holds for.
    pub(super) fn edit(self, context: Context<'_, '_>, launches: &[u32], adjustments: &mut Adjustments) -> Vec<u32> {
        let forest = context.forest;
        match self {
            Change::Remove => removal::remove(forest, launches, adjustments),
            Change::Builtin => removal::builtin(context, launches, adjustments),
            Change::Batch(size) => removal::batch(context, launches, size, adjustments),
            Change::Vfork => memory::vfork(context, launches, adjustments),
            Change::HugePages => memory::huge_pages(context, launches, adjustments),
            Change::SteadyParent => memory::steady_parent(context, launches, adjustments),
            Change::NoShell => shells::no_shell(forest, launches, adjustments),
            Change::Static => images::without_loader(context, launches, adjustments),
            Change::NoSearch => images::without_search(forest, launches, adjustments),
            Change::Direct => shells::direct(context, launches, adjustments),
            Change::Absolute => images::absolute(forest, launches, adjustments),
            Change::CloseRange => images::close_range(forest, launches, adjustments),
            Change::ReapNow => reaping::without_late_reaping(context, launches, adjustments),
            Change::NoTeardown => machine::without_teardown(forest, launches, adjustments),
            Change::QuickLaunch => machine::quick_launch(forest, launches, adjustments),
            Change::NoScan => machine::without_scanner(context, adjustments),
            Change::Cpus(cpus) => {
                adjustments.cpus = Some(cpus);
                launches.to_vec()
            }
        }
    }
}
