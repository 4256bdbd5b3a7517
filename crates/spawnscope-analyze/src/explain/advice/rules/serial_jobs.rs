//! Launches that run one after the other while CPUs are idle: `make` without -j, and loops over
//! independent files.

use std::collections::{BTreeMap, HashSet};

use crate::explain::advice::context::RuleContext;
use crate::explain::advice::finding::Finding;
use crate::explain::advice::phrases::{name, quoted, selector, time, times};
use crate::explain::advice::shared_line::SharedLine;
use crate::explain::advice::thresholds::{MIN_REPETITIONS, longest_frequent_groups, work_time};
use crate::model::tree::Forest;
use crate::patterns::recursive_make::is_sub_make;
use crate::patterns::runtimes::Runtime;
use crate::predict::whatif::changes::Change;
use spawnscope_data::event::Nanos;
use spawnscope_data::units;

/// Id of this rule.
pub(in crate::explain::advice) const RULE: &str = "serial";
const MAX_FINDINGS: usize = 2;
/// Minimum mean work of the launches, without their start-up. With less work it is better to merge
/// or avoid the launches than to run them in parallel.
const MIN_WORK: Nanos = Nanos(2_000_000);
/// Minimum share of distinct command lines, in percent. Equal command lines have the same result.
const MIN_DISTINCT_PERCENT: usize = 80;
/// Parents with an option for the number of commands to run at a time.
const JOBS_OPTIONS: [(&[u8], &str); 4] =
    [(b"gmake", "make -j"), (b"make", "make -j"), (b"ninja", "ninja -j"), (b"xargs", "xargs -P")];

/// Programs that take a lock for most of their work, so that a second one waits or fails.
const LOCKERS: [&[u8]; 37] = [
    b"apk",
    b"apt",
    b"apt-get",
    b"aptitude",
    b"brew",
    b"bundle",
    b"cargo",
    b"composer",
    b"conda",
    b"dnf",
    b"dpkg",
    b"flatpak",
    b"gem",
    b"git",
    b"go",
    b"gradle",
    b"hg",
    b"mamba",
    b"npm",
    b"opkg",
    b"pacman",
    b"pip",
    b"pip3",
    b"pnpm",
    b"poetry",
    b"rpm",
    b"snap",
    b"svn",
    b"terraform",
    b"tofu",
    b"uv",
    b"vagrant",
    b"yarn",
    b"yum",
    b"zypper",
    b"useradd",
    b"groupadd",
];

/// Parents that by default run as many commands at a time as there are CPUs.
const PARALLEL_BY_DEFAULT: [&[u8]; 3] = [b"bazel", b"cargo", b"go"];

pub(super) fn find(context: &RuleContext<'_, '_>) -> Vec<Finding> {
    let cpus = context.whatif.replay.cpus;
    if cpus < 2 {
        return Vec::new();
    }
    let forest = context.forest();
    let mut by_kind: BTreeMap<(&[u8], &[u8]), Vec<u32>> = BTreeMap::new();
    for parent in (0..forest.launches.len()).filter(|parent| !has_enough_jobs(forest, *parent, cpus)) {
        let mut programs: BTreeMap<&[u8], Vec<u32>> = BTreeMap::new();
        for &index in forest.children(parent) {
            if !forest.launches[index].execs.is_empty() {
                let program = forest.launches[index].command.name;
                programs.entry(program).or_default().push(index as u32);
            }
        }
        for (program, all) in programs {
            if all.len() >= MIN_REPETITIONS && are_independent(context, &all) {
                let parent = context.launch(all[0]).birth_command.name;
                by_kind.entry((parent, program)).or_default().extend(all);
            }
        }
    }
    longest_frequent_groups(context, by_kind, MAX_FINDINGS)
        .into_iter()
        .map(|((parent, program), mut all)| {
            all.sort_unstable();
            finding(context, (parent, program), &all, cpus)
        })
        .collect()
}

/// Whether a program that can run commands in parallel ran at least as many at a time as there are
/// CPUs, as `make -j2` does on two CPUs. Commands that such a process ran one after the other
/// probably depend on each other.
fn has_enough_jobs(forest: &Forest<'_>, parent: usize, cpus: u32) -> bool {
    let name = forest.launches[parent].command.name;
    if !JOBS_OPTIONS.iter().any(|(program, _)| *program == name) && !PARALLEL_BY_DEFAULT.contains(&name) {
        return false;
    }
    let mut changes: Vec<(Nanos, i32)> = Vec::new();
    for &child in forest.children(parent) {
        let launch = &forest.launches[child];
        if let Some(start) = launch.start() {
            changes.extend([(start, 1), (launch.end().unwrap_or(forest.end), -1)]);
        }
    }
    // At the same instant, an end comes before a start.
    changes.sort_unstable();
    let mut running = 0;
    changes.iter().any(|(_, change)| {
        running += change;
        running >= cpus.cast_signed()
    })
}

