//! Edits that ask once: one call before a loop or a function in place of the same call each time.
//! What the call wrote into a pipeline, `printf` writes there.

use std::ops::Range;

use super::around::{insertion_at, list_of, loops_around, only_reads};
use super::shell::{FoundCall, can_be, unused_variable, used};
use super::{EditRefusal, Result, Splice, limited, or_refuse, refuse_for, refuse_if, splice};
use crate::explain::advice::phrases::{ANSWER_LIMIT, name};
use crate::model::launch::base_name;
use crate::patterns::programs::has_property;
use crate::patterns::queries::GIT_READS;
use crate::patterns::script::{Kind, Redirection, Script, Simple, Word};
use crate::patterns::words::Words;

/// Variables that a shell changes itself.
const CHANGING: Words = Words("BASHPID EPOCHREALTIME EPOCHSECONDS FUNCNAME LINENO RANDOM SECONDS SRANDOM");
/// Builtins that change the directory.
const DIRECTORY_CHANGES: Words = Words("cd popd pushd");
/// Longer names are truncated.
const MAX_NAME: usize = 40;

/// Moves the substitution of a call before the outermost loop in which the call is the same each
/// time, or before the function that makes it.
pub(super) fn once(call: &FoundCall<'_>) -> Result<Vec<Splice>> {
    let script = call.script;
    refuse_if(call.rewrite.has_failures, format!("the exit status of {} was not always 0", call.program()))?;
    let recorded = call.rewrite.calls.iter().filter(|recorded| can_be(script, call.command, recorded)).count();
    refuse_if(recorded != 1, format!("the arguments of {} differ", call.program()))?;
    let (moved, range) = moved(call)?;
    let is_handled = !has_property(&call.rewrite.program, "fact") && !is_head(call) && handles_failure(script, moved);
    refuse_if(is_handled, format!("the script handles a failure of {}", call.program()))?;
    let variables = variables_of(script, &range)?;
    let statement = place(call, moved, &variables)?;
    // The files that git reads must stay the same.
    let subcommand = call.simple.words.get(1).and_then(Word::literal).unwrap_or_default();
    let reads_files = call.rewrite.program == b"git" && subcommand != b"rev-parse" && GIT_READS.contains(&subcommand);
    let may_change = reads_files && !loops_around(call).iter().all(|around| only_reads(script, around, &(0..0)));
    refuse_if(may_change, "the loop has commands that may change the answer")?;
    let source = name(script.source(&range));
    let variable = unused_variable(script, &variable_for(&source));
    let (command, text) = match script.kind(moved) {
        Kind::Substitution => (source, used(script, &variable, range.end)),
        _ if is_head(call) => {
            (format!("$({source})"), format!("printf \"${{{variable}:+%s\\n}}\" \"${variable}\"").into_bytes())
        }
        _ => (format!("$({source})"), format!("printf '%s\\n' \"${variable}\"").into_bytes()),
    };
    let before = insertion_at(script.text, script.start(statement), &format!("{variable}={command}"));
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
fn moved(call: &FoundCall<'_>) -> Result<(usize, Range<usize>)> {
    let script = call.script;
    if let Some(substitution) = script.substitution_around(call.command) {
        check_inside(call, substitution)?;
        return Ok((substitution, script.range(substitution)));
    }
    // The output of other programs may be empty. `$( )` around the function removes the newline
    // that is then printed.
    let is_plain = call.pipeline.len() == 1 && call.simple.redirections.is_empty();
    let is_fact = has_property(&call.rewrite.program, "fact");
    let only_prints = is_head(call) || is_plain && (is_fact || is_in_captured_function(script, call.command));
    refuse_if(!only_prints, format!("the line does not call {} in $( )", call.program()))?;
    Ok((call.command, script.range(call.command)))
}

/// Whether other commands depend on the exit status of a command or a substitution, which a
/// variable does not have: in a condition, before `||` and `&&`, or where the function is called
/// that it ends.
fn handles_failure(script: &Script<'_>, node: usize) -> bool {
    const CONDITIONS: Words = Words("if elif while until !");
    // Only assignments have the status of a substitution.
    let holder = match script.kind(node) {
        Kind::Substitution => script.parent(node).filter(|holder| script.assigned(*holder).is_some()),
        _ => Some(node),
    };
    let Some(holder) = holder else { return false };
    let pipeline = script.parent(holder).filter(|pipeline| script.children(*pipeline).last() == Some(holder));
    let list = pipeline.and_then(|pipeline| script.parent(pipeline));
    let Some((list, pipeline)) = list.zip(pipeline) else { return false };
    let before = script.text[..script.start(pipeline)].trim_ascii_end();
    let word = before.rsplit(|byte| byte.is_ascii_whitespace() || *byte == b';').next().unwrap_or_default();
    if script.children(list).last() != Some(pipeline) || CONDITIONS.contains(word) {
        return true;
    }
    let is_last =
        |function: &usize| !script.text[script.end(list)..script.end(*function)].iter().any(u8::is_ascii_alphanumeric);
    let function = script.function_around(list).filter(is_last);
    let mut calls = function.into_iter().flat_map(|function| script.calls(script.function_name(function)));
    calls.any(|call| script.substitution_around(call).is_some_and(|call| handles_failure(script, call)))
}

/// Whether a call only writes into a pipeline.
fn is_head(call: &FoundCall<'_>) -> bool {
    call.pipeline.len() > 1 && call.pipeline[0] == call.command && call.simple.redirections.iter().all(is_quiet)
}

/// Whether a command belongs to a function of which every call is in a substitution.
fn is_in_captured_function(script: &Script<'_>, command: usize) -> bool {
    script.function_around(command).is_some_and(|function| {
        script.calls(script.function_name(function)).all(|call| script.substitution_around(call).is_some())
    })
}

/// Checks that everything in the substitution may be moved.
fn check_inside(call: &FoundCall<'_>, substitution: usize) -> Result<()> {
    let script = call.script;
    let is_movable = |index: usize| match script.kind(index) {
        Kind::Simple(simple) => {
            let program = script.program(index).unwrap_or_default();
            let is_known = index == call.command || has_property(base_name(&program), "filter");
            is_known && !script.is_function(&program) && simple.redirections.iter().all(is_quiet)
        }
        Kind::List { is_background } => !is_background,
        Kind::Pipeline { .. } => true,
        _ => false,
    };
    let mut inside = script.inside(substitution);
    refuse_if(!inside.all(is_movable), format!("the $( ) around {} does more than ask", call.program()))
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
fn variables_of<'t>(script: &Script<'t>, range: &Range<usize>) -> Result<Vec<&'t [u8]>> {
    let mut variables = Vec::new();
    let inside = script.nodes_in(range).filter(|index| script.end(*index) <= range.end);
    for word in inside.filter_map(|index| script.simple(index)).flat_map(Simple::all_words) {
        let text = name(script.source(&word.range));
        let own = or_refuse(word.variables(), format!("`{text}` perhaps changes from call to call"))?;
        let changing = own.iter().find(|variable| CHANGING.contains(variable));
        refuse_for(changing.map(|variable| format!("`${}` changes from call to call", name(variable))))?;
        variables.extend(own);
    }
    Ok(variables)
}

