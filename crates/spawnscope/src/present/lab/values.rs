//! Values of the lab as people read them.

use crate::event::Nanos;
use crate::lab::harness::Estimate;
use crate::lab::machine::Machine;
use crate::lab::outcome::{Column, Fit, Outcome, Report, Row, Unit, Value};
use crate::units;

/// A median whose interval is wider is marked.
const NOISY: f64 = 0.1;
/// One whose interval is wider is not shown.
const UNTRUSTED: f64 = 1.0;
/// What stands for it.
const WITHHELD: &str = "-";
/// And for what was not measured of a case.
const UNKNOWN: &str = "-";

/// A row's value in a column; `-` when unknown or not to be trusted, and nothing where nobody published any.
pub(super) fn shown(row: &Row, column: &Column) -> String {
    let value = row.get(&column.name);
    match (value, value.number()) {
        (Value::Text(text), _) => text.clone(),
        (Value::Estimate(estimate), _) => estimated(estimate, column.unit),
        (_, Some(number)) => figure(number, column.unit),
        _ if column.is_published => String::new(),
        _ => UNKNOWN.to_owned(),
    }
}

/// The columns of a table: without those that have no value in any row, which a note tells of.
pub(super) fn columns(outcome: &Outcome) -> Vec<&Column> {
    let has_value = |column: &&Column| {
        let mut values = outcome.rows.iter().map(|row| row.get(&column.name));
        column.is_key || values.any(|value| *value != Value::Unknown)
    };
    outcome.columns.iter().filter(has_value).collect()
}

/// What the marks mean in a table of these columns.
pub(super) fn legend_of(outcome: &Outcome, columns: &[&Column]) -> Vec<String> {
    let values = |column: &&Column| {
        let name = column.name.clone();
        outcome.rows.iter().map(move |row| row.get(&name))
    };
    let measured = columns.iter().filter(|column| !column.is_key && !column.is_published);
    let unknown = measured.flat_map(values).filter(|value| **value == Value::Unknown);
    let unknown = unknown.count() as u64;
    let mut told = legend(columns.iter().flat_map(values).filter_map(Value::estimate));
    if unknown > 0 {
        let figures = units::counted(unknown, "figure is unknown", "figures are unknown");
        told.push(format!("{UNKNOWN} {figures}, or not of such a case"));
    }
    told
}

/// A median in its unit: with a mark where its interval is wide, and `-` where it is too wide.
pub(super) fn estimated(estimate: &Estimate, unit: Unit) -> String {
    let mark = match estimate.noise() {
        noise if noise > UNTRUSTED => return WITHHELD.to_owned(),
        noise if noise > NOISY => "~",
        _ => "",
    };
    format!("{mark}{}", figure(estimate.median, unit))
}

/// Whether it says anything: tables and plots withhold the same.
pub(super) fn is_shown(estimate: &Estimate) -> bool {
    estimate.noise() <= UNTRUSTED
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
        format!("{WITHHELD} {figures} not shown, with an interval wider than ±100 %; --json has all")
    });
    marked.into_iter().chain(withheld).collect()
}

