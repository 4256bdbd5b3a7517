//! How an outcome is drawn: the chart with its scales, and the lines fitted to its series.

use serde::{Deserialize, Serialize};

use crate::linearity::Linearity;

/// A straight line through the points of a series.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fit {
    /// The name of the series, as in the chart.
    pub series: String,
    /// The line's value at x = 0, in nanoseconds.
    pub at_zero_ns: f64,
    /// The slope in nanoseconds per 1,000,000 bytes, or per unit of the x axis.
    pub slope_ns: f64,
    /// The interval of the slope that the noise of the points allows.
    #[serde(default)]
    pub slope_interval_ns: Option<[f64; 2]>,
    /// The unit of the x axis for the slope: `MB`, `file`.
    pub per: String,
    /// The share of the variance that the line explains; unknown if nothing varies.
    pub r_squared: Option<f64>,
    /// Whether a line fits the points.
    #[serde(flatten)]
    pub linearity: Linearity,
}

/// How an experiment is drawn, and laid out on a terminal: one row per series, one column per x.
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
    /// Curves published by others.
    pub published: Vec<Published>,
}

/// The scale of an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scale {
    /// Linear.
    Linear,
    /// Logarithmic.
    Logarithmic,
}

/// A curve published by others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Published {
    /// Its label.
    pub label: String,
    /// The points, in the units of the axes.
    pub points: Vec<(f64, f64)>,
}
