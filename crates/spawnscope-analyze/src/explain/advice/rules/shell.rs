//! Shells that are needless, because the command of their `sh -c` needs none, or only for features
//! that the caller has too, such as redirections. What shells launch needlessly, besides single
//! small programs (`builtin`): forks that never exec, which are `$( )` around functions and
//! builtins, `( )`, and builtins in a pipeline; programs of a pipeline whose work their neighbour
//! can do, such as `cat file | grep x | wc -l` in place of `grep -c x file`; and lines that launch
//! several small programs, such as `x=$(echo "$y" | sed s/a/b/ | cut -d: -f1)`. One line is one
//! cause, and its launches are saved together.

use std::collections::{BTreeMap, BTreeSet};

use super::builtin;
use crate::explain::advice::context::{MIN_REPETITIONS, RuleContext};
use crate::explain::advice::edit::Filter;
use crate::explain::advice::finding::Finding;
use crate::explain::advice::languages::{functions, language};
use crate::explain::advice::phrases::{WITHOUT_SHELL_LIMIT, literal, name, quoted, time, times};
use crate::explain::advice::small_work::{judge_by_line, lines};
use crate::explain::advice::tables::case;
use crate::model::grouped::grouped;
use crate::model::launch::{Exec, Launch, NOT_FOUND, base_name};
use crate::patterns::chains::is_in_version_manager;
use crate::patterns::pipeline::{is_bare_fork, overlap};
use crate::patterns::programs::has_property;
use crate::patterns::runtimes::Runtime;
use crate::patterns::shell_syntax::{Need, need_of};
use crate::patterns::shells::{Dialect, command_of, needless_shell, wrapped_child};
use crate::predict::whatif::AppliedChange;
use crate::predict::whatif::changes::Change;
use spawnscope_data::units;

/// GNU parallel, which always uses a shell for its jobs.
pub(in crate::explain::advice) const PARALLEL: &[u8] = b"parallel";
/// Maximum number of findings of each kind.
const MAX_FINDINGS: usize = 3;
/// A fork that runs longer than this multiple of its launch cost does real work, which the fix
/// would not remove.
const MAX_RUN_FACTOR: u64 = 3;
const GREPS: [&[u8]; 3] = [b"egrep", b"fgrep", b"grep"];
/// A line is reported if its launches take at least this share of the wall.
const MIN_SHARE: f64 = 0.05;
/// At least this share of the programs of a line must be small, in percent.
const MIN_SMALL_PERCENT: usize = 80;

pub(super) fn needless(context: &RuleContext<'_, '_>) -> Vec<Finding> {
    let by_parent = context.grouped_by(|index, launch| {
        let parent = launch.birth_command.name;
        // Code that can do the work of the program needs neither that nor the shell.
        let has_function =
            || wrapped_child(context.forest(), index).is_some_and(|program| functions(context, program).is_some());
        (parent != PARALLEL && is_needless(context, index) && !has_function()).then_some(parent)
    });
    by_parent.into_iter().map(|(parent, all)| without_shell(context, parent, all)).collect()
}

/// Whether a launch goes through a shell that its parent can leave out. `find`, `xargs` and make
/// need the shell for redirections, directories and variables: they have no options for these.
pub(in crate::explain::advice) fn is_needless(context: &RuleContext<'_, '_>, index: u32) -> bool {
    let has_no_options = has_property(context.launch(index).birth_command.name, "per-item")
        || Runtime::of_parent(context.forest(), index) == Runtime::Make;
    needless_shell(context.forest(), index).is_some() && !(has_no_options && count_with_syntax(context, &[index]) > 0)
}

/// Returns how many of the launches use shell syntax that the caller must replace.
fn count_with_syntax(context: &RuleContext<'_, '_>, all: &[u32]) -> usize {
    let with_syntax = all.iter().filter(|index| {
        let mut commands = context.launch(**index).execs.iter().filter_map(command_of);
        commands.any(|command| need_of(command) == Need::Caller)
    });
    with_syntax.count()
}

