//! Where the load phase ends with the loaders of glibc and musl, and what musl's loader searches.
//! The programs print when their first constructor begins, which is the next event after the load.

use std::path::Path;
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use super::setup_and_loader::exec_with_search_path;
use crate::support::prelude::*;

/// The largest permitted time between the loader's last system call and the first constructor.
const MAX_GAP_NS: i64 = 1_000_000;

live_test! {
    #[needs(Ebpf)]
    fn the_load_of_a_program_ends_where_its_constructors_begin = assert_load_ends_before_constructors("cc", &[]);
    #[needs(MountNs)]
    fn without_a_loader_cache_the_load_ends_where_constructors_begin = assert_load_ends_before_constructors("cc", &WITHOUT_CACHE);
    #[needs(Musl)]
    fn the_load_of_a_musl_program_ends_where_its_constructors_begin = assert_load_ends_before_constructors("musl-gcc", &[]);
}

/// Runs a command without the files in /etc.
const WITHOUT_CACHE: [&str; 5] = ["unshare", "--mount", "sh", "-c", "mount -t tmpfs none /etc && exec \"$0\" \"$@\""];

/// Compiles these libraries (name, source and flags) and a program that is linked with them.
fn compile(compiler: &str, libraries: &[(&str, &str, &[&str])], program: &str) -> TempDir {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut linked = vec!["-pie", "-Wl,--no-as-needed", "-L.", "-o", "program"];
    for (name, source, flags) in libraries {
        let file = format!("lib{name}.so");
        run_compiler(compiler, directory.path(), &[*flags, &["-shared", "-fPIC", "-o", &file]].concat(), source);
    }
    let names: Vec<String> = libraries.iter().map(|(name, ..)| format!("-l{name}")).collect();
    linked.extend(names.iter().map(String::as_str));
    run_compiler(compiler, directory.path(), &linked, program);
    directory
}

fn run_compiler(compiler: &str, directory: &Path, arguments: &[&str], source: &str) {
    let mut command = Command::new(compiler);
    command.current_dir(directory).args(["-std=gnu11", "-O1", "-fPIE"]);
    run(command.arg(script(source)).args(arguments)).expect_code(0);
}

fn assert_load_ends_before_constructors(compiler: &str, launcher: &[&str]) {
    let library: (&str, &str, &[&str]) = ("constructed", "constructed.c", &["-DBUSY_MS=30"]);
    let built = compile(compiler, &[library], "constructed.c");
    best_of_three(|| {
        let record = Record::new();
        let setting = format!("LD_LIBRARY_PATH={}", built.path().display());
        let program = built.path().join("program").display().to_string();
        let words = [launcher, &["/usr/bin/env", &setting, &program]].concat();
        let truth = Truth::new(&record.run(words).expect_code(0).stdout);
        let file = rusqlite::Connection::open(record.file()).expect("a recording");
        let last_end = "SELECT origin_ns + load_ns FROM exec, recording ORDER BY enter_ns DESC LIMIT 1";
        let end = file.query_row(last_end, [], |row| row.get::<_, i64>(0));
        let end = end.expect("the end of a load");
        let gap = truth.one("constructor_began") - end;
        assert!(gap > 0, "it ended {} ns after the constructors began", -gap);
        ok_if(gap < MAX_GAP_NS, || format!("{gap} ns from the end to the constructors"))
    });
}

#[apply(live_test)]
#[needs(Musl)]
fn the_search_of_musls_loader_grows_with_the_number_of_directories() {
    let libraries = ["first", "second", "third"];
    let flags = libraries.map(|name| format!("-DNAME={name}"));
    let flags: Vec<[&str; 1]> = flags.iter().map(|flag| [flag.as_str()]).collect();
    let libraries = libraries.iter().zip(&flags);
    let libraries: Vec<(&str, &str, &[&str])> = libraries.map(|(name, flag)| (*name, "library.c", &flag[..])).collect();
    let built = compile("musl-gcc", &libraries, "needs_libraries.c");
    let [directory, program] = [built.path(), &built.path().join("program")].map(|path| path.display().to_string());
    for directories in [0, 300] {
        let missing = "/no/such/directory:".repeat(directories);
        let exec = exec_with_search_path(&program, &(missing + &directory), 0);
        // The C library is the loader itself.
        assert_eq!(exec["load_opens"], 3, "{exec}");
        assert_eq!(exec["load_failed_opens"], 3 * directories, "{exec}");
        assert_eq!(exec["load_cache"], Value::Null, "{exec}");
    }
    // Without LD_LIBRARY_PATH, musl's loader opens its list of directories, which does not count as
    // a library.
    let exec = exec_with_search_path(&program, "", 127);
    assert_eq!(exec["load_opens"], 0, "{exec}");
}
