//! Edits that pass all inputs of a loop to one call: the words of the loop in place of its
//! variable, the lines that it reads or the words that it computes through xargs. All keep the
//! order of the inputs, and so of the output.

use std::collections::BTreeSet;

use super::adjacent::is_one_substitution;
use super::around::{
    Around, LoopKind, Statement, is_alone, is_certain, is_used_outside, loops_around, mentions, statement_at,
    statements, uses_parameters,
};
use super::shell::FoundCall;
use super::{
    FAILS_TOGETHER, Result, Splice, adjacent, answers, collected, inserted, limited, lookup, or_refuse, refuse,
    refuse_for, refuse_if, splice,
};
use crate::explain::advice::phrases::name;
use crate::explain::advice::programs::joins;
use crate::model::launch::base_name;
use crate::patterns::programs::{has_property, takes_value};
use crate::patterns::script::{Kind, Part, Redirection, Script, Word, identifiers, names, span};
use crate::patterns::words::Words;

/// Longer lists of arguments might not fit into one call.
const MAX_BYTES: usize = 100_000;
const TOO_LONG: &str = "the words might not fit into one call";
const DROPPED_BY_READ: &str =
    "xargs keeps what `read` drops: a last line without a newline and, without `IFS=` and -r, blanks and backslashes";

/// Replaces the calls in a loop by one.
pub(super) fn many(call: &FoundCall<'_>) -> Result<Vec<Splice>> {
    check_many(call)?;
    let loops = loops_around(call);
    let is_long = call.rewrite.calls.iter().flatten().map(|argument| argument.len() + 9).sum::<usize>() > MAX_BYTES;
    match (is_question(call), is_long) {
        (true, true) => refuse(TOO_LONG),
        (true, false) => answers::of_one_call(call, &loops),
        (false, true) => Ok(limited(of_many_words(call, &loops)?, &[FAILS_TOGETHER])),
        (false, false) => Ok(limited(of_actions(call, &loops)?, &[FAILS_TOGETHER])),
    }
}

/// Passes more words than fit into one call to one process, which reads any number of pairs.
fn of_many_words(call: &FoundCall<'_>, loops: &[Around<'_>]) -> Result<Vec<Splice>> {
    let around = or_refuse(loops.first(), TOO_LONG)?;
    pairs(call, around, &statement_at(call.script, call.command)?).or_else(|_| refuse(TOO_LONG))
}

/// Replaces calls of which nothing uses the answers.
fn of_actions(call: &FoundCall<'_>, loops: &[Around<'_>]) -> Result<Vec<Splice>> {
    if loops.is_empty() {
        return adjacent::adjacent(call);
    }
    let joins = |arguments: &Vec<Vec<u8>>| {
        let operands: Vec<_> = arguments.iter().filter(|argument| *argument != b"--").collect();
        joins(&call.rewrite.program, &operands)
    };
    let others = format!("{} does not certainly handle each of several files", call.program());
    refuse_if(!call.rewrite.calls.iter().all(joins), others)?;
    in_place_of_loop(call, loops).or_else(|refusal| collected::collected(call).map_err(|_| refusal))
}

/// Replaces a loop that consists of the call by one call, or by its inputs for one call.
fn in_place_of_loop(call: &FoundCall<'_>, loops: &[Around<'_>]) -> Result<Vec<Splice>> {
    let statement = statement_at(call.script, call.command)?;
    if call.rewrite.program == b"sed" && call.simple.words.len() == 4 {
        let scripts: BTreeSet<_> = call.rewrite.calls.iter().map(|call| call.get(1)).collect();
        if scripts.len() > 1 && scripts.iter().all(|each| each.is_some_and(|each| is_one_substitution(each))) {
            let file = name(call.script.source(&call.simple.words[3].range));
            return through_pipe(call, &loops[0], &statement, &[2], ["\\n", &format!("sed -i -f - {file}")]);
        }
    }
    let position = match operand_of(call, call.command, loops) {
        Ok(position) => position,
        Err(refusal) => return pairs(call, &loops[0], &statement).map_err(|_| refusal),
    };
    let variable = call.simple.words[position].variable();
    let direct = loops.iter().position(|each| match each.kind {
        LoopKind::Words(name) | LoopKind::Lines(name) => variable == Some(name),
        LoopKind::Other => false,
    });
    refuse_if(call.script.parent(statement.list) != Some(loops[0].node), "the loop has other commands, too")?;
    let Some(direct) = direct.filter(|at| is_alone(call.script, &loops[..=*at])) else {
        let xargs = xargs(call, position, "xargs -r0");
        return through_pipe(call, &loops[0], &statement, &[position], ["\\0", &xargs?]);
    };
    match loops[direct].kind {
        LoopKind::Lines(_) if direct == 0 => lines(call, &loops[0], &statement, position),
        LoopKind::Words(_) => words(call, &loops[..=direct], &statement, position),
        _ => refuse("another loop is within the loop that reads the lines"),
    }
}

