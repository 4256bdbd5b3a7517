//! One process that serves all: a program that is built once, an interpreter that loops over the
//! inputs, one run of all test cases.

use super::front_ends::{self, FrontEnd};
use super::{Cure, RESIDENT, finding, open, removing, shared_line};
use crate::explain::advice::context::RuleContext;
use crate::explain::advice::phrases::{name, option};
use crate::explain::advice::selection::batch_option;
use crate::explain::advice::sites::Site;
use crate::model::launch::{Exec, base_name};
use crate::patterns::chains::did_other_work;
use crate::patterns::package_scripts::ScriptCall;
use crate::patterns::programs::has_property;
use crate::patterns::runtimes::Runtime;
use crate::predict::whatif::changes::Change;
use spawnscope_data::event::Nanos;

/// Returns the cure of launches that prepare the same program again, or start the same interpreter
/// again.
pub(super) fn cure(context: &RuleContext<'_, '_>, site: &Site<'_>) -> Option<Cure> {
    if let Some(front_end) = front_ends::of(context, site) {
        return Some(prepared_once(context, site, &front_end));
    }
    interpreter(context, site)
}

/// Each launch prepares the same program. The program's own processes stay.
fn prepared_once(context: &RuleContext<'_, '_>, site: &Site<'_>, front_end: &FrontEnd) -> Cure {
    let forest = context.forest();
    let all = site.launches.clone();
    let keeps = front_end.keeps_last_child();
    let what = format!(": each launch {}", front_end.repeats);
    let finding = finding(context, site, RESIDENT, &what, all.clone())
        .recipe("prepared", &[if keeps { "keeps" } else { "" }], &[("fix", front_end.fix)])
        .fixed_elsewhere();
    if front_end.is_any_program() {
        let size = all.len() as u32;
        return open(finding.predicted_by(Change::Batch(size), String::new()));
    }
    let last_children = all[1..].iter().filter_map(|launch| forest.children(*launch as usize).last());
    let kept = last_children.filter_map(|child| forest.launches[*child].total(forest.end)).map(|total| total.0).sum();
    Cure { kept: Nanos(if keeps { kept } else { 0 }), ..removing(context, finding, all[1..].to_vec()) }
}

/// Each launch starts the same interpreter.
fn interpreter(context: &RuleContext<'_, '_>, site: &Site<'_>) -> Option<Cure> {
    let forest = context.forest();
    let all = &site.launches;
    let command = context.launch(all[0]).command.name;
    let program = context.launch(all[0]).execs.last().map_or(command, Exec::program_name);
    let runtime = Runtime::named(program);
    if matches!(runtime, Runtime::Native | Runtime::Make | Runtime::Shell | Runtime::CMake)
        || has_property(command, "wrapper")
        || all.iter().any(|index| did_other_work(forest, context.timelines(), *index))
        || ScriptCall::of(forest, all[0]).is_some()
    {
        return None;
    }
    let script = context.launch(all[0]).execs.last().and_then(|exec| script_of(exec, site));
    let scripts = all.iter().map(|index| context.launch(*index).execs.last().and_then(|exec| script_of(exec, site)));
    let is_one_script = scripts.clone().all(|other| other == script);
    let starts = match &script {
        Some(script) if is_one_script && script.as_bytes() != site.program => format!(" for {script}"),
        _ => String::new(),
    };
    let parent = Runtime::of_parent(forest, all[0]);
    let line = shared_line(context, all).filter(|_| have_same_script(context, all));
    let inputs = line.and_then(|line| line.with_all_inputs());
    let cases = [&format!("{runtime:?}")[..], if parent == runtime { "same" } else { "" }];
    let values = [
        ("language", runtime.label()),
        ("hint", runtime.shorter_start().unwrap_or_default()),
        ("inputs", inputs.as_deref().unwrap_or_default()),
        ("script", script.as_deref().unwrap_or("the script")),
    ];
    let finding = finding(context, site, RESIDENT, &starts, all.clone()).recipe("one-process", &cases, &values);
    let size = batch_size(context, all);
    let with = batch_option(context, (command, site.parent), b"", all, size);
    let with = if with.is_empty() { format!("{}={size}", option("--batch", command, site.parent)) } else { with };
    let finding = finding.predicted_by(Change::Batch(size), with);
    let first = context.launch(all[0]).execs.last().and_then(|exec| exec.arguments().nth(1));
    let has_options = first.is_some_and(|word| word.starts_with(b"-"));
    // Different scripts may do different work.
    Some(open(if is_one_script || has_options { finding } else { finding.guessed() }))
}

/// Whether all launches of an interpreter run one script or module, which decides whether it takes
/// several inputs. php itself checks only the first file of `php -l`, and json.tool writes the
/// second one.
fn have_same_script(context: &RuleContext<'_, '_>, all: &[u32]) -> bool {
    let execs: Option<Vec<&Exec<'_>>> = all.iter().map(|index| context.launch(*index).execs.last()).collect();
    let Some(execs) = execs else { return false };
    let is_module = execs[0].arguments().nth(1).is_some_and(|word| matches!(word, b"-m" | b"-jar"));
    let script = |exec: &Exec<'_>| exec.arguments().nth(1 + usize::from(is_module)).map(<[u8]>::to_vec);
    let first = script(execs[0]).filter(|first| !first.starts_with(b"-") && first != b"json.tool");
    execs[0].interpreter().is_some() || first.is_some() && execs.iter().all(|exec| script(exec) == first)
}

/// Returns the script of an interpreter: a file name, a module, or the option for inline text.
fn script_of(exec: &Exec<'_>, site: &Site<'_>) -> Option<String> {
    if exec.interpreter().is_some() {
        return Some(name(site.program));
    }
    let mut arguments = exec.arguments().skip(1);
    while let Some(argument) = arguments.next() {
        match argument {
            b"-c" | b"-e" | b"-p" | b"-r" => return Some(name(argument)),
            b"-m" | b"-jar" => return Some(name(&[argument, b" ", arguments.next().unwrap_or_default()].concat())),
            // The value of an option of the interpreter, as in `php -d NAME=VALUE`.
            _ if argument.starts_with(b"-") || argument.contains(&b'=') => {}
            _ => return Some(name(base_name(argument))),
        }
    }
    None
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
pub(super) fn single(context: &RuleContext<'_, '_>, site: &Site<'_>) -> Option<Cure> {
    let launch = site.launches[0];
    let front_end = front_ends::of(context, site);
    let is_answer = Runtime::of_parent(context.forest(), launch) == Runtime::Shell && context.is_captured(launch);
    if !is_answer && front_end.is_none() {
        return None;
    }
    let command = shared_line(context, &site.launches).filter(|_| is_answer).map(|line| line.with_inputs(""));
    let title =
        format!("{} waits for one launch of {}{}", name(site.parent), name(site.program), super::place(context, site));
    let values = [
        ("repeats", front_end.map_or("", |front_end| front_end.repeats)),
        ("fix", front_end.map_or("", |front_end| front_end.fix)),
        ("command", command.as_deref().unwrap_or_default()),
    ];
    let mut finding = finding(context, site, RESIDENT, "", site.launches.clone()).recipe("single", &[], &values);
    finding.title = title;
    Some(removing(context, finding, site.launches.clone()))
}
