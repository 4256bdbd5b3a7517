//! The shape of printed text: its words in order, with placeholders for what differs between runs
//! (numbers, their units, bars, paths and names of phases). Line ends do not matter, since the
//! width of numbers changes where lines are wrapped.

const PHASES: [&str; 8] = ["create", "queue", "setup", "exec", "load", "run", "teardown", "reap"];
const UNITS: [&str; 8] = ["ns", "us", "ms", "s", "%", "KiB", "MiB", "bytes"];
const BAR: &str = "█░▓▒▚▄▀·";
/// A line that consists only of this stands for any lines.
pub const ELISION: &str = "...";

/// Returns the words of a text, with placeholders for those that may differ.
pub fn shape(text: &str) -> Vec<String> {
    let mut shape: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let bare = word.trim_matches(|c: char| "().,;:`".contains(c));
        let follows_number = shape.last().is_some_and(|before| before.ends_with('#'));
        let placeholder = match () {
            () if bare.is_empty() => None,
            () if follows_number && UNITS.contains(&bare) => Some("unit"),
            () if PHASES.contains(&bare) => Some("phase"),
            () if bare.contains('/') || bare.ends_with(".db") => Some("path"),
            () if word.chars().count() > 1 && word.chars().all(|c| BAR.contains(c)) => Some("bar"),
            () => None,
        };
        shape.push(match placeholder {
            Some(placeholder) => word.replacen(bare, placeholder, 1),
            None => without_numbers(word),
        });
    }
    shape
}

/// Replaces each number, with its separators, by `#`.
fn without_numbers(word: &str) -> String {
    let mut text = String::new();
    let mut rest = word.chars().peekable();
    while let Some(c) = rest.next() {
        if !c.is_ascii_digit() {
            text.push(c);
            continue;
        }
        text.push('#');
        let mut ahead = rest.clone();
        // A separator belongs to the number only if a digit follows.
        while let Some(c) = ahead.next() {
            let is_inside = c.is_ascii_digit() || (",.".contains(c) && ahead.peek().is_some_and(char::is_ascii_digit));
            if !is_inside {
                break;
            }
            rest.next();
        }
    }
    text
}

/// Whether a document's text has the shape of the printed text. The document may leave lines out by
/// `ELISION`.
pub fn matches(shown: &str, printed: &str) -> bool {
    let mut parts: Vec<String> = vec![String::new()];
    for line in shown.lines() {
        match line.trim() {
            ELISION => parts.push(String::new()),
            line => parts.last_mut().expect("there is always a part").extend([line, "\n"]),
        }
    }
    let parts: Vec<Vec<String>> = parts.iter().map(|part| shape(part)).collect();
    let printed = shape(printed);
    let [first, middle @ .., last] = parts.as_slice() else { return parts.concat() == printed };
    let Some(mut rest) = printed.strip_prefix(first.as_slice()) else { return false };
    for part in middle {
        let Some(at) = rest.windows(part.len().max(1)).position(|words| words == part.as_slice()) else {
            return false;
        };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

#[test]
fn numbers_and_lines_may_differ_and_words_may_not() {
    let shown = "11.4 s wall, 2 CPUs (77.0 % of\nthe wall)\n█░░▓\nmv 2,000 load 25.2 %, /tmp/x";
    let same = "1.2 ms wall, 16 CPUs (7 % of the wall)\n██▓\nmv 40 queue 5 %,\n/home";
    assert!(matches(shown, same));
    for other in [
        same.replace("wall,", "walls,"),
        same.replace("mv", "cp"),
        same.replace("7 %", "-"),
        same.replace("██▓", ""),
        format!("{same} more"),
    ] {
        assert!(!matches(shown, &other), "{other}");
    }
    assert!(!matches("unit", "s"), "a unit follows a number");
}

#[test]
fn an_elision_stands_for_any_lines() {
    assert!(matches("a 1\n...\nc", "a 2\nb\nb\nc"));
    assert!(matches("a\n...\nb\n...", "a\nx\nb"));
    assert!(!matches("a\n...\nc", "a b c d"));
    assert!(!matches("a\n...\nc\n...\nd", "a c"));
    assert!(!matches("a\n...", "b a"));
}