/// Returns which word of a call is its input: the last one that loops change.
pub(super) fn operand_of(call: &FoundCall<'_>, command: usize, loops: &[Around<'_>]) -> Result<usize> {
    let script = call.script;
    let simple = or_refuse(script.simple(command), "the call is not plain")?;
    let is_set = |variable: &[u8]| loops.iter().any(|each| each.may_set(script, variable));
    let changes = |source: &[u8]| source.contains(&b'$') && identifiers(source).any(is_set);
    let program = script.program(command).unwrap_or_default();
    let is_value = |pair: &[Word<'_>]| {
        let is_option = pair[0].literal().is_some_and(|option| takes_value(&program, &option));
        is_option && changes(script.source(&pair[1].range))
    };
    refuse_if(simple.words.windows(2).any(is_value), "the value of an option changes in the loop")?;
    let last = (1..simple.words.len()).rev().find(|at| changes(script.source(&simple.words[*at].range)));
    let last = or_refuse(last, "no word of the call changes in the loop")?;
    let directory = directory_of(call, command).filter(|_| last + 1 == simple.words.len());
    let position = if directory.is_some() { last - 1 } else { last };
    let is_changed = directory.is_some_and(|directory| changes(directory.as_bytes()));
    refuse_if(is_changed, "the directory changes in the loop, too")?;
    check_destination(call, command, position)?;
    Ok(position)
}

