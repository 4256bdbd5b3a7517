//! Recipes do what the launches did: they keep all arguments, and they are executed here, on names
//! that are hard to handle.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use spawnscope_analyze::explain::advice::{Advice, AdviceList, spliced};
use spawnscope_data::event::Language;

use crate::builder::Spans;
use crate::recordings::fix_of;
use crate::serial::{READ, Serial, advices, is_silent, only};

const COUNT: usize = 30;

/// Returns the advice on a script that runs a command line for each of `COUNT` inputs, for `millis`
/// each. `@` stands for the input.
fn for_each(millis: u64, words: &[&str]) -> AdviceList {
    let mut serial = Serial::new();
    let spans = Spans { run: millis * 1_000_000, ..Spans::USUAL };
    for number in 0..COUNT {
        let words: Vec<String> = words.iter().map(|word| word.replace('@', &number.to_string())).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        serial.launch(&spans, Some((words[0], &words)));
    }
    advices(&serial.finish())
}

/// Returns a script after the edit of the advice on its second line, which runs a command line for
/// each of `COUNT` inputs.
fn edited(script: &str, words: &[&str]) -> String {
    let mut serial = Serial::new();
    for number in 0..COUNT {
        let words: Vec<String> = words.iter().map(|word| word.replace('@', &number.to_string())).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let launch = serial.launch(&Spans::USUAL, Some((words[0], &words)));
        let line = serial.builder.line(Language::Bash, "script.sh", 2, "");
        serial.builder.set_call_chain(launch, &[line]);
    }
    let found = advices(&serial.finish());
    let edits = found.worth.into_iter().flat_map(Advice::separated).flat_map(|advice| advice.finding.edits);
    let splices = edits.map(|edit| edit.splices(script.as_bytes())).find_map(Result::ok);
    let splices = splices.unwrap_or_else(|| panic!("no edit of {script}"));
    String::from_utf8(spliced(script.as_bytes(), &splices)).unwrap()
}

/// Returns the command that a fix gives for the time after the loop.
fn after_the_loop(advice: &Advice) -> String {
    let fix = fix_of(advice);
    let command = fix.split_once("done | ").unwrap_or_else(|| panic!("no command after the loop: {fix}")).1;
    command.lines().next().unwrap().to_owned()
}

/// Returns the command by which a fix replaces a loop, with an array of these files.
fn instead_of_the_loop(advice: &Advice, files: &[&str]) -> String {
    let command = fix_of(advice).split_once("->  ").expect("a replacement").1.to_owned();
    let files: Vec<String> = files.iter().map(|file| format!("'{file}'")).collect();
    format!("bash -c \"files=({}); {}\"", files.join(" "), command.replace('"', "\\\"").replace('$', "\\$"))
}

/// Runs a command in a directory, with these words on standard input, each followed by NUL.
fn run(command: &str, directory: &Path, words: &[&str]) -> Output {
    fs::write(directory.join(".words"), words.iter().flat_map(|word| [word, "\0"]).collect::<String>()).unwrap();
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("{command} <.words")]).current_dir(directory).stdin(Stdio::null());
    shell.output().unwrap()
}

const NAMES: [&str; 4] = ["plain", "with space", "two\nlines", "-leading"];

fn directory_with_files() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    NAMES.iter().for_each(|name| fs::write(directory.path().join(name), name).unwrap());
    fs::create_dir(directory.path().join("into")).unwrap();
    directory
}

#[test]
fn arguments_that_all_launches_share_are_kept() {
    let lint = only(&for_each(40, &["php", "-l", "f@.php"]), "parallel");
    assert!(fix_of(&lint).contains("FILES... | xargs -0 -P2 -n1 php -l\n"), "{lint:?}");
    assert!(fix_of(&lint).contains("php -l ... &"), "{lint:?}");
    let convert = only(&for_each(40, &["convert", "f@.png", "-strip", "out dir"]), "parallel");
    assert!(fix_of(&convert).contains("xargs -0 -P2 -I{} convert {} -strip 'out dir'\n"), "{convert:?}");
    let hosts = only(&for_each(40, &["ssh-keyscan", "host@.example.com"]), "parallel");
    assert!(fix_of(&hosts).contains("ITEMS... | xargs -0 -P2 -n1 ssh-keyscan\n"), "{hosts:?}");
    let two = only(&for_each(40, &["convert", "f@.png", "g@.png"]), "parallel");
    assert!(!fix_of(&two).contains("xargs") && fix_of(&two).contains("convert ... ... &"), "{two:?}");
}

