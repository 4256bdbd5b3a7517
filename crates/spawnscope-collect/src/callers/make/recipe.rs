//! Finds a line of a recipe in the text of a makefile. Make stores the line's index in the recipe,
//! not its line in the file: lines may be continued, and there may be conditionals and comments
//! between them. The line is known if only one line of the file can be the right one.

use std::borrow::Cow;
use std::ops::ControlFlow;

/// What a line of a makefile means for the recipe that began before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LineRole {
    /// It is a line of the recipe.
    Recipe,
    /// It is a conditional, so the lines after it may not be in the recipe.
    Conditional,
    /// It is empty, or a comment.
    Nothing,
    /// It is anything else, so the recipe ends before it.
    Other,
}

const CONDITIONALS: [&[u8]; 6] = [b"ifdef", b"ifndef", b"ifeq", b"ifneq", b"else", b"endif"];

/// A line with its continuation lines.
struct LogicalLine<'a> {
    /// The number of the first line, from 1.
    number: u32,
    text: &'a [u8],
}

impl LogicalLine<'_> {
    fn role(&self) -> LineRole {
        if self.text.starts_with(b"\t") {
            return LineRole::Recipe;
        }
        let mut words = self.text.split(|byte| byte.is_ascii_whitespace() || *byte == b'(');
        match words.find(|word| !word.is_empty()) {
            None => LineRole::Nothing,
            Some(word) if word.starts_with(b"#") => LineRole::Nothing,
            Some(word) if CONDITIONALS.contains(&word) => LineRole::Conditional,
            Some(_) => LineRole::Other,
        }
    }
}

fn lines_from(makefile: &[u8], first: u32) -> impl Iterator<Item = LogicalLine<'_>> {
    let mut physical = makefile.split_inclusive(|byte| *byte == b'\n');
    let skipped = first.saturating_sub(1) as usize;
    let mut start: usize = physical.by_ref().take(skipped).map(<[u8]>::len).sum();
    let mut number = first;
    std::iter::from_fn(move || {
        let (begin, at) = (start, number);
        // The number is increased only for existing lines, so it cannot overflow.
        for line in physical.by_ref() {
            start += line.len();
            number += 1;
            if !is_continued(line) {
                break;
            }
        }
        let text = makefile.get(begin..start).filter(|text| !text.is_empty())?;
        let text = text.strip_suffix(b"\n").unwrap_or(text);
        Some(LogicalLine { number: at, text })
    })
}

fn is_continued(line: &[u8]) -> bool {
    let line = line.strip_suffix(b"\n").unwrap_or_default();
    line.iter().rev().take_while(|byte| **byte == b'\\').count() % 2 == 1
}

/// Joins continued lines, as make does within a reference to a variable. Texts are compared in this
/// form, since make may or may not have joined their lines.
fn join_continued(text: &[u8]) -> Cow<'_, [u8]> {
    if !text.contains(&b'\n') {
        return Cow::Borrowed(text);
    }
    let mut joined: Vec<u8> = Vec::with_capacity(text.len());
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        let line = if joined.is_empty() { line } else { line.trim_ascii_start() };
        match line.strip_suffix(b"\\\n") {
            Some(line) => {
                joined.extend_from_slice(line.trim_ascii_end());
                joined.push(b' ');
            }
            None => joined.extend_from_slice(line),
        }
    }
    Cow::Owned(joined)
}

/// The line of a recipe that is searched for, as make stores it.
pub(super) struct RecipeLine<'a> {
    /// The number, in the makefile, of the recipe's first line.
    pub(super) first_line: u32,
    /// The index of the wanted line in the recipe, from 0.
    pub(super) index: u32,
    pub(super) text: &'a [u8],
    pub(super) is_truncated: bool,
}

impl RecipeLine<'_> {
    /// Whether a text in the makefile is the wanted one.
    fn matches(&self, found: &[u8]) -> bool {
        let found = join_continued(found);
        // With .ONESHELL, all lines of the recipe are one text.
        let line = lines_from(self.text, 1).next().map_or(&b""[..], |line| line.text);
        let wanted = join_continued(line);
        if self.is_truncated && line.len() == self.text.len() {
            let wanted = wanted.trim_ascii_end();
            return found.starts_with(wanted.strip_suffix(b"\\").unwrap_or(wanted).trim_ascii_end());
        }
        found.trim_ascii() == wanted.trim_ascii()
    }

    /// Whether the wanted text follows a semicolon on the line of the rule, where a recipe may
    /// begin.
    fn follows_semicolon(&self, rule: &[u8]) -> bool {
        let semicolons = (0..rule.len()).filter(|at| rule[*at] == b';');
        let mut rests = semicolons.map(|at| &rule[at + 1..]);
        rests.any(|rest| self.matches(rest))
    }
}

