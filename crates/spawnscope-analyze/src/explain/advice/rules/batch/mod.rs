//! One launch per file: `xargs -n1`, `find -exec ... \;` and shell loops that pass one file at a
//! time to a program that accepts many.

mod launcher;
mod snippet;

use std::collections::{BTreeMap, HashSet};

use crate::explain::advice::context::RuleContext;
use crate::explain::advice::finding::Finding;
use crate::explain::advice::phrases::{launches, name, option, time, times};
use crate::explain::advice::thresholds::{
    MIN_REPETITIONS, is_mostly_tax, is_mostly_tax_by_cpu_time, longest_frequent_groups,
};
use crate::model::launch::Exec;
use crate::predict::whatif::AppliedChange;
use crate::predict::whatif::changes::Change;
use launcher::{Launcher, launcher};
use snippet::snippet;

/// Programs that handle each of many files independently, and that are not shell builtins.
const TAKES_MANY: [&[u8]; 59] = [
    b"b2sum",
    b"black",
    b"bzip2",
    b"chattr",
    b"chgrp",
    b"chmod",
    b"chown",
    b"cksum",
    b"clang-format",
    b"cp",
    b"dos2unix",
    b"eslint",
    b"exiftool",
    b"file",
    b"flake8",
    b"gofmt",
    b"gunzip",
    b"gzip",
    b"install",
    b"isort",
    b"jpegoptim",
    b"ln",
    b"lz4",
    b"lzop",
    b"md5sum",
    b"mkdir",
    b"mogrify",
    b"mv",
    b"nm",
    b"optipng",
    b"perltidy",
    b"pngcrush",
    b"prettier",
    b"pylint",
    b"ranlib",
    b"rm",
    b"rmdir",
    b"ruff",
    b"rustfmt",
    b"setfacl",
    b"setfattr",
    b"sha1sum",
    b"sha224sum",
    b"sha256sum",
    b"sha384sum",
    b"sha512sum",
    b"shellcheck",
    b"shred",
    b"size",
    b"stat",
    b"strip",
    b"sum",
    b"touch",
    b"truncate",
    b"uncrustify",
    b"unxz",
    b"xz",
    b"yamllint",
    b"zstd",
];
/// Programs whose last argument is the destination.
const HAS_DESTINATION: [&[u8]; 4] = [b"cp", b"install", b"ln", b"mv"];
/// Programs that must not get more arguments from xargs or find, because the arguments would change
/// the meaning of the call, or are the command line of another program.
const NOT_BATCHABLE: [&[u8]; 34] = [
    b"[",
    b"ash",
    b"basename",
    b"bash",
    b"busybox",
    b"c++",
    b"cc",
    b"clang",
    b"clang++",
    b"dash",
    b"diff",
    b"docker",
    b"env",
    b"expr",
    b"g++",
    b"gcc",
    b"ksh",
    b"lua",
    b"mksh",
    b"nice",
    b"node",
    b"patch",
    b"perl",
    b"php",
    b"ruby",
    b"rustc",
    b"sh",
    b"ssh",
    b"sudo",
    b"tar",
    b"test",
    b"timeout",
    b"unzip",
    b"zsh",
];
/// Id of this rule.
pub(in crate::explain::advice) const RULE: &str = "batch";
/// Maximum batch size. Larger batches would hardly save more, and the command line must not get too
/// long.
const MAX_BATCH: usize = 1000;
/// Number of batches for each parallel process of xargs, so that all processes stay busy until the
/// end.
const BATCHES_PER_PROCESS: usize = 4;
const MAX_FINDINGS: usize = 3;
/// Minimum share of distinct files, in percent. Repeated calls such as `rm -f conftest.o` are not a
/// list of files.
const MIN_DISTINCT_PERCENT: usize = 80;

/// What launches that could be merged have in common, besides their common arguments.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct BatchKey<'a> {
    launcher: Launcher,
    parent: &'a [u8],
    program: &'a [u8],
    has_destination: bool,
}

