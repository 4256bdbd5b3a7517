//! The most important figure of each experiment, as a sentence that is computed from its results.

mod cases;
mod forms;

use self::cases::{case, cases, ends, largest, measured, measured_at_largest, ratio, text};
pub(super) use self::forms::Headline;
use self::forms::{cost_per_unit, times, times_by};
use super::values::{figure, format_estimate, mark};
use crate::lab::compare::label;
use crate::lab::harness::Estimate;
use crate::lab::outcome::{Outcome, Unit, Value};
use crate::units;

/// Returns the sentence about an experiment, or `None` if it has no results.
pub(super) fn headline(outcome: &Outcome) -> Option<Headline> {
    let specific = match outcome.name.as_str() {
        "mechanisms" => mechanisms(outcome),
        "parent-size" => parent_size(outcome),
        "growth" => growth(outcome),
        "open-fds" => open_fds(outcome),
        "threads" => threads(outcome),
        "child-kind" => child_kind(outcome),
        "loader" => loader(outcome),
        "first-launch" => first_launch(outcome),
        "shell" => shell(outcome),
        "path-search" => path_search(outcome),
        "shims" => shims(outcome),
        "runtimes" => runtimes(outcome),
        "throughput" => throughput(outcome),
        "copy-on-write" => copy_on_write(outcome),
        _ => None,
    };
    specific.or_else(|| range(outcome))
}

fn mechanisms(outcome: &Outcome) -> Option<Headline> {
    let (slowest, slow) = largest(outcome, "wall_ns")?;
    let (_, base) = case(outcome, "wall_ns", &[("mechanism", "vfork + exec")])?;
    let before = "From a small parent, a launch takes";
    let after = format!("by {} as by vfork + exec", text(slowest, "mechanism")?);
    times(before, &after, [slow, base])
}

fn parent_size(outcome: &Outcome) -> Option<Headline> {
    let series = ["fork + exec", "vfork + exec"]
        .map(|mechanism| cases(outcome, "wall_ns", &[("mechanism", mechanism), ("memory", "")]));
    let (bytes, [fork, vfork]) = measured_at_largest("parent_bytes", series)?;
    let before = format!("A launch from a parent of {} takes", units::bytes(bytes as u64));
    times(&before, "by fork + exec as by vfork + exec", [fork, vfork])
}

fn growth(outcome: &Outcome) -> Option<Headline> {
    const FORK: &str = "fork + _exit";
    let [(_, first), (bytes, last)] = ends("parent_bytes", cases(outcome, "wall_ns", &[("mechanism", FORK)]))?;
    let fit = outcome.fits.iter().find(|fit| fit.series == FORK && fit.linearity.holds);
    if let Some((fit, [low, high])) = fit.and_then(|fit| Some((fit, fit.slope_interval_ns?))) {
        let slope = Estimate { median: fit.slope_ns, low, high, rounds: first.rounds };
        return Some(Headline {
            before: format!("Each {} that its parent grows by adds", fit.x_unit),
            figure: format!("{}{}", mark(&slope), figure(slope.median, Unit::Nanos)),
            after: format!("to a fork ({} after {})", format_estimate(last, Unit::Nanos), units::bytes(bytes as u64)),
        });
    }
    let before = format!("After its parent has grown by {}, a fork takes", units::bytes(bytes as u64));
    times(&before, "as at first", [last, first])
}

fn open_fds(outcome: &Outcome) -> Option<Headline> {
    let counts = cases(outcome, "wall_ns", &[("mechanism", "vfork + exec")]);
    let [(few, first), (many, last)] = ends("open_files", counts)?;
    let [few, many] = [few, many].map(|count| units::count(count as u64));
    let before = format!("With {many} open files, a launch by vfork + exec takes");
    times(&before, &format!("as with {few}"), [last, first])
}

fn threads(outcome: &Outcome) -> Option<Headline> {
    let series = ["fork + exec", "vfork + exec"].map(|mechanism| {
        let mut found = cases(outcome, "wall_ns", &[("mechanism", mechanism)]);
        found.retain(|(row, _)| *row.get("parent_bytes") == Value::from(0));
        found
    });
    let (count, [fork, vfork]) = measured_at_largest("threads", series)?;
    let before = format!("From a parent with {} more threads, a launch takes", units::count(count as u64));
    times(&before, "by fork + exec as by vfork + exec", [fork, vfork])
}

fn child_kind(outcome: &Outcome) -> Option<Headline> {
    let dynamic = ["C, dynamic", "true"].into_iter().find_map(|child| case(outcome, "wall_ns", &[("child", child)]));
    let (row, slow) = dynamic?;
    let (_, base) = case(outcome, "wall_ns", &[("child", "no library")])?;
    let before = match text(row, "child")? {
        "true" => "The launch of true takes",
        _ => "The launch of a dynamic C program takes",
    };
    let after = "as that of a program without libraries";
    times_by(ratio(row)?, before, after, [slow, base])
}

fn loader(outcome: &Outcome) -> Option<Headline> {
    for (before, loading) in [
        ("Each library adds", "run path, lazy"),
        ("Each empty directory in LD_LIBRARY_PATH adds", "true, LD_LIBRARY_PATH"),
    ] {
        if let Some(ends) = ends("count", cases(outcome, "wall_ns", &[("loading", loading)])) {
            return Some(cost_per_unit(before, "to the start of a program", ends));
        }
    }
    None
}

