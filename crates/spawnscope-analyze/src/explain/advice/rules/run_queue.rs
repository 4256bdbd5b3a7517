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
    let launches = (0..).zip(waited.clone()).filter(|(_, waited)| *waited > 0).map(|(index, _)| index).collect();
    let waited = Nanos(waited.sum());
    let least = context.share_of_wall(MIN_SHARE).max(Nanos(context.min_saving().0 + 1));
    let info = &context.recording.info;
    let (cpus, of_machine) = (info.usable_cpus(), info.cpus);
    let threads = average_threads(context);
    if waited < least || threads < MIN_THREADS_PER_CPU * f64::from(cpus) {
        return Vec::new();
    }
    // What other programs take is not for more CPUs to give: the report says that they held them.
    let waits = context.whatif.replay.programs.cpu_waits;
    if cpus >= of_machine && waits.held_by_others.0 > waits.all.0 / 2 {
        return Vec::new();
    }
    // A command that may not use all CPUs gets at most those of the machine.
    let twice = cpus.saturating_mul(2);
    let more = if cpus < of_machine { twice.min(of_machine) } else { twice };
    // Every wake-up has some latency, so only time that more CPUs would save counts. This replay
    // takes much longer than the checks above.
    let replay = context.whatif.replay;
    if replay.unchanged.since(replay.with_cpus(more)) < context.share_of_wall(MIN_SHARE) {
        return Vec::new();
    }
    let title = match cpus < of_machine {
        true => format!("the command may use only {cpus} of {of_machine} CPUs, and needs more"),
        false => format!("{} oversubscribed", units::counted(u64::from(cpus), "CPU is", "CPUs are")),
    };
    let values = [("more", &more.to_string()[..]), ("cpus", &cpus.to_string())];
    vec![
        finding(context, title, launches, waited, threads)
            .recipe("run-queue", &[if cpus < of_machine { "limited" } else { "" }], &values)
            .predicted_by(Change::Cpus(more), format!("--cpus={more}")),
    ]
}

fn finding(context: &RuleContext<'_, '_>, title: String, launches: Vec<u32>, waited: Nanos, threads: f64) -> Finding {
    // The report counts the queue of new processes as launch tax.
    let queued = Nanos(context.path.launches.iter().map(|charges| charges.get(Phase::Queue).0).sum());
    let of_new = (queued > Nanos(0))
        .then(|| format!("; {} of it before new processes first ran, which counts as start-up", time(queued)));
    let evidence = format!(
        "{} on the critical path waited for a CPU, {} in all: {} of the wall time{}",
        units::counted(launches.len() as u64, "process", "processes"),
        time(waited),
        units::percent(waited, context.wall()),
        of_new.unwrap_or_default(),
    );
    Finding::modelled("run-queue", title, launches)
        .fixed_elsewhere()
        .evidence(evidence)
        .evidence(format!("on average {threads:.1} threads were running or runnable"))
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
