//! One launch for many inputs. Programs that are known to take many files get the exact command, other known programs the form of their manual,
//! and all others their own shared arguments, with an "if".

use std::collections::{BTreeMap, HashSet};

use super::once::is_in_pipeline;
use super::{Cure, MANY, certain, files, finding, open, pairs, shared_line};
use crate::explain::advice::context::RuleContext;
use crate::explain::advice::functions::functions;
use crate::explain::advice::phrases::{launches, name, option};
use crate::explain::advice::programs::{
    FILE_CHANGERS, TAKES_MANY, TAKES_ONE, is_compiler, is_heavy, is_worth_a_launch, items_form,
};
use crate::explain::advice::rules::builtin::can_replace;
use crate::explain::advice::selection::batch_option;
use crate::explain::advice::shared_line::SharedLine;
use crate::explain::advice::sites::Site;
use crate::explain::advice::thresholds::MIN_REPETITIONS;
use crate::model::launch::Exec;
use crate::patterns::pipeline::{PipelineUnit, place_among_siblings};
use crate::patterns::runtimes::Runtime;
use crate::patterns::shells::{Dialect, command_of, is_shell};
use crate::patterns::subcommands;
use crate::patterns::words::Words;
use crate::predict::whatif::AppliedChange;
use crate::predict::whatif::changes::Change;

/// Maximum number of items per launch. More would make the command line too long.
const MAX_BATCH: u32 = 1000;
/// Minimum share of distinct command lines, in percent. Repeated command lines are a question that is asked again.
const MIN_DISTINCT_PERCENT: usize = 50;
const GREPS: Words = Words("egrep fgrep grep rg zgrep");

/// Returns the cure of launches with different inputs.
pub(super) fn cure(context: &RuleContext<'_, '_>, site: &Site<'_>) -> Option<Cure> {
    let command = context.launch(site.launches[0]).command.name;
    if is_shell(command) || is_worth_a_launch(command) || is_compiler(command) {
        return None;
    }
    if context.launch(site.launches[0]).execs.first().and_then(command_of).is_some() {
        return None;
    }
    let of_files = of_files(context, site).or_else(|| pairs::cure(context, site)).or_else(|| of_greps(context, site));
    let known = of_files.or_else(|| of_items(context, site));
    known.or_else(|| of_unknown(context, site).filter(|_| !is_interpreter(command)))
}

fn is_interpreter(command: &[u8]) -> bool {
    !matches!(Runtime::named(command), Runtime::Native)
}

/// A program that takes many files.
fn of_files(context: &RuleContext<'_, '_>, site: &Site<'_>) -> Option<Cure> {
    let batches = files::batches(context, &site.launches);
    let (key, _) = batches.first()?.clone();
    let batches: Vec<Vec<u32>> =
        batches.into_iter().filter(|(other, _)| *other == key).map(|(_, batch)| batch).collect();
    let mut all = batches.concat();
    all.sort_unstable();
    let is_sed = context.launch(site.launches[0]).command.name == b"sed";
    if all.len() < MIN_REPETITIONS || all.len() * 2 < site.launches.len() || is_sed && batches.len() > 1 {
        return None;
    }
    let size = key.batch_size(all.len() / batches.len());
    let remaining: usize = batches.iter().map(|batch| batch.len().div_ceil(size)).sum();
    let mean_size = all.len().div_ceil(remaining).max(2);
    let command = context.launch(all[0]).command.name;
    let changes =
        batches.iter().map(|batch| AppliedChange { change: Change::Batch(size as u32), launches: batch.clone() });
    let finding = finding(context, site, MANY, " with one file each", all.clone())
        .evidence(format!("{} would do the same", launches(remaining)))
        .fix_lines(files::snippet(&key, &context.example(&all), size, batches.len()))
        .limits(format!(
            "{} then gets all files at once, with one combined output and one exit status; later steps must wait until the batch has finished",
            name(command)
        ));
    // The option cannot say which files belong together, so its batch size is the mean number of files per remaining launch.
    let with = format!("{}={mean_size}", option("--batch", command, site.parent));
    let is_known = finding
        .launches
        .iter()
        .all(|index| files::is_small(context, *index) || context.launch(*index).start_up.get().is_some());
    let finding = finding.predicted_by_all(changes.collect(), with);
    Some(if is_known { certain(finding) } else { open(finding) })
}

