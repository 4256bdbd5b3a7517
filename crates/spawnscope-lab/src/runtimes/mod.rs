//! Runtimes of languages that launch programs: a launcher in each language, how to run and control
//! it, and how its runtime creates processes, as a tracer sees it.

use std::cell::RefCell;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::{self, Sender};
use std::time::{Duration, Instant};
use std::{fs, thread};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::LabError;
use crate::asked::AskedChild;
use spawnscope_data::event::Pid;
use spawnscope_system::held;
use spawnscope_system::ptrace::{Creation, Event, Options, Registers, Stop, Tracer};

/// A runtime and its launcher. The arguments of a launcher are a number of bytes, a program, and
/// the exit status of that program. It fills memory of that size, and prints the number of bytes.
/// Each line of its standard input is a number of launches: it launches the program that many
/// times, one after the other, and prints how many of them had the status.
#[derive(Clone, Copy, Debug)]
pub struct Runtime {
    pub name: &'static str,
    /// Names of the interpreter or compiler, the usual one first.
    programs: &'static [&'static str],
    /// What makes it print its version.
    version: &'static str,
    /// Its options before the output of a compiler, or before the launcher.
    options: &'static [&'static str],
    is_compiled: bool,
    file: &'static str,
    launcher: &'static str,
}

pub const BASH: Runtime = interpreter("bash", &["bash"], "launcher.sh", include_str!("launcher.sh"));

pub const ALL: [Runtime; 9] = [
    BASH,
    interpreter("Python", &["python3", "python"], "launcher.py", include_str!("launcher.py")),
    interpreter("Node", &["node", "nodejs"], "launcher.js", include_str!("launcher.js")),
    interpreter("Ruby", &["ruby"], "launcher.rb", include_str!("launcher.rb")),
    Runtime { version: "-v", ..interpreter("Perl", &["perl"], "launcher.pl", include_str!("launcher.pl")) },
    interpreter("PHP", &["php"], "launcher.php", include_str!("launcher.php")),
    // The default is 25, a quarter of the machine's memory.
    Runtime {
        options: &["-XX:MaxRAMPercentage=75"],
        ..interpreter("Java", &["java"], "Launcher.java", include_str!("Launcher.java"))
    },
    Runtime {
        version: "version",
        ..compiler("Go", &["go"], &["build", "-o"], "launcher.go", include_str!("launcher.go"))
    },
    compiler("Rust", &["rustc"], &["-O", "-o"], "launcher.rs", include_str!("launcher.rs")),
];

const fn interpreter(
    name: &'static str,
    programs: &'static [&'static str],
    file: &'static str,
    launcher: &'static str,
) -> Runtime {
    Runtime { name, programs, version: "--version", options: &[], is_compiled: false, file, launcher }
}

const fn compiler(
    name: &'static str,
    programs: &'static [&'static str],
    options: &'static [&'static str],
    file: &'static str,
    launcher: &'static str,
) -> Runtime {
    Runtime { options, is_compiled: true, ..interpreter(name, programs, file, launcher) }
}

impl Runtime {
    /// Finds its interpreter or compiler in PATH.
    pub fn find(&self) -> Option<PathBuf> {
        self.programs.iter().find_map(|program| find_program(program))
    }

    /// Returns the name and the version.
    pub fn label(&self, program: &Path) -> String {
        let output = Command::new(program).arg(self.version).output().map(|output| output.stdout);
        let version = version_in(&String::from_utf8_lossy(&output.unwrap_or_default())).map(str::to_owned);
        version.map_or_else(|| self.name.to_owned(), |version| format!("{} {version}", self.name))
    }

    /// Writes the launcher into a directory, and compiles it if necessary. Returns the command
    /// without its arguments.
    pub fn prepare(&self, program: &Path, directory: &Path) -> Result<Vec<PathBuf>, LabError> {
        let file = directory.join(self.file);
        std::fs::write(&file, self.launcher).map_err(LabError::doing("write a launcher"))?;
        let options = self.options.iter().map(PathBuf::from);
        if !self.is_compiled {
            return Ok([program.to_owned()].into_iter().chain(options).chain([file]).collect());
        }
        let compiled = directory.join(format!("launcher-{}", self.name));
        let output = Command::new(program)
            .args(options)
            .args([&compiled, &file])
            .current_dir(directory)
            .output()
            .map_err(LabError::doing(format!("compile a {} launcher", self.name)))?;
        match output.status.success() {
            true => Ok(vec![compiled]),
            false => {
                let errors = String::from_utf8_lossy(&output.stderr);
                let last = errors.trim_end().lines().last().unwrap_or("no reason given");
                Err(LabError::Unavailable(format!("{} failed: {last}", program.display())))
            }
        }
    }
}

