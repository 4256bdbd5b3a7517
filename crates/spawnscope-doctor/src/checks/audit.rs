//! Audit rules that slow down every launch: rules on execve, and rules on all system calls.

use super::{Check, Run};
use crate::audit::{self, Rule};
use crate::{Examination, Finding, Findings, Machine};
use spawnscope_data::event::Nanos;
use spawnscope_data::units;

pub(super) const CHECK: Check =
    Check { id: "audit", examines: "audit rules on execve and on all system calls", run: Run::Reading(run) };

/// The rules that are loaded at boot. augenrules generates this file from those in rules.d.
const COMPILED_RULES: &str = "/etc/audit/audit.rules";
const FRAGMENT_DIRECTORY: &str = "/etc/audit/rules.d";

/// Where rules were found.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Source {
    Kernel,
    /// The files in /etc/audit, whose rules may never have been loaded.
    Files,
}

impl Source {
    /// Returns the end of a finding's title.
    fn title_suffix(self) -> &'static str {
        match self {
            Source::Kernel => "",
            Source::Files => ", once loaded",
        }
    }

    fn evidence(self, rule: &Rule) -> String {
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
    let loaded = machine.is_privileged().then(audit::loaded_rules).and_then(Result::ok);
    let (source, rules) = match loaded {
        Some(rules) => (Source::Kernel, rules),
        None => {
            findings.add_not_examined("loaded audit rules: only root can read them, outside of containers");
            (Source::Files, audit::parse_rules(&stored_rules(machine)))
        }
    };
    let call = examination.measured.system_call.filter(|_| source == Source::Kernel);
    for finding in rule_findings(source, &rules, call) {
        findings.add(finding);
    }
}

/// Returns the findings about the rules. `call` is the time of a system call while they are loaded.
fn rule_findings(source: Source, rules: &[Rule], call: Option<Nanos>) -> Vec<Finding> {
    let mut found = Vec::new();
    let every: Vec<&Rule> = rules.iter().filter(|rule| rule.is_on_every_call).collect();
    let execs: Vec<&Rule> = rules.iter().filter(|rule| rule.is_on_execs).collect();
    if let Some(first) = every.first() {
        found.push(every_call_finding(source, every.len() as u64, call, first));
    } else if let (Some(first), true) = (rules.first(), execs.is_empty()) {
        found.push(some_calls_finding(source, rules.len() as u64, call, first));
    }
    if let Some(first) = execs.first() {
        found.push(exec_finding(source, execs.len() as u64, first));
    }
    found
}

/// Returns the finding for rules on all system calls. Their effect is unknown: no call is exempt, so there is no baseline for a comparison.
fn every_call_finding(source: Source, rules: u64, call: Option<Nanos>, first: &Rule) -> Finding {
    let count = units::counted(rules, "audit rule applies", "audit rules apply");
    let title = format!("{count} to every system call{}", source.title_suffix());
    Finding::problem_if(source == Source::Kernel, title)
        .evidence(source.evidence(first))
        .evidence_if(call.map(call_time))
        .fix(
            "restrict each rule to the system calls (`-S openat,execve`), the architecture (`-F arch=b64`) and the users \
             (`-F auid>=1000`) that it needs",
        )
        .fix("those responsible for this machine's security decide what must be recorded: show them these figures")
        .fix_cost("system calls that no rule names are no longer recorded")
}

fn some_calls_finding(source: Source, rules: u64, call: Option<Nanos>, first: &Rule) -> Finding {
    let count = units::counted(rules, "audit rule applies", "audit rules apply");
    Finding::note(format!(
        "{count} to system calls: the kernel matches every call against the list{}",
        source.title_suffix()
    ))
    .evidence(source.evidence(first))
    .evidence_if(call.map(call_time))
    .fix("combine rules: one rule for several system calls costs less than several rules")
    .fix_cost("an edit of the rules")
}

fn call_time(call: Nanos) -> String {
    format!(
        "a system call that does nothing takes {} here; the rules' share of it is unknown, since no call is exempt",
        units::time(call)
    )
}

fn exec_finding(source: Source, rules: u64, first: &Rule) -> Finding {
    let count = units::counted(rules, "audit rule records", "audit rules record");
    Finding::note(format!("{count} each exec{}", source.title_suffix()))
        .evidence(source.evidence(first))
        .evidence("each exec produces several records, which the audit daemon writes")
        .fix("check whether records are lost or programs wait for the daemon: `auditctl -s` (lost, backlog_wait_time_actual)")
        .fix_cost("nothing: the command only reads")
}

fn stored_rules(machine: &Machine) -> String {
    let fragments = machine.names(FRAGMENT_DIRECTORY).into_iter().filter(|name| name.ends_with(".rules"));
    machine.text(COMPILED_RULES).unwrap_or_else(|| {
        let texts = fragments.filter_map(|name| machine.text(format!("{FRAGMENT_DIRECTORY}/{name}")));
        texts.collect::<Vec<_>>().join("\n")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Severity;

    /// Calls `rule_findings` directly, because a test directory cannot fake loaded rules.
    #[test]
    fn only_loaded_rules_are_a_problem_and_their_effect_is_unknown() {
        let every = audit::parse_rules("-a always,exit -F arch=b64 -S all\n");
        let loaded = rule_findings(Source::Kernel, &every, Some(Nanos(100)));
        let stored = rule_findings(Source::Files, &every, Some(Nanos(100)));
        assert_eq!(loaded[0].severity, Severity::Problem);
        assert_eq!(stored[0].severity, Severity::Note);
        for finding in loaded.iter().chain(&stored) {
            assert_eq!(finding.effect, None);
            assert!(finding.title.contains("every system call"), "{finding:?}");
        }
        assert!(loaded[0].evidence.join(" ").contains("takes 100 ns here"), "{loaded:?}");
        assert!(stored[0].title.contains("once loaded"), "{stored:?}");
    }
}
