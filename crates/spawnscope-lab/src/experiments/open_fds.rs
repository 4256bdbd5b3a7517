//! Launch cost by the number of the parent's open files, whose descriptors a fork copies. With
//! `close_others`, the child of vspawn closes them.

use super::{columns, launches};
use crate::LabError;
use crate::batches::Case;
use crate::context::ExperimentContext;
use crate::measurements::{Measurements, Value};
use crate::outcome::{Outcome, Scale, Unit, key};
use crate::worker::Worker;
use crate::worker::protocol::{Mechanism, Setting};

const COUNTS: [u64; 5] = [0, 100, 1000, 5000, 15_000];
/// The parents' limit on open files, if their hard limit allows it.
const FILE_LIMIT: u64 = 20_000;
const QUICK_COUNTS: [u64; 2] = [0, 200];
const MECHANISMS: [Mechanism; 5] =
    [Mechanism::ForkExec, Mechanism::VforkExec, Mechanism::PosixSpawn, Mechanism::Vspawn, Mechanism::VspawnCloseOthers];

pub fn run(context: &ExperimentContext<'_>) -> Result<Outcome, LabError> {
    let keys = [key("mechanism", "mechanism", Unit::Text), key("open_files", "open files", Unit::Count)];
    let mut outcome = Outcome::new("Launches by the parent's number of open files", columns(keys));
    outcome.draw("open_files", "wall_ns", &["mechanism"], Scale::Logarithmic);
    let counts: &[u64] = context.pick(&COUNTS, &QUICK_COUNTS);
    let (cases, failed) = cases(context, counts);
    let mut measured = context.interleave(cases);
    measured.extend(failed);
    outcome.add(&measured);
    outcome.fit(1.0, "open file");
    outcome.note("the files are close-on-exec");
    Ok(outcome)
}

/// Returns a case for every mechanism and number of open files, and the cases whose files could not
/// be opened.
fn cases<'a>(context: &ExperimentContext<'_>, counts: &[u64]) -> (Vec<Case<'a>>, Vec<Measurements>) {
    let (mut cases, mut failed) = (Vec::new(), Vec::new());
    for &open_files in counts {
        let setting = Setting { open_files, files_limit: Some(FILE_LIMIT), ..Setting::default() };
        match Worker::start(&setting) {
            Ok(worker) => cases.extend(MECHANISMS.map(|mechanism| {
                let keys = [Value::from(mechanism.name()), Value::from(open_files)];
                launches(keys, &worker, mechanism, &context.tiny())
            })),
            Err(error) => {
                let keys = vec![Value::from("every mechanism"), Value::from(open_files)];
                failed.push(Measurements::failed(keys, error));
            }
        }
    }
    (cases, failed)
}
