//! Runs the binary under test, always with a deadline. Output goes to files instead of pipes, so
//! that a process that outlives its parent cannot block the test.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Permissions};
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use tempfile::TempDir;

use super::texts::{assert_contains, unwrapped};

/// Longer than any test run takes on a busy machine.
const DEADLINE: Duration = Duration::from_secs(120);

/// The binary under test.
pub const SPAWNSCOPE: &str = env!("CARGO_BIN_EXE_spawnscope");

/// Returns a command that runs a program without privileges. The program is its first argument.
pub fn as_nobody() -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
    command.args(["--bounding-set=-all", "--inh-caps=-all"]);
    command
}

/// Copies a program, in another process: the kernel refuses to execute a file that is open for
/// writing, and a child that another test starts meanwhile would keep it open until its exec.
pub fn copy_program(from: &Path, to: &Path) {
    run(Command::new("cp").arg(from).arg(to)).expect_code(0);
}

/// Writes a program, usually a script with its interpreter line.
pub fn write_program(path: &Path, content: impl AsRef<[u8]>) {
    fs::write(path, content).expect("a program");
    fs::set_permissions(path, Permissions::from_mode(0o755)).expect("an executable program");
}

/// A directory that every user can read and write, with a copy of the binary under test.
pub struct PublicDirectory(TempDir);

impl PublicDirectory {
    pub fn new() -> PublicDirectory {
        let directory = tempfile::tempdir_in("/tmp").expect("a temporary directory");
        fs::set_permissions(directory.path(), Permissions::from_mode(0o777)).expect("an open directory");
        copy_program(Path::new(SPAWNSCOPE), &directory.path().join("spawnscope"));
        PublicDirectory(directory)
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Runs that copy in the directory as an ordinary user. The launchers execute each other in
    /// this order, and the last one executes the copy.
    pub fn run(&self, launchers: &[&str], words: &[&str]) -> Finished {
        let mut command = as_nobody();
        command.args(launchers).arg(self.path().join("spawnscope")).args(words);
        run(command.current_dir(self.path()).env_remove("LD_LIBRARY_PATH"))
    }
}

/// The result of a finished program.
pub struct Finished {
    pub status: ExitStatus,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
}

impl Finished {
    /// Returns the exit status as a shell reports it.
    pub fn code(&self) -> i32 {
        self.status.code().unwrap_or_else(|| 128 + self.status.signal().expect("ended by a signal"))
    }

    pub fn errors(&self) -> String {
        String::from_utf8_lossy(&self.stderr).into_owned()
    }

    pub fn output(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// Returns standard error without line breaks.
    pub fn message(&self) -> String {
        unwrapped(&self.errors())
    }

    /// Parses standard output as JSON.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.stdout).unwrap_or_else(|error| panic!("{error}: {}", self.output()))
    }

    /// Checks that standard error contains these texts.
    #[track_caller]
    pub fn expect_errors<const N: usize>(&self, texts: [&str; N]) {
        assert_contains(&self.errors(), texts);
    }

    /// Checks that a signal has ended the program.
    #[track_caller]
    pub fn expect_signal(self, signal: i32) -> Finished {
        assert_eq!(self.status.signal(), Some(signal), "{}; stderr:\n{}", self.status, self.errors());
        self
    }

    /// Checks the exit status. On a mismatch, prints standard error.
    #[track_caller]
    pub fn expect_code(self, code: i32) -> Finished {
        assert_eq!(self.code(), code, "exit status; stderr:\n{}", self.errors());
        self
    }
}

/// A running program whose output goes to files.
pub struct Running {
    pub child: Child,
    outputs: TempDir,
}

impl Running {
    pub fn start(command: &mut Command) -> Running {
        let outputs = tempfile::tempdir().expect("a temporary directory");
        let [stdout, stderr] =
            ["stdout", "stderr"].map(|name| File::create(outputs.path().join(name)).expect("an output file"));
        command.env("NO_COLOR", "1").stdout(stdout).stderr(stderr);
        Running { child: spawn(command), outputs }
    }

    pub fn pid(&self) -> Pid {
        Pid::from_raw(i32::try_from(self.child.id()).expect("a pid"))
    }

    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().expect("wait").is_some()
    }

    pub fn stdout_so_far(&self) -> Vec<u8> {
        self.written_so_far("stdout")
    }

    /// Returns the output to `stdout` or `stderr` so far.
    pub fn written_so_far(&self, stream: &str) -> Vec<u8> {
        std::fs::read(self.outputs.path().join(stream)).expect("the output file")
    }

    /// Waits until the output has a line, and returns that line.
    pub fn await_line(&self) -> String {
        let output = await_some("a line of output", || {
            let output = self.stdout_so_far();
            output.contains(&b'\n').then_some(output)
        });
        String::from_utf8_lossy(&output).lines().next().expect("a line").to_owned()
    }

