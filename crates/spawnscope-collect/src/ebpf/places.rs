//! Finds the location of a CPU's preempt count, for kernels that do not let programs find it by name: from the kernel's BTF types,
//! which contain the layout of its per-CPU variables, or else from /proc/kallsyms.

use std::fs::File;
use std::io::{BufRead, BufReader};

use libbpf_rs::btf::Btf;
use libbpf_rs::btf::types::{DataSec, Struct, Var};

use super::load::may_use;
use crate::wire::WirePerCpuOffsets;
use spawnscope_data::event::Missing;

const SECTION: &str = ".data..percpu";
const RUN_QUEUE: &str = "runqueues";
const COUNT: &str = "__preempt_count";
const CURRENT: &str = "current_task";
/// Contains both variables from Linux 6.2 to 6.14.
const BOTH: &str = "pcpu_hot";

/// The result of the search.
#[derive(Debug, Default)]
pub(super) struct PerCpuOffsets {
    pub(super) places: Option<WirePerCpuOffsets>,
    /// Whether the kernel's types have a name for the count.
    is_named: bool,
}

impl PerCpuOffsets {
    /// Searches for the places.
    pub(super) fn find() -> PerCpuOffsets {
        let Some(types) = Btf::from_vmlinux().ok().filter(|_| may_use(RUN_QUEUE)) else {
            return PerCpuOffsets::default();
        };
        let found = of_types(&types);
        let is_named = found.iter().any(|(name, _)| *name == COUNT || *name == BOTH);
        let places = distances(&found).or_else(|| {
            let symbols = File::open("/proc/kallsyms").ok()?;
            of_symbols(BufReader::with_capacity(1 << 16, symbols))
        });
        PerCpuOffsets {
            places: places.filter(|_| knows_run_queue(&types)),
            is_named,
        }
    }

    /// What is unknown without the places. `by_name`: the kernel accepted a program that uses the name. An architecture that keeps
    /// the count in its threads needs neither.
    pub(super) fn missing(&self, by_name: bool) -> Option<Missing> {
        let has_name = self.is_named || cfg!(target_arch = "aarch64");
        let is_known = self.places.is_some() || (by_name && has_name);
        (!is_known).then(|| Missing {
            what: "the kernel's preempt count".to_owned(),
            effect: "whether some waits were ended by an interrupt or by the thread that it hit".to_owned(),
        })
    }
}

/// The distances of the variables from the run queue. `found` holds their names with addresses or offsets.
fn distances(found: &[(&str, i64)]) -> Option<WirePerCpuOffsets> {
    let of = |name| found.iter().find(|(each, _)| *each == name).map(|(_, place)| *place);
    let run_queue = of(RUN_QUEUE)?;
    let [count, current, both] =
        [COUNT, CURRENT, BOTH].map(|name| Some(of(name)? - run_queue).filter(|distance| *distance != 0));
    Some(WirePerCpuOffsets {
        preempt_count: both.or(count)?,
        current_task: both.or(current)?,
        are_known: 1,
        reserved: 0,
    })
}

/// Whether threads point to their run queue, to which the places are relative.
fn knows_run_queue(types: &Btf<'_>) -> bool {
    let entity = types.type_by_name::<Struct<'_>>("sched_entity");
    entity.is_some_and(|entity| {
        entity
            .iter()
            .any(|member| member.name.is_some_and(|name| name == "cfs_rq"))
    })
}

fn is_wanted(name: &str) -> Option<&'static str> {
    [RUN_QUEUE, COUNT, CURRENT, BOTH].into_iter().find(|each| *each == name)
}

fn of_types(types: &Btf<'_>) -> Vec<(&'static str, i64)> {
    let is_section = |section: &DataSec<'_>| section.name().is_some_and(|name| name == SECTION);
    let Some(section) = types.type_by_kind::<DataSec<'_>>().find(is_section) else {
        return Vec::new();
    };
    let place_of = |at: usize| {
        let place = section.get(at)?;
        let variable: Var<'_> = types.type_by_id(place.ty)?;
        Some((is_wanted(variable.name()?.to_str()?)?, i64::from(place.offset)))
    };
    (0..section.len()).filter_map(place_of).collect()
}

/// The base of the addresses does not matter: only their differences are used.
fn of_symbols(symbols: impl BufRead) -> Option<WirePerCpuOffsets> {
    let mut found = Vec::new();
    for line in symbols.lines() {
        let line = line.ok()?;
        let mut words = line.split_ascii_whitespace();
        let (address, name) = (words.next()?, words.nth(1)?);
        let Some(name) = is_wanted(name) else { continue };
        let address = u64::from_str_radix(address, 16).ok()?;
        found.push((name, address.cast_signed()));
        // All of them are close together, and listed before the code.
        if let Some(places) = distances(&found) {
            return Some(places);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(preempt_count: i64, current_task: i64) -> Option<WirePerCpuOffsets> {
        Some(WirePerCpuOffsets {
            preempt_count,
            current_task,
            are_known: 1,
            reserved: 0,
        })
    }

    #[test]
    fn places_are_distances_from_the_run_queue() {
        let symbols = "000000000001fb40 A __preempt_count\n000000000001fb80 A current_task\n000000000001fb88 A other\n\
                       0000000000031980 A runqueues\nffffffff81000000 T _stext\n";
        assert_eq!(of_symbols(symbols.as_bytes()), known(-0x11e40, -0x11e00));
        let hot = "0000000000035000 A pcpu_hot\n0000000000035e80 A runqueues\n";
        assert_eq!(of_symbols(hot.as_bytes()), known(-0xe80, -0xe80));
    }

    #[test]
    fn unknown_is_shown_only_without_name_and_place() {
        let found = |places, is_named| PerCpuOffsets { places, is_named };
        let keeps_it_with_threads = cfg!(target_arch = "aarch64");
        assert_eq!(found(None, false).missing(true).is_none(), keeps_it_with_threads);
        assert!(found(None, true).missing(false).is_some(), "the kernel hides it");
        assert_eq!(found(None, true).missing(true), None);
        assert_eq!(found(known(8, 8), true).missing(false), None);
    }

    #[test]
    fn hidden_addresses_and_absent_variables_are_unknown() {
        let hidden =
            "0000000000000000 A __preempt_count\n0000000000000000 A current_task\n0000000000000000 A runqueues\n";
        assert_eq!(of_symbols(hidden.as_bytes()), None);
        assert_eq!(of_symbols("000000000001fb40 A __preempt_count\n".as_bytes()), None);
        assert_eq!(distances(&[("runqueues", 64), ("__preempt_count", 8)]), None);
    }
}
