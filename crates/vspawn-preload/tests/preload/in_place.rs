//! Small programs whose work the library does itself: output, errors, status and all files are
//! compared with those of the programs, for many lists of arguments, some of which fail.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::build::library;
use crate::differential::number_from_environment;
use crate::library::succeed;

/// The output of a script, and the files that it leaves.
#[derive(Debug, PartialEq, Eq)]
struct Outcome {
    output: String,
    errors: String,
    /// The mode, the number of links and the content of each file, by its name.
    files: BTreeMap<String, (u32, u64, String)>,
}

/// Creates the files that exist before each script.
const SETUP: &str = "echo one >a; echo two >'x y'; : >c.txt; echo read-only >w; chmod 444 w
    mkdir -m 755 d e; echo three >d/a; echo four >d/f; ln -s d l; ln -s missing k; ln -s a s\n";

/// Runs a script in a fresh directory, which always has the same name. Returns its outcome, and how
/// many programs were not executed.
fn run(script: &str, shell: &str, in_place: bool, variables: &[(&str, &str)]) -> (Outcome, u64) {
    let outer = tempfile::tempdir().expect("a directory");
    let (directory, page) = (outer.path().join("work"), outer.path().join("counters"));
    std::fs::create_dir(&directory).expect("a directory");
    std::fs::write(&page, [0; 4096]).expect("a file");
    succeed(Command::new("sh").args(["-ec", SETUP]).current_dir(&directory));
    let output = Command::new("timeout")
        .args(["300", shell, "-c", script])
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("LD_PRELOAD", library())
        .env("SPAWNSCOPE_ACCEL_PROGRAMS", if in_place { "1" } else { "0" })
        .env("SPAWNSCOPE_ACCEL_EXPLAIN", &page)
        .envs(variables.iter().copied())
        .current_dir(&directory)
        .stdin(Stdio::null())
        .output()
        .expect("timeout starts");
    assert_ne!(output.status.code(), Some(124), "{output:?}");
    let mut files = BTreeMap::new();
    list_files(&directory, &directory, &mut files);
    let outcome = Outcome {
        output: String::from_utf8_lossy(&output.stdout).into_owned(),
        errors: String::from_utf8_lossy(&output.stderr).into_owned(),
        files,
    };
    (outcome, in_place_count(&page))
}

fn in_place_count(page: &Path) -> u64 {
    let counters = std::fs::read(page).expect("a file");
    u64::from_ne_bytes(counters[80..88].try_into().expect("eight bytes"))
}

fn list_files(root: &Path, directory: &Path, files: &mut BTreeMap<String, (u32, u64, String)>) {
    // The tests run as root, who can read a directory without any permissions.
    for entry in std::fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("an entry").path();
        let status = std::fs::symlink_metadata(&path).expect("a file");
        let content = match std::fs::read_link(&path) {
            Ok(target) => target.to_string_lossy().into_owned(),
            Err(_) if status.is_file() => std::fs::read_to_string(&path).expect("a file"),
            Err(_) => String::new(),
        };
        if status.is_dir() {
            list_files(root, &path, files);
        }
        let name = path.strip_prefix(root).expect("below").to_string_lossy().into_owned();
        files.insert(name, (status.mode(), status.nlink(), content));
    }
}

/// Runs commands with the programs and in place, and compares the outcomes. Returns how many
/// programs were not executed.
fn compare(commands: &[String], shell: &str, variables: &[(&str, &str)]) -> u64 {
    let mut script = String::new();
    for command in commands {
        writeln!(script, "{command}\necho \"$? :\" * d/*").expect("a string");
    }
    let (with_programs, none) = run(&script, shell, false, variables);
    let (without, count) = run(&script, shell, true, variables);
    assert_eq!(none, 0);
    let lines = with_programs.output.lines().zip(without.output.lines());
    if let Some(at) = lines.clone().position(|(one, other)| one != other) {
        panic!("{shell}: output line {at}: {:?}\nof {commands:?}", lines.clone().nth(at));
    }
    assert_eq!(with_programs, without, "{shell}: {commands:?}");
    count
}