    pub fn finish(self) -> Finished {
        self.finish_within(DEADLINE)
    }

    pub fn finish_within(mut self, deadline: Duration) -> Finished {
        let status = await_exit(&mut self.child, deadline);
        Finished { status, stdout: self.written_so_far("stdout"), stderr: self.written_so_far("stderr") }
    }
}

/// Waits until a condition returns a value, with a deadline. `what` names the value in the failure
/// message.
#[track_caller]
pub fn await_some<T>(what: &str, mut condition: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(value) = condition() {
            return value;
        }
        assert!(start.elapsed() < DEADLINE, "{what}: not within {DEADLINE:?}");
        sleep(Duration::from_millis(5));
    }
}

/// Starts a program. Waits while its file is busy: if this test has just written the file, a child
/// that another test forked meanwhile has it open for writing until its exec.
fn spawn(command: &mut Command) -> Child {
    await_some("a program that no process has open for writing", || match command.spawn() {
        Err(error) if error.kind() == ErrorKind::ExecutableFileBusy => None,
        started => Some(started.unwrap_or_else(|error| panic!("{:?}: {error}", command.get_program()))),
    })
}

fn await_exit(child: &mut Child, deadline: Duration) -> ExitStatus {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait().expect("wait") {
            return status;
        }
        if start.elapsed() > deadline {
            let orphans = descendants(child.id());
            child.kill().expect("kill");
            child.wait().expect("wait");
            for orphan in orphans {
                // The process may have ended already.
                let _ = kill(orphan, Signal::SIGKILL);
            }
            panic!("killed after {deadline:?}");
        }
        sleep(Duration::from_millis(5));
    }
}

/// Returns the running descendants of a process. A killed recorder leaves its command running.
fn descendants(pid: u32) -> Vec<Pid> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let lists = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
    let children: Vec<u32> =
        lists.flat_map(|list| list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>()).collect();
    let own = children.iter().filter_map(|pid| Some(Pid::from_raw(i32::try_from(*pid).ok()?)));
    own.chain(children.iter().flat_map(|pid| descendants(*pid))).collect()
}

/// Runs a command with an empty standard input.
pub fn run(command: &mut Command) -> Finished {
    Running::start(command.stdin(Stdio::null())).finish()
}

/// Runs the binary under test.
pub fn spawnscope(arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Finished {
    run(Command::new(SPAWNSCOPE).args(arguments))
}

/// The collector for all recordings whose flags name none. If unset, spawnscope chooses it.
pub static COLLECTOR: OnceLock<&str> = OnceLock::new();

/// Whether the tests record with the ptrace collector.
pub fn uses_ptrace() -> bool {
    COLLECTOR.get() == Some(&"ptrace")
}

/// A recording to make: its flags, its launcher, and its directory.
pub struct Record {
    directory: TempDir,
    launcher: Vec<OsString>,
    flags: Vec<OsString>,
}

impl Record {
    pub fn new() -> Record {
        Record {
            directory: tempfile::tempdir().expect("a temporary directory"),
            launcher: Vec::new(),
            flags: Vec::new(),
        }
    }

    /// Runs the recorder through another program, such as `unshare`.
    pub fn through(mut self, launcher: &[&str]) -> Record {
        self.launcher = launcher.iter().map(OsString::from).collect();
        self
    }

    pub fn flags(mut self, flags: &[&str]) -> Record {
        self.flags.extend(flags.iter().map(OsString::from));
        self
    }

    /// Returns the path of the recording, which exists once the recorder has run.
    pub fn file(&self) -> PathBuf {
        self.directory.path().join("recording.db")
    }

    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Returns the complete command line of the recorder.
    pub fn command(&self, traced: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Command {
        let mut words: Vec<OsString> = self.launcher.clone();
        words.extend([SPAWNSCOPE, "record", "-o"].map(OsString::from));
        words.push(self.file().into());
        if let Some(collector) = COLLECTOR.get().filter(|_| self.flags.iter().all(|flag| flag != "--collector")) {
            words.extend(["--collector", collector].map(OsString::from));
        }
        words.extend(self.flags.iter().cloned());
        let mut traced = traced.into_iter().peekable();
        if traced.peek().is_some() {
            words.push("--".into());
            words.extend(traced.map(|word| word.as_ref().to_owned()));
        }
        let mut command = Command::new(&words[0]);
        // Cargo sets a library search path with many directories, which every loader would search.
        command.args(&words[1..]).env_remove("LD_LIBRARY_PATH");
        command
    }

    /// Records a command, which must succeed, to its end.
    #[track_caller]
    pub fn recorded(self, traced: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Record {
        self.run(traced).expect_code(0);
        self
    }

    /// Records a command to its end.
    pub fn run(&self, traced: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Finished {
        run(&mut self.command(traced))
    }
}