/// A known program that is asked about one item at a time.
fn of_items(context: &RuleContext<'_, '_>, site: &Site<'_>) -> Option<Cure> {
    let mut forms: BTreeMap<(&str, &[u8]), Vec<u32>> = BTreeMap::new();
    for &index in &site.launches {
        let [exec] = &context.launch(index).execs[..] else { continue };
        let form = items_form(context.launch(index).command.name, exec).filter(|_| !exec.argv_cut);
        form.into_iter().for_each(|form| forms.entry(form).or_default().push(index));
    }
    let ((form, subcommand), all) = forms.into_iter().max_by_key(|(_, all)| all.len())?;
    if all.len() * 2 < site.launches.len() || !have_own_inputs(context, &all) {
        return None;
    }
    let command = context.launch(all[0]).command.name;
    let which = match subcommand {
        b"" => ", once per item".to_owned(),
        _ => format!(" ({}), once per item", name(&subcommands::label(command, subcommand))),
    };
    let option = batch_option(context, (command, site.parent), subcommand, &all, MAX_BATCH);
    let finding = finding(context, site, MANY, &which, all)
        .fix("ask once for all items:")
        .fix(format!("  {form}"))
        .limits("all answers then arrive in one output, which must be split; items that depend on earlier answers need their own launch");
    let changes = merged(context, &finding.launches, MAX_BATCH);
    let finding = finding.predicted_by_all(changes, option);
    Some(open(finding))
}

/// Returns the changes that merge launches, and do without the forks of a shell that exist only for them.
fn merged(context: &RuleContext<'_, '_>, all: &[u32], size: u32) -> Vec<AppliedChange> {
    let forest = context.forest();
    let mut forks = Vec::new();
    for &index in all {
        if let Some((siblings, position)) = place_among_siblings(forest, index as usize) {
            forks.extend(PipelineUnit::of(forest, context.timelines(), siblings, position).forks);
        }
    }
    let batch = AppliedChange { change: Change::Batch(size), launches: all.to_vec() };
    let forks = (!forks.is_empty()).then_some(AppliedChange { change: Change::InProcess, launches: forks });
    std::iter::once(batch).chain(forks).collect()
}

/// Whether launches ask about different items: in their arguments or, if they are parts of pipelines, on their standard input. Each temporary file
/// is another one.
fn have_own_inputs(context: &RuleContext<'_, '_>, all: &[u32]) -> bool {
    let in_pipelines = all.iter().filter(|index| is_in_pipeline(context.forest(), **index)).count();
    are_distinct(context, all) || in_pipelines * 2 > all.len() || context.launch(all[0]).command.name == b"mktemp"
}

fn are_distinct(context: &RuleContext<'_, '_>, all: &[u32]) -> bool {
    let lines = all.iter().filter_map(|index| Some(context.launch(*index).execs.last()?.argv()));
    let distinct: HashSet<&[u8]> = lines.collect();
    distinct.len() > 1 && distinct.len() * 100 >= all.len() * MIN_DISTINCT_PERCENT
}

/// An unknown program. How much of its run is work is not certain, so the saving has a wide range.
fn of_unknown(context: &RuleContext<'_, '_>, site: &Site<'_>) -> Option<Cure> {
    let (all, program) = (&site.launches, name(site.program));
    let command = context.launch(all[0]).command.name;
    if can_replace(context, all[0]) || functions(Runtime::of_parent(context.forest(), all[0]), command).is_some() {
        return None;
    }
    let takes_one = TAKES_ONE.contains(command);
    let in_pipelines = all.iter().all(|index| is_in_pipeline(context.forest(), *index));
    let line = shared_line(context, all);
    let differing = line.as_ref().map_or(0, SharedLine::differing);
    let with = match (&line, differing) {
        (Some(_), 0) if in_pipelines => ", each in a pipeline",
        (Some(_), 0) => " with the same arguments",
        (Some(_), 1) => ", with one different argument",
        _ => "",
    };
    if differing == 0 && FILE_CHANGERS.contains(command) || is_heavy(command) {
        return None;
    }
    let list =
        line.as_ref().filter(|_| TAKES_MANY.contains(command) && differing > 1).and_then(SharedLine::before_inputs);
    if let Some(list) = list {
        let option = batch_option(context, (command, site.parent), b"", all, MAX_BATCH);
        let finding = finding(context, site, MANY, " with a few files each", all.clone())
            .fix("pass all files to one launch:")
            .fix(format!("  printf '%s\\0' FILES...   in the loop, and after it:  done | xargs -0r {list} --"))
            .limits(format!(
                "{program} then has one exit status for all files; later steps must wait until it has finished"
            ))
            .predicted_by_all(merged(context, all, MAX_BATCH), option);
        return Some(certain(finding));
    }
    let several =
        line.filter(|_| differing == 1 && !takes_one).map(|line| format!("  {}", line.with_inputs("INPUT...")));
    let is_selection = several.as_ref().is_some_and(|line| line.contains("=INPUT..."));
    let size = all.len() as u32;
    let option = batch_option(context, (command, site.parent), b"", all, size);
    let form = context.launch(all[0]).execs.last().and_then(|exec| items_form(command, exec)).map(|(form, _)| form);
    let fix = match several {
        _ if differing == 0 && form.is_some() => format!("use one launch for all items: {}", form.unwrap_or_default()),
        None if differing == 0 && all.iter().all(|index| context.is_captured(*index)) => {
            "ask once and keep the answer, if it depends on the arguments only".to_owned()
        }
        _ if takes_one && differing > 0 => {
            format!("use one process for all inputs: {program} itself handles one per launch")
        }
        Some(_) => format!("use one launch for all inputs, if {program} takes several:"),
        None => format!("use one launch of {program} for all of the work, if it can do several jobs"),
    };
    let finding = finding(context, site, MANY, with, all.clone())
        .fix(fix)
        .fix_lines(several)
        .fix_lines(is_selection.then_some("or leave this option out, if it only selects a part of the work"))
        .fix("or use its library, or a mode in which one process serves all requests (a server, a daemon, standard input)")
        .limits("the upper end assumes that the launches repeat everything but a little work of their own; one process has one exit status and mixes the output")
        .predicted_by_all(merged(context, all, size), option)
        .guessed();
    Some(open(finding))
}

