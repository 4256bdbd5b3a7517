//! One launch a file: `xargs -n1`, `find -exec ... \;` and loops of a shell that give a program one file at a time, which would take
//! them all at once.

use std::collections::{BTreeMap, HashSet};

use super::super::ground::{name, time};
use super::super::shell::{Dialect, parent_program, runs};
use super::super::wording::{HABIT, instead, is_mostly_tax, largest, launches, option, quoted};
use super::super::{Basis, Finding, Ground};
use crate::analyze::launch::Exec;
use crate::analyze::whatif::Fix;
use crate::analyze::whatif::changes::{Change, is_captured};
use crate::units;

/// Programs that treat each of many files alike, and that shells have not built in.
const TAKES_MANY: [&[u8]; 36] = [
    b"chattr",
    b"chgrp",
    b"chmod",
    b"chown",
    b"clang-format",
    b"cp",
    b"dos2unix",
    b"file",
    b"gofmt",
    b"gunzip",
    b"gzip",
    b"install",
    b"jpegoptim",
    b"ln",
    b"md5sum",
    b"mkdir",
    b"mv",
    b"optipng",
    b"ranlib",
    b"rm",
    b"rmdir",
    b"rustfmt",
    b"setfacl",
    b"setfattr",
    b"sha1sum",
    b"sha256sum",
    b"sha512sum",
    b"shellcheck",
    b"shred",
    b"strip",
    b"touch",
    b"truncate",
    b"unlink",
    b"unxz",
    b"xz",
    b"zstd",
];
/// Those whose last argument is where the files go.
const HAS_DESTINATION: [&[u8]; 4] = [b"cp", b"install", b"ln", b"mv"];
/// Given to xargs and find, these mean something else with more arguments, or do not do the work themselves.
const NOT_TOGETHER: [&[u8]; 34] = [
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
/// More than this need not be one launch: the fixed part is small by then, and the command line must not get too long.
const MOST_AT_ONCE: usize = 1000;
/// So many batches for each process that xargs runs at a time keep them all busy.
const BATCHES_EACH: usize = 4;
const MOST_FINDINGS: usize = 3;
/// This share of the files, in percent, must differ: `rm -f conftest.o` again and again is no list of files.
const LEAST_DISTINCT: usize = 80;

/// Who launches one by one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Launcher {
    /// `xargs`, with how many at a time, and whether it puts each in a place of its own (-I).
    Xargs {
        parallel: usize,
        replaces: bool,
    },
    Find,
    Shell(Dialect),
}

/// Launches that differ in one argument.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Kind<'a> {
    launcher: Launcher,
    parent: &'a [u8],
    program: &'a [u8],
    has_destination: bool,
}

/// What launches that become one have in common: all arguments but the one that varies.
type Common<'a> = Vec<&'a [u8]>;

pub(super) fn find(ground: &Ground<'_, '_>) -> Vec<Finding> {
    let mut kinds: BTreeMap<Kind<'_>, Vec<Vec<u32>>> = BTreeMap::new();
    for parent in 0..ground.forest().launches.len() {
        for (kind, batch) in batches_of(ground, parent) {
            kinds.entry(kind).or_default().push(batch);
        }
    }
    let groups = kinds.iter().map(|(kind, batches)| {
        let mut all = batches.concat();
        all.sort_unstable();
        (kind, all)
    });
    largest(ground, groups, MOST_FINDINGS)
        .into_iter()
        .map(|(kind, all)| finding(ground, kind, all, &kinds[kind]))
        .collect()
}

