//! Values of the lab as people read them.

use crate::event::Nanos;
use crate::lab::harness::Estimate;
use crate::lab::machine::Machine;
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

/// A line that explains less of the variance is none.
const LEAST_EXPLAINED: f64 = 0.5;

/// A fit as a sentence.
pub(super) fn sentence(fit: &Fit) -> String {
    let series = &fit.series;
    let explained = fit.r_squared.unwrap_or_default();
    if explained < LEAST_EXPLAINED {
        return format!("{series}: no straight line (R² {explained:.2})");
    }
    let start = figure(fit.at_zero_ns, Unit::Nanos);
    format!(
        "{series}: {:.3} us per {}, from {start} (R² {explained:.3})",
        fit.slope_ns / 1e3,
        fit.per
    )
}

/// The machine in words.
pub(super) fn words(machine: &Machine) -> String {
    let kind = if machine.is_virtual {
        "a virtual machine"
    } else {
        "no virtual machine"
    };
    let parts = [
        machine.processor.clone(),
        Some(units::counted(machine.cpus, "CPU", "CPUs")),
        machine.memory_bytes.map(units::bytes),
        Some(kind.to_owned()),
        Some(format!("Linux {}", machine.kernel)),
        machine.libc.clone(),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}
