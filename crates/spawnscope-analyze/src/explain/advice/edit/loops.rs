//! Edits that move a call out of a loop: one call before the loop in place of the same call in each round, or one call with all words of the loop.

use std::ops::Range;

use super::shell::{FoundCall, first_of_list, insertion_at, is_statement, unused_variable, used};
use super::{EditRefusal, Splice, refuse};
use crate::explain::advice::phrases::name;
use crate::model::launch::base_name;
use crate::patterns::script::{For, Kind, Part, Redirection, Script, Word, names};
use crate::patterns::shells::Dialect;

/// Programs whose output depends only on their input and arguments, which may be moved together with a call.
const FILTERS: [&[u8]; 17] = [
    b"awk",
    b"basename",
    b"cut",
    b"dirname",
    b"echo",
    b"expr",
    b"grep",
    b"head",
    b"paste",
    b"printf",
    b"sed",
    b"sort",
    b"tail",
    b"tr",
    b"true",
    b"uniq",
    b"wc",
];
/// Programs that print a fact about the machine or the user, which does not depend on the directory.
const PRINT_A_FACT: [&[u8]; 8] = [b"arch", b"getconf", b"hostname", b"id", b"logname", b"nproc", b"uname", b"whoami"];
/// Variables that a shell changes itself.
const CHANGING: [&[u8]; 8] =
    [b"BASHPID", b"EPOCHREALTIME", b"EPOCHSECONDS", b"FUNCNAME", b"LINENO", b"RANDOM", b"SECONDS", b"SRANDOM"];
/// Builtins that change the directory.
const DIRECTORY_CHANGES: [&[u8]; 3] = [b"cd", b"popd", b"pushd"];
/// Longer names are truncated.
const MAX_NAME: usize = 40;
/// Longer lists of arguments might not fit into one call.
const MAX_BYTES: usize = 100_000;

/// Moves the substitution of a call before the outermost loop in which the call is the same each time, or before the function that makes it.
pub(super) fn once(call: &FoundCall<'_, '_>) -> Result<Vec<Splice>, EditRefusal> {
    let script = call.script;
    if call.rewrite.has_failures {
        return refuse(format!("the exit status of {} was not always 0", call.program()));
    }
    if call.rewrite.calls.len() != 1 {
        return refuse(format!("the arguments of {} differ", call.program()));
    }
    if call.rewrite.dialect == Dialect::Zsh {
        return refuse("zsh splits a substitution, but not a variable");
    }
    let (moved, range) = moved(call)?;
    let variables = variables_of(script, &range)?;
    let statement = place(call, moved, &variables)?;
    let source = name(script.source(&range));
    let variable = unused_variable(script, &variable_for(&source));
    let (command, text) = match script.node(moved).kind {
        Kind::Substitution => (source, used(script, &variable, range.end)),
        _ => (format!("$({source})"), format!("printf '%s\\n' \"${variable}\"").into_bytes()),
    };
    let before = insertion_at(script.text, script.node(statement).range.start, &format!("{variable}={command}"));
    Ok(vec![before, Splice { range, text }])
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

/// Returns what is moved, and where it is: the substitution around a call, or a call that only prints.
fn moved(call: &FoundCall<'_, '_>) -> Result<(usize, Range<usize>), EditRefusal> {
    let script = call.script;
    let substitution =
        script.ancestors(call.command).find(|each| matches!(script.node(*each).kind, Kind::Substitution));
    if let Some(substitution) = substitution {
        check_inside(call, substitution)?;
        return Ok((substitution, script.node(substitution).range.clone()));
    }
    // The output of other programs may be empty.
    let is_printed = PRINT_A_FACT.contains(&&call.rewrite.program[..])
        && call.pipeline.len() == 1
        && call.simple.redirections.is_empty();
    if !is_printed {
        return refuse(format!("the line does not call {} in $( )", call.program()));
    }
    Ok((call.command, script.node(call.command).range.clone()))
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
                let is_known = index == call.command || FILTERS.contains(&base_name(&program));
                is_known && !script.is_function(&program) && simple.redirections.iter().all(is_quiet)
            }
            Kind::List { is_background } => !is_background,
            Kind::Pipeline { .. } => true,
            _ => false,
        };
        if !is_movable {
            return refuse(format!("the $( ) around {} does more than ask", call.program()));
        }
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
            if let Some(changing) = own.iter().find(|variable| CHANGING.contains(*variable)) {
                return refuse(format!("`${}` changes from call to call", name(changing)));
            }
            variables.extend(own);
        }
    }
    Ok(variables)
}

