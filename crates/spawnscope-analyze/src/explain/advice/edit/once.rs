//! Edits that ask once: one call before a loop or a function in place of the same call each time.
//! What the call wrote into a pipeline, `printf` writes there.

use std::ops::Range;

use super::around::{insertion_at, list_of, loops_around, only_reads};
use super::shell::{FoundCall, can_be, unused_variable, used};
use super::{EditRefusal, Splice, limited, refuse, refuse_if, splice};
use crate::explain::advice::phrases::{ANSWER_LIMIT, name};
use crate::model::launch::base_name;
use crate::patterns::programs::has_property;
use crate::patterns::queries::GIT_READS;
use crate::patterns::script::{Kind, Redirection, Script, Word};
use crate::patterns::words::Words;

/// Variables that a shell changes itself.
const CHANGING: Words = Words("BASHPID EPOCHREALTIME EPOCHSECONDS FUNCNAME LINENO RANDOM SECONDS SRANDOM");
/// Builtins that change the directory.
const DIRECTORY_CHANGES: Words = Words("cd popd pushd");
/// Longer names are truncated.
const MAX_NAME: usize = 40;

/// Moves the substitution of a call before the outermost loop in which the call is the same each
/// time, or before the function that makes it.
pub(super) fn once(call: &FoundCall<'_, '_>) -> Result<Vec<Splice>, EditRefusal> {
    let script = call.script;
    refuse_if(call.rewrite.has_failures, format!("the exit status of {} was not always 0", call.program()))?;
    if call.rewrite.calls.iter().filter(|recorded| can_be(script, call.command, recorded)).count() != 1 {
        return refuse(format!("the arguments of {} differ", call.program()));
    }
    let (moved, range) = moved(call)?;
    let is_handled = !has_property(&call.rewrite.program, "fact") && !is_head(call) && handles_failure(script, moved);
    refuse_if(is_handled, format!("the script handles a failure of {}", call.program()))?;
    let variables = variables_of(script, &range)?;
    let statement = place(call, moved, &variables)?;
    // The files that git reads must stay the same.
    let subcommand = call.simple.words.get(1).and_then(Word::literal).unwrap_or_default();
    let reads_files = call.rewrite.program == b"git" && subcommand != b"rev-parse" && GIT_READS.contains(&subcommand);
    if reads_files && !loops_around(call).iter().all(|around| only_reads(script, around, &(0..0))) {
        return refuse("the loop has commands that may change the answer");
    }
    let source = name(script.source(&range));
    let variable = unused_variable(script, &variable_for(&source));
    let (command, text) = match script.node(moved).kind {
        Kind::Substitution => (source, used(script, &variable, range.end)),
        _ if is_head(call) => {
            (format!("$({source})"), format!("printf \"${{{variable}:+%s\\n}}\" \"${variable}\"").into_bytes())
        }
        _ => (format!("$({source})"), format!("printf '%s\\n' \"${variable}\"").into_bytes()),
    };
    let before = insertion_at(script.text, script.node(statement).range.start, &format!("{variable}={command}"));
    let mut limits = vec!["the question is then asked even if the loop does nothing"];
    if !has_property(&call.rewrite.program, "fact") {
        limits.push(ANSWER_LIMIT);
    }
    Ok(limited(vec![before, splice(range, text)], &limits))
}

