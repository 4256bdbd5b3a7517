//! Waits in the run queue on the critical path, because the CPUs are oversubscribed.

use crate::explain::advice::context::RuleContext;
use crate::explain::advice::finding::Finding;
use crate::explain::advice::phrases::{name, time};
use crate::model::launch::Exec;
use crate::model::phases::Phase;
use crate::predict::replay::runnable;
use crate::predict::whatif::changes::Change;
use spawnscope_data::event::Nanos;
use spawnscope_data::rows::Info;
use spawnscope_data::units;

/// More CPUs are suggested only if they save at least this share of the wall, since they are
/// expensive.
const MIN_SHARE: f64 = 0.1;
/// CPUs count as oversubscribed if there are at least this many running or runnable threads per
/// CPU. A pipeline of three threads that take turns on two CPUs stays below it.
const MIN_THREADS_PER_CPU: f64 = 1.5;

pub(super) fn find(context: &RuleContext<'_, '_>) -> Vec<Finding> {
    let waited = context.path.launches.iter().map(|charges| charges.get(Phase::Queue).0 + charges.run_queue().0);
    let launches: Vec<u32> =
        (0..).zip(waited.clone()).filter(|(_, waited)| *waited > 0).map(|(index, _)| index).collect();
    let waited = Nanos(waited.sum());
    let min_worthwhile = context.share_of_wall(MIN_SHARE);
    if waited <= context.min_saving() || waited < min_worthwhile {
        return Vec::new();
    }
    let threads = average_threads(context);
    let limit = CpuLimit::of(&context.recording.info);
    if threads < MIN_THREADS_PER_CPU * f64::from(limit.cpus) {
        return Vec::new();
    }
    // Every wake-up has some latency, so only time that more CPUs would save counts. This check
    // needs a replay, which takes much longer than the checks above, so it comes last.
    let replay = context.whatif.replay;
    if replay.unchanged.since(replay.with_cpus(limit.cpus_to_try)) < min_worthwhile {
        return Vec::new();
    }
    vec![finding(context, &limit, launches, waited, threads)]
}

/// The number of CPUs that the command could use, and a larger number to try.
struct CpuLimit {
    /// Number of CPUs that the command could use.
    cpus: u32,
    /// Number of CPUs of the machine.
    machine_cpus: u32,
    /// The number to try: twice `cpus`, but at most `machine_cpus` if the command could not use all
    /// CPUs of the machine.
    cpus_to_try: u32,
}

impl CpuLimit {
    fn of(info: &Info) -> CpuLimit {
        let (cpus, machine_cpus) = (info.usable_cpus(), info.cpus);
        let twice = cpus.saturating_mul(2);
        let cpus_to_try = if cpus < machine_cpus { twice.min(machine_cpus) } else { twice };
        CpuLimit { cpus, machine_cpus, cpus_to_try }
    }

    /// Whether the command could not use all CPUs of the machine.
    fn is_restricted(&self) -> bool {
        self.cpus < self.machine_cpus
    }

    fn title(&self) -> String {
        if self.is_restricted() {
            let (cpus, machine_cpus) = (self.cpus, self.machine_cpus);
            return format!("the command may use only {cpus} of {machine_cpus} CPUs, and needs more");
        }
        let cpus = units::counted(u64::from(self.cpus), "CPU is", "CPUs are");
        format!("{cpus} oversubscribed")
    }

    fn fix(&self) -> String {
        let cpus = self.cpus_to_try;
        if self.is_restricted() {
            return format!(
                "allow the command {cpus} CPUs: look for taskset, cpusets, and the limit of its container or service (`cpu.max`, `--cpus`)"
            );
        }
        format!("use a machine with {cpus} CPUs")
    }
}

