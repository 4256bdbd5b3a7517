//! One launch for many inputs. Programs that are known to take many files get the exact command,
//! other known programs the form of their manual, and all others their own shared arguments, with
//! an "if".

use std::collections::{BTreeMap, BTreeSet, HashSet};

use super::super::grouping::{Difference, Rounds, have_own_places, is_question, rounds};
use super::resident::FrontEnd;
use super::{MANY, are_lines_of_a_language, files, finding, removing, shared_line};
use crate::explain::advice::context::{MIN_REPETITIONS, RuleContext};
use crate::explain::advice::edit::{Form, answers_each_line, one_process};
use crate::explain::advice::edits::shell_edits;
use crate::explain::advice::finding::Finding;
use crate::explain::advice::owner::foreign_code;
use crate::explain::advice::phrases::{INPUTS, launches, name, option, quoted};
use crate::explain::advice::programs::{is_worth_a_launch, items_form};
use crate::explain::advice::rules::builtin::{can_replace, functions_or_code};
use crate::explain::advice::selection::batch_option;
use crate::explain::advice::shared_line::SharedLine;
use crate::explain::advice::sites::Site;
use crate::explain::advice::tables::case;
use crate::model::grouped::grouped;
use crate::model::launch::base_name;
use crate::patterns::package_scripts::runs_script;
use crate::patterns::pipeline::{PipelineUnit, overlap, writer_of};
use crate::patterns::programs;
use crate::patterns::programs::{has_property, subcommand_of, version_has_property};
use crate::patterns::runtimes::Runtime;
use crate::patterns::shells::{Dialect, command_of, is_shell, needless_shell};
use crate::predict::whatif::AppliedChange;
use crate::predict::whatif::changes::Change;
use spawnscope_data::event::{Language, Nanos};

/// Maximum number of items per launch. More would make the command line too long.
const MAX_BATCH: u32 = 1000;
/// Minimum share of distinct command lines, in percent. Repeated command lines are a question that
/// is asked again.
const MIN_DISTINCT_PERCENT: usize = 50;

/// Returns the cure of launches with different inputs.
pub(super) fn cure(context: &RuleContext<'_, '_>, site: &Site<'_>) -> Option<Finding> {
    let command = context.launch(site.launches[0]).command.name;
    let prepares = FrontEnd::of(context, site).is_some() || runs_script(context.forest(), site.launches[0] as usize);
    if is_shell(command) || is_worth_a_launch(command) || prepares || is_loop_foreign(context, &site.launches) {
        return None;
    }
    if version_has_property(command, "compiler") {
        return of_probes(context, site);
    }
    if context.launch(site.launches[0]).execs.first().and_then(command_of).is_some() {
        return of_items(context, site).filter(|_| are_lines_of_a_language(context, site));
    }
    let of_files = of_files(context, site).or_else(|| of_pairs(context, site)).or_else(|| of_look_ups(context, site));
    let has_one_input =
        || rounds(context, &site.launches).is_some_and(|rounds| rounds.size as usize == site.launches.len());
    let known = of_files.or_else(|| of_items(context, site).filter(|_| !has_one_input()));
    known.or_else(|| of_unknown(context, site).filter(|_| !is_interpreter(command) && !has_one_input()))
}

fn is_interpreter(command: &[u8]) -> bool {
    !matches!(Runtime::named(command), Runtime::Native)
}

/// A compiler that gets the same file each time, whose contents are another test of a feature, as
/// in `configure`.
fn of_probes(context: &RuleContext<'_, '_>, site: &Site<'_>) -> Option<Finding> {
    const SOURCES: [&[u8]; 7] = [b".c", b".C", b".cc", b".cpp", b".cxx", b".f90", b".rs"];
    let source = |index: &u32| {
        let mut words = context.launch(*index).execs.last().filter(|exec| !exec.argv_cut)?.arguments();
        words.find(|word| SOURCES.iter().any(|end| word.ends_with(end)))
    };
    let first = source(site.launches.first()?)?;
    let is_same = site.launches.iter().all(|index| source(index) == Some(first));
    (is_same && site.launches.len() >= MIN_REPETITIONS).then_some(())?;
    let size = site.launches.len() as u32;
    let finding = finding(context, site, MANY, ", always of the same file", site.launches.clone())
        .recipe(context, "many-probes", &[], &[])
        .predicted_by(Change::Batch(size), "");
    Some(finding)
}

