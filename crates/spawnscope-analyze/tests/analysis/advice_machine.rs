//! Advice about loaders and oversubscribed CPUs.

use spawnscope_analyze::explain::advice::AdviceList;
use spawnscope_analyze::predict::replay::Parameters;
use spawnscope_analyze::{Forest, Replay};
use spawnscope_data::event::{LeftCpu, Nanos, TaskId};
use spawnscope_data::rows::{ExecRow, Recording, SliceRow, WakerRow};

use crate::builder::{Builder, ROOT, Spans};
use crate::serial::{Serial, WAIT4, advices, is_silent, only, timelines};
use crate::slices::{created, ended, slice};

const COUNT: u64 = 30;
const TOOL: Option<(&str, &[&str])> = Some(("/opt/tool", &["tool", "--help"]));

/// Builds a recording of launches of a tool. `change` modifies the exec of each launch.
fn tools(spans: &Spans, change: impl Fn(&mut ExecRow)) -> (Recording, Vec<SliceRow>) {
    let mut serial = Serial::new();
    for _ in 0..COUNT {
        let launch = serial.launch(spans, TOOL);
        let teardown = Nanos(spans.teardown);
        let row = serial.builder.row(launch);
        row.cpu = row.exit_cpu.map(|cpu| Nanos(cpu.0 + teardown.0));
        change(serial.builder.recording.execs.last_mut().unwrap());
    }
    serial.finish()
}

fn advice_on_loads(found: u32, failed: u32, cache: Option<bool>) -> AdviceList {
    let spans = Spans { load: 3_000_000, ..Spans::USUAL };
    advices(&tools(&spans, |exec| {
        (exec.load_opens, exec.load_failed_opens) = (Some(found), Some(failed));
        exec.load_cache = cache;
    }))
}

#[test]
fn a_loader_with_many_failed_look_ups_gets_advice() {
    // The failed look-ups take as long as loading the three libraries, so half of the time can be
    // saved.
    let advice = only(&advice_on_loads(3, 301, Some(true)), "loader-search");
    let expected = COUNT * 1_500_000;
    assert!(advice.saving[0].0.abs_diff(expected) < expected / 1000, "{:?}", advice.saving);
    let fix = advice.finding.fix.concat();
    assert!(fix.contains("LD_LIBRARY_PATH") && fix.contains("LD_DEBUG=libs /opt/tool"), "{fix}");
    assert_eq!(advice.finding.evidence.len(), 1, "the cache exists: {advice:?}");
    let advice = only(&advice_on_loads(3, 301, Some(false)), "loader-search");
    assert!(advice.finding.fix[0].contains("ldconfig"), "{advice:?}");
    assert!(is_silent(&advice_on_loads(3, 1, Some(true)), "loader-search"));
}

/// Builds a recording of `count` children that are created at the same time and work 40 ms each, on
/// two CPUs with time slices of 4 ms.
fn parallel_children(count: u64) -> (Recording, Vec<SliceRow>) {
    beside_others(count, 0)
}

