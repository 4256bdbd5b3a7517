//! Which executables count as shells, and the call site of a launch whose parent has ended: it may
//! be unknown, but never wrong.

use std::fs;
use std::path::Path;

use crate::support::chains::{chain_of, labelled_chains};
use crate::support::prelude::*;

#[apply(live_test)]
fn lines_are_right_when_the_parent_ends_at_once() {
    let record = Record::new();
    let script = format!("\n{} orphan & disown; kill -9 $$", word("tiny"));
    // The recording ends with the command, so the outer shell waits until the orphan has ended.
    record.run(["sh", "-c", "bash -c \"$1\"; sleep 1", "sh", &script]);
    assert_eq!(chain_of(&labelled_chains(&record.file()), "orphan"), "?:2");
}

/// Imitates a stripped bash by overwriting a symbol name that the dynamic loader does not need.
#[apply(live_test)]
fn a_bash_that_exports_nothing_has_no_lines() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let bash = directory.path().join("bash");
    let mut program = fs::read("/bin/bash").expect("bash");
    let name = b"\0parse_and_execute_level\0";
    let at = program.windows(name.len()).position(|window| window == name);
    let at = at.expect("the symbol");
    program[at + 1..at + name.len() - 1].fill(b'x');
    write_program(&bash, program);
    let script = format!("{} launched; :", word("tiny"));
    for (bash, expected) in [(bash.as_path(), ""), (Path::new("/bin/bash"), "?:1")] {
        let record = Record::new().recorded([bash, "-c".as_ref(), script.as_ref()]);
        assert_eq!(chain_of(&labelled_chains(&record.file()), "launched"), expected);
    }
}

/// As in a container, a new copy of bash is at a path that the recorder does not see. It runs until
/// it is recognised.
#[apply(live_test)]
#[needs(MountNs)]
fn a_bash_of_another_mount_namespace_is_recognised_while_it_runs() {
    with_growing_lengths(try_private_mount);
}

fn try_private_mount(sleeps: u32) -> Result<(), String> {
    let tiny = word("tiny");
    let script = format!(
        "mount -t tmpfs none /mnt && cp /bin/bash /mnt/shell && printf '{tiny} early\\nsleep {sleeps}\\n\\n{tiny} late\\n' > /mnt/main.sh \
         && /mnt/shell /mnt/main.sh"
    );
    let chains = labelled_chains(&Record::new().recorded(["unshare", "--mount", "sh", "-c", &script]).file());
    for (name, chain) in [("early", "main.sh:1"), ("late", "main.sh:4")] {
        // The chain is unknown or right.
        assert!(["", chain].contains(&chain_of(&chains, name)), "{chains:?}");
    }
    ok_if(!chain_of(&chains, "late").is_empty(), || format!("not recognised within {sleeps} s"))
}

#[apply(live_test)]
fn script_lines_can_be_switched_off() {
    let script = format!("{} launched; :", word("tiny"));
    let record = Record::new().flags(&["--no-lines"]).recorded(["bash", "-c", &script]);
    assert_eq!(chain_of(&labelled_chains(&record.file()), "launched"), "");
}