/// A program that takes many files.
fn of_files(context: &RuleContext<'_, '_>, site: &Site<'_>) -> Option<Finding> {
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
    let input = SharedLine::of(context, &all).map_or("file", |line| line.input());
    let values = [("input", input), ("remaining", &launches(remaining))];
    // The option cannot say which files belong together, so its batch size is the mean number of
    // files per remaining launch.
    let with = format!("{}={mean_size}", option("--batch", command, site.parent));
    let is_known = |index: &u32| files::is_small(context, *index) || context.launch(*index).start_up.get().is_some();
    let is_open = !all.iter().all(is_known);
    let finding = finding(context, site, MANY, &format!(" with one {input} each"), all.clone())
        .fix_lines(files::snippet(&key, &context.example(&all), input, size, batches.len()))
        .recipe(context, "many-files", &[case(is_open, "open")], &values)
        .predicted_by_all(changes.collect(), with);
    Some(finding)
}

/// A program that looks items up in a file, always the same one, for a parent that reads what it
/// prints.
fn of_look_ups(context: &RuleContext<'_, '_>, site: &Site<'_>) -> Option<Finding> {
    let all = &site.launches;
    let command = context.launch(all[0]).command.name;
    let line = shared_line(context, all).filter(|_| has_property(command, "selects"))?;
    let file = line.file_of_each().filter(|_| !has_property(command, "prints-all") || line.has("-n"))?;
    let runtime = Runtime::of_parent(context.forest(), all[0]);
    // make reads no files, and a CMake script hardly does.
    if all.len() < MIN_REPETITIONS
        || matches!(runtime, Runtime::Make | Runtime::CMake)
        || !are_distinct(context, all)
        || !all.iter().all(|index| is_question(context, *index))
    {
        return None;
    }
    let removed = all.iter().map(|index| with_filters(context, *index)).collect::<Option<BTreeSet<u32>>>()?;
    let dialect = Dialect::of_parent(context.forest(), all[0] as usize).map(|dialect| format!("{dialect:?}"));
    let finding = finding(context, site, MANY, " to look items up in one file", all.clone()).recipe(
        context,
        "many-look-ups",
        &[dialect.as_deref().unwrap_or_default()],
        &[("file", &file)],
    );
    Some(removing(context, finding, removed.into_iter().collect()))
}

/// Returns the `$( )` around a launch and the filters of what it prints, or the launch itself if it
/// is in none. `None` if the `$( )` runs other programs.
pub(super) fn with_filters(context: &RuleContext<'_, '_>, index: u32) -> Option<u32> {
    let forest = context.forest();
    let subshell = forest.parent(index as usize).filter(|it| context.launch(*it as u32).is_fork_without_exec());
    let Some(subshell) = subshell else { return Some(index) };
    // Commands of a loop run one after the other.
    let is_filter = |other: usize| {
        let is_in_pipeline = overlap(forest, index as usize, other) && overlap(forest, other, index as usize);
        is_in_pipeline && has_property(context.launch(other as u32).command.name, "filter")
    };
    let others = || forest.children(subshell).iter().copied().filter(|child| *child != index as usize);
    others().all(is_filter).then_some(subshell as u32)
}

