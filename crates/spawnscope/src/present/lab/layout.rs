//! Tables on a terminal. No figure is cut and no column is dropped: columns that do not fit are printed below, with the keys repeated.

use crate::present::page::{Page, plain, styled};
use crate::present::palette::{PLAIN, TITLE};
use crate::present::text::{pad_left, pad_right, width, wrap};

pub(super) const INDENT: usize = 2;
const GAP: usize = 2;
/// Width above which a word of a key may be broken, in columns.
const MAX_UNBROKEN_WORD: usize = 16;

/// A table. The first row has the headings.
pub(super) struct Table {
    pub(super) rows: Vec<Vec<String>>,
    /// The number of columns that identify a row.
    pub(super) keys: usize,
    /// Which columns contain text and are left-aligned.
    pub(super) is_text: Vec<bool>,
}

impl Table {
    pub(super) fn print(&self, page: &mut Page) {
        let count = self.rows.first().map_or(0, Vec::len);
        let mut widths: Vec<usize> =
            (0..count).map(|at| self.rows.iter().map(|row| width(&row[at])).max().unwrap_or(0)).collect();
        let available = page.width().saturating_sub(INDENT);
        let figure = widths[self.keys..].iter().max().map_or(0, |width| width + GAP);
        // If not even one figure fits after the keys, the keys are wrapped.
        while total_width(&widths[..self.keys]) + figure > available {
            let breakable = (0..self.keys).filter(|at| widths[*at] > self.longest_word(*at));
            let Some(key) = breakable.max_by_key(|at| widths[*at]) else {
                break;
            };
            widths[key] -= 1;
        }
        let mut next = self.keys;
        loop {
            let mut shown: Vec<usize> = (0..self.keys).collect();
            let mut used = total_width(&widths[..self.keys]);
            while next < count && (shown.len() == self.keys || used + GAP + widths[next] <= available) {
                used += GAP + widths[next];
                shown.push(next);
                next += 1;
            }
            self.print_block(page, &shown, &widths);
            if next >= count {
                break;
            }
            page.line([]);
        }
    }

    fn longest_word(&self, column: usize) -> usize {
        let words = self.rows.iter().flat_map(|row| row[column].split(' ')).map(width);
        words.max().unwrap_or(0).min(MAX_UNBROKEN_WORD)
    }

    fn print_block(&self, page: &mut Page, shown: &[usize], widths: &[usize]) {
        for (number, row) in self.rows.iter().enumerate() {
            let style = if number == 0 { TITLE } else { PLAIN };
            let cells: Vec<Vec<String>> = shown
                .iter()
                .map(|&at| if at < self.keys { wrap(&row[at], widths[at]) } else { vec![row[at].clone()] })
                .collect();
            let height = cells.iter().map(Vec::len).max().unwrap_or(0);
            for part in 0..height {
                let mut line = String::new();
                for (&at, cell) in shown.iter().zip(&cells) {
                    let text = cell.get(part).map_or("", String::as_str);
                    if self.is_text[at] {
                        line.push_str(&pad_right(text, widths[at]));
                    } else {
                        line.push_str(&pad_left(text, widths[at]));
                    }
                    line.push_str(&" ".repeat(GAP));
                }
                page.line([plain(" ".repeat(INDENT)), styled(style, line.trim_end())]);
            }
        }
    }
}

fn total_width(widths: &[usize]) -> usize {
    widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(columns: usize) -> Vec<String> {
        let rows = [["mechanism", "wall", "call", "user"], ["vspawn with a pipe", "1.23 us", "4 us", "567 ms"]];
        let table = Table {
            rows: rows.map(|cells| cells.map(str::to_owned).to_vec()).to_vec(),
            keys: 1,
            is_text: vec![true, false, false, false],
        };
        let mut page = Page::of_width(columns);
        table.print(&mut page);
        page.finish().lines().map(str::to_owned).collect()
    }

    #[test]
    fn columns_that_do_not_fit_are_printed_below() {
        assert_eq!(
            shown(43),
            [
                "  \u{1b}[1mmechanism              wall  call    user\u{1b}[0m",
                "  vspawn with a pipe  1.23 us  4 us  567 ms"
            ]
        );
        let narrower = shown(42);
        assert_eq!(narrower.len(), 5, "{narrower:?}");
        assert_eq!(narrower[1], "  vspawn with a pipe  1.23 us  4 us");
        assert_eq!(narrower[4], "  vspawn with a pipe  567 ms");
    }

    #[test]
    fn keys_are_wrapped_so_that_figures_are_not_cut() {
        let narrow = shown(22);
        assert!(narrow.contains(&"  vspawn with  1.23 us".to_owned()), "{narrow:?}");
        assert!(narrow.iter().all(|line| !line.contains('…')), "{narrow:?}");
    }
}