/// Returns what to do about launches through shells.
pub(in crate::explain::advice) fn without_shell(
    context: &RuleContext<'_, '_>,
    parent: &[u8],
    all: Vec<u32>,
) -> Finding {
    let runtime = Runtime::of_parent(context.forest(), all[0]);
    let language = language(runtime);
    let with_syntax = count_with_syntax(context, &all);
    let has_syntax = with_syntax > 0;
    let some = units::counted(with_syntax as u64, "command has", "commands have");
    let is_per_file = has_property(parent, "per-item");
    let parent_name = name(parent);
    let cases = [
        case(is_per_file, "files"),
        case(is_per_file, &parent_name),
        // Go makes system calls without libc, so a preloaded library cannot intercept them.
        case(with_syntax < all.len() && runtime != Runtime::Go && !is_per_file, "accel"),
    ];
    let values = [
        ("parent", &parent_name[..]),
        ("some", case(has_syntax, &some)),
        ("without_shell", language.without_shell),
        ("syntax", case(has_syntax, language.instead_of_syntax)),
        ("limit", WITHOUT_SHELL_LIMIT),
    ];
    Finding::of(context, "needless-shell", all, &cases, &values)
        .predicted_by(Change::NoShell, quoted(&format!("--no-shell=parent={}", literal(parent))))
}

pub(super) fn bare_forks(context: &RuleContext<'_, '_>) -> Vec<Finding> {
    let forest = context.forest();
    // The `builtin` rule reports these forks, together with the programs that they launch.
    let reported = builtin::forks_for_programs(context);
    // A shell forks for a program that it does not find, too.
    let is_candidate = |index: u32, launch: &Launch<'_>| {
        launch.outcome != NOT_FOUND && !reported.contains(&index) && is_bare_fork(forest, index as usize)
    };
    let shares = (0..)
        .zip(&forest.launches)
        .map(|(index, launch)| is_candidate(index, launch).then(|| share_of_work(context, index as usize)).flatten());
    let is_small = judge_by_line(&lines(forest), &shares.collect::<Vec<_>>());
    let small = (0..).zip(&forest.launches).filter(|(index, _)| is_small[*index as usize]);
    // Only forks of shells. Worker processes of other programs do not exec either, but do real
    // work.
    let by_parent = grouped(small.filter_map(|(index, launch)| {
        let dialect = Dialect::of_parent(forest, index as usize)?;
        (!is_in_version_manager(forest, index)).then_some(((launch.birth_command.name, dialect), index))
    }));
    let groups = context.longest_frequent(by_parent, MAX_FINDINGS);
    groups.map(|((_, dialect), launches)| without_exec(context, dialect, launches)).collect()
}

/// Returns the work of a fork as a multiple of the most that the fix would remove. Page copies at
/// the first write after the fork count as `run`, so even a fork for an `echo` runs about as long
/// as its launch takes.
fn share_of_work(context: &RuleContext<'_, '_>, index: usize) -> Option<f64> {
    let (run, launching) = (context.work_time(index)?, context.forest().launches[index].launch_cost()?);
    Some(run.0 as f64 / (MAX_RUN_FACTOR * launching.0.max(1)) as f64)
}

fn without_exec(context: &RuleContext<'_, '_>, dialect: Dialect, launches: Vec<u32>) -> Finding {
    let captured = launches.iter().filter(|index| context.is_captured(**index)).count();
    // Only forms that occur are of use.
    let cases =
        [&format!("{dialect:?}")[..], case(captured > 0, "captured"), case(captured < launches.len(), "others")];
    let values = [("some", &units::count(captured as u64)[..])];
    Finding::of(context, "bare-forks", launches, &cases, &values).predicted_as(context, Change::Remove)
}

