//! Linux security modules that check each exec.

use super::{Check, Run};
use crate::{Examination, Finding, Findings};

pub(super) const CHECK: Check =
    Check { id: "security-modules", examines: "Linux security modules, and the IMA policy", run: Run::Reading(run) };

const MODULES: &str = "/sys/kernel/security/lsm";
/// Modules that check execs, and how they do so.
const EXEC_CHECKS: [(&str, &str); 7] = [
    ("selinux", "SELinux computes the new process's domain"),
    ("apparmor", "AppArmor looks up the profile of the file's path"),
    ("smack", "Smack compares labels"),
    ("tomoyo", "TOMOYO matches the path against its policy"),
    ("bpf", "attached BPF programs check it"),
    ("ima", "IMA may compute a checksum of each file before its first exec"),
    ("ipe", "IPE checks the file's origin"),
];

fn run(examination: &Examination<'_>, findings: &mut Findings) {
    let machine = examination.machine;
    let modules = machine.text(MODULES).unwrap_or_default();
    if modules.is_empty() {
        findings.add_not_examined(format!("{MODULES}: securityfs is not mounted"));
    }
    let active: Vec<&str> = modules.split(',').collect();
    let checking: Vec<_> = EXEC_CHECKS.iter().filter(|(name, _)| active.contains(name)).collect();
    let policy = machine.text("/sys/kernel/security/ima/policy").unwrap_or_default();
    let exec_rule = policy.lines().find(|rule| is_on_execs(rule));
    if let Some(rule) = exec_rule {
        let finding = Finding::problem("IMA reads each whole file before its first exec")
            .evidence(format!("its policy: {rule}"))
            .evidence("a checksum is computed when a file is new or changed; for large programs that is slow")
            .fix("the owner of the policy can exclude file systems of build outputs (`fsmagic=`, `fowner=`)")
            .fix_cost("excluded files are neither measured nor appraised");
        findings.add(finding);
    }
    if checking.is_empty() {
        return;
    }
    let names: Vec<&str> = checking.iter().map(|(name, _)| *name).collect();
    let mut finding = Finding::note(format!("security modules check each exec: {}", names.join(", ")));
    for (_, what) in checking {
        finding = finding.evidence(*what);
    }
    findings.add(
        finding
            .fix("leave them on: their cost is included in the launch times above, usually a few microseconds")
            .fix_cost("nothing"),
    );
}

/// Returns whether an IMA rule measures or appraises files that are executed.
fn is_on_execs(rule: &str) -> bool {
    let is_active = rule.starts_with("measure ") || rule.starts_with("appraise ");
    is_active && rule.split(' ').any(|word| matches!(word, "func=BPRM_CHECK" | "func=FILE_MMAP" | "func=MMAP_CHECK"))
}
