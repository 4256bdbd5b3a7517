//! Groups launches into sites: by the parent's program and the program that is really executed, and
//! by the line or the subcommand if much may depend on one of these alone.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};

use super::Site;
use crate::explain::advice::context::{MIN_REPETITIONS, RuleContext};
use crate::explain::advice::programs::{Together, is_worth_a_launch};
use crate::explain::advice::shared_line::arguments_of;
use crate::model::launch::{Launch, NOT_FOUND, base_name, remembered};
use crate::model::tree::Forest;
use crate::patterns::calls::Call;
use crate::patterns::chains::is_in_version_manager;
use crate::patterns::programs::{has_property, place_of, subcommand_of, version_has_property};
use crate::patterns::queries::{Answer, answer_of, question_of};
use crate::patterns::runtimes::{Runtime, shell_between, shell_of_line};
use crate::patterns::shells::{command_of, is_shell, wrapped_child};
use crate::predict::dependence::DEPENDENT_SHARE;
use crate::sites::callers::CallSite;
use spawnscope_data::event::Nanos;

/// A site is examined if at least this share of the minimum is on the critical path, since more may
/// depend on it.
const MIN_CRITICAL: f64 = 0.5 * DEPENDENT_SHARE;

/// The line that requests a launch, and the script that it executes; without a line, the script or
/// the subcommand.
type Place<'g, 'a> = (Option<&'g CallSite>, Option<&'a [u8]>);

/// Returns the sites that may be worth a cure: those with much time on the critical path, and those
/// with many launches.
pub(super) fn sites<'a>(context: &RuleContext<'_, 'a>) -> Vec<Site<'a>> {
    let critical = context.path.with_descendants(context.forest());
    let critical_of = |launches: &[u32]| {
        let outer = super::outermost(context, launches);
        let sum: u64 = outer.into_iter().map(|launch| critical[launch as usize]).sum();
        Nanos(sum.min(context.wall().0))
    };
    let by_programs = context.grouped_by(|index, launch| {
        let forest = context.forest();
        let program = program_of(forest, index, launch).filter(|_| !is_between(forest, index))?;
        // What make reads and what its recipes do have other cures.
        let is_function = Runtime::named(launch.birth_command.name) == Runtime::Make && context.is_captured(index);
        let parent = shell_between(forest, index).map_or(launch, |shell| context.launch(shell)).birth_command.name;
        (!is_in_version_manager(forest, index)).then_some((parent, program, is_function))
    });
    let mut sites = Vec::new();
    for ((parent, command, _), launches) in by_programs {
        // One question that several lines ask is one cause, and so are questions about the same
        // inputs.
        let parts = match are_questions(context, &launches) {
            true => vec![launches],
            false => {
                let (in_turn, others) = in_turn(context, launches);
                let parts = if others.is_empty() { Vec::new() } else { parts(context, others, &critical_of) };
                parts.into_iter().chain((!in_turn.is_empty()).then_some(in_turn)).collect()
            }
        };
        for launches in parts {
            let program = common_script(context, &launches).unwrap_or(command);
            let critical = critical_of(&launches);
            sites.push(Site { parent, program, critical, launches, repeated: OnceCell::new() });
        }
    }
    let least = context.share_of_wall(MIN_CRITICAL);
    sites.retain(|site| {
        let is_frequent = site.launches.len() >= MIN_REPETITIONS && site.critical >= context.min_saving();
        site.critical >= least || is_frequent
    });
    sites
}

/// Separates the launches of the lines that ask in turn about the same inputs, which make the most
/// launches.
fn in_turn(context: &RuleContext<'_, '_>, launches: Vec<u32>) -> (Vec<u32>, Vec<u32>) {
    let mut counts: BTreeMap<_, usize> = BTreeMap::new();
    let line = |index: u32| context.sites.number_of(index as usize);
    launches.iter().for_each(|index| *counts.entry(line(*index)).or_default() += 1);
    let most = counts.values().copied().max().unwrap_or_default();
    let is_frequent = |index: &u32| counts.get(&line(*index)) == Some(&most);
    // Lines that call one function ask in the same way: with the same options and as many words.
    let shape = |index: &u32| {
        let words = context.launch(*index).execs.last().map(arguments_of).unwrap_or_default();
        (words.len(), words.into_iter().filter(|word| word.starts_with(b"-")).collect::<Vec<_>>())
    };
    let mut shapes: BTreeMap<_, usize> = BTreeMap::new();
    launches.iter().filter(|index| is_frequent(index)).for_each(|index| *shapes.entry(shape(index)).or_default() += 1);
    let usual = shapes.into_iter().max_by_key(|(_, count)| *count).map(|(shape, _)| shape);
    let has_shape = |index: &u32| is_frequent(index) && Some(shape(index)) == usual;
    for is_member in [&is_frequent as &dyn Fn(&u32) -> bool, &has_shape] {
        let (in_turn, others): (Vec<u32>, Vec<u32>) = launches.iter().partition(|index| is_member(index));
        if rounds(context, &in_turn).is_some() {
            return (in_turn, others);
        }
    }
    (Vec::new(), launches)
}