/// A program of a pipeline that its neighbour can replace, and whether it is the first of the two.
type Needless = (&'static str, bool);

pub(super) fn pipelines(context: &RuleContext<'_, '_>) -> Vec<Finding> {
    let mut by_form: BTreeMap<([&[u8]; 2], Needless), BTreeSet<u32>> = BTreeMap::new();
    for parent in 0..context.forest().launches.len() {
        for pair in context.forest().children(parent).windows(2) {
            if let Some(form) = replacement_of(context, pair[0], pair[1]) {
                let launch = pair[usize::from(!form.1)] as u32;
                let names = [context.launch(launch).birth_command.name, context.launch(launch).command.name];
                by_form.entry((names, form)).or_default().insert(launch);
            }
        }
    }
    let groups = by_form.into_iter().map(|((_, (form, _)), all)| (form, Vec::from_iter(all)));
    let finding =
        |(form, all)| Finding::of(context, "pipeline", all, &[form], &[]).predicted_as(context, Change::Remove);
    context.longest_frequent(groups, MAX_FINDINGS).map(finding).collect()
}

/// Returns which of two neighbours in a pipeline of a shell is needless.
fn replacement_of(context: &RuleContext<'_, '_>, first: usize, second: usize) -> Option<Needless> {
    let forest = context.forest();
    let ([writer], [reader]) = (&forest.launches[first].execs[..], &forest.launches[second].execs[..]) else {
        return None;
    };
    if writer.argv_cut || reader.argv_cut {
        return None;
    }
    Dialect::of_parent(forest, first)?;
    let (writer_words, reader_words) = (words(writer), words(reader));
    let counts_lines = reader_words == (vec![b"-l"], 0);
    let has_no_options = writer_words.0.is_empty();
    let is_plain = writer_words.0.iter().all(|option| *option == b"-E");
    let needless = match (writer.program_name(), reader.program_name()) {
        (b"cat", reader) if has_no_options && writer_words.1 == 1 && reads_input(reader, &reader_words) => {
            ("cat", true)
        }
        (writer, b"wc") if GREPS.contains(&writer) && counts_lines && has_no_options => ("wc", false),
        (writer, b"head") if GREPS.contains(&writer) && has_no_options && reads_input(b"head", &reader_words) => {
            ("head", false)
        }
        // With -f, -k or -n, `sort -u` drops lines with equal keys, and uniq only equal lines.
        (b"sort", b"uniq") if has_no_options && reader_words == (Vec::new(), 0) => ("uniq", false),
        (writer, b"awk" | b"mawk" | b"gawk" | b"cut") if GREPS.contains(&writer) && is_plain => ("grep", true),
        _ => {
            let [words, next] = [writer, reader].map(|exec| exec.arguments().map(name).collect::<Vec<_>>());
            let (filter, follower) = (Filter::of(&words)?, Filter::of(&next)?);
            filter.joined(&follower).filter(|_| follower.own == next.len())?;
            ("sed", reader.program_name() == b"sed")
        }
    };
    overlap(forest, first, second).then_some(needless)
}

/// Returns the options of a program, and the number of its other words.
fn words<'a>(exec: &Exec<'a>) -> (Vec<&'a [u8]>, usize) {
    let (options, operands): (Vec<&[u8]>, Vec<&[u8]>) =
        exec.arguments().skip(1).partition(|word| word.starts_with(b"-") && word.len() > 1);
    (options, operands.len())
}

/// Whether a program reads standard input, because no argument is a file. Some programs have
/// operands that are not files, such as a pattern.
fn reads_input(program: &[u8], (options, operands): &(Vec<&[u8]>, usize)) -> bool {
    let other_operands = match program {
        b"tr" => 2,
        b"awk" | b"gawk" | b"mawk" | b"egrep" | b"fgrep" | b"grep" | b"jq" | b"sed" => 1,
        // The number of `head -n 5` looks like an operand.
        b"cut" | b"head" | b"tail" | b"sort" => usize::from(options.last().is_some_and(|last| last.len() == 2)),
        _ => 0,
    };
    *operands <= other_operands
}

pub(super) fn whole_lines(context: &RuleContext<'_, '_>) -> Vec<Finding> {
    let forest = context.forest();
    let by_line = context.grouped_by(|index, launch| {
        let number = context.sites.number_of(index as usize)?;
        let is_line = context.sites.call_site(number).line.is_some() && launch.is_launch();
        Dialect::of_parent(forest, index as usize).filter(|_| is_line).map(|_| number)
    });
    let lines = by_line.into_iter().filter(|(_, all)| is_shell_line(context, all));
    context.longest(lines, MAX_FINDINGS).filter_map(|(_, all)| whole_line(context, all)).collect()
}

/// Whether a shell can do all that a line launches, and a single program is not the whole of it.
fn is_shell_line(context: &RuleContext<'_, '_>, all: &[u32]) -> bool {
    let programs: BTreeSet<&[u8]> = programs(context, all);
    let forks = all.iter().filter(|index| context.launch(**index).execs.is_empty()).count();
    let executed = all.iter().filter(|index| !context.launch(**index).execs.is_empty());
    let small = executed.clone().filter(|index| context.small_work.is_mostly_tax_by_cpu_time(**index as usize)).count();
    let is_reversed = reverses_twice(context, all);
    let is_of_line = |child: &usize| all.binary_search(&(*child as u32)).is_ok();
    let can_replace = |index: &u32| {
        let launch = context.launch(*index);
        let is_known = is_reversed && launch.command.name == b"rev"
            || builtin::code_for(context, *index).is_some()
            || has_functions(context, *index);
        // A fork may run a function that launches other programs.
        let children = context.forest().children(*index as usize);
        children.iter().all(is_of_line) && (launch.execs.is_empty() || launch.execs.len() == 1 && is_known)
    };
    programs.len() + usize::from(forks > 0) > 1
        && !programs.is_empty()
        && all.len() >= 2 * MIN_REPETITIONS
        && small * 100 >= executed.count() * MIN_SMALL_PERCENT
        && all.iter().all(can_replace)
        && !all.iter().any(|index| builtin::may_read_much(context, *index))
        && context.spent_on(&tops(context, all)) >= context.share_of_wall(MIN_SHARE)
}

