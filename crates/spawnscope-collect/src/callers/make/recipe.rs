//! Finds a recipe's line in the text of a makefile. Make counts the lines of a recipe, not those of the file: a line may be continued, and
//! conditionals and comments may be in between. A line is known if only one can be it.

use std::borrow::Cow;
use std::ops::ControlFlow;

/// What a line of a makefile is to the recipe before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// One of its lines.
    Recipe,
    /// A conditional: lines around it may not be in the recipe.
    Conditional,
    /// Empty, or a comment.
    Nothing,
    /// The recipe ends before.
    Other,
}

const CONDITIONALS: [&[u8]; 6] = [b"ifdef", b"ifndef", b"ifeq", b"ifneq", b"else", b"endif"];

/// A line with the lines that continue it.
struct Logical<'a> {
    /// That of its first line, from 1.
    number: u32,
    text: &'a [u8],
}

impl Logical<'_> {
    fn kind(&self) -> Kind {
        if self.text.starts_with(b"\t") {
            return Kind::Recipe;
        }
        let mut words = self.text.split(|byte| byte.is_ascii_whitespace() || *byte == b'(');
        match words.find(|word| !word.is_empty()) {
            None => Kind::Nothing,
            Some(word) if word.starts_with(b"#") => Kind::Nothing,
            Some(word) if CONDITIONALS.contains(&word) => Kind::Conditional,
            Some(_) => Kind::Other,
        }
    }
}

/// The lines of a makefile from line `first` on.
fn lines_from(makefile: &[u8], first: u32) -> impl Iterator<Item = Logical<'_>> {
    let mut physical = makefile.split_inclusive(|byte| *byte == b'\n');
    let skipped = first.saturating_sub(1) as usize;
    let mut start: usize = physical.by_ref().take(skipped).map(<[u8]>::len).sum();
    let mut number = first;
    std::iter::from_fn(move || {
        let (begin, at) = (start, number);
        // A number is counted only with its line, so one beyond the end cannot overflow.
        for line in physical.by_ref() {
            start += line.len();
            number += 1;
            if !is_continued(line) {
                break;
            }
        }
        let text = makefile.get(begin..start).filter(|text| !text.is_empty())?;
        let text = text.strip_suffix(b"\n").unwrap_or(text);
        Some(Logical { number: at, text })
    })
}

fn is_continued(line: &[u8]) -> bool {
    let line = line.strip_suffix(b"\n").unwrap_or_default();
    line.iter().rev().take_while(|byte| **byte == b'\\').count() % 2 == 1
}

/// A text without the differences that make may make: it joins continued lines within a reference to a variable.
fn joined(text: &[u8]) -> Cow<'_, [u8]> {
    if !text.contains(&b'\n') {
        return Cow::Borrowed(text);
    }
    let mut joined: Vec<u8> = Vec::with_capacity(text.len());
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        let line = if joined.is_empty() {
            line
        } else {
            line.trim_ascii_start()
        };
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

/// A line of a recipe, as make keeps it.
pub(super) struct Wanted<'a> {
    /// The line of the recipe's first line.
    pub(super) first: u32,
    /// Its number in the recipe, from 0.
    pub(super) index: u32,
    pub(super) text: &'a [u8],
    /// Whether the text is only the beginning.
    pub(super) is_cut: bool,
}

impl Wanted<'_> {
    /// Whether a text in the makefile is this one.
    fn is(&self, found: &[u8]) -> bool {
        let found = joined(found);
        // With .ONESHELL, all lines of the recipe are one text.
        let line = lines_from(self.text, 1).next().map_or(&b""[..], |line| line.text);
        let wanted = joined(line);
        if self.is_cut && line.len() == self.text.len() {
            let wanted = wanted.trim_ascii_end();
            return found.starts_with(wanted.strip_suffix(b"\\").unwrap_or(wanted).trim_ascii_end());
        }
        found.trim_ascii() == wanted.trim_ascii()
    }

    /// Whether a recipe that begins on the line of its rule, behind a semicolon, begins with this text.
    fn is_behind_rule(&self, rule: &[u8]) -> bool {
        let semicolons = (0..rule.len()).filter(|at| rule[*at] == b';');
        let mut rests = semicolons.map(|at| &rule[at + 1..]);
        rests.any(|rest| self.is(rest))
    }
}

/// The line of the makefile that contains a line of a recipe. `None` if none can, or several.
pub(super) fn line_of(makefile: &[u8], wanted: &Wanted<'_>) -> Option<u32> {
    let mut lines = lines_from(makefile, wanted.first).peekable();
    let mut passed = 0;
    let head = lines.peek()?;
    if head.kind() != Kind::Recipe {
        if wanted.index == 0 {
            return wanted.is_behind_rule(head.text).then_some(head.number);
        }
        (passed, _) = (1, lines.next());
    }
    let mut search = Search {
        wanted,
        passed,
        has_conditional: false,
        found: None,
    };
    let end = lines.try_for_each(|line| search.pass(&line));
    match end {
        ControlFlow::Break(Some(exact)) => Some(exact),
        ControlFlow::Break(None) | ControlFlow::Continue(()) => search.found.flatten(),
    }
}

