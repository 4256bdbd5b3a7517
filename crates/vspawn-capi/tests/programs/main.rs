//! C programs that test the libraries. Each program in `tests/c` checks itself. It runs with the
//! shared library under AddressSanitizer with LeakSanitizer. Programs that depend on constructors
//! or forks also run with the static library; valgrind sees the accesses of the library itself.
//! Also tests where `make install` puts files.

mod build;
mod library;

use std::path::Path;
use std::process::Command;

use build::{Link, Program, libraries};
use library::{CRATE, succeed};

/// Declares a test for each program: its name, and how the program is linked.
macro_rules! programs {
    ($($(#[doc = $doc:literal])* $test:ident: $program:literal $($link:ident)+;)+) => {$(
        $(#[doc = $doc])*
        #[test]
        fn $test() {
            $(succeed(&mut Program::build($program, Link::$link).command(&[]));)+
        }
    )+};
}

programs! {
    every_property_of_a_command_takes_effect_in_its_child: "commands" Sanitized;
    children_are_waited_for_signalled_and_captured: "children" Sanitized;
    popen_reads_writes_and_keeps_streams_apart: "streams" Sanitized Static;
    system_treats_signals_as_posix_requires: "system" Sanitized Static;
    a_child_has_a_controlling_terminal: "terminals" Sanitized;
    popen_noshell_behaves_like_the_shell_or_refuses: "noshell" Sanitized;
    /// Does not run under AddressSanitizer, which has its own malloc.
    without_memory_every_call_returns: "memory" Shared;
}

#[test]
fn the_readme_begins_with_a_program_that_prints_what_it_shows() {
    let readme = std::fs::read_to_string(Path::new(CRATE).join("README.md")).expect("a file");
    let (_, rest) = readme.split_once("```c\n").expect("a program");
    let (program, rest) = rest.split_once("```\n\n```\n").expect("its output");
    let (shown, _) = rest.split_once("```").expect("the end of its output");
    let directory = tempfile::tempdir().expect("a directory");
    let source = directory.path().join("first.c");
    std::fs::write(&source, program).expect("a file");
    let output = succeed(&mut Program::build_from(&source, Link::Shared).command(&[]));
    assert_eq!(String::from_utf8_lossy(&output.stdout), shown);
}

const VALGRIND: [&str; 4] =
    ["valgrind", "--leak-check=full", "--show-leak-kinds=definite,possible,indirect", "--error-exitcode=99"];

/// valgrind refuses clone3 and replaces clone(VM, VFORK) by a fork, so that the child runs in a
/// copy of the parent's memory. The parent then does not learn of a failed exec. Therefore, only
/// spawns that succeed run under valgrind.
#[test]
fn twenty_popens_leak_no_memory_under_valgrind() {
    let program = Program::build("streams", Link::Shared);
    let output = succeed(program.command(&VALGRIND).arg("20"));
    let report = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(report.contains("ERROR SUMMARY: 0 errors"), "{report}");
}

#[test]
fn null_is_an_error_everywhere_without_an_invalid_access() {
    succeed(&mut Program::build("nulls", Link::Shared).command(&VALGRIND));
}

#[test]
fn the_headers_compile_as_cpp() {
    let directory = tempfile::tempdir().expect("a directory");
    let source = directory.path().join("both.cpp");
    std::fs::write(
        &source,
        "#include <vspawn.h>\n#include <popen_noshell.h>\nint main() { return vspawn_pclose(stdin) != -1; }\n",
    )
    .expect("a file");
    let include = Path::new(CRATE).join("include");
    succeed(Command::new("cc").args(["-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-I"]).arg(include).arg(source));
}

#[test]
fn an_installed_library_is_found_by_pkg_config_and_runs() {
    let directory = tempfile::tempdir().expect("a directory");
    let (prefix, program) = (directory.path().join("usr"), directory.path().join("program"));
    let mut make = Command::new("make");
    make.arg("-C").arg(Path::new(CRATE).join("../..")).arg("install-library");
    make.arg(format!("PREFIX={}", prefix.display())).arg(format!("LIBRARY_FROM={}", libraries().display()));
    succeed(make.env_remove("MAKEFLAGS").env_remove("DESTDIR"));
    let flags = |extra: &[&str]| {
        let mut pkg_config = Command::new("pkg-config");
        pkg_config.args(["--cflags", "--libs"]).args(extra).arg("vspawn");
        let output = succeed(pkg_config.env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig")));
        let flags = String::from_utf8(output.stdout).expect("flags");
        flags.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    let source = Path::new(CRATE).join("tests/c/streams.c");
    let mut cc = Command::new("cc");
    cc.args(["-std=c11", "-pthread", "-Wno-unused"]).arg(&source).arg("-o").arg(&program).args(flags(&[]));
    succeed(&mut cc);
    let mut installed = Command::new(&program);
    succeed(installed.arg("3").env("LD_LIBRARY_PATH", prefix.join("lib")));
    assert!(prefix.join("share/man/man3/vspawn.3").exists());
    // Without the shared library, the flags from pkg-config are enough for a static link.
    std::fs::remove_file(prefix.join("lib/libvspawn.so")).expect("it was installed");
    let mut cc = Command::new("cc");
    cc.args(["-std=c11", "-pthread"]).arg(&source).arg("-o").arg(&program).args(flags(&["--static"]));
    succeed(&mut cc);
    succeed(Command::new(&program).arg("3").env_remove("LD_LIBRARY_PATH"));
}

#[test]
fn the_manual_page_is_well_formed() {
    let page = Path::new(CRATE).join("../../docs/man/vspawn.3");
    let output = succeed(Command::new("groff").args(["-man", "-Tutf8", "-ww", "-z"]).arg(page));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}
