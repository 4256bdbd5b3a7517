//! The doctor's findings about running processes. The test starts these processes.

use crate::examination::examine;
use crate::support::prelude::*;

/// The doctor recognizes shells by name, so a copy of another program serves as one. Only real
/// processes show that memory and children are read correctly; everything else is tested on made-up
/// machines. It takes seconds to fill the memory. On a busy machine, the doctor may have no time to
/// measure the cost of a fork.
#[apply(live_test)]
#[needs(PidNs, Cc)]
fn a_large_shell_is_reported_with_the_cost_of_a_fork() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let shell = directory.path().join("bash");
    std::fs::copy(word("large_parent"), &shell).expect("the program can be copied");
    let shell = shell.display().to_string();
    let launcher = ["unshare", "--pid", "--fork", "--mount-proc", &shell, "600"];
    best_of_three(|| {
        let examination = examine(launcher, "large-parents");
        ok_if(!examination.unseen().contains("could not be measured"), || examination.unseen())?;
        let finding = examination.find("problem", &["bash (process", " now", "keep large data out"])?;
        assert!(finding["effect_ns"].as_u64() >= Some(10_000_000), "{finding:#}");
        Ok(())
    });
}
