//! What live tests need of the machine: how each need is checked, and whether it may be unmet.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{LazyLock, Mutex};

use super::attempts::ok_if;
use super::{roots, workloads};

/// Names the needs that must be met, separated by commas. A test that lacks one of them fails.
const REQUIRE: &str = "SPAWNSCOPE_TEST_REQUIRE";

/// Names slow needs, separated by commas. Then only tests with one of these needs are run. Without
/// this variable, tests with slow needs are ignored.
const SLOW: &str = "SPAWNSCOPE_TEST_SLOW";

/// The variable that is set if the machine is a guest for these tests only
/// (`scripts/kernel-matrix/init`).
const DISPOSABLE: &str = "SPAWNSCOPE_TEST_DISPOSABLE";

/// The makes whose structures are known.
pub const KNOWN_MAKES: [&str; 3] = ["GNU Make 4.3", "GNU Make 4.4", "GNU Make 4.4.1"];

/// Needs of tests in other crates and in Python, which `SPAWNSCOPE_TEST_REQUIRE` may also name.
const OTHER_NEEDS: [&str; 3] = ["root", "sharedmemory", "pidfdgroup"];

const CAP_SYS_ADMIN: u32 = 21;
const CAP_PERFMON: u32 = 38;
const CAP_BPF: u32 = 39;

