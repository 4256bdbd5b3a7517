//! Small tables as bars: a group per row, and a bar per drawn column with its interval.

use plotters::coord::Shift;
use plotters::prelude::*;

use super::axis::Axis;
use super::theme::{CHARACTER, GRID, GROUND, INK, TEXT, WIDTH, colour};
use super::{Error, text_at, tick};
use crate::lab::compare::label;
use crate::lab::harness::Estimate;
use crate::lab::outcome::{Column, Outcome, Scale};
use crate::present::lab::values::{estimated, is_shown};
use crate::present::text::width;

const BAR: i32 = 16;
const GROUP_GAP: i32 = 10;
/// Height above the bars: the title, and the names of colours if there are several.
const HEAD: i32 = 34;
const NAMES: i32 = 24;
/// Height below the bars: the axis.
const FOOT: i32 = 34;
/// Width of the figure after a bar and its interval.
const FIGURE: i32 = 80;
const LARGEST_LABEL: i32 = 330;

/// Draws the bars. Returns `None` if nothing was measured.
pub(super) fn draw(outcome: &Outcome) -> Option<String> {
    let column = |name: &String| outcome.columns.iter().find(|column| column.name == *name);
    let columns: Vec<&Column> = outcome.bars.iter().filter_map(column).collect();
    let values = outcome
        .rows
        .iter()
        .flat_map(|row| columns.iter().filter_map(|column| row.get(&column.name).estimate()));
    let values: Vec<&Estimate> = values.filter(|value| is_shown(value)).collect();
    let unit = columns.first()?.unit;
    if values.is_empty() {
        return None;
    }
    let axis = Axis::over(values.iter().map(|value| value.high), Scale::Linear, unit);
    let picture = Bars {
        outcome,
        columns,
        axis,
        left: left(outcome),
    };
    let mut drawn = String::new();
    {
        let size = (WIDTH, picture.height() as u32);
        let area = SVGBackend::with_string(&mut drawn, size).into_drawing_area();
        picture.draw(&area).ok()?;
    }
    Some(drawn)
}

struct Bars<'o> {
    outcome: &'o Outcome,
    columns: Vec<&'o Column>,
    axis: Axis,
    left: i32,
}

/// Returns the x position at which bars begin.
fn left(outcome: &Outcome) -> i32 {
    let widest = outcome.rows.iter().map(|row| width(&label(outcome, row))).max();
    i32::try_from(widest.unwrap_or_default() * CHARACTER + 32).map_or(LARGEST_LABEL, |left| left.min(LARGEST_LABEL))
}

impl Bars<'_> {
    fn top(&self) -> i32 {
        HEAD + if self.columns.len() > 1 { NAMES } else { 0 }
    }

    fn group(&self) -> i32 {
        BAR * self.columns.len() as i32 + GROUP_GAP
    }

    fn height(&self) -> i32 {
        self.top() + self.group() * self.outcome.rows.len() as i32 + FOOT
    }

    fn x(&self, value: f64) -> i32 {
        let right = WIDTH as i32 - FIGURE;
        self.left + (self.axis.position(value) * f64::from(right - self.left)) as i32
    }

    fn draw(&self, area: &DrawingArea<SVGBackend<'_>, Shift>) -> Result<(), Error> {
        area.fill(&GROUND)?;
        text_at(area, &self.outcome.title, (12, 10), FontStyle::Bold)?;
        self.draw_axis(area)?;
        if self.columns.len() > 1 {
            let mut x = self.left;
            for (number, column) in self.columns.iter().enumerate() {
                let name = crate::lab::compare::words_of(&column.name);
                let corner = (x, HEAD + 2);
                area.draw(&Rectangle::new([corner, (x + 12, HEAD + 14)], colour(number).filled()))?;
                text_at(area, &name, (x + 18, HEAD), FontStyle::Normal)?;
                x += (width(&name) * CHARACTER) as i32 + 48;
            }
        }
        for (number, row) in self.outcome.rows.iter().enumerate() {
            let top = self.top() + self.group() * number as i32;
            let middle = top + (BAR * self.columns.len() as i32 - TEXT) / 2 + 1;
            text_at(area, &label(self.outcome, row), (12, middle), FontStyle::Normal)?;
            for (position, column) in self.columns.iter().enumerate() {
                if let Some(value) = row.get(&column.name).estimate() {
                    self.draw_bar(area, value, top + BAR * position as i32, position)?;
                }
            }
        }
        area.present()
    }

    fn draw_axis(&self, area: &DrawingArea<SVGBackend<'_>, Shift>) -> Result<(), Error> {
        let bottom = self.height() - FOOT;
        for value in self.axis.ticks() {
            let x = self.x(value);
            area.draw(&PathElement::new([(x, self.top() - 4), (x, bottom)], GRID))?;
            let name = tick(value, self.axis.unit);
            let half = (width(&name) * CHARACTER / 2) as i32;
            text_at(area, &name, (x - half, bottom + 8), FontStyle::Normal)?;
        }
        Ok(())
    }

    fn draw_bar(
        &self,
        area: &DrawingArea<SVGBackend<'_>, Shift>,
        value: &Estimate,
        top: i32,
        position: usize,
    ) -> Result<(), Error> {
        let text = estimated(value, self.axis.unit);
        if !is_shown(value) {
            return text_at(area, &text, (self.left + 6, top + 1), FontStyle::Normal);
        }
        let (end, middle) = (self.x(value.median), top + BAR / 2);
        let corners = [(self.left, top + 1), (end.max(self.left + 1), top + BAR - 2)];
        area.draw(&Rectangle::new(corners, colour(position).filled()))?;
        let (low, high) = (self.x(value.low), self.x(value.high));
        area.draw(&PathElement::new([(low, middle), (high, middle)], INK))?;
        for x in [low, high] {
            area.draw(&PathElement::new([(x, middle - 3), (x, middle + 3)], INK))?;
        }
        text_at(area, &text, (high.max(end) + 6, top + 1), FontStyle::Normal)
    }
}
