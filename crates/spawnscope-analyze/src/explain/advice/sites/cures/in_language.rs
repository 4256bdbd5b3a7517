//! What the launching code can do itself, with functions of its language: small programs (for
//! shells, `rules/builtin` has better advice about many calls), and command lines that a program
//! runs with `sh -c`: one shell per file of find and xargs, per line of a recipe, per job of GNU
//! parallel, or per call of a language. `needless-shell` is about lines that need no shell.

use std::collections::BTreeMap;

use super::{IN_LANGUAGE, MANY, files, finding, place};
use crate::explain::advice::context::{MIN_REPETITIONS, RuleContext};
use crate::explain::advice::finding::Finding;
use crate::explain::advice::languages::{functions, functions_in};
use crate::explain::advice::phrases::{OR_ALL, name, option, time, times};
use crate::explain::advice::programs::is_worth_a_launch;
use crate::explain::advice::rules::builtin;
use crate::explain::advice::rules::shell::{PARALLEL, is_needless};
use crate::explain::advice::shared_line::arguments_of;
use crate::explain::advice::sites::Site;
use crate::explain::advice::sites::grouping::first_word;
use crate::explain::advice::tables::case;
use crate::model::grouped::grouped;
use crate::patterns::programs::{has_property, version_has_property};
use crate::patterns::runtimes::Runtime;
use crate::patterns::shells::{command_of, is_in_needless_shell, is_shell, needless_shell};
use crate::predict::whatif::changes::Change;
use spawnscope_data::units;

/// Minimum number of launches of an unknown program, or of command lines in a loop. If there are
/// only a few, each may be necessary.
const MIN_LAUNCHES: usize = 20;
/// Maximum number of launches of one command line. With more launches, it is a script.
const MAX_LAUNCHES_OF_LINE: usize = 32;
/// Lines belong to one recipe only if the most frequent one runs at most this many times as often
/// as the least frequent one.
const MAX_COUNT_RATIO: usize = 2;
/// Number of jobs per CPU that keeps all CPUs busy.
const JOBS_PER_CPU: usize = 4;

/// Returns the cure of small launches by code that can do the work itself.
pub(super) fn small_programs(context: &RuleContext<'_, '_>, site: &Site<'_>) -> Option<Finding> {
    let forest = context.forest();
    let command = context.launch(site.launches[0]).command.name;
    let runtime = Runtime::of_parent(forest, site.launches[0]);
    let is_known = runtime != Runtime::Shell && site.launches.iter().all(|index| functions(context, *index).is_some());
    // The input of these determines how many launches they make. Makefiles have functions, and a
    // shell script may be called `script`, too.
    let has_code = matches!(runtime, Runtime::Make | Runtime::Shell);
    let is_launcher = has_property(site.parent, "launcher") && !has_code;
    let is_by_purpose = is_launcher || version_has_property(site.parent, "compiler");
    if is_by_purpose || is_worth_a_launch(command) || is_shell(command) {
        return None;
    }
    let mut all = site.launches.clone();
    all.retain(|index| is_known || is_small(context, *index));
    if all.len() * 2 < site.launches.len() || !is_known && all.len() < MIN_LAUNCHES {
        return None;
    }
    let own = builtin::without_launching(context, &all);
    let is_guess = builtin::can_replace(context, all[0]) || has_property(command, "library") || own.is_empty();
    let kind = match own.is_empty() {
        _ if runtime == Runtime::Shell && has_property(command, "changes") => "files",
        true => "unknown",
        false => "known",
    };
    let values = [("language", runtime.name()), ("or_all", OR_ALL)];
    let finding = finding(context, site, IN_LANGUAGE, "", all)
        .recipe(context, "in-language", &[kind, case(is_guess, "guess")], &values)
        .fix_lines(own.into_iter().filter(|_| kind == "known"))
        .predicted_as(context, Change::InProcess);
    Some(finding)
}

/// Whether a launch without descendants works for less time than it takes to launch it. About
/// programs in an unnecessary shell, the rule `needless-shell` has better advice.
fn is_small(context: &RuleContext<'_, '_>, index: u32) -> bool {
    let forest = context.forest();
    context.launch(index).execs.len() == 1
        && forest.children(index as usize).is_empty()
        && !is_in_needless_shell(forest, index)
        && context.small_work.is_mostly_tax_by_cpu_time(index as usize)
        && !builtin::may_read_much(context, index)
}

