//! Edits of loops that ask a program in each round: `x=$(program "$f")`, `[ $(grep -c a "$f") -gt 0 ]` or `x=$(echo "$y" | filter)`. One call
//! answers all rounds, and the loop reads its lines from a here-document. So the loop stays in its shell, with its variables.

use std::ops::Range;

use super::around::{Around, LoopKind, insertion_at, is_certain, only_reads, statements};
use super::line_each::{LineEach, answers_each_line, is_interpreter, looped_code};
use super::many::{position_of, splice};
use super::one_line::is_one_line;
use super::shell::{FoundCall, unused_variable, used};
use super::{EditRefusal, Splice, refuse};
use crate::explain::advice::phrases::name;
use crate::patterns::script::{Kind, Script, Word, identifiers, names};
use crate::patterns::words::Words;

/// Programs that print the same each time, so that a list of words may be asked for twice.
const PURE: Words = Words("basename dirname echo expr printf seq");
/// Commands after which the other answers of a loop would not be read, or read too late.
const LEAVE_THE_ROUND: Words = Words("break continue exit return");

/// The question of a round.
struct Question<'c, 's, 't> {
    call: &'c FoundCall<'s, 't>,
    around: &'c Around<'t>,
    /// The statement of the loop that contains the call.
    statement: usize,
}

