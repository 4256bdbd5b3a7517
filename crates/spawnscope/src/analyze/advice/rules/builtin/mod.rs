//! Small programs that a shell launches and whose work it can do itself. `names`, `text`, `sed` and `commands` know what to write
//! instead, by the arguments that were recorded; what they do not know for sure they leave alone.

mod call;
mod commands;
mod names;
mod sed;
mod text;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashSet};

use super::super::context::{name, time};
use super::super::phrases::{instead, launches};
use super::super::pipeline::PipelineUnit;
use super::super::selection::options;
use super::super::shell::Dialect;
use super::super::thresholds::{HABIT, is_mostly_tax, largest, uses_less_than_its_tax};
use super::super::{Basis, Finding, RuleContext};
use crate::analyze::whatif::Fix;
use crate::analyze::whatif::changes::Change;
use crate::analyze::whatif::changes::chains::is_inside;
use crate::event::Mechanism;
use call::{Call, Effect, Substitute};

/// What a shell writes instead of a call; `None` where that is not sure to do the same.
type Substitution = fn(&Call) -> Option<Substitute>;

/// What a shell can do itself, by the program that does it otherwise, in the order of these.
const TABLE: [(&[u8], Substitution); 33] = [
    (b"[", commands::bracket),
    (b"arch", names::arch),
    (b"awk", text::awk),
    (b"basename", names::basename),
    (b"cat", text::cat),
    (b"cut", text::cut),
    (b"date", names::date),
    (b"dirname", names::dirname),
    (b"echo", commands::echo),
    (b"expr", commands::expr),
    (b"false", commands::always_false),
    (b"gawk", text::awk),
    (b"getconf", names::getconf),
    (b"grep", text::grep),
    (b"head", text::head),
    (b"hostname", names::hostname),
    (b"id", names::id),
    (b"kill", commands::kill),
    (b"logname", names::logname),
    (b"mawk", text::awk),
    (b"nproc", names::nproc),
    (b"printf", commands::printf),
    (b"pwd", names::pwd),
    (b"sed", sed::sed),
    (b"seq", commands::seq),
    (b"sleep", commands::sleep),
    (b"test", commands::test),
    (b"tr", text::tr),
    (b"true", commands::always_true),
    (b"uname", names::uname),
    (b"wc", text::wc),
    (b"which", names::which),
    (b"whoami", names::whoami),
];
/// So many programs are told.
const MOST_FINDINGS: usize = 5;
/// So many ways of calling one of them.
const MOST_FORMS: usize = 4;

/// One launch that its shell can do without.
struct Needless {
    launch: u32,
    /// What goes with it.
    unit: Vec<u32>,
    /// Forks of the shell among that.
    forks: Vec<u32>,
    substitute: Substitute,
}

pub(super) fn find(context: &RuleContext<'_, '_>) -> Vec<Finding> {
    let mut kinds: BTreeMap<(&[u8], &[u8]), Vec<Needless>> = BTreeMap::new();
    for needless in all_needless(context) {
        let launch = &context.launch(needless.launch);
        let kind = (launch.birth_command.name, launch.command.name);
        kinds.entry(kind).or_default().push(needless);
    }
    let groups = kinds.iter().map(|(kind, needless)| {
        let mut launches: Vec<u32> = needless.iter().map(|needless| needless.launch).collect();
        launches.sort_unstable();
        (kind, launches)
    });
    largest(context, groups, MOST_FINDINGS)
        .into_iter()
        .filter_map(|(kind, launches)| finding(context, *kind, launches, &kinds[kind]))
        .collect()
}

fn all_needless(context: &RuleContext<'_, '_>) -> impl Iterator<Item = Needless> {
    (0..context.forest().launches.len()).flat_map(move |parent| {
        let siblings = context.forest().children(parent);
        (0..siblings.len()).filter_map(move |position| needless(context, siblings, position))
    })
}

/// Forks of shells that go with what this rule finds.
pub(super) fn forks_around(context: &RuleContext<'_, '_>) -> HashSet<u32> {
    all_needless(context).flat_map(|needless| needless.forks).collect()
}

fn needless(context: &RuleContext<'_, '_>, siblings: &[usize], position: usize) -> Option<Needless> {
    let forest = context.forest();
    let index = siblings[position];
    let launch = &forest.launches[index];
    let [exec] = &launch.execs[..] else { return None };
    let known = TABLE
        .binary_search_by_key(&launch.command.name, |(program, _)| program)
        .ok()?;
    if !launch.is_launch() || exec.argv_cut || !forest.children(index).is_empty() {
        return None;
    }
    let dialect = Dialect::of_parent(forest, index)?;
    let pipeline = PipelineUnit::of(&context.whatif, siblings, position);
    let is_small = if pipeline.is_fed {
        uses_less_than_its_tax(context, index)
    } else {
        is_mostly_tax(context, index)
    };
    // The scripts of a version manager are nobody's to change.
    if !is_small || is_inside(forest, index as u32) {
        return None;
    }
    let call = Call {
        arguments: exec.arguments().skip(1).map(name).collect(),
        dialect,
        is_fed: pipeline.is_fed,
        is_captured: pipeline.is_captured,
    };
    let substitute = TABLE[known].1(&call)?;
    // What a shell makes by vfork is a plain command: in $( ) and in pipelines it forks.
    let is_plain = launch.mechanism == Some(Mechanism::Vfork) && !call.is_captured;
    Some(Needless {
        launch: index as u32,
        unit: pipeline.unit,
        forks: pipeline.forks,
        substitute: if is_plain { substitute.printed() } else { substitute },
    })
}

