//! The programs of `tests/workloads`, compiled once into a temporary directory, and the `key=value`
//! facts that they print. A machine without a compiler, such as a guest of
//! `scripts/kernel-matrix.sh`, gets compiled programs.

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/workloads");
const FLAGS: [&str; 5] = ["-std=gnu11", "-O1", "-Wall", "-Werror", "-pthread"];

/// The variable that names the directory of the compiled workloads. They are compiled into it if
/// they are missing, and remain there.
const DIRECTORY_VARIABLE: &str = "SPAWNSCOPE_TEST_WORKLOADS";

/// The file that is created last, which shows that all others exist.
const COMPLETE: &str = "complete";

/// The programs, their sources, and their flags in addition to `FLAGS`.
const PROGRAMS: &[(&str, &str, &str)] = &[
    ("inherited", "inherited.c", ""),
    ("tiny", "tiny.c", "-static -nostdlib -fno-stack-protector"),
    ("launch_each", "launch_each.c", ""),
    ("long_create", "long_create.c", ""),
    ("long_queue", "long_queue.c", ""),
    ("long_setup", "long_setup.c", ""),
    ("long_exec", "long_exec.c", ""),
    ("long_teardown", "long_teardown.c", ""),
    ("long_reap", "long_reap.c", ""),
    ("load_base", "slow_to_load.c", "-DLOAD_MS=0 -Wl,-z,now"),
    ("load_long", "slow_to_load.c", "-DLOAD_MS=30 -Wl,-z,now"),
    ("run_base", "slow_to_run.c", "-DRUN_MS=0"),
    ("run_long", "slow_to_run.c", "-DRUN_MS=50"),
    ("mechanisms", "mechanisms.c", ""),
    ("storm", "storm.c", ""),
    ("thread_exec", "thread_exec.c", ""),
    ("daemonize", "daemonize.c", ""),
    ("pid_reuse", "pid_reuse.c", ""),
    ("stopped_child", "stopped_child.c", ""),
    ("dialogue", "dialogue.c", ""),
    ("closing", "closing.c", ""),
    ("libfirst.so", "library.c", "-DNAME=first -shared -fPIC"),
    ("libsecond.so", "library.c", "-DNAME=second -shared -fPIC"),
    ("libthird.so", "library.c", "-DNAME=third -shared -fPIC"),
    ("needs_libraries", "needs_libraries.c", "-Wl,--no-as-needed -L. -lfirst -lsecond -lthird"),
    ("ways_to_reap", "ways_to_reap.c", ""),
    ("scanned", "scanned.c", ""),
    ("scans_new_files", "scans_new_files.c", "-DEVENTS=FAN_OPEN_EXEC_PERM -DSCAN_MS=20"),
    ("holds_opens", "scans_new_files.c", "-DEVENTS=FAN_OPEN_PERM -DSCAN_MS=600"),
    // This scanner takes longer than any test waits.
    ("holds_opens_for_ever", "scans_new_files.c", "-DEVENTS=FAN_OPEN_PERM -DSCAN_MS=50000"),
    ("file_system", "file_system.c", ""),
    ("libslow.so", "slow_library.c", "-shared -fPIC"),
    ("without_close_range", "filtered.c", "-DREFUSED=SYS_close_range"),
    ("without_ptrace", "filtered.c", "-DREFUSED=SYS_ptrace"),
    ("like_docker", "filtered.c", "-DLIKE_DOCKER"),
    ("large_parent", "large_parent.c", ""),
    #[cfg(target_arch = "x86_64")]
    ("calls_32_bit", "calls_32_bit.c", "-m32 -nostdlib -static -fno-pic -fno-stack-protector -O1"),
    ("wait_on_pipe", "wait_on_pipe.c", ""),
    // In older C libraries, message queues are in a separate library.
    ("timed_waits", "timed_waits.c", "-lrt"),
    ("sampled", "sampled.c", "-O2 -fomit-frame-pointer"),
    // Every kind of executable, all without frame pointers.
    ("callers", "callers.c", "-O2 -fomit-frame-pointer"),
    ("callers_debug", "callers.c", "-O2 -fomit-frame-pointer -g -Wl,--build-id"),
    ("callers_static", "callers.c", "-O2 -fomit-frame-pointer -static -DSTATIC"),
    ("callers_fixed", "callers.c", "-O2 -fomit-frame-pointer -fno-pie -no-pie"),
    ("callers_stripped", "callers.c", "-O2 -fomit-frame-pointer -s"),
    ("callers_other", "callers.c", "-O2 -fomit-frame-pointer -Dinner=wrong -Douter=also_wrong"),
    ("libfirst_back.so", "calls_back.c", "-DNAME=first_calls_back -shared -fPIC"),
    ("libsecond_back.so", "calls_back.c", "-DNAME=second_calls_back -shared -fPIC"),
];

