//! The doctor: checks this machine for what makes launches slow. It first takes all measurements, with nothing else running (`measure`).
//! Each check (`checks`, one file each) then reads the machine, these measurements, and the environment it runs in (`environment`). Nothing
//! here prints or changes anything: applying a fix is the user's decision.

mod audit;
pub mod checks;
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
pub use self::findings::{Basis, Effect, Finding, Findings, NotExamined, Severity};
pub use self::machine::Machine;
use self::measure::LaunchCost;
pub use self::measure::Measured;
use self::nesting::Nesting;
use self::processes::Process;
use self::programs::Programs;

/// The input of the checks.
pub struct Examination<'a> {
    /// The machine, or a directory that mimics one in tests.
    pub machine: &'a Machine,
    /// What was measured on the machine.
    pub measured: &'a Measured,
    /// The environment of this process: a container, a virtual machine.
    pub environment: Environment,
    /// The visible processes.
    processes: Vec<Process>,
}

impl Examination<'_> {
    /// Whether this hypervisor runs inside another one, and the evidence for it; `None` without a hypervisor.
    fn nesting(&self) -> Option<(Nesting, String)> {
        nesting::of(self.machine, &self.environment, self.measured)
    }
}

/// The result of an examination.
#[derive(Debug)]
pub struct Diagnosis {
    /// What a launch costs on this machine.
    pub launch: LaunchCost,
    /// How busy the machine was; unknown without /proc.
    pub load: Option<Load>,
    /// Problems before notes; within each, the longest effect first.
    pub findings: Vec<Finding>,
    /// What could not be examined.
    pub not_examined: Vec<NotExamined>,
    /// Whether all checks ran.
    pub is_whole: bool,
}

/// The load average.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Load {
    /// The average over the last minute.
    pub average: f64,
    /// The CPUs of the whole machine, which the load average covers. A container may be allowed fewer.
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

    /// Whether more threads were runnable than there are CPUs.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        self.average > self.cpus as f64
    }
}

impl Diagnosis {
    /// Whether any finding is a problem.
    #[must_use]
    pub fn has_problems(&self) -> bool {
        self.findings
            .iter()
            .any(|finding| finding.severity == Severity::Problem)
    }
}

/// Runs these checks one after the other: some start programs and time them.
#[must_use]
pub fn examine(machine: &Machine, measured: &Measured, checks: &[&Check]) -> Diagnosis {
    let machine = &machine
        .clone()
        .leaving_out(measured.unresponsive.iter().chain(&measured.untried));
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
        not_examined: Vec::new(),
        is_whole: checks.len() == checks::ALL.len(),
    };
    let end = Programs::end_of_time(measured.took);
    let is_starting = |check: &&&Check| matches!(check.run, Run::StartingPrograms(_));
    for (number, check) in checks.iter().enumerate() {
        let mut findings = Findings::of(check);
        match check.run {
            Run::Reading(run) => run(&examination, &mut findings),
            Run::StartingPrograms(run) => {
                let to_come = checks[number..].iter().filter(is_starting).count();
                run(&examination, &Programs::of_check(end, to_come as u32), &mut findings);
            }
        }
        let (found, not_examined) = findings.into_parts();
        diagnosis.findings.extend(found);
        diagnosis.not_examined.extend(not_examined);
    }
    diagnosis
        .findings
        .sort_by_key(|finding| (finding.severity, Reverse(finding.effect.map(|effect| effect.span))));
    diagnosis
}