fn finding(
    context: &RuleContext<'_, '_>,
    (parent, program): (&[u8], &[u8]),
    all: Vec<u32>,
    needless: &[Needless],
) -> Option<Finding> {
    let tries = tries(context, needless);
    if tries.iter().map(|fix| fix.launches.len()).sum::<usize>() < HABIT {
        return None;
    }
    let forms = forms_of(needless);
    Some(Finding {
        rule: "builtin",
        title: format!(
            "{} launches {} {} for what a shell does itself",
            name(parent),
            name(program),
            times(all.len())
        ),
        evidence: evidence(context, &all, needless),
        example: context.example(&all),
        fix: instructions(&forms),
        limits: limits(&forms),
        whatif: options(context, &tries),
        tries,
        basis: Basis::Modelled,
        launches: all,
    })
}

/// The ways in which a program was called, the most frequent first.
fn forms_of(needless: &[Needless]) -> Vec<(&Substitute, usize)> {
    let mut forms: BTreeMap<&Substitute, usize> = BTreeMap::new();
    for each in needless {
        *forms.entry(&each.substitute).or_default() += 1;
    }
    let mut forms: Vec<(&Substitute, usize)> = forms.into_iter().collect();
    forms.sort_by_key(|(_, count)| Reverse(*count));
    forms
}

fn limits(forms: &[(&Substitute, usize)]) -> String {
    let shown = forms.iter().take(MOST_FORMS);
    let limits: BTreeSet<&str> = shown.flat_map(|(form, _)| form.limits).copied().collect();
    let limits: Vec<&str> = limits.into_iter().collect();
    if limits.is_empty() {
        return "nothing is known that it does not do as well".to_owned();
    }
    limits.join("; ")
}

fn times(count: usize) -> String {
    format!("{} times", crate::units::count(count as u64))
}

fn evidence(context: &RuleContext<'_, '_>, all: &[u32], needless: &[Needless]) -> Vec<String> {
    let spent = context.spent_on(all);
    let tax: u64 = all
        .iter()
        .filter_map(|index| context.launch(*index).tax())
        .map(|tax| tax.0)
        .sum();
    let mut evidence = vec![format!(
        "{} take {} in all; {} of it is the launching, not the program's own work",
        launches(all.len()),
        time(spent),
        crate::units::percent(crate::event::Nanos(tax), spent)
    )];
    let forks: HashSet<u32> = needless
        .iter()
        .flat_map(|needless| needless.forks.iter().copied())
        .collect();
    if !forks.is_empty() {
        evidence.push(format!(
            "{} of the shell only for them: a subshell, or an echo that feeds them",
            crate::units::counted(forks.len() as u64, "fork", "forks")
        ));
    }
    evidence
}

fn instructions(forms: &[(&Substitute, usize)]) -> Vec<String> {
    let mut lines = vec!["let the shell do it:".to_owned()];
    for (form, count) in forms.iter().take(MOST_FORMS) {
        lines.extend(instead(&form.before, &format!("{}   ({})", form.after, times(*count))));
    }
    if forms.len() > MOST_FORMS {
        let rest: usize = forms[MOST_FORMS..].iter().map(|(_, count)| count).sum();
        lines.push(format!("  and the same with other arguments ({})", times(rest)));
    }
    lines
}

/// The changes to play: what goes altogether, what leaves a fork, what is asked once.
fn tries(context: &RuleContext<'_, '_>, needless: &[Needless]) -> Vec<Fix> {
    let (mut gone, mut builtin) = (Vec::new(), Vec::new());
    let mut asked: HashSet<(Option<usize>, Vec<Vec<u8>>)> = HashSet::new();
    for each in needless {
        match each.substitute.effect {
            Effect::Gone => gone.extend(&each.unit),
            Effect::Builtin => builtin.push(each.launch),
            Effect::Once => {
                let arguments = context.example(&[each.launch]);
                let is_first = asked.insert((context.forest().parent(each.launch as usize), arguments));
                gone.extend(each.unit.iter().filter(|_| !is_first));
            }
        }
    }
    [(Change::Remove, gone), (Change::Builtin, builtin)]
        .into_iter()
        .filter(|(_, launches)| !launches.is_empty())
        .map(|(change, launches)| Fix { change, launches })
        .collect()
}

/// Tries every program of the table, for `fuzz/`: `flags` say how it is called.
#[cfg(fuzzing)]
pub(in crate::analyze::advice) fn fuzz(flags: u8, words: &[&str]) {
    use super::super::shell::Dialect;
    let dialects = [Dialect::Posix, Dialect::Bash, Dialect::Ksh, Dialect::Zsh];
    let call = Call {
        arguments: words.iter().map(|word| (*word).to_owned()).collect(),
        dialect: dialects[usize::from(flags & 3)],
        is_fed: flags & 4 != 0,
        is_captured: flags & 8 != 0,
    };
    for (_, substitution) in TABLE {
        // Controls in what is found are escaped where it is shown.
        let _ = substitution(&call);
    }
}

#[cfg(test)]
mod tests {
    use super::TABLE;

    #[test]
    fn programs_are_found_by_halves() {
        assert!(TABLE.is_sorted_by_key(|(program, _)| program));
    }
}
