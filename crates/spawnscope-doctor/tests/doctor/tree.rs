//! A fake machine made of files, and helpers to run a check on it.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use spawnscope_data::event::{Calibration, Constant, Nanos};
use spawnscope_doctor::{Diagnosis, Finding, Machine, Measured, Severity, checks, examine};

use crate::attempts::ok_if;

/// The nanoseconds of a millisecond.
pub const MS: u64 = 1_000_000;

/// A directory with the files of a fake machine.
pub struct Tree {
    directory: tempfile::TempDir,
}

impl Tree {
    pub fn new() -> Tree {
        Tree { directory: tempfile::tempdir().unwrap() }
    }

    pub fn root(&self) -> &Path {
        self.directory.path()
    }

    pub fn file(self, path: &str, text: impl AsRef<[u8]>) -> Tree {
        let path = self.path_with_parents(path);
        fs::write(path, text).unwrap();
        self
    }

    pub fn directory(self, path: &str) -> Tree {
        fs::create_dir_all(self.path_with_parents(path)).unwrap();
        self
    }

    pub fn link(self, path: &str, target: &str) -> Tree {
        symlink(target, self.path_with_parents(path)).unwrap();
        self
    }

    pub fn mode(self, path: &str, mode: u32) -> Tree {
        fs::set_permissions(self.path_with_parents(path), fs::Permissions::from_mode(mode)).unwrap();
        self
    }

    /// Adds a process to /proc; its memory is given in MiB.
    pub fn process(self, pid: u32, parent: u32, name: &str, mebibytes: u64) -> Tree {
        let kibibytes = mebibytes * 1024;
        self.directory(&format!("proc/{pid}/fd")).file(
            &format!("proc/{pid}/status"),
            format!(
                "Name:\t{name}\nPPid:\t{parent}\nUid:\t1000\t1000\t1000\t1000\nVmData:\t{kibibytes} kB\nRssAnon:\t{kibibytes} kB\nThreads:\t4\n"
            ),
        )
    }

    pub fn machine(&self) -> Machine {
        Machine::with_root(self.root())
    }

    fn path_with_parents(&self, path: &str) -> std::path::PathBuf {
        let path = self.root().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        path
    }
}

/// Runs one check.
pub fn diagnose(id: &str, machine: &Machine, measured: &Measured) -> Diagnosis {
    let check = checks::ALL.iter().find(|check| check.id == id).unwrap_or_else(|| panic!("no check {id}"));
    let diagnosis = examine(machine, measured, &[check]);
    for finding in &diagnosis.findings {
        assert_eq!(finding.check, id);
        assert!(!finding.title.is_empty() && !finding.evidence.is_empty(), "{finding:?}");
        assert!(!finding.fix.is_empty() && !finding.fix_cost.is_empty(), "{finding:?}");
        // Each line must be a sentence of its own, because JSON joins the lines with full stops.
        for text in &finding.evidence {
            assert!(!text.starts_with("and ") && !text.ends_with(['.', ',', ':', ';']), "{finding:?}");
        }
    }
    diagnosis
}

/// Checks that a check finds nothing, and could examine everything.
#[track_caller]
pub fn expect_nothing(id: &str, machine: &Machine, measured: &Measured) {
    let diagnosis = diagnose(id, machine, measured);
    assert!(diagnosis.findings.is_empty(), "{:#?}", diagnosis.findings);
    assert!(diagnosis.not_examined.is_empty(), "{:#?}", diagnosis.not_examined);
}

/// Returns the only finding, which must have this severity and contain all these words.
#[track_caller]
pub fn expect_finding(id: &str, machine: &Machine, measured: &Measured, severity: Severity, words: &[&str]) -> Finding {
    find_one(id, machine, measured, severity, words).unwrap_or_else(|why| panic!("{why}"))
}

/// Returns the only finding with the usual measurements, a problem.
#[track_caller]
pub fn expect_problem(id: &str, machine: &Machine, words: &[&str]) -> Finding {
    expect_problem_with(id, machine, &usual_measurements(), words)
}

#[track_caller]
pub fn expect_problem_with(id: &str, machine: &Machine, measured: &Measured, words: &[&str]) -> Finding {
    expect_finding(id, machine, measured, Severity::Problem, words)
}

/// Returns the only finding with the usual measurements, a note.
#[track_caller]
pub fn expect_note(id: &str, machine: &Machine, words: &[&str]) -> Finding {
    expect_note_with(id, machine, &usual_measurements(), words)
}

#[track_caller]
pub fn expect_note_with(id: &str, machine: &Machine, measured: &Measured, words: &[&str]) -> Finding {
    expect_finding(id, machine, measured, Severity::Note, words)
}

/// Returns an error with the value `seen` unless the condition holds.
pub fn expect(holds: bool, seen: impl std::fmt::Debug) -> Result<(), String> {
    ok_if(holds, || format!("{seen:#?}"))
}

/// Like `expect_finding`, but returns the findings as an error instead of panicking.
pub fn find_one(
    id: &str,
    machine: &Machine,
    measured: &Measured,
    severity: Severity,
    words: &[&str],
) -> Result<Finding, String> {
    let diagnosis = diagnose(id, machine, measured);
    expect(diagnosis.findings.len() == 1, &diagnosis)?;
    let finding = diagnosis.findings.into_iter().next().unwrap();
    expect(finding.severity == severity, &finding)?;
    let text = format!("{} {} {}", finding.title, finding.evidence.join(" "), finding.fix.join(" "));
    for word in words {
        expect(text.contains(word), (word, &finding))?;
    }
    Ok(finding)
}

#[track_caller]
pub fn fix(id: &str, tree: &Tree) -> String {
    let findings = diagnose(id, &tree.machine(), &usual_measurements()).findings;
    let [finding] = &findings[..] else { panic!("{findings:#?}") };
    finding.fix.join("\n")
}

pub fn constant(what: Constant, ns: f64) -> Calibration {
    Calibration { what, ns, low_ns: None, high_ns: None }
}

/// Returns measurements of a machine on which nothing is slow.
pub fn usual_measurements() -> Measured {
    let mut measured = Measured {
        constants: vec![
            constant(Constant::PageCopy, 20_000.0),
            constant(Constant::PageFree, 10_000.0),
            constant(Constant::Cpuid, 30.0),
            constant(Constant::Identify, 43.0 * 30.0),
        ],
        system_call: Some(Nanos(100)),
        scan: Some(scan(1, 1, &[1, 1, 2, 2])),
        ..Measured::default()
    };
    measured.launch.fork = Some(Nanos(200_000));
    measured.launch.exec_static = Some(Nanos(300_000));
    measured.launch.exec_dynamic = Some(Nanos(700_000));
    measured
}

/// Returns five first launches and five later ones with these times in milliseconds, and the ends
/// of concurrent launches.
pub fn scan(first: u64, later: u64, concurrent: &[u64]) -> spawnscope_doctor::measure::Scan {
    spawnscope_doctor::measure::Scan {
        first_launches: vec![Nanos(first * MS); 5],
        later_launches: vec![Nanos(later * MS); 5],
        memory_launches: vec![Nanos(MS); 5],
        concurrent_launches: concurrent.iter().map(|time| Nanos(time * MS)).collect(),
        ..Default::default()
    }
}
