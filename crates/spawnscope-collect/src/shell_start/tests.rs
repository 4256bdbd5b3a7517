//! Real shells with small start-up files, in a home of their own.

use std::path::Path;

use super::*;

fn home(files: &[(&str, &str)]) -> tempfile::TempDir {
    let home = tempfile::tempdir().unwrap();
    for (name, text) in files {
        std::fs::write(home.path().join(name), text).unwrap();
    }
    home
}

fn starter(shell: &str) -> Starter {
    Starter::new(File::open(Path::new("/usr/bin").join(shell)).ok().as_ref())
}

/// Starts a shell that reads only the files of this home.
fn started(home: &Path, words: &[&str]) -> Start {
    let shell = words[0];
    let environment = [format!("HOME={}", home.display()), format!("ZDOTDIR={}", home.display())];
    let environment = environment.into_iter().chain([format!("ENV={}/.shrc", home.display())]);
    let words =
        ["/usr/bin/env".to_owned()].into_iter().chain(environment).chain(words.iter().map(|&word| word.to_owned()));
    let words = words.map(OsString::from).collect();
    let command = ShellCommand { words, prompts: 3, timeout: Duration::from_secs(10) };
    starter(shell).start(&command, true).unwrap()
}

/// Returns the time that the shell spent at a line, in milliseconds: its own, and that of programs.
fn spent(start: &Start, file: &str, line: u32) -> [u64; 2] {
    let mut spent = [0, 0];
    for observed in &start.observed {
        let is_there = |frame: &Frame| {
            frame.line == Some(line) && frame.file.as_deref().is_some_and(|found| found.ends_with(file.as_bytes()))
        };
        if observed.activity.frames.iter().any(is_there) {
            spent[usize::from(observed.activity.program.is_some())] += observed.time.0 / 1_000;
        }
    }
    spent.map(|micros| micros / 1_000)
}

const LOOP: &str = "i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done\n";

#[test]
fn the_time_of_each_line_is_found_without_stopping_the_shell() {
    for (shell, name) in [(&["bash", "-i"][..], ".bashrc"), (&["zsh", "-i"], ".zshrc"), (&["dash", "-i"], ".shrc")] {
        if !Path::new("/usr/bin").join(shell[0]).exists() {
            continue;
        }
        let home = home(&[(name, &format!("true\nsleep 0.2\n{LOOP}true\n"))]);
        let start = started(home.path(), shell);
        assert_eq!((start.prompts.len(), &start.failure), (4, &None), "{shell:?}");
        let [own, launched] = spent(&start, name, 2);
        assert!(launched >= 150 && own * 4 < launched, "{shell:?}: sleep: {own} {launched} {:?}", start.observed);
        let [own, launched] = spent(&start, name, 3);
        assert!(own > 10 && launched * 4 < own, "{shell:?}: loop: {own} {launched} {:?}", start.observed);
        assert!(start.prompts[0] > Nanos(200_000_000) && start.prompts[1] < start.prompts[0], "{:?}", start.prompts);
    }
}

#[test]
fn lines_in_functions_of_zsh_are_lines_of_the_file() {
    if !Path::new("/usr/bin/zsh").exists() {
        return;
    }
    let home = home(&[(".zshrc", "true\nf() {\n  true\n  sleep 0.2\n}\nf\neval 'true\nsleep 0.2'\n")]);
    let start = started(home.path(), &["zsh", "-i"]);
    let place =
        |frame: &Frame| (frame.line, frame.function.as_ref().map(|name| String::from_utf8_lossy(name).into_owned()));
    let waits = start.observed.iter().filter(|observed| observed.time > Nanos(100_000_000));
    let mut waits: Vec<Vec<_>> = waits.map(|observed| observed.activity.frames.iter().map(place).collect()).collect();
    waits.sort();
    let f = Some("f".to_owned());
    assert_eq!(waits[0], [(Some(4), f), (Some(6), None)], "{waits:?}");
    assert_eq!(waits[1].last(), Some(&(Some(7), None)), "{waits:?}");
}

#[test]
fn a_start_up_file_that_asks_is_not_a_prompt() {
    let home = home(&[(".bashrc", "true\nread -p 'Update? ' answer\n")]);
    let start = started(home.path(), &["bash", "-i"]);
    let Some(Failure::Asks(frames)) = start.failure else { panic!("{start:?}") };
    assert_eq!((frames[0].line, start.prompts.len()), (Some(2), 0));
}

#[test]
fn a_shell_that_ends_or_hangs_has_no_prompt() {
    let ended = home(&[(".bashrc", "exit 3\n")]);
    let start = started(ended.path(), &["bash", "-i"]);
    assert_eq!(start.failure, Some(Failure::Ended(3 << 8)));
    let hangs = home(&[(".bashrc", "true\nsleep 100\n")]);
    let words =
        ["/usr/bin/env".to_owned(), format!("HOME={}", hangs.path().display()), "bash".to_owned(), "-i".to_owned()];
    let words = words.into_iter().map(OsString::from).collect();
    let start = start_with_timeout(words);
    let Some(Failure::Busy(frames, Some(program))) = start.failure else { panic!("{start:?}") };
    assert_eq!((frames[0].line, program.name.as_slice()), (Some(2), &b"sleep"[..]));
}

fn start_with_timeout(words: Vec<OsString>) -> Start {
    let command = ShellCommand { words, prompts: 0, timeout: Duration::from_millis(500) };
    starter("bash").start(&command, false).unwrap()
}

#[test]
fn history_is_left_alone() {
    let home = home(&[(".bashrc", "HISTFILE=~/history\n"), ("history", "one\ntwo\n")]);
    let start = started(home.path(), &["bash", "-i"]);
    assert_eq!(start.prompts.len(), 4, "{start:?}");
    assert_eq!(std::fs::read_to_string(home.path().join("history")).unwrap(), "one\ntwo\n");
}