/// Returns the statement before which the call is moved: that of the outermost loop in which it stays the same.
fn place(call: &FoundCall<'_, '_>, substitution: usize, variables: &[&[u8]]) -> Result<usize, EditRefusal> {
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
        if script.calls_in(&repeated).any(|program| DIRECTORY_CHANGES.contains(&&program[..])) {
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

/// Returns the statement that defines a function, if the call in it is the same when it is made there.
fn before_function(call: &FoundCall<'_, '_>, function: usize, variables: &[&[u8]]) -> Option<usize> {
    let script = call.script;
    let is_fact = PRINT_A_FACT.contains(&&call.rewrite.program[..]);
    let changes_directory =
        script.calls_in(&(0..script.text.len())).any(|program| DIRECTORY_CHANGES.contains(&&program[..]));
    let is_same = variables.is_empty() && (is_fact || !changes_directory);
    list_of(script, function).filter(|_| is_same)
}

/// Returns the list that a command belongs to, if the list always executes the command.
fn list_of(script: &Script<'_>, command: usize) -> Option<usize> {
    let pipeline = script.node(command).parent?;
    let list = script.node(pipeline).parent?;
    let is_list = matches!(script.node(list).kind, Kind::List { .. });
    (is_list && script.children(list).next() == Some(pipeline)).then_some(list)
}

/// Replaces a loop by one call with all words of the loop.
pub(super) fn many(call: &FoundCall<'_, '_>) -> Result<Vec<Splice>, EditRefusal> {
    let script = call.script;
    let Some(list) = first_of_list(script, call.command).filter(|_| is_statement(script, call.command)) else {
        return refuse("the call is joined to other commands");
    };
    let Some(parent) = script.node(list).parent else { return refuse("the call is not in a loop") };
    let Kind::For(each) = &script.node(parent).kind else { return many_lines(call, parent) };
    if script.children(parent).count() != 1 + nested_words(script, parent, each) {
        return refuse("the loop has other commands, too");
    }
    check_many(call, parent, each.name)?;
    let position = position_of(call, each.name)?;
    let arguments = &call.simple.words;
    check_destination(call, position)?;
    let (Some(first), Some(last)) = (each.words.first(), each.words.last()) else {
        return refuse("the loop has no words");
    };
    let words = name(script.source(&(first.range.start..last.range.end)));
    let range = &script.node(call.command).range;
    let (before, after) = (range.start..arguments[position].range.start, arguments[position].range.end..range.end);
    let with = |list: &str| format!("{}{list}{}", name(script.source(&before)), name(script.source(&after)));
    let is_never_empty = each.words.iter().any(|word| is_certain(script, word));
    let text = match is_never_empty {
        true => with(&words),
        false => format!("(set -- {words}; [ $# -eq 0 ] || {})", with("\"$@\"")),
    };
    // What follows the loop, such as a redirection, then applies to the call.
    let end = each.body.end + b"done".len();
    Ok(vec![Splice { range: script.node(parent).range.start..end, text: text.into_bytes() }])
}

/// Returns which word of the call is the variable of the loop.
fn position_of(call: &FoundCall<'_, '_>, variable: &[u8]) -> Result<usize, EditRefusal> {
    let words = &call.simple.words;
    let uses: Vec<usize> = (0..words.len()).filter(|at| mentions(call.script, &words[*at], variable)).collect();
    let [position] = uses[..] else { return refuse("the variable of the loop is not used exactly once") };
    match words[position].variable() == Some(variable) {
        true => Ok(position),
        false => refuse("the argument is more than the variable of the loop"),
    }
}

/// Replaces `while read -r line; do program "$line"; done` by xargs, which reads the same lines.
fn many_lines(call: &FoundCall<'_, '_>, parent: usize) -> Result<Vec<Splice>, EditRefusal> {
    let script = call.script;
    let other = || refuse("the call is not in a loop over words or lines");
    let node = script.node(parent);
    let Kind::Loop { body } = &node.kind else { return other() };
    if !script.source(&node.range).starts_with(b"while") {
        return other();
    }
    let lists: Vec<usize> = script.children(parent).collect();
    let condition = lists
        .first()
        .and_then(|list| script.children(*list).next())
        .and_then(|pipeline| script.children(pipeline).next());
    let Some(read) = condition.filter(|read| is_statement(script, *read)).and_then(|read| script.simple(read)) else {
        return other();
    };
    let is_plain = read.redirections.is_empty() && read.assignments.iter().all(|assignment| assignment.name == b"IFS");
    let words: Vec<Vec<u8>> = read.words.iter().map(|word| word.literal().unwrap_or_default()).collect();
    let variable = match &words[..] {
        [read, variable] | [read, _, variable]
            if is_plain && read == b"read" && words[1..words.len() - 1].iter().all(|word| word == b"-r") =>
        {
            variable
        }
        _ => return other(),
    };
    if lists.len() != 2 {
        return refuse("the loop has other commands, too");
    }
    check_many(call, parent, variable)?;
    let position = position_of(call, variable)?;
    let range = script.node(call.command).range.clone();
    let word = &call.simple.words[position].range;
    if position + 1 != call.simple.words.len() {
        return refuse("the file is not the last argument");
    }
    let (before, after) =
        (name(script.source(&(range.start..word.start))), name(script.source(&(word.end..range.end))));
    let text = format!("xargs -r -d '\\n' {}{after}", before.trim_end());
    let end = body.end + b"done".len();
    Ok(vec![Splice { range: node.range.start..end, text: text.into_bytes() }])
}

/// Checks that what follows the files is a directory, for programs that have a destination, or options.
fn check_destination(call: &FoundCall<'_, '_>, position: usize) -> Result<(), EditRefusal> {
    const HAVE_DESTINATION: [&[u8]; 4] = [b"cp", b"install", b"ln", b"mv"];
    let after: Vec<Vec<u8>> =
        call.simple.words[position + 1..].iter().map(|word| word.literal().unwrap_or_default()).collect();
    let has_destination = HAVE_DESTINATION.contains(&&call.rewrite.program[..]);
    let is_directory = |word: &Vec<u8>| word.ends_with(b"/") || word.ends_with(b".");
    let mut files: Vec<&[u8]> =
        call.rewrite.calls.iter().map(|arguments| base_name(&arguments[position - 1])).collect();
    files.sort_unstable();
    if after.iter().all(|word| word.starts_with(b"-")) && !has_destination {
        return Ok(());
    }
    if !has_destination || !after.last().is_some_and(is_directory) {
        return refuse("the word after the file is not certainly a directory");
    }
    if files.windows(2).any(|two| two[0] == two[1]) { refuse("several files have the same name") } else { Ok(()) }
}

/// Returns the number of substitutions in the words of a loop.
fn nested_words(script: &Script<'_>, parent: usize, each: &For<'_>) -> usize {
    script.children(parent).filter(|child| script.node(*child).range.start < each.body.start).count()
}

/// Checks that one call may replace all calls.
fn check_many(call: &FoundCall<'_, '_>, parent: usize, variable: &[u8]) -> Result<(), EditRefusal> {
    let script = call.script;
    let calls = &call.rewrite.calls;
    if call.rewrite.has_failures {
        return refuse(format!("{} failed, and the loop went on", call.program()));
    }
    let bytes: usize = calls.iter().flatten().map(|argument| argument.len() + 9).sum();
    if bytes > MAX_BYTES {
        return refuse("the words might not fit into one call");
    }
    let is_kept = |redirection: &Redirection<'_>| {
        let is_written = matches!(redirection.operator, b">" | b"2>" | b"&>");
        let is_read = redirection.operator.contains(&b'<');
        let is_null = redirection.target.literal().as_deref() == Some(b"/dev/null");
        !is_read && (!is_written || is_null) && !mentions(script, &redirection.target, variable)
    };
    if !call.simple.redirections.iter().all(is_kept) {
        return refuse("each call has its own input or output");
    }
    let end = script.node(parent).range.end;
    if is_used_after(script, end, variable) {
        return refuse(format!("`${}` is used after the loop", name(variable)));
    }
    Ok(())
}

/// Whether a word expands a variable.
fn mentions(script: &Script<'_>, word: &Word<'_>, variable: &[u8]) -> bool {
    let source = script.source(&word.range);
    source.contains(&b'$') && names(source, variable)
}

/// Whether code after a position expands a variable before it is certainly set again.
fn is_used_after(script: &Script<'_>, end: usize, variable: &[u8]) -> bool {
    let later = (0..script.len()).filter(|index| script.node(*index).range.start >= end);
    let expands = |index: usize| match &script.node(index).kind {
        Kind::Simple(simple) => {
            let values = simple.assignments.iter().filter_map(|each| each.value.as_ref());
            let targets = simple.redirections.iter().map(|each| &each.target);
            simple.words.iter().chain(values).chain(targets).any(|word| mentions(script, word, variable))
        }
        Kind::For(each) => each.words.iter().any(|word| mentions(script, word, variable)),
        Kind::Expression(words) => words.iter().any(|word| names(script.source(&word.range), variable)),
        _ => false,
    };
    let is_set_around = |index: usize| {
        script.ancestors(index).any(|around| {
            let node = script.node(around);
            let sets = match &node.kind {
                Kind::For(each) => each.name == variable,
                Kind::Loop { body } => reads(script, &(node.range.start..body.start), variable),
                _ => false,
            };
            node.range.start >= end && sets
        })
    };
    later.into_iter().any(|index| expands(index) && !is_set_around(index))
}

/// Whether a `read` in a range sets a variable.
fn reads(script: &Script<'_>, range: &Range<usize>, variable: &[u8]) -> bool {
    let mut inside = (0..script.len()).filter(|index| range.contains(&script.node(*index).range.start));
    inside.any(|index| {
        let words =
            script.simple(index).map(|simple| simple.words.iter().filter_map(Word::literal).collect::<Vec<_>>());
        words.is_some_and(|words| {
            words.first().is_some_and(|first| first == b"read") && words.iter().any(|word| word == variable)
        })
    })
}

/// Whether a word of a loop is certainly at least one argument.
fn is_certain(script: &Script<'_>, word: &Word<'_>) -> bool {
    word.parts.iter().any(|part| match part {
        Part::Literal { .. } => true,
        Part::Pattern => !names(script.text, b"nullglob"),
        Part::Variable { is_quoted, .. } | Part::Substitution { is_quoted, .. } => *is_quoted,
        Part::Other { .. } => false,
    }) && !(names(script.text, b"nullglob") && word.parts.contains(&Part::Pattern))
}
