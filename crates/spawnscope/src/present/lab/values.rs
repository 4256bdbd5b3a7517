//! Values of the lab as people read them.

use crate::event::Nanos;
use crate::lab::harness::Estimate;
use crate::lab::machine::Machine;
use crate::lab::outcome::{Fit, Report, Unit, Value};
use crate::units;

/// A median whose interval is wider is marked.
const NOISY: f64 = 0.1;
/// One whose interval is wider is not shown.
const UNTRUSTED: f64 = 1.0;

/// A value in its unit; `-` when unknown or not to be trusted.
pub(super) fn shown(value: &Value, unit: Unit) -> String {
    match (value, value.number()) {
        (Value::Text(text), _) => text.clone(),
        (Value::Estimate(estimate), _) => estimated(estimate, unit),
        (_, Some(number)) => figure(number, unit),
        _ => "-".to_owned(),
    }
}

/// A median in its unit: with a mark where its interval is wide, and `-` where it is too wide.
pub(super) fn estimated(estimate: &Estimate, unit: Unit) -> String {
    let mark = match estimate.noise() {
        noise if noise > UNTRUSTED => return "-".to_owned(),
        noise if noise > NOISY => "~",
        _ => "",
    };
    format!("{mark}{}", figure(estimate.median, unit))
}

/// What the marks mean of those figures that are shown, as sentences.
pub(super) fn legend<'e>(estimates: impl IntoIterator<Item = &'e Estimate>) -> Vec<String> {
    let (mut is_marked, mut withheld) = (false, 0);
    for noise in estimates.into_iter().map(Estimate::noise) {
        is_marked |= noise > NOISY && noise <= UNTRUSTED;
        withheld += u64::from(noise > UNTRUSTED);
    }
    let marked = is_marked.then(|| "~ the interval of 95 % is wider than ±10 %".to_owned());
    let withheld = (withheld > 0).then(|| {
        let figures = units::counted(withheld, "figure is", "figures are");
        format!("- {figures} not shown, with an interval wider than ±100 %; --json has all")
    });
    marked.into_iter().chain(withheld).collect()
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

/// Half the interval as a share, such as `±2 %`; nothing of what is not shown.
pub(super) fn noise(estimate: &Estimate) -> String {
    match 100.0 * estimate.noise() {
        percent if percent > 100.0 * UNTRUSTED => String::new(),
        percent if percent < 9.95 => format!("±{percent:.1} %"),
        percent => format!("±{percent:.0} %"),
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
    let interval = fit.slope_interval_ns.map_or(String::new(), |interval| {
        let [low, high] = interval.map(microseconds);
        format!(" ({low} to {high})")
    });
    let start = figure(fit.at_zero_ns, Unit::Nanos);
    format!(
        "{series}: {} us per {}{interval}, from {start} (R² {explained:.3})",
        microseconds(fit.slope_ns),
        fit.per
    )
}

/// In three digits.
fn microseconds(nanos: f64) -> String {
    const DIGITS: i32 = 3;
    let value = nanos / 1e3;
    let before_the_point = value.abs().max(1e-6).log10().floor() as i32 + 1;
    let behind = usize::try_from(DIGITS - before_the_point).unwrap_or_default();
    format!("{value:.behind$}")
}

/// The machine in words.
pub(super) fn words(machine: &Machine) -> String {
    let kind = |is_virtual| match is_virtual {
        true => "a virtual machine".to_owned(),
        false => "no virtual machine".to_owned(),
    };
    let parts = [
        machine.processor.clone(),
        Some(units::counted(machine.cpus, "CPU", "CPUs")),
        machine.memory_bytes.map(units::bytes),
        machine.is_virtual.map(kind),
        Some(format!("Linux {}", machine.kernel)),
        machine.libc.clone(),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// What is missing of a run that was ended; `None` when nothing is.
pub(super) fn interruption(report: &Report) -> Option<String> {
    let missing = report.not_run.len() as u64;
    match (report.interrupted, missing) {
        (false, 0) => None,
        (_, 0) => Some("interrupted: the last experiment has fewer rounds than it should".to_owned()),
        _ => {
            let count = units::counted(missing, "experiment was", "experiments were");
            Some(format!("interrupted: {count} not run: {}", report.not_run.join(", ")))
        }
    }
}

/// What a reader must know of the run as a whole.
pub(super) fn caveats(report: &Report) -> Vec<String> {
    let quick = report
        .quick
        .then(|| "measured quickly: small sizes, wide intervals".to_owned());
    quick.into_iter().chain(interruption(report)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn within(half: f64) -> Estimate {
        Estimate {
            median: 2000.0,
            low: 2000.0 - half,
            high: 2000.0 + half,
            rounds: 6,
        }
    }

    #[test]
    fn wide_intervals_are_marked_and_what_says_nothing_is_not_shown() {
        let [steady, wide, useless] = [200.0, 201.0, 2001.0].map(within);
        let said = [&steady, &wide, &useless].map(|one| (estimated(one, Unit::Nanos), noise(one)));
        let expected = [("2.00 us", "±10 %"), ("~2.00 us", "±10 %"), ("-", "")];
        assert_eq!(
            said,
            expected.map(|(figure, noise)| (figure.to_owned(), noise.to_owned()))
        );
        let never_seen = Estimate {
            median: 0.0,
            low: 0.0,
            high: 9.0,
            rounds: 6,
        };
        assert_eq!(
            estimated(&never_seen, Unit::Nanos),
            "-",
            "mostly nothing, and sometimes something"
        );
        assert_eq!(legend([&steady]), [""; 0]);
        let legend = legend([&steady, &wide, &useless, &never_seen]);
        assert_eq!(legend.len(), 2);
        assert!(legend[0].starts_with("~ ") && legend[1].starts_with("- 2 figures are not shown"));
    }
}
