//! Cures: the few general ways to spend less time on a site. The recorded arguments decide which of them fits best.

use super::answer::Answer;
use super::front_ends::{self, FrontEnd};
use super::holders;
use super::{BUILD, LOOP, SITE, Site};
use crate::explain::advice::context::RuleContext;
use crate::explain::advice::finding::Finding;
use crate::explain::advice::languages::{how_to_keep_an_answer, without_launching};
use crate::explain::advice::phrases::{launches, name, time, times};
use crate::explain::advice::selection::{batch_option, options};
use crate::explain::advice::shared_line::SharedLine;
use crate::model::launch::NOT_FOUND;
use crate::model::phases::Phase;
use crate::model::tree::Forest;
use crate::patterns::queries::answer_of;
use crate::patterns::runtimes::Runtime;
use crate::patterns::shells::is_shell;
use crate::predict::whatif::AppliedChange;
use crate::predict::whatif::changes::Change;
use spawnscope_data::event::Nanos;

/// Programs that only change files.
const FILE_CHANGERS: [&[u8]; 9] = [b"chmod", b"chown", b"cp", b"install", b"ln", b"mkdir", b"mv", b"rm", b"touch"];

/// Returns the best cure of a site. `None` for a single launch that simply does its work.
pub(super) fn answer(context: &RuleContext<'_, '_>, site: &Site<'_>) -> Option<Answer> {
    let all = &site.launches;
    let line = if has_known_arguments(context, all) { SharedLine::of(context, all) } else { None };
    if all.iter().all(|index| context.launch(*index).outcome == NOT_FOUND) {
        return Some(not_at_all(context, site));
    }
    Some(match (front_ends::of(context, site), line) {
        (_, line) if site.is_loop => in_process(context, site, line.as_ref()),
        (Some(front_end), _) if all.len() > 1 => prepared_once(context, site, front_end),
        (front_end, line) if all.len() == 1 => single(context, site, front_end, line.as_ref())?,
        (_, Some(line)) if line.differing() == 0 && is_question(context, all) => once(context, site),
        (_, line) => many_per_launch(context, site, line.as_ref()),
    })
}

fn has_known_arguments(context: &RuleContext<'_, '_>, all: &[u32]) -> bool {
    all.iter().all(|index| context.launch(*index).execs.first().is_some_and(|exec| !exec.argv_cut))
}

/// Whether launches with the same arguments ask the same question in the same directory.
fn is_question(context: &RuleContext<'_, '_>, all: &[u32]) -> bool {
    let mut execs = all.iter().filter_map(|index| context.launch(*index).execs.last());
    let first = execs.next().map(|exec| (answer_of(exec), exec.cwd()));
    first.is_some_and(|(answer, cwd)| answer.is_some() && execs.all(|exec| exec.cwd() == cwd))
}

/// Returns `, at build.sh:7` if all launches of a site come from one line.
fn place(context: &RuleContext<'_, '_>, site: &Site<'_>) -> String {
    match (context.callers.count(&site.launches), site.launches.len() as u64) {
        (counts, all) if counts.largest.first().is_some_and(|(_, count)| *count == all) => {
            format!(", at {}", name(&counts.largest[0].0.short_label()))
        }
        _ => String::new(),
    }
}

/// Returns `bash launches git 12 times`.
fn title(site: &Site<'_>) -> String {
    let program = if site.program.is_empty() { "a missing program".to_owned() } else { name(site.program) };
    let count = if site.launches.len() == 1 { "once".to_owned() } else { times(site.launches.len()) };
    format!("{} launches {program} {count}", name(site.parent))
}

/// Returns an answer whose launches can be removed, except for the first `keep` of them.
fn removing(context: &RuleContext<'_, '_>, finding: Finding, keep: usize) -> Answer {
    let removal = AppliedChange { change: Change::Remove, launches: finding.launches[keep..].to_vec() };
    let changes = vec![removal.clone()];
    let options = if keep == 0 { options(context, &changes) } else { String::new() };
    let finding = finding.with_example(context).predicted_by_all(changes, options);
    Answer { finding, removal, is_open: false, kept: Nanos(0) }
}

/// All launches failed.
fn not_at_all(context: &RuleContext<'_, '_>, site: &Site<'_>) -> Answer {
    let which = if site.program.is_empty() { "" } else { ", which does not exist" };
    let title = format!("{}{which}{}", title(site), place(context, site));
    let finding = Finding::modelled(SITE, title, site.launches.clone())
        .evidence("each ended with status 127, which shells use for programs that they do not find")
        .fix("remove the launch, or install the program")
        .limits("an installed program takes its own time");
    removing(context, finding, 0)
}

