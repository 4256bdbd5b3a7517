//! Programs that are launched repeatedly for less work than their launch costs, and command lines
//! that a program runs through a shell. The rule knows nothing about the launched programs, so its
//! advice is general. It is dropped if a specific rule has advice about the same launches.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashSet};

use crate::advice::context::RuleContext;
use crate::advice::finding::Finding;
use crate::advice::languages::without_launching;
use crate::advice::phrases::{launches, name, option, time, times};
use crate::advice::selection::options;
use crate::advice::thresholds::is_mostly_tax_by_cpu_time;
use crate::patterns::chains::is_in_version_manager;
use crate::patterns::runtimes::Runtime;
use crate::patterns::shells::{command_of, is_shell, needless_shell};
use crate::phases::Phase;
use crate::tree::Forest;
use crate::whatif::AppliedChange;
use crate::whatif::changes::Change;
use spawnscope_data::event::Nanos;

/// Id of this rule.
pub(in crate::advice) const RULE: &str = "launch-loop";
const MAX_FINDINGS: usize = 3;
/// Minimum number of launches, or of command lines, in a finding. If there are only a few, each may
/// be necessary.
const MIN_LAUNCHES: usize = 20;
/// Maximum number of launches of one command line. With more launches, it is a script.
const MAX_LAUNCHES_OF_LINE: usize = 32;
/// Programs whose purpose is to launch others. Their input determines how many launches they make.
const LAUNCHERS: [&[u8]; 10] =
    [b"find", b"gfind", b"gmake", b"gxargs", b"make", b"ninja", b"parallel", b"xargs", b"cc", b"gcc"];
/// Programs that only change files.
const FILE_CHANGERS: [&[u8]; 9] = [b"chmod", b"chown", b"cp", b"install", b"ln", b"mkdir", b"mv", b"rm", b"touch"];
/// Programs whose work the parent cannot do itself.
const IRREPLACEABLE: [&[u8]; 3] = [b"sleep", b"sudo", b"ssh"];

pub(super) fn find(context: &RuleContext<'_, '_>) -> Vec<Finding> {
    let lines = command_lines(context);
    let launches_of_lines: HashSet<u32> = lines.iter().flat_map(|(_, lines)| lines.concat()).collect();
    let programs = frequent_programs(context, &launches_of_lines);
    let line_findings = lines.into_iter().map(|(kind, lines)| command_lines_finding(context, kind, &lines));
    let program_findings = programs.into_iter().map(|(kind, all)| finding(context, kind, all));
    line_findings.chain(program_findings).collect()
}

/// The names of a parent and of the program that it launches.
type ParentAndProgram<'a> = (&'a [u8], &'a [u8]);

/// Returns the programs that are launched often, without the launches in `excluded`.
fn frequent_programs<'a>(
    context: &RuleContext<'_, 'a>,
    excluded: &HashSet<u32>,
) -> Vec<(ParentAndProgram<'a>, Vec<u32>)> {
    let forest = context.forest();
    let mut by_kind: BTreeMap<(&[u8], &[u8]), Vec<u32>> = BTreeMap::new();
    for (index, launch) in context.launched() {
        let (parent, program) = (launch.birth_command.name, launch.command.name);
        let is_plain = launch.execs.len() == 1 && forest.children(index as usize).is_empty();
        let is_excluded = is_shell(program) || IRREPLACEABLE.contains(&program) || LAUNCHERS.contains(&parent);
        let is_excluded = is_excluded || excluded.contains(&index);
        if is_plain
            && !is_excluded
            && is_mostly_tax_by_cpu_time(context, index as usize)
            && !is_in_version_manager(forest, index)
            && !is_in_needless_shell(forest, index)
        {
            by_kind.entry((parent, program)).or_default().push(index);
        }
    }
    by_kind.retain(|_, all| all.len() >= MIN_LAUNCHES && !has_one_launch_per_process(context, all));
    // Sorted by launch tax, which is what can be saved. A program that runs long may have little
    // launch tax.
    let mut by_kind: Vec<_> = by_kind.into_iter().collect();
    by_kind.sort_by_key(|(_, all)| Reverse(tax_of(context, all)));
    by_kind.truncate(MAX_FINDINGS);
    by_kind
}

/// Whether a launch belongs to an unnecessary shell, about which the rule `needless-shell` has
/// better advice.
fn is_in_needless_shell(forest: &Forest<'_>, index: u32) -> bool {
    let parent = forest.parent(index as usize);
    parent.is_some_and(|parent| needless_shell(forest, parent as u32).is_some())
}

/// Whether each process of a compiled program made only one of the launches, as each `collect2`
/// starts one linker. Such a program needs its launch; the loop is in whatever launches the
/// program.
fn has_one_launch_per_process(context: &RuleContext<'_, '_>, all: &[u32]) -> bool {
    let forest = context.forest();
    let parents: HashSet<usize> =
        all.iter().filter_map(|index| ancestor_with_program(forest, *index as usize)).collect();
    parents.len() == all.len() && Runtime::of_parent(forest, all[0]) == Runtime::Native
}

