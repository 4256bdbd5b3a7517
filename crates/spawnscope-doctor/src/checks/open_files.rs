//! A huge limit on open files. Some programs close every possible descriptor before an exec, one by
//! one up to the limit.

use crate::{Effect, Examination, Finding, Findings};
use spawnscope_data::event::Nanos;
use spawnscope_data::units;

/// The smallest limit that is reported. Usual limits are 1,024 to 65,536.
const MIN_REPORTED_LIMIT: u64 = 100_000;
/// A loop up to the limit that takes this long is a problem.
const MIN_PROBLEM_TIME: Nanos = Nanos(10_000_000);

pub(super) fn run(examination: &Examination<'_>, findings: &mut Findings) {
    let Some(limits) = examination.machine.text("/proc/self/limits") else {
        findings.add_not_examined("/proc/self/limits");
        return;
    };
    let Some(line) = limits.lines().find_map(|line| line.strip_prefix("Max open files")) else { return };
    let soft = line.split_whitespace().next().unwrap_or_default();
    let limit = match soft {
        "unlimited" => u64::from(u32::MAX),
        number => number.parse().unwrap_or_default(),
    };
    if limit < MIN_REPORTED_LIMIT {
        return;
    }
    let close = examination.measured.system_call;
    let all = close.map(|close| Nanos(close.0.saturating_mul(limit)));
    findings.add(
        Finding::problem_if(
            all.is_none_or(|all| all >= MIN_PROBLEM_TIME),
            format!("the limit on open files is {}", units::count(limit)),
        )
        .evidence("some programs close every possible descriptor before an exec: older Python, Ruby, daemons, some libraries' `popen`")
        .evidence_if(close.map(|close| format!("one system call that does nothing takes {} here", units::time(close))))
        .effect(all.map(|all| Effect::modelled(all, "each launch by a program that closes all descriptors in a loop")))
        .fix("lower the soft limit where such programs are started, and keep the hard one:")
        .fix("  ulimit -S -n 1024")
        .fix("containers: `--ulimit nofile=1024:524288`; services: LimitNOFILE=1024:524288; or use programs that call close_range")
        .fix_cost("programs that need more than the soft limit must raise it themselves, as most servers do"),
    );
}
