//! Command lines that a program runs with `sh -c`: one shell per file of find and xargs, per line of a recipe, per job of GNU parallel, or per call
//! of a language. `needless-shell` is about lines that need no shell.

use std::collections::{BTreeMap, BTreeSet};

use super::{Cure, IN_LANGUAGE, MANY, certain, finding, open};
use crate::explain::advice::context::RuleContext;
use crate::explain::advice::functions::functions;
use crate::explain::advice::phrases::{launches, literal, name, option, quoted, time, times};
use crate::explain::advice::rules::needless_shell::{PARALLEL, is_needless, is_per_file_launcher};
use crate::explain::advice::selection::options;
use crate::explain::advice::sites::Site;
use crate::explain::advice::thresholds::{MIN_REPETITIONS, is_mostly_tax_by_cpu_time};
use crate::patterns::runtimes::Runtime;
use crate::patterns::shells::{command_of, is_shell, needless_shell};
use crate::predict::whatif::AppliedChange;
use crate::predict::whatif::changes::Change;

/// Maximum number of launches of one command line. With more launches, it is a script.
const MAX_LAUNCHES_OF_LINE: usize = 32;
/// Minimum number of command lines in a loop. If there are only a few, each may be necessary.
const MIN_LINES: usize = 20;
/// Lines belong to one recipe only if the most frequent one runs at most this many times as often as the least frequent one.
const MAX_COUNT_RATIO: usize = 2;
/// Number of jobs per CPU that keeps all CPUs busy.
const JOBS_PER_CPU: usize = 4;

/// Returns the cure of command lines.
pub(super) fn cure(context: &RuleContext<'_, '_>, site: &Site<'_>) -> Option<Cure> {
    let mut all = site.launches.clone();
    all.retain(|index| context.launch(*index).execs.first().and_then(command_of).is_some());
    if all.len() * 2 < site.launches.len() || all.len() < MIN_REPETITIONS {
        return None;
    }
    match Runtime::of_parent(context.forest(), all[0]) {
        _ if site.parent == PARALLEL => Some(jobs(context, site, all)),
        _ if is_per_file_launcher(site.parent) => per_file(context, site, all),
        Runtime::Make => recipe(context, site, &all),
        Runtime::Shell => None,
        runtime => functions_for(context, site, runtime, &all).or_else(|| lines(context, site, all)),
    }
}

/// One shell for each file, although one shell could loop over many files.
fn per_file(context: &RuleContext<'_, '_>, site: &Site<'_>, mut all: Vec<u32>) -> Option<Cure> {
    all.retain(|index| takes_one_file(context, *index) && !is_needless(context, *index));
    (all.len() >= MIN_REPETITIONS).then_some(())?;
    let loop_command = match site.parent {
        b"find" | b"gfind" => "  find ... -exec sh -c 'for f; do ... \"$f\" ...; done' sh {} +",
        _ => "  xargs sh -c 'for f; do ... \"$f\" ...; done' sh",
    };
    let with = quoted(&format!(
        "--in-process={},parent={}",
        literal(context.launch(all[0]).command.name),
        literal(site.parent)
    ));
    let finding = finding(context, site, MANY, ", once per file", all)
        .fix("loop over many files in one shell:")
        .fix(loop_command)
        .limits(
            "programs that the shell launches for each file are still launched; `xargs -P` then has fewer, larger jobs",
        )
        .predicted_by(Change::InProcess, with);
    Some(open(finding))
}

/// Whether `find` ends the command with `;`, or `xargs` passes one argument or line at a time.
fn takes_one_file(context: &RuleContext<'_, '_>, index: u32) -> bool {
    let Some(exec) = context.forest().launcher(index as usize) else {
        return false;
    };
    let mut arguments = exec.arguments();
    if exec.program_name().ends_with(b"find") {
        return arguments.any(|argument| argument == b";");
    }
    arguments.any(|argument| argument == b"-n1" || argument == b"-I{}" || argument == b"-L1")
        || exec.arguments().zip(exec.arguments().skip(1)).any(|pair| matches!(pair, (b"-n" | b"-L", b"1") | (b"-I", _)))
}

/// GNU parallel always runs a job in a shell, but can pass many arguments to each job.
fn jobs(context: &RuleContext<'_, '_>, site: &Site<'_>, all: Vec<u32>) -> Cure {
    let jobs = context.recording.info.cpus as usize * JOBS_PER_CPU;
    let size = (all.len() / jobs.max(1)).max(2);
    let finding = finding(context, site, MANY, ", each job through its own shell", all)
        .fix("pass many arguments to each job, if the program takes several files:")
        .fix(format!(
            "  parallel -m PROGRAM   (or -X, which also repeats the text around {{}}; -n{size} sets the number of arguments per job)"
        ))
        .fix("or launch without a shell and without parallel's overhead for each job:")
        .fix("  xargs -P\"$(nproc)\" -n1 PROGRAM")
        .limits("with -m and -X, results and exit statuses are per job, not per argument")
        .predicted_by(Change::Batch(size as u32), format!("--batch=parent=parallel={size}"));
    certain(finding)
}