struct Search<'a> {
    wanted: &'a Wanted<'a>,
    /// Lines of the recipe so far.
    passed: u32,
    has_conditional: bool,
    /// The line; `Some(None)` if there are several.
    found: Option<Option<u32>>,
}

impl Search<'_> {
    /// Looks at a line. Breaks at the recipe's end, or with the line if it is certain.
    fn pass(&mut self, line: &Logical<'_>) -> ControlFlow<Option<u32>> {
        match line.kind() {
            Kind::Nothing => {}
            Kind::Conditional => self.has_conditional = true,
            Kind::Other => return ControlFlow::Break(None),
            Kind::Recipe => {
                let is_it = self.passed >= self.wanted.index && self.wanted.is(&line.text[1..]);
                if !self.has_conditional && self.passed == self.wanted.index {
                    return ControlFlow::Break(is_it.then_some(line.number));
                }
                if is_it {
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
        let wanted = Wanted {
            first,
            index,
            text: text.as_bytes(),
            is_cut: false,
        };
        line_of(makefile.as_bytes(), &wanted)
    }

    #[test]
    fn continued_lines_comments_and_empty_lines_are_counted() {
        let makefile = "all:\n\techo a \\\n\t  b\n\n# note \\\n  more\n\t@echo c\n\t\n\techo d\nend:\n\techo a\n";
        assert_eq!(found(makefile, 2, 0, "echo a \\\n\t  b"), Some(2));
        assert_eq!(found(makefile, 2, 1, "@echo c"), Some(7));
        assert_eq!(found(makefile, 2, 3, "echo d"), Some(9));
        assert_eq!(found(makefile, 2, 4, "echo a"), None, "of another rule");
        assert_eq!(found(makefile, 40, 0, "echo a"), None);
        assert_eq!(found(makefile, u32::MAX, 0, "echo a"), None);
        assert_eq!(found(makefile, 2, u32::MAX, "echo a"), None);
        assert_eq!(found(makefile, 0, 0, "all:"), None);
    }

    #[test]
    fn a_text_that_is_not_in_that_line_has_no_line() {
        // As for rules that `eval` made, whose lines make counts from the `eval` on.
        assert_eq!(found("$(eval $(R))\n\tone\n\ttwo\n", 2, 0, "two"), None);
        assert_eq!(found("all:\n\tone\n\ttwo\n", 2, 0, "on"), None);
    }

    #[test]
    fn the_lines_of_a_conditional_are_known_if_only_one_can_be_it() {
        let makefile = "all:\n\ta\nifdef X\n\tb\n\tsame\nelse\n\tc\n\tsame\nendif\n\td\n";
        assert_eq!(found(makefile, 2, 0, "a"), Some(2));
        assert_eq!(found(makefile, 2, 1, "c"), Some(7));
        assert_eq!(found(makefile, 2, 3, "d"), Some(10));
        assert_eq!(found(makefile, 2, 2, "same"), None);
        // Without the first branch, it would be an earlier line of the recipe.
        assert_eq!(found(makefile, 2, 1, "a"), None);
    }

    #[test]
    fn a_recipe_may_begin_behind_its_rule() {
        let makefile = "all: a;  echo ; x\n\techo y\n";
        assert_eq!(found(makefile, 1, 0, "  echo ; x"), Some(1));
        assert_eq!(found(makefile, 1, 1, "echo y"), Some(2));
        assert_eq!(found(makefile, 1, 0, "echo z"), None);
    }

    #[test]
    fn a_text_may_be_joined_or_cut() {
        let makefile = "all:\n\tx $(foreach a, \\\n\t\tb, c)\n";
        assert_eq!(found(makefile, 2, 0, "x $(foreach a, b, c)"), Some(2));
        let cut = |text: &str| {
            let wanted = Wanted {
                first: 2,
                index: 0,
                text: text.as_bytes(),
                is_cut: true,
            };
            line_of(makefile.as_bytes(), &wanted)
        };
        assert_eq!(cut("x $(foreach a, \\"), Some(2));
        assert_eq!(cut("x $(foreach a, \\\n\t\tb"), Some(2));
        assert_eq!(cut("x $(foreach b"), None);
        // With .ONESHELL
        assert_eq!(found("all:\n\t@a\n\tb\n", 2, 0, "@a\nb"), Some(2));
    }
}
