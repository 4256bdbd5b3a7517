//! `spawnscope accel`: runs a command with `libvspawn_preload.so`, which skips needless shells.
//! `obstacle` detects commands into which the library must not be loaded.
//!
//! The command replaces this process, so that its parent is the caller of spawnscope. With
//! `--explain` it is a child of this process, which then prints the counts of the library. The
//! library keeps them in a file that every process of the tree maps into its memory.

mod obstacle;

use std::ffi::{CString, OsStr, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::{env, fs};

use anyhow::{Context, Result, bail};
use clap::{Args, ValueHint};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::exit::Status;
use super::output::print_message;
use crate::event::Pid;
use crate::held::{self, HeldCommand};
use crate::job_control;
use crate::process::reap;
use crate::signals::Signals;

const LIBRARY: &str = "libvspawn_preload.so";
/// Where the library is, relative to spawnscope's directory, after `make install`, `make build` and
/// `cargo build`.
const DIRECTORIES: [&str; 3] = ["../lib/spawnscope", "../preload", "."];
const HUGE_PAGES: &str = "/sys/kernel/mm/transparent_hugepage/enabled";
const TUNABLE: &str = "glibc.malloc.hugetlb";

pub fn run(arguments: &AccelArguments) -> Result<Status> {
    let mut library = (!arguments.no_preload).then(find_library).transpose()?;
    if let Some(notice) = library.as_ref().and_then(|_| notice(&arguments.command[0])) {
        print_message(&notice);
        library = None;
    }
    if let Some(files) = arguments.open_files {
        lower_open_files(files)?;
    }
    let variables = variables(arguments, library.as_deref());
    if arguments.explain {
        return run_explained(&arguments.command, variables);
    }
    Err(held::execute(&arguments.command, &variables).into())
}

/// Lowers only the soft limit: a program that needs more descriptors can raise it again.
fn lower_open_files(files: u64) -> Result<()> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).context("failed to look up the limit on open files")?;
    if files >= soft {
        return Ok(());
    }
    setrlimit(Resource::RLIMIT_NOFILE, files, hard)
        .with_context(|| format!("failed to lower the limit on open files to {files}"))
}

fn variables(arguments: &AccelArguments, library: Option<&Path>) -> Vec<(OsString, OsString)> {
    let mut variables: Vec<(OsString, OsString)> = Vec::new();
    if let Some(library) = library {
        variables.push(("LD_PRELOAD".into(), insert_library(library.as_os_str(), env::var_os("LD_PRELOAD"))));
    }
    if arguments.strict {
        variables.push(("SPAWNSCOPE_ACCEL_STRICT".into(), "1".into()));
    }
    if arguments.no_in_place {
        variables.push(("SPAWNSCOPE_ACCEL_PROGRAMS".into(), "0".into()));
    }
    let tunables = env::var_os("GLIBC_TUNABLES");
    let is_tunable_set = tunables.as_ref().is_some_and(|tunables| tunables.to_string_lossy().contains(TUNABLE));
    if arguments.hugetlb && !is_tunable_set && huge_pages_need_a_request() {
        variables.push(("GLIBC_TUNABLES".into(), prepend(OsStr::new(&format!("{TUNABLE}=1")), tunables)));
    }
    variables
}

/// Inserts the library into a value of LD_PRELOAD: before the others, so that these see the execs
/// of the programs and not those of the shells, but after the runtimes of sanitizers, which must be
/// first.
fn insert_library(library: &OsStr, list: Option<OsString>) -> OsString {
    let list = list.unwrap_or_default();
    let libraries: Vec<&[u8]> =
        list.as_bytes().split(|byte| b" :".contains(byte)).filter(|name| !name.is_empty()).collect();
    let is_sanitizer = |path: &&[u8]| path.rsplit(|byte| *byte == b'/').next().is_some_and(obstacle::is_sanitizer);
    let at = libraries.iter().take_while(|path| is_sanitizer(path)).count();
    let (first, others) = libraries.split_at(at);
    OsString::from_vec([first, &[library.as_bytes()], others].concat().join(&b':'))
}

/// Prepends a value to a list of values separated by colons, as in GLIBC_TUNABLES.
fn prepend(value: &OsStr, list: Option<OsString>) -> OsString {
    match list.filter(|list| !list.is_empty()) {
        Some(list) => [value, &list].join(OsStr::new(":")),
        None => value.to_owned(),
    }
}

