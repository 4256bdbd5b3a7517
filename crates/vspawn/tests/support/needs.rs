//! What a test may need from the machine, how to detect it, and whether it may be missing.
//! `CONTRIBUTING.md` explains the rules.

use std::process::Command;
use std::sync::OnceLock;

use super::{helper, kernel};

/// The environment variable that lists the needs that must be met, separated by commas. A test that
/// lacks one of them fails.
const REQUIRED_VARIABLE: &str = "SPAWNSCOPE_TEST_REQUIRE";
/// Needs of the other crates' tests, which the variable may also contain.
const OTHER_CRATES_NEEDS: [&str; 14] = [
    "ebpf", "mountns", "pty", "fanotify", "fuse", "perfetto", "python", "ptrace", "gdb", "perf", "scanners", "roots",
    "musl", "bits32",
];

/// A feature that not every machine has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Children that share memory and have a pidfd. Every test needs them; qemu-user refuses them.
    SharedMemory,
    /// Signals to a process group by a pidfd (Linux 6.9).
    PidfdGroup,
    /// The helper program, which a C compiler builds.
    Cc,
    /// User id 0 with the usual capabilities.
    Root,
    /// Pid namespaces, by `unshare`.
    PidNs,
    /// A cgroup (v2) hierarchy that can be written.
    Cgroup,
    /// `strace`.
    Strace,
    /// `setpriv`, to become an unprivileged user.
    Setpriv,
    /// The right to use the scheduling policy SCHED_FIFO, by `chrt`.
    Realtime,
}

impl Need {
    const ALL: [Need; 9] = [
        Need::SharedMemory,
        Need::PidfdGroup,
        Need::Cc,
        Need::Root,
        Need::PidNs,
        Need::Cgroup,
        Need::Strace,
        Need::Setpriv,
        Need::Realtime,
    ];

    /// Returns the name in `SPAWNSCOPE_TEST_REQUIRE`.
    pub fn name(self) -> String {
        format!("{self:?}").to_lowercase()
    }

    /// Returns the reason as an error if this machine lacks the feature.
    pub fn check(self) -> Result<(), String> {
        match self {
            Need::SharedMemory => shared_memory(),
            Need::PidfdGroup if kernel::can_signal_groups_by_pidfd() => Ok(()),
            Need::PidfdGroup => Err("the kernel cannot signal a process group by a pidfd (before 6.9)".to_owned()),
            Need::Cc if helper::path().exists() => Ok(()),
            Need::Cc => succeeds(&["cc", "--version"]),
            Need::Root => succeeds(&["chroot", "/", "true"]).map_err(|why| format!("not root ({why})")),
            Need::PidNs => succeeds(&["unshare", "--pid", "--fork", "--mount-proc", "true"]),
            Need::Cgroup => cgroup(),
            Need::Strace => succeeds(&["strace", "-f", "-o", "/dev/null", "true"]),
            Need::Setpriv => succeeds(&["setpriv", "--reuid", "65534", "--clear-groups", "true"]),
            Need::Realtime => succeeds(&["chrt", "--fifo", "1", "true"]),
        }
    }
}

/// Returns whether the need must be met. An unknown name is an error, since a typo would silently
/// require nothing.
pub fn required(need: Need) -> Result<bool, String> {
    let names = std::env::var(REQUIRED_VARIABLE).unwrap_or_default();
    let names: Vec<&str> = names.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
    let mut unknown = names.iter().filter(|name| !OTHER_CRATES_NEEDS.contains(name));
    match unknown.find(|name| Need::ALL.iter().all(|need| need.name() != **name)) {
        Some(unknown) => Err(format!("{REQUIRED_VARIABLE} names `{unknown}`, which no test needs")),
        None => Ok(names.contains(&need.name().as_str())),
    }
}

/// Mounts the hierarchy in a new mount namespace, and creates and removes a group there.
fn cgroup() -> Result<(), String> {
    let script = "mount -t cgroup2 none /mnt && d=$(mktemp -d /mnt/vspawn.XXXXXX) && rmdir $d";
    succeeds(&["unshare", "--mount", "sh", "-c", script])
}

/// Starts a child with the library, which reports a refusal and does not fall back to fork. The
/// result is cached, since every test needs it.
fn shared_memory() -> Result<(), String> {
    static RESULT: OnceLock<Result<(), String>> = OnceLock::new();
    let result = RESULT.get_or_init(|| match vspawn::Command::new("/bin/true").status() {
        Err(error) if error.stage() == vspawn::Stage::Clone => {
            let errno = std::io::Error::from_raw_os_error(error.raw_os_error());
            Err(format!("the kernel (or qemu-user) refuses children that share memory: {errno}"))
        }
        _ => Ok(()),
    });
    result.clone()
}

fn succeeds(line: &[&str]) -> Result<(), String> {
    let output = Command::new(line[0]).args(&line[1..]).output().map_err(|error| format!("{}: {error}", line[0]))?;
    if output.status.success() {
        return Ok(());
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    let reason = stderr.lines().last().unwrap_or("no reason given");
    Err(format!("{}: {} ({reason})", line[0], output.status))
}