/// A known program that is asked about one item at a time.
fn of_items(context: &RuleContext<'_, '_>, site: &Site<'_>) -> Option<Finding> {
    let form_of = |index: u32| {
        // A shell that only executes the program may be before it, and what the program executes
        // for its work after it.
        let launch = context.launch(index);
        let is_plain = launch.execs.iter().all(|exec| command_of(exec).is_none());
        let is_one = is_plain || needless_shell(context.forest(), index).is_some();
        // A shell can do the work of a filter of short texts itself.
        let is_filter = can_replace(context, index) && writer_of(context.forest(), index).is_some();
        let reader = program_of_reader(context, index);
        let mut execs = launch.execs.iter().filter(|exec| is_one && !is_filter && !exec.argv_cut);
        execs.find_map(|exec| {
            let command = exec.named().file_name();
            Some((items_form(command, exec, reader)?, command))
        })
    };
    let forms = grouped(site.launches.iter().filter_map(|index| Some((form_of(*index)?, *index))));
    let (((form, subcommand, is_for_reader), written), all) = forms.into_iter().max_by_key(|(_, all)| all.len())?;
    if all.len() * 2 < site.launches.len() || !have_own_inputs(context, &all) || have_own_places(context, &all) {
        return None;
    }
    let command = context.launch(all[0]).command.name;
    let which = match subcommand {
        b"" => ", once per item".to_owned(),
        _ => format!(" ({}), once per item", name(&programs::label(written, subcommand))),
    };
    let option = batch_option(context, (command, site.parent), subcommand, &all, MAX_BATCH);
    let takes_many = has_property(command, "many") || has_property(command, "names-files");
    let line = shared_line(context, &all).filter(|line| line.ends_with_operand(takes_many));
    let line = line.map(|line| line.with_inputs(&format!("{}S...", line.input().to_uppercase())));
    let reader = program_of_reader(context, all[0]);
    let reader = reader.filter(|reader| has_property(reader, "aggregates") && !is_for_reader).map(name);
    let values = [("line", line.as_deref().unwrap_or(form)), ("reader", reader.as_deref().unwrap_or_default())];
    let finding = finding(context, site, MANY, &which, all).recipe(context, "many-items", &[], &values);
    let readers = of_readers(context, &finding.launches, is_for_reader);
    let option = if readers.is_some() { String::new() } else { option };
    let changes = merged(context, &finding.launches, MAX_BATCH).into_iter().chain(readers).collect();
    Some(finding.predicted_by_all(changes, option))
}

/// Returns the changes that merge launches, and do without the forks of a shell that exist only for
/// them.
fn merged(context: &RuleContext<'_, '_>, all: &[u32], size: u32) -> Vec<AppliedChange> {
    let forest = context.forest();
    let mut forks = Vec::new();
    for &index in all {
        if let Some((siblings, position)) = forest.siblings(index as usize) {
            forks.extend(PipelineUnit::of(forest, context.timelines(), siblings, position).forks);
        }
    }
    let batch = AppliedChange { change: Change::Batch(size), launches: all.to_vec() };
    let forks = (!forks.is_empty()).then_some(AppliedChange { change: Change::InProcess, launches: forks });
    std::iter::once(batch).chain(forks).collect()
}

/// Whether each of several processes makes such a launch, and the loop around these processes is in
/// code that is not the user's, as that of a test runner around the tests.
fn is_loop_foreign(context: &RuleContext<'_, '_>, all: &[u32]) -> bool {
    let forest = context.forest();
    let mut makers: BTreeMap<u32, (usize, HashSet<_>)> = BTreeMap::new();
    for &index in all {
        // A command line that is given to a shell, as by xargs, is a part of what gives it.
        let is_script = |ancestor: &usize| {
            let launch = &forest.launches[*ancestor];
            !launch.is_fork_without_exec() && launch.execs.last().and_then(command_of).is_none()
        };
        let Some(maker) = forest.ancestors(index as usize).find(is_script) else { return false };
        let (count, lines) = makers.entry(maker as u32).or_default();
        *count += 1;
        lines.insert(context.sites.number_of(index as usize));
    }
    let has_loop = |(count, lines): &&(usize, HashSet<_>)| *count >= MIN_REPETITIONS || lines.len() < *count;
    let in_loops: usize = makers.values().filter(has_loop).map(|(count, _)| count).sum();
    let makers: Vec<u32> = makers.keys().copied().collect();
    makers.len() > 1 && in_loops * 2 <= all.len() && foreign_code(context, &makers).is_some()
}

/// Whether launches ask about different items: in their arguments or on their standard input, if
/// they are parts of pipelines or ask several questions in turn. Each temporary file is another
/// one.
fn have_own_inputs(context: &RuleContext<'_, '_>, all: &[u32]) -> bool {
    let command = context.launch(all[0]).command.name;
    let in_pipelines = all.iter().filter(|index| writer_of(context.forest(), **index).is_some()).count();
    let is_fed_in_turn = || {
        let is_input = has_property(command, "changing") && has_property(command, "reads");
        is_input && rounds(context, all).is_some_and(|rounds| (rounds.size as usize) < all.len())
    };
    are_distinct(context, all) || in_pipelines * 2 > all.len() || command == b"mktemp" || is_fed_in_turn()
}

fn are_distinct(context: &RuleContext<'_, '_>, all: &[u32]) -> bool {
    let lines = all.iter().filter_map(|index| Some(context.launch(*index).execs.last()?.argv()));
    let distinct: HashSet<&[u8]> = lines.collect();
    distinct.len() > 1 && distinct.len() * 100 >= all.len() * MIN_DISTINCT_PERCENT
}

