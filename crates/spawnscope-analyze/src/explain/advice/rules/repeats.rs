//! Programs that are launched repeatedly with the same arguments to get the same answer: `git
//! rev-parse --show-toplevel`, `pkg-config --cflags x`. The first answer can be kept.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::builtin;
use crate::explain::advice::context::RuleContext;
use crate::explain::advice::finding::Finding;
use crate::explain::advice::languages;
use crate::explain::advice::phrases::{abridged, launches, name, time, times};
use crate::explain::advice::selection::options;
use crate::explain::advice::thresholds::{MIN_REPETITIONS, longest_groups};
use crate::patterns::chains::is_in_version_manager;
use crate::patterns::queries::{Answer, answer_of};
use crate::patterns::runtimes::Runtime;
use crate::patterns::shells::is_shell;
use crate::predict::whatif::AppliedChange;
use crate::predict::whatif::changes::Change;
use spawnscope_data::units;

const MAX_FINDINGS: usize = 3;
/// Maximum number of command lines that are shown.
const MAX_LINES: usize = 3;
/// Maximum number of characters of a command line.
const MAX_CHARACTERS: usize = 60;

/// The arguments and the working directory. Launches with the same question get the same answer.
type Question<'a> = (&'a [u8], Option<&'a [u8]>);
/// The parent's program, the launched program, and whether its answer is certainly the same each
/// time.
type Key<'a> = (&'a [u8], &'a [u8], Answer);

pub(super) fn find(context: &RuleContext<'_, '_>) -> Vec<Finding> {
    let mut by_kind: BTreeMap<Key<'_>, BTreeMap<Question<'_>, Vec<u32>>> = BTreeMap::new();
    for (index, launch) in context.launched() {
        let Some(exec) = launch.execs.last().filter(|exec| !exec.argv_cut) else {
            continue;
        };
        let program = launch.command.name;
        let Some(answer) = answer_of(exec).filter(|_| !is_in_version_manager(context.forest(), index)) else {
            continue;
        };
        // The rule `builtin` reports launches that the shell itself can replace.
        let may_differ = answer == Answer::PerhapsSame && !context.is_captured(index);
        if may_differ || is_shell(program) || builtin::can_replace(context, index) {
            continue;
        }
        let questions = by_kind.entry((launch.birth_command.name, program, answer)).or_default();
        questions.entry((exec.argv(), exec.cwd())).or_default().push(index);
    }
    let repeated = by_kind.into_iter().map(|(key, mut questions)| {
        questions.retain(|_, launches| launches.len() >= MIN_REPETITIONS);
        let mut all: Vec<u32> = questions.values().flatten().copied().collect();
        all.sort_unstable();
        ((key, questions), all)
    });
    longest_groups(context, repeated.filter(|(_, all)| !all.is_empty()), MAX_FINDINGS)
        .into_iter()
        .map(|((key, questions), all)| finding(context, key, &questions, all))
        .collect()
}

fn finding(
    context: &RuleContext<'_, '_>,
    (parent, program, answer): Key<'_>,
    questions: &BTreeMap<Question<'_>, Vec<u32>>,
    all: Vec<u32>,
) -> Finding {
    let repeated = questions.values().flat_map(|launches| &launches[1..]).copied().collect();
    let changes = vec![AppliedChange { change: Change::Remove, launches: repeated }];
    let options = options(context, &changes);
    let runtime = Runtime::of_parent(context.forest(), all[0]);
    let distinct = match questions.len() {
        1 => "the same arguments".to_owned(),
        several => format!("only {} different command lines", units::count(several as u64)),
    };
    let title = format!("{} launches {} {} with {distinct}", name(parent), name(program), times(all.len()));
    let evidence = format!("{} take {} in all", launches(all.len()), time(context.spent_on(&all)));
    Finding::modelled("repeats", title, all)
        .evidence(evidence)
        .evidence_lines(lines(context, questions))
        .with_example(context)
        .fix("ask once, and keep the answer:")
        .fix_lines(languages::how_to_keep_an_answer(runtime).iter().copied())
        .limits(match answer {
            Answer::Same => {
                "if the work in between changes the answer (a commit, an installation), ask again after that step"
            }
            Answer::PerhapsSame => {
                "only if the output depends on nothing but the arguments: Spawnscope does not know this program"
            }
        })
        .predicted_by_all(changes, options)
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
