//! Queries the audit rules that the kernel has loaded, and finds those that slow down every launch.

use std::io;
use std::time::{Duration, Instant};

use netlink_packet_audit::AuditMessage;
use netlink_packet_audit::rules::{RuleAction, RuleField, RuleFlags, RuleMessage, RuleSyscalls};
use netlink_packet_core::{NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload};
use netlink_sys::protocols::NETLINK_AUDIT;
use netlink_sys::{Socket, SocketAddr};

/// A kernel thread answers, normally without delay.
const ANSWER_TIMEOUT: Duration = Duration::from_millis(500);
/// The buffer size for one answer. The largest answer is a rule with its paths.
const MAX_ANSWER_BYTES: usize = 16 << 10;
/// In a rule's mask of system calls, the bits from this one on stand for classes of calls. In rules for all calls, the kernel clears these
/// bits.
const FIRST_CLASS_BIT: u32 = 63 * 32;
/// For each `AUDIT_ARCH_*` value, the numbers of `execve` and `execveat`.
const EXECS: [(u32, [u32; 2]); 3] = [(0xc000_003e, [59, 322]), (0x4000_0003, [11, 358]), (0xc000_00b7, [221, 281])];
/// `__AUDIT_ARCH_64BIT`: the `AUDIT_ARCH_*` values of 64-bit architectures have this bit.
const IS_64_BIT: u32 = 0x8000_0000;
/// At most this many system calls of a rule are listed.
const MAX_LISTED_CALLS: usize = 6;

/// A rule of the exit list that records system calls. The kernel matches system calls against it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Rule {
    /// The rule in the syntax of `auditctl`, with numbers of system calls instead of names.
    pub(super) text: String,
    pub(super) is_on_every_call: bool,
    pub(super) is_on_execs: bool,
}

/// Queries the rules that the kernel has loaded; returns none if auditing is disabled.
///
/// # Errors
/// If the kernel refuses the query: it answers only root, and only outside of containers.
pub(super) fn loaded_rules() -> io::Result<Vec<Rule>> {
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
        AuditMessage::ListRules(Some(rule)) => from_message(&rule),
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

fn from_message(rule: &RuleMessage) -> Option<Rule> {
    let is_recording = rule.flags == RuleFlags::FilterExit && rule.action == RuleAction::Always;
    let watches_files = rule.fields.iter().any(|(field, _)| matches!(field, RuleField::Watch(_) | RuleField::Dir(_)));
    if !is_recording || watches_files {
        return None;
    }
    let architecture = rule.fields.iter().find_map(|(field, _)| match field {
        RuleField::Arch(architecture) => Some(*architecture),
        _ => None,
    });
    let is_on_every_call = (0..FIRST_CLASS_BIT).all(|call| rule.syscalls.has(call));
    let mut execs =
        EXECS.iter().filter(|(exec_architecture, _)| architecture.is_none_or(|own| own == *exec_architecture));
    Some(Rule {
        text: auditctl_options(rule, architecture, is_on_every_call),
        is_on_every_call,
        is_on_execs: !is_on_every_call && execs.any(|(_, calls)| calls.iter().any(|call| rule.syscalls.has(*call))),
    })
}

/// Returns a rule as options of `auditctl`, without the fields that restrict it.
fn auditctl_options(rule: &RuleMessage, architecture: Option<u32>, is_on_every_call: bool) -> String {
    let mut text = "-a always,exit".to_owned();
    if let Some(architecture) = architecture {
        let bits = if architecture & IS_64_BIT == 0 { 32 } else { 64 };
        text += &format!(" -F arch=b{bits}");
    }
    text += " -S ";
    text += &if is_on_every_call { "all".to_owned() } else { numbers(&rule.syscalls) };
    for (field, _) in &rule.fields {
        if let RuleField::Filterkey(key) = field {
            text += &format!(" -k {key}");
        }
    }
    text
}

fn numbers(calls: &RuleSyscalls) -> String {
    let calls: Vec<String> = calls.into_iter().map(|call| call.to_string()).collect();
    let more = if calls.len() > MAX_LISTED_CALLS { ",..." } else { "" };
    calls[..calls.len().min(MAX_LISTED_CALLS)].join(",") + more
}

#[cfg(test)]
mod tests {
    use netlink_packet_audit::rules::RuleFieldFlags;

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
    fn rules_on_all_calls_differ_from_rules_on_execs() {
        let every = from_message(&rule(vec![RuleField::Arch(X86_64)], every_call())).unwrap();
        assert_eq!(every.text, "-a always,exit -F arch=b64 -S all -k own");
        assert!(every.is_on_every_call && !every.is_on_execs);
        let mut execs = RuleSyscalls::new_zeroed();
        execs.set(59).set(322);
        let execs = from_message(&rule(vec![RuleField::Arch(X86_64)], execs)).unwrap();
        assert_eq!(execs.text, "-a always,exit -F arch=b64 -S 59,322 -k own");
        assert!(execs.is_on_execs && !execs.is_on_every_call);
        // On i386, 59 is olduname, not execve.
        let mut other = RuleSyscalls::new_zeroed();
        other.set(59);
        let other = from_message(&rule(vec![RuleField::Arch(0x4000_0003)], other)).unwrap();
        assert!(!other.is_on_execs && other.text.contains("b32"), "{other:?}");
    }

    #[test]
    fn watches_never_rules_and_task_rules_are_ignored() {
        assert_eq!(from_message(&rule(vec![RuleField::Watch("/etc/shadow".to_owned())], every_call())), None);
        let mut never = rule(Vec::new(), every_call());
        never.action = RuleAction::Never;
        assert_eq!(from_message(&never), None);
        let mut tasks = rule(Vec::new(), RuleSyscalls::new_zeroed());
        tasks.flags = RuleFlags::FilterTask;
        assert_eq!(from_message(&tasks), None);
    }
}