#[test]
fn programs_that_take_a_lock_are_not_advised_to_run_in_parallel() {
    assert!(!is_silent(&for_each(40, &["compile", "f@"]), "parallel"));
    for words in [&["dpkg", "--install", "f@.deb"][..], &["pip", "install", "f@"], &["git", "fetch", "f@"]] {
        assert!(is_silent(&for_each(40, words), "parallel"), "{words:?}");
    }
}

#[test]
fn programs_that_may_write_one_file_are_not_advised_to_run_in_parallel() {
    for words in [&["compile", "rc", "lib.a", "f@"][..], &["compile", "-o", "out/all", "f@"]] {
        assert!(is_silent(&for_each(40, words), "parallel"), "{words:?}");
    }
    for words in [&["compile", "--config", "all.yml", "f@"][..], &["compile", "0.5", "f@", "out/"]] {
        assert!(!is_silent(&for_each(40, words), "parallel"), "{words:?}");
    }
}

#[test]
fn a_list_of_files_is_handled_once_with_the_same_options() {
    let advice = only(&for_each(0, &["rm", "-f", "f@"]), "many-per-launch");
    let directory = directory_with_files();
    let output = run(&instead_of_the_loop(&advice, &NAMES), directory.path(), &[]);
    assert!(output.status.success(), "{output:?}");
    assert!(NAMES.iter().all(|name| !directory.path().join(name).exists()));
    assert!(run(&instead_of_the_loop(&advice, &[]), directory.path(), &[]).status.success(), "an empty list");
}

#[test]
fn files_with_one_destination_are_copied_at_once() {
    let advice = only(&for_each(0, &["cp", "-p", "f@", "into"]), "many-per-launch");
    let directory = directory_with_files();
    let output = run(&instead_of_the_loop(&advice, &NAMES), directory.path(), &[]);
    assert!(output.status.success(), "{output:?}");
    assert!(NAMES.iter().all(|name| fs::read_to_string(directory.path().join("into").join(name)).unwrap() == *name));
}

#[test]
fn pairs_are_moved_by_one_process_into_directories_too() {
    let command = after_the_loop(&only(&for_each(0, &["mv", "from@", "to@"]), "many-per-launch"));
    let directory = directory_with_files();
    let at = |name: &str| directory.path().join(name);
    fs::create_dir(at("tree")).unwrap();
    let words =
        ["plain", "new name", "with space", "into/", "two\nlines", "into", "tree", "into", "-leading", "-leading2"];
    let output = run(&command, directory.path(), &words);
    assert!(output.status.success(), "{command}: {output:?}");
    for (path, was) in [
        ("new name", "plain"),
        ("into/with space", "with space"),
        ("into/two\nlines", "two\nlines"),
        ("-leading2", "-leading"),
    ] {
        assert_eq!(fs::read_to_string(at(path)).unwrap(), was, "{path}");
    }
    assert!(at("into/tree").is_dir() && !at("tree").exists());

    fs::write(at("last"), "last").unwrap();
    let failed = run(&command, directory.path(), &["missing", "anywhere", "last", "into"]);
    assert_eq!(failed.status.code(), Some(1), "a failure is not hidden");
    assert!(String::from_utf8_lossy(&failed.stderr).contains("anywhere"), "{failed:?}");
    assert!(at("into/last").exists(), "the others are moved");
}