/// Returns the name of a variable for the output of a command. Other commands have other names.
fn variable_for(command: &str) -> String {
    let words = command.split(|each: char| !each.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let name = words.collect::<Vec<_>>().join("_");
    if name.len() <= MAX_NAME {
        return name;
    }
    let checksum = command.bytes().fold(0_u16, |sum, byte| sum.rotate_left(5) ^ u16::from(byte));
    format!("{}_{checksum:x}", &name[..MAX_NAME - 5])
}

/// Returns what is moved, and where it is: the substitution around a call, or a call that only
/// prints.
fn moved(call: &FoundCall<'_, '_>) -> Result<(usize, Range<usize>), EditRefusal> {
    let script = call.script;
    let substitution =
        script.ancestors(call.command).find(|each| matches!(script.node(*each).kind, Kind::Substitution));
    if let Some(substitution) = substitution {
        check_inside(call, substitution)?;
        return Ok((substitution, script.node(substitution).range.clone()));
    }
    if is_head(call) {
        return Ok((call.command, script.node(call.command).range.clone()));
    }
    // The output of other programs may be empty. `$( )` around the function removes the newline
    // that is then printed.
    let is_plain = call.pipeline.len() == 1 && call.simple.redirections.is_empty();
    let is_fact = has_property(&call.rewrite.program, "fact");
    if !is_plain || !is_fact && !is_in_captured_function(script, call.command) {
        return refuse(format!("the line does not call {} in $( )", call.program()));
    }
    Ok((call.command, script.node(call.command).range.clone()))
}

/// Whether other commands depend on the exit status of a command or a substitution, which a
/// variable does not have: in a condition, before `||` and `&&`, or where the function is called
/// that it ends.
fn handles_failure(script: &Script<'_>, node: usize) -> bool {
    const CONDITIONS: [&[u8]; 5] = [b"if", b"elif", b"while", b"until", b"!"];
    // Only assignments have the status of a substitution.
    let holder = match script.node(node).kind {
        Kind::Substitution => script.node(node).parent.filter(|holder| script.assigned(*holder).is_some()),
        _ => Some(node),
    };
    let Some(holder) = holder else { return false };
    let pipeline = script.node(holder).parent.filter(|pipeline| script.children(*pipeline).last() == Some(holder));
    let list = pipeline.and_then(|pipeline| script.node(pipeline).parent);
    let Some((list, pipeline)) = list.zip(pipeline) else { return false };
    let before = script.text[..script.node(pipeline).range.start].trim_ascii_end();
    let word = before.rsplit(|byte| byte.is_ascii_whitespace() || *byte == b';').next().unwrap_or_default();
    if script.children(list).last() != Some(pipeline) || CONDITIONS.contains(&word) {
        return true;
    }
    let function = script.ancestors(list).find(|each| matches!(script.node(*each).kind, Kind::Function));
    let is_last = |function: &usize| {
        !script.text[script.node(list).range.end..script.node(*function).range.end]
            .iter()
            .any(u8::is_ascii_alphanumeric)
    };
    let calls = function.filter(is_last).into_iter().flat_map(|function| script.calls(script.function_name(function)));
    let substitution =
        |call: usize| script.ancestors(call).find(|each| matches!(script.node(*each).kind, Kind::Substitution));
    calls.filter_map(substitution).any(|call| handles_failure(script, call))
}

/// Whether a call only writes into a pipeline.
fn is_head(call: &FoundCall<'_, '_>) -> bool {
    call.pipeline.len() > 1 && call.pipeline[0] == call.command && call.simple.redirections.iter().all(is_quiet)
}

/// Whether a command belongs to a function of which every call is in a substitution.
fn is_in_captured_function(script: &Script<'_>, command: usize) -> bool {
    let is_function = |each: &usize| matches!(script.node(*each).kind, Kind::Function);
    let Some(function) = script.ancestors(command).find(is_function) else { return false };
    let is_captured =
        |call: usize| script.ancestors(call).any(|each| matches!(script.node(each).kind, Kind::Substitution));
    script.calls(script.function_name(function)).all(is_captured)
}

/// Checks that everything in the substitution may be moved.
fn check_inside(call: &FoundCall<'_, '_>, substitution: usize) -> Result<(), EditRefusal> {
    let script = call.script;
    let inside =
        (substitution + 1..script.len()).filter(|each| script.ancestors(*each).any(|each| each == substitution));
    for index in inside {
        let is_movable = match &script.node(index).kind {
            Kind::Simple(simple) => {
                let program = simple.words.first().and_then(Word::literal).unwrap_or_default();
                let is_known = index == call.command || has_property(base_name(&program), "filter");
                is_known && !script.is_function(&program) && simple.redirections.iter().all(is_quiet)
            }
            Kind::List { is_background } => !is_background,
            Kind::Pipeline { .. } => true,
            _ => false,
        };
        refuse_if(!is_movable, format!("the $( ) around {} does more than ask", call.program()))?;
    }
    Ok(())
}

/// Whether a redirection only drops or joins output.
fn is_quiet(redirection: &Redirection<'_>) -> bool {
    let target = redirection.target.literal();
    match redirection.operator {
        b"2>&" | b"2>" | b">" | b"&>" => target.is_some_and(|target| matches!(&target[..], b"/dev/null" | b"1")),
        b"<" => target.as_deref() == Some(b"/dev/null"),
        _ => false,
    }
}

/// Returns the variables that are expanded in a range.
fn variables_of<'t>(script: &Script<'t>, range: &Range<usize>) -> Result<Vec<&'t [u8]>, EditRefusal> {
    let mut variables = Vec::new();
    for index in 0..script.len() {
        let node = script.node(index);
        if node.range.start < range.start || range.end < node.range.end {
            continue;
        }
        let Kind::Simple(simple) = &node.kind else { continue };
        for word in simple.words.iter().chain(simple.assignments.iter().filter_map(|each| each.value.as_ref())) {
            let Some(own) = word.variables() else {
                return refuse(format!("`{}` perhaps changes from call to call", name(script.source(&word.range))));
            };
            if let Some(changing) = own.iter().find(|variable| CHANGING.contains(variable)) {
                return refuse(format!("`${}` changes from call to call", name(changing)));
            }
            variables.extend(own);
        }
    }
    Ok(variables)
}

