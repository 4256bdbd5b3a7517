//! Scripts that launch `grep` once per pattern or once per file. One `grep` accepts many patterns
//! and many files.

use std::collections::{BTreeMap, HashSet};

use crate::explain::advice::context::RuleContext;
use crate::explain::advice::finding::Finding;
use crate::explain::advice::phrases::{launches, name, option, time, times};
use crate::explain::advice::thresholds::{MIN_REPETITIONS, longest_groups};
use crate::model::launch::Exec;
use crate::patterns::pipeline::PipelineUnit;
use crate::patterns::runtimes::Runtime;
use crate::patterns::shells::Dialect;
use crate::predict::whatif::changes::Change;

const MAX_FINDINGS: usize = 2;
/// Maximum number of words or files for one `grep`.
const MAX_AT_ONCE: u32 = 1000;
const PROGRAMS: [&[u8]; 5] = [b"egrep", b"fgrep", b"grep", b"rg", b"zgrep"];

/// What differs between the launches of one loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Varying {
    Pattern,
    File,
    Both,
}

/// The pattern and the files of one launch.
type Call<'a> = (&'a [u8], Vec<&'a [u8]>);
/// The parent's program, the program, and what differs.
type Key<'a> = (&'a [u8], &'a [u8], Varying);

pub(super) fn find(context: &RuleContext<'_, '_>) -> Vec<Finding> {
    let forest = context.forest();
    let mut loops: BTreeMap<Key<'_>, Vec<u32>> = BTreeMap::new();
    for parent in 0..forest.launches.len() {
        let siblings = forest.children(parent);
        let mut calls: BTreeMap<&[u8], Vec<(u32, Call<'_>)>> = BTreeMap::new();
        for (position, &index) in siblings.iter().enumerate() {
            let launch = &forest.launches[index];
            let is_grep = PROGRAMS.contains(&launch.command.name) && launch.execs.len() == 1;
            let call = launch.execs.last().filter(|_| is_grep).and_then(call_of);
            if let Some(call) = call
                && Dialect::of_parent(forest, index).is_some()
                && !PipelineUnit::of(forest, context.timelines(), siblings, position).is_fed
            {
                calls.entry(launch.command.name).or_default().push((index as u32, call));
            }
        }
        for (program, calls) in calls.into_iter().filter(|(_, calls)| calls.len() >= MIN_REPETITIONS) {
            if let Some(varying) = varying(&calls) {
                let parent = context.launch(calls[0].0).birth_command.name;
                let all = loops.entry((parent, program, varying)).or_default();
                all.extend(calls.iter().map(|(index, _)| *index));
            }
        }
    }
    longest_groups(context, loops, MAX_FINDINGS)
        .into_iter()
        .map(|((parent, program, varying), mut all)| {
            all.sort_unstable();
            finding(context, (parent, program), varying, all)
        })
        .collect()
}

/// Returns the pattern and the files of a call. `None` if the call reads standard input, or
/// patterns from a file.
fn call_of<'a>(exec: &Exec<'a>) -> Option<Call<'a>> {
    let mut pattern = None;
    let mut words = Vec::new();
    let mut arguments = exec.arguments().skip(1).filter(|_| !exec.argv_cut);
    while let Some(argument) = arguments.next() {
        match argument {
            b"-e" => pattern = arguments.next(),
            b"-f" => return None,
            b"-A" | b"-B" | b"-C" | b"-m" => drop(arguments.next()),
            _ if argument.starts_with(b"-") => {}
            _ => words.push(argument),
        }
    }
    let pattern = pattern.or_else(|| (!words.is_empty()).then(|| words.remove(0)))?;
    (!words.is_empty()).then_some((pattern, words))
}

/// Returns what differs between calls. `None` if few calls differ: the rule `repeats` reports equal
/// calls.
fn varying(calls: &[(u32, Call<'_>)]) -> Option<Varying> {
    let patterns: HashSet<&[u8]> = calls.iter().map(|(_, (pattern, _))| *pattern).collect();
    let files: HashSet<&[&[u8]]> = calls.iter().map(|(_, (_, files))| files.as_slice()).collect();
    // With only a few distinct patterns, the script loops over the files, once for each pattern;
    // and vice versa.
    match (patterns.len() >= MIN_REPETITIONS, files.len() >= MIN_REPETITIONS) {
        (true, true) => Some(Varying::Both),
        (true, false) => Some(Varying::Pattern),
        (false, true) => Some(Varying::File),
        (false, false) => None,
    }
}

fn finding(
    context: &RuleContext<'_, '_>,
    (parent, program): (&[u8], &[u8]),
    varying: Varying,
    all: Vec<u32>,
) -> Finding {
    let loop_text = match varying {
        Varying::Pattern => "once per pattern",
        Varying::File => "once per file",
        Varying::Both => "in a loop",
    };
    let title = format!("{} launches {} {}, {loop_text}", name(parent), name(program), times(all.len()));
    let evidence = format!("{} take {} in all", launches(all.len()), time(context.spent_on(&all)));
    let has_arrays = Runtime::of_parent(context.forest(), all[0]) == Runtime::Shell
        && Dialect::of_parent(context.forest(), all[0] as usize) != Some(Dialect::Posix);
    let (fix, limits) = fix_and_limits(varying, has_arrays);
    Finding::modelled("grep-loop", title, all)
        .evidence(evidence)
        .with_example(context)
        .fix_lines(fix.iter().copied())
        .limits(limits)
        .predicted_by(Change::Batch(MAX_AT_ONCE), format!("{}={MAX_AT_ONCE}", option("--batch", program, parent)))
}

fn fix_and_limits(varying: Varying, has_arrays: bool) -> (&'static [&'static str], &'static str) {
    match (varying, has_arrays) {
        (Varying::File, _) => (
            &[
                "pass all files to one grep:",
                "  grep -l PATTERN FILES...   (if you used -q or -l; with -c: grep -c PATTERN FILES...)",
            ],
            "one grep prints the results of all files at once, and its exit status does not say which file matched",
        ),
        (_, true) => (
            &[
                "read the file once, and look the words up in the shell:",
                "  declare -A seen; while IFS= read -r line; do seen[$line]=1; done <FILE",
                "  [[ ${seen[$word]} ]]   (for parts of lines: text=$(<FILE); [[ $text == *\"$word\"* ]])",
                "or search for all words at once: `grep -F -f WORDS FILE`",
            ],
            "both find fixed words only, not regular expressions; the shell cannot hold binary data; one grep prints the \
             results of all words at once",
        ),
        (_, false) => (
            &["search for all words at once:", "  printf '%s\\n' WORDS... | grep -F -f - FILE"],
            "grep -F finds fixed words only, not regular expressions; one grep prints the results of all words at once",
        ),
    }
}
