//! An interactive command on a pseudo-terminal: the terminal belongs to the command, and its
//! settings are not changed.

use crate::support::prelude::*;
use crate::support::pty::Session;

#[apply(live_test)]
#[needs(Pty)]
fn an_interactive_command_owns_its_terminal() {
    let record = Record::new();
    let mut session = Session::start(&record.command([path("dialogue")]));
    let before = session.settings();
    session.await_output(b"\x1b[1mkey?\x1b[0m ");
    session.type_keys(b"y");
    session.await_output(b"\x1b[2K\rgot y\r\n");
    // The recorder ends after the program. The settings are compared when both have ended.
    let (status, settings, screen) = session.finish_with_settings();
    let text = String::from_utf8_lossy(&screen);
    assert_eq!(status.code(), Some(5), "{text}");
    assert_eq!(settings, before, "the settings of the terminal are unchanged");
    assert!(text.contains("dialogue"), "the report follows: {text}");
    assert_eq!(text.matches("\x1b[?25l").count(), text.matches("\x1b[?25h").count(), "the cursor is shown again");
}

/// The pauses are long enough for a spinner to appear: before a line, within a line, and within a
/// line of another program.
#[apply(live_test)]
#[needs(Pty)]
fn an_unfinished_line_of_the_command_stays_as_it_is() {
    let record = Record::new().flags(&["--duration", "60"]);
    let script = "sleep 1.3; printf part; sleep 1.3; printf ' whole\\n'; sleep 0.3; printf via | tee /dev/null; sleep 1.3; echo ' tee'";
    let session = Session::start(&record.command(["sh", "-c", script]));
    let (status, screen) = session.finish();
    let text = String::from_utf8_lossy(&screen).into_owned();
    assert_eq!(status.code(), Some(0), "{text}");
    assert!(text.starts_with("part whole\r\nvia tee\r\n"), "{text:?}");
    assert!(!text.contains("recording:"), "a spinner was drawn: {text:?}");
}
