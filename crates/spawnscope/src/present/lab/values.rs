//! Formats values of the lab.

use crate::event::Nanos;
use crate::lab::machine::Machine;
use crate::lab::measurements::{Estimate, Value};
use crate::lab::outcome::{BenchReport, Column, Fit, Outcome, Row, Unit};
use crate::units;

/// Noise above which a median is marked: half the confidence interval, as a share of the median.
const MARKED_NOISE: f64 = 0.1;
const WITHHELD_NOISE: f64 = 1.0;
/// The mark before a median whose noise is above `MARKED_NOISE`.
const WIDE_MARK: &str = "~";
const WITHHELD: &str = "-";
const UNKNOWN: &str = "-";

/// Formats a row's value in a column: `-` if it is unknown or withheld.
pub(super) fn cell_text(row: &Row, column: &Column) -> String {
    let value = row.get(&column.name);
    match (value, value.number()) {
        (Value::Text(text), _) => text.clone(),
        (Value::Estimate(estimate), _) => format_estimate(estimate, column.unit),
        (_, Some(number)) => figure(number, column.unit),
        _ => UNKNOWN.to_owned(),
    }
}

/// Returns the columns of a table. Columns without a value in any row are omitted; a note mentions
/// them.
pub(super) fn columns(outcome: &Outcome) -> Vec<&Column> {
    let shown = outcome
        .columns
        .iter()
        .filter(|column| column.is_key || outcome.rows.iter().any(|row| *row.get(&column.name) != Value::Unknown));
    shown.collect()
}

pub(super) fn title_and_unit<'o>(outcome: &'o Outcome, name: &str) -> (&'o str, Unit) {
    let column = outcome.columns.iter().find(|column| column.name == name);
    column.map_or(("", Unit::Count), |column| (column.title.as_str(), column.unit))
}

/// Explains the marks in a table of these columns.
pub(super) fn table_legend(outcome: &Outcome, columns: &[&Column]) -> Vec<String> {
    let (mut estimates, mut unknown) = (Vec::new(), 0);
    for column in columns {
        let values = outcome.rows.iter().map(|row| row.get(&column.name));
        estimates.extend(values.clone().filter_map(Value::estimate));
        if !column.is_key {
            unknown += values.filter(|value| **value == Value::Unknown).count() as u64;
        }
    }
    let mut sentences = legend(estimates);
    if unknown > 0 {
        let figures = units::counted(unknown, "figure is unknown", "figures are unknown");
        sentences.push(format!("{UNKNOWN} {figures} or not applicable"));
    }
    sentences
}

/// Formats a median in its unit: with a mark if its interval is wide, `-` if it is too wide.
pub(super) fn format_estimate(estimate: &Estimate, unit: Unit) -> String {
    let mark = if estimate.noise() > MARKED_NOISE { WIDE_MARK } else { "" };
    match is_shown(estimate) {
        true => format!("{mark}{}", figure(estimate.median, unit)),
        false => WITHHELD.to_owned(),
    }
}

/// Whether the value is reliable enough to show. Tables and plots omit the same values.
pub(super) fn is_shown(estimate: &Estimate) -> bool {
    estimate.noise() <= WITHHELD_NOISE
}

/// Explains the marks of these figures, if there are any.
pub(super) fn legend<'e>(estimates: impl IntoIterator<Item = &'e Estimate>) -> Vec<String> {
    let (mut is_marked, mut withheld) = (false, 0);
    for noise in estimates.into_iter().map(Estimate::noise) {
        is_marked |= noise > MARKED_NOISE && noise <= WITHHELD_NOISE;
        withheld += u64::from(noise > WITHHELD_NOISE);
    }
    let marked = is_marked.then(|| format!("{WIDE_MARK} the 95 % confidence interval is wider than ±10 %"));
    let withheld = (withheld > 0).then(|| {
        let figures = units::counted(withheld, "figure is", "figures are");
        format!("{WITHHELD} {figures} not shown: interval wider than ±100 %; --json has all")
    });
    marked.into_iter().chain(withheld).collect()
}

pub(super) fn figure(number: f64, unit: Unit) -> String {
    match unit {
        // Computed values, such as a line's intercept, may be negative.
        Unit::Nanos if number <= -0.5 => format!("-{}", figure(-number, unit)),
        Unit::Nanos => units::time(Nanos(number.max(0.0).round() as u64)),
        Unit::Bytes => units::bytes(number.max(0.0) as u64),
        Unit::Ratio => format!("{number:.2}x"),
        Unit::Count | Unit::Text => number.to_string(),
    }
}

/// Formats half the interval as a share, such as `±2 %`. Returns nothing for a withheld value.
pub(super) fn noise(estimate: &Estimate) -> String {
    match 100.0 * estimate.noise() {
        percent if percent > 100.0 * WITHHELD_NOISE => String::new(),
        percent if percent < 9.95 => format!("±{percent:.1} %"),
        percent => format!("±{percent:.0} %"),
    }
}

pub(super) fn describe_fit(fit: &Fit) -> String {
    let series = &fit.series;
    let r_squared = fit.r_squared.unwrap_or_default();
    if !fit.holds {
        return format!("{series}: not linear (R² {r_squared:.2})");
    }
    let [slope, low, high] = [fit.slope_ns, fit.slope_interval_ns[0], fit.slope_interval_ns[1]].map(microseconds);
    let start = figure(fit.at_zero_ns, Unit::Nanos);
    format!("{series}: {slope} us per {} ({low} to {high}), from {start} (R² {r_squared:.3})", fit.x_unit)
}