/// The arguments that merged launches share: all but the varying argument.
type Common<'a> = Vec<&'a [u8]>;

/// Launches, each with its file.
type Files<'a> = Vec<(u32, &'a [u8])>;

pub(super) fn find(context: &RuleContext<'_, '_>) -> Vec<Finding> {
    let mut by_kind: BTreeMap<BatchKey<'_>, Vec<Vec<u32>>> = BTreeMap::new();
    for parent in 0..context.forest().launches.len() {
        for (key, batch) in batches_of(context, parent) {
            by_kind.entry(key).or_default().push(batch);
        }
    }
    let groups = by_kind.iter().map(|(key, batches)| {
        let mut all = batches.concat();
        all.sort_unstable();
        (key, all)
    });
    longest_frequent_groups(context, groups, MAX_FINDINGS)
        .into_iter()
        .map(|(key, all)| finding(context, key, all, &by_kind[key]))
        .collect()
}

/// Returns the launches that this rule merges.
pub(super) fn batched_launches(context: &RuleContext<'_, '_>) -> HashSet<u32> {
    let batches = (0..context.forest().launches.len()).flat_map(|parent| batches_of(context, parent));
    let batches = batches.filter(|(_, batch)| batch.len() >= MIN_REPETITIONS);
    batches.flat_map(|(_, batch)| batch).collect()
}

/// Returns the batches of launches of one process. One launch could replace each batch.
fn batches_of<'a>(context: &RuleContext<'_, 'a>, parent: usize) -> Vec<(BatchKey<'a>, Vec<u32>)> {
    let forest = context.forest();
    let children = forest.children(parent);
    let cpus = context.recording.info.usable_cpus() as usize;
    if children.len() < MIN_REPETITIONS {
        return Vec::new();
    }
    let mut alike: BTreeMap<(BatchKey<'a>, Common<'a>), Files<'a>> = BTreeMap::new();
    // Only the launcher of the first child is read. These launchers do not exec another program
    // between two launches.
    let Some(launcher) = forest.launcher(children[0]).and_then(|exec| launcher(exec, cpus)) else {
        return Vec::new();
    };
    for &index in children {
        if let Some((key, common, varying)) = batch_member(context, index, launcher) {
            alike.entry((key, common)).or_default().push((index as u32, varying));
        }
    }
    alike
        .into_iter()
        .filter(|(_, files)| are_files(files))
        .map(|((key, _), files)| (key, files.into_iter().map(|(index, _)| index).collect()))
        .collect()
}

/// Whether the varying arguments are a list of files.
fn are_files(files: &[(u32, &[u8])]) -> bool {
    let distinct: HashSet<&[u8]> = files.iter().map(|(_, file)| *file).collect();
    files.len() > 1 && distinct.len() * 100 >= files.len() * MIN_DISTINCT_PERCENT
}

/// Returns the key, the common arguments and the varying argument of a launch that could be part of
/// a batch.
fn batch_member<'a>(
    context: &RuleContext<'_, 'a>,
    index: usize,
    launcher: Launcher,
) -> Option<(BatchKey<'a>, Common<'a>, &'a [u8])> {
    let launch = &context.forest().launches[index];
    let [exec] = &launch.execs[..] else { return None };
    let program = launch.command.name;
    let is_loop = matches!(launcher, Launcher::Shell(_));
    // In a loop, only programs that are known to take many files count. They wait only for the
    // disk, so their waits do not count as work.
    let is_small = is_mostly_tax(context, index) || is_loop && is_mostly_tax_by_cpu_time(context, index);
    if exec.interpreter().is_some() || exec.argv_cut || !is_small || !takes_many(launcher, program, exec) {
        return None;
    }
    if is_loop && context.is_captured(index as u32) {
        return None;
    }
    let mut common: Common<'a> = exec.arguments().collect();
    let has_destination = HAS_DESTINATION.contains(&program) && common.len() > 2 && !common.contains(&b"-t".as_slice());
    let at = common.len().checked_sub(if has_destination { 2 } else { 1 }).filter(|at| *at > 0)?;
    let varying = common.remove(at);
    // A launch with a second file argument does not belong to a list of files.
    let has_other_file = common.iter().skip(1).take(at - 1).any(|argument| !argument.starts_with(b"-"));
    let is_option = varying.starts_with(b"-");
    if is_option || (has_other_file && is_loop && has_destination) {
        return None;
    }
    let key = BatchKey { launcher, parent: launch.birth_command.name, program, has_destination };
    Some((key, common, varying))
}

