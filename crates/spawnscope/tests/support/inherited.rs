//! What a command inherits: with spawnscope in between, it must be the same as without it.

use std::process::Command;

use super::run::{Record, SPAWNSCOPE, run};
use super::workloads::word;

/// Records a probe of all inherited properties, and compares it with a probe that is not recorded.
pub fn assert_a_recorded_command_inherits_the_same() {
    let record = Record::new().through(&[&word("inherited"), "launch"]).flags(&["-q"]);
    assert_the_same(record.command(probe()), |_| true);
}

/// The same for another verb. `is_compared` excludes properties that the verb changes.
pub fn assert_inherits_the_same_through(verb: &[&str], is_compared: impl Fn(&str) -> bool) {
    let mut command = Command::new(word("inherited"));
    command.args(["launch", SPAWNSCOPE]).args(verb).arg("--").args(probe());
    assert_the_same(command, is_compared);
}

fn probe() -> [String; 2] {
    [word("inherited"), "probe".to_owned()]
}

/// The probe's status shows that an ignored SIGCHLD hides no status.
fn assert_the_same(mut through_spawnscope: Command, is_compared: impl Fn(&str) -> bool) {
    let plain = run(Command::new(word("inherited")).arg("launch").args(probe())).expect_code(9).output();
    assert!(plain.contains("timer 2: armed, every 500 s") && plain.contains("environment: =no name"), "{plain}");
    let through = run(&mut through_spawnscope).expect_code(9).output();
    let [plain, through] =
        [&plain, &through].map(|output| output.lines().filter(|line| is_compared(line)).collect::<Vec<_>>());
    let differences: Vec<_> = plain.iter().zip(&through).filter(|(one, other)| one != other).collect();
    assert!(differences.is_empty(), "{differences:#?}");
    assert_eq!(plain, through);
}
