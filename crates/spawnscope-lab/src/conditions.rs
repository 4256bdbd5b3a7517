//! Lists the conditions that differ between two reports. Each may be the cause of a change.

use std::fmt::Display;

use super::machine::Machine;
use super::outcome::Report;
use super::run_conditions::{UNKNOWN, load_texts};

/// A condition, with its older and newer value.
type Pair = (&'static str, String, String);

/// Returns a line for each differing condition.
pub(super) fn conditions(old: &Report, new: &Report) -> Vec<String> {
    let (before, after) = (&old.machine, &new.machine);
    let yes_no = |holds: bool| if holds { "yes" } else { "no" }.to_owned();
    let memory = |bytes: Option<u64>| bytes.map(spawnscope_data::units::bytes);
    let pairs = [
        (
            "processor",
            or_unknown(before.processor.as_ref()),
            or_unknown(after.processor.as_ref()),
        ),
        ("CPUs", before.cpus.to_string(), after.cpus.to_string()),
        (
            "memory",
            or_unknown(memory(before.memory_bytes).as_ref()),
            or_unknown(memory(after.memory_bytes).as_ref()),
        ),
        ("kernel", before.kernel.clone(), after.kernel.clone()),
        (
            "C library",
            or_unknown(before.libc.as_ref()),
            or_unknown(after.libc.as_ref()),
        ),
        (
            "virtual machine",
            or_unknown(before.is_virtual.map(yes_no).as_ref()),
            or_unknown(after.is_virtual.map(yes_no).as_ref()),
        ),
        (
            "huge pages",
            or_unknown(before.huge_pages.as_ref()),
            or_unknown(after.huge_pages.as_ref()),
        ),
        ("root", yes_no(before.as_root), yes_no(after.as_root)),
        ("spawnscope", before.spawnscope.clone(), after.spawnscope.clone()),
        ("quick", yes_no(old.quick), yes_no(new.quick)),
        (
            "seconds for an experiment",
            or_unknown(old.seconds.as_ref()),
            or_unknown(new.seconds.as_ref()),
        ),
        ("interrupted", yes_no(old.interrupted), yes_no(new.interrupted)),
    ];
    let pairs: Vec<Pair> = pairs.into_iter().chain(run_condition_pairs(before, after)).collect();
    let differing = pairs
        .iter()
        .filter(|(_, before, after)| before != after && before != UNKNOWN && after != UNKNOWN);
    differing
        .map(|(what, before, after)| format!("{what}: {before} -> {after}"))
        .chain(different_files(old, new))
        .chain(unknown_conditions(&pairs))
        .collect()
}

/// Returns a line for each report with the conditions that only the other one has. Reports of different versions may lack many.
fn unknown_conditions(pairs: &[Pair]) -> Vec<String> {
    let names = |is_unknown: fn(&Pair) -> bool| {
        let names = pairs.iter().filter(|pair| is_unknown(pair) && pair.1 != pair.2);
        names.map(|(what, ..)| *what).collect::<Vec<_>>().join(", ")
    };
    let [older, newer] = [
        names(|(_, before, _)| before == UNKNOWN),
        names(|(.., after)| after == UNKNOWN),
    ];
    let changes = [("older", older), ("newer", newer)].into_iter();
    changes
        .filter(|(_, names)| !names.is_empty())
        .map(|(which, names)| format!("unknown in the {which} report: {names}"))
        .collect()
}

/// Returns a line for each program whose file differs between the reports.
fn different_files(old: &Report, new: &Report) -> Vec<String> {
    let mut changes = Vec::new();
    for newer in &new.experiments {
        let older = old.experiments.iter().find(|older| older.name == newer.name);
        for (name, after) in &newer.files {
            let before = older.and_then(|older| older.files.get(name));
            if let Some(before) = before.filter(|before| *before != after) {
                changes.push(format!("{name}: {before} -> {after}"));
            }
        }
    }
    changes
}

/// Returns the conditions that can differ between two runs on the same machine.
fn run_condition_pairs(before: &Machine, after: &Machine) -> [Pair; 5] {
    let (before, after) = (&before.run_conditions, &after.run_conditions);
    let [load_before, newer_load_before] = load_texts(before.load_before, after.load_before);
    let [load_after, newer_load_after] = load_texts(before.load_after, after.load_after);
    [
        ("load average before", load_before, newer_load_before),
        ("load average after", load_after, newer_load_after),
        (
            "file system of the temporary directory",
            or_unknown(before.file_system.as_ref()),
            or_unknown(after.file_system.as_ref()),
        ),
        (
            "hard limit on open files",
            or_unknown(before.max_open_files.as_ref()),
            or_unknown(after.max_open_files.as_ref()),
        ),
        ("/bin/sh", or_unknown(before.sh.as_ref()), or_unknown(after.sh.as_ref())),
    ]
}

fn or_unknown<T: Display>(value: Option<&T>) -> String {
    value.map_or(UNKNOWN.to_owned(), T::to_string)
}

#[cfg(test)]
mod tests {
    use super::super::outcome::Outcome;
    use super::*;

    /// Returns a report of this machine with one experiment.
    fn report() -> Report {
        Report {
            experiments: vec![Outcome::new("", Vec::new())],
            ..Report::new(Machine::read(), false)
        }
    }

    #[test]
    fn a_different_kernel_effort_or_program_file_is_reported() {
        let (mut old, mut new) = (report(), report());
        new.quick = true;
        new.machine.kernel = "7.0".to_owned();
        let file = |path: &str| {
            [
                ("python3".to_owned(), path.to_owned()),
                ("bash".to_owned(), "/usr/bin/bash".to_owned()),
            ]
        };
        old.experiments[0].files = file("/usr/bin/python3.11").into();
        new.experiments[0].files = file("~/.local/bin/python3.13").into();
        let lines = conditions(&old, &new);
        assert_eq!(
            lines,
            [
                format!("kernel: {} -> 7.0", old.machine.kernel),
                "quick: no -> yes".to_owned(),
                "python3: /usr/bin/python3.11 -> ~/.local/bin/python3.13".to_owned(),
            ]
        );
    }

    #[test]
    fn conditions_that_differ_between_runs_on_one_machine_are_reported() {
        let (mut old, mut new) = (report(), report());
        old.seconds = Some(15.0);
        new.seconds = Some(1.5);
        let (before, after) = (&mut old.machine.run_conditions, &mut new.machine.run_conditions);
        (before.load_before, after.load_before) = (Some(0.2), Some(5.0));
        (before.load_after, after.load_after) = (Some(1.2), Some(1.3));
        before.file_system = Some("ext4".to_owned());
        after.file_system = Some("tmpfs".to_owned());
        (before.max_open_files, after.max_open_files) = (Some(1024), Some(524_288));
        before.sh = Some("/usr/bin/dash".to_owned());
        after.sh = Some("/usr/bin/bash".to_owned());
        // An older version does not report these conditions.
        assert_eq!(
            conditions(&report(), &new),
            [
                "unknown in the older report: seconds for an experiment, load average before, load average after, \
                file system of the temporary directory, hard limit on open files, /bin/sh"
            ]
        );
        assert_eq!(
            conditions(&old, &new),
            [
                "seconds for an experiment: 15 -> 1.5",
                "load average before: 0.2 -> 5.0",
                "file system of the temporary directory: ext4 -> tmpfs",
                "hard limit on open files: 1024 -> 524288",
                "/bin/sh: /usr/bin/dash -> /usr/bin/bash",
            ]
        );
    }
}