/// What differs between the launches of grep.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Varying {
    Pattern,
    File,
}

/// A loop of grep over patterns or files.
fn of_greps(context: &RuleContext<'_, '_>, site: &Site<'_>) -> Option<Cure> {
    let forest = context.forest();
    let mut calls = Vec::new();
    for &index in &site.launches {
        let launch = context.launch(index);
        let [exec] = &launch.execs[..] else { continue };
        let (siblings, position) = place_among_siblings(forest, index as usize)?;
        if GREPS.contains(launch.command.name)
            && !PipelineUnit::of(forest, context.timelines(), siblings, position).is_fed
        {
            calls.extend(call_of(exec).map(|call| (index, call)));
        }
    }
    let dialect = Dialect::of_parent(forest, site.launches[0] as usize)?;
    let patterns: HashSet<&[u8]> = calls.iter().map(|(_, (pattern, _))| *pattern).collect();
    let files: HashSet<&Vec<&[u8]>> = calls.iter().map(|(_, (_, files))| files).collect();
    // With only a few distinct patterns, the script loops over the files, once for each pattern; and vice versa.
    let varying = match (patterns.len() >= MIN_REPETITIONS, files.len() >= MIN_REPETITIONS) {
        (true, _) => Varying::Pattern,
        (false, true) => Varying::File,
        (false, false) => return None,
    };
    let (fix, limits): (&[&str], _) = match (varying, dialect) {
        (Varying::File, _) => (
            &[
                "pass all files to one grep:",
                "  grep -l PATTERN FILES...   (if you used -q or -l; with -c: grep -c PATTERN FILES...)",
            ],
            "one grep prints the results of all files at once, and its exit status does not say which file matched",
        ),
        (Varying::Pattern, Dialect::Posix) => (
            &["search for all words at once:", "  printf '%s\\n' WORDS... | grep -F -f - FILE"],
            "grep -F finds fixed words only, not regular expressions; one grep prints the results of all words at once",
        ),
        (Varying::Pattern, _) => (
            &[
                "read the file once, and look the words up in the shell:",
                "  declare -A seen; while IFS= read -r line; do seen[$line]=1; done <FILE",
                "  [[ ${seen[$word]} ]]   (for parts of lines: text=$(<FILE); [[ $text == *\"$word\"* ]])",
                "or search for all words at once: `grep -F -f WORDS FILE`",
            ],
            "both find fixed words only, not regular expressions; the shell cannot hold binary data; one grep prints the results of all words at \
             once",
        ),
    };
    let all: Vec<u32> = calls.iter().map(|(index, _)| *index).collect();
    let command = context.launch(all[0]).command.name;
    let what = if varying == Varying::File { ", once per file" } else { ", once per pattern" };
    let with = format!("{}={MAX_BATCH}", option("--batch", command, site.parent));
    let finding = finding(context, site, MANY, what, all).fix_lines(fix.iter().copied()).limits(limits);
    Some(certain(finding.predicted_by(Change::Batch(MAX_BATCH), with)))
}

/// Returns the pattern and the files of a call of grep. `None` if it reads standard input, or patterns from a file.
fn call_of<'a>(exec: &Exec<'a>) -> Option<(&'a [u8], Vec<&'a [u8]>)> {
    let mut pattern = None;
    let mut words = Vec::new();
    let mut arguments = exec.arguments().skip(1).filter(|_| !exec.argv_cut);
    while let Some(argument) = arguments.next() {
        match argument {
            b"-e" => pattern = arguments.next(),
            b"-f" => return None,
            b"-A" | b"-B" | b"-C" | b"-m" => drop(arguments.next()),
            _ if argument.starts_with(b"-") => {}
            _ => words.push(argument),
        }
    }
    let pattern = pattern.or_else(|| (!words.is_empty()).then(|| words.remove(0)))?;
    (!words.is_empty()).then_some((pattern, words))
}
