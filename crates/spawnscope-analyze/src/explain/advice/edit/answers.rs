//! Edits of loops that ask a program in each round: `x=$(program "$f")`, or `x=$(echo "$y" |
//! filter)`. One call answers all rounds, and the loop reads its lines from a here-document. So the
//! loop stays in its shell, with its variables.

use std::ops::Range;

use super::around::{Around, LoopKind, first_of_list, is_certain, statements};
use super::many::{position_of, splice};
use super::one_line::is_one_line;
use super::shell::{FoundCall, fed_word, is_statement};
use super::{EditRefusal, Splice, refuse};
use crate::explain::advice::phrases::name;
use crate::explain::advice::programs::{answers_each_line, prints_a_line_each};
use crate::patterns::script::{Kind, Script, Word, identifiers, names};
use crate::patterns::words::Words;

/// Programs that print the same each time, so that a list of words may be asked for twice.
const PURE: Words = Words("echo printf seq");
/// Commands that cannot change what a program is asked about.
const BUILTINS: Words = Words(": [ break continue echo export let local printf test true unset");

/// A variable, and the statement that sets it.
type Assigned<'t> = (&'t [u8], Range<usize>);

/// The assignment of an answer.
struct Question<'c, 's, 't> {
    call: &'c FoundCall<'s, 't>,
    around: &'c Around<'t>,
    /// The command that sets the variable.
    holder: usize,
    variable: &'t [u8],
}

