//! The cost of the dynamic loader: for libraries, for immediate or lazy binding, for unsuccessful
//! searches, and for names that need no search. Launches a program that does nothing, so that the
//! loader causes the differences between cases.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::{columns, launches};
use crate::LabError;
use crate::batches::Case;
use crate::compiler::{Compiler, PROGRAM, STATUS};
use crate::context::ExperimentContext;
use crate::measurements::Value;
use crate::outcome::{Outcome, Row, Scale, Unit, key};
use crate::runtimes::find_program;
use crate::worker::protocol::{Mechanism, Program, Setting};
use crate::worker::{Environment, Worker, removal_note, without_loader_variables};

const LIBRARIES: [usize; 5] = [0, 10, 50, 100, 300];
const QUICK_LIBRARIES: [usize; 2] = [0, 5];
const DIRECTORIES: [usize; 5] = [0, 10, 30, 60, 100];
/// Even a quick run has enough points for a slope, because empty directories are fast to create.
const QUICK_DIRECTORIES: [usize; 4] = [0, 10, 20, 40];
/// The name of the series of `true` with empty directories to search.
const SEARCH: &str = "true, LD_LIBRARY_PATH";
/// The source of a library with a typical number of data relocations and calls into the C library.
const LIBRARY_SOURCE: &str = r"#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
void *table[] = { malloc, free, calloc, realloc, puts, printf, fopen, fclose, fread, fwrite,
    memcpy, strlen, strcmp, getenv, getpid, read, write, close };
int call(char *text) {
    puts(text);
    free(malloc(strlen(text)));
    close(getpid());
    return read(0, text, 1) + write(1, text, 1) + strcmp(text, getenv(text)) + fclose(fopen(text, text));
}
";
/// Without -fno-builtin, the compiler would optimize some of the calls away.
const LIBRARY_OPTIONS: [&str; 4] = ["-shared", "-fPIC", "-fno-builtin", "-Wl,-z,lazy"];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Linking {
    /// The directories of the libraries are in the run path. If each library has its own directory,
    /// the loader searches the directories of other libraries first.
    RunPath,
    /// The names of the libraries are absolute paths, so that the loader searches nothing. The tool
    /// shrinkwrap does this, too.
    Absolute,
}

pub fn run(context: &ExperimentContext<'_>) -> Result<Outcome, LabError> {
    let keys = [key("loading", "loading", Unit::Text), key("count", "libraries or directories", Unit::Count)];
    let title = "Launches of a program with libraries, or with empty library directories to search";
    let mut outcome = Outcome::new(title, columns(keys));
    outcome.draw("count", "wall_ns", &["loading"], Scale::Linear);
    // The cases themselves, not the user's environment, must determine the search and the binding.
    let plain = without_loader_variables();
    let mut cases = Vec::new();
    match find_program("true") {
        Some(program) => add_search_cases(context, &plain, &Program::new([program]), &mut cases)?,
        None => outcome.note("true not found: the search of empty directories is skipped"),
    }
    match Compiler::named("cc") {
        Some(compiler) => {
            if let Err(error) = add_library_cases(context, &plain, &compiler, &mut cases) {
                outcome.note(format!("libraries: {error}"));
            }
        }
        None => outcome.note("no C compiler (cc) found: programs with libraries are skipped"),
    }
    let measured = context.interleave(cases);
    outcome.add(&measured);
    outcome.fit(1.0, "library or directory");
    removal_note(&plain).into_iter().for_each(|note| outcome.note(note));
    let has_libraries = |row: &Row| *row.get("loading") != Value::from(SEARCH);
    if outcome.rows.iter().any(has_libraries) {
        outcome.note("each library has 18 data relocations and 12 calls into the C library; the calls are never made");
    }
    Ok(outcome)
}

