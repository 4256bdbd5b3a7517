//! Command lines that a program runs with `sh -c`: one shell per file of find and xargs, per line
//! of a recipe, per job of GNU parallel, or per call of a language. `needless-shell` is about lines
//! that need no shell.

use std::collections::BTreeMap;

use super::{Cure, IN_LANGUAGE, MANY, certain, files, finding, open};
use crate::explain::advice::context::{MIN_REPETITIONS, RuleContext};
use crate::explain::advice::finding::Finding;
use crate::explain::advice::functions::functions_in;
use crate::explain::advice::phrases::{launches, literal, name, option, quoted, time, times};
use crate::explain::advice::rules::needless_shell::{PARALLEL, is_needless};
use crate::explain::advice::shared_line::arguments_of;
use crate::explain::advice::sites::Site;
use crate::explain::advice::sites::grouping::first_word;
use crate::model::grouped::grouped;
use crate::patterns::programs::has_property;
use crate::patterns::runtimes::Runtime;
use crate::patterns::shells::{command_of, is_shell, needless_shell};
use crate::predict::whatif::changes::Change;
use spawnscope_data::units;

/// Maximum number of launches of one command line. With more launches, it is a script.
const MAX_LAUNCHES_OF_LINE: usize = 32;
/// Minimum number of command lines in a loop. If there are only a few, each may be necessary.
const MIN_LINES: usize = 20;
/// Lines belong to one recipe only if the most frequent one runs at most this many times as often
/// as the least frequent one.
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
        _ if has_property(site.parent, "per-item") => per_file(context, site),
        Runtime::Make => recipe(context, site, &all),
        Runtime::Shell => in_this_shell(context, site, all),
        runtime => of_language(context, site, runtime, all),
    }
}

/// One shell for each file, although one shell could loop over many files.
pub(super) fn per_file(context: &RuleContext<'_, '_>, site: &Site<'_>) -> Option<Cure> {
    let mut all = site.launches.clone();
    all.retain(|index| {
        has_property(site.parent, "per-item") && context.launch(*index).execs.first().and_then(command_of).is_some()
    });
    all.retain(|index| files::launcher_of(context, *index).is_some() && !is_needless(context, *index));
    (all.len() >= MIN_REPETITIONS).then_some(())?;
    let with = quoted(&format!(
        "--in-process={},parent={}",
        literal(context.launch(all[0]).command.name),
        literal(site.parent)
    ));
    let finding = finding(context, site, MANY, ", once per file", all)
        .recipe("shell-per-file", &[&name(site.parent)], &[])
        .predicted_by(Change::InProcess, with);
    Some(open(finding))
}

/// A shell that starts another one for each line. A login shell also reads its start-up files each
/// time.
fn in_this_shell(context: &RuleContext<'_, '_>, site: &Site<'_>, mut all: Vec<u32>) -> Option<Cure> {
    // A line with arguments of its own would need a function.
    let is_whole = |index: &u32| {
        context.launch(*index).execs.first().is_some_and(|exec| command_of(exec) == exec.arguments().last())
    };
    all.retain(|index| is_whole(index) && !is_needless(context, *index));
    all.retain(|index| is_shell(context.launch(*index).command.name));
    (all.len() >= MIN_REPETITIONS).then_some(())?;
    let exec = context.launch(all[0]).execs.first()?;
    let mut options = exec.arguments().skip(1).take_while(|word| word.starts_with(b"-"));
    let is_login = options.any(|word| word == b"--login" || !word.starts_with(b"--") && word.contains(&b'l'));
    let program = name(context.launch(all[0]).command.name);
    let size = all.len() as u32;
    let finding = finding(context, site, MANY, ", each for one line", all)
        .recipe("shell-in-shell", &[if is_login { "login" } else { "" }], &[("program", &program)])
        .predicted_by(Change::Batch(size), "");
    Some(open(finding))
}

/// GNU parallel always runs a job in a shell, but can pass many arguments to each job.
fn jobs(context: &RuleContext<'_, '_>, site: &Site<'_>, all: Vec<u32>) -> Cure {
    let jobs = context.recording.info.cpus as usize * JOBS_PER_CPU;
    let size = (all.len() / jobs.max(1)).max(2);
    let finding = finding(context, site, MANY, ", each job through its own shell", all)
        .recipe("shell-per-job", &[], &[("size", &size.to_string())])
        .predicted_by(Change::Batch(size as u32), format!("--batch=parent=parallel={size}"));
    certain(finding)
}

/// Recipes of make with several lines, each of which needs a shell. make can start one shell per
/// target.
fn recipe(context: &RuleContext<'_, '_>, site: &Site<'_>, all: &[u32]) -> Option<Cure> {
    let mut by_line = grouped(all.iter().filter_map(|index| Some((line_of_recipe(context, *index)?, *index))));
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
        .recipe("shell-per-line", &[], &[])
        .predicted_by(Change::Batch(lines as u32), with);
    Some(certain(finding))
}

