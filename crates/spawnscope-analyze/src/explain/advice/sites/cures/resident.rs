//! One process that serves all: a program that is built once, an interpreter that loops over the
//! inputs, one run of all test cases.

use std::collections::BTreeSet;

use super::{RESIDENT, finding, place, removing, shared_line};
use crate::explain::advice::context::RuleContext;
use crate::explain::advice::finding::Finding;
use crate::explain::advice::phrases::{name, option};
use crate::explain::advice::selection::batch_option;
use crate::explain::advice::sites::Site;
use crate::explain::advice::tables::{case, rows};
use crate::model::grouped::grouped;
use crate::model::launch::{Exec, base_name};
use crate::patterns::calls::{Call, Code};
use crate::patterns::chains::did_other_work;
use crate::patterns::package_scripts::runs_script;
use crate::patterns::programs::{has_property, subcommand_of};
use crate::patterns::runtimes::Runtime;
use crate::patterns::words::Words;
use crate::predict::whatif::changes::Change;
use spawnscope_data::event::Nanos;

/// A program that prepares another one at each launch and then runs it, although the result can be
/// kept (a row of `front_ends.tsv`): it builds it, resolves its packages, or starts a container.
pub(in crate::explain::advice::sites) struct FrontEnd {
    /// Whether it is about each program that its parent launches.
    is_any_program: bool,
    /// Whether the last process that it launches is the program, whose work stays.
    keeps_last_child: bool,
    /// What each launch repeats.
    repeats: &'static str,
    fix: &'static str,
}

impl FrontEnd {
    /// Returns the front end that a site launches.
    pub(in crate::explain::advice::sites) fn of(context: &RuleContext<'_, '_>, site: &Site<'_>) -> Option<FrontEnd> {
        let exec = context.launch(site.launches[0]).execs.last()?;
        let call = Call::of(exec)?;
        let words = [call.arguments.first().copied(), subcommand_of(exec)];
        let is_row = |[program, subcommand, parent, ..]: &[&'static str; 5]| {
            (program.is_empty() || Words(program).contains(call.name))
                && (subcommand.is_empty() || words.contains(&Some(subcommand.as_bytes())))
                && (parent.is_empty() || site.parent == parent.as_bytes())
        };
        let [program, _, parent, repeats, fix] = rows(include_str!("../../front_ends.tsv")).find(is_row)?;
        let (is_any_program, keeps_last_child) = (program.is_empty(), parent.is_empty());
        Some(FrontEnd { is_any_program, keeps_last_child, repeats, fix })
    }
}

/// Returns the cure of launches that prepare the same program again, or start the same interpreter
/// again.
pub(super) fn cure(context: &RuleContext<'_, '_>, site: &Site<'_>) -> Option<Finding> {
    if let Some(front_end) = FrontEnd::of(context, site) {
        return Some(prepared_once(context, site, &front_end));
    }
    interpreter(context, site)
}

/// Each launch prepares the same program. The program's own processes stay.
fn prepared_once(context: &RuleContext<'_, '_>, site: &Site<'_>, front_end: &FrontEnd) -> Finding {
    let forest = context.forest();
    let all = site.launches.clone();
    let keeps = front_end.keeps_last_child;
    let what = format!(": each launch {}", front_end.repeats);
    let cases = [case(keeps, "keeps"), case(front_end.is_any_program, "open")];
    let values = [("fix", front_end.fix)];
    let finding = finding(context, site, RESIDENT, &what, all.clone()).recipe(context, "prepared", &cases, &values);
    if front_end.is_any_program {
        let size = all.len() as u32;
        return finding.predicted_by(Change::Batch(size), "");
    }
    let last_children = all[1..].iter().filter_map(|launch| forest.children(*launch as usize).last());
    let kept = last_children.filter_map(|child| forest.launches[*child].total(forest.end)).map(|total| total.0).sum();
    Finding { kept: Nanos(if keeps { kept } else { 0 }), ..removing(context, finding, all[1..].to_vec()) }
}

/// Each launch starts the same interpreter.
fn interpreter(context: &RuleContext<'_, '_>, site: &Site<'_>) -> Option<Finding> {
    let forest = context.forest();
    let all = &site.launches;
    let command = context.launch(all[0]).command.name;
    let exec = context.launch(all[0]).execs.last();
    let runtime = Runtime::named(exec.map_or(command, Exec::program_name));
    if matches!(runtime, Runtime::Native | Runtime::Make | Runtime::Shell | Runtime::CMake)
        || has_property(command, "wrapper")
        || all.iter().any(|index| did_other_work(forest, context.timelines(), *index))
        || runs_script(forest, all[0] as usize)
    {
        return None;
    }
    let script = exec.and_then(|exec| code_of(exec, site));
    let code = |index: &u32| context.launch(*index).execs.last().and_then(|exec| code_of(exec, site));
    let is_one_script = all.iter().all(|index| code(index) == script) && !is_spread(context, all);
    let starts = match &script {
        Some(script) if is_one_script && script.as_bytes() != site.program => format!(" for {script}"),
        _ => String::new(),
    };
    let line = shared_line(context, all).filter(|_| is_one_script && exec.is_some_and(takes_inputs));
    let inputs = line.and_then(|line| line.with_all_inputs());
    let has_options = exec.and_then(|exec| exec.arguments().nth(1)).is_some_and(|word| word.starts_with(b"-"));
    // Different scripts may do different work.
    let is_guess = !is_one_script && !has_options;
    let is_same = Runtime::of_parent(forest, all[0]) == runtime;
    let cases = [case(is_same, "same"), case(is_guess, "guess")];
    let values = [
        ("language", runtime.name()),
        ("hint", runtime.shorter_start()),
        ("inputs", inputs.as_deref().unwrap_or_default()),
        ("loaded", loaded(script.as_deref().filter(|_| is_one_script))),
    ];
    let finding =
        finding(context, site, RESIDENT, &starts, all.clone()).recipe(context, "one-process", &cases, &values);
    let size = batch_size(context, all);
    let with = batch_option(context, (command, site.parent), b"", all, size);
    let with = if with.is_empty() { format!("{}={size}", option("--batch", command, site.parent)) } else { with };
    Some(finding.predicted_by(Change::Batch(size), with))
}

