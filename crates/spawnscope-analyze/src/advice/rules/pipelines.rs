//! Pipelines whose programs another program of the pipeline can replace: `cat file | grep x | wc -l` is `grep -c x file`.

use std::collections::{BTreeMap, BTreeSet};

use crate::advice::context::RuleContext;
use crate::advice::finding::Finding;
use crate::advice::phrases::{launches, name, replacement, time, times};
use crate::advice::selection::options;
use crate::advice::thresholds::{MIN_REPETITIONS, longest};
use crate::launch::Exec;
use crate::patterns::pipeline::run_side_by_side;
use crate::patterns::shells::Dialect;
use crate::whatif::Fix;
use crate::whatif::changes::Change;

const MAX_FINDINGS: usize = 2;
const GREPS: [&[u8]; 3] = [b"egrep", b"fgrep", b"grep"];

/// A program of a pipeline that its neighbour replaces.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Replaced {
    /// Whether it is the first of the two.
    is_first: bool,
    before: &'static str,
    after: &'static str,
}

/// A replacement with the parent's program.
type Kind<'a> = (&'a [u8], BTreeSet<Replaced>);

pub(super) fn find(context: &RuleContext<'_, '_>) -> Vec<Finding> {
    let mut by_parent: BTreeMap<&[u8], Vec<(u32, Replaced)>> = BTreeMap::new();
    for parent in 0..context.forest().launches.len() {
        for pair in context.forest().children(parent).windows(2) {
            if let Some(replaced) = replaced(context, pair[0], pair[1]) {
                let launch = pair[usize::from(!replaced.is_first)];
                let parent = context.launch(launch as u32).birth_command.name;
                by_parent.entry(parent).or_default().push((launch as u32, replaced));
            }
        }
    }
    let mut kinds: BTreeMap<Kind<'_>, Vec<u32>> = BTreeMap::new();
    for (parent, found) in by_parent {
        let forms = found.iter().map(|(_, replaced)| *replaced).collect();
        let mut all: Vec<u32> = found.into_iter().map(|(launch, _)| launch).collect();
        all.sort_unstable();
        all.dedup();
        kinds.insert((parent, forms), all);
    }
    let frequent_groups = kinds.into_iter().filter(|(_, all)| all.len() >= MIN_REPETITIONS);
    longest(context, frequent_groups, MAX_FINDINGS)
        .into_iter()
        .map(|((parent, forms), all)| finding(context, parent, &forms, &all))
        .collect()
}

/// Returns which of two neighbours in a pipeline of a shell is not needed.
fn replaced(context: &RuleContext<'_, '_>, first: usize, second: usize) -> Option<Replaced> {
    let forest = context.forest();
    let only = |index: usize| match &forest.launches[index].execs[..] {
        [exec] if !exec.argv_cut => Some(exec),
        _ => None,
    };
    let (writer, reader) = (only(first)?, only(second)?);
    Dialect::of_parent(forest, first)?;
    let (of_writer, of_reader) = (words(writer), words(reader));
    let replaced = |is_first, before, after| Replaced {
        is_first,
        before,
        after,
    };
    let counts_lines = of_reader.options == [b"-l"] && of_reader.operands == 0;
    let found = match (writer.program_name(), reader.program_name()) {
        (b"cat", reader) if of_writer == Words::file() && of_reader.reads_input(reader) => {
            replaced(true, "cat \"$f\" | PROGRAM", "PROGRAM <\"$f\"")
        }
        (writer, b"wc") if GREPS.contains(&writer) && counts_lines && of_writer.options.is_empty() => {
            replaced(false, "grep PATTERN | wc -l", "grep -c PATTERN")
        }
        (b"sort", b"uniq") if of_reader == Words::default() => replaced(false, "sort | uniq", "sort -u"),
        (writer, b"awk" | b"mawk" | b"gawk") if GREPS.contains(&writer) && of_writer.options.is_empty() => {
            replaced(true, "grep PATTERN | awk '{...}'", "awk '/PATTERN/ {...}'")
        }
        _ => return None,
    };
    run_side_by_side(forest, first, second).then_some(found)
}

/// The arguments of a program.
#[derive(PartialEq, Eq, Default)]
struct Words<'a> {
    options: Vec<&'a [u8]>,
    operands: usize,
}

fn words<'a>(exec: &Exec<'a>) -> Words<'a> {
    let mut words = Words::default();
    for word in exec.arguments().skip(1) {
        if word.starts_with(b"-") && word.len() > 1 {
            words.options.push(word);
        } else {
            words.operands += 1;
        }
    }
    words
}

impl Words<'_> {
    /// A single file, without options.
    fn file() -> Words<'static> {
        Words {
            options: Vec::new(),
            operands: 1,
        }
    }

    /// Whether a program with these arguments names no file, so that it reads standard input if it reads anything.
    fn reads_input(&self, program: &[u8]) -> bool {
        let texts = match program {
            b"tr" => 2,
            b"awk" | b"gawk" | b"mawk" | b"egrep" | b"fgrep" | b"grep" | b"jq" | b"sed" => 1,
            // The number of `head -n 5` looks like an operand.
            b"cut" | b"head" | b"tail" | b"sort" => {
                usize::from(self.options.last().is_some_and(|last| last.len() == 2))
            }
            _ => 0,
        };
        self.operands <= texts
    }
}

fn finding(context: &RuleContext<'_, '_>, parent: &[u8], forms: &BTreeSet<Replaced>, all: &[u32]) -> Finding {
    let programs: BTreeSet<&[u8]> = all.iter().map(|index| context.launch(*index).command.name).collect();
    let programs: Vec<String> = programs.into_iter().map(name).collect();
    let title = format!(
        "{} launches {} {} in pipelines that do not need it",
        name(parent),
        programs.join(" and "),
        times(all.len())
    );
    let tries = vec![Fix {
        change: Change::Remove,
        launches: all.to_vec(),
    }];
    let options = options(context, &tries);
    let lines = forms.iter().flat_map(|form| replacement(form.before, form.after));
    Finding::modelled("pipeline", title, all.to_vec())
        .evidence(format!(
            "{} take {} in all",
            launches(all.len()),
            time(context.spent_on(all))
        ))
        .with_example(context)
        .fix("let the other program of the pipeline do it:")
        .fixes(lines)
        .limits("wc pads its number in some systems; the exit status of grep becomes that of the pipeline")
        .predicted_by_all(tries, options)
}