/// An unknown program. How much of its run is work is not certain, so the saving has a wide range.
fn of_unknown(context: &RuleContext<'_, '_>, site: &Site<'_>) -> Option<Finding> {
    let all = &site.launches;
    let command = context.launch(all[0]).command.name;
    if functions_or_code(context, all[0]) {
        return None;
    }
    let subcommands: HashSet<_> =
        all.iter().filter_map(|index| subcommand_of(context.launch(*index).execs.last()?)).collect();
    if are_watching(context, all) || subcommands.len() > 1 {
        return None;
    }
    let in_pipelines = all.iter().all(|index| writer_of(context.forest(), *index).is_some());
    let line = shared_line(context, all);
    let differing = line.as_ref().map_or(0, SharedLine::differing);
    let with = match (&line, differing) {
        (Some(_), 0) if in_pipelines => ", each in a pipeline",
        (Some(_), 0) => " with the same arguments",
        (Some(_), 1) => ", with one different argument",
        _ => "",
    };
    // What changes the same files again, such as `rm -f conftest.o`, cannot do it once for all.
    if has_property(command, "changes") && !are_distinct(context, all) || has_property(command, "heavy") {
        return None;
    }
    // One `cp` cannot give several files new names, and no recipe can name files of other makes.
    let is_renamed = || differing > 1 || line.as_ref().is_some_and(|line| line.words().last() == Some(None));
    if has_property(command, "destination") && is_renamed() || are_of_several_makes(context, all) {
        return None;
    }
    let list =
        line.as_ref().filter(|_| has_property(command, "many") && differing > 0).and_then(SharedLine::before_inputs);
    if let Some(list) = list {
        return Some(of_list(context, site, &list, differing));
    }
    let size = all.len() as u32;
    let option = batch_option(context, (command, site.parent), b"", all, size);
    let finding = fix_of_unknown(context, finding(context, site, MANY, with, all.clone()), &name(site.program), line)
        .predicted_by_all(merged(context, all, size), option);
    Some(finding)
}

/// A program that takes many files, which the launches got one by one or a few at a time.
fn of_list(context: &RuleContext<'_, '_>, site: &Site<'_>, list: &str, differing: usize) -> Finding {
    let all = &site.launches;
    let option = batch_option(context, (context.launch(all[0]).command.name, site.parent), b"", all, MAX_BATCH);
    let is_loop = Runtime::of_parent(context.forest(), all[0]) == Runtime::Shell && may_be_in_loop(context, all);
    let with = if differing > 1 { " with a few files each" } else { " with one file each" };
    finding(context, site, MANY, with, all.clone())
        .recipe(context, "many-list", &[case(is_loop, "loop")], &[("list", list), ("program", &name(site.program))])
        .predicted_by_all(merged(context, all, MAX_BATCH), option)
}

/// Whether recipes of makes in several directories launch them, at most two in each on average.
fn are_of_several_makes(context: &RuleContext<'_, '_>, all: &[u32]) -> bool {
    let directory = |index: &u32| {
        let site = context.sites.call_site_of(*index as usize).filter(|site| site.language == Language::Make);
        site.and_then(|_| context.launch(*index).execs.last()?.cwd())
    };
    let directories: HashSet<&[u8]> = all.iter().filter_map(directory).collect();
    directories.len() > 1 && directories.len() * 2 >= all.len()
}

/// Whether a line of a script launches several of them, as far as lines are known.
fn may_be_in_loop(context: &RuleContext<'_, '_>, all: &[u32]) -> bool {
    let lines: HashSet<_> = all.iter().map(|index| context.launch(*index).script_stack).collect();
    lines.len() < all.len()
}

/// Whether a pause is between most launches with the same arguments: they watch something.
pub(super) fn are_watching(context: &RuleContext<'_, '_>, all: &[u32]) -> bool {
    let sleeps = context.launched().filter(|(_, launch)| launch.command.name == b"sleep");
    let starts: Vec<Nanos> = sleeps.filter_map(|(_, launch)| launch.start()).collect();
    let is_paused = |pair: &&[u32]| {
        let [from, to] = [pair[0], pair[1]].map(|index| context.launch(index).start());
        starts.iter().any(|start| Some(*start) > from && Some(*start) < to)
    };
    let paused = all.windows(2).filter(is_paused).count();
    paused > 0 && paused * 2 >= all.len() - 1 && !are_distinct(context, all)
}

