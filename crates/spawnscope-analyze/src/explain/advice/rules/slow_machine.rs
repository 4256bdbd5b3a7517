//! Machines on which every launch is slow: the cause is the machine, not the workload.

use crate::explain::advice::context::RuleContext;
use crate::explain::advice::finding::Finding;
use crate::explain::advice::phrases::{self, time};
use crate::model::external_wait::{ExternalWait, external_wait_of};
use crate::model::phases::Phase;
use crate::predict::whatif::changes::{Change, QUICK_LAUNCH};
use spawnscope_data::event::{LeftCpu, Nanos};
use spawnscope_data::statistics::median;

/// A machine is slow if the median launch cost is at least this long.
const MIN_SLOW_LAUNCH: Nanos = Nanos(50_000_000);

pub(super) fn find(context: &RuleContext<'_, '_>) -> Vec<Finding> {
    let launched = context.launched().filter(|(_, launch)| !launch.execs.is_empty());
    let launches: Vec<u32> = launched.map(|(index, _)| index).collect();
    let cost = context.median_of(&launches, |launch| Some(launch.launch_cost()?.0 as f64));
    let Some(median_cost) = cost.filter(|cost| *cost >= MIN_SLOW_LAUNCH.0 as f64) else {
        return Vec::new();
    };
    // This expensive check comes last. If CPUs are scarce, every launch is slow, but the machine is
    // not the cause.
    let unexplained_median = median(launches.iter().filter_map(|index| unexplained_cost(context, *index)));
    if unexplained_median.is_none_or(|cost| cost < MIN_SLOW_LAUNCH.0 as f64) {
        return Vec::new();
    }
    vec![finding(context, launches, Nanos(median_cost as u64))]
}

/// Returns the cost of a launch in nanoseconds, without the time that other rules report: for a
/// large parent, for closing descriptors, and for waits for a CPU or a scanner.
fn unexplained_cost(context: &RuleContext<'_, '_>, index: u32) -> Option<f64> {
    let launch = context.launch(index);
    let cost = launch.launch_cost()?.0 as f64;
    let create = launch.phases.get(Phase::Create).unwrap_or_default().0 as f64;
    let copied_and_freed = if launch.copies_page_tables() {
        create * (1.0 + context.whatif.constants.free_per_copy.unwrap_or(1.0))
    } else {
        0.0
    };
    let closed = launch.counts.setup_close_span.get().unwrap_or_default().0;
    Some(cost - copied_and_freed - closed as f64 - wait_outside_run(context, index) as f64)
}

/// Returns how many nanoseconds the first thread of a launch waited for a CPU or for a scanner
/// outside of the run phase.
fn wait_outside_run(context: &RuleContext<'_, '_>, index: u32) -> u64 {
    let launch = context.launch(index);
    let loaded = launch.execs.last().and_then(|exec| exec.load_end.get());
    let exit = launch.instants.exit.get();
    let slices = context.timelines().slices(index);
    let tax_slices = slices
        .iter()
        .filter(|slice| loaded.is_none_or(|loaded| slice.off < loaded) || exit.is_some_and(|exit| slice.off >= exit));
    let waits = tax_slices.filter_map(|slice| {
        let blocked = match slice.reason {
            LeftCpu::Created => return None,
            LeftCpu::Preempted => Nanos(0),
            _ if matches!(external_wait_of(&slice), ExternalWait::Scanner(_)) => Nanos(0),
            _ => slice.wake_span?,
        };
        Some(slice.off_span?.since(blocked).0)
    });
    waits.sum()
}

fn finding(context: &RuleContext<'_, '_>, launches: Vec<u32>, median_cost: Nanos) -> Finding {
    let mut phases = Phase::COST.map(|phase| (phase, context.median_phase(&launches, phase)));
    phases.sort_by_key(|(_, span)| std::cmp::Reverse(*span));
    let by_phase = phases.map(|(phase, span)| format!("{} {}", phase.name(), time(span)));
    let count = phrases::launches(launches.len());
    Finding::modelled("slow-machine", "every launch is slow on this machine", launches)
        .fixed_elsewhere()
        .evidence(format!("median of {count}: {} per launch, not counting the run of the program", time(median_cost)))
        .evidence(format!("median by phase: {}", by_phase.join(", ")))
        .with_example(context)
        .fix(where_to_look(phases[0].0))
        .fix("compare `time /bin/true` on another machine or in another container")
        .limits(format!(
            "the predicted saving assumes that no launch costs more than {}, as on a healthy machine; the recording does not show \
             the cause of the delay",
            time(QUICK_LAUNCH),
        ))
        .predicted_by(Change::QuickLaunch, "--quick-launch=*")
}

/// Returns where to look first, for the phase that takes longest.
fn where_to_look(slowest: Phase) -> &'static str {
    match slowest {
        Phase::Create => {
            "creating a process is slow: look for emulation (gVisor, qemu-user, WSL 1), a tracer (`grep TracerPid /proc/PID/status`), \
             and memory at its limit (`cat /sys/fs/cgroup/memory.events`, `cat /proc/pressure/memory`)"
        }
        Phase::Setup => {
            "the time between fork and exec is long: look for directories of PATH on a slow or dead mount (`spawnscope report` counts failed execs), \
             and for a CPU limit (`cat /sys/fs/cgroup/cpu.stat`: nr_throttled)"
        }
        Phase::Exec => {
            "execve is slow: look for a security scanner or an audit rule (`auditctl -l`, `ps -e`), programs on a network or \
             overlay file system (`findmnt -T FILE`), and slow disks (`cat /proc/pressure/io`)"
        }
        Phase::Load => {
            "loading libraries is slow: look for libraries on a network file system (`findmnt -T FILE`), a page cache that is too \
             small (`cat /proc/pressure/memory`), LD_PRELOAD and LD_AUDIT in the environment, and a security scanner"
        }
        _ => {
            "ending a process is slow: look for memory at its limit, swap (`cat /proc/pressure/memory`), and core dumps that are \
             piped to a program (`cat /proc/sys/kernel/core_pattern`)"
        }
    }
}