/// Questions that several lines ask in turn, each time about another input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rounds {
    /// Number of different questions about each input.
    pub(super) size: u32,
    pub(super) difference: Difference,
}

/// How the questions about one input differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Difference {
    /// In one argument, and the program is known to answer several at once.
    Argument,
    /// In options. The operands are the same.
    Options,
    /// In anything, but each input is a place of its own.
    InPlace,
}

/// Returns the rounds of launches, if lines request them in turn. If no line is repeated, there is
/// one round.
pub(super) fn rounds(context: &RuleContext<'_, '_>, launches: &[u32]) -> Option<Rounds> {
    let program = context.launch(*launches.first()?).command.name;
    let is_known = Together::of(program).is_some();
    let is_one = is_shell(program) || is_worth_a_launch(program) || version_has_property(program, "compiler");
    if !is_known && (is_one || has_property(program, "changes")) {
        return None;
    }
    let line = |index: u32| context.sites.number_of(index as usize);
    let first = line(launches[0])?;
    let size =
        launches.iter().skip(1).position(|index| line(*index) == Some(first)).map_or(launches.len(), |at| at + 1);
    let lines: BTreeSet<_> = launches[..size].iter().map(|index| line(*index)).collect();
    let is_in_turn = launches.iter().zip(launches.iter().skip(size)).all(|(one, next)| line(*one) == line(*next));
    let is_whole = lines.len() == size && size > 1 && launches.len().is_multiple_of(size) && is_in_turn;
    let is_much = launches.len() >= MIN_REPETITIONS || is_known && launches.len() > 2;
    let firsts: Vec<u32> = launches.iter().step_by(size).copied().collect();
    let usual = if is_known { Difference::Argument } else { Difference::Options };
    let in_place = have_own_places(context, &firsts).then_some(Difference::InPlace);
    let holds = |difference: &Difference| launches.chunks(size).all(|round| differ(context, round, *difference));
    let difference = Some(usual).into_iter().chain(in_place).filter(|_| is_whole && is_much).find(holds)?;
    Some(Rounds { size: size as u32, difference })
}

/// Whether the launches of a round differ in this way only.
fn differ(context: &RuleContext<'_, '_>, round: &[u32], difference: Difference) -> bool {
    let exec = |index: &u32| context.launch(*index).execs.last();
    let all: Option<Vec<Vec<&[u8]>>> = round.iter().map(|index| Some(arguments_of(exec(index)?))).collect();
    let Some((one, others)) = all.as_ref().and_then(|all| all.split_first()) else { return false };
    let are_captured = || round.iter().all(|index| is_question(context, *index));
    let is_option = |word: &&&[u8]| word.len() > 1 && word.starts_with(b"-");
    let operands = |words: &[&[u8]]| words.iter().filter(|word| !is_option(word)).map(|word| word.to_vec()).collect();
    match difference {
        Difference::Argument => {
            let differs = |at: &usize| others.iter().any(|other| other[*at] != one[*at]);
            others.iter().all(|other| other.len() == one.len()) && (0..one.len()).filter(differs).count() == 1
        }
        Difference::Options => {
            let same: Vec<Vec<u8>> = operands(one);
            let has_others = |other: &Vec<&[u8]>| other != one && other.iter().any(|word| is_option(&word));
            !same.is_empty()
                && others.iter().all(|other| operands(other) == same && has_others(other))
                && are_captured()
        }
        Difference::InPlace => {
            let place = |index: &u32| place_of(exec(index)?);
            are_captured() && round.iter().all(|index| place(index) == place(&round[0]))
        }
    }
}

/// Whether launches work in many places, such as repositories, clusters or projects: at most two in
/// each on average.
pub(super) fn have_own_places(context: &RuleContext<'_, '_>, all: &[u32]) -> bool {
    let places = all.iter().filter_map(|index| place_of(context.launch(*index).execs.last()?));
    all.len() > 1 && places.collect::<BTreeSet<_>>().len() * 2 >= all.len()
}

