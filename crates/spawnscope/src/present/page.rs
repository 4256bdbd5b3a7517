//! A page of styled lines with limited width, and what its lines are made of: colours, and columns
//! of figures after a name. Lines are cut by their displayed width, so callers cannot exceed it.
//!
//! The colours are from the 16 that every terminal maps to its own theme, so both light and dark
//! themes work. Each phase also has a glyph, so that the output is readable without colour.
//!
//! A figure is never cut and never touches its neighbour: its column grows with it. If a line is
//! too narrow, whole columns are dropped, least important first.

use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};

use super::text;
use crate::analyze::model::phases::Phase;

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

    /// Adds a table of names, cut to `name_width`, with their figures.
    pub(super) fn table(
        &mut self,
        title: &str,
        names: &[String],
        name_width: usize,
        columns: &Columns<'_>,
        rows: &[Vec<String>],
    ) {
        self.line([styled(QUIET, format!("  {}{}", text::pad_right(title, name_width), columns.titles()))]);
        for (name, figures) in names.iter().zip(rows) {
            self.line([plain(format!("  {}{}", text::pad_right(name, name_width), columns.row(figures)))]);
        }
    }

    pub(super) fn finish(self) -> String {
        self.text
    }
}

pub(super) const PLAIN: Style = Style::new();
pub(super) const TITLE: Style = Style::new().bold();
pub(super) const QUIET: Style = Style::new().dimmed();
pub(super) const WARNING: Style = AnsiColor::Red.on_default().bold();
pub(super) const FINDING: Style = AnsiColor::Magenta.on_default().bold();

/// Returns the colour and the glyph of a phase in bars and legends. Adjacent phases differ in both.
/// Only run is grey, as on the HTML page.
pub(super) fn phase_style(phase: Phase) -> (Style, char) {
    let (color, glyph) = match phase {
        Phase::Create => (AnsiColor::Red, '█'),
        Phase::Queue => (AnsiColor::Yellow, '░'),
        Phase::Setup => (AnsiColor::Magenta, '▓'),
        Phase::Exec => (AnsiColor::Blue, '▒'),
        Phase::Load => (AnsiColor::Cyan, '▚'),
        Phase::Run => (AnsiColor::BrightBlack, '·'),
        Phase::Teardown => (AnsiColor::BrightRed, '▄'),
        Phase::Reap => (AnsiColor::Green, '▀'),
    };
    (color.on_default(), glyph)
}

const NAME_INDENT: usize = 2;

/// One column of figures.
#[derive(Clone, Copy)]
pub(super) struct Column {
    pub(super) title: &'static str,
    /// Minimum width, including the space before the figure.
    pub(super) width: usize,
    /// Columns with the lowest priority are dropped first.
    pub(super) priority: u8,
}

pub(super) const fn column(title: &'static str, width: usize, priority: u8) -> Column {
    Column { title, width, priority }
}

/// The columns that fit, each with its position and width.
pub(super) struct Columns<'c> {
    columns: &'c [Column],
    fitting: Vec<(usize, usize)>,
}

impl<'c> Columns<'c> {
    pub(super) fn fit(width: usize, columns: &'c [Column], rows: &[Vec<String>]) -> Columns<'c> {
        let mut fitting: Vec<(usize, usize)> = Vec::new();
        for (position, column) in columns.iter().enumerate() {
            let widest = rows.iter().map(|row| text::width(&row[position])).max().unwrap_or(0);
            fitting.push((position, column.width.max(widest + 1)));
        }
        while fitting.len() > 1 && fitting.iter().map(|(_, width)| width).sum::<usize>() > width {
            let lowest = (0..fitting.len()).min_by_key(|at| columns[fitting[*at].0].priority);
            fitting.remove(lowest.unwrap_or_default());
        }
        Columns { columns, fitting }
    }

    pub(super) fn has(&self, title: &str) -> bool {
        self.fitting.iter().any(|(position, _)| self.columns[*position].title == title)
    }

    pub(super) fn width(&self) -> usize {
        self.fitting.iter().map(|(_, width)| width).sum()
    }

    /// Returns the width of the name column: the rest of the page, but not more than the widest
    /// name needs, because figures far from their names are hard to read.
    pub(super) fn name_width(&self, page_width: usize, widest: usize) -> usize {
        page_width.saturating_sub(NAME_INDENT + self.width()).min(widest)
    }

    /// Returns the titles, aligned with the figures.
    pub(super) fn titles(&self) -> String {
        self.fitting.iter().map(|(position, width)| text::pad_left(self.columns[*position].title, *width)).collect()
    }

    /// Formats a row. `figures` has one entry per column; only columns that fit are shown.
    pub(super) fn row(&self, figures: &[String]) -> String {
        self.fitting.iter().map(|(position, width)| text::pad_left(&figures[*position], *width)).collect()
    }
}
