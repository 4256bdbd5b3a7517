//! The counts that a fix changes. Each line of a pair's `truth` is `KEY BEFORE AFTER`: what is counted, and the counts in `before` and
//! `after`. The keys are `command=NAME` (launches of a command), `execs`, `failed_execs`, `without_exec` (launches that never exec),
//! `forks` (launches by fork), and `loads` (launches with a dynamic loader).

use super::pair::Pair;
use crate::support::launches::{Launch, Launches};

pub struct Truth {
    lines: Vec<Line>,
}

struct Line {
    key: String,
    before: usize,
    after: usize,
}

impl Truth {
    pub fn read(pair: &Pair) -> Truth {
        let lines: Vec<Line> = pair.text("truth").lines().map(parse_line).collect();
        assert!(!lines.is_empty(), "`truth` is empty");
        Truth { lines }
    }

    #[track_caller]
    pub fn check(&self, before: &Launches, after: &Launches) {
        let counts = |line: &Line| (count(&line.key, before), count(&line.key, after));
        let wrong: Vec<String> = self
            .lines
            .iter()
            .filter(|line| counts(line) != (line.before, line.after))
            .map(|line| {
                format!("{} should change from {} to {}, but is {:?}", line.key, line.before, line.after, counts(line))
            })
            .collect();
        assert!(wrong.is_empty(), "{}", wrong.join("; "));
    }
}

fn parse_line(text: &str) -> Line {
    let words: Vec<&str> = text.split_whitespace().collect();
    let &[key, before, after] = words.as_slice() else { panic!("a line of `truth` is KEY BEFORE AFTER, not `{text}`") };
    let number = |word: &str| word.parse().unwrap_or_else(|error| panic!("{word}: {error}"));
    Line { key: key.to_owned(), before: number(before), after: number(after) }
}

fn count(key: &str, launches: &Launches) -> usize {
    let matching = |wanted: &dyn Fn(&Launch) -> bool| launches.all(wanted).len();
    match key.strip_prefix("command=") {
        Some(command) => matching(&|launch| launch.command() == command),
        None => match key {
            "execs" => launches.0.iter().map(|launch| launch.programs().len()).sum(),
            "failed_execs" => launches.0.iter().map(|launch| launch.failed_execs().len()).sum(),
            "without_exec" => matching(&|launch| launch.programs().is_empty()),
            // The mechanism of the recorded command itself is unknown.
            "forks" => matching(&|launch| launch.json()["mechanism"] == "fork"),
            "loads" => matching(&|launch| launch.phase_ns("load").is_some_and(|load| load > 0)),
            unknown => panic!("`truth` has the unknown key `{unknown}`"),
        },
    }
}
