//! Audit rules that every launch pays for: on execve, and on all system calls.

use super::{Check, Run};
use crate::doctor::audit::{self, Rule};
use crate::doctor::{Examination, Finding, Findings, Machine};
use crate::event::Nanos;
use crate::units;

pub(super) const CHECK: Check = Check {
    id: "audit",
    looks_at: "audit rules on execve and on all system calls",
    run: Run::Looking(run),
};

/// Where rules are kept, besides the files of rules.d.
const RULES: &str = "/etc/audit/audit.rules";
const FRAGMENTS: &str = "/etc/audit/rules.d";

/// Where rules were found.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Source {
    Kernel,
    /// They may never have been loaded.
    Files,
}

impl Source {
    /// What the title of a finding ends with.
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
                "in /etc/audit: {}; only root outside of containers can see whether it is loaded: `auditctl -l`",
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
            findings.unseen("audit rules in force: only root sees them, outside of containers");
            (Source::Files, audit::kept(&kept(machine)))
        }
    };
    let call = examination.measured.system_call.filter(|_| source == Source::Kernel);
    for finding in told(source, &rules, call) {
        findings.add(finding);
    }
}

/// With what a system call takes while these rules are in force.
fn told(source: Source, rules: &[Rule], call: Option<Nanos>) -> Vec<Finding> {
    let mut told = Vec::new();
    let of = |is_meant: fn(&Rule) -> bool| rules.iter().filter(|rule| is_meant(rule)).collect::<Vec<_>>();
    let every = of(|rule| rule.is_on_every_call);
    let execs = of(|rule| rule.is_on_execs);
    if let Some(first) = every.first() {
        told.push(of_every_call(source, every.len() as u64, call, first));
    } else if let (Some(first), true) = (rules.first(), execs.is_empty()) {
        told.push(of_some_calls(source, rules.len() as u64, call, first));
    }
    if let Some(first) = execs.first() {
        told.push(of_execs(source, execs.len() as u64, first));
    }
    told
}

/// No system call is exempt from such rules, so that there is nothing to compare with, and no effect to tell.
fn of_every_call(source: Source, rules: u64, call: Option<Nanos>, first: &Rule) -> Finding {
    let count = units::counted(rules, "audit rule is", "audit rules are");
    let title = format!("{count} about every system call{}", source.once());
    Finding::problem_if(source == Source::Kernel, title)
        .evidence(source.says(first))
        .evidence_if(call.map(call_takes))
        .fix("let rules name the system calls they are about (`-S openat,execve`), the arch, and the users (`-F auid>=1000`)")
        .fix("what has to be recorded is for the owner of this machine's security to decide: show them these figures")
        .fix_cost("what no rule names any more is not recorded")
}

fn of_some_calls(source: Source, rules: u64, call: Option<Nanos>, first: &Rule) -> Finding {
    let count = units::counted(rules, "audit rule is", "audit rules are");
    Finding::note(format!(
        "{count} about system calls: each call of each program is compared with them{}",
        source.once()
    ))
    .evidence(source.says(first))
    .evidence_if(call.map(call_takes))
    .fix("one rule that names several system calls costs less than several rules")
    .fix_cost("an edit of the rules")
}

fn call_takes(call: Nanos) -> String {
    format!(
        "a system call that does nothing takes {} here; the share of the rules is unknown, since each call is compared with them",
        units::time(call)
    )
}

fn of_execs(source: Source, rules: u64, first: &Rule) -> Finding {
    let count = units::counted(rules, "audit rule records", "audit rules record");
    Finding::note(format!("{count} each exec{}", source.once()))
        .evidence(source.says(first))
        .evidence("each exec then makes several records, which the daemon writes")
        .fix("watch whether records are lost or programs wait for them: `auditctl -s` (lost, backlog_wait_time_actual)")
        .fix_cost("nothing to look")
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
    use crate::doctor::Severity;

    /// What the kernel has loaded cannot be made up in files.
    #[test]
    fn only_rules_in_force_are_a_problem_and_none_has_an_effect_without_a_baseline() {
        let every = audit::kept("-a always,exit -F arch=b64 -S all\n");
        let all = |source| told(source, &every, Some(Nanos(100)));
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
