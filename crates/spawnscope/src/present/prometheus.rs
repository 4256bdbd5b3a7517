//! Metrics in Prometheus' text format. Any user of the machine can choose the name of a command, and one invalid line makes node_exporter
//! reject the whole file, so names are escaped twice: for people (`text::escape`) and for the format.

use std::io::{self, Write};

use super::live_metrics::{MetricType, Snapshot, Value, families};
use crate::analyze::live::Histogram;
use crate::event::Nanos;

/// Writes all metrics.
///
/// # Errors
/// When `out` cannot be written.
pub fn write(out: &mut dyn Write, snapshot: &Snapshot<'_>) -> io::Result<()> {
    for family in families(snapshot) {
        let kind = match family.kind {
            MetricType::Counter => "counter",
            MetricType::Gauge => "gauge",
            MetricType::Histogram => "histogram",
        };
        let name = &family.name();
        writeln!(out, "# HELP {name} {}\n# TYPE {name} {kind}", family.help)?;
        for series in &family.series {
            let labels = series.labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escape_label_value(value)));
            let labels = labels.collect::<Vec<_>>().join(",");
            match series.value {
                Value::Count(count) if labels.is_empty() => writeln!(out, "{name} {count}")?,
                Value::Count(count) => writeln!(out, "{name}{{{labels}}} {count}")?,
                Value::Times(histogram) => write_histogram(out, name, &labels, histogram)?,
            }
        }
    }
    Ok(())
}

fn write_histogram(out: &mut dyn Write, name: &str, labels: &str, histogram: &Histogram) -> io::Result<()> {
    for (end, count) in histogram.cumulative() {
        writeln!(out, "{name}_bucket{{{labels},le=\"{}\"}} {count}", seconds(end))?;
    }
    let count = histogram.count();
    writeln!(out, "{name}_bucket{{{labels},le=\"+Inf\"}} {count}")?;
    writeln!(out, "{name}_sum{{{labels}}} {}", seconds(histogram.sum))?;
    writeln!(out, "{name}_count{{{labels}}} {count}")
}

/// Returns the time in seconds with all its digits, which a float would round.
fn seconds(time: Nanos) -> String {
    let digits = format!("{}.{:09}", time.0 / 1_000_000_000, time.0 % 1_000_000_000);
    digits.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Escapes a label's value as the format requires. `text::escape` has already replaced newlines; escaping them is a precaution.
fn escape_label_value(value: &str) -> String {
    let mut escaped = String::with_capacity(value.len());
    for character in value.chars() {
        match character {
            '\\' => escaped.push_str("\\\\"),
            '"' => escaped.push_str("\\\""),
            '\n' => escaped.push_str("\\n"),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::present::text;

    #[test]
    fn a_hostile_name_stays_inside_its_quotes() {
        let hostile = b"a\"} 1\nevil{x=\"\\\x1b[2J\xff\r";
        let value = escape_label_value(&text::escape(hostile));
        assert!(!value.contains(['\n', '\r', '\x1b']), "{value}");
        let unescaped = value.replace("\\\\", "").replace("\\\"", "");
        assert!(!unescaped.contains(['"', '\\']), "{value}");
    }

    #[test]
    fn seconds_keep_all_digits() {
        for (time, text) in [
            (0, "0"),
            (100_000, "0.0001"),
            (1_000_000_000, "1"),
            (10_000_000_000, "10"),
            (1_234_567_891, "1.234567891"),
        ] {
            assert_eq!(seconds(Nanos(time)), text);
        }
    }
}