static COMPILED: OnceLock<PathBuf> = OnceLock::new();

/// Returns the directory of the compiled workloads, which all users can read.
pub fn directory() -> &'static Path {
    COMPILED.get_or_init(|| match kept_directory() {
        Some(directory) if are_compiled() => directory,
        Some(directory) => {
            std::fs::create_dir_all(&directory).expect("the directory of the workloads");
            compile_into(&directory);
            std::fs::write(directory.join(COMPLETE), "").expect("a mark in the directory of the workloads");
            directory
        }
        None => compile_for_this_run(),
    })
}

fn kept_directory() -> Option<PathBuf> {
    std::env::var_os(DIRECTORY_VARIABLE).map(PathBuf::from)
}

/// Whether the workloads were compiled before this run, so that no compiler is needed.
pub fn are_compiled() -> bool {
    kept_directory().is_some_and(|directory| directory.join(COMPLETE).exists())
}

/// Compiles the workloads now if they are to be kept, regardless of which tests run, so that they
/// can be used on another machine.
pub fn compile_if_kept() {
    if kept_directory().is_some() {
        directory();
    }
}

/// Removes workloads that were compiled for this run, because a `static` is never dropped.
pub fn remove_temporary() {
    if let Some(directory) = COMPILED.get().filter(|_| kept_directory().is_none()) {
        std::fs::remove_dir_all(directory).expect("the temporary directory can be removed");
    }
}

/// Returns the path of a compiled workload.
pub fn path(name: &str) -> PathBuf {
    let path = directory().join(name);
    assert!(path.exists(), "no workload is called {name}");
    path
}

/// Returns the path of a compiled workload as a word of a command line.
pub fn word(name: &str) -> String {
    path(name).into_os_string().into_string().expect("a path in UTF-8")
}

/// Returns the path of a workload that is a script.
pub fn script(name: &str) -> PathBuf {
    Path::new(SOURCES).join(name)
}

fn compile_for_this_run() -> PathBuf {
    let directory = tempfile::tempdir().expect("a temporary directory").keep();
    std::fs::set_permissions(&directory, std::fs::Permissions::from_mode(0o755)).expect("chmod");
    compile_into(&directory);
    directory
}

fn compile_into(directory: &Path) {
    let compiler = std::env::var_os("CC").unwrap_or_else(|| OsString::from("cc"));
    for (program, source, flags) in PROGRAMS {
        let status = Command::new(&compiler)
            .current_dir(directory)
            .args(FLAGS)
            .args(flags.split_whitespace())
            .arg(Path::new(SOURCES).join(source))
            .arg("-o")
            .arg(directory.join(program))
            .status()
            .unwrap_or_else(|error| panic!("{}: {error}", compiler.display()));
        assert!(status.success(), "{} failed on {source}", compiler.display());
    }
}

/// Compiles a Go program in a directory, and returns its path.
pub fn build_go(directory: &Path, source: &str) -> String {
    std::fs::write(directory.join("main.go"), source).expect("a source file");
    let mut go = Command::new("go");
    go.args(["build", "-o", "prog", "main.go"]).current_dir(directory);
    // By default, these are in the user's home directory, which a test must not touch. Go builds
    // its standard library into them once.
    for name in ["GOCACHE", "GOPATH"] {
        go.env(name, self::directory().join(name));
    }
    assert!(go.status().expect("go").success());
    directory.join("prog").display().to_string()
}

/// The facts that a workload printed.
pub struct Truth(String);

impl Truth {
    pub fn new(printed: &[u8]) -> Truth {
        Truth(String::from_utf8(printed.to_vec()).expect("truth is ASCII"))
    }

    /// Returns all values of a key, in printed order.
    pub fn all(&self, key: &str) -> Vec<i64> {
        self.0
            .lines()
            .filter_map(|line| line.split_once('='))
            .filter(|(name, _)| *name == key)
            .map(|(_, value)| value.parse().expect("truth is numbers"))
            .collect()
    }

    /// Returns the only value of a key.
    pub fn one(&self, key: &str) -> i64 {
        let values = self.all(key);
        assert_eq!(values.len(), 1, "`{key}` is not printed once in:\n{}", self.0);
        values[0]
    }
}