fn add_search_cases(
    context: &ExperimentContext<'_>,
    plain: &Environment,
    program: &Program,
    cases: &mut Vec<Case<'_>>,
) -> Result<(), LabError> {
    let counts: &[usize] = context.pick(&DIRECTORIES, &QUICK_DIRECTORIES);
    for &count in counts {
        let directories: Vec<PathBuf> =
            (0..count).map(|number| context.directory().join("loader").join(format!("empty{number}"))).collect();
        let made: Result<(), _> = directories.iter().try_for_each(fs::create_dir_all);
        made.map_err(LabError::doing("create directories"))?;
        let path: OsString =
            std::env::join_paths(directories).map_err(|error| LabError::Unavailable(error.to_string()))?;
        let variable = (count > 0).then(|| ("LD_LIBRARY_PATH".into(), Some(path)));
        let worker = start_worker(plain, variable)?;
        let keys = [Value::from(SEARCH), Value::from(count as u64)];
        cases.push(launches(keys, &worker, Mechanism::VforkExec, program));
    }
    Ok(())
}

fn add_library_cases(
    context: &ExperimentContext<'_>,
    plain: &Environment,
    compiler: &Compiler,
    cases: &mut Vec<Case<'_>>,
) -> Result<(), LabError> {
    let counts: &[usize] = context.pick(&LIBRARIES, &QUICK_LIBRARIES);
    let max_count = counts.last().copied().unwrap_or_default();
    let lazy = start_worker(plain, None)?;
    let now = start_worker(plain, Some(("LD_BIND_NOW".into(), Some("1".into()))))?;
    let root = context.directory().join("libraries");
    let _ = context.report_progress("compiling a library", 0.0);
    fs::create_dir_all(&root).map_err(LabError::doing("create a directory"))?;
    let library = compiler.compile(LIBRARY_SOURCE, &root.join("library.so"), &LIBRARY_OPTIONS)?;
    let one_directory = copy_library(&library, max_count, |number| root.join(format!("lib{number}.so")))?;
    let separate_directories =
        copy_library(&library, max_count, |number| root.join(format!("f{number}/lib{number}.so")))?;
    for &count in counts {
        let _ = context.report_progress(&format!("linking {count} libraries"), 0.0);
        for (linking, files, kinds) in [
            (Linking::RunPath, &one_directory, &[("run path, lazy", &lazy), ("run path, now", &now)][..]),
            (Linking::RunPath, &separate_directories, &[("directory per library, lazy", &lazy)][..]),
            (Linking::Absolute, &one_directory, &[("absolute names, lazy", &lazy)][..]),
        ] {
            let output = root.join(format!("program{count}-{}", cases.len()));
            let program = Program::new([link(compiler, &output, linking, &files[..count])?]).with_status(STATUS);
            cases.extend(kinds.iter().map(|(kind, worker)| {
                launches([Value::from(*kind), Value::from(count as u64)], worker, Mechanism::VforkExec, &program)
            }));
        }
    }
    Ok(())
}

fn start_worker(plain: &Environment, variable: Option<(OsString, Option<OsString>)>) -> Result<Rc<Worker>, LabError> {
    Worker::start_with(&Setting::default(), plain.iter().cloned().chain(variable).collect())
}

/// Makes `count` copies of a library. Links would not do, because the loader loads the same file
/// only once.
fn copy_library(library: &Path, count: usize, name: impl Fn(usize) -> PathBuf) -> Result<Vec<PathBuf>, LabError> {
    let mut copies = Vec::new();
    for copy in (0..count).map(name) {
        let doing = LabError::doing(format!("copy a library to {}", copy.display()));
        if let Some(directory) = copy.parent() {
            fs::create_dir_all(directory).map_err(&doing)?;
        }
        fs::copy(library, &copy).map_err(doing)?;
        copies.push(copy);
    }
    Ok(copies)
}

/// Links a program with libraries. The libraries have no SONAME, so the linker records the name
/// under which each library was passed to it: the path, or with `-l:` the file name.
fn link(compiler: &Compiler, output: &Path, linking: Linking, files: &[PathBuf]) -> Result<PathBuf, LabError> {
    let mut options = vec!["-Wl,--no-as-needed,-z,lazy".to_owned(), "-Wl,--allow-shlib-undefined".to_owned()];
    for file in files {
        let directory = file.parent().unwrap_or(Path::new("/"));
        if linking == Linking::Absolute {
            options.push(file.display().to_string());
            continue;
        }
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let new_directory = format!("-Wl,-rpath,{}", directory.display());
        if !options.contains(&new_directory) {
            options.extend([new_directory, format!("-L{}", directory.display())]);
        }
        options.push(format!("-l:{name}"));
    }
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    compiler.compile(PROGRAM, output, &options)
}
