//! Scripts that launch `grep` once per pattern or once per file. One `grep` accepts many patterns and many files.

use std::collections::{BTreeMap, HashSet};

use crate::advice::context::RuleContext;
use crate::advice::finding::Finding;
use crate::advice::phrases::{launches, name, option, time, times};
use crate::advice::thresholds::{MIN_REPETITIONS, longest};
use crate::launch::Exec;
use crate::patterns::pipeline::PipelineUnit;
use crate::patterns::runtimes::Runtime;
use crate::patterns::shells::Dialect;
use crate::whatif::changes::Change;

const MAX_FINDINGS: usize = 2;
const MAX_AT_ONCE: u32 = 1000;
const PROGRAMS: [&[u8]; 5] = [b"egrep", b"fgrep", b"grep", b"rg", b"zgrep"];

/// What differs between the launches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Varies {
    Pattern,
    File,
    Both,
}

/// The pattern and the files of one launch.
type Call<'a> = (&'a [u8], Vec<&'a [u8]>);
/// The parent's program, the program, and what differs.
type Key<'a> = (&'a [u8], &'a [u8], Varies);

pub(super) fn find(context: &RuleContext<'_, '_>) -> Vec<Finding> {
    let forest = context.forest();
    let mut kinds: BTreeMap<Key<'_>, Vec<u32>> = BTreeMap::new();
    for parent in 0..forest.launches.len() {
        let siblings = forest.children(parent);
        let mut calls: BTreeMap<&[u8], Vec<(u32, Call<'_>)>> = BTreeMap::new();
        for (position, &index) in siblings.iter().enumerate() {
            let launch = &forest.launches[index];
            let is_grep = PROGRAMS.contains(&launch.command.name) && launch.execs.len() == 1;
            let call = launch.execs.last().filter(|_| is_grep).and_then(call_of);
            let is_fed = || PipelineUnit::of(forest, context.timelines(), siblings, position).is_fed;
            let is_in_script = || Dialect::of_parent(forest, index).is_some();
            if let Some(call) = call.filter(|_| is_in_script() && !is_fed()) {
                calls.entry(launch.command.name).or_default().push((index as u32, call));
            }
        }
        for (program, calls) in calls.into_iter().filter(|(_, calls)| calls.len() >= MIN_REPETITIONS) {
            if let Some(varies) = varies(&calls) {
                let parent = context.launch(calls[0].0).birth_command.name;
                let all = kinds.entry((parent, program, varies)).or_default();
                all.extend(calls.iter().map(|(index, _)| *index));
            }
        }
    }
    longest(context, kinds, MAX_FINDINGS)
        .into_iter()
        .map(|((parent, program, varies), mut all)| {
            all.sort_unstable();
            finding(context, (parent, program), varies, all)
        })
        .collect()
}

/// Returns the pattern and the files of a call with one pattern. `None` when it reads standard input, or patterns from a file.
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

/// Returns what differs between calls. `None` when all calls are equal: the rule `repeats` reports those.
fn varies(calls: &[(u32, Call<'_>)]) -> Option<Varies> {
    let patterns: HashSet<&[u8]> = calls.iter().map(|(_, (pattern, _))| *pattern).collect();
    let files: HashSet<&[&[u8]]> = calls.iter().map(|(_, (_, files))| files.as_slice()).collect();
    // Few distinct patterns mean one loop over the files for each pattern, and the reverse.
    match (patterns.len() >= MIN_REPETITIONS, files.len() >= MIN_REPETITIONS) {
        (true, true) => Some(Varies::Both),
        (true, false) => Some(Varies::Pattern),
        (false, true) => Some(Varies::File),
        (false, false) => None,
    }
}

fn finding(context: &RuleContext<'_, '_>, (parent, program): (&[u8], &[u8]), varies: Varies, all: Vec<u32>) -> Finding {
    let what = match varies {
        Varies::Pattern => "once per pattern",
        Varies::File => "once per file",
        Varies::Both => "in a loop",
    };
    let title = format!(
        "{} launches {} {}, {what}",
        name(parent),
        name(program),
        times(all.len())
    );
    let evidence = format!("{} take {} in all", launches(all.len()), time(context.spent_on(&all)));
    let has_arrays = Runtime::of_parent(context.forest(), all[0]) == Runtime::Shell
        && Dialect::of_parent(context.forest(), all[0] as usize) != Some(Dialect::Posix);
    let fix: &[&str] = match (varies, has_arrays) {
        (Varies::File, _) => &[
            "pass all files to one grep:",
            "  grep -l PATTERN FILES...   (with -q: grep -l; with -c: grep -c)",
        ],
        (_, true) => &[
            "read the file once, and look the words up in the shell:",
            "  declare -A seen; while IFS= read -r line; do seen[$line]=1; done <FILE",
            "  [[ ${seen[$word]} ]]   (for parts of lines: text=$(<FILE); [[ $text == *\"$word\"* ]])",
            "or search for all words at once: grep -F -f WORDS FILE",
        ],
        (_, false) => &[
            "search for all words at once:",
            "  printf '%s\\n' WORDS... | grep -F -f - FILE",
        ],
    };
    Finding::modelled("grep-loop", title, all)
        .evidence(evidence)
        .with_example(context)
        .fixes(fix.iter().copied())
        .limits("the shell code finds fixed words only, not regular expressions, and cannot hold binary data; one grep prints all results at once")
        .predicted_by(
            Change::Batch(MAX_AT_ONCE),
            format!("{}={MAX_AT_ONCE}", option("--batch", program, parent)),
        )
}
