//! Conditions of a whole machine. The tests set them up by mounts that only their own processes see, in temporary control groups and user
//! namespaces, or by starting processes.

use std::path::Path;

use crate::examination::{Examination, examine, examine_after};
use crate::support::attempts::{best_of_three, ok_if};
use crate::support::needs::control_groups;
use crate::support::workloads::word;
use crate::support::{apply, live_test};

#[apply(live_test)]
#[needs(Binfmt)]
fn registered_interpreters_are_notes_and_missing_ones_are_problems() {
    // No processor has this machine number.
    examine_with_format("\\xfe", "/bin/true").expect("note", &["for 1 other architecture", "qemu-test"]);
    let missing = examine_with_format("\\xfe", "/gone/emulator");
    missing.expect("problem", &["qemu-test does not exist", "/gone/emulator"]);
    assert_eq!(missing.findings().len(), 1, "nothing is emulated: {:?}", missing.findings());
}

fn examine_with_format(machine: &str, interpreter: &str) -> Examination {
    let script = format!(
        "set -e; mount -t binfmt_misc none /proc/sys/fs/binfmt_misc; \
         printf '%s' ':qemu-test:M::\\x7fELF\\x02\\x01\\x01\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x02\\x00{machine}\\x00:\
         \\xff\\xff\\xff\\xff\\xff\\xff\\xff\\x00\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\xfe\\xff\\xff\\xff:{interpreter}:' \
         >/proc/sys/fs/binfmt_misc/register; exec \"$@\""
    );
    let words = "unshare --user --map-root-user --mount sh -c".split(' ');
    examine(words.chain([&script, "sh"]), "binfmt")
}

/// Audit rules would affect the whole machine, so the test adds none.
#[apply(live_test)]
#[needs(PidNs)]
fn audit_rules_can_be_read_only_outside_of_containers() {
    let words = ["unshare", "--pid", "--fork", "--mount-proc"];
    let inside = examine(words, "audit");
    assert!(inside.unseen().contains("only root"), "{}", inside.unseen());
    assert_eq!(examine([""; 0], "audit").unseen(), "[]");
}

#[apply(live_test)]
#[needs(MountNs)]
fn gvisor_and_wsl_are_recognised_and_no_advice_requires_root_of_the_host() {
    let gvisor = pretended_kernel("Linux version 4.19.0-gvisor #1 SMP Sun Jan 10 15:06:54 PST 2016", "4.19.0-gvisor");
    examine_after(&gvisor, "environment").expect("problem", &["gVisor"]);
    let first = pretended_kernel("Linux version 4.4.0-19041-Microsoft", "4.4.0-19041-Microsoft");
    examine_after(&first, "environment").expect("problem", &["WSL 1", "--set-version"]);
    let second =
        pretended_kernel("Linux version 5.15.153.1-microsoft-standard-WSL2", "5.15.153.1-microsoft-standard-WSL2");
    examine_after(&second, "environment").expect("note", &["WSL 2", "/mnt/c"]);
    let found = examine_after(&gvisor, "cgroups");
    assert!(
        !found.findings().iter().any(|finding| finding["fix"].to_string().contains("as root")),
        "{:?}",
        found.findings()
    );
}

fn pretended_kernel(version: &str, release: &str) -> String {
    format!(
        "echo '{version}' >\"$1/version\"; mount --bind \"$1/version\" /proc/version; \
         echo '{release}' >\"$1/release\"; mount --bind \"$1/release\" /proc/sys/kernel/osrelease"
    )
}

#[apply(live_test)]
#[needs(MountNs)]
fn security_modules_are_noted() {
    examine_with_modules("capability,landlock,selinux").expect("note", &["SELinux", "leave them on"]);
    examine_with_modules("capability,landlock,yama").expect_silence();
}

fn examine_with_modules(names: &str) -> Examination {
    let mount = format!("mount -t tmpfs none /sys/kernel/security; echo {names} >/sys/kernel/security/lsm");
    examine_after(&mount, "security-modules")
}

