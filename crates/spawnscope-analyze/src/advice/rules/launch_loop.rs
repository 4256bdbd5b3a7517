//! Any program that is launched again and again for less work than its launch takes, and command lines that a program has a shell run. The rule
//! knows nothing about what is launched, so its advice is general, and is omitted where another rule has advice about the same launches.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashSet};

use crate::advice::context::RuleContext;
use crate::advice::finding::Finding;
use crate::advice::languages::without_launching;
use crate::advice::phrases::{launches, name, option, time, times};
use crate::advice::thresholds::{largest, uses_less_than_its_tax};
use crate::patterns::chains::is_inside;
use crate::patterns::runtimes::Runtime;
use crate::patterns::shells::{command_of, is_shell, needless_shell};
use crate::phases::Phase;
use crate::whatif::Fix;
use crate::whatif::changes::Change;

/// Id of this rule.
pub(in crate::advice) const RULE: &str = "launch-loop";
const MAX_FINDINGS: usize = 2;
/// Minimum number of launches. A program that is launched a few times may have a reason for each.
const MIN_LAUNCHES: usize = 20;
/// Programs whose launches are their purpose; their input decides how many there are.
const LAUNCHERS: [&[u8]; 8] = [
    b"find",
    b"gmake",
    b"make",
    b"ninja",
    b"parallel",
    b"xargs",
    b"cc",
    b"gcc",
];
/// Programs that nothing in the parent can replace.
const IRREPLACEABLE: [&[u8]; 3] = [b"sleep", b"sudo", b"ssh"];

pub(super) fn find(context: &RuleContext<'_, '_>) -> Vec<Finding> {
    let lines = command_lines(context);
    let of_lines: HashSet<u32> = lines.iter().flat_map(|(_, lines)| lines.concat()).collect();
    let of_programs = programs(context, &of_lines);
    let of_lines = lines
        .into_iter()
        .map(|(kind, lines)| command_lines_finding(context, kind, &lines));
    let of_programs = of_programs.into_iter().map(|(kind, all)| finding(context, kind, all));
    of_lines.chain(of_programs).collect()
}

/// The names of a parent and of the program that it launches.
type Kind<'a> = (&'a [u8], &'a [u8]);

/// Returns the programs that are launched often, without these launches.
fn programs<'a>(context: &RuleContext<'_, 'a>, without: &HashSet<u32>) -> Vec<(Kind<'a>, Vec<u32>)> {
    let forest = context.forest();
    let mut kinds: BTreeMap<(&[u8], &[u8]), Vec<u32>> = BTreeMap::new();
    for (index, launch) in context.launched() {
        let (parent, program) = (launch.birth_command.name, launch.command.name);
        // The rule `needless-shell` has better advice about these.
        let is_in_needless_shell = || {
            let parent = forest.parent(index as usize);
            parent.is_some_and(|parent| needless_shell(forest, parent as u32).is_some())
        };
        let is_plain = launch.execs.len() == 1 && forest.children(index as usize).is_empty();
        let is_known = is_shell(program) || IRREPLACEABLE.contains(&program) || LAUNCHERS.contains(&parent);
        let is_known = is_known || without.contains(&index);
        let is_small = || uses_less_than_its_tax(context, index as usize);
        if is_plain && !is_known && is_small() && !is_inside(forest, index) && !is_in_needless_shell() {
            kinds.entry((parent, program)).or_default().push(index);
        }
    }
    kinds.retain(|_, all| all.len() >= MIN_LAUNCHES);
    largest(context, kinds, MAX_FINDINGS)
}

/// Returns the command lines that programs other than shells run by `sh -c`, and that need a shell: each as the launches that it consists of, the
/// shell first.
fn command_lines<'a>(context: &RuleContext<'_, 'a>) -> Vec<(Kind<'a>, Vec<Vec<u32>>)> {
    let forest = context.forest();
    let mut kinds: BTreeMap<Kind<'a>, Vec<Vec<u32>>> = BTreeMap::new();
    for (index, launch) in context.launched() {
        let (parent, program) = (launch.birth_command.name, launch.command.name);
        let is_line = matches!(&launch.execs[..], [exec] if command_of(exec).is_some());
        let is_for_a_shell = || matches!(Runtime::of_parent(forest, index), Runtime::Shell | Runtime::Make);
        if !is_line || LAUNCHERS.contains(&parent) || is_for_a_shell() || needless_shell(forest, index).is_some() {
            continue;
        }
        let line: Vec<u32> = forest.walk(&[index as usize]).map(|step| step.index as u32).collect();
        if line.iter().all(|each| uses_less_than_its_tax(context, *each as usize)) && !is_inside(forest, index) {
            kinds.entry((parent, program)).or_default().push(line);
        }
    }
    let mut kinds: Vec<_> = kinds
        .into_iter()
        .filter(|(_, lines)| lines.len() >= MIN_LAUNCHES)
        .collect();
    kinds.sort_by_key(|(_, lines)| Reverse(context.spent_on(&lines.concat())));
    kinds.truncate(MAX_FINDINGS);
    kinds
}

fn command_lines_finding(context: &RuleContext<'_, '_>, (parent, shell): Kind<'_>, lines: &[Vec<u32>]) -> Finding {
    let title = format!("{} has {} run {} command lines", name(parent), name(shell), lines.len());
    let shells: Vec<u32> = lines.iter().map(|line| line[0]).collect();
    let mut all = lines.concat();
    all.sort_unstable();
    let evidence = format!(
        "{} and forks, {} in all; most of it is launch tax",
        launches(all.len()),
        time(context.spent_on(&shells))
    );
    let programs: BTreeSet<String> = all
        .iter()
        .map(|index| context.launch(*index))
        .map(|launch| option("--in-process", launch.command.name, launch.birth_command.name))
        .collect();
    let options = programs.into_iter().collect::<Vec<_>>().join(" ");
    let runtime = Runtime::of_parent(context.forest(), lines[0][0]);
    let tries = vec![Fix {
        change: Change::InProcess,
        launches: all.clone(),
    }];
    Finding::modelled(RULE, title, all)
        .evidence(evidence)
        .with_example(context)
        .fix("do the work without a shell and its programs:")
        .fixes(without_launching(runtime).iter().copied())
        .fix("  or pass all inputs to one launch")
        .limits(LIMITS)
        .predicted_by_all(tries, options)
}

/// What is not known of any program.
const LIMITS: &str = "whether the parent can do this itself depends on the program; the prediction keeps the work and removes only the launches";

fn finding(context: &RuleContext<'_, '_>, (parent, program): Kind<'_>, all: Vec<u32>) -> Finding {
    let title = format!("{} launches {} {}", name(parent), name(program), times(all.len()));
    let spent = context.spent_on(&all);
    let evidence = format!(
        "{} take {} in all, most of it launch tax; the program runs for {} of it",
        launches(all.len()),
        time(spent),
        time(context.phase_of(&all, Phase::Run))
    );
    let runtime = Runtime::of_parent(context.forest(), all[0]);
    Finding::modelled(RULE, title, all)
        .evidence(evidence)
        .with_example(context)
        .fix("launch it less often:")
        .fixes(without_launching(runtime).iter().copied())
        .fix("  or pass all inputs to one launch, or keep one process that answers through a pipe")
        .limits(LIMITS)
        .predicted_by(Change::InProcess, option("--in-process", program, parent))
}