/// Returns the cure of command lines.
pub(super) fn lines(context: &RuleContext<'_, '_>, site: &Site<'_>) -> Option<Finding> {
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
pub(super) fn per_file(context: &RuleContext<'_, '_>, site: &Site<'_>) -> Option<Finding> {
    let mut all = site.launches.clone();
    all.retain(|index| {
        has_property(site.parent, "per-item") && context.launch(*index).execs.first().and_then(command_of).is_some()
    });
    all.retain(|index| files::launcher_of(context, *index).is_some() && !is_needless(context, *index));
    (all.len() >= MIN_REPETITIONS).then_some(())?;
    let with = option("--in-process", context.launch(all[0]).command.name, site.parent);
    let finding = finding(context, site, MANY, ", once per file", all)
        .recipe(context, "shell-per-file", &[&name(site.parent)], &[])
        .predicted_by(Change::InProcess, with);
    Some(finding)
}

/// A shell that starts another one for each line. A login shell also reads its start-up files each
/// time.
fn in_this_shell(context: &RuleContext<'_, '_>, site: &Site<'_>, mut all: Vec<u32>) -> Option<Finding> {
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
        .recipe(context, "shell-in-shell", &[case(is_login, "login")], &[("program", &program)])
        .predicted_by(Change::Batch(size), "");
    Some(finding)
}

/// GNU parallel always runs a job in a shell, but can pass many arguments to each job.
fn jobs(context: &RuleContext<'_, '_>, site: &Site<'_>, all: Vec<u32>) -> Finding {
    let jobs = context.recording.info.cpus as usize * JOBS_PER_CPU;
    let size = (all.len() / jobs.max(1)).max(2);
    finding(context, site, MANY, ", each job through its own shell", all)
        .recipe(context, "shell-per-job", &[], &[("size", &size.to_string())])
        .predicted_by(Change::Batch(size as u32), format!("--batch=parent=parallel={size}"))
}

/// Recipes of make with several lines, each of which needs a shell. make can start one shell per
/// target.
fn recipe(context: &RuleContext<'_, '_>, site: &Site<'_>, all: &[u32]) -> Option<Finding> {
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
        .recipe(context, "shell-per-line", &[], &[])
        .predicted_by(Change::Batch(lines as u32), with);
    Some(finding)
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
fn of_language(
    context: &RuleContext<'_, '_>,
    site: &Site<'_>,
    runtime: Runtime,
    mut shells: Vec<u32>,
) -> Option<Finding> {
    // Lines of which the language has no function may be few.
    let has_functions = |shell: &u32| functions_of(context, runtime, &below(context, &[*shell])).is_some();
    let covered: Vec<u32> = shells.iter().copied().filter(has_functions).collect();
    if covered.len() * 2 > shells.len() {
        shells = covered;
    }
    let known = functions_of(context, runtime, &below(context, &shells));
    if known.is_none() {
        shells.retain(|index| is_small_line(context, *index));
        (shells.len() >= MIN_LAUNCHES && is_shell(context.launch(shells[0]).command.name)).then_some(())?;
    }
    let is_known = known.is_some();
    let (programs, functions) = known.unwrap_or_default();
    let begin = common_word(context, &shells).map(name);
    let values = [
        ("parent", &name(site.parent)[..]),
        ("program", &name(site.program)),
        ("programs", &programs.join(" and ")),
        ("count", &times(shells.len())),
        ("lines", &units::count(shells.len() as u64)),
        ("begin", begin.as_deref().unwrap_or_default()),
        ("place", &place(context, &site.launches)),
        ("language", runtime.name()),
        ("took", &time(context.spent_on(&shells))),
    ];
    let is_library = is_known && programs.iter().all(|program| has_property(program.as_bytes(), "library"));
    let cases = [case(is_known, "known"), case(is_library, "library")];
    let finding = finding(context, site, IN_LANGUAGE, "", below(context, &shells))
        .recipe(context, "lines-in-language", &cases, &values)
        .fix_lines(functions)
        .predicted_as(context, Change::InProcess);
    Some(finding)
}

/// Returns the first word of all command lines.
fn common_word<'a>(context: &RuleContext<'_, 'a>, shells: &[u32]) -> Option<&'a [u8]> {
    let mut words = shells.iter().map(|index| first_word(command_of(context.launch(*index).execs.first()?)?));
    let first = words.next()?;
    first.filter(|_| words.all(|word| word == first))
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
            programs.insert(program, functions_in(runtime.name(), program, &arguments[..])?);
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
