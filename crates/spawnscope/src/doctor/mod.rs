//! The doctor: what of this machine makes launches dear. First everything that has to be measured is measured, alone
//! (`measure`); then each check (`checks`, one file each) looks at the machine, at these figures, and at where it runs (`environment`).
//! Nothing here prints, and nothing is changed: what to do is the user's decision.

mod audit;
pub mod checks;
mod child;
pub mod environment;
pub mod findings;
pub mod machine;
pub mod measure;
mod mounts;
mod nesting;
mod processes;
mod programs;
mod reading;

use std::cmp::Reverse;

use nix::unistd::SysconfVar;

pub use self::checks::Check;
use self::checks::Run;
use self::environment::Environment;
pub use self::findings::{Basis, Effect, Finding, Findings, Severity, Unseen};
pub use self::machine::Machine;
use self::measure::LaunchCost;
pub use self::measure::Measured;
use self::nesting::Nesting;
use self::processes::Process;
use self::programs::Programs;

/// What checks look at.
pub struct Examination<'a> {
    /// The machine, or a folder made up to look like one.
    pub machine: &'a Machine,
    /// What was measured on it.
    pub measured: &'a Measured,
    /// What it runs in: a container, a virtual machine.
    pub environment: Environment,
    /// The processes that can be seen.
    processes: Vec<Process>,
}

impl Examination<'_> {
    /// Whether one hypervisor runs inside another, and what shows it; `None` where there is none.
    fn nesting(&self) -> Option<(Nesting, String)> {
        nesting::of(self.machine, &self.environment, self.measured)
    }
}

/// What came of the checks.
#[derive(Debug)]
pub struct Diagnosis {
    /// What a launch costs on this machine.
    pub launch: LaunchCost,
    /// How busy the machine was; unknown without /proc.
    pub load: Option<Load>,
    /// Problems first, those of the longest effect before others.
    pub findings: Vec<Finding>,
    /// What could not be looked at.
    pub unseen: Vec<Unseen>,
    /// Whether all checks were asked for.
    pub is_whole: bool,
}

/// How many processes wanted to run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Load {
    /// The average of the last minute.
    pub average: f64,
    /// Processors that the kernel, whose average it is, runs them on: in a container more than this process may use.
    pub cpus: u64,
}

impl Load {
    fn of(machine: &Machine) -> Option<Load> {
        let text = machine.text("/proc/loadavg")?;
        let average = text.split(' ').next()?.parse().ok()?;
        let cpus = nix::unistd::sysconf(SysconfVar::_NPROCESSORS_ONLN).ok()??;
        let cpus = u64::try_from(cpus).ok()?;
        Some(Load { average, cpus })
    }

    /// Whether some had to wait.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        self.average > self.cpus as f64
    }
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
    let machine = &machine
        .clone()
        .leaving_out(measured.silent.iter().chain(&measured.untried));
    let examination = Examination {
        machine,
        measured,
        environment: Environment::of(machine),
        processes: processes::all(machine),
    };
    let mut diagnosis = Diagnosis {
        launch: measured.launch,
        load: Load::of(machine),
        findings: Vec::new(),
        unseen: Vec::new(),
        is_whole: checks.len() == checks::ALL.len(),
    };
    let end = Programs::end_of_time(measured.took);
    let is_starting = |check: &&&Check| matches!(check.run, Run::Starting(_));
    for (number, check) in checks.iter().enumerate() {
        let mut findings = Findings::of(check);
        match check.run {
            Run::Looking(run) => run(&examination, &mut findings),
            Run::Starting(run) => {
                let to_come = checks[number..].iter().filter(is_starting).count();
                run(&examination, &Programs::of_check(end, to_come as u32), &mut findings);
            }
        }
        let (found, unseen) = findings.into_parts();
        diagnosis.findings.extend(found);
        diagnosis.unseen.extend(unseen);
    }
    diagnosis
        .findings
        .sort_by_key(|finding| (finding.severity, Reverse(finding.effect.map(|effect| effect.span))));
    diagnosis
}
