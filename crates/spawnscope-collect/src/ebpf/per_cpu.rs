//! Finds where a CPU's preempt count is, relative to the CPU's run queue, for kernels that do not
//! let BPF programs find it by its symbol. The source is the kernel's BTF, which contains the
//! layout of its per-CPU variables, or else /proc/kallsyms.

use std::fs::File;
use std::io::{BufRead, BufReader};

use libbpf_rs::btf::Btf;
use libbpf_rs::btf::types::{DataSec, Struct, Var};

use super::load::may_use;
use crate::wire::WirePerCpuOffsets;
use spawnscope_data::event::Missing;

const PER_CPU_SECTION: &str = ".data..percpu";
const RUN_QUEUE: &str = "runqueues";
const PREEMPT_COUNT: &str = "__preempt_count";
const CURRENT_TASK: &str = "current_task";
/// The structure that contains both variables from Linux 6.2 to 6.14.
const BOTH: &str = "pcpu_hot";

/// The result of the search.
#[derive(Debug, Default)]
pub(super) struct PerCpuOffsets {
    pub(super) offsets: Option<WirePerCpuOffsets>,
    /// Whether the kernel's BTF has a symbol for the count.
    has_symbol: bool,
}

impl PerCpuOffsets {
    pub(super) fn find() -> PerCpuOffsets {
        let Some(types) = Btf::from_vmlinux().ok().filter(|_| may_use(RUN_QUEUE)) else {
            return PerCpuOffsets::default();
        };
        let found = find_in_types(&types);
        let has_symbol = found.iter().any(|(name, _)| *name == PREEMPT_COUNT || *name == BOTH);
        let offsets = offsets_from_run_queue(&found).or_else(|| {
            let symbols = File::open("/proc/kallsyms").ok()?;
            find_in_symbols(BufReader::with_capacity(1 << 16, symbols))
        });
        PerCpuOffsets { offsets: offsets.filter(|_| threads_have_run_queue(&types)), has_symbol }
    }

    /// Returns what is unknown if the count can be read neither at its offset nor by its symbol.
    /// `by_symbol`: the kernel accepted the program that uses the symbol. On aarch64 that program
    /// needs no symbol, because the count is stored with the thread.
    pub(super) fn missing(&self, by_symbol: bool) -> Option<Missing> {
        let has_symbol = self.has_symbol || cfg!(target_arch = "aarch64");
        let is_known = self.offsets.is_some() || (by_symbol && has_symbol);
        (!is_known).then(|| Missing {
            what: "the kernel's preempt count".to_owned(),
            effect: "whether some waits were ended by an interrupt or by the thread that it hit".to_owned(),
        })
    }
}

/// Returns the offsets of the variables from the run queue. `found` contains their names, with
/// addresses or with offsets in a section.
fn offsets_from_run_queue(found: &[(&str, i64)]) -> Option<WirePerCpuOffsets> {
    let (_, run_queue) = found.iter().find(|(name, _)| *name == RUN_QUEUE)?;
    let [count, current, both] = [PREEMPT_COUNT, CURRENT_TASK, BOTH].map(|wanted| {
        let (_, address) = found.iter().find(|(name, _)| *name == wanted)?;
        Some(address - run_queue).filter(|distance| *distance != 0)
    });
    Some(WirePerCpuOffsets {
        preempt_count: both.or(count)?,
        current_task: both.or(current)?,
        are_known: 1,
        reserved: 0,
    })
}

/// Whether threads have a pointer to their run queue, to which the offsets are relative.
fn threads_have_run_queue(types: &Btf<'_>) -> bool {
    let entity = types.type_by_name::<Struct<'_>>("sched_entity");
    entity.is_some_and(|entity| entity.iter().any(|member| member.name.is_some_and(|name| name == "cfs_rq")))
}

fn known_name(name: &str) -> Option<&'static str> {
    [RUN_QUEUE, PREEMPT_COUNT, CURRENT_TASK, BOTH].into_iter().find(|each| *each == name)
}

fn find_in_types(types: &Btf<'_>) -> Vec<(&'static str, i64)> {
    let mut sections = types.type_by_kind::<DataSec<'_>>();
    let Some(section) = sections.find(|section| section.name().is_some_and(|name| name == PER_CPU_SECTION)) else {
        return Vec::new();
    };
    let wanted = (0..section.len()).filter_map(|index| {
        let entry = section.get(index)?;
        let variable: Var<'_> = types.type_by_id(entry.ty)?;
        Some((known_name(variable.name()?.to_str()?)?, i64::from(entry.offset)))
    });
    wanted.collect()
}

/// Finds the offsets in the kernel's list of symbols. The base of the addresses does not matter:
/// only their differences are used.
fn find_in_symbols(symbols: impl BufRead) -> Option<WirePerCpuOffsets> {
    let mut found = Vec::new();
    for line in symbols.lines() {
        let line = line.ok()?;
        let mut words = line.split_ascii_whitespace();
        let (address, name) = (words.next()?, words.nth(1)?);
        let Some(name) = known_name(name) else { continue };
        let address = u64::from_str_radix(address, 16).ok()?;
        found.push((name, address.cast_signed()));
        // The variables are listed close together, and before the code.
        if let Some(offsets) = offsets_from_run_queue(&found) {
            return Some(offsets);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(preempt_count: i64, current_task: i64) -> Option<WirePerCpuOffsets> {
        Some(WirePerCpuOffsets { preempt_count, current_task, are_known: 1, reserved: 0 })
    }

    #[test]
    fn offsets_are_relative_to_the_run_queue() {
        let symbols = "000000000001fb40 A __preempt_count\n000000000001fb80 A current_task\n000000000001fb88 A other\n\
                       0000000000031980 A runqueues\nffffffff81000000 T _stext\n";
        assert_eq!(find_in_symbols(symbols.as_bytes()), known(-0x11e40, -0x11e00));
        let hot = "0000000000035000 A pcpu_hot\n0000000000035e80 A runqueues\n";
        assert_eq!(find_in_symbols(hot.as_bytes()), known(-0xe80, -0xe80));
    }

    #[test]
    fn the_count_is_missing_only_without_both_symbol_and_offset() {
        let threads_have_count = cfg!(target_arch = "aarch64");
        let unknown = PerCpuOffsets { offsets: None, has_symbol: false };
        assert_eq!(unknown.missing(true).is_none(), threads_have_count);
        let with_symbol = PerCpuOffsets { offsets: None, has_symbol: true };
        assert!(with_symbol.missing(false).is_some(), "the kernel hides it");
        assert_eq!(with_symbol.missing(true), None);
        assert_eq!(PerCpuOffsets { offsets: known(8, 8), has_symbol: true }.missing(false), None);
    }

    #[test]
    fn hidden_addresses_and_absent_variables_are_unknown() {
        let hidden =
            "0000000000000000 A __preempt_count\n0000000000000000 A current_task\n0000000000000000 A runqueues\n";
        assert_eq!(find_in_symbols(hidden.as_bytes()), None);
        assert_eq!(find_in_symbols("000000000001fb40 A __preempt_count\n".as_bytes()), None);
        assert_eq!(offsets_from_run_queue(&[("runqueues", 64), ("__preempt_count", 8)]), None);
    }
}