/// Returns the number, in the makefile, of a line of a recipe; `None` if no line or more than one
/// line can be the wanted one.
pub(super) fn find_line(makefile: &[u8], wanted: &RecipeLine<'_>) -> Option<u32> {
    let mut lines = lines_from(makefile, wanted.first_line).peekable();
    let mut passed = 0;
    let head = lines.peek()?;
    if head.role() != LineRole::Recipe {
        if wanted.index == 0 {
            return wanted.follows_semicolon(head.text).then_some(head.number);
        }
        lines.next();
        passed = 1;
    }
    let mut search = Search { wanted, passed, has_conditional: false, found: None };
    let end = lines.try_for_each(|line| search.examine(&line));
    match end {
        ControlFlow::Break(Some(exact)) => Some(exact),
        ControlFlow::Break(None) | ControlFlow::Continue(()) => search.found.flatten(),
    }
}

struct Search<'a> {
    wanted: &'a RecipeLine<'a>,
    /// Number of lines of the recipe so far.
    passed: u32,
    has_conditional: bool,
    /// The matching line; `Some(None)` if there is more than one.
    found: Option<Option<u32>>,
}

impl Search<'_> {
    /// Examines a line. Breaks at the recipe's end, or with the line if it is certain.
    fn examine(&mut self, line: &LogicalLine<'_>) -> ControlFlow<Option<u32>> {
        match line.role() {
            LineRole::Nothing => {}
            LineRole::Conditional => self.has_conditional = true,
            LineRole::Other => return ControlFlow::Break(None),
            LineRole::Recipe => {
                let matches = self.passed >= self.wanted.index && self.wanted.matches(&line.text[1..]);
                if !self.has_conditional && self.passed == self.wanted.index {
                    return ControlFlow::Break(matches.then_some(line.number));
                }
                if matches {
                    self.found = Some(if self.found.is_none() { Some(line.number) } else { None });
                }
                self.passed += 1;
            }
        }
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(makefile: &str, first: u32, index: u32, text: &str) -> Option<u32> {
        let wanted = RecipeLine { first_line: first, index, text: text.as_bytes(), is_truncated: false };
        find_line(makefile.as_bytes(), &wanted)
    }

    #[test]
    fn continuation_lines_comments_and_empty_lines_are_skipped() {
        let makefile = "all:\n\techo a \\\n\t  b\n\n# note \\\n  more\n\t@echo c\n\t\n\techo d\nend:\n\techo a\n";
        assert_eq!(found(makefile, 2, 0, "echo a \\\n\t  b"), Some(2));
        assert_eq!(found(makefile, 2, 1, "@echo c"), Some(7));
        assert_eq!(found(makefile, 2, 3, "echo d"), Some(9));
        assert_eq!(found(makefile, 2, 4, "echo a"), None, "a line of another rule");
        assert_eq!(found(makefile, 40, 0, "echo a"), None);
        assert_eq!(found(makefile, u32::MAX, 0, "echo a"), None);
        assert_eq!(found(makefile, 2, u32::MAX, "echo a"), None);
        assert_eq!(found(makefile, 0, 0, "all:"), None);
    }

    #[test]
    fn a_text_that_is_not_in_that_line_has_no_line() {
        // This happens for rules that `eval` made: make counts their lines from the line of the
        // `eval`.
        assert_eq!(found("$(eval $(R))\n\tone\n\ttwo\n", 2, 0, "two"), None);
        assert_eq!(found("all:\n\tone\n\ttwo\n", 2, 0, "on"), None);
    }

    #[test]
    fn a_line_in_a_conditional_is_known_if_only_one_line_matches() {
        let makefile = "all:\n\ta\nifdef X\n\tb\n\tsame\nelse\n\tc\n\tsame\nendif\n\td\n";
        assert_eq!(found(makefile, 2, 0, "a"), Some(2));
        assert_eq!(found(makefile, 2, 1, "c"), Some(7));
        assert_eq!(found(makefile, 2, 3, "d"), Some(10));
        assert_eq!(found(makefile, 2, 2, "same"), None);
        // The wanted line cannot be one that precedes its index in the recipe.
        assert_eq!(found(makefile, 2, 1, "a"), None);
    }

    #[test]
    fn a_recipe_may_begin_on_the_line_of_its_rule() {
        let makefile = "all: a;  echo ; x\n\techo y\n";
        assert_eq!(found(makefile, 1, 0, "  echo ; x"), Some(1));
        assert_eq!(found(makefile, 1, 1, "echo y"), Some(2));
        assert_eq!(found(makefile, 1, 0, "echo z"), None);
    }

    #[test]
    fn a_text_may_be_joined_or_truncated() {
        let makefile = "all:\n\tx $(foreach a, \\\n\t\tb, c)\n";
        assert_eq!(found(makefile, 2, 0, "x $(foreach a, b, c)"), Some(2));
        for (text, line) in
            [("x $(foreach a, \\", Some(2)), ("x $(foreach a, \\\n\t\tb", Some(2)), ("x $(foreach b", None)]
        {
            let wanted = RecipeLine { first_line: 2, index: 0, text: text.as_bytes(), is_truncated: true };
            assert_eq!(find_line(makefile.as_bytes(), &wanted), line, "{text}");
        }
        // With .ONESHELL
        assert_eq!(found("all:\n\t@a\n\tb\n", 2, 0, "@a\nb"), Some(2));
    }
}