/// Replaces the variable of a loop by all its words.
fn words(
    call: &FoundCall<'_>,
    loops: &[Around<'_>],
    statement: &Statement<'_>,
    position: usize,
) -> Result<Vec<Splice>> {
    let script = call.script;
    let Some((outer, inner)) = loops.split_last() else { return refuse("there is no loop") };
    let Kind::For(each) = script.kind(outer.node) else { return refuse("there is no loop over words") };
    check_variable(call, outer, each.name, position)?;
    let is_in_header = |inner: &Around<'_>| names(script.source(&inner.header(script)), each.name);
    refuse_if(inner.iter().any(is_in_header), "the words of the inner loop change, too")?;
    refuse_if(each.words.is_empty(), "the loop has no words")?;
    let list = name(script.source(&span(&each.words)));
    let kept = script.range(statements(script, outer)[0]);
    let is_never_empty = each.words.iter().any(|word| is_certain(script, word));
    let [before, operand, after] = match is_never_empty {
        true => [String::new(), list, String::new()],
        false => [format!("(set -- {list}; [ $# -eq 0 ] || "), "\"$@\"".to_owned(), ")".to_owned()],
    };
    let leaves = statement.if_failed.is_some_and(|command| !matches!(command, b":" | b"true"));
    refuse_if(
        !is_never_empty && (leaves || uses_parameters(script.source(&kept))),
        "the list may be empty, and the call uses `$1` or leaves the script",
    )?;
    // What follows the loop, such as a redirection, then applies to the call.
    let directory = directory_of(call, call.command)
        .map(|directory| splice(call.simple.words[position + 1].range.clone(), directory));
    let changes = [
        splice(script.start(outer.node)..kept.start, before),
        splice(call.simple.words[position].range.clone(), operand),
        splice(kept.end..outer.end(), after),
    ];
    Ok(changes.into_iter().chain(directory).collect())
}

/// Replaces `while read -r line; do program "$line"; done` by xargs, which reads the same lines.
fn lines(call: &FoundCall<'_>, around: &Around<'_>, statement: &Statement<'_>, position: usize) -> Result<Vec<Splice>> {
    let script = call.script;
    let LoopKind::Lines(variable) = around.kind else { return refuse("the loop reads no lines") };
    check_variable(call, around, variable, position)?;
    let command = xargs(call, position, "xargs -r -d '\\n'")?;
    let mut splices = vec![splice(script.start(around.node)..around.end(), command)];
    // The last part of a pipeline only leaves its subshell.
    let leaves_subshell = around.is_in_pipeline(script) && !matches!(statement.if_failed, None | Some(b":" | b"true"));
    refuse_if(leaves_subshell && names(script.text, b"lastpipe"), "with lastpipe, the loop leaves the script")?;
    let if_failed = statement.if_failed.filter(|_| !leaves_subshell).map(|command| format!(" || {}", name(command)));
    splices.extend(if_failed.map(|text| inserted(script.end(around.node), text)));
    Ok(limited(splices, &[DROPPED_BY_READ]))
}

/// Returns the call through xargs, without its input.
fn xargs(call: &FoundCall<'_>, position: usize, xargs: &str) -> Result<String> {
    let script = call.script;
    refuse_if(position + 1 != call.simple.words.len(), "the file is not the last argument")?;
    let word = &call.simple.words[position].range;
    let [before, after] = [script.start(call.command)..word.start, word.end..script.end(call.command)];
    Ok(format!("{xargs} {}{}", name(script.source(&before).trim_ascii_end()), name(script.source(&after))))
}

/// Prints the computed inputs in the loop, which are the words at these positions, and passes them
/// to one reader after it.
fn through_pipe(
    call: &FoundCall<'_>,
    around: &Around<'_>,
    statement: &Statement<'_>,
    positions: &[usize],
    [end_of_input, reader]: [&str; 2],
) -> Result<Vec<Splice>> {
    let script = call.script;
    check_only_computes(script, around, statement)?;
    let changed = call.simple.words.iter().enumerate().filter(|(at, _)| !positions.contains(at)).find(|(_, word)| {
        let variables = word.variables();
        variables.is_none_or(|variables| variables.iter().any(|each| around.may_set(script, each)))
            || word.parts.iter().any(|part| matches!(part, Part::Substitution { .. }))
    });
    let changed = changed.map(|(_, word)| name(script.source(&word.range)));
    refuse_for(changed.map(|word| format!("`{word}` changes in the loop, too")))?;
    check_used_after(script, around)?;
    let inputs: Result<Vec<String>> = positions.iter().map(|at| call.plain_source(&call.simple.words[*at])).collect();
    let (inputs, format) = (inputs?.join(" "), format!("%s{end_of_input}").repeat(positions.len()));
    let (end, after) = (around.end(), script.end(around.node));
    let redirections = script.source(&(end..after));
    let at = match (redirections.contains(&b'<'), redirections.contains(&b'>')) {
        (true, true) => return refuse("the input and output of the loop are redirected"),
        (true, false) => after,
        (false, _) => end,
    };
    Ok(vec![
        splice(script.range(call.command), format!("printf '{format}' {inputs}")),
        inserted(at, format!(" | {reader}")),
    ])
}

/// Checks that a loop consists of a statement, of assignments, and of tests that skip rounds.
fn check_only_computes(script: &Script<'_>, around: &Around<'_>, statement: &Statement<'_>) -> Result<()> {
    const SILENT: Words = Words(": [ break continue test true");
    const TESTS: Words = Words("-n -z -eq -ne -lt -le -gt -ge");
    let is_test_of_file = |word: &Word<'_>| {
        word.literal().is_some_and(|word| word.starts_with(b"-") && word.len() < 4 && !TESTS.contains(&word))
    };
    let only_computes = |index: usize| match script.kind(index) {
        Kind::Simple(simple) if simple.words.is_empty() => simple.redirections.is_empty(),
        Kind::Simple(simple) => {
            let is_silent = script.program(index).is_some_and(|word| SILENT.contains(&word));
            is_silent && simple.is_bare() && !simple.words.iter().any(is_test_of_file)
        }
        Kind::Expression(words) => script.code(index).starts_with(b"[[") && !words.iter().any(is_test_of_file),
        Kind::List { is_background } => !is_background,
        Kind::Pipeline { .. } | Kind::Compound => true,
        _ => false,
    };
    let are_known = statements(script, around)
        .iter()
        .all(|list| *list == statement.list || script.inside(*list).all(only_computes));
    let does_more = (0..script.len()).any(|index| does_more(script, around, index));
    refuse_if(!(statement.if_failed.is_none() && are_known && !does_more), "the loop has other commands, too")
}