/// Returns a clause about the queue time of new processes, which the report counts as launch tax.
fn queue_of_new_processes(context: &RuleContext<'_, '_>) -> String {
    let launches = context.path.launches.iter();
    let queued = Nanos(launches.map(|charges| charges.get(Phase::Queue).0).sum());
    if queued.0 == 0 {
        return String::new();
    }
    format!("; {} of it before new processes first ran, which counts as launch tax", time(queued))
}

fn finding(
    context: &RuleContext<'_, '_>,
    limit: &CpuLimit,
    launches: Vec<u32>,
    waited: Nanos,
    threads: f64,
) -> Finding {
    let CpuLimit { cpus, cpus_to_try, .. } = *limit;
    let title = limit.title();
    let evidence = format!(
        "{} on the critical path waited for a CPU, {} in all: {} of the wall{}",
        units::counted(launches.len() as u64, "process", "processes"),
        time(waited),
        units::percent(waited, context.wall()),
        queue_of_new_processes(context),
    );
    Finding::modelled("run-queue", title, launches)
        .fixed_elsewhere()
        .evidence(evidence)
        .evidence(format!("on average {threads:.1} threads were running or runnable"))
        .evidence_lines(too_many_jobs(context, cpus))
        .fix(limit.fix())
        .fix("run other work on this machine at another time; use `nice` for work that nothing waits for")
        .fix(format!(
            "fewer concurrent processes (-j{cpus}) use less memory, but save no wall time by themselves"
        ))
        .limits(
            "the prediction ignores contention for memory, disks and locks, which may limit the saving; it assumes that other \
             processes use as many CPUs as before",
        )
        .predicted_by(Change::Cpus(cpus_to_try), format!("--cpus={cpus_to_try}"))
}

/// Returns evidence about the first launch that requests a number of jobs, such as `make -j16`, if
/// there are fewer CPUs than jobs.
fn too_many_jobs(context: &RuleContext<'_, '_>, cpus: u32) -> Option<String> {
    let forest = context.forest();
    let launches = forest.launches.iter().filter_map(|launch| launch.execs.last());
    let (program, jobs) = launches.filter_map(|exec| Some((exec.program_name(), jobs_of(exec)?))).next()?;
    (jobs > cpus).then(|| {
        let allowed = units::counted(u64::from(cpus), "CPU", "CPUs");
        format!("{} was asked for {jobs} jobs at a time on {allowed}", name(program))
    })
}

/// Returns the number of jobs that a program was asked for: `-j16`, `-j 16`, `-P16`, `--jobs=16`.
fn jobs_of(exec: &Exec<'_>) -> Option<u32> {
    const BUILDERS: [&[u8]; 9] =
        [b"cargo", b"cmake", b"gmake", b"make", b"meson", b"ninja", b"parallel", b"pytest", b"xargs"];
    if !BUILDERS.contains(&exec.program_name()) {
        return None;
    }
    let words: Vec<&[u8]> = exec.arguments().collect();
    words.iter().enumerate().find_map(|(position, word)| {
        let options = [b"--jobs=".as_slice(), b"--max-procs=", b"-j", b"-P", b"-n"];
        // -n is the number of processes only for pytest.
        let mut accepted = options.into_iter().filter(|option| *option != b"-n" || exec.program_name() == b"pytest");
        let value = accepted.find_map(|option| word.strip_prefix(option))?;
        let next = words.get(position + 1).copied().unwrap_or_default();
        let number = if value.is_empty() { next } else { value };
        std::str::from_utf8(number).ok()?.parse().ok()
    })
}

/// Returns the average number of running and runnable threads.
fn average_threads(context: &RuleContext<'_, '_>) -> f64 {
    let timelines = context.timelines();
    let threads = 0..timelines.threads.len() as u32;
    let slices = threads.flat_map(|thread| timelines.slices(thread).iter());
    let active = slices.map(|slice| {
        let waited = runnable(&slice).map_or(Nanos(0), |(from, to)| to.since(from));
        slice.on_span.unwrap_or_default().0 + waited.0
    });
    active.sum::<u64>() as f64 / context.wall().0.max(1) as f64
}