/// Whether programs get huge pages only if they ask for them. With `always`, they get them anyway;
/// with `never`, they get none.
fn huge_pages_need_a_request() -> bool {
    fs::read_to_string(HUGE_PAGES).is_ok_and(|setting| setting.contains("[madvise]"))
}

fn find_library() -> Result<PathBuf> {
    let program = env::current_exe().context("failed to find spawnscope's own program")?;
    let own_directory = program.parent().unwrap_or(Path::new("/"));
    let found =
        DIRECTORIES.iter().find_map(|directory| fs::canonicalize(own_directory.join(directory).join(LIBRARY)).ok());
    let Some(library) = found else {
        bail!(
            "failed to find {LIBRARY}, which skips shells, in {} or {}: install it (`make install`), or build it (`make build`)",
            own_directory.join(DIRECTORIES[0]).display(),
            own_directory.display()
        );
    };
    if library.as_os_str().as_bytes().iter().any(|byte| b" :".contains(byte)) {
        bail!(
            "failed to use {}: LD_PRELOAD cannot name a file whose path has a space or a colon; install spawnscope elsewhere",
            library.display()
        );
    }
    Ok(library)
}

pub(super) const USAGE: &str = "spawnscope accel [OPTIONS] -- <CMD>...";

pub(super) const EXAMPLES: &str = "\
Examples:
  spawnscope accel -- make
  spawnscope accel --explain -- php build.php
  spawnscope accel --strict -- ./run-tests
  spawnscope accel --no-in-place -- ./unpack.sh
  spawnscope accel --open-files 1024 -- ./old-daemon

If /bin/sh is dash, it normally stays as a process between a program and its
command, so a program can notice that dash is skipped: the command's parent is
the program itself, and if a signal kills the command or the whole group, the
status can differ. The guide to accel lists the cases. --strict keeps dash.

Whatever is not proven to behave the same goes to the shell. SPAWNSCOPE_ACCEL=0
in the environment of a program switches the library off.

The work of dirname, basename, mkdir, rmdir, rm, mv, ln and touch is done by the
process that would execute them, if their arguments are simple and nothing
fails. ptrace, audit and `spawnscope record` then see that process end without
an exec. --no-in-place and --strict execute these programs.

Exit status: that of the command, as with `record`.";

#[derive(Debug, Args)]
pub struct AccelArguments {
    /// Keep the shell wherever its absence could be noticed; with dash as /bin/sh, that is
    /// everywhere
    #[arg(long)]
    pub strict: bool,
    /// Print how many shells were skipped, and why others were not
    #[arg(long)]
    pub explain: bool,
    /// Do not load the library: skip no shell, and do no work in place
    #[arg(long)]
    pub no_preload: bool,
    /// Execute dirname, mv and other small programs, instead of doing their work in the process
    /// that would execute them
    #[arg(long)]
    pub no_in_place: bool,
    /// Ask for huge pages, which make forks of large programs cheaper and the start of all programs
    /// slower
    #[arg(long)]
    pub hugetlb: bool,
    /// Lower the soft limit on open files to N, for children that close every possible descriptor
    /// one by one
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(16..))]
    pub open_files: Option<u64>,
    /// The command and its arguments
    #[arg(value_name = "CMD", required = true, trailing_var_arg = true, allow_hyphen_values = true, value_hint = ValueHint::CommandWithArguments)]
    pub command: Vec<OsString>,
}

const SET_ID: u32 = 0o6000;

/// Returns a notice that says why accel has no effect on a command, unless the command launches
/// nothing.
fn notice(name: &OsStr) -> Option<String> {
    let path = held::find_program(name).ok()?;
    let reason = if fs::metadata(&path).ok()?.mode() & SET_ID != 0 {
        "is set-user-id or set-group-id"
    } else {
        match obstacle::obstacle(&CString::new(path.as_os_str().as_bytes()).ok()?)? {
            obstacle::Obstacle::Static => "is statically linked",
            obstacle::Obstacle::Foreign => "is for another architecture or C library",
            obstacle::Obstacle::Sanitizer => "is built with a sanitizer, whose library must be loaded first",
            obstacle::Obstacle::LaunchesNothing => return None,
        }
    };
    Some(format!("{} {reason}: accel has no effect on it or on what it launches", path.display()))
}