/// Whether the launches run different inline code, and no line makes half of them. Code that
/// differs at one line contains the values of its items.
fn is_spread(context: &RuleContext<'_, '_>, all: &[u32]) -> bool {
    let execs = || all.iter().filter_map(|index| context.launch(*index).execs.last());
    let lines = grouped(all.iter().map(|index| (context.sites.number_of(*index as usize), ())));
    let most = lines.values().map(Vec::len).max().unwrap_or_default();
    most * 2 < all.len()
        && execs().all(|exec| !matches!(Code::of(exec), Some(Code::Script(_))))
        && execs().map(Exec::argv).collect::<BTreeSet<_>>().len() > 1
}

/// Returns what a process of the same language would load, if all launches run this script.
fn loaded(script: Option<&str>) -> &str {
    match script {
        Some(script) if script.starts_with('-') => "the code",
        Some(script) => script,
        None => "each script",
    }
}

/// Whether a script or a module may take several inputs. php itself checks only the first file of
/// `php -l`, and json.tool writes the second one.
fn takes_inputs(exec: &Exec<'_>) -> bool {
    match Code::of(exec) {
        Some(Code::Script(_)) => true,
        Some(Code::Other(option)) => option == b"-m" && !exec.arguments().any(|word| word == b"json.tool"),
        None => false,
    }
}

/// Returns what an interpreter runs: a file name, a module, or the option for inline text.
fn code_of(exec: &Exec<'_>, site: &Site<'_>) -> Option<String> {
    match Code::of(exec)? {
        Code::Script(_) if exec.interpreter().is_some() => Some(name(site.program)),
        Code::Script(path) => Some(name(base_name(path))),
        Code::Other(b"-m") => {
            let module = exec.arguments().skip_while(|word| *word != b"-m").nth(1);
            Some(name(&[b"-m ", module.unwrap_or_default()].concat()))
        }
        Code::Other(option) => Some(name(option)),
    }
}

/// Maximum batch size. Larger batches would hardly save more.
const MAX_BATCH: usize = 1000;
/// Number of batches per CPU that keeps all CPUs busy, for launches that ran in parallel.
const BATCHES_PER_CPU: usize = 2;

/// Returns the batch size: the maximum or, if the launches ran in parallel, a size that leaves work
/// for every CPU.
fn batch_size(context: &RuleContext<'_, '_>, all: &[u32]) -> u32 {
    let overlapping = all.windows(2).filter(|pair| {
        let [first, second] = [pair[0], pair[1]].map(|index| context.launch(index));
        first.end().zip(second.instants.created.get()).is_some_and(|(ended, created)| created < ended)
    });
    if overlapping.count() * 2 < all.len() {
        return MAX_BATCH as u32;
    }
    let batches = context.recording.info.usable_cpus() as usize * BATCHES_PER_CPU;
    (all.len() / batches.max(1)).clamp(2, MAX_BATCH) as u32
}

/// One launch, whose time may be necessary. `None` unless a shell reads its output, which can be
/// kept, or a front end prepares it.
pub(super) fn single(context: &RuleContext<'_, '_>, site: &Site<'_>) -> Option<Finding> {
    let launch = site.launches[0];
    let front_end = FrontEnd::of(context, site);
    let is_answer = Runtime::of_parent(context.forest(), launch) == Runtime::Shell && context.is_captured(launch);
    if !is_answer && front_end.is_none() {
        return None;
    }
    let command = shared_line(context, &site.launches).filter(|_| is_answer).map(|line| line.with_inputs(""));
    let values = [
        ("parent", &name(site.parent)[..]),
        ("program", &name(site.program)),
        ("place", &place(context, &site.launches)),
        ("repeats", front_end.as_ref().map_or("", |front_end| front_end.repeats)),
        ("fix", front_end.as_ref().map_or("", |front_end| front_end.fix)),
        ("command", command.as_deref().unwrap_or_default()),
    ];
    let finding = finding(context, site, RESIDENT, "", site.launches.clone()).recipe(context, "single", &[], &values);
    Some(removing(context, finding, site.launches.clone()))
}
