//! Columns of figures after a name. A figure is never cut and never touches its neighbour: its
//! column grows with it. If a line is too narrow, whole columns are dropped, least important first.

use super::text;

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