/// Returns the launch that reads what another one writes into a pipeline.
pub(super) fn reader_of(context: &RuleContext<'_, '_>, index: u32) -> Option<u32> {
    let (siblings, position) = context.forest().siblings(index as usize)?;
    let next = *siblings.get(position + 1)?;
    let has_program = !context.launch(next as u32).execs.is_empty();
    let is_reader = has_program && overlap(context.forest(), index as usize, next);
    (is_reader && Runtime::of_parent(context.forest(), index) == Runtime::Shell).then_some(next as u32)
}

fn program_of_reader<'a>(context: &RuleContext<'_, 'a>, index: u32) -> Option<&'a [u8]> {
    reader_of(context, index).map(|reader| context.launch(reader).command.name)
}

/// Returns what becomes of the readers of launches in pipelines if one launch takes the place of
/// these: its form may do their work, too, and a filter of lines reads what all of them print.
fn of_readers(context: &RuleContext<'_, '_>, all: &[u32], is_for_reader: bool) -> Option<AppliedChange> {
    let is_filter = |reader: u32| {
        let exec = context.launch(reader).execs.last();
        exec.is_some_and(|exec| answers_each_line(&exec.arguments().map(<[u8]>::to_vec).collect::<Vec<_>>(), b""))
    };
    let readers = all.iter().filter_map(|index| reader_of(context, *index));
    let launches: Vec<u32> = readers.filter(|reader| is_for_reader || is_filter(*reader)).collect();
    let change = if is_for_reader { Change::Remove } else { Change::Batch(MAX_BATCH) };
    (!launches.is_empty()).then_some(AppliedChange { change, launches })
}

fn fix_of_unknown(context: &RuleContext<'_, '_>, finding: Finding, program: &str, line: Option<SharedLine>) -> Finding {
    let all = &finding.launches;
    let command = context.launch(all[0]).command.name;
    let exec = context.launch(all[0]).execs.last();
    let form = exec.and_then(|exec| items_form(command, exec, program_of_reader(context, all[0])));
    let is_fed = all.iter().all(|index| writer_of(context.forest(), *index).is_some());
    let takes_one = has_property(command, "one") && (is_fed || command != b"sed");
    let runtime = Runtime::of_parent(context.forest(), all[0]);
    let differs = line.as_ref().is_some_and(|line| line.differing() > 0);
    let differs_in_options =
        differs && !takes_one && !is_fed && line.as_ref().is_some_and(|line| line.differs_in_options);
    let several = line.filter(|_| !takes_one).and_then(|line| line.with_all_inputs());
    // `$` and line numbers are then those of each file.
    let several = several.map(|line| line.strip_prefix("sed ").map_or(line.clone(), |rest| format!("sed -s {rest}")));
    let kind = match &several {
        _ if differs_in_options => "merge",
        _ if form.is_some() && !differs => "items",
        None if !differs && all.iter().all(|index| context.is_captured(*index)) => of_answer(command, runtime),
        _ if takes_one && differs => "one",
        Some(_) => "inputs",
        None => "jobs",
    };
    let is_selection = several.as_ref().is_some_and(|line| line.contains(&format!("={INPUTS}"))) && kind != "merge";
    let options = with_all_options(context, all);
    // Nothing reads output that goes to a file.
    let is_read = is_fed || context.is_captured(all[0]) || reader_of(context, all[0]).is_some();
    let is_filter = runtime == Runtime::Shell && is_read && (has_property(command, "keeps-lines") || command == b"awk");
    let is_in_recipe = context.sites.call_site_of(all[0] as usize).is_some_and(|site| site.language == Language::Make);
    let values = [
        ("filter", if is_filter { "filter" } else { "" }),
        ("loop", if is_in_recipe { "" } else { "loop" }),
        ("form", form.map_or("", |(form, ..)| form)),
        ("options", &options),
        ("several", several.as_deref().unwrap_or_default()),
        ("program", program),
    ];
    finding.recipe(context, "many-unknown", &[kind, case(is_selection, "selection")], &values)
}

/// Returns which recipe fits a call that a parent repeats in order to read the answer.
fn of_answer(command: &[u8], parent: Runtime) -> &'static str {
    match has_property(command, "changing") {
        true if has_property(command, "clock") && parent != Runtime::Make => "clock",
        true => "unchanged",
        false => "answer",
    }
}

