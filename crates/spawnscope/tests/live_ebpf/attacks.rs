//! Runs `attacks.sh`, which attacks a build of spawnscope. The build under test must repel every
//! attack.

use std::process::Command;
use std::time::Duration;

use crate::support::prelude::*;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/attacks.sh");
/// The script takes a minute on a quiet machine.
const DEADLINE: Duration = Duration::from_secs(600);

#[apply(live_test)]
#[needs(Setpriv, Ptrace, Python)]
fn every_attack_from_outside_is_repelled() {
    let finished = Running::start(Command::new("bash").args([SCRIPT, SPAWNSCOPE])).finish_within(DEADLINE);
    let output = finished.output();
    let repelled = output.lines().filter(|line| line.starts_with("repelled ")).count();
    assert!(repelled > 12 && repelled == output.lines().count(), "{output}{}", finished.errors());
    assert_eq!(finished.code(), 0, "{output}{}", finished.errors());
}