/// The launches of one process that could be one each.
fn batches_of<'a>(ground: &Ground<'_, 'a>, parent: usize) -> Vec<(Kind<'a>, Vec<u32>)> {
    let forest = ground.forest();
    let children = forest.children(parent);
    if children.len() < HABIT {
        return Vec::new();
    }
    let mut alike: BTreeMap<(Kind<'a>, Common<'a>), Vec<(u32, &'a [u8])>> = BTreeMap::new();
    // A process may exec between two launches, but hardly a launcher of this sort: the first child tells for all.
    let Some(launcher) = parent_program(forest, children[0]).and_then(|exec| launcher(exec, ground)) else {
        return Vec::new();
    };
    for &index in children {
        if let Some((kind, common, varying)) = one_of_many(ground, index, launcher) {
            alike.entry((kind, common)).or_default().push((index as u32, varying));
        }
    }
    let are_files = |files: &[(u32, &[u8])]| {
        let distinct: HashSet<&[u8]> = files.iter().map(|(_, file)| *file).collect();
        files.len() > 1 && distinct.len() * 100 >= files.len() * LEAST_DISTINCT
    };
    alike
        .into_iter()
        .filter(|(_, files)| are_files(files))
        .map(|((kind, _), files)| (kind, files.into_iter().map(|(index, _)| index).collect()))
        .collect()
}

fn one_of_many<'a>(
    ground: &Ground<'_, 'a>,
    index: usize,
    launcher: Launcher,
) -> Option<(Kind<'a>, Common<'a>, &'a [u8])> {
    let launch = &ground.forest().launches[index];
    let [exec] = &launch.execs[..] else { return None };
    let program = launch.command.name;
    let is_fit = match launcher {
        Launcher::Shell(_) => TAKES_MANY.contains(&program),
        _ => !NOT_TOGETHER.contains(&program) && !program.starts_with(b"python"),
    };
    if !is_fit || exec.interpreter.is_some() || exec.argv_cut || !is_mostly_tax(ground, index) {
        return None;
    }
    if matches!(launcher, Launcher::Shell(_)) && is_captured(ground.forest(), ground.whatif.timelines, index as u32) {
        return None;
    }
    let mut common: Common<'a> = exec.arguments().collect();
    let has_destination = HAS_DESTINATION.contains(&program) && common.len() > 2 && !common.contains(&b"-t".as_slice());
    let at = common
        .len()
        .checked_sub(if has_destination { 2 } else { 1 })
        .filter(|at| *at > 0)?;
    let varying = common.remove(at);
    // Two files of which neither is an option: not one of a list.
    let has_other_file = common
        .iter()
        .skip(1)
        .take(at - 1)
        .any(|argument| !argument.starts_with(b"-"));
    let is_option = varying.starts_with(b"-");
    if is_option || (has_other_file && matches!(launcher, Launcher::Shell(_)) && has_destination) {
        return None;
    }
    let kind = Kind {
        launcher,
        parent: launch.birth_command.name,
        program,
        has_destination,
    };
    Some((kind, common, varying))
}

fn launcher(exec: &Exec<'_>, ground: &Ground<'_, '_>) -> Option<Launcher> {
    let program = runs(exec);
    let arguments: Vec<String> = exec.arguments().map(name).collect();
    match program {
        b"xargs" | b"gxargs" => xargs(&arguments, ground.recording.info.cpus as usize),
        // With anything behind its `;` the command is a test, whose answer find needs for each file.
        b"find" | b"gfind" => (arguments.last().is_some_and(|last| last == ";")).then_some(Launcher::Find),
        _ => Dialect::of_program(program).map(Launcher::Shell),
    }
}

/// xargs, if it was told to take one at a time.
fn xargs(arguments: &[String], cpus: usize) -> Option<Launcher> {
    let mut parallel = 1;
    let (mut is_single, mut replaces) = (false, false);
    let mut words = arguments.iter().skip(1).map(String::as_str);
    while let Some(word) = words.next() {
        let (option, mut value) = match word {
            _ if word.starts_with("--") => word
                .split_once('=')
                .map_or((word, None), |(option, value)| (option, Some(value))),
            _ if word.starts_with('-') && word.len() > 2 && word.is_char_boundary(2) => (&word[..2], Some(&word[2..])),
            _ if word.starts_with('-') => (word, None),
            _ => break,
        };
        if value.is_none() && matches!(option, "-n" | "-L" | "-P" | "-I" | "-d" | "-s" | "-a" | "-E") {
            value = words.next();
        }
        match (option, value) {
            ("-n" | "-L" | "--max-args" | "--max-lines", Some("1")) => is_single = true,
            ("-I" | "-i" | "--replace", _) => (is_single, replaces) = (true, true),
            ("-P" | "--max-procs", Some(value)) => {
                parallel = value.parse().ok().filter(|parallel| *parallel > 0).unwrap_or(cpus);
            }
            _ => {}
        }
    }
    is_single.then_some(Launcher::Xargs { parallel, replaces })
}