/// Whether a shell reads the output of a launch, perhaps through a filter.
pub(super) fn is_question(context: &RuleContext<'_, '_>, index: u32) -> bool {
    let subshell =
        context.forest().parent(index as usize).filter(|parent| context.launch(*parent as u32).is_fork_without_exec());
    context.is_captured(index) || subshell.is_some_and(|subshell| context.is_captured(subshell as u32))
}

/// Whether most launches repeat questions.
fn are_questions(context: &RuleContext<'_, '_>, launches: &[u32]) -> bool {
    let execs = launches.iter().filter_map(|index| context.launch(*index).execs.last());
    let question = remembered(|exec| (answer_of(exec) == Some(Answer::Same)).then(|| question_of(exec)));
    let mut questions: Vec<_> = execs.filter_map(question).collect();
    let all = questions.len();
    questions.sort_unstable();
    questions.dedup();
    all * 2 > launches.len() && questions.len() * 2 < all
}

/// Whether a launch is a shell that only launches a program for code of another language.
fn is_between(forest: &Forest<'_>, index: u32) -> bool {
    wrapped_child(forest, index).is_some_and(|child| shell_between(forest, child).is_some())
}

/// Returns the program that a launch executed; for a fork whose exec failed, the missing program.
/// `None` for other forks.
fn program_of<'a>(forest: &Forest<'a>, index: u32, launch: &Launch<'a>) -> Option<&'a [u8]> {
    if !launch.execs.is_empty() {
        return Some(launch.command.name);
    }
    let is_missing = launch.outcome == NOT_FOUND && forest.children(index as usize).is_empty();
    is_missing.then(|| forest.failed_execs(index as usize).last().map_or(&b""[..], |failed| base_name(failed.path)))
}

/// Returns the script that all of these launches execute.
fn common_script<'a>(context: &RuleContext<'_, 'a>, launches: &[u32]) -> Option<&'a [u8]> {
    let script = remembered(|exec| Call::of(exec).map(|call| call.name));
    let mut scripts = launches.iter().map(|index| script(context.launch(*index).execs.last()?));
    let first = scripts.next()??;
    scripts.all(|script| script == Some(first)).then_some(first)
}

/// Splits launches by line or subcommand where one of these may be worth an answer alone. The
/// others stay together.
fn parts(context: &RuleContext<'_, '_>, launches: Vec<u32>, critical_of: &impl Fn(&[u32]) -> Nanos) -> Vec<Vec<u32>> {
    let mut by_place: BTreeMap<Place<'_, '_>, Vec<u32>> = BTreeMap::new();
    let script_of = remembered(|exec| Call::of(exec).map(|call| call.name));
    for index in launches {
        // The text of a line that another program gives to a shell is no place.
        let is_text = |line: &CallSite| line.file.is_none() && shell_of_line(context.forest(), index).is_some();
        let line = context.sites.call_site_of(index as usize);
        let line = line.filter(|line| !is_text(line) && !is_line_of_recipe(context, index));
        let exec = context.launch(index).execs.last();
        let subcommand = exec.filter(|_| line.is_none()).and_then(subcommand_of);
        let script = exec.and_then(&script_of);
        let script = script.or_else(|| first_word(exec.and_then(command_of).filter(|_| line.is_none())?));
        by_place.entry((line, subcommand.or(script))).or_default().push(index);
    }
    let least = context.share_of_wall(DEPENDENT_SHARE);
    let (mut parts, others): (Vec<_>, Vec<_>) = by_place.into_values().partition(|part| critical_of(part) >= least);
    let mut others = others.concat();
    others.sort_unstable();
    parts.push(others);
    parts.retain(|part| !part.is_empty());
    parts
}

/// Returns the program of a command line.
pub(super) fn first_word(command: &[u8]) -> Option<&[u8]> {
    command.split(u8::is_ascii_whitespace).find(|word| !word.is_empty())
}

/// Whether make started a shell for a line of a recipe. All lines of a recipe can share a shell, so
/// they are one place.
fn is_line_of_recipe(context: &RuleContext<'_, '_>, index: u32) -> bool {
    let is_command_line = context.launch(index).execs.first().and_then(command_of).is_some();
    is_command_line && Runtime::of_parent(context.forest(), index) == Runtime::Make && !context.is_captured(index)
}