/// `mv`, `cp`, `ln` and `install`, launched once per pair of source and destination. One launch
/// cannot take several pairs, but one process of another program can do all the work.
fn of_pairs(context: &RuleContext<'_, '_>, site: &Site<'_>) -> Option<Finding> {
    let command = context.launch(site.launches[0]).command.name;
    let mut all = site.launches.clone();
    all.retain(|index| context.launch(*index).execs.len() == 1 && context.small_work.is_mostly_tax(*index as usize));
    let batched: usize = files::batches(context, &all).iter().map(|(_, batch)| batch.len()).sum();
    if !has_property(command, "destination") || all.len() < MIN_REPETITIONS || batched * 2 > all.len() {
        return None;
    }
    let line = shared_line(context, &all)?;
    let with = format!("{}={MAX_BATCH}", option("--batch", command, site.parent));
    let words: Vec<Option<&str>> = line.words().collect();
    let dashes = words.iter().position(|word| *word == Some("--")).unwrap_or(words.len());
    let end = dashes.min(words.len().saturating_sub(2)).max(1);
    let options: Option<Vec<&[u8]>> = words[1..end].iter().map(|word| Some((*word)?.as_bytes())).collect();
    let is_shell = Runtime::of_parent(context.forest(), all[0]) == Runtime::Shell;
    let process = options.and_then(|options| one_process(command, &options)).filter(|_| is_shell);
    let keeps_names = all.iter().all(|index| keeps_name(&context.example(&[*index])));
    if process.is_none() && !keeps_names {
        return None;
    }
    let options = line.text(1..end).filter(|options| !options.is_empty());
    let values = [
        ("process", process.as_deref().unwrap_or_default()),
        ("options", &options.map_or(String::new(), |options| format!(" {options}"))),
    ];
    let finding = finding(context, site, MANY, ", once per pair of files", all);
    let finding = finding.recipe(context, "many-pairs", &[case(keeps_names, "names")], &values);
    Some(finding.predicted_by(Change::Batch(MAX_BATCH), with))
}

/// Whether a file has the same name at its destination, which may be a directory.
fn keeps_name(words: &[Vec<u8>]) -> bool {
    let [.., from, to] = words else { return false };
    to.ends_with(b"/") || base_name(from) == base_name(to)
}

/// One launch for several questions about the same input, such as three fields of a JSON file,
/// which several lines request in turn.
pub(super) fn together(context: &RuleContext<'_, '_>, site: &Site<'_>) -> Option<Finding> {
    let command = context.launch(site.launches[0]).command.name;
    let Rounds { size, difference } = rounds(context, &site.launches)?;
    let which = match size as usize == site.launches.len() {
        true => ", always about the same input".to_owned(),
        false => format!(", {size} for each input"),
    };
    let finding = finding(context, site, MANY, &which, site.launches.clone());
    let is_known = difference == Difference::Argument;
    let edits = match is_known {
        true => shell_edits(context, command, &site.launches, &Form::Together),
        false => Vec::new(),
    };
    let round = &site.launches[..size as usize];
    let count = if size == 2 { "both".to_owned() } else { format!("all {size}") };
    let values = [("count", &count[..]), ("options", &with_all_options(context, round))];
    let asked = round.iter().filter_map(|index| subcommand_of(context.launch(*index).execs.last()?));
    let asked: Vec<String> = asked.map(name).collect();
    let program = name(command);
    let cases = [case(is_known, "known"), &program].into_iter().chain(asked.iter().map(String::as_str));
    let key = if difference == Difference::InPlace { "together-in-place" } else { "together" };
    let finding = finding.recipe(context, key, &cases.collect::<Vec<_>>(), &values);
    Some(Finding { edits, ..finding.predicted_by(Change::Batch(size), "") })
}

/// Returns the command line of the first of some launches, with the options that only the others
/// have.
fn with_all_options(context: &RuleContext<'_, '_>, round: &[u32]) -> String {
    let mut words: Vec<Vec<u8>> = Vec::new();
    for index in round {
        let line = context.example(&[*index]);
        let is_new = |word: &Vec<u8>| words.is_empty() || word.starts_with(b"-") && !words.contains(word);
        let new: Vec<Vec<u8>> = line.into_iter().filter(is_new).collect();
        words.extend(new);
    }
    words.iter().map(|word| quoted(&name(word))).collect::<Vec<_>>().join(" ")
}
