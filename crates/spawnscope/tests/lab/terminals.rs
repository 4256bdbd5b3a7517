//! The progress of `bench` on terminals with limited abilities.

use std::process::Command;

use crate::bench::BRIEF;
use crate::support::pty::Session;
use crate::support::run::SPAWNSCOPE;
use crate::support::{apply, live_test};

fn screen_of(command: &str) -> String {
    let mut shell = Command::new("sh");
    shell.args(["-c", command, "sh", SPAWNSCOPE]).args(BRIEF).arg("growth");
    // In continuous integration, colors are assumed for any terminal type.
    shell.env_remove("CI");
    let (status, screen) = Session::start(&shell).finish();
    let screen = String::from_utf8_lossy(&screen).into_owned();
    assert!(status.success(), "{screen}");
    screen
}

/// No line is overwritten, and none contains block characters.
#[apply(live_test)]
#[needs(Pty)]
fn a_terminal_that_only_prints_is_not_drawn_on() {
    let screen = screen_of("TERM=dumb exec \"$@\"");
    assert!(screen.contains("spawnscope: 1/1 growth; Ctrl-C"), "{screen}");
    assert!(!screen.contains('\u{1b}') && !screen.contains(['█', '░']), "{screen:?}");
}

#[apply(live_test)]
#[needs(Pty)]
fn no_word_of_the_progress_is_cut_on_a_narrow_terminal() {
    let screen = screen_of("stty cols 40 && TERM=xterm exec \"$@\"");
    assert!(screen.contains("1/1 growth ["), "{screen}");
    assert!(!screen.contains("Ctrl"), "{screen}");
}
