//! Loaded audit rules that slow down every launch: rules on execve, and rules on all system calls. Rules in files are not examined, since
//! they may never have been loaded.

use crate::audit::{self, Rule};
use crate::{Examination, Finding, Findings};
use spawnscope_data::event::Nanos;
use spawnscope_data::units;

pub(super) fn run(examination: &Examination<'_>, findings: &mut Findings) {
    let loaded = examination.machine.is_privileged().then(audit::loaded_rules);
    let Some(Ok(rules)) = loaded else {
        return findings.add_not_examined("loaded audit rules: only root can read them, outside of containers");
    };
    for finding in rule_findings(&rules, examination.measured.system_call) {
        findings.add(finding);
    }
}

/// Returns the findings about the rules. `call` is the time of a system call while they are loaded.
fn rule_findings(rules: &[Rule], call: Option<Nanos>) -> Vec<Finding> {
    let every: Vec<&Rule> = rules.iter().filter(|rule| rule.is_on_every_call).collect();
    let execs: Vec<&Rule> = rules.iter().filter(|rule| rule.is_on_execs).collect();
    let on_calls = match (every.first(), rules.first()) {
        (Some(first), _) => Some(every_call_finding(every.len() as u64, call, first)),
        (None, Some(first)) if execs.is_empty() => Some(some_calls_finding(rules.len() as u64, call, first)),
        _ => None,
    };
    let on_execs = execs.first().map(|first| exec_finding(execs.len() as u64, first));
    on_calls.into_iter().chain(on_execs).collect()
}

fn evidence(rule: &Rule) -> String {
    format!("loaded now: {}", rule.text)
}

/// Returns the finding for rules on all system calls. Their effect is unknown: no call is exempt, so there is no baseline for a comparison.
fn every_call_finding(rules: u64, call: Option<Nanos>, first: &Rule) -> Finding {
    let count = units::counted(rules, "audit rule applies", "audit rules apply");
    Finding::problem(format!("{count} to every system call"))
        .evidence(evidence(first))
        .evidence_if(call.map(call_time))
        .fix(
            "restrict each rule to the system calls (`-S openat,execve`), the architecture (`-F arch=b64`) and the users \
             (`-F auid>=1000`) that it needs",
        )
        .fix("those responsible for this machine's security decide what must be recorded: show them these figures")
        .fix_cost("system calls that no rule names are no longer recorded")
}

fn some_calls_finding(rules: u64, call: Option<Nanos>, first: &Rule) -> Finding {
    let count = units::counted(rules, "audit rule applies", "audit rules apply");
    Finding::note(format!("{count} to system calls: the kernel matches every call against the list"))
        .evidence(evidence(first))
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

fn exec_finding(rules: u64, first: &Rule) -> Finding {
    let count = units::counted(rules, "audit rule records", "audit rules record");
    Finding::note(format!("{count} each exec"))
        .evidence(evidence(first))
        .evidence("each exec produces several records, which the audit daemon writes")
        .fix("check whether records are lost or programs wait for the daemon: `auditctl -s` (lost, backlog_wait_time_actual)")
        .fix_cost("nothing: the command only reads")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Severity;

    fn rule(is_on_every_call: bool, is_on_execs: bool) -> Rule {
        Rule { text: "-a always,exit".to_owned(), is_on_every_call, is_on_execs }
    }

    /// Calls `rule_findings` directly, because a test directory cannot fake loaded rules.
    #[test]
    fn rules_on_every_call_are_a_problem_and_others_are_notes() {
        let every = rule_findings(&[rule(true, false), rule(false, true)], Some(Nanos(100)));
        assert_eq!(every[0].severity, Severity::Problem);
        assert!(every[0].title.contains("1 audit rule applies to every system call"), "{every:?}");
        assert!(every[0].evidence.join(" ").contains("takes 100 ns here"), "{every:?}");
        assert_eq!(every[1].title, "1 audit rule records each exec");
        let some = rule_findings(&[rule(false, false), rule(false, false)], None);
        assert_eq!(some.len(), 1);
        assert!(some[0].severity == Severity::Note && some[0].title.contains("2 audit rules"), "{some:?}");
        assert!(every.iter().chain(&some).all(|finding| finding.effect.is_none()));
        assert!(rule_findings(&[], None).is_empty());
    }
}