/// Whether the functions of a shell do the work of a launch. They are for texts: a shell would read
/// a file line by line.
fn has_functions(context: &RuleContext<'_, '_>, index: u32) -> bool {
    let reads_file = |exec: &Exec<'_>| !reads_input(exec.program_name(), &words(exec));
    let launch = context.launch(index);
    let is_filter = has_property(launch.command.name, "filter") && !has_property(launch.command.name, "no-files");
    functions(context, index).is_some() && !(is_filter && launch.execs.last().is_some_and(reads_file))
}

/// Whether a line looks for the last field of a text: `rev | cut -d. -f1 | rev`.
fn reverses_twice(context: &RuleContext<'_, '_>, all: &[u32]) -> bool {
    let count = |program: &[u8]| all.iter().filter(|index| context.launch(**index).command.name == program).count();
    count(b"cut") > 0 && count(b"rev") == 2 * count(b"cut")
}

fn programs<'a>(context: &RuleContext<'_, 'a>, all: &[u32]) -> BTreeSet<&'a [u8]> {
    let executed = all.iter().map(|index| context.launch(*index)).filter(|launch| !launch.execs.is_empty());
    executed.map(|launch| launch.command.name).collect()
}

/// Returns the launches whose parents are not among them.
fn tops(context: &RuleContext<'_, '_>, all: &[u32]) -> Vec<u32> {
    let has_parent = |index: &u32| {
        let parent = context.forest().parent(*index as usize);
        parent.is_some_and(|parent| all.binary_search(&(parent as u32)).is_ok())
    };
    all.iter().copied().filter(|index| !has_parent(index)).collect()
}

/// Returns how the shell does the work of the programs of a line.
fn general(context: &RuleContext<'_, '_>, all: &[u32]) -> Vec<String> {
    let line = |index: &u32| {
        let functions = || functions(context, *index).map(str::to_owned);
        let own = builtin::code_for(context, *index).or_else(functions)?;
        let line = format!("  {}: {own}", name(context.launch(*index).command.name));
        // Of code that differs in numbers only, one is enough.
        Some((line.replace(|each: char| each.is_ascii_digit(), ""), line))
    };
    let lines: BTreeMap<String, String> = match reverses_twice(context, all) {
        true => [(String::new(), "  $(echo \"$x\" | rev | cut -d. -f1 | rev)  ->  ${x##*.}".to_owned())].into(),
        false => all.iter().filter_map(line).collect(),
    };
    ["do the work of the line without launches:".to_owned()].into_iter().chain(lines.into_values()).collect()
}

fn whole_line(context: &RuleContext<'_, '_>, all: Vec<u32>) -> Option<Finding> {
    let executed = all.iter().copied().filter(|index| !context.launch(*index).execs.is_empty());
    let first = executed.clone().next()?;
    let parent = context.forest().launcher(first as usize).map(|exec| name(base_name(exec.path())))?;
    let names: Vec<String> = programs(context, &all).into_iter().map(name).collect();
    let place = context.sites.call_site_of(first as usize).map(|site| name(&site.short_label())).unwrap_or_default();
    let fix = builtin::fix_of(context, &all);
    let mut others = all.clone();
    let own = context.by_program(&all).into_values().filter(|own| !builtin::fix_of(context, own).is_empty());
    own.for_each(|own| others.retain(|index| own.binary_search(index).is_err()));
    let general = general(context, &others);
    let general = general.into_iter().skip(usize::from(!fix.is_empty()));
    let tops = tops(context, &all);
    let values = [
        ("parent", &parent[..]),
        ("programs", &names.join(" and ")),
        ("executed", &times(executed.count())),
        ("place", &place),
        ("took", &time(context.spent_on(&tops))),
    ];
    let finding = Finding::of(context, "shell-line", all, &[], &values)
        .fix_lines(fix)
        .fix_lines(general)
        .predicted_with(context, vec![AppliedChange { change: Change::Remove, launches: tops }]);
    Some(finding)
}
