//! The chart of an outcome: its axes, its series, and the lines fitted to them.

use serde::{Deserialize, Serialize};

use crate::linearity::Linearity;

/// A straight line through the points of a series.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fit {
    /// The name of the series in the chart.
    pub series: String,
    /// The line's value at x = 0, in nanoseconds.
    pub at_zero_ns: f64,
    /// The slope in nanoseconds per `x_unit`.
    pub slope_ns: f64,
    /// The confidence interval of the slope, estimated from the noise of the points.
    pub slope_interval_ns: Option<[f64; 2]>,
    /// The unit of the x axis for the slope: `MB` for 1,000,000 bytes, or the unit of the column,
    /// such as `open file`.
    #[serde(rename = "per")]
    pub x_unit: String,
    /// The share of the variance that the line explains; unknown if nothing varies.
    pub r_squared: Option<f64>,
    /// Whether a line fits the points.
    #[serde(flatten)]
    pub linearity: Linearity,
}

/// How an experiment is drawn, and how it is shown in a terminal: one row per series, one column
/// per x.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Chart {
    /// The column along the x axis.
    pub x: String,
    /// The column along the y axis.
    pub y: String,
    /// The key columns that name a series.
    pub series: Vec<String>,
    /// The scale of the x axis.
    pub x_scale: Scale,
    /// The scale of the y axis.
    pub y_scale: Scale,
    /// Curves that others have published.
    pub published: Vec<PublishedCurve>,
}

/// The scale of an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scale {
    /// A linear scale.
    Linear,
    /// A logarithmic scale.
    Logarithmic,
}

/// A curve that others have published.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PublishedCurve {
    /// The label of the curve.
    pub label: String,
    /// The points, in the units of the axes.
    pub points: Vec<(f64, f64)>,
}