/// Builds the same recording, except that other programs get `others` slices on each CPU after each
/// round of the children.
fn beside_others(count: u64, others: u64) -> (Recording, Vec<SliceRow>) {
    const TURN: u64 = 4_000_000;
    const TURNS: u64 = 10;
    let rounds = count.div_ceil(2).max(1) + others;
    let ends = TURN * TURNS * rounds + 1_000_000;
    let mut builder = Builder::command("/usr/bin/make", &["make"], ends + 1_000_000);
    let mut slices = Vec::new();
    for number in 0..count {
        let child = builder.launch(ROOT, 0, &Spans::USUAL, None);
        let first = 1_000_000 + number / 2 * TURN;
        let last = first + (TURNS - 1) * rounds * TURN + TURN;
        let row = builder.row(child);
        row.parent_task = Some(TaskId(ROOT.0));
        (row.created, row.first_run) = (Some(Nanos(1_000_000)), Some(Nanos(first)));
        (row.exit, row.zombie, row.reaped) = (Some(Nanos(last)), Some(Nanos(last)), Some(Nanos(ends)));
        slices.push(created(child.0, 1_000_000, first - 1_000_000));
        for turn in 0..TURNS - 1 {
            let on = first + turn * rounds * TURN;
            slices.push(SliceRow {
                off_span: Some(Nanos((rounds - 1) * TURN)),
                wake_span: None,
                reason: LeftCpu::Preempted,
                ..slice(child.0, on, on + TURN, [0, 0], 0, None)
            });
        }
        slices.push(ended(child.0, last - TURN, last));
    }
    let waker = Some(WakerRow::Task(TaskId(count + 1)));
    slices.push(slice(1, 0, 1_000_000, [ends - 1_000_000, 0], WAIT4, waker));
    slices.push(ended(1, ends, ends + 1_000_000));
    (builder.recording, slices)
}

#[test]
fn oversubscribed_cpus_get_the_saving_of_more_cpus() {
    let advice = only(&advices(&parallel_children(8)), "run-queue");
    // Eight children take four times as long as one on two CPUs, and twice as long on four CPUs.
    let expected = 80_000_000;
    assert!(advice.saving[0].0.abs_diff(expected) < expected / 10, "{:?}", advice.saving);
    assert!(advice.saving[1] < advice.saving[0], "{:?}", advice.saving);
    assert!(advice.finding.fix.concat().contains("save no wall time by themselves"), "{advice:?}");
    assert_eq!(advice.finding.whatif, "--cpus=4");
    let waited = advice.finding.evidence.iter().find(|sentence| sentence.contains("waited for a CPU"));
    let waited = waited.unwrap();
    assert!(
        waited.contains("ms of it before new processes first ran"),
        "the report's figure excludes these waits: {waited}"
    );
}

#[test]
fn advice_names_the_limit_of_a_command_that_may_use_few_cpus() {
    let mut recorded = parallel_children(8);
    let info = &mut recorded.0.info;
    (info.cpus, info.allowed_cpus) = (3, Some(1.5));
    let advice = only(&advices(&recorded), "run-queue");
    assert_eq!(advice.finding.title, "the command may use only 2 of 3 CPUs, and needs more");
    assert_eq!(advice.finding.whatif, "--cpus=3", "no more than the machine has");
    assert!(advice.finding.fix[0].contains("taskset"), "{advice:?}");
    assert!(advice.finding.fix.concat().contains("-j2"), "{advice:?}");
}

#[test]
fn cpus_that_other_programs_hold_are_not_oversubscribed_by_the_command() {
    let share = |others: u64| {
        let (recording, slices) = beside_others(8, others);
        let (forest, parameters) = (Forest::build(&recording), Parameters::of(&recording).unwrap());
        let replay = Replay::new(&forest, &timelines(&forest, &slices), &parameters).unwrap();
        let waits = replay.programs.cpu_waits;
        100 * waits.held_by_others.0 / waits.all.0
    };
    assert!(share(0) <= 1, "{}", share(0));
    // Between two turns of a child there are fifteen others, twelve of them of other programs. The
    // number of waiting threads does not matter.
    assert!(share(12).abs_diff(80) <= 2, "{}", share(12));
    let found = advices(&beside_others(8, 12));
    assert!(is_silent(&found, "run-queue"), "{found:?}");
}

#[test]
fn as_many_processes_as_cpus_get_no_advice_on_cpus() {
    assert!(is_silent(&advices(&parallel_children(2)), "run-queue"));
    // Wake-ups are slow, but launches run one after the other: no CPU is oversubscribed.
    let spans = Spans { queue: 2_000_000, ..Spans::USUAL };
    let found = advices(&tools(&spans, |_| ()));
    assert!(is_silent(&found, "run-queue"), "{found:?}");
}
