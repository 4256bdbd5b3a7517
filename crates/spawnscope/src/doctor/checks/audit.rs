//! Audit rules that every launch pays for: on execve, and on all system calls.

use super::{CALLS_OF_A_LAUNCH, Check};
use crate::doctor::{Effect, Examination, Finding, Findings, Machine, Programs};
use crate::event::Nanos;
use crate::units;

pub(super) const CHECK: Check = Check {
    id: "audit",
    looks_at: "audit rules on execve and on all system calls",
    run,
};

/// Where rules are kept, besides the files of rules.d.
const RULES: &str = "/etc/audit/audit.rules";
const FRAGMENTS: &str = "/etc/audit/rules.d";

fn run(examination: &Examination<'_>, findings: &mut Findings) {
    let machine = examination.machine;
    let loaded = loaded(machine, &examination.programs);
    let source = if loaded.is_some() {
        "loaded now"
    } else {
        "in /etc/audit"
    };
    let rules = loaded.unwrap_or_else(|| kept(machine, findings));
    let of_calls: Vec<&str> = rules.lines().map(str::trim).filter(|rule| is_on_calls(rule)).collect();
    if of_calls.is_empty() {
        return;
    }
    let every: Vec<&str> = of_calls.iter().copied().filter(|rule| is_on_every_call(rule)).collect();
    let execs = of_calls.iter().filter(|rule| names_exec(rule)).count() as u64;
    let call = examination.measured.system_call;
    let call_takes = format!("a system call that does nothing takes {} here", units::time(call));
    if !every.is_empty() {
        let all = call.map(|call| Nanos(call.0 * CALLS_OF_A_LAUNCH));
        let count = units::counted(every.len() as u64, "audit rule is", "audit rules are");
        let finding = Finding::problem(format!("{count} about every system call"))
            .evidence(format!("{source}: {}", every[0]))
            .evidence(call_takes)
            .effect(all.map(|all| Effect::modelled(all, "each launch of a small program, at most")))
            .fix("let rules name the system calls they are about (`-S openat,execve`), the arch, and the users (`-F auid>=1000`)")
            .fix("what has to be recorded is for the owner of this machine's security to decide: show them these figures")
            .fix_cost("what no rule names any more is not recorded");
        findings.add(finding);
    } else if execs == 0 {
        let count = units::counted(of_calls.len() as u64, "audit rule is", "audit rules are");
        let finding = Finding::note(format!(
            "{count} about system calls: each call of each program is compared with them"
        ))
        .evidence(format!("{source}: {}", of_calls[0]))
        .evidence(call_takes)
        .fix("one rule that names several system calls costs less than several rules")
        .fix_cost("an edit of the rules");
        findings.add(finding);
    }
    if execs > 0 {
        findings.add(of_execs(execs, source));
    }
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

/// Only root may ask the kernel.
fn loaded(machine: &Machine, programs: &Programs) -> Option<String> {
    if !machine.is_privileged() {
        return None;
    }
    let listed = programs.run(machine.own_command(machine.program("auditctl")?).arg("-l"))?;
    listed.succeeded.then_some(listed.output)
}

fn kept(machine: &Machine, findings: &mut Findings) -> String {
    if !machine.exists("/etc/audit") {
        return String::new();
    }
    if let Some(rules) = machine.text(RULES) {
        return rules;
    }
    let fragments = machine
        .names(FRAGMENTS)
        .into_iter()
        .filter(|name| name.ends_with(".rules"));
    let texts: Vec<Option<String>> = fragments
        .map(|name| machine.text(format!("{FRAGMENTS}/{name}")))
        .collect();
    if texts.is_empty() || texts.contains(&None) {
        findings.unseen("the rules of auditd: only root may read them");
    }
    texts.into_iter().flatten().collect::<Vec<_>>().join("\n")
}

/// Rules of the exit list are asked at each system call; watches of files are not.
fn is_on_calls(rule: &str) -> bool {
    let mut words = rule.split_whitespace();
    matches!(words.next(), Some("-a" | "-A"))
        && words.next().is_some_and(|list| {
            let mut parts = list.split(',');
            parts.any(|part| part == "exit") && !list.split(',').any(|part| part == "never")
        })
        && !rule.contains("-F path=")
        && !rule.contains("-F dir=")
}

fn is_on_every_call(rule: &str) -> bool {
    let calls: Vec<&str> = calls(rule).collect();
    calls.is_empty() || calls.contains(&"all")
}

fn names_exec(rule: &str) -> bool {
    calls(rule).any(|call| call == "execve" || call == "execveat")
}

fn calls(rule: &str) -> impl Iterator<Item = &str> {
    let words: Vec<&str> = rule.split_whitespace().collect();
    let named = words.windows(2).filter(|pair| pair[0] == "-S").map(|pair| pair[1]);
    named.flat_map(|calls| calls.split(',')).collect::<Vec<_>>().into_iter()
}
