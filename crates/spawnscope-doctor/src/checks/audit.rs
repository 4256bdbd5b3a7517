//! Loaded audit rules on all system calls, which slow down every launch. Rules on some calls are
//! not reported, since their cost cannot be shown; rules in files, since they may never have been
//! loaded.

use std::io;
use std::time::{Duration, Instant};

use netlink_packet_audit::AuditMessage;
use netlink_packet_audit::rules::{RuleAction, RuleField, RuleFlags, RuleMessage};
use netlink_packet_core::{NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload};
use netlink_sys::protocols::NETLINK_AUDIT;
use netlink_sys::{Socket, SocketAddr};

use crate::{Examination, Finding, Findings};
use spawnscope_data::event::Nanos;
use spawnscope_data::units;

/// A kernel thread answers, normally without delay.
const ANSWER_TIMEOUT: Duration = Duration::from_millis(500);
/// The buffer size for one answer. The largest answer is a rule with its paths.
const MAX_ANSWER_BYTES: usize = 16 << 10;
/// In a rule's mask of system calls, the bits from this one on stand for classes of calls. In rules
/// for all calls, the kernel clears these bits.
const FIRST_CLASS_BIT: u32 = 63 * 32;
/// `__AUDIT_ARCH_64BIT`: the `AUDIT_ARCH_*` values of 64-bit architectures have this bit.
const IS_64_BIT: u32 = 0x8000_0000;

pub(super) fn run(examination: &Examination<'_>, findings: &mut Findings) {
    let loaded = examination.machine.is_privileged().then(loaded_rules);
    let Some(Ok(rules)) = loaded else {
        return findings.add_not_examined("loaded audit rules: only root can read them, outside of containers");
    };
    let every: Vec<String> = rules.iter().filter_map(rule_on_every_call).collect();
    if let Some(first) = every.first() {
        findings.add(finding(every.len() as u64, first, examination.measured.system_call));
    }
}

/// Returns the finding for rules on all system calls; `call` is the time of a system call while
/// they are loaded. Their effect is unknown: no call is exempt, so there is no baseline for a
/// comparison.
fn finding(rules: u64, first: &str, call: Option<Nanos>) -> Finding {
    let count = units::counted(rules, "audit rule applies", "audit rules apply");
    Finding::problem(format!("{count} to every system call"))
        .evidence(format!("loaded now: {first}"))
        .evidence_if(call.map(|call| {
            format!(
                "a system call that does nothing takes {} here; the rules' share of it is unknown, since no call is exempt",
                units::time(call)
            )
        }))
        .fix(
            "restrict each rule to the system calls (`-S openat,execve`), the architecture (`-F arch=b64`) and the users \
             (`-F auid>=1000`) that it needs",
        )
        .fix("those responsible for this machine's security decide what must be recorded: show them these figures")
        .fix_cost("system calls that no rule names are no longer recorded")
}

/// Queries the rules that the kernel has loaded; returns none if auditing is disabled.
///
/// # Errors
/// If the kernel refuses the query: it answers only root, and only outside of containers.
fn loaded_rules() -> io::Result<Vec<RuleMessage>> {
    let statuses = match query(AuditMessage::GetStatus(None), true) {
        // The kernel has no audit support.
        Err(error) if error.raw_os_error() == Some(libc::EPROTONOSUPPORT) => return Ok(Vec::new()),
        statuses => statuses?,
    };
    let is_on =
        |message: &AuditMessage| matches!(message, AuditMessage::GetStatus(Some(status)) if status.enabled != 0);
    if !statuses.iter().any(is_on) {
        return Ok(Vec::new());
    }
    let messages = query(AuditMessage::ListRules(None), false)?;
    let rules = messages.into_iter().filter_map(|message| match message {
        AuditMessage::ListRules(Some(rule)) => Some(rule),
        _ => None,
    });
    Ok(rules.collect())
}

