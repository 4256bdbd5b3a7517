//! On a terminal: Enter continues the process, standard input stays with the command, Ctrl-C ends
//! the command, and the terminal's settings are not changed.

use std::os::unix::process::ExitStatusExt;
use std::process::Command;

use nix::unistd::Pid;

use super::holding::{HOLD, state};
use crate::support::prelude::*;
use crate::support::pty::Session;

const PROMPT: &[u8] = b"Press Enter to continue it.";

fn start(command: &[&str]) -> Session {
    let mut hold = Command::new(HOLD[0]);
    hold.args(&HOLD[1..]).arg("--").args(command);
    Session::start(&hold)
}

#[apply(live_test)]
#[needs(Pty)]
fn enter_continues_the_held_process() {
    let dialogue = path("dialogue");
    let mut session = start(&[dialogue.to_str().expect("text")]);
    let before = session.settings();
    session.await_output(PROMPT);
    session.type_keys(b"\r");
    session.await_output(b"key?");
    session.type_keys(b"y");
    let (status, settings, screen) = session.finish_with_settings();
    assert_eq!(status.code(), Some(5), "{}", String::from_utf8_lossy(&screen));
    assert_eq!(settings, before, "the settings of the terminal are restored");
}

#[apply(live_test)]
#[needs(Pty)]
fn input_typed_after_enter_goes_to_the_command() {
    let mut session = start(&["sh", "-c", "read first; read second; echo \"<$first|$second>\""]);
    session.await_output(PROMPT);
    session.type_keys(b"go\rone\rtwo\r");
    session.await_output(b"<one|two>");
    let (status, _) = session.finish();
    assert_eq!(status.code(), Some(0));
}

#[apply(live_test)]
#[needs(Pty)]
fn standard_input_that_is_not_a_terminal_is_not_read() {
    let pipe = format!("printf 'one\\ntwo\\n' | {SPAWNSCOPE} hold -- cat; echo \"status $?\"");
    let mut command = Command::new("sh");
    command.args(["-c", &pipe]);
    let mut session = Session::start(&command);
    session.await_output(PROMPT);
    session.type_keys(b"\r");
    session.await_output(b"one\r\ntwo\r\nstatus 0");
    session.finish();
}

#[apply(live_test)]
#[needs(Pty)]
fn control_c_at_the_prompt_ends_the_command() {
    let mut session = start(&["sleep", "60"]);
    let before = session.settings();
    session.await_output(PROMPT);
    session.type_keys(b"\x03");
    let (status, settings, screen) = session.finish_with_settings();
    assert_eq!(status.signal(), Some(libc::SIGINT), "{}", String::from_utf8_lossy(&screen));
    assert_eq!(settings, before, "the settings of the terminal are restored");
}

#[apply(live_test)]
#[needs(Pty)]
fn a_process_that_another_process_continues_needs_no_enter() {
    let mut session = start(&["sh", "-c", "read line; echo \"<$line>\""]);
    session.await_output(PROMPT);
    let pid = held_process(&session);
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGCONT).expect("the process is there");
    session.await_output(b"was continued by another process");
    session.type_keys(b"its own\r");
    session.await_output(b"<its own>");
    session.finish();
}

/// Returns the process that the prompt names, once it is stopped.
fn held_process(session: &Session) -> Pid {
    let screen = String::from_utf8_lossy(&session.screen_so_far()).into_owned();
    let (_, rest) = screen.split_once("spawnscope: process ").expect("a notice");
    let (pid, _) = rest.split_once(' ').expect("a pid");
    let pid = Pid::from_raw(pid.parse().expect("a pid"));
    await_some("the stop of the process", || (state(pid) == Some('T')).then_some(()));
    pid
}
