//! `spawnscope accel`: runs a command with `libvspawn_preload.so`, which skips needless shells. `program` and `obstacle` detect
//! commands into which the library must not be loaded, `explain` is `--explain`, `compare` is `--record`.
//!
//! The command replaces this process, so that its parent is the caller of spawnscope.

mod compare;
mod explain;
mod obstacle;
mod program;

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use nix::sys::resource::{Resource, getrlimit, setrlimit};

use super::args::AccelArguments;
use super::output::print_message;
use crate::cli::exit::Status;
use crate::held;

const LIBRARY: &str = "libvspawn_preload.so";
/// Where the library is, relative to spawnscope's directory, after `make install`, `make build` and `cargo build`.
const DIRECTORIES: [&str; 3] = ["../lib/spawnscope", "../preload", "."];
const HUGE_PAGES: &str = "/sys/kernel/mm/transparent_hugepage/enabled";
const TUNABLE: &str = "glibc.malloc.hugetlb";

/// Runs the verb.
///
/// # Errors
/// When spawnscope itself fails, or the command cannot be executed.
pub fn run(arguments: &AccelArguments) -> Result<Status> {
    let mut library = (!arguments.no_preload).then(find_library).transpose()?;
    if arguments.record {
        return compare::run(arguments);
    }
    if arguments.explain {
        return explain::run(arguments);
    }
    if let Some(notice) = library.as_ref().and_then(|_| program::notice(&arguments.command[0])) {
        print_message(&notice);
        library = None;
    }
    if let Some(files) = arguments.open_files {
        lower_open_files(files)?;
    }
    Err(held::execute(&arguments.command, &variables(arguments, library.as_deref())).into())
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

/// Returns the variables that the library and the C library read.
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
    if let Some(counters) = &arguments.counters {
        variables.push(("SPAWNSCOPE_ACCEL_EXPLAIN".into(), counters.into()));
    }
    let tunables = env::var_os("GLIBC_TUNABLES");
    let is_tunable_set = tunables.as_ref().is_some_and(|tunables| tunables.to_string_lossy().contains(TUNABLE));
    if arguments.hugetlb && !is_tunable_set && huge_pages_need_a_request() {
        variables.push(("GLIBC_TUNABLES".into(), prepend(OsStr::new(&format!("{TUNABLE}=1")), tunables)));
    }
    variables
}

/// Inserts the library into a value of LD_PRELOAD: before the others, so that these see the execs of the programs and not those of the shells,
/// but after the runtimes of sanitizers, which must be first.
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

/// Whether programs get huge pages only if they ask for them. With `always`, they get them anyway; with `never`, they get none.
fn huge_pages_need_a_request() -> bool {
    fs::read_to_string(HUGE_PAGES).is_ok_and(|setting| setting.contains("[madvise]"))
}

/// Finds the library in one of `DIRECTORIES`.
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