/// Returns the process that made a launch. Its forks count as the process itself, so that a program
/// that forks for each launch is recognized.
fn ancestor_with_program(forest: &Forest<'_>, index: usize) -> Option<usize> {
    let mut parent = forest.parent(index)?;
    while forest.launches[parent].is_fork_without_exec() {
        parent = forest.parent(parent)?;
    }
    Some(parent)
}

/// Returns the lines that show how to make fewer launches. Shells have no builtins that change
/// files.
fn how_to_launch_less(forest: &Forest<'_>, program: &[u8], launch: u32) -> Vec<&'static str> {
    if Runtime::of_parent(forest, launch) == Runtime::Shell && FILE_CHANGERS.contains(&program) {
        return vec![
            "  pass several files to one launch",
            "  skip launches that change nothing, such as rm -f of a missing file",
            "  write a file under its final name at once instead of renaming it",
        ];
    }
    let mut lines = without_launching(forest, launch, Some(program)).to_vec();
    lines.push(match lines.is_empty() {
        true => "  pass all inputs to one launch, or keep one process that answers through a pipe",
        false => "  or pass all inputs to one launch, or keep one process that answers through a pipe",
    });
    lines
}

fn tax_of(context: &RuleContext<'_, '_>, all: &[u32]) -> Nanos {
    let taxes = all.iter().filter_map(|index| context.launch(*index).tax());
    Nanos(taxes.map(|tax| tax.0).sum())
}

/// Returns the command lines that programs other than shells run with `sh -c`, and that need a
/// shell. Each command line is a list of launches, with the shell first.
fn command_lines<'a>(context: &RuleContext<'_, 'a>) -> Vec<(ParentAndProgram<'a>, Vec<Vec<u32>>)> {
    let forest = context.forest();
    let mut by_kind: BTreeMap<ParentAndProgram<'a>, Vec<Vec<u32>>> = BTreeMap::new();
    // Command lines may be nested. Parents come before their children, so the outermost command
    // line is found first.
    let mut taken: HashSet<u32> = HashSet::new();
    for (index, launch) in context.launched() {
        let (parent, program) = (launch.birth_command.name, launch.command.name);
        let is_line = matches!(&launch.execs[..], [exec] if command_of(exec).is_some());
        if !is_line || taken.contains(&index) || LAUNCHERS.contains(&parent) {
            continue;
        }
        if needless_shell(forest, index).is_some()
            || matches!(Runtime::of_parent(forest, index), Runtime::Shell | Runtime::Make)
        {
            continue;
        }
        let members = forest.walk(&[index as usize]).map(|step| step.index as u32);
        let members: Vec<u32> = members.take(MAX_LAUNCHES_OF_LINE + 1).collect();
        if members.len() <= MAX_LAUNCHES_OF_LINE
            && members.iter().all(|member| is_mostly_tax_by_cpu_time(context, *member as usize))
            && !is_in_version_manager(forest, index)
        {
            taken.extend(&members);
            by_kind.entry((parent, program)).or_default().push(members);
        }
    }
    let mut by_kind: Vec<_> = by_kind.into_iter().filter(|(_, lines)| lines.len() >= MIN_LAUNCHES).collect();
    by_kind.sort_by_key(|(_, lines)| Reverse(context.spent_on(&lines.concat())));
    by_kind.truncate(MAX_FINDINGS);
    by_kind
}

fn command_lines_finding(
    context: &RuleContext<'_, '_>,
    (parent, shell): ParentAndProgram<'_>,
    lines: &[Vec<u32>],
) -> Finding {
    let title = format!("{} runs {} command lines through {}", name(parent), lines.len(), name(shell));
    let shells: Vec<u32> = lines.iter().map(|line| line[0]).collect();
    let mut all = lines.concat();
    all.sort_unstable();
    let evidence = format!(
        "{}, including forks without an exec, take {} in all, most of it launch tax",
        launches(all.len()),
        time(context.spent_on(&shells))
    );
    let doing = without_launching(context.forest(), lines[0][0], None);
    let changes = vec![AppliedChange { change: Change::InProcess, launches: all.clone() }];
    let options = options(context, &changes);
    Finding::modelled(RULE, title, all)
        .evidence(evidence)
        .with_example(context)
        .fix("do the work without a shell and its programs:")
        .fix_lines(doing.iter().copied())
        .fix("  or pass all inputs to one launch")
        .limits(LIMITS)
        .predicted_by_all(changes, options)
}

/// Limits of all findings of this rule.
const LIMITS: &str =
    "the parent may not be able to do this itself; the prediction keeps the work and removes only the launches";

fn finding(context: &RuleContext<'_, '_>, (parent, program): ParentAndProgram<'_>, all: Vec<u32>) -> Finding {
    let title = format!("{} launches {} {}", name(parent), name(program), times(all.len()));
    let spent = context.spent_on(&all);
    let evidence = format!(
        "{} take {} in all: {} launch tax and {} run",
        launches(all.len()),
        time(spent),
        time(tax_of(context, &all)),
        time(context.total_phase(&all, Phase::Run))
    );
    let fixes = how_to_launch_less(context.forest(), program, all[0]);
    Finding::modelled(RULE, title, all)
        .evidence(evidence)
        .with_example(context)
        .fix("launch it less often:")
        .fix_lines(fixes)
        .limits(LIMITS)
        .predicted_by(Change::InProcess, option("--in-process", program, parent))
}