/// Whether a program may get many files from this launcher.
fn takes_many(launcher: Launcher, program: &[u8], exec: &Exec<'_>) -> bool {
    match launcher {
        Launcher::Shell(_) => TAKES_MANY.contains(&program) || is_sed_for_each_file(program, exec),
        Launcher::Xargs { .. } | Launcher::Find => !NOT_BATCHABLE.contains(&program) && !program.starts_with(b"python"),
    }
}

/// Whether this is a sed that edits files in place, or handles them separately. Without these
/// options, sed treats several files as one text.
fn is_sed_for_each_file(program: &[u8], exec: &Exec<'_>) -> bool {
    let words: Vec<&[u8]> = exec.arguments().collect();
    let separates = words.iter().any(|word| {
        word.starts_with(b"-i") || word.starts_with(b"--in-place") || *word == b"-s" || *word == b"--separate"
    });
    // The last argument of `sed -i FILE -e SCRIPT` is not a file. A script that quits would end at
    // the first file.
    let before_last = words.len().checked_sub(2).map_or(&b""[..], |at| words[at]);
    let is_script_last = [&b"-e"[..], b"-f", b"--expression", b"--file"].contains(&before_last);
    let quits = words.iter().any(|word| word.ends_with(b"q") || word.ends_with(b"Q"));
    program == b"sed" && separates && !is_script_last && !quits
}

/// Returns the number of files per launch.
fn batch_size(key: &BatchKey<'_>, count: usize) -> usize {
    match key.launcher {
        Launcher::Xargs { parallel, .. } if parallel > 1 => {
            (count / (parallel * BATCHES_PER_PROCESS)).clamp(2, MAX_BATCH)
        }
        _ => MAX_BATCH,
    }
}

fn finding(context: &RuleContext<'_, '_>, key: &BatchKey<'_>, all: Vec<u32>, batches: &[Vec<u32>]) -> Finding {
    let (program, parent) = (name(key.program), name(key.parent));
    let size = batch_size(key, all.len() / batches.len());
    let remaining: usize = batches.iter().map(|batch| batch.len().div_ceil(size)).sum();
    let changes =
        batches.iter().map(|batch| AppliedChange { change: Change::Batch(size as u32), launches: batch.clone() });
    let mean_size = all.len().div_ceil(remaining).max(2);
    let title = format!("{parent} launches {program} {} with one file each", times(all.len()));
    let spent = time(context.spent_on(&all));
    let count = launches(all.len());
    let fix = snippet(key.launcher, &context.example(&all), key.has_destination, size);
    Finding::modelled(RULE, title, all)
        .evidence(format!("{count} take {spent} in all and differ in only one argument"))
        .evidence(format!("{} would do the same", launches(remaining)))
        .with_example(context)
        .fix_lines(fix)
        .limits(format!(
            "only for programs that handle each file independently: {program} then gets all files at once, with one combined output and one \
             exit status; later steps must wait until the batch has finished"
        ))
        .predicted_by_all(
            changes.collect(),
            // The option cannot say which files belong together, so its batch size is the mean
            // number of files per remaining launch.
            format!("{}={mean_size}", option("--batch", key.program, key.parent)),
        )
}
