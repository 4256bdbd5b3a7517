//! `top` on a pseudo-terminal: it shows launches, its keys work, and it restores the terminal,
//! however it ends. It draws only changed cells, so the tests wait for single words.

use std::process::Command;

use crate::support::prelude::*;
use crate::support::pty::Session;

const ENTER: &str = "\x1b[?1049h";
const LEAVE: &str = "\x1b[?1049l";

/// Starts a program on a new terminal.
fn on_terminal(words: &[&str]) -> Session {
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).env_remove("NO_COLOR");
    Session::start(&command)
}

/// Checks that the program ends with this status and has restored the terminal. Returns everything
/// that it has drawn.
#[track_caller]
fn finish(session: Session, code: i32, before: &nix::sys::termios::Termios) -> String {
    let (status, settings, screen) = session.finish_with_settings();
    let screen = String::from_utf8_lossy(&screen).into_owned();
    assert_eq!(status.code(), Some(code), "{screen}");
    assert_eq!(&settings, before, "the settings of the terminal are restored");
    let (entered, left) = (screen.rfind(ENTER), screen.rfind(LEAVE));
    let is_restored = entered < left && left.is_some();
    assert!(is_restored, "the original screen is restored: {screen:?}");
    let hidden = screen.rfind("\x1b[?25l");
    assert!(hidden < screen.rfind("\x1b[?25h"), "the cursor is shown again");
    screen
}

#[apply(live_test)]
#[needs(Pty)]
fn a_command_is_watched_to_its_end() {
    let script = "for i in 1 2 3 4 5; do \"$0\"; done; echo must not be seen; exit 7";
    let words = [SPAWNSCOPE, "top", "--", "sh", "-c", script, &word("tiny")];
    let mut session = on_terminal(&words);
    let before = session.settings();
    session.await_output(b"ENDED");
    session.await_output(b"tiny");
    session.type_keys(b"\r");
    session.await_output(b"details");
    session.type_keys(b"/sh");
    session.await_output(b"filter:");
    session.type_keys(b"\x1b");
    std::thread::sleep(std::time::Duration::from_millis(300));
    session.type_keys(b"q");
    let screen = finish(session, 7, &before);
    // The command does not write over the screen.
    assert!(!screen.contains("must not be seen\r\n"));
    assert!(screen.contains("\x1b[38;5;"), "colours");
}

#[apply(live_test)]
#[needs(Pty)]
fn the_machine_is_watched_until_a_key_or_a_signal() {
    let mut session = on_terminal(&["env", "NO_COLOR=1", SPAWNSCOPE, "top", "-a"]);
    let before = session.settings();
    session.await_output(ENTER.as_bytes());
    let tiny = path("tiny");
    await_some("the program in the list", || {
        run(&mut Command::new(&tiny));
        let seen = session.screen_so_far();
        seen.windows(4).any(|word| word == b"tiny").then_some(())
    });
    session.type_keys(b"\t");
    session.await_output(b"age");
    session.type_keys(b"\x03");
    let screen = finish(session, 0, &before);
    assert!(!screen.contains("\x1b[38;5;"), "colours with NO_COLOR");

    // This command runs longer than it is watched.
    let mut session = on_terminal(&[SPAWNSCOPE, "top", "--", "sleep", "3"]);
    let before = session.settings();
    session.await_output(b"running");
    session.type_keys(b"q");
    let screen = finish(session, 0, &before);
    assert!(screen.contains("the command keeps running"), "{screen}");

    let session = on_terminal(&["timeout", "--foreground", "-s", "TERM", "4", SPAWNSCOPE, "top", "-a"]);
    let before = session.settings();
    finish(session, 124, &before);
}

#[apply(live_test)]
#[needs(Pty, Setpriv)]
fn an_error_at_the_start_is_printed_on_the_original_screen() {
    let without_terminal = spawnscope(["top", "-a"]).expect_code(125);
    without_terminal.expect_errors(["top needs a terminal"]);

    let nobody = as_nobody();
    let mut words = vec![nobody.get_program().to_str().expect("text")];
    words.extend(nobody.get_args().map(|word| word.to_str().expect("text")));
    for (rest, code, why) in [(&["top", "-a"][..], 125, "sudo"), (&["top", "--", "/nonexistent"], 127, "/nonexistent")]
    {
        let words = [&words[..], &[SPAWNSCOPE], rest].concat();
        let (status, screen) = on_terminal(&words).finish();
        let screen = String::from_utf8_lossy(&screen);
        assert_eq!(status.code(), Some(code), "{screen}");
        assert!(screen.contains(why) && !screen.contains(ENTER), "{screen}");
    }
}

#[apply(live_test)]
#[needs(Pty)]
fn a_watched_command_inherits_what_it_would_inherit_without_the_view() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let files = ["plain", "watched"].map(|name| directory.path().join(name).display().to_string());
    // Redirected streams are the command's own; the view draws on the terminal.
    let script = "\"$0\" launch \"$0\" probe </dev/null >$2 2>/dev/null; \"$0\" launch \"$1\" top -- \"$0\" probe </dev/null >$3 2>/dev/null";
    let mut session = on_terminal(&["sh", "-c", script, &word("inherited"), SPAWNSCOPE, &files[0], &files[1]]);
    session.await_output(b"ENDED");
    session.type_keys(b"q");
    session.finish();
    let [plain, watched] = files.map(|file| std::fs::read_to_string(file).expect("the output of a probe"));
    assert!(plain.contains("timer 2: armed, every 500 s"), "{plain}");
    let differences: Vec<_> = plain.lines().zip(watched.lines()).filter(|(one, other)| one != other).collect();
    assert!(differences.is_empty() && plain.lines().count() == watched.lines().count(), "{differences:#?}");
}
