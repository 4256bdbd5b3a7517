//! Finds the reason why the kernel refused a program, in the messages of libbpf and the verifier.

use std::sync::Mutex;

use libbpf_rs::PrintLevel;

use crate::Refusal;

/// Maximum number of lines of the verifier's log that are stored.
const MAX_LOG_LINES: usize = 25;

/// Libbpf's messages during the last attempt. libbpf names the refused program only in these
/// messages.
static MESSAGES: Mutex<String> = Mutex::new(String::new());

/// Makes libbpf pass its messages to this module.
pub(super) fn listen() {
    libbpf_rs::set_print(Some((PrintLevel::Warn, store_message)));
}

#[expect(clippy::needless_pass_by_value, reason = "the signature that libbpf-rs requires")]
fn store_message(_: PrintLevel, message: String) {
    if let Ok(mut messages) = MESSAGES.lock() {
        messages.push_str(&message);
    }
}

/// Returns the messages since the last call.
pub(super) fn take_messages() -> String {
    MESSAGES.lock().map(|mut messages| std::mem::take(&mut *messages)).unwrap_or_default()
}

impl Refusal {
    /// Returns the refusal that these messages describe, if any.
    pub(super) fn from_messages(messages: &str, error: &libbpf_rs::Error) -> Option<Refusal> {
        Some(Refusal {
            program: refused_program(messages)?,
            reason: verifier_reason(messages).unwrap_or_else(|| error.to_string()),
            log: verifier_log(messages)
                .map(|lines| lines[lines.len().saturating_sub(MAX_LOG_LINES)..].to_vec())
                .unwrap_or_default(),
        })
    }

    /// Returns a refusal that a test requests.
    pub(super) fn simulated(program: &str) -> Refusal {
        Refusal { program: program.to_owned(), reason: "a test refuses it".to_owned(), log: Vec::new() }
    }
}

pub(super) fn last_message(messages: &str) -> Option<String> {
    let line = messages.lines().rev().find(|line| line.contains("libbpf:"))?;
    Some(line.to_owned())
}

/// Returns the name of the refused program. Libbpf prints: `libbpf: prog 'on_waking': failed to
/// load: -2`.
fn refused_program(messages: &str) -> Option<String> {
    let line = messages.lines().find(|line| line.contains("failed to load: -"))?;
    Some(line.split('\'').nth(1)?.to_owned())
}

fn verifier_log(messages: &str) -> Option<Vec<String>> {
    let log = messages.split("-- BEGIN PROG LOAD LOG --").nth(1)?.split("-- END PROG LOAD LOG --").next()?;
    let lines = log.lines().map(str::trim_end).filter(|line| !line.is_empty());
    Some(lines.map(str::to_owned).collect())
}

/// Returns the verifier's reason: the last line of its log, except for a line of statistics.
pub(super) fn verifier_reason(messages: &str) -> Option<String> {
    let lines = verifier_log(messages)?;
    let reason = lines.iter().rev().find(|line| !line.starts_with("processed "));
    reason.map(|line| line.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "libbpf: prog 'on_fork': BPF program load failed: -EACCES\n-- BEGIN PROG LOAD LOG --\n71: (bf) r1 = r2\n\
                       R1 pointer |= pointer prohibited\nprocessed 72 insns\n-- END PROG LOAD LOG --\n\
                       libbpf: prog 'on_fork': failed to load: -13\n";

    #[test]
    fn a_refused_program_is_found_in_what_libbpf_prints() {
        let text = "libbpf: prog 'on_waking': BPF program load failed: -ENOENT\nlibbpf: prog 'on_waking': failed to load: -2\n";
        assert_eq!(refused_program(text).as_deref(), Some("on_waking"));
        assert_eq!(refused_program("libbpf: failed to load object 'x'"), None);
    }

    #[test]
    fn a_refusal_has_the_reason_and_the_end_of_the_log() {
        let error = libbpf_rs::Error::from_raw_os_error(libc::EACCES);
        let refusal = Refusal::from_messages(LOG, &error).unwrap();
        assert_eq!(refusal.program, "on_fork");
        assert_eq!(refusal.reason, "R1 pointer |= pointer prohibited");
        assert_eq!(refusal.log.len(), 3);
    }

    #[test]
    fn without_a_log_the_kernels_error_is_the_reason() {
        let error = libbpf_rs::Error::from_raw_os_error(libc::ENOENT);
        let refusal = Refusal::from_messages("libbpf: prog 'on_waking': failed to load: -2\n", &error).unwrap();
        assert!(refusal.reason.contains("No such file"), "{}", refusal.reason);
        assert_eq!(refusal.log, Vec::<String>::new());
    }
}
