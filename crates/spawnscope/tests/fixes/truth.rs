//! The counts that a fix changes. Each line of a pair's `truth` is `KEY BEFORE AFTER`: what is
//! counted, and the counts in `before` and `after`. The keys are `command=NAME` (launches of a
//! command), `execs`, `failed_execs`, `without_exec` (launches that never exec), `forks` (launches
//! by fork), and `loads` (launches with a dynamic loader).

use super::pair::Pair;
use crate::support::launches::Launches;

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
        let mut wrong = Vec::new();
        for Line { key, before: count_before, after: count_after } in &self.lines {
            let (from, to) = (count(key, before), count(key, after));
            if (from, to) != (*count_before, *count_after) {
                wrong.push(format!("{key}: from {from} to {to}, instead of from {count_before} to {count_after}"));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("; "));
    }
}

fn parse_line(text: &str) -> Line {
    let words: Vec<&str> = text.split_whitespace().collect();
    let &[key, before, after] = words.as_slice() else { panic!("a line of `truth` is KEY BEFORE AFTER, not `{text}`") };
    let [before, after] = [before, after].map(|word| word.parse().unwrap_or_else(|error| panic!("{word}: {error}")));
    Line { key: key.to_owned(), before, after }
}

fn count(key: &str, launches: &Launches) -> usize {
    match key.strip_prefix("command=") {
        Some(command) => launches.all(|launch| launch.command() == command).len(),
        None => match key {
            "execs" => launches.0.iter().map(|launch| launch.programs().len()).sum(),
            "failed_execs" => launches.0.iter().map(|launch| launch.failed_execs().len()).sum(),
            "without_exec" => launches.all(|launch| launch.programs().is_empty()).len(),
            // The mechanism of the recorded command itself is unknown.
            "forks" => launches.all(|launch| launch.json()["mechanism"] == "fork").len(),
            "loads" => launches.all(|launch| launch.phase_ns("load").is_some_and(|load| load > 0)).len(),
            unknown => panic!("`truth` has the unknown key `{unknown}`"),
        },
    }
}
