//! Pipelines with a program whose work its neighbour can do: `cat file | grep x | wc -l` is `grep
//! -c x file`.

use std::collections::{BTreeMap, BTreeSet};

use crate::explain::advice::context::RuleContext;
use crate::explain::advice::finding::Finding;
use crate::explain::advice::phrases::{launches, name, replacement, time, times};
use crate::explain::advice::selection::options;
use crate::explain::advice::thresholds::longest_frequent_groups;
use crate::model::launch::Exec;
use crate::patterns::pipeline::overlap;
use crate::patterns::shells::Dialect;
use crate::predict::whatif::AppliedChange;
use crate::predict::whatif::changes::Change;

const MAX_FINDINGS: usize = 2;
const GREPS: [&[u8]; 3] = [b"egrep", b"fgrep", b"grep"];

/// How a program in a pipeline can be replaced by its neighbour.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Replacement {
    /// Whether the replaced program is the first of the two.
    is_first: bool,
    /// The pipeline as written.
    before: &'static str,
    /// The pipeline without the replaced program.
    after: &'static str,
    /// How the replacement behaves differently. May be empty.
    limits: &'static str,
}

/// The parent's program, and the replacements in its pipelines.
type PipelineGroup<'a> = (&'a [u8], BTreeSet<Replacement>);

pub(super) fn find(context: &RuleContext<'_, '_>) -> Vec<Finding> {
    let mut by_parent: BTreeMap<&[u8], Vec<(u32, Replacement)>> = BTreeMap::new();
    for parent in 0..context.forest().launches.len() {
        for pair in context.forest().children(parent).windows(2) {
            if let Some(form) = replacement_of(context, pair[0], pair[1]) {
                let launch = pair[usize::from(!form.is_first)];
                let parent = context.launch(launch as u32).birth_command.name;
                by_parent.entry(parent).or_default().push((launch as u32, form));
            }
        }
    }
    let mut by_kind: BTreeMap<PipelineGroup<'_>, Vec<u32>> = BTreeMap::new();
    for (parent, found) in by_parent {
        let forms = found.iter().map(|(_, form)| *form).collect();
        let mut all: Vec<u32> = found.into_iter().map(|(launch, _)| launch).collect();
        all.sort_unstable();
        all.dedup();
        by_kind.insert((parent, forms), all);
    }
    longest_frequent_groups(context, by_kind, MAX_FINDINGS)
        .into_iter()
        .map(|((parent, forms), all)| finding(context, parent, &forms, &all))
        .collect()
}

/// Returns the replacement for one of two neighbours in a pipeline of a shell.
fn replacement_of(context: &RuleContext<'_, '_>, first: usize, second: usize) -> Option<Replacement> {
    let forest = context.forest();
    let ([writer], [reader]) = (&forest.launches[first].execs[..], &forest.launches[second].execs[..]) else {
        return None;
    };
    if writer.argv_cut || reader.argv_cut {
        return None;
    }
    Dialect::of_parent(forest, first)?;
    let (writer_words, reader_words) = (words(writer), words(reader));
    let counts_lines = reader_words.options == [b"-l"] && reader_words.operands == 0;
    let (is_first, before, after, limits) = match (writer.program_name(), reader.program_name()) {
        (b"cat", reader) if writer_words == Words::single_file() && reader_words.reads_input(reader) => {
            (true, "cat \"$f\" | PROGRAM", "PROGRAM <\"$f\"", "")
        }
        (writer, b"wc") if GREPS.contains(&writer) && counts_lines && writer_words.options.is_empty() => (
            false,
            "grep PATTERN | wc -l",
            "grep -c PATTERN",
            "on some systems, wc pads its number; the exit status of grep becomes that of the pipeline",
        ),
        // With -f, -k or -n, `sort -u` drops lines with equal keys, and uniq only equal lines.
        (b"sort", b"uniq") if writer_words.options.is_empty() && reader_words == Words::default() => {
            (false, "sort | uniq", "sort -u", "")
        }
        (writer, b"awk" | b"mawk" | b"gawk") if GREPS.contains(&writer) && writer_words.options.is_empty() => (
            true,
            "grep PATTERN | awk '{...}'",
            "awk '/PATTERN/ {...}'",
            "awk uses extended regular expressions, and needs a backslash before a slash in the pattern",
        ),
        _ => return None,
    };
    overlap(forest, first, second).then_some(Replacement { is_first, before, after, limits })
}

/// The arguments of a program: its options, and the number of other words.
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
    /// Returns the arguments that consist of a single file.
    fn single_file() -> Words<'static> {
        Words { options: Vec::new(), operands: 1 }
    }

    /// Whether a program with these arguments reads standard input, because no argument is a file.
    /// Some programs have operands that are not files, such as a pattern.
    fn reads_input(&self, program: &[u8]) -> bool {
        let other_operands = match program {
            b"tr" => 2,
            b"awk" | b"gawk" | b"mawk" | b"egrep" | b"fgrep" | b"grep" | b"jq" | b"sed" => 1,
            // The number of `head -n 5` looks like an operand.
            b"cut" | b"head" | b"tail" | b"sort" => {
                usize::from(self.options.last().is_some_and(|last| last.len() == 2))
            }
            _ => 0,
        };
        self.operands <= other_operands
    }
}

fn finding(context: &RuleContext<'_, '_>, parent: &[u8], forms: &BTreeSet<Replacement>, all: &[u32]) -> Finding {
    let programs: BTreeSet<&[u8]> = all.iter().map(|index| context.launch(*index).command.name).collect();
    let programs: Vec<String> = programs.into_iter().map(name).collect();
    let title = format!(
        "{} launches {} {} in pipelines that do not need {}",
        name(parent),
        programs.join(" and "),
        times(all.len()),
        if programs.len() == 1 { "it" } else { "them" }
    );
    let limits: BTreeSet<&str> = forms.iter().map(|form| form.limits).collect();
    let limits: Vec<&str> = limits.into_iter().filter(|limits| !limits.is_empty()).collect();
    let changes = vec![AppliedChange { change: Change::Remove, launches: all.to_vec() }];
    let options = options(context, &changes);
    let lines = forms.iter().flat_map(|form| replacement(form.before, form.after));
    Finding::modelled("pipeline", title, all.to_vec())
        .evidence(format!("{} take {} in all", launches(all.len()), time(context.spent_on(all))))
        .with_example(context)
        .fix("let the other program of the pipeline do it:")
        .fix_lines(lines)
        .limits(limits.join("; "))
        .predicted_by_all(changes, options)
}
