//! Waits in the run queue on the critical path, because the CPUs are oversubscribed.

use crate::explain::advice::context::RuleContext;
use crate::explain::advice::finding::Finding;
use crate::explain::advice::phrases::time;
use crate::model::phases::Phase;
use crate::model::timeline::run_queue_span;
use crate::predict::whatif::changes::Change;
use spawnscope_data::event::Nanos;
use spawnscope_data::units;

/// More CPUs are suggested only if they save at least this share of the wall, since they are
/// expensive.
const MIN_SHARE: f64 = 0.1;
/// CPUs count as oversubscribed if there are at least this many running or runnable threads per
/// CPU. A pipeline of three threads that take turns on two CPUs stays below it.
const MIN_THREADS_PER_CPU: f64 = 1.5;

pub(super) fn find(context: &RuleContext<'_, '_>) -> Vec<Finding> {
    let charges = &context.path.launches;
    let waited = charges.iter().map(|charges| charges.get(Phase::Queue).0 + charges.run_queue().0);
    let launches: Vec<u32> =
        (0..).zip(waited.clone()).filter(|(_, waited)| *waited > 0).map(|(index, _)| index).collect();
    let (waited, threads) = (Nanos(waited.sum()), average_threads(context));
    let Some(more) = needed_cpus(context, waited, threads) else { return Vec::new() };
    let (cpus, of_machine) = (context.recording.info.usable_cpus(), context.recording.info.cpus);
    // The report counts the queue of new processes as launch tax.
    let queued = Nanos(charges.iter().map(|charges| charges.get(Phase::Queue).0).sum());
    let values = [
        ("more", &more.to_string()[..]),
        ("cpus", &cpus.to_string()),
        ("machine", &of_machine.to_string()),
        ("are", if cpus == 1 { "CPU is" } else { "CPUs are" }),
        ("processes", &units::counted(launches.len() as u64, "process", "processes")),
        ("waited", &time(waited)),
        ("share", &units::percent(waited, context.wall())),
        ("queued", &if queued > Nanos(0) { time(queued) } else { String::new() }),
        ("threads", &format!("{threads:.1}")),
    ];
    let cases = [if cpus < of_machine { "limited" } else { "" }];
    let finding = Finding::of(context, "run-queue", launches, &cases, &values)
        .predicted_by(Change::Cpus(more), format!("--cpus={more}"));
    vec![finding]
}

/// Returns how many CPUs would save much. `None` if more CPUs would not.
fn needed_cpus(context: &RuleContext<'_, '_>, waited: Nanos, threads: f64) -> Option<u32> {
    let (cpus, of_machine) = (context.recording.info.usable_cpus(), context.recording.info.cpus);
    let least = context.share_of_wall(MIN_SHARE).max(Nanos(context.min_saving().0 + 1));
    let waits = context.whatif.replay.programs.cpu_waits;
    // What other programs take is not for more CPUs to give: the report says that they held them.
    let are_others = cpus >= of_machine && waits.held_by_others.0 > waits.all.0 / 2;
    if waited < least || threads < MIN_THREADS_PER_CPU * f64::from(cpus) || are_others {
        return None;
    }
    // A command that may not use all CPUs gets at most those of the machine.
    let twice = cpus.saturating_mul(2);
    let more = if cpus < of_machine { twice.min(of_machine) } else { twice };
    // Every wake-up has some latency, so only time that more CPUs would save counts. This replay
    // takes much longer than the checks above.
    let replay = context.whatif.replay;
    (replay.unchanged.since(replay.with_cpus(more)) >= context.share_of_wall(MIN_SHARE)).then_some(more)
}

/// Returns the average number of running and runnable threads.
fn average_threads(context: &RuleContext<'_, '_>) -> f64 {
    let timelines = context.timelines();
    let threads = 0..timelines.threads.len() as u32;
    let slices = threads.flat_map(|thread| timelines.slices(thread).iter());
    let active = slices.map(|slice| {
        let waited = run_queue_span(&slice).unwrap_or_default();
        slice.on_span.unwrap_or_default().0 + waited.0
    });
    active.sum::<u64>() as f64 / context.wall().0.max(1) as f64
}
