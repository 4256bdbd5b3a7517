//! `mv`, `cp`, `ln`, `rm`, `mkdir`, `chmod` and similar programs, launched once per file or per
//! pair of source and destination. One launch of these programs cannot take several pairs, but one
//! process of another program can do all the work.

use std::collections::{BTreeMap, HashSet};

use super::batch;
use crate::explain::advice::context::RuleContext;
use crate::explain::advice::finding::Finding;
use crate::explain::advice::phrases::{launches, name, option, time, times};
use crate::explain::advice::shared_line::SharedLine;
use crate::explain::advice::thresholds::{MIN_REPETITIONS, is_mostly_tax, longest_groups};
use crate::patterns::chains::is_in_version_manager;
use crate::patterns::runtimes::Runtime;
use crate::predict::whatif::changes::Change;

const MAX_FINDINGS: usize = 3;
/// Maximum number of files for one process.
const MAX_BATCH: u32 = 1000;
/// Programs that take a source and a destination.
const PAIRS: [&[u8]; 4] = [b"cp", b"install", b"ln", b"mv"];
/// Programs that take any number of files.
const LISTS: [&[u8]; 7] = [b"chgrp", b"chmod", b"chown", b"mkdir", b"rm", b"rmdir", b"touch"];
/// Minimum share of distinct command lines, in percent.
const MIN_DISTINCT_PERCENT: usize = 80;

pub(super) fn find(context: &RuleContext<'_, '_>) -> Vec<Finding> {
    let forest = context.forest();
    let batched = batch::batched_launches(context);
    let mut by_kind: BTreeMap<(&[u8], &[u8]), Vec<u32>> = BTreeMap::new();
    for parent in 0..forest.launches.len() {
        let mut of_parent: BTreeMap<(&[u8], &[u8]), Vec<u32>> = BTreeMap::new();
        for &index in forest.children(parent) {
            let launch = &forest.launches[index];
            let program = launch.command.name;
            let is_known = PAIRS.contains(&program) || LISTS.contains(&program);
            if is_known
                && launch.execs.len() == 1
                && !batched.contains(&(index as u32))
                && is_mostly_tax(context, index)
            {
                let key = (launch.birth_command.name, program);
                of_parent.entry(key).or_default().push(index as u32);
            }
        }
        let lists = of_parent.into_iter().filter(|(_, all)| is_list_of_files(context, all));
        lists.for_each(|(key, mut all)| by_kind.entry(key).or_default().append(&mut all));
    }
    by_kind.retain(|_, all| !is_in_version_manager(forest, all[0]));
    longest_groups(context, by_kind, MAX_FINDINGS)
        .into_iter()
        .map(|((parent, program), mut all)| {
            all.sort_unstable();
            finding(context, parent, program, all)
        })
        .collect()
}

/// Whether enough launches by one process operate on different files. Repeated calls such as `rm
/// -f conftest.o` are not a list of files.
fn is_list_of_files(context: &RuleContext<'_, '_>, all: &[u32]) -> bool {
    let lines = all.iter().filter_map(|index| Some(context.launch(*index).execs.last()?.argv()));
    let distinct: HashSet<&[u8]> = lines.collect();
    all.len() >= MIN_REPETITIONS && distinct.len() * 100 >= all.len() * MIN_DISTINCT_PERCENT
}

fn finding(context: &RuleContext<'_, '_>, parent: &[u8], program: &[u8], all: Vec<u32>) -> Finding {
    let is_pair = PAIRS.contains(&program);
    let unit_text = if is_pair { "once per pair of files" } else { "once per file" };
    let title = format!("{} launches {} {}, {unit_text}", name(parent), name(program), times(all.len()));
    let evidence = format!(
        "{} take {} in all, most of it launch tax: the work of each is only one or two system calls",
        launches(all.len()),
        time(context.spent_on(&all))
    );
    let runtime = Runtime::of_parent(context.forest(), all[0]);
    let line = SharedLine::of(context, &all);
    Finding::modelled("many-files", title, all)
        .evidence(evidence)
        .with_example(context)
        .fix_lines(fix(runtime, program, is_pair, line))
        .limits(if program == b"mv" && runtime != Runtime::Shell { MV_LIMITS } else { LIMITS })
        .predicted_by(Change::Batch(MAX_BATCH), format!("{}={MAX_BATCH}", option("--batch", program, parent)))
}