fn microseconds(nanos: f64) -> String {
    const DIGITS: i32 = 3;
    let value = nanos / 1e3;
    let integer_digits = value.abs().max(1e-6).log10().floor() as i32 + 1;
    let decimals = usize::try_from(DIGITS - integer_digits).unwrap_or_default();
    format!("{value:.decimals$}")
}

pub(super) fn describe_machine(machine: &Machine) -> String {
    let parts = [
        machine.processor.clone(),
        Some(units::counted(machine.cpus, "CPU", "CPUs")),
        machine.memory_bytes.map(units::bytes),
        machine
            .is_virtual
            .map(|is_virtual| if is_virtual { "a virtual machine" } else { "not a virtual machine" })
            .map(str::to_owned),
        Some(format!("Linux {}", machine.kernel)),
        machine.libc.clone(),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// Describes what is missing from an interrupted run; `None` if nothing is.
pub(super) fn interruption(report: &BenchReport) -> Option<String> {
    let missing = report.not_run.len() as u64;
    match (report.interrupted, missing) {
        (false, 0) => None,
        (_, 0) => Some("interrupted: the last experiment has fewer rounds than planned".to_owned()),
        _ => {
            let count = units::counted(missing, "experiment was", "experiments were");
            Some(format!("interrupted: {count} not run ({})", report.not_run.join(", ")))
        }
    }
}

/// Returns a sentence with the load averages, if either exceeds the number of CPUs.
pub(super) fn load_warning(machine: &Machine) -> Option<String> {
    let is_busy = |load: &f64| *load > machine.cpus as f64;
    let [before, after] = [machine.load_before, machine.load_after];
    let loads = || [before, after].map(|load| load.map_or("unknown".to_owned(), |load| format!("{load:.1}")));
    before.iter().chain(&after).any(is_busy).then(|| {
        let [before, after] = loads();
        let cpus = units::counted(machine.cpus, "CPU", "CPUs");
        match machine.load_after {
            None => format!(
                "the machine is busy: load average {before} on {cpus}; times will be longer and less certain than on an idle machine"
            ),
            Some(_) => format!("the load average was {before} before and {after} after, on {cpus}; bench itself adds to it"),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::outcome::{key, measure};

    fn estimate_with(half: f64) -> Estimate {
        Estimate { median: 2000.0, low: 2000.0 - half, high: 2000.0 + half, rounds: 6 }
    }

    #[test]
    fn a_fit_is_printed_with_the_sign_of_its_intercept() {
        let mut fit = Fit {
            series: "directory per library".to_owned(),
            at_zero_ns: -866_471.8,
            slope_ns: 266_000.0,
            slope_interval_ns: [227_000.0, 289_000.0],
            x_unit: "library".to_owned(),
            r_squared: Some(0.99),
            holds: true,
        };
        let line = "directory per library: 266 us per library (227 to 289), from -866 us (R² 0.990)";
        assert_eq!(describe_fit(&fit), line);
        (fit.holds, fit.r_squared) = (false, Some(0.717));
        assert_eq!(describe_fit(&fit), "directory per library: not linear (R² 0.72)");
        assert_eq!(figure(-0.4, Unit::Nanos), "0 ns");
    }

    #[test]
    fn a_column_without_values_is_omitted() {
        let columns_of = vec![
            key("case", "case", Unit::Text),
            measure("wall_ns", "wall", Unit::Nanos),
            measure("user_ns", "user", Unit::Nanos),
        ];
        let mut outcome = Outcome::new("", columns_of);
        for wall in [Value::Estimate(estimate_with(1.0)), Value::Unknown] {
            let values = [("wall_ns", wall), ("user_ns", Value::Unknown)];
            outcome.rows.push(Row(values.map(|(name, value)| (name.to_owned(), value)).to_vec()));
        }
        let kept = columns(&outcome);
        let names: Vec<&str> = kept.iter().map(|column| column.name.as_str()).collect();
        assert_eq!(names, ["case", "wall_ns"]);
        let cells: Vec<String> = outcome.rows.iter().map(|row| cell_text(row, kept[1])).collect();
        assert_eq!(cells, ["2.00 us", "-"]);
        assert_eq!(table_legend(&outcome, &kept), ["- 1 figure is unknown or not applicable"]);
    }

    #[test]
    fn medians_with_wide_intervals_are_marked_and_with_extremely_wide_ones_omitted() {
        let [steady, wide, useless] = [200.0, 201.0, 2001.0].map(estimate_with);
        let said = [&steady, &wide, &useless].map(|one| (format_estimate(one, Unit::Nanos), noise(one)));
        let expected = [("2.00 us", "±10 %"), ("~2.00 us", "±10 %"), ("-", "")];
        assert_eq!(said, expected.map(|(figure, noise)| (figure.to_owned(), noise.to_owned())));
        let mostly_zero = Estimate { median: 0.0, low: 0.0, high: 9.0, rounds: 6 };
        assert_eq!(format_estimate(&mostly_zero, Unit::Nanos), "-", "the median is zero, but some rounds took longer");
        assert_eq!(legend([&steady]), [""; 0]);
        let legend = legend([&steady, &wide, &useless, &mostly_zero]);
        assert_eq!(legend.len(), 2);
        assert!(legend[0].starts_with("~ ") && legend[1].starts_with("- 2 figures are not shown"));
    }
}
