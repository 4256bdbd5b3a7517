//! The library is left out of the environment of programs that it cannot be loaded into, or that it
//! would break.

use std::path::Path;
use std::process::Command;

use crate::build::{Directory, FUNCTIONS, Setting, library};
use crate::library::{CRATE, succeed};
use crate::obstacle::{Obstacle, is_sanitizer, obstacle};

/// Compiles the program that prints its LD_PRELOAD. Returns whether the compiler is there and can
/// do that, which CI requires.
fn compile(directory: &Directory, compiler: &str, options: &[&str]) -> bool {
    let source = Path::new(CRATE).join("tests/c/loaded.c");
    let mut cc = Command::new("timeout");
    cc.args(["60", compiler]).args(options).arg(source).arg("-o").arg(directory.path().join("loaded"));
    let is_compiled = cc.output().expect("timeout").status.success();
    if !is_compiled {
        assert!(std::env::var_os("CI").is_none(), "{compiler} {options:?} does not work");
        eprintln!("SKIPPED: {compiler} {options:?} does not work");
    }
    is_compiled
}

/// Returns the LD_PRELOAD that a program prints, or its error.
fn loaded(directory: &Directory, setting: &Setting) -> String {
    let result = directory.run(setting, &[b"x"], true);
    let output = result.output.strip_suffix("status 0\n--\n").unwrap_or(&result.output);
    format!("{output}{}", result.errors)
}

#[test]
fn programs_with_an_obstacle_do_not_get_the_library() {
    let directory = Directory::new();
    let own = format!("{}\n", library().display());
    let script = directory.path().join("loaded-script");
    std::fs::write(&script, "#! ./loaded -x\n").expect("a file");
    succeed(Command::new("chmod").arg("755").arg(script));
    for (compiler, options, is_loaded) in [
        ("cc", &["-DLAUNCHES"][..], true),
        ("cc", &[], false),
        ("cc", &["-DLAUNCHES", "-static"], false),
        ("cc", &["-DLAUNCHES", "-static-pie"], false),
        ("gcc", &["-DLAUNCHES", "-fsanitize=address"], false),
        ("musl-gcc", &["-DLAUNCHES"], false),
    ] {
        if !compile(&directory, compiler, options) {
            continue;
        }
        let expected = if is_loaded { &own } else { "none\n" };
        for function in FUNCTIONS.into_iter().chain(["execl-more"]) {
            for file in ["./loaded", "./loaded-script"] {
                let setting = Setting::new(function, file);
                assert_eq!(loaded(&directory, &setting), *expected, "{function} {file} {options:?}");
            }
        }
        for function in ["execve", "posix_spawn", "system", "popen"] {
            let result = directory.run(&Setting::new(function, "/bin/sh"), &[b"./loaded"], true);
            assert_eq!(
                (result.output.lines().next(), &*result.errors),
                (expected.lines().next(), ""),
                "{function} {options:?}"
            );
        }
    }
}

#[test]
fn other_libraries_and_the_order_of_the_variables_are_kept() {
    let directory = Directory::new();
    let value = format!("libm.so.6 {}:libdl.so.2", library().display());
    let setting = Setting::new("execve", "./probe").with("LD_PRELOAD", &value).with("A", "1").with("Z", "2");
    let setting = setting.with("PROBE_UNSORTED", "1");
    let [off, on] = [false, true].map(|with| directory.run(&setting, &[b"x"], with).output);
    assert_eq!(off, on, "the probe is static");
    assert!(on.contains("[LD_PRELOAD=libm.so.6:libdl.so.2]\nvariable"), "{on}");
    let names: Vec<_> = on.lines().filter_map(|line| line.strip_prefix("variable [")?.split('=').next()).collect();
    assert_eq!(names, ["A", "LD_PRELOAD", "PATH", "PROBE_UNSORTED", "Z"]);
}

/// As after a chroot, or without the right to read the library: the loader would print an error.
#[test]
fn a_library_that_cannot_be_found_is_left_out() {
    let directory = tempfile::tempdir().expect("a directory");
    let copy = directory.path().join("libvspawn_preload.so");
    std::fs::copy(library(), &copy).expect("a copy");
    let script = "rm -f libvspawn_preload.so; env; : end";
    let mut dash = Command::new("timeout");
    dash.args(["60", "dash", "-c", script]).env_clear().env("LD_PRELOAD", &copy).current_dir(&directory);
    let output = succeed(&mut dash);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("PWD=") && !text.contains("LD_PRELOAD"), "{text}");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

#[test]
fn obstacles_are_read_from_the_headers() {
    let directory = tempfile::tempdir().expect("a directory");
    let of = |content: &[u8]| {
        let path = directory.path().join("file");
        std::fs::write(&path, content).expect("a file");
        obstacle(&std::ffi::CString::new(path.to_str().expect("a path")).expect("a path"))
    };
    let program = std::fs::read("/usr/bin/env").expect("a program");
    let with = |at: usize, value: u8| [&program[..at], &[value], &program[at + 1..]].concat();
    assert_eq!(of(&program), None);
    assert_eq!(of(&with(4, 1)), Some(Obstacle::Foreign), "32 bits");
    assert_eq!(of(&with(5, 2)), Some(Obstacle::Foreign), "big endian");
    assert_eq!(of(&with(18, 3)), Some(Obstacle::Foreign), "another machine");
    let itself = format!("#!{}\n", directory.path().join("file").display());
    for text in [b"", &program[..70], b"#!", b"#! \n", b"\x7fELF", b"echo a", itself.as_bytes()] {
        of(text);
    }
    let mut random = fastrand::Rng::with_seed(1);
    for _ in 0..2_000 {
        let mut damaged = program[..4096].to_vec();
        damaged[random.usize(4..1024)] = random.u8(..);
        of(&damaged);
    }
    for name in ["libasan.so.8", "libtsan.so.2", "libubsan.so.1", "libclang_rt.asan-x86_64.so", "libhwasan.so"] {
        assert!(is_sanitizer(name.as_bytes()), "{name}");
    }
    for name in ["libc.so.6", "libsane.so.1", "san", "ld-linux-x86-64.so.2", ""] {
        assert!(!is_sanitizer(name.as_bytes()), "{name}");
    }
}
