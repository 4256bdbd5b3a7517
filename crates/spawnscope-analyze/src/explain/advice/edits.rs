//! The edits that apply the changes of a finding, whichever rule found it.

use std::collections::{BTreeMap, BTreeSet};

use super::edit::{
    Edit, EditRefusal, Form, Key, LibraryRewrite, MAX_EDITS, MakeRewrite, Otherwise, PackageRewrite, Rewrite,
    ShellSite, has_library, is_success, line_in, program_of_npx, shell_sites,
};
use crate::explain::advice::context::RuleContext;
use crate::explain::advice::finding::Finding;
use crate::explain::advice::phrases::name;
use crate::explain::advice::programs::joins;
use crate::explain::advice::rules::{builtin, sleeps};
use crate::explain::advice::shared_line::arguments_of;
use crate::model::grouped::grouped;
use crate::model::launch::{Exec, Launch};
use crate::patterns::package_scripts::{ScriptCall, is_in_script};
use crate::patterns::programs::has_property;
use crate::patterns::runtimes::Runtime;
use crate::patterns::shell_syntax::{Need, need_of};
use crate::patterns::shells::{command_of, is_shell};
use crate::patterns::words::Words;
use crate::predict::whatif::changes::Change;
use spawnscope_data::event::Language;

/// Functions around a launch whose lines may have to change.
const MAX_FUNCTIONS: usize = 2;
/// Programs whose work their neighbour in a pipeline may do.
const STAGES: Words = Words("cat egrep grep head sed wc");

/// For the lines and programs of launches: the lines inside of their calls, the number of launches,
/// and the edits.
type Rewrites<'g> = BTreeMap<(Key<'g>, &'g [u8]), (Vec<u32>, usize, LibraryRewrite)>;

/// Adds the edits that make the changes of a finding.
pub(super) fn add_edits(context: &RuleContext<'_, '_>, finding: Finding) -> Finding {
    let launches = &finding.launches;
    let of_library = library_edits(context, launches, finding.rule == "once");
    let mut edits = match finding.changes.first().filter(|_| finding.edits.is_empty()).map(|applied| &applied.change) {
        Some(Change::NoShell) => joined(of_library, python_edits(context, launches)),
        Some(Change::InProcess | Change::Remove) if !of_library.is_empty() => of_library,
        Some(Change::Direct) => package_edits(context, launches),
        Some(_) if finding.rule == sleeps::SLEEP_LOOP => shell_edits(context, b"sleep", launches, &Form::Wait),
        Some(Change::Batch(_) | Change::InProcess) => match make_edits(context, launches) {
            of_make if of_make.is_empty() => merged(context, launches),
            of_make => of_make,
        },
        Some(Change::Remove) if finding.rule == "pipeline" => {
            let own = context.by_program(launches).into_iter().filter(|(program, _)| STAGES.contains(program));
            own.flat_map(|(program, own)| shell_edits(context, program, &own, &Form::Feed)).collect()
        }
        // Their fixes are to read none of these files, and to keep a result, or to call the program
        // that npx looks up.
        Some(Change::Remove) if matches!(finding.rule, "tool-calls" | "resident") => package_edits(context, launches),
        Some(Change::Remove | Change::Builtin) => replaced(context, launches, finding.rule == "once"),
        _ => finding.edits.clone(),
    };
    // They are for what no other edit can do.
    edits.sort_by_key(Edit::is_of_stage);
    let executed = launches.iter().filter(|index| !context.launch(**index).execs.is_empty()).count() as u32;
    Finding { line: line_of(context, launches), executed, edits, ..finding }
}

/// Returns the line of a script or makefile that requests most of the launches, as an edit that
/// changes nothing.
fn line_of(context: &RuleContext<'_, '_>, launches: &[u32]) -> Option<Edit> {
    let (line, _) = lines_of(context, launches).into_iter().max_by_key(|(_, all)| all.len())?;
    Some(Edit::of(line, 0, Err(EditRefusal("this change needs your decision".to_owned()))))
}

fn lines_of<'g>(context: &RuleContext<'g, '_>, launches: &[u32]) -> BTreeMap<Key<'g>, Vec<u32>> {
    grouped(launches.iter().filter_map(|index| Some((line_in(context, context.sites, *index)?.1, *index))))
}