/// So many files go to one launch.
fn size(kind: &Kind<'_>, count: usize) -> usize {
    match kind.launcher {
        Launcher::Xargs { parallel, .. } if parallel > 1 => (count / (parallel * BATCHES_EACH)).clamp(2, MOST_AT_ONCE),
        _ => MOST_AT_ONCE,
    }
}

fn finding(ground: &Ground<'_, '_>, kind: &Kind<'_>, all: Vec<u32>, batches: &[Vec<u32>]) -> Finding {
    let (program, parent) = (name(kind.program), name(kind.parent));
    let size = size(kind, all.len() / batches.len());
    let remaining: usize = batches.iter().map(|batch| batch.len().div_ceil(size)).sum();
    let fix = |batch: &Vec<u32>| Fix {
        change: Change::Batch(size as u32),
        launches: batch.clone(),
    };
    Finding {
        rule: "batch",
        title: format!(
            "{parent} launches {program} {} times with one file each",
            units::count(all.len() as u64)
        ),
        evidence: vec![
            format!(
                "{} take {} in all, and differ in one argument",
                launches(all.len()),
                time(ground.spent_on(&all))
            ),
            format!("{} would do the same", launches(remaining)),
        ],
        example: ground.example(&all),
        fix: snippet(ground, kind, &all, size),
        limits: format!(
            "for programs that treat every file alike: {program} then sees them all at once, its output is that of all, and one \
             status stands for all; what a loop does with a file afterwards has to wait until then"
        ),
        whatif: format!("{}={size}", option("--batch", kind.program, kind.parent)),
        tries: batches.iter().map(fix).collect(),
        basis: Basis::Modelled,
        launches: all,
    }
}

fn snippet(ground: &Ground<'_, '_>, kind: &Kind<'_>, all: &[u32], size: usize) -> Vec<String> {
    let argv = ground.example(all);
    let varying = argv.len().saturating_sub(if kind.has_destination { 2 } else { 1 });
    let words = |range: std::ops::Range<usize>| -> String {
        let words = argv.get(range).unwrap_or_default().iter();
        words.map(|word| quoted(&name(word)) + " ").collect()
    };
    let options = words(1..varying.max(1));
    let program = name(kind.program);
    let destination = if kind.has_destination {
        format!("-t {}", words(varying + 1..argv.len()))
    } else {
        String::new()
    };
    let one = |file: &str| {
        let target = if kind.has_destination {
            words(varying + 1..argv.len())
        } else {
            String::new()
        };
        format!("{program} {options}{file} {target}").trim_end().to_owned()
    };
    let together = format!("{program} {options}{destination}");
    let together = together.trim_end();
    let (before, after) = match kind.launcher {
        Launcher::Xargs { parallel, replaces } => {
            let at_a_time = if parallel > 1 {
                format!(" -n{size} -P{parallel}")
            } else {
                String::new()
            };
            let before = if replaces { "xargs -I{} " } else { "xargs -n1 " };
            let file = if replaces { "{}" } else { "" };
            (
                format!("{before}{}", one(file).trim_end()),
                format!("xargs{at_a_time} {together}"),
            )
        }
        Launcher::Find => (
            format!("find ... -exec {} \\;", one("{}")),
            format!("find ... -exec {together} {{}} +"),
        ),
        Launcher::Shell(Dialect::Posix) => (
            format!("for f in *; do {}; done", one("\"$f\"")),
            format!("{together} -- *"),
        ),
        Launcher::Shell(_) => (
            format!("for f in \"${{files[@]}}\"; do {}; done", one("\"$f\"")),
            format!("{together} -- \"${{files[@]}}\""),
        ),
    };
    let mut fix = vec!["give it many files at once:".to_owned()];
    fix.extend(instead(&before, &after));
    if matches!(kind.launcher, Launcher::Xargs { .. }) && kind.has_destination {
        fix.push("  (-t names the directory first: the files can come last, without -I)".to_owned());
    }
    fix
}