fn first_launch(outcome: &Outcome) -> Option<Headline> {
    let alone = ["true", "tiny"].into_iter().find_map(|program| {
        let found = cases(outcome, "first_ns", &[("program", program)]);
        found.into_iter().find(|(row, _)| *row.get("at_once") == Value::from(1))
    });
    let (row, first) = alone?;
    let second = measured(row, "second_ns")?;
    times("The first launch of a new file takes", "as the second", [first, second])
}

fn shell(outcome: &Outcome) -> Option<Headline> {
    let (row, slow) = case(outcome, "wall_ns", &[("shell", "sh"), ("text", "COMMAND")])?;
    let (_, base) = case(outcome, "wall_ns", &[("shell", "none")])?;
    let after = "through sh -c as without a shell";
    times_by(ratio(row)?, "A tiny command takes", after, [slow, base])
}

fn path_search(outcome: &Outcome) -> Option<Headline> {
    let ends = ends("misses", cases(outcome, "wall_ns", &[("search", "posix_spawnp"), ("folders", "empty")]))?;
    let before = "Each directory of PATH without the program adds";
    Some(cost_per_unit(before, "to a posix_spawnp", ends))
}

fn shims(outcome: &Outcome) -> Option<Headline> {
    let (row, slow) = largest(outcome, "wall_ns")?;
    let (_, base) = case(outcome, "wall_ns", &[("wrapper", "none")])?;
    let before = format!("Behind the slowest wrapper ({}), a tiny program takes", text(row, "wrapper")?);
    times_by(ratio(row)?, &before, "as without one", [slow, base])
}

fn runtimes(outcome: &Outcome) -> Option<Headline> {
    let (slowest, slow) = largest(outcome, "wall_ns")?;
    let shown = cases(outcome, "wall_ns", &[]).into_iter();
    let (fastest, fast) = shown.min_by(|(_, one), (_, other)| one.median.total_cmp(&other.median))?;
    let before = format!("To do nothing, {} takes", text(slowest, "runtime")?);
    let after = format!("as {}", text(fastest, "runtime")?);
    times(&before, &after, [slow, fast])
}

fn throughput(outcome: &Outcome) -> Option<Headline> {
    let (row, most) = largest(outcome, "launches_per_second")?;
    let threads = units::counted(row.get("threads").number()? as u64, "thread", "threads");
    let in_flight = units::count(row.get("in_flight").number()? as u64);
    Some(Headline {
        before: "This machine starts up to".to_owned(),
        figure: format!("{} processes per second", format_estimate(most, Unit::PerSecond)),
        after: format!("({}, {threads}, {in_flight} in flight)", text(row, "mechanism")?),
    })
}

fn copy_on_write(outcome: &Outcome) -> Option<Headline> {
    let (row, during) = case(outcome, "during_ns", &[("mechanism", "fork, no exec")])?;
    let before = measured(row, "before_ns")?;
    let bytes = units::bytes(row.get("parent_bytes").number()? as u64);
    let memory = text(row, "memory")?;
    let sentence = format!("While a forked child is alive, writing to {bytes} in {memory} takes");
    times(&sentence, "as before the fork", [during, before])
}

/// Returns the range of the first measurement, for an experiment that lacks the cases of its specific sentence.
fn range(outcome: &Outcome) -> Option<Headline> {
    let column = outcome.columns.iter().find(|column| !column.is_key)?;
    let mut found = cases(outcome, &column.name, &[]);
    found.sort_by(|(_, one), (_, other)| one.median.total_cmp(&other.median));
    let (first, least) = found.first()?;
    let (last, most) = found.last()?;
    let before = format!("{}:", column.title);
    let [least, most] = [least, most].map(|estimate| format_estimate(estimate, column.unit));
    let [first, last] = [first, last].map(|row| label(outcome, row));
    let (figure, after) = match found.len() {
        1 => (least, format!("({first})")),
        _ => (format!("{least} to {most}"), format!("({first}; {last})")),
    };
    Some(Headline { before, figure, after })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::outcome::Report;

    fn stored() -> Report {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../benchmarks/runs/2026-11-22-vm/lab.json");
        serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
    }

    fn sentence(outcome: &Outcome) -> String {
        let Headline { before, figure, after } = headline(outcome).unwrap();
        format!("{before} {figure} {after}")
    }

    #[test]
    fn each_experiment_of_a_stored_run_has_a_specific_sentence() {
        let report = stored();
        assert_eq!(report.experiments.len(), 14);
        for outcome in &report.experiments {
            assert_ne!(headline(outcome), range(outcome), "{}", outcome.name);
        }
        for (name, expected) in [
            (
                "parent-size",
                "A launch from a parent of 4.00 GB takes 1,398 times as long by fork + exec as by vfork + exec (146 ms against 104 us)",
            ),
            (
                "loader",
                "Each library adds 103 us to the start of a program on average (590 us with 0, 31.4 ms with 300)",
            ),
            // The ratio in the table, not the quotient of the medians.
            ("shell", "8.6 times"),
            ("first-launch", "about as long"),
        ] {
            let outcome = report.experiments.iter().find(|one| one.name == name).unwrap();
            assert!(sentence(outcome).contains(expected), "{}", sentence(outcome));
        }
    }

    #[test]
    fn an_experiment_without_the_cases_of_its_sentence_has_a_range() {
        let mut report = stored();
        let shell = report.experiments.iter_mut().find(|one| one.name == "shell").unwrap();
        shell.rows.retain(|row| text(row, "shell") != Some("none"));
        assert_eq!(sentence(shell), "wall: 913 us to 1.77 ms (dash, COMMAND; bash, COMMAND; exit $?)");
        shell.rows.clear();
        assert_eq!(headline(shell), None);
    }
}