/// Returns the edits that merge launches into one: of the loop around them, or of the xargs or find
/// that launches them.
fn merged(context: &RuleContext<'_, '_>, launches: &[u32]) -> Vec<Edit> {
    let forest = context.forest();
    let mut edits = Vec::new();
    for (program, own) in context.by_program(launches) {
        let joins =
            |index: &u32| context.launch(*index).execs.last().is_some_and(|exec| joins(program, &arguments_of(exec)));
        let launcher = forest.parent(own[0] as usize).map(|parent| context.launch(parent as u32).command.name);
        let launcher = launcher.filter(|launcher| has_property(launcher, "per-item"));
        match launcher {
            Some(launcher) if own.iter().all(joins) || is_shell(program) => {
                edits.extend(passed(context, launcher, &own));
            }
            Some(_) => {}
            None => edits.extend(in_shell(context, program, &own)),
        }
    }
    edits
}

/// Returns the edits of the calls of a program: the shell does the work itself, or one call does it
/// for all rounds of a loop.
fn in_shell(context: &RuleContext<'_, '_>, program: &[u8], launches: &[u32]) -> Vec<Edit> {
    let by_shell = builtin::edits(context, program, launches);
    by_shell.into_iter().chain(shell_edits(context, program, launches, &Form::Many)).collect()
}

/// Returns the edits of the lines that call xargs or find, which launch a program for each input.
fn passed(context: &RuleContext<'_, '_>, launcher: &[u8], launches: &[u32]) -> Vec<Edit> {
    let parents = launches.iter().filter_map(|index| context.forest().parent(*index as usize));
    let parents: BTreeSet<u32> = parents.map(|parent| parent as u32).collect();
    let parents = Vec::from_iter(parents);
    let failed = launches.iter().find(|index| !is_success(context.launch(**index)));
    let form = match failed {
        None => Ok(Form::Pass.into()),
        Some(index) => Err(EditRefusal(format!("{} failed", name(context.launch(*index).command.name)))),
    };
    let sites = shell_sites(context, launcher, &parents).into_iter();
    let edits = sites.filter_map(|site| site.edit_of(context, launcher, &site.launches, form.clone()));
    edits.map(|edit| Edit { launches: 0, ..edit }).collect()
}

/// Returns the edits that do without launches: the shell does the work itself, or asks once.
fn replaced(context: &RuleContext<'_, '_>, launches: &[u32], is_question: bool) -> Vec<Edit> {
    let of_make = make_edits(context, launches);
    if !of_make.is_empty() {
        return of_make;
    }
    let edits = context.by_program(launches).into_iter().flat_map(|(program, own)| {
        let is_certain = || own.iter().all(|index| context.has_certain_answer(*index));
        match program {
            b"mkdir" if is_question && Runtime::of_parent(context.forest(), own[0]) == Runtime::Make => {
                let lines = lines_of(context, &own).into_iter();
                lines.map(|(line, own)| Edit::of(line, own.len(), Ok(Rewrite::Directory))).collect()
            }
            b"mkdir" if is_question => shell_edits(context, program, &own, &Form::Tested),
            _ if is_question && builtin::edits(context, program, &own).is_empty() => match is_certain() {
                true => shell_edits(context, program, &own, &Form::Once),
                false => Vec::new(),
            },
            _ => {
                let is_stage = STAGES.contains(program) && program != b"cat";
                let stages = if is_stage { shell_edits(context, program, &own, &Form::Feed) } else { Vec::new() };
                // Why these are refused tells nothing about the others.
                let stages = stages.into_iter().map(|edit| Edit { instead_of: vec![edit.line], ..edit });
                in_shell(context, program, &own).into_iter().chain(stages).collect()
            }
        }
    });
    edits.collect()
}

/// Returns the edits that replace all calls of a program from these lines in the same way.
pub(super) fn shell_edits(context: &RuleContext<'_, '_>, program: &[u8], launches: &[u32], form: &Form) -> Vec<Edit> {
    let sites = shell_sites(context, program, launches);
    let edit = |site: ShellSite<'_>| site.edit_of(context, program, &site.launches, Ok(form.clone().into()));
    sites.into_iter().filter_map(edit).collect()
}

