//! Stories 2 and 3: what a launch costs against the memory of the parent, by mechanism and kind of page, and of bash.

use std::path::Path;
use std::rc::Rc;

use super::{launches, wall_and_call};
use crate::lab::LabError;
use crate::lab::ground::Ground;
use crate::lab::harness::{Case, Measured};
use crate::lab::machine::available_memory;
use crate::lab::outcome::{Outcome, Scale, Unit, Value, key};
use crate::lab::shell::{ShellParent, find};
use crate::lab::worker::protocol::{Pages, Setting};
use crate::lab::worker::{Mechanism, Worker};

const MB: u64 = 1_000_000;
const SIZES_MB: [u64; 9] = [0, 1, 10, 100, 250, 500, 1000, 2000, 4000];
/// The smallest that shows that fork depends on it.
const QUICK_SIZES_MB: [u64; 3] = [0, 16, 64];
/// Sizes at which other kinds of memory are tried too; transparent huge pages are of 2 MiB, so that less memory has none.
const HUGE_MB: [u64; 4] = [16, 100, 1000, 4000];
const FILE_MB: [u64; 3] = [16, 100, 1000];
const MOST_MB_OF_BASH: u64 = 1000;
/// Of the memory that is available, so much is taken at most: all parents live at the same time.
const SHARE_OF_MEMORY: f64 = 0.7;

const BY_MECHANISM: [Mechanism; 10] = [
    Mechanism::ForkExit,
    Mechanism::ForkExec,
    Mechanism::VforkExec,
    Mechanism::Clone,
    Mechanism::Clone3,
    Mechanism::CloneDetached,
    Mechanism::PosixSpawn,
    Mechanism::System,
    Mechanism::Popen,
    Mechanism::Vspawn,
];
const BY_PAGES: [Mechanism; 3] = [Mechanism::ForkExit, Mechanism::ForkExec, Mechanism::Vspawn];

/// Story 2: seconds of 1000 runs of /bin/true from bash, by MB in it.
const STORY: [(u64, f64); 7] = [
    (0, 0.57),
    (1, 0.65),
    (10, 1.1),
    (100, 3.2),
    (250, 12.8),
    (500, 23.8),
    (1000, 45.2),
];

pub fn run(ground: &Ground<'_>) -> Result<Outcome, LabError> {
    let keys = [
        key("mechanism", "mechanism", Unit::Text),
        key("memory", "memory", Unit::Text),
        key("parent_bytes", "parent", Unit::Bytes),
    ];
    let columns = keys.into_iter().chain(wall_and_call()).collect();
    let mut outcome = Outcome::new("Launches against the memory of the parent", columns);
    outcome.draw(
        "parent_bytes",
        "wall_ns",
        &["mechanism", "memory"],
        [Scale::Logarithmic, Scale::Logarithmic],
    );
    outcome.published(
        "bash, published (story 2)",
        STORY.iter().map(|(mb, seconds)| ((mb * MB) as f64, seconds * 1e6)),
    );
    let sizes = sizes(ground, &mut outcome);
    let mut measured = Vec::new();
    let mut cases = Vec::new();
    for size_mb in &sizes {
        add_parents(ground, *size_mb, &mut cases, &mut measured);
    }
    match (find("bash"), find("true")) {
        (Some(bash), Some(program)) => {
            for size_mb in sizes.iter().filter(|size_mb| **size_mb <= MOST_MB_OF_BASH) {
                add_bash(&bash, &program, *size_mb, &mut cases, &mut measured);
            }
        }
        _ => outcome.note("without bash, its own curve is left out"),
    }
    measured.splice(0..0, ground.interleave(cases));
    outcome.add(&measured);
    outcome.fit("parent_bytes", MB as f64, "MB");
    Ok(outcome)
}

/// What memory allows and was asked for.
fn sizes(ground: &Ground<'_>, outcome: &mut Outcome) -> Vec<u64> {
    let listed: &[u64] = ground.pick(&SIZES_MB, &QUICK_SIZES_MB);
    let largest = ground.most_memory / MB;
    let mut sizes: Vec<u64> = listed.iter().copied().filter(|size| *size <= largest).collect();
    if !ground.effort.quick && sizes.last().is_some_and(|last| *last < largest) {
        sizes.push(largest);
    }
    let affordable = available_memory().map_or(u64::MAX, |bytes| (SHARE_OF_MEMORY * bytes as f64) as u64);
    let taken = |sizes: &[u64]| {
        let parents = |size: &u64| {
            let wanted = [
                true,
                HUGE_MB.contains(size),
                FILE_MB.contains(size),
                *size <= MOST_MB_OF_BASH,
            ];
            wanted.into_iter().filter(|wanted| *wanted).count() as u64
        };
        sizes.iter().map(|size| size * parents(size)).sum::<u64>() * MB
    };
    while sizes.len() > 1 && taken(&sizes) > affordable {
        if let Some(size) = sizes.pop() {
            outcome.note(format!(
                "{} are left out for want of memory",
                crate::units::bytes(size * MB)
            ));
        }
    }
    sizes
}

fn add_parents(ground: &Ground<'_>, size_mb: u64, cases: &mut Vec<Case<'_>>, measured: &mut Vec<Measured>) {
    let kinds: [(&str, Pages, &[Mechanism], bool); 3] = [
        ("", Pages::Small, &BY_MECHANISM, true),
        ("huge pages", Pages::Huge, &BY_PAGES, HUGE_MB.contains(&size_mb)),
        ("a file's", Pages::File, &BY_PAGES, FILE_MB.contains(&size_mb)),
    ];
    for (kind, pages, mechanisms, _) in kinds.into_iter().filter(|(.., wanted)| *wanted) {
        if !ground.goes_on(&format!("filling {size_mb} MB"), 0.0) {
            return;
        }
        let setting = Setting {
            memory_bytes: size_mb * MB,
            pages,
            ..Setting::default()
        };
        let keys = |name: &str| vec![Value::from(name), Value::from(kind), Value::from(size_mb * MB)];
        let worker = match Worker::start(&setting) {
            Ok(worker) => Rc::new(worker),
            Err(error) => {
                measured.push(Measured::failed(keys(""), error));
                continue;
            }
        };
        for mechanism in mechanisms {
            let program = if mechanism.reads() {
                ground.tiny_speaker()
            } else {
                ground.tiny()
            };
            cases.push(launches(keys(mechanism.name()), &worker, *mechanism, &program));
        }
    }
}

/// As the story made it: a variable of so many bytes.
fn add_bash(bash: &Path, program: &Path, size_mb: u64, cases: &mut Vec<Case<'_>>, measured: &mut Vec<Measured>) {
    let keys = vec![
        Value::from("bash runs true"),
        Value::from(""),
        Value::from(size_mb * MB),
    ];
    match ShellParent::start(bash, size_mb * MB, program) {
        Ok(parent) => cases.push(Case::new(keys, move |count| Ok(vec![parent.launch(count)?]))),
        Err(error) => measured.push(Measured::failed(keys, error)),
    }
}
