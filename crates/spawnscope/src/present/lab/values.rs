//! Values of the lab as people read them.

use crate::event::Nanos;
use crate::lab::harness::Estimate;
use crate::lab::outcome::{Fit, Unit, Value};
use crate::units;

/// A value in its unit; `-` when unknown.
pub(super) fn shown(value: &Value, unit: Unit) -> String {
    match (value, value.number()) {
        (Value::Text(text), _) => text.clone(),
        (_, Some(number)) => figure(number, unit),
        _ => "-".to_owned(),
    }
}

/// A number in its unit.
pub(super) fn figure(number: f64, unit: Unit) -> String {
    match unit {
        Unit::Nanos => units::time(Nanos(number.max(0.0).round() as u64)),
        Unit::Bytes => units::bytes(number.max(0.0) as u64),
        Unit::Ratio => format!("{number:.2}x"),
        Unit::PerSecond => units::count(number.max(0.0).round() as u64),
        Unit::Count | Unit::Text => number.to_string(),
    }
}

/// Half the interval as a share, such as `±2 %`.
pub(super) fn noise(estimate: &Estimate) -> String {
    let percent = 100.0 * estimate.noise();
    if percent < 9.95 {
        format!("±{percent:.1} %")
    } else {
        format!("±{percent:.0} %")
    }
}

/// A fit as a sentence.
pub(super) fn sentence(fit: &Fit) -> String {
    let explained = match fit.r_squared {
        Some(share) => format!(" (R² {share:.3})"),
        None => String::new(),
    };
    let series = if fit.series.is_empty() {
        String::new()
    } else {
        format!("{}: ", fit.series)
    };
    format!(
        "{series}{:.3} us per {}, from {}{explained}",
        fit.slope_ns / 1e3,
        fit.per,
        figure(fit.at_zero_ns, Unit::Nanos),
    )
}