/// All launches ask the same question.
fn once(context: &RuleContext<'_, '_>, site: &Site<'_>) -> Answer {
    let runtime = Runtime::of_parent(context.forest(), site.launches[0]);
    let title = format!("{} with the same arguments{}", title(site), place(context, site));
    let finding = Finding::modelled(SITE, title, site.launches.clone())
        .evidence_lines(holders::evidence(context, site))
        .fix("launch it once, and keep the answer:")
        .fix_lines(how_to_keep_an_answer(runtime).iter().copied())
        .limits(
            "only if its result does not change in between: Spawnscope does not know what else it reads and writes",
        );
    removing(context, finding, 1)
}

/// Each launch prepares the same program. The program's own processes stay.
fn prepared_once(context: &RuleContext<'_, '_>, site: &Site<'_>, front_end: &FrontEnd) -> Answer {
    let forest = context.forest();
    let keeps = front_end.keeps_last_child;
    let title = format!("{}{}: each launch {}", title(site), place(context, site), front_end.repeats);
    let finding = Finding::modelled(BUILD, title, site.launches.clone())
        .evidence_lines(holders::evidence(context, site))
        .fix(if keeps { "prepare it once, and use the result:" } else { "do it once for all of them:" })
        .fix(format!("  {}", front_end.fix))
        .limits(match keeps {
            true => "prepare it again when its sources or its configuration change",
            false => "a failure of one of them may then fail all",
        });
    let last_children = finding.launches[1..].iter().filter_map(|launch| forest.children(*launch as usize).last());
    let kept = last_children.filter_map(|child| forest.launches[*child].total(forest.end)).map(|total| total.0).sum();
    Answer { kept: Nanos(if keeps { kept } else { 0 }), ..removing(context, finding, 1) }
}

/// One launch, whose time may be necessary. `None` unless a shell reads its output, which can be kept, or a front end prepares it.
fn single(
    context: &RuleContext<'_, '_>,
    site: &Site<'_>,
    front_end: Option<&FrontEnd>,
    line: Option<&SharedLine>,
) -> Option<Answer> {
    let launch = site.launches[0];
    let is_answer = Runtime::of_parent(context.forest(), launch) == Runtime::Shell && context.is_captured(launch);
    if !is_answer && front_end.is_none() {
        return None;
    }
    let title = format!("{} waits for one launch of {}{}", name(site.parent), name(site.program), place(context, site));
    let hint = front_end.map(|front_end| format!("it {}: {}", front_end.repeats, front_end.fix));
    let command = line.filter(|_| is_answer).map(|line| line.with_inputs(""));
    let finding = Finding::modelled(SITE, title, site.launches.clone())
        .evidence_lines(holders::evidence(context, site))
        .fix_lines(hint)
        .fix("leave it out, keep its result until its input changes, or shorten what holds its time")
        .fix_lines(command.map(|command| format!("  {command} >FILE   when its input changes, and $(cat FILE) here")))
        .limits("the saving is what the command would save without this launch, whose work may be needed");
    Some(removing(context, finding, 0))
}

/// The launches have different arguments. How much of their run is work is not certain, so the saving has a wide range.
fn many_per_launch(context: &RuleContext<'_, '_>, site: &Site<'_>, line: Option<&SharedLine>) -> Answer {
    let (all, program) = (&site.launches, name(site.program));
    let differing = line.map_or(0, SharedLine::differing);
    let with = match (line, differing) {
        (Some(_), 0) => " with the same arguments",
        (Some(_), 1) => ", with one different argument",
        _ => "",
    };
    let several = line.filter(|_| differing == 1).map(|line| format!("  {}", line.with_inputs("INPUT...")));
    let is_selection = several.as_ref().is_some_and(|line| line.contains("=INPUT..."));
    let command = context.launch(all[0]).command.name;
    let size = all.len() as u32;
    let option = batch_option(context, (command, site.parent), b"", all, size);
    let fix = match several {
        Some(_) => format!("use one launch for all inputs, if {program} takes several:"),
        None => format!("use one launch of {program} for all of the work, if it can do several jobs"),
    };
    let finding = Finding::modelled(SITE, format!("{}{with}{}", title(site), place(context, site)), all.clone())
        .evidence_lines(holders::evidence(context, site))
        .with_example(context)
        .fix(fix)
        .fix_lines(several)
        .fix_lines(is_selection.then_some("or leave this option out, if it only selects a part of the work"))
        .fix(one_process(site.program, command))
        .limits("the upper end assumes that the launches repeat everything but a little work of their own; one process has one exit status and mixes the output")
        .predicted_by(Change::Batch(size), option);
    let removal = AppliedChange { change: Change::Remove, launches: all[1..].to_vec() };
    Answer { finding, removal, is_open: true, kept: Nanos(0) }
}

