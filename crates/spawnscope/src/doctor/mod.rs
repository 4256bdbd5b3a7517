//! The doctor: what of this machine makes launches dear. First everything that has to be measured is measured, alone
//! (`measure`); then each check (`checks`, one file each) looks at the machine, at these figures, and at where it runs (`surroundings`).
//! Nothing here prints, and nothing is changed: what to do is the user's decision.

pub mod checks;
pub mod findings;
pub mod machine;
pub mod measure;
mod mounts;
mod processes;
mod programs;
pub mod surroundings;

use std::cmp::Reverse;

pub use self::checks::Check;
pub use self::findings::{Basis, Effect, Finding, Findings, Severity, Unseen};
pub use self::machine::Machine;
use self::measure::LaunchCost;
pub use self::measure::Measured;
use self::processes::Process;
use self::programs::Programs;
use self::surroundings::Surroundings;

/// What checks look at.
pub struct Examination<'a> {
    /// The machine, or a folder made up to look like one.
    pub machine: &'a Machine,
    /// What was measured on it.
    pub measured: &'a Measured,
    /// What it runs in: a container, a virtual machine.
    pub surroundings: Surroundings,
    /// The processes that can be seen.
    processes: Vec<Process>,
    /// Starts programs.
    programs: Programs,
}

/// What came of the checks.
#[derive(Debug)]
pub struct Diagnosis {
    /// What a launch costs on this machine.
    pub launch: LaunchCost,
    /// Problems first, the dearest of them first.
    pub findings: Vec<Finding>,
    /// What could not be looked at.
    pub unseen: Vec<Unseen>,
}

impl Diagnosis {
    /// Whether anything should be done about this machine.
    #[must_use]
    pub fn has_problems(&self) -> bool {
        self.findings
            .iter()
            .any(|finding| finding.severity == Severity::Problem)
    }
}

/// Runs these checks, one after the other, since some start programs and take their times.
#[must_use]
pub fn examine(machine: &Machine, measured: &Measured, checks: &[&Check]) -> Diagnosis {
    let examination = Examination {
        machine,
        measured,
        surroundings: Surroundings::of(machine),
        processes: processes::all(machine),
        programs: Programs::from_now(),
    };
    let mut diagnosis = Diagnosis {
        launch: measured.launch,
        findings: Vec::new(),
        unseen: Vec::new(),
    };
    for check in checks {
        let mut findings = Findings::of(check);
        (check.run)(&examination, &mut findings);
        let (found, unseen) = findings.into_parts();
        diagnosis.findings.extend(found);
        diagnosis.unseen.extend(unseen);
    }
    diagnosis
        .findings
        .sort_by_key(|finding| (finding.severity, Reverse(finding.effect.map(|effect| effect.span))));
    diagnosis
}