/// Returns the edits of makefiles whose variables are commands that make evaluates again at each
/// use. `launches` are those of the commands. The edit finds the definitions; the lines of the uses
/// may be unknown.
fn make_edits(context: &RuleContext<'_, '_>, launches: &[u32]) -> Vec<Edit> {
    // By makefile and directory of make.
    let mut makefiles: BTreeMap<(&[u8], Option<&[u8]>), MakeRewrite> = BTreeMap::new();
    let forest = context.forest();
    if !context.callers.have_language(Language::Make) {
        return Vec::new();
    }
    let of_make = launches.iter().filter_map(|index| {
        let mut above = std::iter::once(*index as usize).chain(forest.ancestors(*index as usize));
        above.find(|launch| Runtime::of_parent(forest, *launch as u32) == Runtime::Make).map(|launch| launch as u32)
    });
    for index in &of_make.filter(|index| context.is_captured(*index)).collect::<Vec<_>>() {
        let call_site = context.callers.call_site_of(*index as usize);
        let file = call_site.filter(|site| site.language == Language::Make).and_then(|site| site.file.as_deref());
        if let (Some(file), Some(exec)) = (file, context.launch(*index).execs.first()) {
            // With -C, make itself started in another directory.
            let directory = exec.cwd();
            // make executes a simple command without a shell.
            let words = || exec.arguments().collect::<Vec<_>>().join(&b' ');
            let command = command_of(exec).map_or_else(words, <[u8]>::to_vec);
            let rewrite = makefiles.entry((file, directory)).or_default();
            if !is_stable(context, *index) {
                rewrite.unstable.insert(command.clone());
            }
            rewrite.commands.insert(command);
        }
    }
    let edits = makefiles.into_iter();
    edits.map(|((file, directory), rewrite)| Edit::of((file, 1, directory), 0, Ok(Rewrite::Make(rewrite)))).collect()
}

/// Whether a command of make can only print the same each time, as long as the files that it names
/// stay the same.
pub(super) fn is_stable(context: &RuleContext<'_, '_>, index: u32) -> bool {
    let is_shell_or_fork = |launch: &Launch<'_>| launch.execs.last().is_none_or(|exec| is_shell(exec.program_name()));
    context.walk(&[index]).all(|step| {
        let launch = context.launch(step.index as u32);
        is_shell_or_fork(launch)
            || has_property(launch.command.name, "filter")
            || has_property(launch.command.name, "named-files")
            || context.has_certain_answer(step.index as u32)
            || context.forest().parent(step.index).is_some_and(|parent| context.has_certain_answer(parent as u32))
    })
}

/// Returns the edits of Python lines that pass plain commands to a shell.
fn python_edits(context: &RuleContext<'_, '_>, launches: &[u32]) -> Vec<Edit> {
    let lines = grouped(launches.iter().filter_map(|index| {
        let (_, line) =
            line_in(context, context.callers, *index).filter(|(language, _)| *language == Language::Python)?;
        Some((line, context.launch(*index).execs.first().and_then(command_of)?.to_vec()))
    }));
    let plain =
        lines.into_iter().filter(|(_, commands)| commands.iter().all(|command| need_of(command) == Need::Nothing));
    let edits = plain.take(MAX_EDITS);
    edits
        .map(|(line, commands)| Edit::of(line, commands.len(), Ok(Rewrite::Python(commands.into_iter().collect()))))
        .collect()
}

/// Returns the edits of Python and Perl lines whose programs the standard library replaces: the
/// lines that launch, or that call a function with the command. `is_question`: whether the first
/// answer can be kept.
fn library_edits(context: &RuleContext<'_, '_>, launches: &[u32], is_question: bool) -> Vec<Edit> {
    let all: Vec<u32> = launches.iter().filter_map(|index| program_in_shell(context, *index)).collect();
    let mut directories = all.iter().map(|index| context.launch(*index).execs.last().and_then(Exec::cwd));
    let first = directories.next();
    // In another directory, the answer may differ.
    let is_question = is_question && directories.all(|directory| Some(directory) == first);
    let mut rewrites = Rewrites::new();
    for index in all {
        let launch = context.launch(index);
        let Some(exec) = launch.execs.last().filter(|exec| !exec.argv_cut) else { continue };
        let call: Vec<Vec<u8>> = arguments_of(exec).into_iter().map(<[u8]>::to_vec).collect();
        let mut lines = program_lines(context, index);
        if lines.is_empty() {
            lines = context.forest().parent(index as usize).map_or(lines, |shell| program_lines(context, shell as u32));
        }
        for (at, (language, line)) in lines.iter().enumerate().filter(|(_, (language, _))| has_library(*language)) {
            let (inner, count, rewrite) = rewrites.entry((*line, launch.command.name)).or_insert_with(|| {
                let program = launch.command.name.to_vec();
                let otherwise = if is_question { Otherwise::Once } else { Otherwise::Nothing };
                (Vec::new(), 0, LibraryRewrite { language: *language, program, otherwise, ..LibraryRewrite::default() })
            });
            if !context.has_certain_answer(index) {
                rewrite.otherwise = Otherwise::Nothing;
            }
            *count += 1;
            inner.extend(lines[..at].iter().map(|(_, (_, line, _))| line));
            rewrite.has_failures |= !is_success(launch);
            rewrite.calls.insert(call.clone());
        }
    }
    let known =
        rewrites.into_iter().filter(|(_, (.., rewrite))| rewrite.is_known() || rewrite.otherwise == Otherwise::Once);
    let edits = known.take(MAX_EDITS).map(|((line, _), (instead_of, count, rewrite))| Edit {
        instead_of,
        ..Edit::of(line, count, Ok(Rewrite::Library(rewrite)))
    });
    edits.collect()
}

