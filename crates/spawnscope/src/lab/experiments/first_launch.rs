//! Story 4: the first launch of a file against the second, alone and several at once. Where something looks at every new
//! executable, firsts take longer; where it does so one by one, they queue. What looks again each time is told by a program
//! in memory, which nobody watches.

use std::path::{Path, PathBuf};

use crate::lab::LabError;
use crate::lab::copies::{InMemory, forget, fresh};
use crate::lab::ground::Ground;
use crate::lab::harness::{Case, Measured};
use crate::lab::outcome::{Outcome, Unit, Value, key, measure};
use crate::lab::shell::find;
use crate::lab::worker::Worker;
use crate::lab::worker::protocol::{Request, Setting};
use crate::statistics::median;

const AT_ONCE: [usize; 5] = [1, 2, 4, 8, 16];
const QUICK_AT_ONCE: [usize; 2] = [1, 4];
/// A first launch that takes so many times a second one is looked at by something.
const SLOW: f64 = 2.0;
/// Positions among the measurements.
const FIRST: usize = 0;
const FIRST_LAST: usize = 1;
const SECOND: usize = 2;

pub fn run(ground: &Ground<'_>) -> Result<Outcome, LabError> {
    let columns = vec![
        key("program", "program", Unit::Text),
        key("at_once", "at once", Unit::Count),
        measure("first_ns", "first", Unit::Nanos),
        measure("first_last_ns", "last of them", Unit::Nanos),
        measure("second_ns", "second", Unit::Nanos),
        measure("second_last_ns", "last of them", Unit::Nanos),
    ];
    let mut outcome = Outcome::new("The first launch of fresh files against the second", columns);
    let mut programs = vec![("tiny", ground.tiny_path(), ground.tiny().status)];
    programs.extend(
        find("true")
            .and_then(|path| path.canonicalize().ok())
            .map(|path| ("true", path, 0)),
    );
    let counts: &[usize] = ground.pick(&AT_ONCE, &QUICK_AT_ONCE);
    let worker = Worker::start(&Setting::default())?;
    let mut cases = Vec::new();
    for (name, program, status) in &programs {
        for &count in counts {
            let keys = [Value::from(*name), Value::from(count as u64)];
            let folder = ground.folder().join(format!("fresh-{name}-{count}"));
            cases.push(case(
                keys,
                &worker,
                (program, *status),
                folder,
                (count, Cache::AsWritten),
            ));
        }
    }
    if let Some((name, program, status)) = programs.last() {
        let keys = [Value::from(format!("{name}, out of the cache")), Value::from(1)];
        let folder = ground.folder().join("cold");
        cases.push(case(keys, &worker, (program, *status), folder, (1, Cache::Cold)));
    }
    let in_memory = InMemory::of(&ground.tiny_path())?;
    let keys = [Value::from("tiny, in memory"), Value::from(1)];
    let (paths, status) = ([in_memory.path()], ground.tiny().status);
    let asked = &worker;
    cases.push(Case::new(keys, move |_| first_and_second(asked, &paths, status)));
    let measured = ground.interleave(cases);
    outcome.add(&measured);
    if let (Some(alone), Some(unwatched)) = (measured.first(), measured.last())
        && let Some(note) = scanner_of_all(alone, unwatched)
    {
        outcome.note(note);
    }
    for (number, (name, ..)) in programs.iter().enumerate() {
        let of_it = &measured[number * counts.len()..(number + 1) * counts.len()];
        if let Some(note) = scanner(name, of_it) {
            outcome.note(note);
        }
    }
    outcome.note("out of the cache: the file's content, not its metadata; root could drop that too, for the whole machine, which the lab does not do");
    Ok(outcome)
}

/// What of a fresh copy is in the page cache.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cache {
    /// All that was written.
    AsWritten,
    /// Nothing of its content.
    Cold,
}

/// A program with its exit status, in so many copies for each round.
fn case<'a>(
    keys: [Value; 2],
    worker: &'a Worker,
    (program, status): (&'a Path, i32),
    folder: PathBuf,
    (count, cache): (usize, Cache),
) -> Case<'a> {
    Case::new(keys, move |_| {
        let copies = fresh(program, &folder, count)?;
        if cache == Cache::Cold {
            copies.iter().try_for_each(|copy| forget(copy))?;
        }
        let measured = first_and_second(worker, &copies, status);
        std::fs::remove_dir_all(&folder).map_err(LabError::doing("remove copies"))?;
        measured
    })
}

/// Medians and last ends of the first launches, and of the second.
fn first_and_second(worker: &Worker, copies: &[PathBuf], status: i32) -> Result<Vec<f64>, LabError> {
    let request = Request::AllAtOnce {
        paths: copies.iter().map(|path| super::text(path)).collect(),
        status,
    };
    let mut values = Vec::new();
    for _ in 0..2 {
        let walls = worker.ask(&request)?;
        values.extend(median(walls.iter().copied()));
        values.extend(walls.iter().copied().reduce(f64::max));
    }
    Ok(values)
}

/// What they say about somebody who looks at each launch. `alone` and `unwatched` are of the same program.
fn scanner_of_all(alone: &Measured, unwatched: &Measured) -> Option<String> {
    let ratio = alone.ratio(unwatched, SECOND)?;
    (ratio.median >= SLOW && ratio.low > 1.0).then(|| {
        format!(
            "tiny: a second launch, too, takes {:.1} times one from memory: something looks at every executable each time, or the \
             temporary folder's file system is slow",
            ratio.median
        )
    })
}

/// What the figures say about somebody who looks at new executables.
fn scanner(name: &str, measured: &[Measured]) -> Option<String> {
    let (alone, most) = (measured.first()?, measured.last()?);
    let ratio = alone.ratio_within(FIRST, SECOND)?;
    if ratio.median < SLOW || ratio.low <= 1.0 {
        return None;
    }
    let (first, second) = (alone.estimate(FIRST)?, alone.estimate(SECOND)?);
    let mut note = format!(
        "{name}: a first launch takes {:.1} times a second one: something looks at new executables",
        ratio.median
    );
    let extra = first.median - second.median;
    let last = most.estimate(FIRST_LAST)?.median - second.median;
    let at_once = most.keys.last()?.number()?;
    if last > extra * at_once / 2.0 {
        note.push_str(&format!(
            ", one after the other: of {at_once} at once the last waits {:.1} times as long",
            last / extra
        ));
    }
    Some(note)
}