/// Whether a part of a loop does more than to compute words: a substitution in its body, or a
/// command that decides whether it goes on.
fn does_more(script: &Script<'_>, around: &Around<'_>, index: usize) -> bool {
    const CONDITIONS: Words = Words(": [ read test true");
    match script.kind(index) {
        Kind::Substitution => around.body.contains(&script.start(index)),
        Kind::Simple(_) if around.header(script).contains(&script.start(index)) => {
            let command = script.program(index).unwrap_or_default();
            !matches!(around.kind, LoopKind::Words(_)) && !CONDITIONS.contains(&command)
        }
        _ => false,
    }
}

/// Checks that no variable that a loop sets is used after it: the loop becomes a part of a
/// pipeline.
fn check_used_after(script: &Script<'_>, around: &Around<'_>) -> Result<()> {
    let all: BTreeSet<&[u8]> = identifiers(script.code(around.node)).collect();
    let is_used = |variable: &&[u8]| {
        !around.is_in_pipeline(script)
            && around.may_set(script, variable)
            && is_used_outside(script, around.node, variable)
    };
    let used = all.into_iter().find(is_used);
    refuse_for(used.map(|variable| format!("`${}` is used after the loop", name(variable))))
}

/// Returns which word of the call is the variable of the loop.
pub(super) fn position_of(call: &FoundCall<'_>, variable: &[u8]) -> Result<usize> {
    let words = &call.simple.words;
    let directory = directory_of(call, call.command).map(|_| words.len() - 1);
    let is_used = |at: &usize| Some(*at) != directory && mentions(call.script, &words[*at], variable);
    let uses: Vec<usize> = (0..words.len()).filter(is_used).collect();
    let [position] = uses[..] else { return refuse("the variable of the loop is not used exactly once") };
    let is_whole = words[position].variable() == Some(variable);
    refuse_if(!is_whole, "the argument is more than the variable of the loop").map(|()| position)
}

/// Checks that the input is the only use of the variable of a loop, in the loop and after it.
fn check_variable(call: &FoundCall<'_>, around: &Around<'_>, variable: &[u8], position: usize) -> Result<()> {
    refuse_if(position_of(call, variable)? != position, "the variable of the loop is not used exactly once")?;
    let is_used = |each: &Redirection<'_>| mentions(call.script, &each.target, variable);
    refuse_if(call.simple.redirections.iter().any(is_used), "each call has its own input or output")?;
    refuse_if(
        is_used_outside(call.script, around.node, variable),
        format!("`${}` is used after the loop", name(variable)),
    )
}

/// Returns the directory of a last word that is a file there with the name of the word before it:
/// `d/` for `cp "$f" d/"${f##*/}"`.
pub(super) fn directory_of(call: &FoundCall<'_>, command: usize) -> Option<String> {
    let words = &call.script.simple(command)?.words;
    let is_known =
        call.script.program(command)? == call.rewrite.program && has_property(&call.rewrite.program, "destination");
    let source = name(call.script.source(&words.last().filter(|_| is_known && words.len() > 2)?.range));
    let is_path = |at: &usize| !source[*at..].contains(['}', ')', '`']) || source[*at..].starts_with("/$");
    let mut slash = source
        .match_indices('/')
        .map(|(at, _)| at)
        .filter(|at| source[..*at].matches(['{', '(']).count() == source[..*at].matches(['}', ')']).count());
    let slash = slash.rfind(is_path)?;
    let has_name = |arguments: &Vec<Vec<u8>>| {
        let [.., file, destination] = &arguments[..] else { return false };
        let directory = &destination[..destination.len() - base_name(destination).len()];
        !base_name(file).is_empty() && base_name(destination) == base_name(file) && !directory.is_empty()
    };
    let directory = &source[..=slash];
    let quote = if directory.matches('"').count() % 2 == 1 { "\"" } else { "" };
    let is_plain = source[slash..].contains('$') && !directory.contains(['`', '\'']) && !directory.contains("$(");
    (is_plain && call.rewrite.calls.iter().all(has_name)).then(|| format!("{directory}{quote}"))
}

