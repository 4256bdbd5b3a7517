//! The doctor: looks for causes of slow launches on this machine. It first takes all measurements,
//! with nothing else running (`measure`). Each check (`checks`, one file each) then examines the
//! machine, the measurements, and the environment of the process (`environment`). Nothing here
//! prints or changes anything: applying a fix is the user's decision.

pub mod checks;
pub mod environment;
pub mod findings;
mod loader;
pub mod machine;
pub mod measure;
mod programs;

use std::cmp::Reverse;

use nix::unistd::SysconfVar;

pub use self::checks::Check;
use self::checks::Run;
use self::environment::Environment;
pub use self::findings::{Basis, Effect, Finding, Findings, NotExamined, Severity};
pub use self::machine::Machine;
use self::machine::{Process, processes};
use self::measure::LaunchCost;
pub use self::measure::Measured;
use self::programs::Programs;

pub struct Examination<'a> {
    /// The machine, or a directory that mimics one in tests.
    pub machine: &'a Machine,
    pub measured: &'a Measured,
    pub environment: Environment,
    processes: Vec<Process>,
}

#[derive(Debug)]
pub struct Diagnosis {
    pub launch: LaunchCost,
    /// The load average during the examination; unknown without /proc.
    pub load: Option<Load>,
    /// Problems come before notes; each group starts with the longest effect.
    pub findings: Vec<Finding>,
    pub not_examined: Vec<NotExamined>,
    /// What surrounds the examined process, such as a container; `None` on bare metal.
    pub environment: Option<String>,
    pub is_complete: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Load {
    /// The average number of runnable or uninterruptible threads over the last minute.
    pub average: f64,
    /// The number of CPUs of the whole machine, because the load average covers the whole machine.
    /// A container may be allowed fewer.
    pub cpus: u64,
}

impl Load {
    fn read(machine: &Machine) -> Option<Load> {
        let text = machine.text("/proc/loadavg")?;
        let average = text.split(' ').next()?.parse().ok()?;
        let cpus = nix::unistd::sysconf(SysconfVar::_NPROCESSORS_ONLN).ok()??;
        let cpus = u64::try_from(cpus).ok()?;
        Some(Load { average, cpus })
    }

    pub fn is_busy(&self) -> bool {
        self.average > self.cpus as f64
    }
}

impl Diagnosis {
    pub fn has_problems(&self) -> bool {
        self.findings.iter().any(|finding| finding.severity == Severity::Problem)
    }
}

/// Runs the checks one after the other, because some of them start programs and time them.
pub fn examine(machine: &Machine, measured: &Measured, checks: &[&Check]) -> Diagnosis {
    let machine = &machine.clone().without_directories(measured.unresponsive.iter().chain(&measured.untried));
    let examination =
        Examination { machine, measured, environment: Environment::detect(machine), processes: processes(machine) };
    let mut diagnosis = Diagnosis {
        launch: measured.launch,
        load: Load::read(machine),
        findings: Vec::new(),
        not_examined: Vec::new(),
        environment: examination.environment.description(),
        is_complete: checks.len() == checks::ALL.len(),
    };
    let end = Programs::deadline(measured.took);
    for (number, check) in checks.iter().enumerate() {
        let mut findings = Findings::for_check(check);
        match check.run {
            Run::Reading(run) => run(&examination, &mut findings),
            Run::StartingPrograms(run) => {
                let remaining =
                    checks[number..].iter().filter(|check| matches!(check.run, Run::StartingPrograms(_))).count();
                run(&examination, &Programs::for_check(end, remaining as u32), &mut findings);
            }
        }
        diagnosis.findings.extend(findings.found);
        diagnosis.not_examined.extend(findings.not_examined);
    }
    diagnosis.findings.sort_by_key(|finding| (finding.severity, Reverse(finding.effect.map(|effect| effect.span))));
    diagnosis
}
