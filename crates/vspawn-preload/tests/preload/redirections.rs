//! Redirections: those that the library carries out itself have the same result as with dash. All
//! others are left to the shell, and with bash, all are.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::rc::Rc;

use crate::build::{Directory, Setting};
use crate::differential::number_from_environment;
use crate::text::{Destination, Mode, Words};

/// Ways to launch a program for which the library carries out all plain redirections.
const FUNCTIONS: [&str; 8] = ["execve", "execv", "execvp", "execvpe", "execl", "execlp", "execle", "vfork"];
/// Texts with plain redirections.
const PLAIN: [&[u8]; 12] = [
    b"probe a >out", b"probe a>out b", b">out probe a", b"probe >>out", b"probe > 'a b' 2> \"c d\"",
    b"probe 2>/dev/null", b"probe >/dev/null 2>&1", b"probe 2>&1 >/dev/null", b"probe 1>&2",
    b"probe <plain >out 2>>out", b"probe 2>&1 >out >a 2>b", b"probe 0<plain a\\>b c2>out",
];

fn assert_skipped(function: &'static str, texts: &[&[u8]], change: impl Fn(Setting) -> Setting) {
    let directory = Directory::new();
    let skipped = directory.compare(&change(Setting::new(function, "/bin/dash")), texts);
    assert_eq!(skipped, texts.len() as u64, "{function}");
}

fn assert_kept(function: &'static str, shell: &'static str, texts: &[&[u8]]) {
    let directory = Directory::new();
    for text in texts {
        let skipped = directory.compare(&Setting::new(function, shell), &[text]);
        assert_eq!(skipped, 0, "{function} {}", String::from_utf8_lossy(text));
    }
}

#[test]
fn the_exec_functions_carry_redirections_out() {
    for function in FUNCTIONS {
        assert_skipped(function, &PLAIN, |setting| setting);
    }
    for mask in ["077", "0", "027"] {
        assert_skipped("execve", &[b"probe >out 2>>err"], |setting| setting.with("LAUNCH_UMASK", mask));
    }
}

/// The library cannot read the caller's file actions.
#[test]
fn spawns_leave_redirections_to_the_shell() {
    assert_kept("posix_spawn", "/bin/dash", &[b"probe >out"]);
}

/// bash forks for a command with redirections, which is visible in SHLVL and in its messages.
#[test]
fn bash_carries_redirections_out_itself() {
    for text in PLAIN {
        assert_kept("execve", "/bin/bash", &[text]);
    }
}

#[test]
fn system_and_popen_carry_redirections_out_if_the_shells_message_is_known() {
    let directory = Directory::new();
    for function in ["system", "popen-w"] {
        for text in [
            "probe >out", "probe <plain >>out", "probe 2>/dev/null", "probe >/dev/null 2>&1", "probe >out 2>/dev/null",
            "probe >&2 2>/dev/null",
        ] {
            for signal in ["", "9", "11"] {
                let mut setting = Setting::new(function, "/bin/sh");
                if !signal.is_empty() {
                    setting = setting.with("PROBE_SIGNAL", signal);
                }
                assert_eq!(directory.compare(&setting, &[text.as_bytes()]), 1, "{function} {text} {signal}");
            }
        }
        for text in ["probe 2>&1", "probe 2>out", "probe >out 2>&1"] {
            let setting = Setting::new(function, "/bin/sh").with("PROBE_SIGNAL", "9");
            assert_eq!(directory.compare(&setting, &[text.as_bytes()]), 0, "{function} {text}");
        }
    }
    // The shell of the other stream's `cat` is skipped, too.
    for text in [&b"probe 2>/dev/null"[..], b"probe <plain >out"] {
        assert_eq!(directory.compare(&Setting::new("popen", "/bin/sh"), &[text]), 2);
    }
}

#[test]
fn redirections_that_cannot_be_opened_are_left_to_the_shell() {
    assert_kept(
        "execve",
        "/bin/dash",
        &[
            b"probe <missing", b"probe >out <missing 2>third", b"probe >/dev/null0/x", b"probe >directory",
            b"probe >plain/x", b"probe >/dev/full", b"probe >/dev/stdout", b"probe >&2 <missing",
            b"missing 2>/dev/null", b"./lostx >out",
        ],
    );
    // These fail only when they are tried.
    let directory = Directory::new();
    for text in
        [&b"script >out"[..], b"lost >out 2>err", b"./script >>out", b"plain >out", b"probe >first >missing/x 2>second"]
    {
        directory.compare(&Setting::new("execve", "/bin/dash"), &[text]);
        directory.compare(&Setting::new("system", "/bin/sh"), &[text]);
    }
}

#[test]
fn a_closed_descriptor_is_left_to_the_shell() {
    let directory = Directory::new();
    for (closed, text) in [("1", "probe 2>&1"), ("2", "probe >&2"), ("2", "probe >out 1>&2")] {
        let setting = Setting::new("execve", "/bin/dash").with("LAUNCH_CLOSE", closed);
        assert_eq!(directory.compare(&setting, &[text.as_bytes()]), 0, "{text}");
    }
    for (closed, text) in [("1", "probe >out"), ("2", "probe 2>out >&2"), ("0", "probe <plain")] {
        let setting = Setting::new("execve", "/bin/dash").with("LAUNCH_CLOSE", closed);
        assert_eq!(directory.compare(&setting, &[text.as_bytes()]), 1, "{text}");
    }
}

