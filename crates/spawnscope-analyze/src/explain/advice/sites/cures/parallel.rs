//! Launches that run one after the other while CPUs are idle: `make` without -j, and loops over
//! independent files. Launches that wait for each other's lock on a file.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use super::{LOCK, PARALLEL, finding, removing, shared_line};
use crate::explain::advice::context::{MIN_REPETITIONS, RuleContext, most_at_once};
use crate::explain::advice::finding::Finding;
use crate::explain::advice::languages::language;
use crate::explain::advice::owner::Owner;
use crate::explain::advice::phrases::{name, quoted, selector, time};
use crate::explain::advice::shared_line::SharedLine;
use crate::explain::advice::sites::Site;
use crate::explain::advice::tables::recipe;
use crate::model::grouped::grouped;
use crate::model::launch::{Exec, base_name};
use crate::model::phases::Phase;
use crate::model::timeline::beginning;
use crate::model::tree::Forest;
use crate::patterns::calls::Call;
use crate::patterns::pipeline::writer_of;
use crate::patterns::programs::has_property;
use crate::patterns::recursive_make::is_sub_make;
use crate::patterns::runtimes::Runtime;
use crate::patterns::script::{Kind, Script};
use crate::patterns::shells::{command_of, is_shell};
use crate::patterns::words::Words;
use crate::predict::whatif::AppliedChange;
use crate::predict::whatif::changes::Change;
use crate::predict::whatif::changes::work::cpu_usage;
use spawnscope_data::event::Nanos;
use spawnscope_data::event::syscalls::numbers;

/// Minimum mean work of the launches, without their start-up. With less work it is better to merge
/// or avoid the launches than to run them in parallel.
const MIN_WORK: Nanos = Nanos(2_000_000);
/// Minimum share of distinct command lines, in percent. Equal command lines have the same result.
const MIN_DISTINCT_PERCENT: usize = 80;
/// Minimum number of idle CPUs while the launches ran. With fewer, they would only wait for each
/// other.
const MIN_IDLE_CPUS: f64 = 0.4;
/// Number of ancestors that are searched for an option of their own.
const MAX_ANCESTORS: usize = 6;
/// System calls in which a thread waits for a lock on a file.
const LOCKS: [u16; 2] = numbers(["flock", "fcntl"]);
/// Launches are about a lock if they wait for it during at least this share of their time.
const MIN_LOCK_SHARE: f64 = 0.3;

/// Launches that mostly wait, and not for a CPU, are run more at a time than there are CPUs, but no
/// more than this.
const MAX_WAITING: u32 = 8;
/// They mostly wait if they do something else during less than this share of their time.
const MOSTLY: f64 = 0.5;

/// Returns the cure of independent launches.
pub(in crate::explain::advice::sites) fn cure(context: &RuleContext<'_, '_>, site: &Site<'_>) -> Option<Finding> {
    of_work(context, site, MIN_WORK)
}

/// Returns the cure of independent launches of which each does at least some work.
pub(super) fn of_work(context: &RuleContext<'_, '_>, site: &Site<'_>, min_work: Nanos) -> Option<Finding> {
    let (forest, cpus) = (context.forest(), context.whatif.replay.cpus);
    let all = with_subshells(context, &site.launches).into_iter();
    let executed = all.filter(|[index, _]| !context.launch(*index).execs.is_empty());
    let mut by_parent = grouped(executed.filter_map(|both| Some((forest.parent(both[1] as usize)?, both))));
    by_parent.retain(|parent, all| {
        all.len() >= MIN_REPETITIONS
            && !has_enough_jobs(forest, *parent, cpus)
            && !is_sequence(forest, *parent)
            && are_independent(context, all, min_work)
    });
    let pairs = by_parent.into_values().collect::<Vec<_>>().concat();
    let [mut all, mut tops] = [0, 1].map(|at| pairs.iter().map(|pair| pair[at]).collect::<Vec<u32>>());
    all.sort_unstable();
    tops.sort_unstable();
    let idle = idle_cpus(context, &all)?;
    let jobs = jobs_of(context, &all);
    if jobs < 2 || idle < MIN_IDLE_CPUS || takes_lock(context, &all) {
        return None;
    }
    let option = format!("--jobs={}={jobs}", selector(context.launch(all[0]).command.name, site.parent));
    let option = if all == tops { quoted(&option) } else { String::new() };
    let own = own_option(forest, &all, jobs);
    let finding = finding(context, site, PARALLEL, ", one after the other", all.clone())
        .predicted_by_all(vec![AppliedChange { change: Change::Jobs(jobs), launches: tops }], option);
    let idle = format!("{idle:.1} of {cpus}");
    let finding = with_fix(context, finding, own.as_deref(), &pairs, (jobs, &idle));
    Some(finding)
}

