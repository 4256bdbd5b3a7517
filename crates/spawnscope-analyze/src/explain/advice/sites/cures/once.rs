//! Launches that ask the same question again: `git rev-parse --show-toplevel`, `$(shell cat
//! VERSION)`. The first answer can be kept.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::many::{are_watching, reader_of, with_filters};
use super::{ONCE, finding, removing, shared_line};
use crate::explain::advice::context::RuleContext;
use crate::explain::advice::edits;
use crate::explain::advice::finding::Finding;
use crate::explain::advice::languages::{functions, language};
use crate::explain::advice::phrases::{ANSWER_LIMIT, EVALUATED_LIMIT, abridged, name};
use crate::explain::advice::programs::is_idempotent;
use crate::explain::advice::rules::builtin;
use crate::explain::advice::sites::Site;
use crate::explain::advice::tables::case;
use crate::model::launch::{Exec, remembered};
use crate::patterns::pipeline::writer_of;
use crate::patterns::queries::{Answer, answer_of, is_git_reading, question_of};
use crate::patterns::runtimes::Runtime;
use crate::patterns::shells::{command_of, is_shell};
use spawnscope_data::units;

/// Maximum number of command lines that are shown.
const MAX_LINES: usize = 3;
/// Maximum number of characters of a command line.
const MAX_CHARACTERS: usize = 60;
/// At least this share of the launches must repeat a question, in percent.
const MIN_REPEATED_PERCENT: usize = 50;

/// What [`question_of`] returns.
type Question<'a> = (&'a [u8], Option<&'a [u8]>);

/// Returns the cure of launches with the same questions.
pub(super) fn cure(context: &RuleContext<'_, '_>, site: &Site<'_>) -> Option<Finding> {
    let (questions, is_sure) = repeated(context, site);
    if !is_sure && are_watching(context, &site.launches) {
        return None;
    }
    let mut all: Vec<u32> = questions.values().flatten().copied().collect();
    all.sort_unstable();
    if all.is_empty() || (all.len() - questions.len()) * 100 < site.launches.len() * MIN_REPEATED_PERCENT {
        return None;
    }
    let has_certain_answers = all.iter().all(|index| context.has_certain_answer(*index));
    let with = match questions.len() {
        1 => " with the same arguments".to_owned(),
        several => format!(" with only {} different command lines", units::count(several as u64)),
    };
    let is_sure = is_sure && (Runtime::of_parent(context.forest(), all[0]) != Runtime::Make || has_certain_answers);
    let finding = finding(context, site, ONCE, &with, all.clone()).evidence_lines(lines(context, &questions));
    let finding = with_fix(context, finding, &all, questions.len() > 1, is_sure);
    Some(removing(context, finding, needless(context, &questions)))
}

/// Returns the launches that repeat questions. A `$( )` is among them if the filters in it are
/// repeated, too.
fn needless(context: &RuleContext<'_, '_>, questions: &BTreeMap<Question<'_>, Vec<u32>>) -> Vec<u32> {
    let mut needless = BTreeSet::new();
    for launches in questions.values() {
        let mut known = BTreeSet::new();
        for (position, index) in launches.iter().enumerate() {
            let whole = with_filters(context, *index).unwrap_or(*index);
            let children = context.forest().children(whole as usize).iter().filter(|_| whole != *index);
            let lines: Option<Vec<&[u8]>> =
                children.map(|child| Some(context.launch(*child as u32).execs.last()?.argv())).collect();
            let is_known = !known.insert(lines.clone()) && lines.is_some();
            needless.extend((position > 0).then_some(if is_known { whole } else { *index }));
        }
    }
    needless.into_iter().collect()
}

/// Returns the questions that are asked again, each with its launches, and whether their answers
/// are certainly the same.
fn repeated<'a>(context: &RuleContext<'_, 'a>, site: &Site<'_>) -> (BTreeMap<Question<'a>, Vec<u32>>, bool) {
    let mut questions: BTreeMap<Question<'_>, Vec<u32>> = BTreeMap::new();
    let mut is_sure = true;
    let functions = make_functions(context, site);
    let answer_of = remembered(answer_of);
    let is_unchanged = context.launch(site.launches[0]).command.name == b"git" && context.is_repository_unchanged();
    for &index in &site.launches {
        let exec = context.launch(index).execs.last().filter(|exec| !exec.argv_cut);
        let answer = exec.and_then(|exec| {
            match functions.contains(&question_of(exec)) || is_unchanged && is_git_reading(exec) {
                true => Some(Answer::Same),
                false => answer(context, index, &answer_of),
            }
        });
        if let Some((exec, answer)) = exec.zip(answer) {
            questions.entry(question_of(exec)).or_default().push(index);
            is_sure &= answer == Answer::Same;
        }
    }
    questions.retain(|_, launches| launches.len() > 1);
    (questions, is_sure)
}

