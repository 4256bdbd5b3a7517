//! Launches that ask the same question again: `git rev-parse --show-toplevel`, `$(shell cat
//! VERSION)`. The first answer can be kept.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::{Cure, ONCE, finding, removing, shared_line};
use crate::explain::advice::context::RuleContext;
use crate::explain::advice::functions::functions;
use crate::explain::advice::languages::language;
use crate::explain::advice::phrases::{ANSWER_LIMIT, EVALUATED_LIMIT, abridged, name};
use crate::explain::advice::programs::is_idempotent;
use crate::explain::advice::rules::builtin;
use crate::explain::advice::sites::Site;
use crate::model::launch::Exec;
use crate::model::tree::Forest;
use crate::patterns::pipeline::overlap;
use crate::patterns::queries::{Answer, answer_of, is_git_reading, question_of};
use crate::patterns::runtimes::Runtime;
use crate::patterns::shells::is_shell;
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
pub(super) fn cure(context: &RuleContext<'_, '_>, site: &Site<'_>) -> Option<Cure> {
    let (questions, is_sure) = repeated(context, site);
    let mut all: Vec<u32> = questions.values().flatten().copied().collect();
    all.sort_unstable();
    if all.is_empty() || (all.len() - questions.len()) * 100 < site.launches.len() * MIN_REPEATED_PERCENT {
        return None;
    }
    let mut repeated: Vec<u32> = questions.values().flat_map(|launches| &launches[1..]).copied().collect();
    repeated.sort_unstable();
    let has_certain_answers = all.iter().all(|index| context.has_certain_answer(*index));
    let with = match questions.len() {
        1 => " with the same arguments".to_owned(),
        several => format!(" with only {} different command lines", units::count(several as u64)),
    };
    let finding = finding(context, site, ONCE, &with, all.clone())
        .evidence_lines(lines(context, &questions))
        .fix_lines(one_git(context, &all, questions.len()))
        .fix_lines(fix(context, &all))
        .limits(match (Runtime::of_parent(context.forest(), all[0]), is_sure && has_certain_answers) {
            (Runtime::Make, true) => EVALUATED_LIMIT,
            (Runtime::Make, false) => {
                "only if the command writes nothing and prints the same each time: a number that counts, a time or a \
                 listing of files that the build makes does not; it then runs even if no target needs it"
            }
            (_, _) if is_sure => ANSWER_LIMIT,
            _ => "only if the output depends on nothing but the arguments: Spawnscope does not know this program",
        });
    Some(removing(context, finding, repeated))
}

/// Returns the questions that are asked again, each with its launches, and whether their answers
/// are certainly the same.
fn repeated<'a>(context: &RuleContext<'_, 'a>, site: &Site<'_>) -> (BTreeMap<Question<'a>, Vec<u32>>, bool) {
    let mut questions: BTreeMap<Question<'_>, Vec<u32>> = BTreeMap::new();
    let mut is_sure = true;
    let functions = make_functions(context, site);
    let is_unchanged = context.launch(site.launches[0]).command.name == b"git" && context.is_repository_unchanged();
    for &index in &site.launches {
        let exec = context.launch(index).execs.last().filter(|exec| !exec.argv_cut);
        let answer = exec.and_then(|exec| {
            match functions.contains(&question_of(exec)) || is_unchanged && is_git_reading(exec) {
                true => Some(Answer::Same),
                false => answer(context, index),
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
fn answer(context: &RuleContext<'_, '_>, index: u32) -> Option<Answer> {
    let exec = context.launch(index).execs.last()?;
    if is_idempotent(exec) {
        return Some(Answer::Same);
    }
    let answer = answer_of(exec).filter(|_| !is_shell(context.launch(index).command.name))?;
    // About launches that the shell itself can replace, `builtin` has better advice.
    let may_read_input = is_in_pipeline(context.forest(), index) || runtime_of(exec) != Runtime::Native;
    let is_known = answer == Answer::Same || context.is_captured(index) && !may_read_input;
    (is_known && !builtin::replaces(context, index)).then_some(answer)
}

/// Whether a sibling that may write to a launch ran at the same time. A program that reads its
/// input has other answers.
pub(super) fn is_in_pipeline(forest: &Forest<'_>, index: u32) -> bool {
    let siblings = forest.siblings(index as usize);
    let before = siblings.and_then(|(siblings, position)| Some(siblings[position.checked_sub(1)?]));
    before.is_some_and(|before| overlap(forest, before, index as usize))
}

fn runtime_of(exec: &Exec<'_>) -> Runtime {
    Runtime::named(exec.program_name())
}

fn fix(context: &RuleContext<'_, '_>, all: &[u32]) -> Vec<String> {
    let runtime = Runtime::of_parent(context.forest(), all[0]);
    let is_directory = context.launch(all[0]).execs.last().is_some_and(is_idempotent);
    let own = shared_line(context, all).and_then(|line| line.words().last()?.map(str::to_owned));
    let directory = own.unwrap_or_else(|| "$(DIR)".to_owned());
    let lines: &[&str] = match (runtime, is_directory) {
        (_, true) if functions(context, all[0]).is_some() => {
            &["create each directory once, without a launch:", functions(context, all[0]).unwrap_or_default()]
        }
        (Runtime::Make, true) => &[
            "instead of this line, make the directory a prerequisite, which make checks without a launch:",
            &format!("  TARGETS: | {directory}   and   {directory}: ; mkdir -p $@"),
        ],
        (_, true) => &[
            "create all directories with one launch before the loop, or test first:",
            "  [ -d \"$d\" ] || mkdir -p \"$d\"",
        ],
        (Runtime::Make, false) if all.iter().any(|index| context.is_captured(*index)) => &[
            "evaluate it once, where the variable is defined, unless it depends on the target (`$@`, `$<`):",
            "  NAME = $(shell ...)  ->  NAME := $(shell ...)",
            "  or at the first use: NAME = $(eval NAME := $$(shell ...))$(NAME)",
            "  export it, so that sub-makes do not evaluate it again",
        ],
        _ => return vec!["ask once, and keep the answer:".to_owned(), format!("  {}", language(runtime).keep)],
    };
    lines.iter().map(|line| (*line).to_owned()).collect()
}

/// Returns how one git answers several questions.
fn one_git(context: &RuleContext<'_, '_>, all: &[u32], questions: usize) -> Vec<&'static str> {
    if questions < 2 || all.iter().any(|index| context.launch(*index).command.name != b"git") {
        return Vec::new();
    }
    vec![
        "ask several questions in one git, where the answers may change in between:",
        "  git status --porcelain=v2 --branch   (branch, upstream, changes); git rev-parse takes several options",
    ]
}

/// Returns the most frequent command lines, formatted as `1,234 x command line`.
fn lines(context: &RuleContext<'_, '_>, questions: &BTreeMap<Question<'_>, Vec<u32>>) -> Vec<String> {
    let mut questions: Vec<&Vec<u32>> = questions.values().collect();
    questions.sort_by_key(|launches| (Reverse(launches.len()), launches[0]));
    let lines = questions.iter().take(MAX_LINES).map(|launches| {
        let words = context.example(launches).join(&b' ');
        let line = abridged(&name(&words), MAX_CHARACTERS);
        format!("{} x {line}", units::count(launches.len() as u64))
    });
    lines.collect()
}