/// Returns the statement before which the call is moved: that of the outermost loop in which it
/// stays the same.
pub(super) fn place(call: &FoundCall<'_, '_>, substitution: usize, variables: &[&[u8]]) -> Result<usize, EditRefusal> {
    let script = call.script;
    let mut best = Err("the call is not in a loop of this file".to_owned());
    for each in script.ancestors(substitution) {
        let node = script.node(each);
        let repeated = match &node.kind {
            Kind::For(of) if of.body.contains(&script.node(substitution).range.start) => of.body.clone(),
            Kind::Loop { .. } => node.range.clone(),
            Kind::Function => {
                return best.or_else(|reason| before_function(call, each, variables).ok_or(EditRefusal(reason)));
            }
            _ => continue,
        };
        let changed = variables.iter().find(|variable| script.may_set(&node.range, variable));
        if let Some(changed) = changed {
            best = best.map_err(|_| format!("`${}` changes in the loop", name(changed)));
            break;
        }
        if script.calls_in(&repeated).any(|program| DIRECTORY_CHANGES.contains(&program)) {
            best = best.map_err(|_| "the loop changes the directory".to_owned());
            break;
        }
        match list_of(script, each) {
            Some(list) => best = Ok(list),
            None => break,
        }
    }
    best.map_err(EditRefusal)
}

/// Returns the statement that defines a function, if the call in it is the same when it is made
/// there.
fn before_function(call: &FoundCall<'_, '_>, function: usize, variables: &[&[u8]]) -> Option<usize> {
    let script = call.script;
    let is_fact = has_property(&call.rewrite.program, "fact");
    // Changes of the directory before the definition do not matter, unless a function makes them.
    let start = script.node(function).range.start;
    let changes_directory = DIRECTORY_CHANGES.iter().flat_map(|change| script.calls(change.as_bytes())).any(|change| {
        let is_in_function = script.ancestors(change).any(|each| matches!(script.node(each).kind, Kind::Function));
        script.node(change).range.start > start || is_in_function
    });
    // Whoever sources the file may call a function in any directory.
    let is_called_here = script.calls_everywhere(script.function_name(function)).is_some();
    let is_same = variables.is_empty() && (is_fact || !changes_directory && is_called_here);
    list_of(script, function).filter(|_| is_same)
}