/// A number in its unit.
pub(super) fn figure(number: f64, unit: Unit) -> String {
    match unit {
        // What is reckoned, such as a line's beginning, may lie below nothing.
        Unit::Nanos if number <= -0.5 => format!("-{}", figure(-number, unit)),
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

/// A fit as a sentence: the line, or what a unit costs at either end where there is none.
pub(super) fn sentence(fit: &Fit) -> String {
    let series = &fit.series;
    let explained = fit.r_squared.unwrap_or_default();
    let linearity = &fit.linearity;
    if !linearity.holds {
        let what = match linearity.bends {
            true => "it bends".to_owned(),
            false => format!("no straight line (R² {explained:.2})"),
        };
        let ends = ends(fit);
        return match ends.is_empty() {
            true => format!("{series}: {what}"),
            false => format!("{series}: {ends}: {what}"),
        };
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

/// What a unit costs near the first point and at the last.
fn ends(fit: &Fit) -> String {
    let many = |x: f64| units::count(x.round() as u64);
    let at = |x: f64| match fit.per == "MB" {
        true => format!("{} MB", many(x)),
        false => many(x),
    };
    let per = format!(" per {}", fit.per);
    let told = fit.linearity.each_ns.iter().enumerate().map(|(number, (x, each))| {
        let per = if number == 0 { per.as_str() } else { "" };
        format!("{} us{per} with {}", microseconds(*each), at(*x))
    });
    told.collect::<Vec<_>>().join(", ")
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
    quick
        .into_iter()
        .chain(busy(report))
        .chain(interruption(report))
        .collect()
}

/// That processes had to wait for a CPU.
pub(super) fn busy(report: &Report) -> Option<String> {
    report.machine.run_conditions.busy(report.machine.cpus)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::linearity::Linearity;
    use crate::lab::outcome::{key, measure};

    fn within(half: f64) -> Estimate {
        Estimate {
            median: 2000.0,
            low: 2000.0 - half,
            high: 2000.0 + half,
            rounds: 6,
        }
    }

    fn fit(at_zero_ns: f64, r_squared: f64, linearity: Linearity) -> Fit {
        Fit {
            series: "a folder each".to_owned(),
            at_zero_ns,
            slope_ns: 266_000.0,
            slope_interval_ns: Some([227_000.0, 289_000.0]),
            per: "library".to_owned(),
            r_squared: Some(r_squared),
            linearity,
        }
    }

    #[test]
    fn a_line_that_holds_is_told_with_the_sign_of_its_beginning() {
        let holding = || Linearity {
            holds: true,
            ..Linearity::default()
        };
        let line = "a folder each: 266 us per library (227 to 289), from";
        assert_eq!(
            sentence(&fit(1e6, 0.99, holding())),
            format!("{line} 1.00 ms (R² 0.990)")
        );
        assert_eq!(
            sentence(&fit(-866_471.8, 0.99, holding())),
            format!("{line} -866 us (R² 0.990)")
        );
        assert_eq!(figure(-0.4, Unit::Nanos), "0 ns");
    }

    #[test]
    fn where_there_is_no_line_the_cost_at_its_ends_is_told() {
        let bent = Linearity {
            bends: true,
            each_ns: vec![(10.0, 100_333.0), (300.0, 476_112.0)],
            ..Linearity::default()
        };
        assert_eq!(
            sentence(&fit(0.0, 0.99, bent)),
            "a folder each: 100 us per library with 10, 476 us with 300: it bends"
        );
        let mut noisy = fit(0.0, 0.717, Linearity::default());
        assert_eq!(sentence(&noisy), "a folder each: no straight line (R² 0.72)");
        noisy.per = "MB".to_owned();
        noisy.linearity.each_ns = vec![(4000.0, 45_892.0)];
        assert_eq!(
            sentence(&noisy),
            "a folder each: 45.9 us per MB with 4,000 MB: no straight line (R² 0.72)"
        );
    }

    #[test]
    fn a_column_without_values_is_left_out_and_what_nobody_published_is_blank() {
        let columns_of = vec![
            key("case", "case", Unit::Text),
            measure("wall_ns", "wall", Unit::Nanos),
            measure("user_ns", "user", Unit::Nanos),
            Column {
                is_published: true,
                ..measure("published_ratio", "published", Unit::Ratio)
            },
        ];
        let mut outcome = Outcome::new("", columns_of);
        let row = |wall: Value, published: Value| {
            let values = [
                ("wall_ns", wall),
                ("user_ns", Value::Unknown),
                ("published_ratio", published),
            ];
            Row(values.map(|(name, value)| (name.to_owned(), value)).to_vec())
        };
        outcome.rows = vec![
            row(Value::Estimate(within(1.0)), Value::Number(1.27)),
            row(Value::Unknown, Value::Unknown),
        ];
        let told = columns(&outcome);
        let names: Vec<&str> = told.iter().map(|column| column.name.as_str()).collect();
        assert_eq!(names, ["case", "wall_ns", "published_ratio"]);
        let cells = outcome
            .rows
            .iter()
            .map(|row| [told[1], told[2]].map(|column| shown(row, column)));
        assert_eq!(
            cells.collect::<Vec<_>>(),
            [
                ["2.00 us".to_owned(), "1.27x".to_owned()],
                ["-".to_owned(), String::new()]
            ]
        );
        assert_eq!(
            legend_of(&outcome, &told),
            ["- 1 figure is unknown, or not of such a case"]
        );
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
