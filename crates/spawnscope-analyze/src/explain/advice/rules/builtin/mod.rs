//! Small programs that a shell launches although it can do their work itself. `row` reads the table
//! of replacements; `text` and `sed` compute replacements that depend on the recorded arguments.
//! Calls that cannot be replaced reliably are skipped.

mod call;
mod edits;
mod row;
mod sed;
mod text;

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::explain::advice::context::{MIN_REPETITIONS, RuleContext};
use crate::explain::advice::finding::Finding;
use crate::explain::advice::languages::functions;
use crate::explain::advice::phrases::{name, replacement, times};
use crate::explain::advice::shared_line::arguments_of;
use crate::model::grouped::grouped;
use crate::model::launch::Exec;
use crate::patterns::chains::is_in_version_manager;
use crate::patterns::pipeline::{PipelineUnit, writer_of};
use crate::patterns::programs::has_property;
use crate::patterns::shells::{Dialect, is_in_needless_shell};
use crate::predict::whatif::AppliedChange;
use crate::predict::whatif::changes::Change;
use call::{Call, Substitute};
pub(in crate::explain::advice) use edits::edits;
use row::{Row, TABLE};
use spawnscope_data::event::{Mechanism, Nanos};
use spawnscope_data::rows::TextId;
use spawnscope_data::units;

/// Maximum number of programs that are reported.
const MAX_FINDINGS: usize = 5;
/// Maximum number of different calls that are shown per program.
const MAX_FORMS: usize = 4;
/// The lengths of replacements that the title shows, in characters.
const TITLE_LENGTHS: RangeInclusive<usize> = 3..=24;

/// A launch that the shell can replace.
struct NeedlessLaunch {
    launch: u32,
    /// The launches that the replacement saves, including `launch`.
    unit: Vec<u32>,
    /// Forks of the shell in `unit`.
    forks: Vec<u32>,
    substitute: Arc<Substitute>,
}

/// The texts of a call, the dialect of its shell, and whether it is fed, captured, and prints its
/// result.
type Given = ([Option<TextId>; 3], Dialect, [bool; 3]);

/// What is computed once for a recording.
#[derive(Default)]
pub(crate) struct Substitutes {
    /// The replacements of all calls that were asked for.
    known: Mutex<HashMap<Given, Option<Arc<Substitute>>>>,
    needless: OnceLock<Vec<NeedlessLaunch>>,
}

pub(super) fn find(context: &RuleContext<'_, '_>) -> Vec<Finding> {
    let by_kind = grouped(find_needless(context).iter().map(|needless| {
        let launch = context.launch(needless.launch);
        ((launch.birth_command.name, launch.command.name), needless)
    }));
    let groups = by_kind.iter().map(|(kind, needless)| {
        let mut launches: Vec<u32> = needless.iter().map(|needless| needless.launch).collect();
        launches.sort_unstable();
        (kind, launches)
    });
    context
        .longest_frequent(groups, MAX_FINDINGS)
        .filter_map(|(kind, launches)| finding(context, launches, &by_kind[kind]))
        .collect()
}

/// Returns all launches that a shell can replace.
fn find_needless<'g>(context: &RuleContext<'g, '_>) -> &'g [NeedlessLaunch] {
    let Some(Substitutes { needless, .. }) = context.substitutes.downcast_ref() else { return &[] };
    needless.get_or_init(|| {
        let forest = context.forest();
        let siblings = (0..forest.launches.len()).map(|parent| forest.children(parent));
        let all = siblings.flat_map(|siblings| (0..siblings.len()).map(move |position| (siblings, position)));
        all.filter_map(|(siblings, position)| needless_at(context, siblings, position)).collect()
    })
}

/// Returns the shell forks that exist only for launches that this rule finds.
pub(super) fn forks_for_programs(context: &RuleContext<'_, '_>) -> HashSet<u32> {
    find_needless(context).iter().flat_map(|needless| &needless.forks).copied().collect()
}

/// Returns the lines of a fix for some of the launches. Empty if none can be replaced exactly.
pub(in crate::explain::advice) fn fix_of(context: &RuleContext<'_, '_>, launches: &[u32]) -> Vec<String> {
    let all = find_needless(context);
    let launches: HashSet<u32> = launches.iter().copied().filter(|_| !all.is_empty()).collect();
    let needless: Vec<&NeedlessLaunch> = all.iter().filter(|each| launches.contains(&each.launch)).collect();
    if needless.is_empty() { Vec::new() } else { instructions(&forms_of(&needless)) }
}

/// Whether a shell launched a program that this rule can replace.
pub(in crate::explain::advice) fn can_replace(context: &RuleContext<'_, '_>, index: u32) -> bool {
    let program = context.launch(index).command.name;
    TABLE.contains_key(program) && Dialect::of_parent(context.forest(), index as usize).is_some()
}

