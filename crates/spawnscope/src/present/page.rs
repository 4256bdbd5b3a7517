//! A page of styled lines with limited width. Lines are cut by their displayed width, so callers
//! cannot exceed it.

use std::fmt::Write as _;

use anstyle::Style;

use super::palette::{PLAIN, TITLE};
use super::text;

/// Minimum width, in columns, for a sentence after the beginning of a line. If less is left, the
/// sentence starts on the next line.
const MIN_HANGING_WIDTH: usize = 16;
const HANGING_INDENT: usize = 4;

const COMMAND_GAP: &str = "   ";

/// A part of a line in one style. Its text must be escaped.
pub(super) struct Span {
    text: String,
    style: Style,
}

pub(super) fn plain(text: impl Into<String>) -> Span {
    styled(PLAIN, text)
}

pub(super) fn styled(style: Style, text: impl Into<String>) -> Span {
    Span { text: text.into(), style }
}

pub(super) struct Page {
    width: usize,
    text: String,
}

impl Page {
    pub(super) fn of_width(width: usize) -> Page {
        Page { width, text: String::new() }
    }

    pub(super) fn width(&self) -> usize {
        self.width
    }

    /// Adds a line, cut to the width.
    pub(super) fn line(&mut self, spans: impl IntoIterator<Item = Span>) {
        let mut available = self.width;
        let mut line = String::new();
        for span in spans {
            let shown = text::truncate(&span.text, available);
            available -= text::width(&shown);
            if shown.is_empty() {
                continue;
            }
            let style = span.style;
            // Writing to a string cannot fail.
            let _ = write!(line, "{style}{shown}{style:#}");
        }
        self.text.push_str(line.trim_end());
        self.text.push('\n');
    }

    /// Adds a command for the user to type. It is never cut, because that would change it.
    pub(super) fn command(&mut self, indent: usize, command: &str) {
        let _ = writeln!(self.text, "{:indent$}{command}", "");
    }

    /// Adds commands for the user to type after a label, as many in a line as fit.
    pub(super) fn commands(&mut self, label: &str, commands: &[String]) {
        let mut line = format!("  {label}");
        let indent = line.len();
        for command in commands {
            if line.len() > indent && text::width(&line) + COMMAND_GAP.len() + text::width(command) > self.width {
                self.command(0, &std::mem::replace(&mut line, " ".repeat(indent)));
            }
            if line.len() > indent {
                line.push_str(COMMAND_GAP);
            }
            line.push_str(command);
        }
        self.command(0, &line);
    }

    /// Adds a heading with an empty line before it.
    pub(super) fn heading(&mut self, title: &str) {
        self.line([]);
        self.sentence(0, TITLE, title);
    }

    /// Adds a sentence, wrapped into lines.
    pub(super) fn sentence(&mut self, indent: usize, style: Style, sentence: &str) {
        for line in text::wrap(sentence, self.width.saturating_sub(indent)) {
            self.line([plain(" ".repeat(indent)), styled(style, line)]);
        }
    }

    /// Adds a sentence after the beginning of a line. Continuation lines are aligned with the
    /// first. If too few columns are left, the sentence starts on the next line.
    pub(super) fn hanging(&mut self, beginning: impl IntoIterator<Item = Span>, style: Style, sentence: &str) {
        let mut beginning: Vec<Span> = beginning.into_iter().collect();
        let column: usize = beginning.iter().map(|span| text::width(&span.text)).sum();
        let width = self.width.saturating_sub(column);
        if width < MIN_HANGING_WIDTH.min(text::width(sentence)) {
            self.line(beginning);
            if !sentence.is_empty() {
                self.sentence(HANGING_INDENT, style, sentence);
            }
            return;
        }
        for line in text::wrap(sentence, width) {
            beginning.push(styled(style, line));
            self.line(std::mem::replace(&mut beginning, vec![plain(" ".repeat(column))]));
        }
    }

    pub(super) fn finish(self) -> String {
        self.text
    }
}
