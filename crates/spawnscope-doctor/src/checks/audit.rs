//! Audit rules that slow down every launch: rules on execve, and rules on all system calls.

use super::{Check, Run};
use crate::audit::{self, Rule};
use crate::{Examination, Finding, Findings, Machine};
use spawnscope_data::event::Nanos;
use spawnscope_data::units;

pub(super) const CHECK: Check = Check {
    id: "audit",
    examines: "audit rules on execve and on all system calls",
    run: Run::Reading(run),
};

/// The compiled rules. Their sources are the files in rules.d.
const RULES: &str = "/etc/audit/audit.rules";
const FRAGMENTS: &str = "/etc/audit/rules.d";

/// Where rules were found.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Source {
    Kernel,
    /// The rules may never have been loaded.
    Files,
}

impl Source {
    /// The end of a finding's title.
    fn once(self) -> &'static str {
        match self {
            Source::Kernel => "",
            Source::Files => ", once loaded",
        }
    }

    fn says(self, rule: &Rule) -> String {
        match self {
            Source::Kernel => format!("loaded now: {}", rule.text),
            Source::Files => format!(
                "in /etc/audit: {}; `auditctl -l`, as root and outside of containers, shows whether it is loaded",
                rule.text
            ),
        }
    }
}

fn run(examination: &Examination<'_>, findings: &mut Findings) {
    let machine = examination.machine;
    let loaded = machine.is_privileged().then(audit::loaded).and_then(Result::ok);
    let (source, rules) = match loaded {
        Some(rules) => (Source::Kernel, rules),
        None => {
            findings.not_examined("loaded audit rules: only root can read them, outside of containers");
            (Source::Files, audit::parse_rules(&kept(machine)))
        }
    };
    let call = examination.measured.system_call.filter(|_| source == Source::Kernel);
    for finding in findings_of(source, &rules, call) {
        findings.add(finding);
    }
}

/// The findings; `call` is how long a system call takes while these rules are loaded.
fn findings_of(source: Source, rules: &[Rule], call: Option<Nanos>) -> Vec<Finding> {
    let mut found = Vec::new();
    let of = |is_meant: fn(&Rule) -> bool| rules.iter().filter(|rule| is_meant(rule)).collect::<Vec<_>>();
    let every = of(|rule| rule.is_on_every_call);
    let execs = of(|rule| rule.is_on_execs);
    if let Some(first) = every.first() {
        found.push(of_every_call(source, every.len() as u64, call, first));
    } else if let (Some(first), true) = (rules.first(), execs.is_empty()) {
        found.push(of_some_calls(source, rules.len() as u64, call, first));
    }
    if let Some(first) = execs.first() {
        found.push(of_execs(source, execs.len() as u64, first));
    }
    found
}

/// No system call is exempt from such rules. There is no baseline to compare with, and the effect is unknown.
fn of_every_call(source: Source, rules: u64, call: Option<Nanos>, first: &Rule) -> Finding {
    let count = units::counted(rules, "audit rule applies", "audit rules apply");
    let title = format!("{count} to every system call{}", source.once());
    Finding::problem_if(source == Source::Kernel, title)
        .evidence(source.says(first))
        .evidence_if(call.map(call_takes))
        .fix("restrict each rule to the system calls it needs (`-S openat,execve`), the arch, and the users (`-F auid>=1000`)")
        .fix("those responsible for this machine's security decide what must be recorded: show them these figures")
        .fix_cost("system calls that no rule names are no longer recorded")
}

fn of_some_calls(source: Source, rules: u64, call: Option<Nanos>, first: &Rule) -> Finding {
    let count = units::counted(rules, "audit rule applies", "audit rules apply");
    Finding::note(format!(
        "{count} to system calls: the kernel matches every call against the list{}",
        source.once()
    ))
    .evidence(source.says(first))
    .evidence_if(call.map(call_takes))
    .fix("combine rules: one rule for several system calls costs less than several rules")
    .fix_cost("an edit of the rules")
}

fn call_takes(call: Nanos) -> String {
    format!(
        "a system call that does nothing takes {} here; the rules' share of it is unknown, since no call is exempt",
        units::time(call)
    )
}

fn of_execs(source: Source, rules: u64, first: &Rule) -> Finding {
    let count = units::counted(rules, "audit rule records", "audit rules record");
    Finding::note(format!("{count} each exec{}", source.once()))
        .evidence(source.says(first))
        .evidence("each exec produces several records, which the audit daemon writes")
        .fix("check whether records are lost or programs wait for the daemon: `auditctl -s` (lost, backlog_wait_time_actual)")
        .fix_cost("nothing: the command only reads")
}

fn kept(machine: &Machine) -> String {
    let fragments = machine
        .names(FRAGMENTS)
        .into_iter()
        .filter(|name| name.ends_with(".rules"));
    machine.text(RULES).unwrap_or_else(|| {
        let texts = fragments.filter_map(|name| machine.text(format!("{FRAGMENTS}/{name}")));
        texts.collect::<Vec<_>>().join("\n")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Severity;

    /// Loaded rules cannot be faked in files.
    #[test]
    fn only_rules_in_force_are_a_problem_and_none_has_an_effect_without_a_baseline() {
        let every = audit::parse_rules("-a always,exit -F arch=b64 -S all\n");
        let all = |source| findings_of(source, &every, Some(Nanos(100)));
        let (loaded, kept) = (all(Source::Kernel), all(Source::Files));
        assert_eq!(loaded[0].severity, Severity::Problem);
        assert_eq!(kept[0].severity, Severity::Note);
        for finding in loaded.iter().chain(&kept) {
            assert_eq!(finding.effect, None);
            assert!(finding.title.contains("every system call"), "{finding:?}");
        }
        assert!(loaded[0].evidence.join(" ").contains("takes 100 ns here"), "{loaded:?}");
        assert!(kept[0].title.contains("once loaded"), "{kept:?}");
    }
}