/// Returns the command lines that make reads, at least sometimes: it expands `$(shell ...)` again
/// at each use, whatever it runs. make does not wait for an answer that is there already.
fn make_functions<'a>(context: &RuleContext<'_, 'a>, site: &Site<'_>) -> BTreeSet<Question<'a>> {
    let of_make =
        |index: &&u32| Runtime::of_parent(context.forest(), **index) == Runtime::Make && context.is_captured(**index);
    let execs = site.launches.iter().filter(of_make).filter_map(|index| context.launch(*index).execs.last());
    execs.map(question_of).collect()
}

/// Returns whether the answer to a launch is the same each time.
fn answer<'a>(
    context: &RuleContext<'_, 'a>,
    index: u32,
    answer_of: &impl Fn(&Exec<'a>) -> Option<Answer>,
) -> Option<Answer> {
    let exec = context.launch(index).execs.last()?;
    if is_idempotent(exec) {
        return Some(Answer::Same);
    }
    // A line whose programs all answer the same.
    if is_line_of_code(context, index) && edits::is_stable(context, index) {
        return Some(Answer::Same);
    }
    let answer = answer_of(exec).filter(|_| !is_shell(context.launch(index).command.name))?;
    // About launches that the shell itself can replace, `builtin` has better advice.
    let may_read_input = writer_of(context.forest(), index).is_some() || runtime_of(exec) != Runtime::Native;
    let is_read = context.is_captured(index) || reader_of(context, index).is_some();
    let is_known = answer == Answer::Same || is_read && !may_read_input;
    (is_known && builtin::code_for(context, index).is_none()).then_some(answer)
}

/// Whether a launch is a shell that executes a line of another language.
fn is_line_of_code(context: &RuleContext<'_, '_>, index: u32) -> bool {
    let is_line = context.launch(index).execs.last().and_then(command_of).is_some();
    let is_code =
        || !matches!(Runtime::of_parent(context.forest(), index), Runtime::Shell | Runtime::Make | Runtime::Native);
    is_line && !context.forest().children(index as usize).is_empty() && is_code()
}

fn runtime_of(exec: &Exec<'_>) -> Runtime {
    Runtime::named(exec.program_name())
}

/// Adds how to ask once.
fn with_fix(context: &RuleContext<'_, '_>, finding: Finding, all: &[u32], are_several: bool, is_sure: bool) -> Finding {
    let runtime = Runtime::of_parent(context.forest(), all[0]);
    let is_directory = context.launch(all[0]).execs.last().is_some_and(is_idempotent);
    let function = functions(context, all[0]).filter(|_| is_directory);
    let own = shared_line(context, all).and_then(|line| line.words().last()?.map(str::to_owned));
    let is_git = are_several && all.iter().all(|index| context.launch(*index).command.name == b"git");
    let is_captured = || all.iter().any(|index| context.is_captured(*index));
    let what = match function {
        Some(_) => "function",
        None if is_directory => "mkdir",
        None if runtime == Runtime::Make && is_captured() => "variable",
        None => "answer",
    };
    let cases = [case(are_several, "several"), case(is_git, "git"), case(is_sure, "sure"), what];
    let values = [
        ("function", function.unwrap_or_default()),
        ("directory", own.as_deref().unwrap_or("$(DIR)")),
        ("keep", if are_several { language(runtime).keep_each } else { language(runtime).keep }),
        ("evaluated", EVALUATED_LIMIT),
        ("changes", ANSWER_LIMIT),
    ];
    finding.recipe(context, "once", &cases, &values)
}

/// Returns the most frequent command lines, formatted as `1,234 x command line`.
fn lines(context: &RuleContext<'_, '_>, questions: &BTreeMap<Question<'_>, Vec<u32>>) -> Vec<String> {
    // Their directories may differ.
    let mut counts: BTreeMap<String, (Reverse<u64>, u32)> = BTreeMap::new();
    for launches in questions.values() {
        let line = abridged(&name(&context.example(launches).join(&b' ')), MAX_CHARACTERS);
        let (Reverse(count), first) = counts.entry(line).or_insert((Reverse(0), launches[0]));
        (*count, *first) = (*count + launches.len() as u64, launches[0].min(*first));
    }
    let mut lines: Vec<_> = counts.into_iter().collect();
    lines.sort_by_key(|(_, order)| *order);
    let lines = lines.into_iter().take(MAX_LINES);
    lines.map(|(line, (Reverse(count), _))| format!("{} x {line}", units::count(count))).collect()
}