/// Whether launches of one program by one process look independent: they work for long enough,
/// their command lines differ, and the parent does not read their output.
fn are_independent(context: &RuleContext<'_, '_>, all: &[u32]) -> bool {
    let forest = context.forest();
    let work: u64 = all.iter().map(|index| work_of(context, *index as usize).0).sum();
    let distinct: HashSet<&[u8]> =
        all.iter().filter_map(|index| forest.launches[*index as usize].execs.last()).map(|exec| exec.argv()).collect();
    work >= MIN_WORK.0 * all.len() as u64
        && distinct.len() * 100 >= all.len() * MIN_DISTINCT_PERCENT
        && !all.iter().any(|index| context.is_captured(*index) || takes_lock(forest, *index as usize))
}

/// Whether a launch runs a program that takes a lock, itself or through what it launches.
fn takes_lock(forest: &Forest<'_>, index: usize) -> bool {
    let mut pending = vec![index];
    while let Some(index) = pending.pop() {
        let launch = &forest.launches[index];
        if launch.execs.iter().any(|exec| LOCKERS.contains(&exec.program_name())) {
            return true;
        }
        pending.extend(forest.children(index));
    }
    false
}

/// Returns the work of a launch without its start-up. A sub-make waits for what it launches, so its
/// work is that of its descendants, without makes and without shells that launched something.
fn work_of(context: &RuleContext<'_, '_>, index: usize) -> Nanos {
    let forest = context.forest();
    if !is_sub_make(forest, index) {
        return work_without_start_up(context, index);
    }
    let (mut work, mut pending) = (Nanos(0), forest.children(index).to_vec());
    while let Some(index) = pending.pop() {
        let children = forest.children(index);
        if children.is_empty() && !is_sub_make(forest, index) {
            work.0 += work_without_start_up(context, index).0;
        }
        pending.extend(children);
    }
    work
}

fn work_without_start_up(context: &RuleContext<'_, '_>, index: usize) -> Nanos {
    let start_up = context.forest().launches[index].start_up.get().unwrap_or_default();
    work_time(context, index).unwrap_or_default().since(start_up)
}

fn finding(context: &RuleContext<'_, '_>, (parent, program): (&[u8], &[u8]), all: &[u32], cpus: u32) -> Finding {
    let title = format!("{} runs {} {}, one after the other", name(parent), name(program), times(all.len()));
    let evidence = format!(
        "they take {} in all, and the command may use {}",
        time(context.spent_on(all)),
        units::counted(u64::from(cpus), "CPU", "CPUs")
    );
    let option = format!("--jobs={}={cpus}", selector(program, parent));
    Finding::modelled(RULE, title, all.to_vec())
        .evidence(evidence)
        .with_example(context)
        .fix(format!("run {cpus} of them at a time:"))
        .fix_lines(fix(context, parent, program, all, cpus))
        .limits(
            "only if they do not need each other's results and take no lock, which is not recorded; their output may come in another order; \
             together they need more memory",
        )
        .predicted_by(Change::Jobs(cpus), quoted(&option))
}

/// Keeps the arguments that all launches share.
fn shell_fix(line: Option<SharedLine>, program: &[u8], cpus: u32) -> Vec<String> {
    let each = line.as_ref().and_then(SharedLine::for_each_input);
    let command = line.map_or_else(|| format!("{} ...", name(program)), |line| line.with_inputs("..."));
    let xargs = each.map(|each| format!("  printf '%s\\0' FILES... | xargs -0 -P{cpus} {each}"));
    let or = if xargs.is_some() { "or " } else { "" };
    let background = format!("  {or}{command} & in the loop, with `wait -n` while {cpus} of them run (bash 4.3)");
    xargs.into_iter().chain([background]).collect()
}

fn fix(context: &RuleContext<'_, '_>, parent: &[u8], program: &[u8], all: &[u32], cpus: u32) -> Vec<String> {
    // Even with -j, make runs the lines of one recipe, and the commands of its shells, one after
    // the other.
    if all.iter().all(|index| is_sub_make(context.forest(), *index as usize)) {
        return vec![
            format!("  make -j{cpus}, with a target for each directory; `$(MAKE)` and `+` pass -j on:"),
            "    $(DIRS): ; +$(MAKE) -C $@".to_owned(),
        ];
    }
    if let Some((_, option)) = JOBS_OPTIONS.iter().find(|(name, _)| *name == parent) {
        return vec![format!("  {option}{cpus}")];
    }
    match Runtime::of_parent(context.forest(), all[0]) {
        Runtime::Shell => shell_fix(SharedLine::of(context, all), program, cpus),
        Runtime::Python => {
            vec![format!("  concurrent.futures.ThreadPoolExecutor({cpus}).map(...) around subprocess.run")]
        }
        Runtime::Node => vec!["  execFile with promises, and Promise.all over a few at a time".to_owned()],
        Runtime::Go => {
            vec!["  one goroutine per command, limited by a buffered channel or errgroup.SetLimit".to_owned()]
        }
        _ => vec![format!("  start {cpus} before waiting for the first")],
    }
}