#[test]
fn options_of_pairs_are_not_dropped() {
    let fix = fix_of(&only(&for_each(0, &["cp", "-a", "from@", "to@/"]), "many-per-launch"));
    assert!(!fix.contains("perl") && fix.contains("cp -a -t DIRECTORY"), "{fix}");
    let links = after_the_loop(&only(&for_each(0, &["ln", "-s", "from@", "to@"]), "many-per-launch"));
    let directory = directory_with_files();
    assert!(run(&links, directory.path(), &["../plain", "into", "plain", "link"]).status.success());
    for link in ["into/plain", "link"] {
        assert_eq!(fs::read_to_string(directory.path().join(link)).unwrap(), "plain", "{link}");
    }
}

/// Returns the line of the advice on a script that looks items up in one file which has this word.
fn look_up_with(shell: &str, words: &[&str], word: &str) -> String {
    let mut serial = Serial::with_command(shell, &[shell, "x.sh"]);
    for number in 0..COUNT {
        let words: Vec<String> = words.iter().map(|word| word.replace('@', &number.to_string())).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        serial.launch_waiting(&Spans::USUAL, Some((words[0], &words)), READ);
    }
    let fix = fix_of(&only(&advices(&serial.finish()), "many-per-launch"));
    fix.lines().find(|line| line.contains(word)).unwrap_or_else(|| panic!("{fix}")).trim().to_owned()
}

#[test]
fn a_file_in_which_items_are_looked_up_is_read_once() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("a map"), "one 1st more\n\n* star\ntwo 2nd\n").unwrap();
    let words: [&[&str]; 2] = [&["grep", "^k@ ", "a map"], &["sed", "-n", "s/^k@ //p", "a map"]];
    for words in words {
        let read = look_up_with("/bin/bash", words, "typeset");
        let print = "for x in two missing '*'; do echo \"$x=${table[$x]}\"; done";
        let mut bash = Command::new("bash");
        let output = bash.args(["-ec", &format!("{read}\n{print}")]).current_dir(directory.path()).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), "two=2nd\nmissing=\n*=star\n", "{output:?}");
        let look_up =
            look_up_with("/bin/dash", words, "awk '").replace("ITEMS", "-").replace("...", "echo \"$key=$value\"");
        let output = run(&format!("{{ printf 'two\\nmissing\\n*\\n' | {look_up}; }}"), directory.path(), &[]);
        assert_eq!(String::from_utf8_lossy(&output.stdout), "two=2nd\nmissing=\n*=star\n", "{output:?}");
    }
    let mut fill_in = for_each(0, &["sed", "s/NAME/k@/", "template"]);
    fill_in.worth.retain(|advice| fix_of(advice).contains("read the file once"));
    assert!(fill_in.worth.is_empty(), "it prints the whole file");
}

/// Returns the advice on a `#!` script, of which a fork launches a program for each of `COUNT`
/// inputs, as the stages of a pipeline do.
fn in_a_pipeline(interpreter: &str, program: &str) -> String {
    let mut serial = Serial::with_command("./script", &[interpreter, "./script"]);
    let text = serial.builder.text(interpreter.as_bytes());
    serial.builder.recording.execs[0].interpreter = Some(text);
    for number in 0..COUNT {
        serial.launch(&Spans::USUAL, Some((program, &[program, &number.to_string()])));
    }
    let found = advices(&serial.finish());
    found.worth.iter().map(fix_of).collect()
}

#[test]
fn a_shell_is_given_only_syntax_that_it_has() {
    let bash = in_a_pipeline("/bin/bash", "date");
    assert!(bash.contains("printf '%(%F)T'"), "{bash}");
    let dash = in_a_pipeline("/bin/sh", "date");
    assert!(!dash.is_empty() && !dash.contains("%("), "{dash}");
    let openssl = in_a_pipeline("/bin/sh", "openssl");
    assert!(!openssl.contains("do the work in the shell"), "no shell does what openssl does: {openssl}");
}