const LIMITS: &str =
    "a single process must check each file for errors itself; steps that need a result must come after it";
const MV_LIMITS: &str = "a single process must check each file for errors itself; steps that need a file under its new name must come \
                         after it; unlike mv, rename() does not move files to another file system";

fn fix(runtime: Runtime, program: &[u8], is_pair: bool, line: Option<SharedLine>) -> Vec<String> {
    let functions = match runtime {
        Runtime::Python => Some("os.rename, shutil.copy2, os.symlink, os.unlink, os.makedirs, os.chmod"),
        Runtime::Perl => Some("rename, File::Copy::copy, symlink, unlink, mkdir, chmod"),
        Runtime::Raku | Runtime::Php => Some("rename, copy, symlink, unlink, mkdir, chmod"),
        Runtime::Ruby => Some("FileUtils.mv, cp, ln_s, rm, mkdir_p, chmod"),
        Runtime::Node => Some("fs.renameSync, copyFileSync, symlinkSync, rmSync, mkdirSync, chmodSync"),
        Runtime::Go => Some("os.Rename, os.Symlink, os.Remove, os.MkdirAll, os.Chmod"),
        Runtime::Rust => Some("std::fs::rename, copy, remove_file, create_dir_all, set_permissions"),
        _ => None,
    };
    if let Some(functions) = functions {
        return vec![
            "call functions of the language instead, which launch nothing:".to_owned(),
            format!("  {functions}"),
        ];
    }
    let program = name(program);
    match (is_pair, line) {
        (false, line) => list_fix(&program, line),
        (true, line) => pairs_fix(&program, line.as_ref()),
    }
}

/// Keeps the options that all launches share.
fn list_fix(program: &str, line: Option<SharedLine>) -> Vec<String> {
    let command = line.and_then(|line| line.before_inputs()).unwrap_or_else(|| format!("{program} OPTIONS..."));
    vec![
        format!("collect the files in the loop, and launch {program} once after it:"),
        format!("  printf '%s\\0' \"$file\"   in the loop, and after it:  done | xargs -0 {command} --"),
    ]
}

fn pairs_fix(program: &str, line: Option<&SharedLine>) -> Vec<String> {
    let words = line.map_or(0, SharedLine::len);
    let function = match (program, line.and_then(|line| line.text(1..words.saturating_sub(2))).as_deref()) {
        ("mv", Some("")) => Some("mv(@f)"),
        ("cp", Some("")) => Some("cp(@f)"),
        ("ln", Some("-s")) => Some("symlink($f[0], $f[1])"),
        _ => None,
    };
    let mut fix = Vec::new();
    if let Some(function) = function {
        fix.extend([
            "print the pairs in the loop, and let one process handle all of them:".to_owned(),
            "  printf '%s\\0%s\\0' \"$from\" \"$to\"   in the loop, and after it:".to_owned(),
            format!("  done | {}", one_process(function)),
        ]);
    }
    let or = if fix.is_empty() { "" } else { "or " };
    fix.push(format!(
        "{or}sort them by destination directory, and launch {program} once for each: `{program} -t DIRECTORY FILES...`"
    ));
    fix
}

/// Returns a command that reads pairs of NUL-terminated names. As for `mv`, a destination that is a directory gets the file's name, and a
/// failure is reported and changes the exit status.
fn one_process(function: &str) -> String {
    format!(
        "perl -MFile::Copy=cp,mv -0 -ne 'chomp; push @f, $_; next if @f < 2; if (-d $f[1]) {{ my ($n) = $f[0] =~ m{{([^/]+)/*\\z}}; \
         $f[1] .= \"/$n\" }} {function} or warn(\"$f[1]: $!\\n\"), $bad = 1; @f = (); END {{ $? = 1 if $bad }}'"
    )
}