/// Returns how one process does the work of many launches.
fn one_process(program: &[u8], command: &[u8]) -> String {
    match Runtime::named(command) {
        Runtime::Native | Runtime::Make => {
            "or use its library, or a mode in which one process serves all requests (a server, a daemon, standard input)".to_owned()
        }
        Runtime::Shell => "or source it in one shell that loops over the inputs".to_owned(),
        _ if program == command => format!("or let one {} process loop over the inputs", name(command)),
        _ => format!("or let one {} process import {} and loop over the inputs", name(command), name(program)),
    }
}

/// Many launches, each of which works for less time than it takes to launch it. Whoever launches them may do the work itself.
fn in_process(context: &RuleContext<'_, '_>, site: &Site<'_>, line: Option<&SharedLine>) -> Answer {
    let forest = context.forest();
    let is_lines = is_shell(site.program);
    let tops: Vec<usize> = site.launches.iter().map(|launch| *launch as usize).collect();
    let mut all: Vec<u32> = forest.walk(&tops).map(|step| step.index as u32).collect();
    all.sort_unstable();
    let (count, spent) = (launches(all.len()), time(context.spent_on(&site.launches)));
    let changes = vec![AppliedChange { change: Change::InProcess, launches: all.clone() }];
    let (title, evidence) = if is_lines {
        let lines = format!("{} runs {} command lines through {}", name(site.parent), tops.len(), name(site.program));
        (lines, format!("{count}, including forks without an exec, take {spent} in all, most of it launch tax"))
    } else {
        let (tax, run) = (holders::tax(context, &all), context.total_phase(&all, Phase::Run));
        (title(site), format!("{count} take {spent} in all: {} launch tax and {} run", time(tax), time(run)))
    };
    let options = options(context, &changes);
    let several = line.filter(|line| line.differing() == 1 && !is_lines);
    let several = several.map(|line| format!("  if it takes several inputs: {}", line.with_inputs("INPUT...")));
    let command = context.launch(site.launches[0]).command.name;
    let is_interpreted = !matches!(Runtime::named(command), Runtime::Native | Runtime::Make | Runtime::Shell);
    let process = is_interpreted.then(|| format!("  {}", one_process(site.program, command)));
    let finding = Finding::modelled(LOOP, title, all)
        .evidence(evidence)
        .with_example(context)
        .fix_lines(how_to_launch_less(forest, site, is_lines))
        .fix_lines(several)
        .fix_lines(process)
        .limits(
            "the parent may not be able to do this itself; the prediction keeps the work and removes only the launches",
        )
        .predicted_by_all(changes, options);
    let removal = AppliedChange { change: Change::Remove, launches: site.launches.clone() };
    Answer { finding, removal, is_open: false, kept: Nanos(0) }
}

/// Returns the lines that show how to make fewer launches. Shells have no builtins that change files.
fn how_to_launch_less(forest: &Forest<'_>, site: &Site<'_>, is_lines: bool) -> Vec<&'static str> {
    let launch = site.launches[0];
    if Runtime::of_parent(forest, launch) == Runtime::Shell && FILE_CHANGERS.contains(&site.program) {
        return vec![
            "launch it less often:",
            "  pass several files to one launch",
            "  skip launches that change nothing, such as rm -f of a missing file",
            "  write a file under its final name at once instead of renaming it",
        ];
    }
    let own = without_launching(forest, launch, Some(site.program).filter(|_| !is_lines));
    let first = if is_lines { "do the work without a shell and its programs:" } else { "launch it less often:" };
    let or = match own.is_empty() {
        true => "  pass all inputs to one launch, or keep one process that answers through a pipe",
        false => "  or pass all inputs to one launch, or keep one process that answers through a pipe",
    };
    [&[first], own, &[or]].concat()
}