/// Whether a launch reads each line that another program prints. There may be many, and the shell
/// executes commands for each.
pub(in crate::explain::advice) fn may_read_much(context: &RuleContext<'_, '_>, index: u32) -> bool {
    let reads_all = has_property(context.launch(index).command.name, "all-lines");
    let writer = writer_of(context.forest(), index).filter(|_| reads_all);
    writer.is_some_and(|writer| !context.launch(writer as u32).execs.is_empty())
}

/// Returns how the code that made some launches of a program does their work itself. Empty if it is
/// not known to: no shell does what openssl does.
pub(in crate::explain::advice) fn without_launching(context: &RuleContext<'_, '_>, launches: &[u32]) -> Vec<String> {
    if !launches.iter().all(|launch| functions_or_code(context, *launch)) {
        return Vec::new();
    }
    let exact = fix_of(context, launches);
    let mut own = launches.iter().filter(|_| exact.is_empty());
    let functions = own.find_map(|launch| functions(context, *launch)).map(|functions| format!("  {functions}"));
    exact.iter().skip(1).map(|line| without_count(line)).chain(functions).collect()
}

/// Returns a replacement without the number of its calls, which differs from line to line.
pub(in crate::explain::advice) fn without_count(line: &str) -> String {
    line.split("   (").next().unwrap_or_default().to_owned()
}

/// Whether the code that made a launch can do its work.
pub(in crate::explain::advice) fn functions_or_code(context: &RuleContext<'_, '_>, launch: u32) -> bool {
    code_for(context, launch).is_some() || functions(context, launch).is_some()
}

/// Returns the shell code that replaces a launch. The first child of a shell reads what no other
/// child writes, such as a file.
pub(in crate::explain::advice) fn code_for(context: &RuleContext<'_, '_>, index: u32) -> Option<String> {
    let can_be_fed = context.forest().siblings(index as usize).is_some_and(|(_, at)| at > 0);
    Some(substitute_of(context, index as usize, [can_be_fed, true, false])?.after.clone())
}

/// Returns the replacement of a call that is fed, captured, and prints its result, or not. Most
/// calls are like others.
fn substitute_of(context: &RuleContext<'_, '_>, index: usize, given: [bool; 3]) -> Option<Arc<Substitute>> {
    let [exec] = &context.forest().launches[index].execs[..] else { return None };
    let key = (exec.texts(), Dialect::of_parent(context.forest(), index)?, given);
    let Substitutes { known, .. } = context.substitutes.downcast_ref()?;
    let known = || known.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = known().get(&key).filter(|_| !exec.argv_cut) {
        return known.clone();
    }
    let (rows, call) = call_of(context, index)?;
    let [is_fed, is_captured, is_printed] = given;
    let call = Call { is_fed, is_captured, ..call };
    let substitute = rows.iter().find(|row| row.matches(&call)).and_then(|row| row.substitute(&call));
    let substitute = substitute.map(|each| Arc::new(if is_printed { each.with_printed_result() } else { each }));
    known().insert(key, substitute.clone());
    substitute
}

/// Returns the call of a program in the table, as if it was part of `$(echo ... | PROGRAM)`, and
/// the rows of the program.
fn call_of(context: &RuleContext<'_, '_>, index: usize) -> Option<(&'static [Row], Call)> {
    let launch = &context.forest().launches[index];
    let [exec] = &launch.execs[..] else { return None };
    let rows = TABLE.get(launch.command.name)?;
    let call = Call {
        program: name(launch.command.name),
        arguments: arguments_of(exec).into_iter().map(name).collect(),
        dialect: Dialect::of_parent(context.forest(), index)?,
        is_fed: true,
        is_captured: true,
    };
    (!exec.argv_cut).then_some((&rows[..], call))
}

/// Returns the launch at a position among its siblings if the shell can replace it.
fn needless_at(context: &RuleContext<'_, '_>, siblings: &[usize], position: usize) -> Option<NeedlessLaunch> {
    let forest = context.forest();
    let index = siblings[position];
    let launch = &forest.launches[index];
    if !can_replace(context, index as u32) || !launch.is_launch() || !forest.children(index).is_empty() {
        return None;
    }
    let pipeline = PipelineUnit::of(forest, context.timelines(), siblings, position);
    let is_small = if pipeline.is_fed || filters_one_line(context, index as u32) {
        context.small_work.is_mostly_tax_by_cpu_time(index)
    } else {
        context.small_work.is_mostly_tax(index)
    };
    // The work of `which`, a script without input, is as small as that of a builtin. The user does
    // not maintain the scripts of a version manager.
    if !is_small && launch.command.name != b"which"
        || is_in_version_manager(forest, index as u32)
        || is_in_needless_shell(forest, index as u32)
    {
        return None;
    }
    // Shells use vfork only for plain commands. For $( ) and pipelines they fork.
    let is_plain = launch.mechanism == Some(Mechanism::Vfork) && !pipeline.is_captured;
    let substitute = substitute_of(context, index, [pipeline.is_fed, pipeline.is_captured, is_plain])?;
    Some(NeedlessLaunch { launch: index as u32, unit: pipeline.unit, forks: pipeline.forks, substitute })
}

