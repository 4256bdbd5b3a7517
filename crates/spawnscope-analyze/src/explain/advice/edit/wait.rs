//! Edits of loops that poll whether a child of the script still runs: the script waits for it
//! instead.

use super::shell::FoundCall;
use super::{Result, Splice, or_refuse, refuse_if, splice};
use crate::explain::advice::phrases::name;
use crate::patterns::script::{Kind, Part, Redirection, Script, Word};

/// Replaces `while kill -0 "$pid" 2>/dev/null; do sleep 1; done` by `wait "$pid" || :`.
pub(super) fn for_child(call: &FoundCall<'_>) -> Result<Vec<Splice>> {
    let script = call.script;
    const OTHER: &str = "the loop does not wait for a child of the script";
    let around = script.ancestors(call.command).nth(2).filter(|_| script.statement(call.command).is_some());
    let node = or_refuse(around.filter(|node| matches!(script.kind(*node), Kind::Loop { .. })), OTHER)?;
    let is_in_subshell = script.ancestor(node, |kind| matches!(kind, Kind::Subshell | Kind::Substitution)).is_some();
    let is_alone = script.statement(node).is_some() && script.children(node).count() == 2;
    refuse_if(!is_alone || !script.code(node).starts_with(b"while") || is_in_subshell, OTHER)?;
    let process = or_refuse(polled(script, node).filter(|process| is_child(script, process)), OTHER)?;
    refuse_if(
        script.calls(b"wait").next().is_some(),
        "the script also waits for its children, whose exit status it would get only once",
    )?;
    let text = format!("wait {} || :", name(script.source(&process.range)));
    Ok(vec![splice(script.range(node), text)])
}

/// Returns the process that the condition of a loop tests quietly.
fn polled<'s>(script: &'s Script<'s>, node: usize) -> Option<&'s Word<'s>> {
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
    let mut setters = (0..script.len()).filter(|index| script.sets(*index, variable)).peekable();
    setters.peek().is_some()
        && setters.all(|index| {
            script.simple(index).is_some_and(|simple| {
                let mut own = simple.assignments.iter().filter(|each| each.name == variable);
                simple.words.is_empty() && own.all(|each| each.value.as_ref().is_some_and(is_last_child))
            })
        })
}