/// Returns a file that the programs of most launches of a script name: one of them may change it.
fn shared_file<'a>(context: &RuleContext<'_, 'a>, all: &[u32]) -> Option<&'a [u8]> {
    let script = |index: &u32| context.launch(*index).execs.last().is_some_and(|exec| exec.interpreter().is_some());
    let shell = |index: &u32| is_shell(context.launch(*index).command.name);
    if !all.iter().any(|index| script(index) || shell(index)) {
        return None;
    }
    let mut counts: BTreeMap<&[u8], usize> = BTreeMap::new();
    for index in all {
        let own = context.example(&[*index]);
        let execs = context.walk(&[*index]).filter_map(|step| context.launch(step.index as u32).execs.last());
        // Programs of sed are no files, and those of the system do not change.
        let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || b"/._-".contains(byte);
        let is_file = |word: &&[u8]| {
            base_name(word).contains(&b'.')
                && !word.ends_with(b"/")
                && word.iter().all(is_name)
                && Owner::of(word) == Owner::User
        };
        let files: BTreeSet<&[u8]> = execs.flat_map(|exec| exec.arguments().skip(1)).filter(is_file).collect();
        let files = files.into_iter().filter(|file| !own.iter().any(|word| word == file));
        files.for_each(|file| *counts.entry(file).or_default() += 1);
    }
    let (file, count) = counts.into_iter().max_by_key(|(_, count)| *count)?;
    (count > 1 && count * 2 > all.len()).then_some(file)
}

/// Returns each launch with the outermost subshell that exists only for it, as in `x=$(program)`,
/// or with itself.
fn with_subshells(context: &RuleContext<'_, '_>, all: &[u32]) -> Vec<[u32; 2]> {
    let forest = context.forest();
    let subshells = |index: u32| {
        forest.ancestors(index as usize).take_while(|above| forest.launches[*above].is_fork_without_exec())
    };
    let mut counts: BTreeMap<usize, u32> = BTreeMap::new();
    all.iter().flat_map(|index| subshells(*index)).for_each(|above| *counts.entry(above).or_default() += 1);
    let top =
        |index: u32| subshells(index).take_while(|above| counts[above] == 1).last().map_or(index, |top| top as u32);
    all.iter().map(|index| [*index, top(*index)]).collect()
}

/// Returns how many launches can run at a time: as many as there are CPUs, and more if they mostly
/// wait for something else while they run.
fn jobs_of(context: &RuleContext<'_, '_>, all: &[u32]) -> u32 {
    let (cpus, forest) = (context.whatif.replay.cpus, context.forest());
    // A reader in a pipeline waits for its writer, which would have to run at the same time, too.
    if all.iter().filter(|index| writer_of(forest, **index).is_some()).count() * 2 > all.len() {
        return cpus;
    }
    // Stops for a tracer are no waits.
    let indexes = || all.iter().map(|index| *index as usize);
    let own: u64 = indexes().map(|index| forest.stopped(index, Nanos(0), forest.end).0).sum();
    let stopped: u64 = indexes().map(|index| forest.stopped_below(index).0).sum();
    let run = context.total_phase(all, Phase::Run).0.saturating_sub(stopped.saturating_sub(own)) as f64;
    let spent = context.spent_on(all).0.saturating_sub(stopped).max(1) as f64;
    let waiting = run - cpu_usage(context.whatif, all).iter().sum::<f64>() * context.recording.max_slowdown();
    let share = 1.0 - waiting / spent;
    let most = MAX_WAITING.min(all.len() as u32).max(cpus);
    if share < MOSTLY { ((f64::from(cpus) / share.max(0.01)) as u32).min(most) } else { cpus }
}

/// Whether a shell executed the commands of its argument one by one, without a loop. Each may need
/// what those before it did.
fn is_sequence(forest: &Forest<'_>, parent: usize) -> bool {
    let script = forest.launches[parent].execs.last().and_then(command_of).and_then(Script::parse);
    script.is_some_and(|script| {
        (0..script.len()).all(|index| !matches!(script.kind(index), Kind::For(_) | Kind::Loop { .. }))
    })
}