#[test]
fn other_operators_are_left_to_the_shell() {
    assert_kept(
        "execve",
        "/bin/dash",
        &[
            b"probe >|out", b"probe <>out", b"probe >&out", b"probe &>out; wait", b"probe 2>&-", b"probe <&-",
            b"probe 3>out", b"probe 12>out", b"probe 0>out", b"probe 1<plain", b"probe 2>&1a", b"probe 2>&1>out",
            b"probe >2>out", b"probe >", b"probe >''", b"probe >*", b"probe >~", b"probe >$HOME", b"probe <<a",
            b"probe <<<a", b"probe >(cat)", b"probe >out; probe", b"probe 2>out& wait", b"probe '2'>out", b">out",
            b">out a=b", b">out echo a",
        ],
    );
    assert_kept("execve", "/bin/dash", &[&[&b"probe"[..], &b" >a".repeat(9)].concat()]);
}

const PIECES: &[&str] = &[
    " >a", " >>a", " 2>a", " 2>>a", " 1>b", " 1>>b", " >b", " 2> b", " <a", " 0<b", "< a", ">b", ">>b", " >'a'",
    " 2>\"b\"", " 2>&1", " 1>&2", " >&2", " 2>/dev/null ", " >/dev/null ", " </dev/null ", " >/dev/null 2>&1", " <a2",
    "1", "2", " ", " x", "\\2", "''", "0", ">", "<", "&",
];

/// Each accepted text calls a shell function, with redirections, that writes to 1 and 2 and reads
/// from 0. One shell process runs many texts. The test carries out the redirections that the
/// library's parser returns, and compares the results.
#[test]
fn accepted_redirections_are_those_that_dash_reads() {
    let mut random = fastrand::Rng::with_seed(number_from_environment("VSPAWN_PRELOAD_SEED", 1));
    let mut remaining = number_from_environment("VSPAWN_PRELOAD_TEXTS", 5_000);
    let mut words = Words::new();
    while remaining > 0 {
        let (directory, emulation_directory) = (memory_directory(), memory_directory());
        let mut script = b"exec 9>&1 1>/dev/null 2>/dev/null\n\
            p() { printf '%s\\0' \"$@\" >&9; printf 1; printf 2 >&2; l=; IFS= read -r l; printf '\\1%s\\n' \"$l\" >&9; }\n"
            .to_vec();
        let mut expected = Vec::new();
        let mut texts = Vec::new();
        while texts.len() < 20_000.min(usize::try_from(remaining).expect("a count")) {
            let pieces: String = (0..random.usize(1..7)).map(|_| *random.choice(PIECES).expect("pieces")).collect();
            let text = format!("p{pieces}");
            let is_accepted = words.read(text.as_bytes()).is_ok() && words.get(0) == b"p";
            if !is_accepted || words.redirections().is_empty() {
                continue;
            }
            let before = expected.len();
            if !emulate_function(emulation_directory.path(), &words, &mut expected) {
                continue;
            }
            texts.push((text.clone(), before));
            script.extend_from_slice(text.as_bytes());
            script.push(b'\n');
        }
        remaining -= texts.len() as u64;
        let mut file = tempfile::NamedTempFile::new().expect("a file");
        file.write_all(&script).expect("a file");
        let output = Command::new("timeout")
            .args(["300", "dash"])
            .arg(file.path())
            .current_dir(directory.path())
            .stdin(Stdio::null())
            .output()
            .expect("dash");
        if output.stdout != expected {
            let pairs = output.stdout.iter().zip(&expected);
            let same = pairs.take_while(|(one, other)| one == other).count();
            let text = texts.iter().rev().find(|(_, start)| *start <= same);
            panic!("dash carries {text:?} out differently");
        }
        assert_eq!(contents(directory.path()), contents(emulation_directory.path()));
    }
}

fn contents(directory: &Path) -> BTreeMap<OsString, Vec<u8>> {
    let entries = std::fs::read_dir(directory).expect("a directory");
    entries
        .map(|entry| entry.expect("an entry"))
        .map(|entry| (entry.file_name(), std::fs::read(entry.path()).expect("a file")))
        .collect()
}

/// Creates a directory in memory, because file systems on disks are slow here: they write an
/// emptied file back at once.
fn memory_directory() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("a directory")
}

/// Does what the shell function does, with the redirections as the parser returned them. Returns
/// `false` without doing anything if a file to read is missing, since the library then leaves the
/// text to the shell.
fn emulate_function(directory: &Path, words: &Words, printed: &mut Vec<u8>) -> bool {
    for redirection in words.redirections() {
        if let Destination::File { name, mode: Mode::Read } = redirection.destination
            && !directory.join(std::str::from_utf8(words.name(name)).expect("text")).exists()
        {
            return false;
        }
    }
    let null = Rc::new(File::options().read(true).write(true).open("/dev/null").expect("a file"));
    let mut descriptors = [null.clone(), null.clone(), null];
    for redirection in words.redirections() {
        let file = match redirection.destination {
            Destination::Descriptor(from) => descriptors[usize::try_from(from).expect("a number")].clone(),
            Destination::File { name, mode } => {
                let name = std::str::from_utf8(words.name(name)).expect("text");
                let mut options = OpenOptions::new();
                match mode {
                    Mode::Read => options.read(true),
                    Mode::Write => options.write(true).create(true).truncate(true),
                    Mode::Append => options.append(true).create(true),
                };
                let file = options.open(directory.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
                Rc::new(file)
            }
        };
        descriptors[usize::try_from(redirection.target).expect("a number")] = file;
    }
    for index in 1..words.count().max(2) {
        printed.extend_from_slice(words.get(index));
        printed.push(0);
    }
    for (descriptor, text) in [(1, b"1"), (2, b"2")] {
        descriptors[descriptor].as_ref().write_all(text).expect("a file");
    }
    let mut input = Vec::new();
    descriptors[0].as_ref().read_to_end(&mut input).expect("a file");
    printed.push(1);
    printed.extend_from_slice(&input);
    printed.push(b'\n');
    true
}
