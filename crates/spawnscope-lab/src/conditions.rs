//! Lists the conditions that differ between two reports. Each may be the cause of a change.

use std::fmt::Display;

use super::machine::Machine;
use super::outcome::Report;
use super::run_conditions::{UNKNOWN, load_texts};

/// A condition, with its older and newer value.
type Pair = (&'static str, String, String);

/// Returns a line for each differing condition.
pub(super) fn differing_conditions(old: &Report, new: &Report) -> Vec<String> {
    let (old_machine, new_machine) = (&old.machine, &new.machine);
    let pairs = [
        ("processor", or_unknown(old_machine.processor.as_ref()), or_unknown(new_machine.processor.as_ref())),
        ("CPUs", old_machine.cpus.to_string(), new_machine.cpus.to_string()),
        (
            "memory",
            or_unknown(old_machine.memory_bytes.map(spawnscope_data::units::bytes).as_ref()),
            or_unknown(new_machine.memory_bytes.map(spawnscope_data::units::bytes).as_ref()),
        ),
        ("kernel", old_machine.kernel.clone(), new_machine.kernel.clone()),
        ("C library", or_unknown(old_machine.libc.as_ref()), or_unknown(new_machine.libc.as_ref())),
        (
            "virtual machine",
            or_unknown(old_machine.is_virtual.map(yes_or_no).as_ref()),
            or_unknown(new_machine.is_virtual.map(yes_or_no).as_ref()),
        ),
        ("huge pages", or_unknown(old_machine.huge_pages.as_ref()), or_unknown(new_machine.huge_pages.as_ref())),
        ("root", yes_or_no(old_machine.as_root), yes_or_no(new_machine.as_root)),
        ("spawnscope", old_machine.spawnscope.clone(), new_machine.spawnscope.clone()),
        ("quick", yes_or_no(old.quick), yes_or_no(new.quick)),
        ("seconds per experiment", or_unknown(old.seconds.as_ref()), or_unknown(new.seconds.as_ref())),
        ("interrupted", yes_or_no(old.interrupted), yes_or_no(new.interrupted)),
    ];
    let pairs: Vec<Pair> = pairs.into_iter().chain(run_condition_pairs(old_machine, new_machine)).collect();
    let differing = pairs.iter().filter(|(_, old, new)| old != new && old != UNKNOWN && new != UNKNOWN);
    differing
        .map(|(what, old, new)| format!("{what}: {old} -> {new}"))
        .chain(different_files(old, new))
        .chain(unknown_conditions(&pairs))
        .collect()
}

fn yes_or_no(holds: bool) -> String {
    if holds { "yes" } else { "no" }.to_owned()
}

/// Returns a line for each report with the conditions that only the other one has. Reports of different versions may lack many.
fn unknown_conditions(pairs: &[Pair]) -> Vec<String> {
    let older = differing_names(pairs, |(_, old, _)| old == UNKNOWN);
    let newer = differing_names(pairs, |(.., new)| new == UNKNOWN);
    let changes = [("older", older), ("newer", newer)].into_iter();
    changes
        .filter(|(_, names)| !names.is_empty())
        .map(|(which, names)| format!("unknown in the {which} report: {names}"))
        .collect()
}

fn differing_names(pairs: &[Pair], is_wanted: fn(&Pair) -> bool) -> String {
    let differing = pairs.iter().filter(|pair| is_wanted(pair) && pair.1 != pair.2);
    differing.map(|(what, ..)| *what).collect::<Vec<_>>().join(", ")
}

/// Returns a line for each program whose file differs between the reports.
fn different_files(old: &Report, new: &Report) -> Vec<String> {
    let mut changes = Vec::new();
    for newer in &new.experiments {
        let older = old.experiments.iter().find(|older| older.name == newer.name);
        for (name, new_file) in &newer.files {
            let old_file = older.and_then(|older| older.files.get(name));
            if let Some(old_file) = old_file.filter(|old_file| *old_file != new_file) {
                changes.push(format!("{name}: {old_file} -> {new_file}"));
            }
        }
    }
    changes
}

/// Returns the conditions that can differ between two runs on the same machine.
fn run_condition_pairs(old: &Machine, new: &Machine) -> [Pair; 5] {
    let (old, new) = (&old.run_conditions, &new.run_conditions);
    let [older_load_before, newer_load_before] = load_texts(old.load_before, new.load_before);
    let [older_load_after, newer_load_after] = load_texts(old.load_after, new.load_after);
    [
        ("load average before", older_load_before, newer_load_before),
        ("load average after", older_load_after, newer_load_after),
        (
            "file system of the temporary directory",
            or_unknown(old.file_system.as_ref()),
            or_unknown(new.file_system.as_ref()),
        ),
        ("hard limit on open files", or_unknown(old.max_open_files.as_ref()), or_unknown(new.max_open_files.as_ref())),
        ("/bin/sh", or_unknown(old.sh.as_ref()), or_unknown(new.sh.as_ref())),
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
        Report { experiments: vec![Outcome::new("", Vec::new())], ..Report::new(Machine::read(), false) }
    }

    #[test]
    fn a_different_kernel_effort_or_program_file_is_reported() {
        let (mut old, mut new) = (report(), report());
        new.quick = true;
        new.machine.kernel = "7.0".to_owned();
        let file =
            |path: &str| [("python3".to_owned(), path.to_owned()), ("bash".to_owned(), "/usr/bin/bash".to_owned())];
        old.experiments[0].files = file("/usr/bin/python3.11").into();
        new.experiments[0].files = file("~/.local/bin/python3.13").into();
        let lines = differing_conditions(&old, &new);
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
        let (old_run, new_run) = (&mut old.machine.run_conditions, &mut new.machine.run_conditions);
        (old_run.load_before, new_run.load_before) = (Some(0.2), Some(5.0));
        (old_run.load_after, new_run.load_after) = (Some(1.2), Some(1.3));
        old_run.file_system = Some("ext4".to_owned());
        new_run.file_system = Some("tmpfs".to_owned());
        (old_run.max_open_files, new_run.max_open_files) = (Some(1024), Some(524_288));
        old_run.sh = Some("/usr/bin/dash".to_owned());
        new_run.sh = Some("/usr/bin/bash".to_owned());
        // An older version does not report these conditions.
        assert_eq!(
            differing_conditions(&report(), &new),
            ["unknown in the older report: seconds per experiment, load average before, load average after, \
                file system of the temporary directory, hard limit on open files, /bin/sh"]
        );
        assert_eq!(
            differing_conditions(&old, &new),
            [
                "seconds per experiment: 15 -> 1.5",
                "load average before: 0.2 -> 5.0",
                "file system of the temporary directory: ext4 -> tmpfs",
                "hard limit on open files: 1024 -> 524288",
                "/bin/sh: /usr/bin/dash -> /usr/bin/bash",
            ]
        );
    }
}