/// Replaces the calls in a loop by one.
pub(super) fn of_one_call(call: &FoundCall<'_, '_>, loops: &[Around<'_>]) -> Result<Vec<Splice>, EditRefusal> {
    let script = call.script;
    let (Some(around), Some(substitution)) = (loops.first(), call.substitution) else {
        return refuse("the call is not in a loop over words or lines");
    };
    let above: Vec<usize> = script.ancestors(substitution).take_while(|each| *each != around.node).collect();
    // The answer is needed in each round.
    let is_always = above.iter().zip(above.iter().skip(1)).all(|(inner, outer)| {
        let is_first = script.children(*outer).next() == Some(*inner);
        is_first
            || matches!(script.node(*inner).kind, Kind::Simple(_))
                && matches!(script.node(*outer).kind, Kind::Pipeline { .. })
    });
    let Some(statement) = above.last().copied().filter(|_| is_always) else {
        return refuse("the call is not a statement of the loop");
    };
    let question = Question { call, around, statement };
    question.check_before()?;
    let text = match call.fed {
        Some(text) => question.about_text(text)?,
        None => question.about_words()?,
    };
    question.document(&text, substitution)
}

/// Whether a word has no substitution, or only those of programs that print the same each time.
fn is_pure(script: &Script<'_>, word: &Word<'_>) -> bool {
    let mut inside = (0..script.len()).filter(|index| word.range.contains(&script.node(*index).range.start));
    inside.all(|index| match &script.node(index).kind {
        Kind::Simple(simple) => {
            let is_known =
                script.program(index).is_some_and(|program| PURE.contains(&program) && !script.is_function(&program));
            is_known && simple.redirections.is_empty() && simple.assignments.is_empty()
        }
        Kind::List { is_background } => !is_background,
        Kind::Pipeline { .. } | Kind::Substitution => true,
        _ => false,
    }) && !names(script.source(&word.range), b"RANDOM")
}

impl<'t> Question<'_, '_, 't> {
    /// Checks that no statement before the question leaves the round.
    fn check_before(&self) -> Result<(), EditRefusal> {
        let script = self.call.script;
        let before = self.around.body.start..script.node(self.statement).range.start;
        let leaves = script.calls_in(&before).any(|program| LEAVE_THE_ROUND.contains(&program));
        match leaves {
            true => refuse("the loop does not ask in each round"),
            false => Ok(()),
        }
    }

    /// Returns the words of the loop as they are written, if they can be expanded twice.
    fn words(&self) -> Option<(&'t [u8], String, bool)> {
        let script = self.call.script;
        let (LoopKind::Words(variable), Kind::For(each)) = (self.around.kind, &script.node(self.around.node).kind)
        else {
            return None;
        };
        let (first, last) = (each.words.first()?, each.words.last()?);
        let list = name(script.source(&(first.range.start..last.range.end)));
        let is_pure = each.words.iter().all(|word| is_pure(script, word));
        is_pure.then(|| (variable, list, each.words.iter().any(|word| is_certain(script, word))))
    }

    /// Returns a loop that does `body` for the same words or lines.
    fn rounds(&self, text: &[u8], body: &str) -> Result<String, EditRefusal> {
        let script = self.call.script;
        let node = &script.node(self.around.node).range;
        let before = self.assignments_for(text)?;
        let body = before
            .iter()
            .map(|range| name(script.source(range)))
            .chain([body.to_owned()])
            .collect::<Vec<_>>()
            .join("; ");
        if let Some((variable, list, _)) = self.words() {
            return Ok(format!("for {} in {list}; do {body}; done", name(variable)));
        }
        let header = name(script.source(&(node.start..self.around.body.start - b"do".len()))).replace('\n', "; ");
        let input = name(script.source(&(self.around.body.end + b"done".len()..node.end)));
        let is_file = input.trim_start().strip_prefix('<').is_some_and(|file| {
            let file = file.trim_start().trim_matches('"');
            !file.is_empty() && file.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_./-$".contains(&byte))
        });
        let reads = script
            .inside(self.around.node)
            .find_map(|index| script.program(index))
            .is_some_and(|program| program == b"read");
        if !matches!(script.node(self.around.node).kind, Kind::Loop { .. })
            || !reads
            || !is_file
            || !header.starts_with("while ")
        {
            return refuse("the list of the loop may change");
        }
        Ok(format!("{} do {body}; done{input}", header.trim_end()))
    }

    /// Returns the call for all words of the loop: `stat -c %s *`.
    fn about_words(&self) -> Result<String, EditRefusal> {
        let (script, call) = (self.call.script, self.call);
        let each = self.each_line()?;
        let own =
            script.node(self.statement).range.start..script.node(call.substitution.unwrap_or(self.statement)).range.end;
        if !only_reads(script, self.around, &own) {
            return refuse("the loop has commands that may change the answer");
        }
        let command = script.node(call.command).range.clone();
        let last = script.node(call.pipeline[call.pipeline.len() - 1]).range.end;
        let filters = name(script.source(&(command.end..last)));
        let redirected =
            call.simple.redirections.iter().find(|each| each.operator == b"<").filter(|_| each == LineEach::Count);
        let operand = match redirected {
            Some(redirection) => &redirection.target,
            None => &call.simple.words[self.operand()?],
        };
        let end = redirected.map_or(operand.range.start, |redirection| redirection.range.start);
        let (before, after) = (command.start..end, operand.range.end..command.end);
        let code = looped_code(script, call.simple);
        let (until, text) = match &code {
            Some((at, code)) => (&call.simple.words[*at].range, code.clone()),
            None => match each {
                LineEach::With(option) => {
                    let program = &call.simple.words[0].range;
                    (program, format!("{} {option}", name(script.source(program))))
                }
                _ => (&(before.start..before.start), String::new()),
            },
        };
        let start = if code.is_some() { name(script.source(&(before.start..until.start))) } else { String::new() };
        let end = if each == LineEach::Count { "-- " } else { "" };
        let before = format!("{start}{text}{}{end}", name(script.source(&(until.end..before.end))));
        let after = format!("{}{filters}", name(script.source(&after)));
        let words =
            self.words().filter(|(variable, _, is_certain)| *is_certain && operand.variable() == Some(variable));
        match words {
            Some((variable, list, _)) => {
                if redirected.is_none() {
                    position_of(call, variable)?;
                }
                Ok(format!("{before}{list}{after}"))
            }
            None if !after.trim().is_empty() && filters.is_empty() => refuse("the file is not the last argument"),
            None => {
                let word = call.plain_source(operand)?;
                let rounds = self.rounds(script.source(&operand.range), &format!("printf '%s\\0' {word}"))?;
                Ok(format!("{rounds} | xargs -r0 {}{after}", before.trim_end()))
            }
        }
    }

    /// Returns which word of the call is its file.
    fn operand(&self) -> Result<usize, EditRefusal> {
        super::many::operand_of(self.call, self.call.command, std::slice::from_ref(self.around))
    }

    /// Returns how the program prints a line for each operand, and checks the filters after it.
    fn each_line(&self) -> Result<LineEach, EditRefusal> {
        let (script, call) = (self.call.script, self.call);
        let refused = || refuse(format!("{} does not certainly print one line for each word", call.program()));
        let of_call = |arguments: &Vec<Vec<u8>>| {
            let words: Vec<&[u8]> = arguments.iter().map(Vec::as_slice).collect();
            LineEach::of(&call.rewrite.program, &words).filter(|_| !words.iter().any(|word| word.contains(&b'\n')))
        };
        let Some(first) = call.rewrite.calls.first().and_then(of_call) else { return refused() };
        // Without a loop in it, the code would only handle the first file.
        if is_interpreter(&call.rewrite.program) && looped_code(script, call.simple).is_none() {
            return refused();
        }
        let is_last = call.pipeline.first() == Some(&call.command);
        let are_filters = call.pipeline[1..].iter().all(|command| self.is_filter(*command, b""));
        let is_same = call.rewrite.calls.iter().all(|arguments| of_call(arguments) == Some(first));
        if is_last && are_filters && is_same && (first != LineEach::Count || call.pipeline.len() == 1) {
            Ok(first)
        } else {
            refused()
        }
    }

    /// Whether a command prints one line for each line that it reads.
    fn is_filter(&self, command: usize, text: &[u8]) -> bool {
        let words = self.call.script.simple(command).filter(|simple| simple.redirections.is_empty());
        let words: Option<Vec<Vec<u8>>> = words.and_then(|simple| simple.words.iter().map(Word::literal).collect());
        words.is_some_and(|words| answers_each_line(&words, text))
    }

    /// Returns the loop that prints all texts, and the filters: `for i in 1 2; do echo "$i"; done | bc`.
    fn about_text(&self, text: &Word<'t>) -> Result<String, EditRefusal> {
        let (script, call) = (self.call.script, self.call);
        if call.pipeline.last() != Some(&call.command) || !is_one_line(script, text) {
            return refuse(format!("the input of {} is not one line", call.program()));
        }
        let source = script.source(&text.range);
        let feeder = script.simple(call.pipeline[0]).filter(|_| call.pipeline.len() > 1);
        let is_here = feeder.is_none();
        let filters = if is_here { &call.pipeline[..] } else { &call.pipeline[1..] };
        let ends_line = feeder.is_none_or(|feeder| feeder.words[1].literal().as_deref() != Some(b"%s"));
        let words = call.simple.words.iter().map(Word::literal).collect::<Option<Vec<_>>>();
        let is_filter = if is_here {
            words.is_some_and(|words| answers_each_line(&words, source))
        } else {
            filters.iter().all(|command| self.is_filter(*command, source))
        };
        if !ends_line || !is_filter {
            return refuse(format!("{} does not certainly print one line for each line", call.program()));
        }
        let (echo, filters) = match feeder {
            Some(_) => (
                name(script.source(&script.node(call.pipeline[0]).range)),
                name(script.source(&(script.node(filters[0]).range.start..script.node(call.command).range.end))),
            ),
            None => {
                let end = call.simple.words.last().map_or(0, |word| word.range.end);
                let filter = name(script.source(&(script.node(call.command).range.start..end)));
                (format!("printf '%s\\n' {}", call.plain_source(text)?), filter)
            }
        };
        Ok(format!("{} | {filters}", self.rounds(source, &echo)?))
    }

    /// Returns the statements before the question that a text depends on. They must only assign, and nothing else may change the text.
    fn assignments_for(&self, text: &[u8]) -> Result<Vec<Range<usize>>, EditRefusal> {
        let script = self.call.script;
        let start = script.node(self.statement).range.start;
        let header = script.source(&self.around.header(script));
        let mut needed: Vec<&[u8]> = identifiers(text).collect();
        let mut all = Vec::new();
        for list in statements(script, self.around).into_iter().rev() {
            let range = script.node(list).range.clone();
            let Some(variable) = needed.iter().copied().find(|variable| script.may_set(&range, variable)) else {
                continue;
            };
            let value = script.command_of(list).and_then(|command| script.assigned(command));
            let value = value
                .filter(|(assigned, value)| *assigned == variable && range.start < start && is_pure(script, value));
            let Some((_, value)) = value else {
                return refuse(format!("`${}` depends on what the loop does", name(variable)));
            };
            needed.retain(|each| *each != variable);
            needed.extend(identifiers(script.source(&value.range)));
            all.push(range);
        }
        let is_own = |variable: &[u8]| names(header, variable);
        match needed.iter().find(|variable| {
            !is_own(variable) && self.around.may_set(script, variable) && script.may_set(&self.around.body, variable)
        }) {
            Some(variable) => refuse(format!("`${}` depends on what the loop does", name(variable))),
            None => Ok(all.into_iter().rev().collect()),
        }
    }

    /// Returns the changes: the loop reads each answer from a here-document.
    fn document(&self, question: &str, substitution: usize) -> Result<Vec<Splice>, EditRefusal> {
        let (script, node) = (self.call.script, self.around.node);
        let end = script.node(node).range.end;
        let line_end =
            script.text[end..].iter().position(|byte| *byte == b'\n').map_or(script.text.len(), |at| end + at);
        let after = script.text[end..line_end].trim_ascii();
        let is_at_end = after.is_empty() || after.starts_with(b"#");
        let is_inside = script.ancestors(node).any(|each| matches!(script.node(each).kind, Kind::Substitution));
        if !is_at_end || is_inside || script.statement(node).is_none() {
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
        // The number is padded with blanks.
        let read = |variable: &str| match self.call.rewrite.program == b"wc" {
            true => format!("read -r {variable} _ <&{descriptor}"),
            false => format!("IFS= read -r {variable} <&{descriptor}"),
        };
        let holder = script.command_of(self.statement);
        let assigned = holder
            .and_then(|holder| script.assigned(holder))
            .filter(|(_, value)| value.substitution() == Some(substitution));
        let mut splices = match assigned {
            Some((variable, _)) => vec![splice(script.node(self.statement).range.clone(), read(&name(variable)))],
            None => {
                let variable = unused_variable(script, &format!("{}_result", self.call.program()));
                let range = script.node(substitution).range.clone();
                let text = used(script, &variable, range.end);
                let at = script.node(self.statement).range.start;
                vec![insertion_at(script.text, at, &read(&variable)), Splice { range, text }]
            }
        };
        splices.extend([
            splice(end..end, format!(" {descriptor}<<{delimiter}")),
            splice(line_end..line_end, format!("\n$({question})\n{delimiter}")),
        ]);
        Ok(splices)
    }
}