/// Returns the line of a recipe without the words that differ between targets: file names and
/// numbers. `None` if its shell is unnecessary, or if make reads its output, as for `$(shell ...)`.
fn line_of_recipe(context: &RuleContext<'_, '_>, index: u32) -> Option<Vec<u8>> {
    let launch = context.launch(index);
    let text = launch.execs.first().and_then(command_of)?;
    let is_recipe =
        launch.execs.len() == 1 && !context.is_captured(index) && needless_shell(context.forest(), index).is_none();
    let is_file = |word: &&[u8]| word.iter().any(|byte| b"./".contains(byte) || byte.is_ascii_digit());
    let words = text.split(|byte| *byte == b' ').filter(|word| !is_file(word));
    is_recipe.then(|| words.collect::<Vec<_>>().join(&b' '))
}

/// Command lines of a language that has functions for all of their programs, or of which all
/// launches work for less time than it takes to launch them.
fn of_language(context: &RuleContext<'_, '_>, site: &Site<'_>, runtime: Runtime, mut shells: Vec<u32>) -> Option<Cure> {
    // Lines of which the language has no function may be few.
    let has_functions = |shell: &u32| functions_of(context, runtime, &below(context, &[*shell])).is_some();
    let covered: Vec<u32> = shells.iter().copied().filter(has_functions).collect();
    if covered.len() * 2 > shells.len() {
        shells = covered;
    }
    let known = functions_of(context, runtime, &below(context, &shells));
    if known.is_none() {
        shells.retain(|index| is_small_line(context, *index));
        (shells.len() >= MIN_LINES && is_shell(context.launch(shells[0]).command.name)).then_some(())?;
    }
    let all = below(context, &shells);
    let spent = format!(
        "{}, including forks without an exec, take {} in all",
        launches(all.len()),
        time(context.spent_on(&shells))
    );
    let finding = finding(context, site, IN_LANGUAGE, "", all).evidence(spent).predicted_as(context, Change::InProcess);
    let are_libraries =
        |programs: &[String]| programs.iter().all(|program| has_property(program.as_bytes(), "library"));
    let is_library = known.as_ref().is_some_and(|(programs, _)| are_libraries(programs));
    let finding = if is_library { finding.guessed() } else { finding };
    let finding = finding.recipe(
        "lines-in-language",
        &[if known.is_some() { "known" } else { "" }],
        &[("language", runtime.label())],
    );
    let (title, lines) = title_and_functions(context, site, &shells, known);
    Some(certain(Finding { title, ..finding.fix_lines(lines) }))
}

/// Returns the title of a finding about command lines, and the functions that do their work.
fn title_and_functions(
    context: &RuleContext<'_, '_>,
    site: &Site<'_>,
    shells: &[u32],
    known: Option<(Vec<String>, Vec<String>)>,
) -> (String, Vec<String>) {
    let parent = name(site.parent);
    if let Some((programs, lines)) = known {
        let (programs, times) = (programs.join(" and "), times(shells.len()));
        return (format!("{parent} runs {programs} through a shell {times}{}", super::place(context, site)), lines);
    }
    let mut words = shells.iter().map(|index| first_word(command_of(context.launch(*index).execs.first()?)?));
    let first = words.next().flatten();
    let begin = first.filter(|_| words.all(|word| word == first));
    let begin = begin.map_or(String::new(), |word| format!(" that begin with {},", name(word)));
    let count = units::count(shells.len() as u64);
    (format!("{parent} runs {count} command lines{begin} through {}", name(site.program)), Vec::new())
}

/// Returns launches with all their descendants.
fn below(context: &RuleContext<'_, '_>, shells: &[u32]) -> Vec<u32> {
    let mut all: Vec<u32> = context.walk(shells).map(|step| step.index as u32).collect();
    all.sort_unstable();
    all
}

/// Returns the programs among launches, and the functions of a language that do their work, if it
/// has functions for all.
fn functions_of(context: &RuleContext<'_, '_>, runtime: Runtime, all: &[u32]) -> Option<(Vec<String>, Vec<String>)> {
    let mut programs: BTreeMap<&[u8], &str> = BTreeMap::new();
    for index in all.iter().filter(|index| !context.launch(**index).execs.is_empty()) {
        let launch = context.launch(*index);
        let arguments = launch.execs.last().filter(|exec| !exec.argv_cut).map(arguments_of)?;
        let is_shell = is_shell(launch.command.name);
        // A shell that launches nothing does the work itself.
        let own = launch.execs.last().and_then(command_of).and_then(first_word);
        let own = own.filter(|_| is_shell && context.forest().children(*index as usize).is_empty());
        if let Some(program) = own.or((!is_shell).then_some(launch.command.name)) {
            programs.insert(program, functions_in(runtime.label(), program, &arguments[..])?);
        }
    }
    let lines = programs.iter().map(|(program, functions)| format!("  {}: {functions}", name(program))).collect();
    (!programs.is_empty()).then(|| (programs.into_keys().map(name).collect(), lines))
}

/// Whether a command line needs its shell, and all that it launches is small.
fn is_small_line(context: &RuleContext<'_, '_>, index: u32) -> bool {
    let members = context.walk(&[index]).take(MAX_LAUNCHES_OF_LINE + 1);
    let small = members.map(|step| context.small_work.is_mostly_tax_by_cpu_time(step.index)).enumerate();
    context.launch(index).execs.len() == 1
        && needless_shell(context.forest(), index).is_none()
        && small.into_iter().all(|(number, is_small)| number < MAX_LAUNCHES_OF_LINE && is_small)
}