/// Whether a program that can run commands in parallel ran at least as many at a time as there are
/// CPUs, as `make -j2` does on two CPUs. Commands that such a process ran one after the other
/// probably depend on each other.
fn has_enough_jobs(forest: &Forest<'_>, parent: usize, cpus: u32) -> bool {
    let program = forest.launches[parent].command.name;
    if recipe("jobs-option", &[&name(program)], &[]).fix.is_empty() && !has_property(program, "parallel") {
        return false;
    }
    let children = forest.children(parent).iter().map(|child| &forest.launches[*child]);
    let spans = children.filter_map(|launch| Some((launch.start()?, launch.end().unwrap_or(forest.end))));
    most_at_once(spans) >= cpus as usize
}

/// Whether launches of one program by one process look independent: they work for long enough,
/// their command lines differ, and the parent does not read their output, unless they mostly wait.
fn are_independent(context: &RuleContext<'_, '_>, pairs: &[[u32; 2]], min_work: Nanos) -> bool {
    let all: Vec<u32> = pairs.iter().map(|pair| pair[0]).collect();
    let work: u64 = all.iter().map(|index| work_of(context, *index as usize).0).sum();
    let execs = all.iter().filter_map(|index| context.launch(*index).execs.last());
    let distinct: HashSet<&[u8]> = execs.map(|exec| exec.argv()).collect();
    let jobs = jobs_of(context, &all);
    // A parent with an option of its own knows which output is whose. `$(shell)` has none.
    let is_managed = || {
        Runtime::of_parent(context.forest(), all[0]) != Runtime::Make
            && own_option(context.forest(), &all, jobs).is_some()
    };
    work >= min_work.0 * all.len() as u64
        && distinct.len() * 100 >= all.len() * MIN_DISTINCT_PERCENT
        && (!are_captured(context, pairs) || jobs > context.whatif.replay.cpus || is_managed())
        && !may_write_same_file(context, &all)
}

/// Whether the parent reads what launches, or their subshells, print.
fn are_captured(context: &RuleContext<'_, '_>, pairs: &[[u32; 2]]) -> bool {
    pairs.iter().flatten().any(|index| context.is_captured(*index))
}

/// Whether launches share an operand that names a file, which each may write, as in `ar rc lib.a
/// x.o`. The value of an option other than one for output, and the script of an interpreter, are
/// only read.
fn may_write_same_file(context: &RuleContext<'_, '_>, all: &[u32]) -> bool {
    const OUTPUT: Words = Words("-o --out --output -O -f --file");
    let Some(line) = SharedLine::of(context, all) else { return false };
    let script = context.launch(all[0]).execs.first().and_then(Call::of).map(|call| name(call.name));
    let words: Vec<&str> = line.words().map(Option::unwrap_or_default).collect();
    words.windows(2).any(|pair| {
        let [before, word] = [pair[0], pair[1]];
        let is_other = word.starts_with(['-', '+']) || word.ends_with('/') || word.contains("://");
        let is_file =
            word.contains(['.', '/']) && !is_other && !word.starts_with("/dev/") && word.parse::<f64>().is_err();
        let is_read = before.starts_with('-') && !OUTPUT.contains(before.as_bytes());
        is_file && !is_read && script.as_deref() != word.rsplit('/').next()
    })
}

/// Returns the mean number of idle CPUs from the start of the first launch to the end of the last,
/// without the time in which a tracer stopped them.
fn idle_cpus(context: &RuleContext<'_, '_>, all: &[u32]) -> Option<f64> {
    let (forest, cpus) = (context.forest(), f64::from(context.whatif.replay.cpus));
    let (from, to) = (context.launch(*all.first()?).start()?, context.launch(*all.last()?).end().unwrap_or(forest.end));
    let timelines = context.timelines();
    let threads = 0..timelines.threads.len() as u32;
    let busy: u64 = threads
        .flat_map(|thread| timelines.slices(thread).iter())
        .map(|slice| slice.off.min(to).since(beginning(&slice).max(from)).0)
        .sum();
    let stopped: u64 = all.iter().map(|index| forest.stopped_below(*index as usize).0).sum();
    let span = to.since(from).0.saturating_sub(stopped).max(1);
    Some((cpus - busy as f64 / span as f64).max(0.0))
}

/// Whether launches run a program that is known to take a lock, or wait for a lock on a file,
/// themselves or through what they launch.
fn takes_lock(context: &RuleContext<'_, '_>, all: &[u32]) -> bool {
    let forest = context.forest();
    let is_known = context.walk(all).any(|step| {
        let mut execs = forest.launches[step.index].execs.iter();
        execs.any(|exec| has_property(exec.program_name(), "locks"))
    });
    is_known || waited_for_locks(context, all) > Nanos(0)
}