/// Returns the first word or part of a word that is a version: `5.36.0` of `(v5.36.0)`.
fn version_in(text: &str) -> Option<&str> {
    let words = text.split(|character: char| !character.is_ascii_digit() && character != '.');
    words.map(|word| word.trim_matches('.')).find(|word| word.contains('.'))
}

pub fn find_program(program: &str) -> Option<PathBuf> {
    held::find_program(OsStr::new(program)).ok()
}

/// A runtime that has filled memory of a given size, and launches a program on request.
pub struct RuntimeParent {
    child: RefCell<AskedChild>,
    name: String,
}

/// The peak memory of a launcher while it fills its memory, as a multiple of the size that it is
/// given: bash has the value of its variable and a copy.
pub const FILL_MEMORY_FACTOR: u64 = 2;
/// The interval between checks for an interruption while memory is filled.
const POLL_INTERVAL: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

impl RuntimeParent {
    /// Starts a launcher (`Runtime::prepare`) with this many bytes of memory. `program`: what it
    /// launches, and the status of that. Returns `None` if `may_continue` returns false while the
    /// memory is filled.
    pub fn start(
        launcher: &[PathBuf],
        name: &str,
        bytes: u64,
        (program, status): (&Path, i32),
        may_continue: &dyn Fn() -> bool,
    ) -> Result<Option<RuntimeParent>, LabError> {
        let [runtime, options @ ..] = launcher else { return Ok(None) };
        let mut command = Command::new(runtime);
        // In a multibyte encoding, bash would need seconds to count the characters.
        command.args(options).arg(bytes.to_string()).arg(program).arg(status.to_string()).env("LC_ALL", "C");
        let child = RefCell::new(AskedChild::start(&mut command, name)?);
        let parent = RuntimeParent { child, name: name.to_owned() };
        while !parent.has_answered()? {
            if !may_continue() {
                return Ok(None);
            }
        }
        parent.expect_answer(bytes)?;
        Ok(Some(parent))
    }

    fn pid(&self) -> Pid {
        Pid(self.child.borrow().child.id() as i32)
    }

    /// Launches the program `count` times, and returns the time of one launch in nanoseconds. If
    /// `count` is more than one, an uncounted launch comes first.
    pub fn launch(&self, count: u32) -> Result<f64, LabError> {
        if count > 1 {
            self.time_launches(1)?;
        }
        self.time_launches(count)
    }

    fn time_launches(&self, count: u32) -> Result<f64, LabError> {
        let began = Instant::now();
        self.child.borrow_mut().ask(&count.to_string()).map_err(LabError::doing(format!("write to {}", self.name)))?;
        self.expect_answer(u64::from(count))?;
        Ok(began.elapsed().as_nanos() as f64 / f64::from(count))
    }

    /// Waits for at most `POLL_INTERVAL`, and returns whether there is output, or its end, to read.
    fn has_answered(&self) -> Result<bool, LabError> {
        let child = self.child.borrow();
        match poll(&mut [PollFd::new(child.output.get_ref(), PollFlags::IN)], Some(&POLL_INTERVAL)) {
            Ok(count) => Ok(count > 0),
            Err(Errno::INTR) => Ok(false),
            Err(errno) => Err(LabError::doing(format!("wait for {}", self.name))(errno)),
        }
    }

    fn expect_answer(&self, number: u64) -> Result<(), LabError> {
        let line = self.child.borrow_mut().answer().map_err(LabError::doing(format!("read from {}", self.name)))?;
        match line.trim() {
            _ if line.is_empty() => Err(LabError::Invalid(format!("{} ended, possibly out of memory", self.name))),
            answer if answer == number.to_string() => Ok(()),
            answer => Err(LabError::Invalid(format!("{} answered `{answer}`, not {number}", self.name))),
        }
    }
}