/// How often to check whether the command has stopped.
const STOP_INTERVAL: Timespec = Timespec { tv_sec: 0, tv_nsec: 40_000_000 };
/// The size of the file in bytes, as in `crates/vspawn-preload/src/settings.rs`.
const FILE_BYTES: usize = 4096;
/// What each number in the file counts, in the order of `crates/vspawn-preload/src/settings.rs`.
const REASONS: [&str; 10] = [
    "skipped: the command was started without a shell",
    "kept: more than one simple command",
    "kept: a builtin of the shell",
    "kept: a variable changes what the shell does",
    "kept: signals, user ids or standard input are unusual",
    "kept: the program was not found, or cannot be executed",
    "kept: the shell is neither dash nor bash",
    "kept: --strict",
    "used after all: the program could not be executed",
    "kept: a redirection that only the shell can do",
];
/// The index, in the file, of the count of small programs whose work was done in place. It follows
/// the counts of the reasons.
const IN_PLACE_INDEX: usize = REASONS.len();

fn run_explained(command: &[OsString], mut variables: Vec<(OsString, OsString)>) -> Result<Status> {
    let counters = tempfile::Builder::new()
        .prefix("spawnscope-accel-")
        .tempfile()
        .context("failed to create a file for the counts")?;
    fs::write(&counters, [0; FILE_BYTES]).context("failed to write the file for the counts")?;
    let signals = Signals::catch().context("failed to catch signals")?;
    variables.push(("SPAWNSCOPE_ACCEL_EXPLAIN".into(), counters.path().into()));
    let held = HeldCommand::start(command, None, &variables, signals.inherited_mask())?;
    let pid = held.pid();
    let process = held.release()?;
    let status = wait(pid, &process, &signals)?;
    print_message(&describe_counts(&fs::read(&counters).context("failed to read the counts")?));
    Ok(Status::of_command(status))
}

/// Waits for the command's end, and forwards signals to it. Returns its wait status.
fn wait(Pid(pid): Pid, process: &OwnedFd, signals: &Signals) -> Result<i32> {
    loop {
        let readiness = signals.readiness();
        let mut both = [PollFd::new(process, PollFlags::IN), PollFd::new(&readiness, PollFlags::IN)];
        match poll(&mut both, Some(&STOP_INTERVAL)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error).context("failed to wait for the command"),
        }
        let [ended, arrived] = both;
        if job_control::has_stopped(Pid(pid)) {
            job_control::stop_with(Pid(pid));
        }
        if !arrived.revents().is_empty() {
            while let Some(signal) = signals.next() {
                signal.forward_to(pid);
            }
        }
        if !ended.revents().is_empty() {
            let (_, status) = reap(pid).context("failed to read the command's status")?;
            return Ok(status);
        }
    }
}

fn describe_counts(page: &[u8]) -> String {
    let numbers: Vec<u64> =
        page.chunks_exact(8).filter_map(|chunk| chunk.try_into().ok().map(u64::from_ne_bytes)).collect();
    let shells = describe_shells(&numbers);
    match numbers.get(IN_PLACE_INDEX).copied().unwrap_or(0) {
        0 => shells,
        count => format!(
            "{shells}\nsmall programs (such as dirname and mv) whose work was done without executing them:\n{count:>8}"
        ),
    }
}

fn describe_shells(numbers: &[u64]) -> String {
    let counted = numbers.iter().zip(REASONS).filter(|(count, _)| **count > 0);
    let lines: String = counted.map(|(count, reason)| format!("\n{count:>8} {reason}")).collect();
    if lines.is_empty() {
        return "none of the programs that loaded the library requested a shell for a command".to_owned();
    }
    format!("shells requested for a command:{lines}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_counts_above_zero_are_listed() {
        let mut page = vec![0; FILE_BYTES];
        page[0] = 3;
        page[8] = 1;
        let text = describe_counts(&page);
        assert!(text.contains("       3 skipped"), "{text}");
        assert_eq!(text.lines().count(), 3, "{text}");
        assert!(describe_counts(&vec![0; FILE_BYTES]).starts_with("none of the programs"));
        page[8 * IN_PLACE_INDEX] = 7;
        assert!(describe_counts(&page).ends_with("executing them:\n       7"), "{}", describe_counts(&page));
    }
}
