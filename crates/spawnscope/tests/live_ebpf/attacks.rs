//! The attacks of `attacks.sh`, which can be tried on any build of spawnscope, and which the one under test repels.

use std::process::Command;
use std::time::Duration;

use crate::support::run::{Running, SPAWNSCOPE};
use crate::support::{apply, live_test};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/attacks.sh");
/// It takes a minute on a quiet machine.
const DEADLINE: Duration = Duration::from_secs(600);

#[apply(live_test)]
#[needs(Ebpf, Setpriv, Ptrace, Python)]
fn every_attack_from_outside_is_repelled() {
    let finished = Running::start(Command::new("bash").args([SCRIPT, SPAWNSCOPE])).finish_within(DEADLINE);
    let told = finished.output();
    let repelled = told.lines().filter(|line| line.starts_with("repelled ")).count();
    assert!(
        repelled > 15 && repelled == told.lines().count(),
        "{told}{}",
        finished.errors()
    );
    assert_eq!(finished.code(), 0, "{told}{}", finished.errors());
}