/// Returns the edits by the library, each with the edit of its line that only does without the
/// shell, and the other edits.
fn joined(mut by_library: Vec<Edit>, without_shell: Vec<Edit>) -> Vec<Edit> {
    for edit in without_shell {
        let is_at_its_line =
            |other: &&mut Edit| (&other.file, &other.directory, other.line) == (&edit.file, &edit.directory, edit.line);
        match (by_library.iter_mut().find(is_at_its_line).map(|other| &mut other.rewrite), edit.rewrite.clone()) {
            (Some(Ok(Rewrite::Library(library))), Ok(Rewrite::Python(python))) => {
                library.otherwise = Otherwise::WithoutShell(python);
            }
            _ => by_library.push(edit),
        }
    }
    by_library
}

/// Returns the launch that a shell makes, if it makes exactly one. Other launches are returned as
/// they are.
fn program_in_shell(context: &RuleContext<'_, '_>, index: u32) -> Option<u32> {
    if !is_shell(context.launch(index).command.name) {
        return Some(index);
    }
    let mut below =
        context.forest().children(index as usize).iter().filter(|child| context.forest().launches[**child].is_launch());
    below.next().filter(|_| below.next().is_none()).map(|child| *child as u32)
}

/// Returns the language and the line of the program that made a launch itself, and the lines of the
/// same file that called its function.
fn program_lines<'g>(context: &RuleContext<'g, 'g>, index: u32) -> Vec<(Language, Key<'g>)> {
    let Some((language, (file, line, directory))) = line_in(context, context.callers, index) else { return Vec::new() };
    let frames = context.forest().frames(context.launch(index).script_stack);
    let mut frames = frames.skip_while(|frame| frame.line != Some(line));
    let first = frames.next();
    let callers = frames.take(MAX_FUNCTIONS).filter(|frame| first.is_some_and(|first| first.file == frame.file));
    let lines = std::iter::once(line).chain(callers.filter_map(|frame| frame.line));
    lines.map(|line| (language, (file, line, directory))).collect()
}

/// Returns the edits of the packages whose scripts call other scripts, by the directories in which
/// the runners started.
fn package_edits(context: &RuleContext<'_, '_>, launches: &[u32]) -> Vec<Edit> {
    let forest = context.forest();
    let mut packages: BTreeMap<&[u8], (PackageRewrite, usize)> = BTreeMap::new();
    for index in launches.iter().filter(|index| is_in_script(forest, **index)) {
        let directory = context.launch(*index).execs.last().and_then(|exec| exec.cwd());
        let Some((directory, call)) = directory.zip(ScriptCall::of(forest, *index)) else { continue };
        let (package, count) = packages.entry(directory).or_default();
        *count += 1;
        package.scripts.extend(call.script().map(<[u8]>::to_vec));
        // npm has the programs of the package in the PATH of its scripts.
        let words: Vec<&[u8]> = [call.runner.as_bytes()].into_iter().chain(call.arguments.iter().copied()).collect();
        let program = program_of_npx(&words).map(|at| words[at]).unwrap_or_default();
        let is_own = |exec: &Exec<'_>| {
            let path = exec.path();
            path.strip_suffix(program).is_some_and(|path| path.ends_with(b"node_modules/.bin/"))
        };
        let mut below = forest.walk(&[*index as usize]);
        if !program.is_empty() && below.any(|step| context.launch(step.index as u32).execs.iter().any(is_own)) {
            package.programs.insert(program.to_vec());
        }
    }
    packages.retain(|_, (package, _)| !package.scripts.is_empty() || !package.programs.is_empty());
    let edits = packages.into_iter();
    let key = |directory| (&b"package.json"[..], 1, Some(directory));
    edits.map(|(directory, (package, count))| Edit::of(key(directory), count, Ok(Rewrite::Package(package)))).collect()
}
