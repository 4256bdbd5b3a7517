//! Columns of figures behind a name. A figure is never cut and never touches its neighbour: its column grows with it, and
//! where a line is too narrow whole columns go, those of least worth first.

use super::text;

/// Columns before a name.
const NAME_INDENT: usize = 2;

/// One column of figures.
pub(super) struct Column {
    pub(super) title: &'static str,
    /// Width without need for more, the space before the figure included.
    pub(super) width: usize,
    /// The larger, the longer it stays.
    pub(super) worth: u8,
}

/// The columns that fit, each by its position and width.
pub(super) struct Columns<'c> {
    columns: &'c [Column],
    fitting: Vec<(usize, usize)>,
}

impl<'c> Columns<'c> {
    /// Fits columns with these rows of figures into `width`.
    pub(super) fn fit(width: usize, columns: &'c [Column], rows: &[Vec<String>]) -> Columns<'c> {
        let widest = |position: usize| rows.iter().map(|row| text::width(&row[position])).max().unwrap_or(0);
        let mut fitting: Vec<(usize, usize)> = columns
            .iter()
            .enumerate()
            .map(|(position, column)| (position, column.width.max(widest(position) + 1)))
            .collect();
        while fitting.len() > 1 && fitting.iter().map(|(_, width)| width).sum::<usize>() > width {
            let least = (0..fitting.len()).min_by_key(|at| columns[fitting[*at].0].worth);
            fitting.remove(least.unwrap_or_default());
        }
        Columns { columns, fitting }
    }

    /// Columns of the terminal that they take.
    pub(super) fn width(&self) -> usize {
        self.fitting.iter().map(|(_, width)| width).sum()
    }

    /// Columns for the names before them: what is left of a page, but no more than the widest name needs. Figures far from
    /// their names are hard to read.
    pub(super) fn name_width(&self, page_width: usize, widest: usize) -> usize {
        page_width.saturating_sub(NAME_INDENT + self.width()).min(widest)
    }

    /// The titles as they stand above the figures.
    pub(super) fn titles(&self) -> String {
        let title = |(position, width): &(usize, usize)| text::pad_left(self.columns[*position].title, *width);
        self.fitting.iter().map(title).collect()
    }

    /// A row of all figures, of which those that fit are shown.
    pub(super) fn row(&self, figures: &[String]) -> String {
        let figure = |(position, width): &(usize, usize)| text::pad_left(&figures[*position], *width);
        self.fitting.iter().map(figure).collect()
    }
}