/// Repeats an examination that could not measure the cost of a fork: on a busy machine, the doctor may have no time for it.
fn examine_with_fork_cost(examine: impl Fn() -> Examination) -> Examination {
    best_of_three(|| {
        let examination = examine();
        let is_measured = !examination.unseen().contains("could not be measured");
        ok_if(is_measured, || examination.unseen())?;
        Ok(examination)
    })
}

#[apply(live_test)]
#[needs(MountNs, PidNs, Cc)]
fn a_large_parent_is_reported_with_the_cost_of_a_fork_and_whether_memory_allows_it() {
    let nothing = "\"$@\"; exit $?";
    let found = examine_with_fork_cost(|| check_with_parent("1200", nothing, "large-parents"));
    // The finding is only a note, because large_parent launches by vfork.
    let finding = found.expect("note", &["large_parent (process", "1 child now", "posix_spawn"]);
    assert!(finding["effect_ns"].as_u64() >= Some(10_000_000), "{finding:#}");
    examine_with_fork_cost(|| check_with_parent("1", nothing, "large-parents")).expect_silence();
    // The script pretends that the machine does not overcommit memory.
    let strict = "set -e; t=$(mktemp -d); echo 2 >$t/mode; mount --bind $t/mode /proc/sys/vm/overcommit_memory; \
                  sed '/^CommitLimit/s/ *[0-9]* kB/ 800000 kB/; /^Committed_AS/s/ *[0-9]* kB/ 600000 kB/' /proc/meminfo >$t/memory; \
                  mount --bind $t/memory /proc/meminfo; \"$@\" || code=$?; rm -r $t 2>/dev/null || true; exit ${code:-0}";
    check_with_parent("400", strict, "overcommit")
        .expect("problem", &["a fork of large_parent", "can be committed", "posix_spawn"]);
    check_with_parent("1", strict, "overcommit").expect_silence();
}

fn check_with_parent(mebibytes: &str, script: &str, check: &str) -> Examination {
    let shell = [&word("large_parent"), mebibytes, "/bin/sh", "-c", script, "sh"];
    examine(["unshare", "--mount", "--pid", "--fork", "--mount-proc"].iter().chain(&shell), check)
}

#[apply(live_test)]
#[needs(Cgroup)]
fn a_control_group_near_its_process_limit_is_reported() {
    let group = control_groups("pids").join(format!("spawnscope-test-{}", std::process::id()));
    examine_filled_group(&group, "24").expect("problem", &["pids.max of the control group", "nearly reached", "of 30"]);
    examine_filled_group(&group, "2").expect_silence();
}

fn examine_filled_group(group: &Path, sleepers: &str) -> Examination {
    let script = "group=$1 sleepers=$2; shift 2; mkdir \"$group\" && echo 30 >\"$group/pids.max\" && echo $$ >\"$group/cgroup.procs\" || exit 99; \
                  for n in $(seq $sleepers); do sleep 60 & pids=\"$pids $!\"; done; \
                  \"$@\"; code=$?; kill $pids; wait; \
                  echo $$ >\"$group/../cgroup.procs\"; rmdir \"$group\"; exit $code";
    let group = group.display().to_string();
    examine(["sh", "-c", script, "sh", &group, sleepers], "process-limits")
}

/// User 54321 has no other processes.
#[apply(live_test)]
#[needs(Setpriv)]
fn a_user_near_the_limit_of_processes_is_reported() {
    examine_limited_user("16").expect("problem", &["RLIMIT_NPROC of user 54321", "of 20"]);
    examine_limited_user("2").expect_silence();
}

fn examine_limited_user(sleepers: &str) -> Examination {
    let script = "sleepers=$1; shift; for n in $(seq $sleepers); do sleep 60 & pids=\"$pids $!\"; done; \
                  ulimit -u 20; \"$@\"; code=$?; kill $pids; wait; exit $code";
    let words = "setpriv --reuid 54321 --clear-groups bash -c".split(' ');
    examine(words.chain([script, "bash", sleepers]), "process-limits")
}