/// Whether a launch waits in a pipeline for the one line that another program prints.
fn filters_one_line(context: &RuleContext<'_, '_>, index: u32) -> bool {
    let Some(writer) = writer_of(context.forest(), index).map(|writer| context.launch(writer as u32)) else {
        return false;
    };
    let prints_one = |exec: &Exec<'_>| exec.arguments().skip(1).filter(|word| !word.starts_with(b"-")).count() == 1;
    has_property(writer.command.name, "one-line")
        || has_property(writer.command.name, "line-each") && writer.execs.last().is_some_and(prints_one)
}

fn finding(context: &RuleContext<'_, '_>, all: Vec<u32>, needless: &[&NeedlessLaunch]) -> Option<Finding> {
    let changes = changes_to_replay(needless);
    if changes.iter().map(|fix| fix.launches.len()).sum::<usize>() < MIN_REPETITIONS {
        return None;
    }
    let forms = forms_of(needless);
    let is_short = |form: &&Substitute| !form.is_builtin && TITLE_LENGTHS.contains(&form.after.chars().count());
    let short = forms.first().map(|(form, _)| *form).filter(is_short);
    let taxes = all.iter().filter_map(|index| context.launch(*index).tax());
    let tax = Nanos(taxes.map(|tax| tax.0).sum());
    let forks: HashSet<&u32> = needless.iter().flat_map(|needless| &needless.forks).collect();
    let forked = units::counted(forks.len() as u64, "fork of the shell exists", "forks of the shell exist");
    let values = [
        ("short", short.map_or("", |form| &form.after)),
        ("similar", if forms.len() > 1 { " and similar code" } else { "" }),
        ("share", &units::percent(tax, context.spent_on(&all))),
        ("forked", if forks.is_empty() { "" } else { &forked }),
    ];
    let finding = Finding::of(context, "builtin", all, &[], &values)
        .fix_lines(instructions(&forms))
        .predicted_with(context, changes);
    Some(Finding { limits: limits(&forms), ..finding })
}

/// Returns the different calls of a program and their replacements, the most frequent first.
fn forms_of<'n>(needless: &[&'n NeedlessLaunch]) -> Vec<(&'n Substitute, usize)> {
    let by_form = grouped(needless.iter().map(|each| (&*each.substitute, ()))).into_iter();
    let mut forms: Vec<(&Substitute, usize)> = by_form.map(|(form, all)| (form, all.len())).collect();
    forms.sort_by_key(|(_, count)| Reverse(*count));
    forms
}

fn limits(forms: &[(&Substitute, usize)]) -> String {
    let shown = forms.iter().take(MAX_FORMS);
    let limits: BTreeSet<&str> = shown.flat_map(|(form, _)| &form.limits).copied().collect();
    let limits: Vec<&str> = limits.into_iter().collect();
    limits.join("; ")
}

fn instructions(forms: &[(&Substitute, usize)]) -> Vec<String> {
    let mut lines = vec!["do the work in the shell:".to_owned()];
    for (form, count) in forms.iter().take(MAX_FORMS) {
        lines.extend(replacement(&form.before, &format!("{}   ({})", form.after, times(*count))));
    }
    if forms.len() > MAX_FORMS {
        let rest: usize = forms[MAX_FORMS..].iter().map(|(_, count)| count).sum();
        lines.push(format!("  and similar code for other arguments ({})", times(rest)));
    }
    lines
}

/// Returns the changes to replay: the removal of launches, and programs that become builtins.
fn changes_to_replay(needless: &[&NeedlessLaunch]) -> Vec<AppliedChange> {
    let (mut removed, mut builtin) = (Vec::new(), Vec::new());
    for each in needless {
        match each.substitute.is_builtin {
            false => removed.extend(&each.unit),
            true => builtin.push(each.launch),
        }
    }
    let changes = [(Change::Remove, removed), (Change::Builtin, builtin)].into_iter();
    let changes = changes.filter(|(_, launches)| !launches.is_empty());
    changes.map(|(change, launches)| AppliedChange { change, launches }).collect()
}

/// For `fuzz/`: looks up the substitute for a call of each program in the table with the arguments
/// `words`. `flags` encodes the context of the call.
#[cfg(fuzzing)]
pub fn substitute_for_fuzzing(flags: u8, words: &[&str]) {
    let dialects = [Dialect::Posix, Dialect::Bash, Dialect::Ksh, Dialect::Zsh];
    for (program, rows) in &*TABLE {
        let call = Call {
            program: name(program),
            arguments: words.iter().map(|word| (*word).to_owned()).collect(),
            dialect: dialects[usize::from(flags & 3)],
            is_fed: flags & 4 != 0,
            is_captured: flags & 8 != 0,
        };
        // Only panics count: control characters in a result are escaped when it is shown.
        let _ = rows.iter().filter(|row| row.matches(&call)).map(|row| row.substitute(&call)).count();
    }
}