/// Replaces the calls in a loop by one.
pub(super) fn of_one_call(call: &FoundCall<'_, '_>, loops: &[Around<'_>]) -> Result<Vec<Splice>, EditRefusal> {
    let script = call.script;
    let Some(around) = loops.first() else { return refuse("the call is not in a loop over words or lines") };
    let holder = call.substitution.and_then(|substitution| script.node(substitution).parent);
    let Some((holder, variable)) = holder.and_then(|holder| Some((holder, assigned(call, holder)?))) else {
        return refuse("the result is not assigned to a variable");
    };
    let list = first_of_list(script, holder).filter(|_| is_statement(script, holder));
    if list.and_then(|list| script.node(list).parent) != Some(around.node) {
        return refuse("the call is not a statement of the loop");
    }
    let question = Question { call, around, holder, variable };
    let text = if call.pipeline.len() == 1 { question.about_words()? } else { question.about_text()? };
    question.document(&text)
}

/// Returns the variable that an assignment sets to the output of a call.
fn assigned<'t>(call: &FoundCall<'_, 't>, holder: usize) -> Option<&'t [u8]> {
    let simple = call.script.simple(holder)?;
    let ([only], []) = (&simple.assignments[..], &simple.words[..]) else { return None };
    (only.value.as_ref()?.substitution() == call.substitution).then_some(only.name)
}

/// Whether an assignment has no substitution, or only those of programs that print the same each
/// time.
fn is_pure(script: &Script<'_>, word: &Word<'_>) -> bool {
    let inside = (0..script.len()).filter(|index| word.range.contains(&script.node(*index).range.start));
    let is_known = |index: usize| match &script.node(index).kind {
        Kind::Simple(simple) => {
            let command = simple.words.first().and_then(Word::literal).unwrap_or_default();
            PURE.contains(&command) && simple.redirections.is_empty() && simple.assignments.is_empty()
        }
        Kind::List { is_background } => !is_background,
        Kind::Pipeline { .. } | Kind::Substitution => true,
        _ => false,
    };
    inside.into_iter().all(is_known)
}

impl<'t> Question<'_, '_, 't> {
    /// Returns the words of the loop, which can be expanded twice.
    fn words(&self) -> Result<(&'t [u8], String, bool), EditRefusal> {
        let script = self.call.script;
        let (LoopKind::Words(variable), Kind::For(each)) = (self.around.kind, &script.node(self.around.node).kind)
        else {
            return refuse("the loop is not over words");
        };
        let (Some(first), Some(last)) = (each.words.first(), each.words.last()) else {
            return refuse("the loop has no words");
        };
        if !each.words.iter().all(|word| is_pure(script, word)) {
            return refuse("the list of the loop may change");
        }
        let list = name(script.source(&(first.range.start..last.range.end)));
        Ok((variable, list, each.words.iter().any(|word| is_certain(script, word))))
    }

    /// Returns the call with all words of the loop: `stat -c %s *`.
    fn about_words(&self) -> Result<String, EditRefusal> {
        let (script, call) = (self.call.script, self.call);
        let (variable, list, is_never_empty) = self.words()?;
        let position = position_of(call, variable)?;
        let is_line = |arguments: &Vec<Vec<u8>>| {
            let arguments: Vec<&[u8]> = arguments.iter().map(Vec::as_slice).collect();
            prints_a_line_each(&call.rewrite.program, &arguments) && !arguments.iter().any(|word| word.contains(&b'\n'))
        };
        if !call.rewrite.calls.iter().all(is_line) {
            return refuse(format!("{} does not certainly print one line for each word", call.program()));
        }
        if !is_never_empty {
            return refuse("the list of the loop may be empty");
        }
        self.check_rest()?;
        let command = script.node(call.command).range.clone();
        let operand = call.simple.words[position].range.clone();
        let (before, after) = (command.start..operand.start, operand.end..command.end);
        Ok(format!("{}{list}{}", name(script.source(&before)), name(script.source(&after))))
    }

    /// Checks that nothing else in the loop changes what the call is asked about.
    fn check_rest(&self) -> Result<(), EditRefusal> {
        let script = self.call.script;
        let holder = &script.node(self.holder).range;
        let inside = |index: &usize| {
            let start = script.node(*index).range.start;
            self.around.body.contains(&start) && !holder.contains(&start)
        };
        let is_kept = |index: usize| match &script.node(index).kind {
            Kind::Simple(simple) => {
                let command = simple.words.first().map(|word| word.literal().unwrap_or_default());
                let is_builtin = |command: &Vec<u8>| BUILTINS.contains(command) && !script.is_function(command);
                command.as_ref().is_none_or(is_builtin)
                    && !simple.redirections.iter().any(|each| each.operator.contains(&b'>'))
            }
            Kind::Function => false,
            _ => true,
        };
        match (0..script.len()).filter(inside).all(is_kept) {
            true => Ok(()),
            false => refuse("the loop has commands that may change the answer"),
        }
    }

    /// Returns the loop that prints all texts, and the filters: `for i in 1 2; do echo "$i"; done |
    /// bc`.
    fn about_text(&self) -> Result<String, EditRefusal> {
        let (script, call) = (self.call.script, self.call);
        let (variable, list, _) = self.words()?;
        if call.pipeline.last() != Some(&call.command) {
            return refuse(format!("the output of {} is not the answer", call.program()));
        }
        let feeder = script.simple(call.pipeline[0]);
        let Some(text) = feeder.and_then(fed_word).filter(|text| is_one_line(script, text)) else {
            return refuse(format!("the input of {} is not one line", call.program()));
        };
        let ends_line = feeder.is_some_and(|feeder| feeder.words[1].literal().as_deref() != Some(b"%s"));
        let is_filter = |command: &usize| {
            let words = script.simple(*command).filter(|simple| simple.redirections.is_empty());
            let words: Option<Vec<Vec<u8>>> = words.and_then(|simple| simple.words.iter().map(Word::literal).collect());
            words.is_some_and(|words| answers_each_line(&words, script.source(&text.range)))
        };
        if !ends_line || !call.pipeline[1..].iter().all(is_filter) {
            return refuse(format!("{} does not certainly print one line for each line", call.program()));
        }
        let before = self.assignments_before()?;
        let own = |word: &[u8]| word == variable || before.iter().any(|(assigned, _)| *assigned == word);
        let depends =
            |source: &[u8]| identifiers(source).filter(|word| !own(word)).any(|word| self.around.may_set(script, word));
        if before.iter().any(|(_, range)| depends(script.source(range))) || depends(script.source(&text.range)) {
            return refuse("the question depends on what the loop does");
        }
        let mut body: Vec<String> = before.iter().map(|(_, range)| name(script.source(range))).collect();
        body.push(name(script.source(&script.node(call.pipeline[0]).range)));
        let filters = script.node(call.pipeline[1]).range.start..script.node(call.command).range.end;
        let filters = name(script.source(&filters));
        Ok(format!("for {} in {list}; do {}; done | {filters}", name(variable), body.join("; ")))
    }

    /// Returns what the statements before the question assign. They must do nothing else.
    fn assignments_before(&self) -> Result<Vec<Assigned<'t>>, EditRefusal> {
        let script = self.call.script;
        let start = script.node(self.holder).range.start;
        let mut all = Vec::new();
        for list in statements(script, self.around).into_iter().filter(|list| script.node(*list).range.start < start) {
            let command = script.children(list).next().and_then(|pipeline| script.children(pipeline).next());
            let simple = command.filter(|command| is_statement(script, *command)).and_then(|each| script.simple(each));
            let Some([only]) = simple.filter(|simple| simple.words.is_empty()).map(|simple| &simple.assignments[..])
            else {
                return refuse("there are other commands before the call");
            };
            if !only.value.as_ref().is_some_and(|value| is_pure(script, value)) || self.is_set_after(only.name) {
                return refuse(format!("`${}` depends on what the loop does", name(only.name)));
            }
            all.push((only.name, script.node(list).range.clone()));
        }
        Ok(all)
    }

    /// Whether the loop sets a variable after the question.
    fn is_set_after(&self, variable: &[u8]) -> bool {
        let script = self.call.script;
        script.may_set(&(script.node(self.holder).range.start..self.around.body.end), variable)
    }

    /// Returns the changes: the loop reads each answer from a here-document.
    fn document(&self, question: &str) -> Result<Vec<Splice>, EditRefusal> {
        let (script, node) = (self.call.script, self.around.node);
        let end = script.node(node).range.end;
        let line_end =
            script.text[end..].iter().position(|byte| *byte == b'\n').map_or(script.text.len(), |at| end + at);
        let after = script.text[end..line_end].trim_ascii();
        let is_at_end = after.is_empty() || after.starts_with(b"#");
        let is_inside = script.ancestors(node).any(|each| matches!(script.node(each).kind, Kind::Substitution));
        if !is_at_end || is_inside || question.contains('\n') || !is_statement(script, node) {
            return refuse("the loop has no line of its own at its end");
        }
        let is_free = |descriptor: &u8| {
            let forms = [format!("{descriptor}<"), format!("{descriptor}>"), format!("&{descriptor}")];
            !forms.iter().any(|form| script.text.windows(form.len()).any(|window| window == form.as_bytes()))
        };
        let Some(descriptor) = (3..10).find(is_free) else { return refuse("no descriptor is free") };
        let mut delimiter = "END".to_owned();
        while names(script.text, delimiter.as_bytes()) {
            delimiter.push('_');
        }
        let read = format!("IFS= read -r {} <&{descriptor}", name(self.variable));
        Ok(vec![
            splice(script.node(self.holder).range.clone(), read),
            splice(end..end, format!(" {descriptor}<<{delimiter}")),
            splice(line_end..line_end, format!("\n$({question})\n{delimiter}")),
        ])
    }
}