/// Checks that what follows the files is a directory, for programs that have a destination, or
/// options.
fn check_destination(call: &FoundCall<'_>, command: usize, position: usize) -> Result<()> {
    let (script, words) = (call.script, call.script.simple(command).map_or(&[][..], |simple| &simple.words[..]));
    let after = &words[position + 1..];
    let has_destination = has_property(&script.program(command).unwrap_or_default(), "destination");
    let is_option = |word: &Word<'_>| word.literal().is_some_and(|word| word.starts_with(b"-"));
    let is_made = |word: &Word<'_>| {
        let mut directories =
            script.calls(b"mkdir").filter_map(|made| script.simple(made)).flat_map(|made| &made.words);
        directories.any(|made| script.source(&made.range) == script.source(&word.range))
    };
    let is_directory = |word: &Word<'_>| {
        is_made(word) || word.literal().is_some_and(|word| word.ends_with(b"/") || word.ends_with(b"."))
    };
    if after.iter().all(is_option) && !has_destination {
        return Ok(());
    }
    let has_directory = after.last().is_some_and(is_directory) || directory_of(call, command).is_some();
    refuse_if(!has_destination || !has_directory, "the word after the file is not certainly a directory")?;
    let mut files = call.rewrite.calls.iter().filter_map(|arguments| Some(base_name(arguments.get(position - 1)?)));
    let mut known = BTreeSet::new();
    let are_different = files.all(|file| known.insert(file));
    refuse_if(!are_different, "several files have the same name")
}

/// Whether the script uses what a call answers.
fn is_question(call: &FoundCall<'_>) -> bool {
    call.substitution.is_some() || lookup::is_condition(call)
}

/// Checks that one call may replace all calls.
fn check_many(call: &FoundCall<'_>) -> Result<()> {
    let failed = if is_question(call) { call.rewrite.has_errors } else { call.rewrite.has_failures };
    refuse_if(failed, format!("{} failed, and the loop went on", call.program()))?;
    let is_kept = call.substitution.is_some() || call.simple.redirections.iter().all(Redirection::is_kept);
    refuse_if(!is_kept, "each call has its own input or output")
}

/// Returns a command that reads pairs of NUL-terminated names, and does with each what the program
/// with these options does. As for `mv`, a destination that is a directory gets the file's name,
/// and a failure is reported and changes the exit status.
pub(crate) fn one_process(program: &[u8], options: &[&[u8]]) -> Option<String> {
    let function = match (program, options) {
        (b"mv", [] | [b"-f"]) => "mv(@f)",
        (b"cp", []) => "cp(@f)",
        (b"ln", [b"-s"]) => "symlink($f[0], $f[1])",
        _ => return None,
    };
    Some(format!(
        "perl -MFile::Copy=cp,mv -0 -ne 'chomp; push @f, $_; next if @f < 2; if (-d $f[1]) {{ my ($n) = $f[0] =~ m{{([^/]+)/*\\z}}; \
         $f[1] .= \"/$n\" }} {function} or warn(\"$f[1]: $!\\n\"), $bad = 1; @f = (); END {{ $? = 1 if $bad }}'"
    ))
}

/// Prints the pairs of a loop of mv, cp or ln for one process, which handles all of them in turn.
fn pairs(call: &FoundCall<'_>, around: &Around<'_>, statement: &Statement<'_>) -> Result<Vec<Splice>> {
    let [options @ .., _, _] = &call.simple.words[1..] else { return refuse("the call has no pair of names") };
    let options: Vec<Vec<u8>> = options.iter().map(Word::literal).collect::<Option<_>>().unwrap_or_default();
    let options: Vec<&[u8]> = options.iter().map(Vec::as_slice).filter(|option| *option != b"--").collect();
    let reader = one_process(&call.rewrite.program, &options);
    let reader = or_refuse(reader, "no other program handles pairs with these options")?;
    let last = call.simple.words.len() - 1;
    through_pipe(call, around, statement, &[last - 1, last], ["\\0", &reader])
}