fn commands(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

/// After setpriv, a process has privileges that an exec would take away. A child of Python blocks
/// its parent until it executes a program.
#[test]
fn programs_that_are_not_shells_execute_every_program() {
    let deleting = "mkdir -m 755 p; : >p/f; setpriv --reuid=65534 --regid=65534 --clear-groups rm -f p/f; echo $?";
    let bounded = "setpriv --bounding-set=-all mkdir n; env basename a/b; python3 -Sc 'import os; os.system(\"rm a\")'";
    for script in [deleting, bounded] {
        // `mkdir -m` is executed, too.
        let (outcome, count) = run(script, "bash", true, &[]);
        assert_eq!(count, 0, "{outcome:?}");
        assert_eq!(outcome, run(script, "bash", false, &[]).0);
    }
}

#[test]
fn simple_calls_that_succeed_are_done_in_place() {
    let texts = [
        "dirname a/b", "dirname a", "dirname /", "dirname ///a//b//", "dirname ''", "dirname 'a b/c'",
        "x=$(dirname /usr/bin/x)", "basename a/b", "basename a/b/", "basename /", "basename ''", "basename c.txt .txt",
        "basename .txt .txt", "basename / /", "mkdir new", "mkdir -p new", "mkdir -p d l new/other", "rmdir new/other",
        "rmdir e", "rm a", "rm w", "rm -f 'x y' missing k", "mv c.txt c", "mv c d", "mv d/c .", "mv c l", "mv d/c d/g",
        "mv d moved", "ln -s a link", "ln -sf b other", "touch t u", "touch t", "dirname a/b >out",
        "basename a 2>/dev/null",
    ];
    for shell in ["bash", "dash"] {
        assert_eq!(compare(&commands(&texts), shell, &[]), texts.len() as u64, "{shell}");
    }
}

#[test]
fn failures_and_other_options_execute_the_program() {
    let texts = [
        "dirname", "dirname a b", "dirname -z a", "dirname -- a", "dirname --help >/dev/null", "basename",
        "basename a b c", "basename -a a b", "basename -s x a", "basename a -b", "dirname a >/dev/full",
        "dirname a >&-", "mkdir", "mkdir d", "mkdir a", "mkdir missing/x", "mkdir -m 700 m", "mkdir -v v",
        "mkdir m1 m2", "mkdir -p a", "mkdir -p n/m/o", "mkdir a/x", "mkdir -p ''", "mkdir ''", "rmdir d", "rmdir a",
        "rmdir missing", "rmdir -p e", "rm", "rm d", "rm missing", "rm -rf l/", "rm -f d", "rm -f a/",
        "rm -i a </dev/null", "rm a w", "mv", "mv a", "mv a a", "mv d d", "mv d d/x", "mv missing b", "mv a w",
        "mv -n a w", "mv d a", "mv c.txt w x", "mv e/ e2", "ln -s a", "ln -s a w", "ln -sf a w", "ln a hard",
        "ln -s a d", "ln -sfn a l", "touch -d 2000-01-01 a", "touch missing/x", "touch ''", "touch d", "touch -c none",
    ];
    for shell in ["bash", "dash"] {
        for text in texts {
            assert_eq!(compare(&commands(&[text]), shell, &[]), 0, "{shell} {text}");
        }
    }
}

#[test]
fn new_files_have_the_rights_that_the_mask_leaves() {
    for mask in ["000", "022", "077", "300", "777"] {
        let texts = format!("umask {mask}\nmkdir n\nmkdir -p m\ntouch t");
        assert_eq!(compare(&[texts], "bash", &[]), 3, "{mask}");
    }
}

/// Another preloaded library may change what the program does, and the loader may print something.
#[test]
fn other_settings_of_the_loader_execute_the_program() {
    let texts = commands(&["mkdir new", "dirname a/b"]);
    for variable in [("LD_BIND_NOW", "1"), ("LD_DEBUG", "help"), ("LD_LIBRARY_PATH", "/x")] {
        assert_eq!(compare(&texts, "bash", &[variable]), 0, "{variable:?}");
    }
    let other = format!("{}:libm.so.6", library().display());
    assert_eq!(compare(&texts, "bash", &[("LD_PRELOAD", &other)]), 0);
    let unset = commands(&["env -u LD_PRELOAD dirname a/b", "LD_PRELOAD= dirname a/b"]);
    assert_eq!(compare(&unset, "bash", &[]), 0);
    assert_eq!(compare(&texts, "bash", &[("SPAWNSCOPE_ACCEL", "0")]), 0);
    assert_eq!(compare(&texts, "bash", &[("SPAWNSCOPE_ACCEL_STRICT", "1")]), 0);
}

/// `perf record` links programs into its cache, which changes nothing. Multi-call programs have
/// several names in one directory; their options are not those of coreutils.
#[test]
fn a_link_elsewhere_is_allowed_and_one_beside_the_program_is_not() {
    let script = "set -e
        mkdir \"$0/bin\" \"$0/cache\"
        cp /usr/bin/bash /usr/bin/dirname /usr/bin/basename /usr/bin/mkdir \"$0/bin\"
        ln \"$0/bin/basename\" \"$0/cache\"
        ln \"$0/bin/mkdir\" \"$0/bin/busybox\"
        mount --bind \"$0/bin\" /usr/bin
        for command in 'dirname a/b' 'basename a/b' 'mkdir \"$0/new\"'; do LD_PRELOAD=$1 /usr/bin/bash -c \"$command\" \"$0\"; done";
    let directory = tempfile::tempdir().expect("a directory");
    let page = directory.path().join("counters");
    std::fs::write(&page, [0; 4096]).expect("a file");
    let isolated = ["--user", "--map-root-user", "--mount", "sh", "-c", script];
    succeed(
        Command::new("unshare")
            .args(isolated)
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .arg(directory.path())
            .arg(library())
            .env("SPAWNSCOPE_ACCEL_EXPLAIN", &page),
    );
    assert!(directory.path().join("new").is_dir());
    assert_eq!(in_place_count(&page), 2, "not mkdir");
}

/// What a script can find out about a command does not change, because the shell does not know
/// about the replacement.
#[test]
fn a_script_cannot_detect_the_replacement() {
    let texts = commands(&[
        "type mkdir; command -v dirname; hash",
        "set -e; trap 'echo error' ERR; mkdir d || echo failed",
        "set -x; dirname a/b; set +x",
        "declare -F; alias; echo \"$_\"",
        "mkdir one | cat; echo ${PIPESTATUS[*]}; mkdir one | cat; echo ${PIPESTATUS[*]}",
        "(trap '' PIPE; dirname a | cat); (trap 'echo pipe' PIPE; dirname a | cat)",
        "mkdir() { echo own; }; mkdir x; command mkdir x",
        "exec dirname a/b",
    ]);
    for text in texts {
        compare(&[text], "bash", &[]);
    }
}

const PROGRAMS: &[&str] = &["mkdir", "rmdir", "rm", "mv", "mv", "ln", "touch"];
const OPTIONS: &[&str] = &["", "", "", "-p", "-f", "-s", "-sf", "-v", "-n", "--", "-pf"];
/// All names are relative, so that nothing outside of the directory is changed.
const NAMES: &[&str] = &[
    "a", "b", "c", "d", "e", "l", "k", "s", "w", "d/a", "d/b", "e/c", "l/a", "k/a", "a/", "d/", "l/", "./a", "d/.",
    ".", "''", "'x y'", "n/m", "c.txt", "d//f", "a/b",
];
const PARTS: &[&str] = &["a", "/", "/", "b.c", ".", "..", "-", " ", "c", "é", "\\", "*"];

#[test]
fn random_lists_of_arguments_have_the_same_result() {
    let mut random = fastrand::Rng::with_seed(number_from_environment("VSPAWN_PRELOAD_SEED", 1));
    let count = number_from_environment("VSPAWN_PRELOAD_WHOLE_TEXTS", 300);
    let mut done = 0;
    for _ in 0..count.div_ceil(50) {
        let commands: Vec<String> = (0..50).map(|_| random_command(&mut random)).collect();
        let shell = *random.choice(&["bash", "dash"]).expect("shells");
        done += compare(&commands, shell, &[]);
    }
    assert!(done > count / 5, "{done} of {count} were done in place");
}

fn random_command(random: &mut fastrand::Rng) -> String {
    if random.bool() {
        let mut text = random.choice(["dirname", "basename"]).expect("programs").to_owned();
        for _ in 0..random.usize(1..3) {
            let parts = (0..random.usize(0..6)).map(|_| *random.choice(PARTS).expect("parts"));
            write!(text, " '{}'", parts.collect::<String>()).expect("a string");
        }
        return text;
    }
    let mut text = (*random.choice(PROGRAMS).expect("programs")).to_owned();
    for list in [OPTIONS, NAMES, NAMES] {
        write!(text, " {}", random.choice(list).expect("words")).expect("a string");
    }
    text
}