/// Declares the needs and how each is checked, and lists them in `Need::ALL`.
macro_rules! needs {
    ($($(#[doc = $doc:literal])* $need:ident => $check:expr,)+) => {
        /// A requirement that not every machine meets.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Need {
            $($(#[doc = $doc])* $need,)+
        }

        impl Need {
            const ALL: &[Need] = &[$(Need::$need),+];

            fn check_uncached(self) -> Result<(), String> {
                if SLOW_NEEDS.contains(&self) {
                    ok_if(is_slow_selected(self), || format!("takes long; `make test-all` sets {SLOW}"))?;
                }
                match self {
                    $(Need::$need => $check,)+
                }
            }
        }
    };
}

needs! {
    /// Kernel type information, and the privilege to attach eBPF programs.
    Ebpf => check_ebpf(),
    /// A C compiler for the workloads, or compiled workloads.
    Cc => check_compiler(),
    /// Mount namespaces, and permission to mount in them.
    MountNs => check_runs("unshare --mount mount -t tmpfs none /mnt"),
    /// Pid namespaces.
    PidNs => check_runs("unshare --pid --fork --mount-proc true"),
    /// Control groups with a memory limit.
    MemoryGroup => check_control_groups("memory", &["memory.max", "memory.limit_in_bytes"]),
    /// Pseudo-terminals, and `setsid` to make one the controlling terminal.
    Pty => check_pty(),
    /// `setpriv`, and the privilege to become an unprivileged user.
    Setpriv => check_runs("setpriv --reuid 65534 --clear-groups true"),
    /// The real-time scheduling class.
    Realtime => check_runs("chrt --fifo 1 true"),
    /// fanotify permission events.
    Fanotify => check_fanotify(),
    /// FUSE file systems.
    Fuse => check_fuse(),
    /// Python with the classes of the PyPI package `perfetto`.
    Perfetto => check_imports("perfetto.protos.perfetto.trace.perfetto_trace_pb2"),
    /// Python with the parser of the PyPI package `prometheus_client`.
    Prometheus => check_imports("prometheus_client.parser"),
    /// Python with the PyPI packages `pyarrow` and `duckdb`, which read Parquet.
    Parquet => check_imports("duckdb, pyarrow.dataset"),
    Perl => check_runs("perl -v"),
    Zsh => check_runs("zsh --version"),
    Fish => check_runs("fish --version"),
    Make => check_make(),
    Node => check_runs("/usr/bin/node --version"),
    Npm => check_runs("/usr/bin/npm --version"),
    Git => check_runs("git --version"),
    Bc => check_runs("bc --version"),
    PkgConfig => check_runs("pkg-config --version"),
    Python => check_runs("/usr/bin/python3 --version"),
    /// Permission to trace processes that are not descendants, as debuggers do.
    Ptrace => check_ptrace(),
    Gdb => check_runs("gdb --version"),
    /// `strace`, with permission to trace.
    Strace => check_runs("strace -o /dev/null true"),
    /// `perf`, with permission to record.
    Perf => check_runs("perf record -o /dev/null true"),
    /// The Yama security module, with permission to set its level.
    Yama => check_can_be_set("/proc/sys/kernel/yama/ptrace_scope"),
    /// A machine that is discarded after the tests, so that they may change it permanently.
    Disposable => std::env::var(DISPOSABLE).map(drop).map_err(|_| format!("{DISPOSABLE} is not set")),
    Ninja => check_runs("ninja --version"),
    /// A 64-bit kernel that also executes 32-bit programs.
    Bits32 => check_32_bit(),
    /// The daemons of ClamAV and fapolicyd, unpacked by `scripts/scanner-daemons.sh`.
    Scanners => check_is_complete(&scanner_daemons(), "scripts/scanner-daemons.sh"),
    /// The interpreters of Debian suites, unpacked by `scripts/interpreter-roots.sh`.
    Roots => check_is_complete(&roots::directory(), "scripts/interpreter-roots.sh"),
    /// A compiler for musl programs.
    Musl => check_runs("musl-gcc --version"),
    Go => check_runs("go version"),
    /// No other test at the same time. Every machine meets it.
    Quiet => Ok(()),
    /// Time for many launches in one recording.
    Storms => Ok(()),
    /// Time for each pair of `tests/fixes`.
    Pairs => Ok(()),
}

/// Needs of tests that take long. `make test-all` runs these tests, `.ci/run` those that a change
/// touches (`scripts/slow-checks.tsv`).
const SLOW_NEEDS: [Need; 4] = [Need::Scanners, Need::Roots, Need::Storms, Need::Pairs];

impl Need {
    /// Returns the name in `SPAWNSCOPE_TEST_REQUIRE`.
    pub fn name(self) -> String {
        format!("{self:?}").to_lowercase()
    }

    /// Checks whether this machine meets the need. The result is cached.
    pub fn check(self) -> Result<(), String> {
        static FOUND: LazyLock<Mutex<HashMap<Need, Result<(), String>>>> = LazyLock::new(Mutex::default);
        if let Some(found) = FOUND.lock().expect("no check panics").get(&self) {
            return found.clone();
        }
        // The lock is released because one need may check another.
        let found = self.check_uncached();
        FOUND.lock().expect("no check panics").insert(self, found.clone());
        found
    }
}

/// Whether the need must be met. An unknown name is an error, because a typo would silently require
/// nothing.
fn is_required(need: Need) -> Result<bool, String> {
    let Ok(names) = std::env::var(REQUIRE) else { return Ok(false) };
    let names: Vec<&str> = names.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
    match names.iter().find(|name| !is_known(name)) {
        Some(unknown) => Err(format!("{REQUIRE} names `{unknown}`, which is not a need of any test")),
        None => Ok(names.contains(&need.name().as_str())),
    }
}

fn is_known(name: &str) -> bool {
    OTHER_NEEDS.contains(&name) || Need::ALL.iter().any(|need| need.name() == name)
}

fn is_slow_selected(need: Need) -> bool {
    std::env::var(SLOW).is_ok_and(|names| names.split(',').any(|name| name == need.name()))
}

/// Whether a test with these needs is run or reported as ignored. If slow needs are named, that is
/// only the case for their tests.
pub fn is_selected(needs: &[Need]) -> bool {
    std::env::var_os(SLOW).is_none() || needs.iter().any(|need| SLOW_NEEDS.contains(need) && is_slow_selected(*need))
}

/// Returns the first unmet need with the reason, or an error if that need is required.
pub fn first_unmet(needs: &[Need]) -> Result<Option<String>, String> {
    for need in needs {
        if let Err(reason) = need.check() {
            let message = format!("needs {}: {reason}", need.name());
            return if is_required(*need)? { Err(message) } else { Ok(Some(message)) };
        }
    }
    Ok(None)
}

/// Returns the Python that has the packages of the checkers. `make test` sets the variable to the
/// Python of `scripts/python-environment.sh`.
pub fn python() -> OsString {
    std::env::var_os("SPAWNSCOPE_TEST_PYTHON").unwrap_or_else(|| "python3".into())
}

/// Returns the directory into which `scripts/scanner-daemons.sh` unpacks the daemons.
pub fn scanner_daemons() -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "../../target/scanners"].iter().collect()
}

/// Returns the hierarchy of control groups that has this controller: its own one in version 1, the
/// only one in version 2.
pub fn control_groups(controller: &str) -> PathBuf {
    let version_2 = PathBuf::from("/sys/fs/cgroup");
    let version_1 = version_2.join(controller);
    if version_1.exists() { version_1 } else { version_2 }
}

/// Checks that a control group with one of these files can be created.
fn check_control_groups(controller: &str, files: &[&str]) -> Result<(), String> {
    let group = control_groups(controller).join(format!("spawnscope-need-{}", std::process::id()));
    std::fs::create_dir(&group).map_err(|error| format!("{}: {error}", group.display()))?;
    let limits = files.iter().any(|file| group.join(file).exists());
    std::fs::remove_dir(&group).map_err(|error| format!("{}: {error}", group.display()))?;
    ok_if(limits, || format!("groups have no {}", files.join(" or ")))
}

fn check_compiler() -> Result<(), String> {
    if workloads::are_compiled() { Ok(()) } else { check_runs("cc --version") }
}

fn check_pty() -> Result<(), String> {
    nix::pty::openpty(None, None).map_err(|error| format!("openpty: {error}"))?;
    check_runs("setsid --version")
}

fn check_ebpf() -> Result<(), String> {
    if !cfg!(feature = "ebpf") {
        return Err("built without the feature `ebpf`".into());
    }
    if !PathBuf::from("/sys/kernel/btf/vmlinux").exists() {
        return Err("the kernel has no type information (/sys/kernel/btf/vmlinux)".into());
    }
    let status = std::fs::read_to_string("/proc/self/status").map_err(|error| error.to_string())?;
    let effective = status
        .lines()
        .find_map(|line| line.strip_prefix("CapEff:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .ok_or("no CapEff in /proc/self/status")?;
    let [sys_admin, bpf, perfmon] =
        [CAP_SYS_ADMIN, CAP_BPF, CAP_PERFMON].map(|capability: u32| effective & (1 << capability) != 0);
    ok_if(sys_admin || (bpf && perfmon), || "neither CAP_SYS_ADMIN, nor both CAP_BPF and CAP_PERFMON".into())
}

/// Checks the version of the make in PATH.
fn check_make() -> Result<(), String> {
    let output = Command::new("make").arg("--version").output();
    let output = output.map_err(|error| format!("make: {error}"))?;
    let printed = String::from_utf8_lossy(&output.stdout);
    let version = printed.lines().next().unwrap_or("no version");
    ok_if(KNOWN_MAKES.contains(&version), || version.to_owned())
}

/// Tries to trace a process that the tracing thread did not start.
fn check_ptrace() -> Result<(), String> {
    let mut stranger = Command::new("sleep").arg("60").spawn().map_err(|error| format!("sleep: {error}"))?;
    let pid = stranger.id();
    // SAFETY: the request touches none of our memory. The thread does nothing else, and its end
    // detaches from the process.
    let seized = std::thread::spawn(move || match unsafe { libc::ptrace(libc::PTRACE_SEIZE, pid, 0usize, 0usize) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    });
    let seized = seized.join().map_err(|_| "the tracing thread panicked")?;
    stranger.kill().and_then(|()| stranger.wait()).map_err(|error| error.to_string())?;
    seized.map_err(|error| format!("PTRACE_SEIZE: {error}"))?;
    match std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope") {
        Ok(scope) if scope.trim() != "0" && !nix::unistd::geteuid().is_root() => {
            Err("kernel.yama.ptrace_scope: only root may attach to a process that is not a descendant".into())
        }
        _ => Ok(()),
    }
}

/// Checks that a setting can be written, by writing its present value.
fn check_can_be_set(file: &str) -> Result<(), String> {
    let written = std::fs::read(file).and_then(|level| std::fs::write(file, level));
    written.map_err(|error| format!("{file}: {error}"))
}

/// Runs the workload without recording it. The workload itself reports what was refused.
fn check_fanotify() -> Result<(), String> {
    Need::MountNs.check()?;
    Need::Cc.check()?;
    let mount_point = tempfile::tempdir().map_err(|error| error.to_string())?;
    let mut command = Command::new(workloads::path("long_exec"));
    command.arg("base").arg(workloads::path("tiny"));
    check_succeeds(command.arg(mount_point.path()))
}

fn check_fuse() -> Result<(), String> {
    Need::MountNs.check()?;
    Need::Cc.check()?;
    let mount_point = tempfile::tempdir().map_err(|error| error.to_string())?;
    let mut command = Command::new(workloads::path("file_system"));
    command.arg(mount_point.path()).args(["0", "stat"]);
    check_succeeds(command.arg(mount_point.path()))
}

/// Checks that a script has filled a directory. The script then creates the file `complete`.
fn check_is_complete(directory: &Path, script: &str) -> Result<(), String> {
    ok_if(directory.join("complete").exists(), || format!("{} is not complete: run {script}", directory.display()))
}

/// Runs the workload, which can be compiled without a 32-bit C library because it uses none.
fn check_32_bit() -> Result<(), String> {
    if !cfg!(target_arch = "x86_64") {
        return Err("the workload makes x86 system calls only".to_owned());
    }
    let status = Command::new(workloads::path("calls_32_bit")).arg("/bin/true").status();
    match status {
        Ok(status) if status.code() == Some(7) => Ok(()),
        other => Err(format!("the kernel does not execute 32-bit programs: {other:?}")),
    }
}

/// Runs a command line whose words contain no spaces.
fn check_runs(line: &str) -> Result<(), String> {
    let mut words = line.split(' ');
    check_succeeds(Command::new(words.next().unwrap_or_default()).args(words))
}

/// Checks that the Python of the checkers has these modules.
fn check_imports(modules: &str) -> Result<(), String> {
    check_succeeds(Command::new(python()).args(["-c", &format!("import {modules}")]))
}

fn check_succeeds(command: &mut Command) -> Result<(), String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| format!("{program}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let printed = String::from_utf8_lossy(&output.stderr);
    let reason = printed.lines().last().unwrap_or("no reason given");
    Err(format!("{program}: {} ({reason})", output.status))
}
