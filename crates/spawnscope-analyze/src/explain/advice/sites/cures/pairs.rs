//! `mv`, `cp`, `ln` and `install`, launched once per pair of source and destination. One launch cannot take several pairs, but one process of
//! another program can do all the work.

use super::{Cure, MANY, certain, files, finding, shared_line};
use crate::explain::advice::context::RuleContext;
use crate::explain::advice::phrases::{name, option};
use crate::explain::advice::programs::HAS_DESTINATION;
use crate::explain::advice::shared_line::SharedLine;
use crate::explain::advice::sites::Site;
use crate::explain::advice::thresholds::{MIN_REPETITIONS, is_mostly_tax};
use crate::patterns::runtimes::Runtime;
use crate::predict::whatif::changes::Change;

/// Maximum number of files for one process.
const MAX_BATCH: u32 = 1000;

/// Returns the cure of a shell that handles one pair of files at a time.
pub(super) fn cure(context: &RuleContext<'_, '_>, site: &Site<'_>) -> Option<Cure> {
    let command = context.launch(site.launches[0]).command.name;
    let mut all = site.launches.clone();
    all.retain(|index| context.launch(*index).execs.len() == 1 && is_mostly_tax(context, *index as usize));
    let batched: usize = files::batches(context, &all).iter().map(|(_, batch)| batch.len()).sum();
    if !HAS_DESTINATION.contains(command)
        || all.len() < MIN_REPETITIONS
        || batched * 2 > all.len()
        || Runtime::of_parent(context.forest(), all[0]) != Runtime::Shell
    {
        return None;
    }
    let line = shared_line(context, &all)?;
    let with = format!("{}={MAX_BATCH}", option("--batch", command, site.parent));
    let finding = finding(context, site, MANY, ", once per pair of files", all)
        .fix_lines(fix(&name(command), &line))
        .limits("a single process must check each file for errors itself; steps that need a result must come after it");
    Some(certain(finding.predicted_by(Change::Batch(MAX_BATCH), with)))
}

fn fix(program: &str, line: &SharedLine) -> Vec<String> {
    let function = match (program, line.text(1..line.len().saturating_sub(2)).as_deref()) {
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
    let options = line.text(1..line.len().saturating_sub(2)).filter(|options| !options.is_empty());
    let options = options.map_or(String::new(), |options| format!(" {options}"));
    fix.push(format!(
        "{or}sort them by destination directory, and launch {program} once for each: `{program}{options} -t DIRECTORY FILES...`"
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