/// Recipes of make with several lines, each of which needs a shell. make can start one shell per target.
fn recipe(context: &RuleContext<'_, '_>, site: &Site<'_>, all: &[u32]) -> Option<Cure> {
    let mut by_line: BTreeMap<Vec<u8>, Vec<u32>> = BTreeMap::new();
    for &index in all {
        if let Some(line) = line_of_recipe(context, index) {
            by_line.entry(line).or_default().push(index);
        }
    }
    by_line.retain(|_, all| all.len() >= MIN_REPETITIONS);
    let (least, most) = (by_line.values().map(Vec::len).min()?, by_line.values().map(Vec::len).max()?);
    if by_line.len() < 2 || most > MAX_COUNT_RATIO * least {
        return None;
    }
    let lines = by_line.len();
    let mut all: Vec<u32> = by_line.into_values().flatten().collect();
    all.sort_unstable();
    let with = format!("{}={lines}", option("--batch", context.launch(all[0]).command.name, site.parent));
    let finding = finding(context, site, MANY, &format!(", about {lines} times for each target"), all)
        .fix("run all lines of a recipe in one shell:")
        .fix("  .ONESHELL:                       once in the makefile (GNU make), with .SHELLFLAGS = -ec")
        .fix("  or join the lines:  first && second")
        .limits("with .ONESHELL, `@` and `-` count only at the beginning of a recipe, and `cd` also affects the lines after it")
        .predicted_by(Change::Batch(lines as u32), with);
    Some(certain(finding))
}

/// Returns the line of a recipe without the words that differ between targets: file names and numbers. `None` if its shell is unnecessary, or if
/// make reads its output, as for `$(shell ...)`.
fn line_of_recipe(context: &RuleContext<'_, '_>, index: u32) -> Option<Vec<u8>> {
    let launch = context.launch(index);
    let text = launch.execs.first().and_then(command_of)?;
    let is_recipe =
        launch.execs.len() == 1 && !context.is_captured(index) && needless_shell(context.forest(), index).is_none();
    let is_file = |word: &&[u8]| word.iter().any(|byte| b"./".contains(byte) || byte.is_ascii_digit());
    let words = text.split(|byte| *byte == b' ').filter(|word| !is_file(word));
    is_recipe.then(|| words.collect::<Vec<_>>().join(&b' '))
}

/// Command lines of a language that has functions for all of their programs.
fn functions_for(context: &RuleContext<'_, '_>, site: &Site<'_>, runtime: Runtime, shells: &[u32]) -> Option<Cure> {
    let forest = context.forest();
    let tops: Vec<usize> = shells.iter().map(|launch| *launch as usize).collect();
    let mut all: Vec<u32> = forest.walk(&tops).map(|step| step.index as u32).collect();
    all.sort_unstable();
    let programs = all.iter().map(|index| context.launch(*index)).filter(|launch| !launch.execs.is_empty());
    let programs: BTreeSet<&[u8]> =
        programs.map(|launch| launch.command.name).filter(|program| !is_shell(program)).collect();
    let lines: Option<Vec<String>> =
        programs.iter().map(|program| Some(format!("  {}: {}", name(program), functions(runtime, program)?))).collect();
    let lines = lines.filter(|lines| !lines.is_empty())?;
    let programs: Vec<String> = programs.into_iter().map(name).collect();
    let changes = vec![AppliedChange { change: Change::InProcess, launches: all.clone() }];
    let with = options(context, &changes);
    let mut finding = finding(context, site, IN_LANGUAGE, "", all)
        .fix(format!("do the work in {}, which launches nothing:", runtime.label()))
        .fix_lines(lines)
        .limits("what the shell adds, such as redirections and expansions, must be written in the language, too")
        .predicted_by_all(changes, with);
    let place = super::place(context, site);
    finding.title =
        format!("{} runs {} through a shell {}{place}", name(site.parent), programs.join(" and "), times(shells.len()));
    Some(certain(finding))
}

/// Command lines of a language that need their shell, and whose launches all work for less time than it takes to launch them.
fn lines(context: &RuleContext<'_, '_>, site: &Site<'_>, mut shells: Vec<u32>) -> Option<Cure> {
    let forest = context.forest();
    shells.retain(|index| {
        let members = forest.walk(&[*index as usize]).take(MAX_LAUNCHES_OF_LINE + 1);
        let small = members.map(|step| is_mostly_tax_by_cpu_time(context, step.index)).enumerate();
        context.launch(*index).execs.len() == 1
            && needless_shell(forest, *index).is_none()
            && small.into_iter().all(|(number, is_small)| number < MAX_LAUNCHES_OF_LINE && is_small)
    });
    (shells.len() >= MIN_LINES && is_shell(context.launch(shells[0]).command.name)).then_some(())?;
    let tops: Vec<usize> = shells.iter().map(|launch| *launch as usize).collect();
    let mut all: Vec<u32> = forest.walk(&tops).map(|step| step.index as u32).collect();
    all.sort_unstable();
    let runtime = Runtime::of_parent(forest, shells[0]);
    let spent = format!(
        "{}, including forks without an exec, take {} in all, most of it launch tax",
        launches(all.len()),
        time(context.spent_on(&shells))
    );
    let changes = vec![AppliedChange { change: Change::InProcess, launches: all.clone() }];
    let with = options(context, &changes);
    let mut finding = finding(context, site, IN_LANGUAGE, "", all)
        .evidence(spent)
        .fix(format!("do the work in {}, without a shell and its programs", runtime.label()))
        .fix("or pass all inputs to one launch, or keep one process that answers through a pipe")
        .limits(
            "the parent may not be able to do this itself; the prediction keeps the work, without the launches and their start-up",
        )
        .predicted_by_all(changes, with);
    finding.title = format!("{} runs {} command lines through {}", name(site.parent), shells.len(), name(site.program));
    Some(certain(finding))
}