/// `cat access.log | grep 404`: the shell would execute commands for each of the lines.
#[test]
fn a_shell_does_not_read_what_another_program_prints() {
    let advice_on = |has_writer: bool| {
        let mut serial = Serial::with_command("/bin/bash", &["bash", "x.sh"]);
        for number in 0..COUNT {
            let line = serial.builder.line(Language::Bash, "x.sh", 2, "");
            let cat: Option<(&str, &[&str])> = has_writer.then_some(("/bin/cat", &["cat", "access.log"]));
            let pattern = format!(" {number} ");
            let programs = [cat, Some(("/bin/grep", &["grep", "-q", &pattern]))];
            let mut began = None;
            for program in programs {
                let launch = serial.launch(&Spans::USUAL, program);
                began = began.or(serial.builder.row(launch).created);
                serial.builder.row(launch).created = began;
                serial.builder.set_call_chain(launch, &[line]);
            }
        }
        let found = advices(&serial.finish()).worth;
        found.into_iter().flat_map(Advice::separated).map(|advice| fix_of(&advice)).collect::<String>()
    };
    assert!(advice_on(false).contains("[[ $x "), "{}", advice_on(false));
    assert!(!advice_on(true).contains("[[ $x "), "{}", advice_on(true));
}

/// `edit/tests/executed.rs` executes all forms of edits; here the recording decides which of them
/// fits.
#[test]
fn the_edit_of_a_recorded_loop_does_the_same() {
    let cases: [(&[&str], &str, &str); 4] = [
        (&["chmod", "600", "--", "f@"], "for f in *; do chmod 600 -- \"$f\"; done", "chmod 600 -- *"),
        (&["javac", "-d", "out", "f@"], "for f in *; do javac -d out \"$f\"; done", "javac -d out *"),
        (&["sha256sum", "f@"], "ls | while read -r f; do sha256sum \"$f\"; done", "ls | xargs -r -d '\\n' sha256sum"),
        (&["cat", "f@"], "for n in 1 2; do cat f$n; done", "for n in 1 2; do printf '%s\\0' f$n; done | xargs -r0 cat"),
    ];
    for (words, line, expected) in cases {
        assert_eq!(edited(&format!("set -e\n{line}\n"), words), format!("set -e\n{expected}\n"));
    }
    let script = "set -e\nfor f in *; do chmod 600 -- \"$f\"; done\nstat -c '%a %n' -- *; exit 3";
    let [before, after] = [script.to_owned(), edited(script, cases[0].0)].map(|script| {
        let directory = directory_with_files();
        run(&script.replace('\n', "; "), directory.path(), &[])
    });
    assert!(after.stderr.is_empty(), "{after:?}");
    assert_eq!((before.status.code(), after.stdout), (Some(3), before.stdout));
}

#[test]
fn only_an_answer_that_cannot_change_is_kept() {
    let is_kept = |line: &str, calls: &[&[&str]]| {
        let mut serial = Serial::with_command("/bin/bash", &["bash", "script.sh"]);
        for call in (0..COUNT).flat_map(|_| calls) {
            let path = format!("/usr/bin/{}", call[0]);
            let launch = serial.launch_waiting(&Spans::USUAL, Some((&path, call)), READ);
            let line = serial.builder.line(Language::Bash, "script.sh", 2, "");
            serial.builder.set_call_chain(launch, &[line]);
        }
        let script = format!("set -e\n{line}\n");
        let found = advices(&serial.finish()).worth.into_iter().flat_map(Advice::separated);
        found.flat_map(|advice| advice.finding.edits).any(|edit| edit.splices(script.as_bytes()).is_ok())
    };
    let head: &[&str] = &["git", "rev-parse", "HEAD"];
    let line = "while read -r f; do x=$(git rev-parse HEAD); echo $x; done";
    assert!(is_kept(line, &[head]));
    assert!(!is_kept(line, &[head, &["git", "commit", "-m", "x"]]), "the commit changes the answer");
    let line = "while read -r f; do x=$(next-number db); echo $x; done";
    assert!(!is_kept(line, &[&["next-number", "db"]]), "the program may count");
}