/// Returns the statement before which the call is moved: that of the outermost loop in which it
/// stays the same.
fn place(call: &FoundCall<'_>, substitution: usize, variables: &[&[u8]]) -> Result<usize> {
    let script = call.script;
    let mut best = Err("the call is not in a loop of this file".to_owned());
    for each in script.ancestors(substitution) {
        let repeated = match script.kind(each) {
            Kind::For(of) if of.body.contains(&script.start(substitution)) => of.body.clone(),
            Kind::Loop { .. } => script.range(each),
            Kind::Function => {
                return best.or_else(|reason| before_function(call, each, variables).ok_or(EditRefusal(reason)));
            }
            _ => continue,
        };
        let changed = variables.iter().find(|variable| script.may_set(&script.range(each), variable));
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
fn before_function(call: &FoundCall<'_>, function: usize, variables: &[&[u8]]) -> Option<usize> {
    let script = call.script;
    let is_fact = has_property(&call.rewrite.program, "fact");
    // Changes of the directory before the definition do not matter, unless a function makes them.
    let start = script.start(function);
    let changes_directory = DIRECTORY_CHANGES
        .iter()
        .flat_map(|change| script.calls(change.as_bytes()))
        .any(|change| script.start(change) > start || script.function_around(change).is_some());
    // Whoever sources the file may call a function in any directory.
    let is_called_here = script.calls_everywhere(script.function_name(function)).is_some();
    let is_same = variables.is_empty() && (is_fact || !changes_directory && is_called_here);
    list_of(script, function).filter(|_| is_same)
}