impl Drop for RuntimeParent {
    fn drop(&mut self) {
        // Closing the input would not be enough: while memory is filled, it is not read.
        let child = &mut self.child.get_mut().child;
        let _ = child.kill();
        let _ = child.wait();
    }
}

/// Longer than any runtime needs for a launch.
const TRACE_LIMIT: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(1);

impl RuntimeParent {
    /// Makes one launch, and returns how the process was created: `fork`, `vfork`, `clone`,
    /// `posix_spawn`, and the program between both, if there is one. `program`: what is launched.
    pub fn creation(&self, program: &Path) -> Result<String, LabError> {
        // Some runtimes first try what the kernel offers.
        self.launch(1)?;
        // A tracer is a thread. When it ends, the kernel detaches it from all that it traces.
        let pid = self.pid();
        thread::scope(|scope| {
            let (ready, is_ready) = mpsc::channel();
            let tracer = scope.spawn(move || observe(pid, program, &ready));
            let is_traced = is_ready.recv().is_ok();
            let launched = if is_traced { self.launch(1).map(|_| ()) } else { Ok(()) };
            let observed = tracer.join().map_err(|_| LabError::Invalid("the tracer failed".to_owned()))?;
            launched.and(observed)
        })
    }
}

/// Traces a process until a new process of it has executed the program. Sends a message to `ready`
/// once it traces. Returns how the new process was created. The creator may be preempted before it
/// stops, and then the new process stops at its exec first.
fn observe(pid: Pid, program: &Path, ready: &Sender<()>) -> Result<String, LabError> {
    let mut tracer = Tracer::new();
    let threads = fs::read_dir(format!("/proc/{}/task", pid.0)).map_err(LabError::doing("read the threads"))?;
    let threads = threads.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    for thread in threads.collect::<Vec<i32>>() {
        tracer.seize(Pid(thread), Options::CREATION | Options::EXEC).map_err(LabError::doing("trace a runtime"))?;
    }
    let _ = ready.send(());
    let (mut found, mut helper, mut is_executed) = (None, String::new(), false);
    let end = Instant::now() + TRACE_LIMIT;
    while Instant::now() < end {
        let Some(event) = tracer.next_event() else {
            thread::sleep(PAUSE);
            continue;
        };
        let Event::Stopped(thread, stop) = event else { continue };
        match stop {
            Stop::Created { how: Creation::Fork | Creation::Vfork, .. } if found.is_none() => {
                found = Some(name_of(stop, thread));
            }
            Stop::Exec => {
                let executed = fs::read_link(format!("/proc/{}/exe", thread.0)).unwrap_or_default();
                if executed == program {
                    is_executed = true;
                } else {
                    let name = executed.file_name().unwrap_or_default().to_string_lossy().into_owned();
                    helper = format!(" of {name}");
                }
            }
            _ => {}
        }
        if let Some(name) = found.filter(|_| is_executed) {
            return Ok(name.to_owned() + &helper);
        }
        tracer.pass_on(thread, stop);
    }
    Err(LabError::Invalid("no new process executed the program".to_owned()))
}

/// Returns the name of the call that a thread is in. posix_spawn gives the new process a stack of
/// its own.
fn name_of(stop: Stop, thread: Pid) -> &'static str {
    let call = Registers::read(thread).map(|registers| registers.system_call());
    match (stop, call) {
        (Stop::Created { how: Creation::Fork, .. }, _) => "fork",
        #[cfg(target_arch = "x86_64")]
        (_, Ok((libc::SYS_vfork, _))) => "vfork",
        (_, Ok((libc::SYS_clone, [_, 0]))) => "clone",
        _ => "posix_spawn",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_found_in_what_runtimes_print() {
        for (text, version) in [
            ("v24.21.0\n", Some("24.21.0")),
            ("go version go1.24.1 linux/amd64", Some("1.24.1")),
            ("\nThis is perl 5, version 36, subversion 0 (v5.36.0) built for x", Some("5.36.0")),
            ("openjdk 17.0.15 2025-04-15\nOpenJDK Runtime", Some("17.0.15")),
            ("ruby. 3", None),
        ] {
            assert_eq!(version_in(text), version, "{text}");
        }
    }
}
