//! `sh -c 'program arguments'`: launches through a shell of a command that needs no shell.

use std::collections::BTreeMap;

use crate::advice::context::{name, time};
use crate::advice::{Basis, Finding, RuleContext};
use crate::patterns::shells::needless_shell;
use crate::whatif::Fix;
use crate::whatif::changes::Change;
use spawnscope_data::units;

pub(super) fn find(context: &RuleContext<'_, '_>) -> Vec<Finding> {
    let mut by_parent: BTreeMap<&[u8], Vec<u32>> = BTreeMap::new();
    for (index, launch) in (0..).zip(&context.forest().launches) {
        if launch.is_launch() && launch.parent.get().is_some() && needless_shell(context.forest(), index).is_some() {
            by_parent.entry(launch.birth_command.name).or_default().push(index);
        }
    }
    by_parent
        .into_iter()
        .map(|(parent, launches)| finding(context, parent, launches))
        .collect()
}

fn finding(context: &RuleContext<'_, '_>, parent: &[u8], launches: Vec<u32>) -> Finding {
    let count = units::counted(launches.len() as u64, "launch", "launches");
    let parent = name(parent);
    Finding {
        rule: "needless-shell",
        title: format!("{parent} starts programs through an unnecessary shell"),
        evidence: vec![format!(
            "{count} by {parent} through `sh -c`, {} in all; none of the commands needs a shell",
            time(context.spent_on(&launches))
        )],
        example: context.example(&launches),
        fix: vec![
            "start the program directly, with its arguments as a list:".to_owned(),
            "  Python: subprocess.run([\"prog\", \"arg\"]) without shell=True".to_owned(),
            "  C: posix_spawnp() instead of system() or popen()".to_owned(),
            "  Perl, Ruby: system(\"prog\", \"arg\")".to_owned(),
            "  Node: execFile()".to_owned(),
            "  make: a recipe line without quotes, redirections and ; needs no shell".to_owned(),
        ],
        limits: "commands with pipes, redirections, wildcards or several steps still need a shell".to_owned(),
        whatif: format!("--no-shell=parent={parent}"),
        tries: vec![Fix {
            change: Change::NoShell,
            launches: launches.clone(),
        }],
        basis: Basis::Modelled,
        launches,
    }
}
