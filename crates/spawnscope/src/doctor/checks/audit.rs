//! Audit rules that every launch pays for: on execve, and on all system calls.

use super::{CALLS_OF_A_LAUNCH, Check, Run, SMALL_LAUNCH};
use crate::doctor::audit::{self, Rule};
use crate::doctor::{Effect, Examination, Finding, Findings, Machine};
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

fn run(examination: &Examination<'_>, findings: &mut Findings) {
    let machine = examination.machine;
    let loaded = machine.is_privileged().then(audit::loaded).and_then(Result::ok);
    let source = if loaded.is_some() {
        "loaded now"
    } else {
        "in /etc/audit"
    };
    let rules = loaded.unwrap_or_else(|| {
        findings.unseen("audit rules in force: only root sees them, outside of containers");
        audit::kept(&kept(machine))
    });
    let Some(first) = rules.first() else {
        return;
    };
    let every: Vec<&Rule> = rules.iter().filter(|rule| rule.is_on_every_call).collect();
    let execs = rules.iter().filter(|rule| rule.is_on_execs).count() as u64;
    let call = examination.measured.system_call;
    if let Some(first) = every.first() {
        findings.add(of_every_call(
            every.len() as u64,
            call,
            &format!("{source}: {}", first.text),
        ));
    } else if execs == 0 {
        findings.add(of_some_calls(
            rules.len() as u64,
            call,
            &format!("{source}: {}", first.text),
        ));
    }
    if execs > 0 {
        findings.add(of_execs(execs, source));
    }
}

fn of_every_call(rules: u64, call: Option<Nanos>, source: &str) -> Finding {
    let all = call.map(|call| Nanos(call.0 * CALLS_OF_A_LAUNCH));
    let count = units::counted(rules, "audit rule is", "audit rules are");
    Finding::problem(format!("{count} about every system call"))
        .evidence(source)
        .evidence_if(call.map(call_takes))
        .effect(all.map(|all| Effect::modelled(all, SMALL_LAUNCH)))
        .fix("let rules name the system calls they are about (`-S openat,execve`), the arch, and the users (`-F auid>=1000`)")
        .fix("what has to be recorded is for the owner of this machine's security to decide: show them these figures")
        .fix_cost("what no rule names any more is not recorded")
}

fn of_some_calls(rules: u64, call: Option<Nanos>, source: &str) -> Finding {
    let count = units::counted(rules, "audit rule is", "audit rules are");
    Finding::note(format!(
        "{count} about system calls: each call of each program is compared with them"
    ))
    .evidence(source)
    .evidence_if(call.map(call_takes))
    .fix("one rule that names several system calls costs less than several rules")
    .fix_cost("an edit of the rules")
}

fn call_takes(call: Nanos) -> String {
    format!("a system call that does nothing takes {} here", units::time(call))
}

fn of_execs(rules: u64, source: &str) -> Finding {
    let count = units::counted(rules, "audit rule records", "audit rules record");
    Finding::note(format!("{count} each exec"))
        .evidence(format!(
            "{source}; each exec makes several records, which the daemon writes"
        ))
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
