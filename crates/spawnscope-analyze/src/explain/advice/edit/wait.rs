//! Edits of loops that poll whether a child of the script still runs: the script waits for it
//! instead.

use super::shell::FoundCall;
use super::{EditRefusal, Splice, refuse, splice};
use crate::explain::advice::phrases::name;
use crate::patterns::script::{Kind, Part, Redirection, Script, Word};

/// Replaces `while kill -0 "$pid" 2>/dev/null; do sleep 1; done` by `wait "$pid" || :`.
pub(super) fn for_child(call: &FoundCall<'_, '_>) -> Result<Vec<Splice>, EditRefusal> {
    let script = call.script;
    let other = || refuse("the loop does not wait for a child of the script");
    let around = script.ancestors(call.command).nth(2).filter(|_| script.statement(call.command).is_some());
    let Some(node) = around.filter(|node| matches!(script.node(*node).kind, Kind::Loop { .. })) else { return other() };
    let is_subshell = |each: usize| matches!(script.node(each).kind, Kind::Subshell | Kind::Substitution);
    let is_alone = script.statement(node).is_some() && script.children(node).count() == 2;
    let is_while = script.source(&script.node(node).range).starts_with(b"while");
    if !is_alone || !is_while || script.ancestors(node).any(is_subshell) {
        return other();
    }
    let Some(process) = polled(script, node).filter(|process| is_child(script, process)) else { return other() };
    if script.calls(b"wait").next().is_some() {
        return refuse("the script also waits for its children, whose exit status it would get only once");
    }
    let text = format!("wait {} || :", name(script.source(&process.range)));
    Ok(vec![splice(script.node(node).range.clone(), text)])
}

/// Returns the process that the condition of a loop tests quietly.
fn polled<'s, 't>(script: &'s Script<'t>, node: usize) -> Option<&'s Word<'t>> {
    let list = script.children(node).next()?;
    let simple = script.simple(script.command_of(list)?)?;
    let drops_errors = |each: &Redirection<'_>| {
        matches!(each.operator, b"2>" | b"&>") && each.target.literal().as_deref() == Some(b"/dev/null")
    };
    let [kill, option, process] = &simple.words[..] else { return None };
    let is_test = kill.literal()? == b"kill" && matches!(&option.literal()?[..], b"-0");
    (is_test && simple.assignments.is_empty() && simple.redirections.iter().any(drops_errors)).then_some(process)
}

/// Whether a word is `$!`, or a variable that is only ever set to it.
fn is_child(script: &Script<'_>, word: &Word<'_>) -> bool {
    let is_last_child = |word: &Word<'_>| matches!(word.parts[..], [Part::Other { text: b"$!", .. }]);
    let Some(variable) = word.variable() else { return is_last_child(word) };
    let mut setters = (0..script.len()).filter(|index| script.sets(script.node(*index), variable)).peekable();
    setters.peek().is_some()
        && setters.all(|index| {
            script.simple(index).is_some_and(|simple| {
                let mut own = simple.assignments.iter().filter(|each| each.name == variable);
                simple.words.is_empty() && own.all(|each| each.value.as_ref().is_some_and(is_last_child))
            })
        })
}