/// Sends a request, and returns all answers, or the first one if `is_single`.
fn query(request: AuditMessage, is_single: bool) -> io::Result<Vec<AuditMessage>> {
    let mut socket = Socket::new(NETLINK_AUDIT)?;
    socket.bind_auto()?;
    socket.connect(&SocketAddr::new(0, 0))?;
    socket.set_non_blocking(true)?;
    let mut header = NetlinkHeader::default();
    header.flags = NLM_F_REQUEST;
    let mut message = NetlinkMessage::new(header, NetlinkPayload::InnerMessage(request));
    message.finalize();
    let mut bytes = vec![0; message.buffer_len()];
    message.serialize(&mut bytes);
    socket.send(&bytes, 0)?;
    let until = Instant::now() + ANSWER_TIMEOUT;
    let mut answers = Vec::new();
    loop {
        let mut bytes = Vec::with_capacity(MAX_ANSWER_BYTES);
        match socket.recv(&mut bytes, 0) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock && Instant::now() < until => {
                std::thread::sleep(Duration::from_millis(1));
                continue;
            }
            received => received?,
        };
        let answer = NetlinkMessage::deserialize(&bytes).map_err(io::Error::other)?;
        match answer.payload {
            NetlinkPayload::InnerMessage(message) => answers.push(message),
            NetlinkPayload::Error(error) if error.code.is_some() => return Err(error.to_io()),
            NetlinkPayload::Done(_) => return Ok(answers),
            _ => {}
        }
        if is_single && !answers.is_empty() {
            return Ok(answers);
        }
    }
}

/// Returns a rule as options of `auditctl`, without the fields that restrict it, if it records all
/// system calls. The kernel matches every call against it.
fn rule_on_every_call(rule: &RuleMessage) -> Option<String> {
    let is_recording = rule.flags == RuleFlags::FilterExit && rule.action == RuleAction::Always;
    let watches_files = rule.fields.iter().any(|(field, _)| matches!(field, RuleField::Watch(_) | RuleField::Dir(_)));
    if !is_recording || watches_files || !(0..FIRST_CLASS_BIT).all(|call| rule.syscalls.has(call)) {
        return None;
    }
    let mut text = "-a always,exit".to_owned();
    for (field, _) in &rule.fields {
        match field {
            RuleField::Arch(architecture) if architecture & IS_64_BIT == 0 => text += " -F arch=b32",
            RuleField::Arch(_) => text += " -F arch=b64",
            RuleField::Filterkey(key) => text += &format!(" -k {key}"),
            _ => {}
        }
    }
    Some(text + " -S all")
}

#[cfg(test)]
mod tests {
    use netlink_packet_audit::rules::{RuleFieldFlags, RuleSyscalls};

    use super::*;

    const X86_64: u32 = 0xc000_003e;

    /// Returns a rule as the kernel lists it, with the key `own`.
    fn rule(fields: Vec<RuleField>, calls: RuleSyscalls) -> RuleMessage {
        let mut rule = RuleMessage::new();
        rule.flags = RuleFlags::FilterExit;
        rule.action = RuleAction::Always;
        rule.syscalls = calls;
        let fields = fields.into_iter().chain([RuleField::Filterkey("own".to_owned())]);
        rule.fields = fields.map(|field| (field, RuleFieldFlags::Equal)).collect();
        rule
    }

    /// Returns the mask of a rule for all system calls. The kernel clears the bits of classes.
    fn every_call() -> RuleSyscalls {
        let mut calls = RuleSyscalls::new_maxed();
        for class in FIRST_CLASS_BIT + 16..64 * 32 {
            calls.unset(class);
        }
        calls
    }

    #[test]
    fn rules_on_all_calls_are_recognised() {
        for (architecture, bits) in [(X86_64, 64), (0x4000_0003, 32)] {
            let every = rule_on_every_call(&rule(vec![RuleField::Arch(architecture)], every_call()));
            assert_eq!(every.unwrap(), format!("-a always,exit -F arch=b{bits} -k own -S all"));
        }
        let mut execs = RuleSyscalls::new_zeroed();
        execs.set(59).set(322);
        assert_eq!(rule_on_every_call(&rule(vec![RuleField::Arch(X86_64)], execs)), None);
    }

    #[test]
    fn watches_never_rules_and_task_rules_are_ignored() {
        assert_eq!(rule_on_every_call(&rule(vec![RuleField::Watch("/etc/shadow".to_owned())], every_call())), None);
        let mut never = rule(Vec::new(), every_call());
        never.action = RuleAction::Never;
        assert_eq!(rule_on_every_call(&never), None);
        let mut tasks = rule(Vec::new(), every_call());
        tasks.flags = RuleFlags::FilterTask;
        assert_eq!(rule_on_every_call(&tasks), None);
    }

    #[test]
    fn the_effect_of_rules_is_unknown() {
        let found = finding(2, "-a always,exit -S all", Some(Nanos(100)));
        assert!(found.title.contains("2 audit rules apply to every system call"), "{found:?}");
        assert!(found.effect.is_none() && found.evidence.join(" ").contains("takes 100 ns here"), "{found:?}");
    }
}