/// Returns the work of a launch without its start-up. A sub-make waits for what it launches, so its
/// work is that of its descendants, without makes and without shells that launched something.
fn work_of(context: &RuleContext<'_, '_>, index: usize) -> Nanos {
    let forest = context.forest();
    let own = |index: usize| {
        let start_up = forest.launches[index].start_up.get().unwrap_or_default();
        context.work_time(index).unwrap_or_default().since(start_up)
    };
    if !is_sub_make(forest, index) {
        return own(index);
    }
    let leaves = forest.walk(&[index]).filter(|step| forest.children(step.index).is_empty());
    Nanos(leaves.filter(|step| !is_sub_make(forest, step.index)).map(|step| own(step.index).0).sum())
}

/// Returns the option of the nearest program above launches that runs several commands at a time,
/// if it does not make all of them by one command.
fn own_option(forest: &Forest<'_>, all: &[u32], cpus: u32) -> Option<String> {
    let above = |launch: u32| std::iter::once(launch as usize).chain(forest.ancestors(launch as usize));
    let option_of = |exec: &Exec<'_>| {
        let script = exec.arguments().nth(1).unwrap_or_default();
        let names = [exec.path(), exec.program_name(), script].map(|path| name(crate::model::launch::base_name(path)));
        let cases = names.each_ref().map(String::as_str);
        recipe("jobs-option", &cases, &[("n", &cpus.to_string())]).fix.into_iter().next()
    };
    let of_launch = |launch: usize| forest.launches[launch].execs.iter().rev().find_map(option_of);
    let pairs = above(all[0]).zip(above(all[0]).skip(1)).take(MAX_ANCESTORS);
    let (command, option) = pairs.into_iter().find_map(|(command, parent)| Some((command, of_launch(parent)?)))?;
    let is_spread = all.iter().any(|launch| !above(*launch).any(|above| above == command));
    is_spread.then_some(option)
}

/// Adds how to run several launches at a time. `own` is the option of the program above them.
fn with_fix(
    context: &RuleContext<'_, '_>,
    finding: Finding,
    own: Option<&str>,
    pairs: &[[u32; 2]],
    (jobs, idle): (u32, &str),
) -> Finding {
    let all: Vec<u32> = pairs.iter().map(|pair| pair[0]).collect();
    let line = shared_line(context, &all);
    let each = line.as_ref().and_then(SharedLine::for_each_input);
    let input = line.as_ref().map_or(String::new(), |line| line.input().to_uppercase());
    let command = line.map(|line| line.with_inputs("..."));
    let command = command.unwrap_or_else(|| format!("{} ...", name(context.launch(all[0]).command.name)));
    let runtime = Runtime::of_parent(context.forest(), all[0]);
    let case = match runtime {
        // Even with -j, make runs the lines of one recipe, and the commands of its shells, one
        // after the other.
        _ if all.iter().all(|index| is_sub_make(context.forest(), *index as usize)) => "makes",
        _ if own.is_some() => "own",
        Runtime::Shell if are_captured(context, pairs) => "answers",
        Runtime::Shell if each.is_some() => "xargs",
        Runtime::Shell => "loop",
        _ => "other",
    };
    let values = [
        ("language", &language(runtime).parallel.replace("{n}", &jobs.to_string())[..]),
        ("n", &jobs.to_string()),
        ("idle", idle),
        ("shared", &shared_file(context, &all).map_or(String::new(), name)),
        ("option", own.unwrap_or_default()),
        ("input", &input),
        ("each", each.as_deref().unwrap_or_default()),
        ("command", &command),
    ];
    finding.recipe(context, "parallel", &[case], &values)
}

/// Returns the cure of launches that mostly wait for a lock.
pub(super) fn waiting_for_lock(context: &RuleContext<'_, '_>, site: &Site<'_>) -> Option<Finding> {
    let waited = waited_for_locks(context, &site.launches);
    if (waited.0 as f64) < MIN_LOCK_SHARE * context.spent_on(&site.launches).0 as f64 || waited < context.min_saving() {
        return None;
    }
    let finding = finding(context, site, LOCK, ", and they wait for a lock", site.launches.clone()).recipe(
        context,
        LOCK,
        &[],
        &[("waited", &time(waited))],
    );
    Some(removing(context, finding, site.launches.clone()))
}

/// Returns how long launches and their descendants waited for locks on files.
fn waited_for_locks(context: &RuleContext<'_, '_>, all: &[u32]) -> Nanos {
    let slices = context.walk(all).flat_map(|step| {
        let slices = context.timelines().slices(step.index as u32).iter();
        slices.filter(|slice| slice.syscall.is_some_and(|call| LOCKS.contains(&call)))
    });
    Nanos(slices.map(|slice| slice.off_span.unwrap_or_default().0).sum())
}
