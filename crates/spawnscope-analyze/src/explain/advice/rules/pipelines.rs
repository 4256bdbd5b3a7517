//! Pipelines with a program whose work its neighbour can do: `cat file | grep x | wc -l` is `grep
//! -c x file`.

use std::collections::{BTreeMap, BTreeSet};

use crate::explain::advice::context::RuleContext;
use crate::explain::advice::finding::Finding;
use crate::explain::advice::phrases::{launches, name, time, times};
use crate::explain::advice::thresholds::longest_frequent_groups;
use crate::model::launch::Exec;
use crate::patterns::pipeline::overlap;
use crate::patterns::shells::Dialect;
use crate::predict::whatif::changes::Change;

const MAX_FINDINGS: usize = 3;
const GREPS: [&[u8]; 3] = [b"egrep", b"fgrep", b"grep"];

/// A program of a pipeline that its neighbour can replace, and whether it is the first of the two.
type Needless = (&'static str, bool);

pub(super) fn find(context: &RuleContext<'_, '_>) -> Vec<Finding> {
    let mut by_form: BTreeMap<(&[u8], Needless), BTreeSet<u32>> = BTreeMap::new();
    for parent in 0..context.forest().launches.len() {
        for pair in context.forest().children(parent).windows(2) {
            if let Some(form) = replacement_of(context, pair[0], pair[1]) {
                let launch = pair[usize::from(!form.1)] as u32;
                by_form.entry((context.launch(launch).birth_command.name, form)).or_default().insert(launch);
            }
        }
    }
    let groups = by_form.into_iter().map(|(kind, all)| (kind, Vec::from_iter(all)));
    let groups = longest_frequent_groups(context, groups, MAX_FINDINGS).into_iter();
    groups.map(|((parent, form), all)| finding(context, parent, form, all)).collect()
}

/// Returns which of two neighbours in a pipeline of a shell is needless.
fn replacement_of(context: &RuleContext<'_, '_>, first: usize, second: usize) -> Option<Needless> {
    let forest = context.forest();
    let ([writer], [reader]) = (&forest.launches[first].execs[..], &forest.launches[second].execs[..]) else {
        return None;
    };
    if writer.argv_cut || reader.argv_cut {
        return None;
    }
    Dialect::of_parent(forest, first)?;
    let (writer_words, reader_words) = (words(writer), words(reader));
    let counts_lines = reader_words == (vec![b"-l"], 0);
    let has_no_options = writer_words.0.is_empty();
    let needless = match (writer.program_name(), reader.program_name()) {
        (b"cat", reader) if has_no_options && writer_words.1 == 1 && reads_input(reader, &reader_words) => {
            ("cat", true)
        }
        (writer, b"wc") if GREPS.contains(&writer) && counts_lines && has_no_options => ("wc", false),
        // With -f, -k or -n, `sort -u` drops lines with equal keys, and uniq only equal lines.
        (b"sort", b"uniq") if has_no_options && reader_words == (Vec::new(), 0) => ("uniq", false),
        (writer, b"awk" | b"mawk" | b"gawk") if GREPS.contains(&writer) && has_no_options => ("grep", true),
        _ => return None,
    };
    overlap(forest, first, second).then_some(needless)
}

/// Returns the options of a program, and the number of its other words.
fn words<'a>(exec: &Exec<'a>) -> (Vec<&'a [u8]>, usize) {
    let (options, operands): (Vec<&[u8]>, Vec<&[u8]>) =
        exec.arguments().skip(1).partition(|word| word.starts_with(b"-") && word.len() > 1);
    (options, operands.len())
}

/// Whether a program reads standard input, because no argument is a file. Some programs have
/// operands that are not files, such as a pattern.
fn reads_input(program: &[u8], (options, operands): &(Vec<&[u8]>, usize)) -> bool {
    let other_operands = match program {
        b"tr" => 2,
        b"awk" | b"gawk" | b"mawk" | b"egrep" | b"fgrep" | b"grep" | b"jq" | b"sed" => 1,
        // The number of `head -n 5` looks like an operand.
        b"cut" | b"head" | b"tail" | b"sort" => usize::from(options.last().is_some_and(|last| last.len() == 2)),
        _ => 0,
    };
    *operands <= other_operands
}

fn finding(context: &RuleContext<'_, '_>, parent: &[u8], (form, _): Needless, all: Vec<u32>) -> Finding {
    let program = name(context.launch(all[0]).command.name);
    let count = times(all.len());
    let title = format!("{} launches {program} {count} in pipelines that do not need it", name(parent));
    let evidence = format!("{} take {} in all", launches(all.len()), time(context.spent_on(&all)));
    Finding::modelled("pipeline", title, all)
        .evidence(evidence)
        .with_example(context)
        .recipe("pipeline", &[form], &[])
        .predicted_as(context, Change::Remove)
}
