//! Edits of loops that ask a program in each round: `x=$(program "$f")`, `if grep -q a "$f"` or
//! `x=$(echo "$y" | filter)`. One call answers all rounds, and the loop reads its lines from a
//! here-document. So the loop stays in its shell, with its variables. Words may fail one by one:
//! unless the call for all of them succeeds and prints one line for each, every round asks for
//! itself.

use std::ops::Range;

use super::around::{
    Around, LoopKind, insertion_at, is_certain, is_reader, only_calls, only_reads_files, statements, uses_parameters,
};
use super::line_each::{LineEach, answers_each_line, keeps_number};
use super::lookup::is_condition;
use super::many::position_of;
use super::one_line::is_one_line;
use super::shell::{FoundCall, unused_variable, used};
use super::{EditRefusal, Splice, limited, line_end, refuse, refuse_if, splice, spliced};
use crate::explain::advice::phrases::name;
use crate::patterns::programs::has_property;
use crate::patterns::script::{Kind, Script, Word, identifiers, names};
use crate::patterns::words::{Words, contains};

/// Commands after which the other answers of a loop would not be read, or read too late.
const LEAVE_THE_ROUND: Words = Words("break continue exit return");

/// The question of a round.
struct Question<'c, 's, 't> {
    call: &'c FoundCall<'s, 't>,
    around: &'c Around<'t>,
    /// The `$( )` of the call, or the call itself if only its exit status counts.
    asked: usize,
    /// The statement of the loop that contains the call.
    statement: usize,
}

/// Replaces the calls in a loop by one.
pub(super) fn of_one_call(call: &FoundCall<'_, '_>, loops: &[Around<'_>]) -> Result<Vec<Splice>, EditRefusal> {
    let script = call.script;
    let asked = call.substitution.or(is_condition(call).then_some(call.command));
    let (Some(around), Some(asked)) = (loops.first(), asked) else {
        return refuse("the call is not in a loop over words or lines");
    };
    let above: Vec<usize> = script.ancestors(asked).take_while(|each| *each != around.node).collect();
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
    let question = Question { call, around, asked, statement };
    question.check_before()?;
    match call.fed {
        // `$( )` removes empty answers at the end, but not those before a dot.
        Some(text) => question.document(&(question.about_text(text)? + "; echo ."), false),
        None => Ok(limited(
            question.document(&question.about_words()?, true)?,
            &["the answers are from before the loop: what other programs change while it runs is not seen"],
        )),
    }
}

/// Whether code prints the same if it is executed twice: it only reads, and not from its standard
/// input.
fn is_repeatable(script: &Script<'_>, range: &Range<usize>) -> bool {
    let is_head = |command: usize| {
        script.node(command).parent.and_then(|pipeline| script.children(pipeline).next()) == Some(command)
    };
    let mut inside = (0..script.len()).filter(|index| range.contains(&script.node(*index).range.start));
    inside.all(|index| match &script.node(index).kind {
        Kind::Simple(simple) => {
            let program = script.program(index).unwrap_or_default();
            (has_property(&program, "no-input") || !is_head(index) && has_property(&program, "filter"))
                && only_reads_files(script, index)
                && simple.assignments.is_empty()
        }
        Kind::List { is_background } => !is_background,
        Kind::Pipeline { .. } | Kind::Substitution => true,
        _ => false,
    }) && !names(script.source(range), b"RANDOM")
}

impl<'t> Question<'_, '_, 't> {
    /// Checks that no statement before the question leaves the round.
    fn check_before(&self) -> Result<(), EditRefusal> {
        let script = self.call.script;
        let before = self.around.body.start..script.node(self.statement).range.start;
        let leaves = script.calls_in(&before).any(|program| LEAVE_THE_ROUND.contains(&program));
        refuse_if(leaves, "the loop does not ask in each round")
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
        let is_repeatable = each.words.iter().all(|word| is_repeatable(script, &word.range));
        is_repeatable.then(|| (variable, list, each.words.iter().any(|word| is_certain(script, word))))
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
        let steps = self.steps();
        if !steps.is_empty() {
            let steps = steps.iter().map(|range| name(script.source(range))).collect::<Vec<_>>().join("; ");
            return Ok(format!("{} do {body}; {steps}; done", header.trim_end()));
        }
        let reads = script.inside(self.around.node).find_map(|index| script.program(index));
        if !header.starts_with("while ") || reads.is_none_or(|program| program != b"read") {
            return refuse("the list of the loop may change");
        }
        let (before, after) = self.input()?;
        Ok(format!("{before}{} do {body}; done{after}", header.trim_end()))
    }

    /// Returns the assignments with which a loop counts until a test of its header fails: `i=$((i +
    /// 1))`. Empty for other loops.
    fn steps(&self) -> Vec<Range<usize>> {
        let script = self.call.script;
        let header = self.around.header(script);
        let is_test = |program: Vec<u8>| matches!(&program[..], b"[" | b"test");
        let in_header = |index: usize| header.contains(&script.node(index).range.start);
        let has_expression = script
            .inside(self.around.node)
            .any(|index| in_header(index) && matches!(script.node(index).kind, Kind::Expression(_)));
        let is_counting = self.around.kind == LoopKind::Other && script.calls_in(&header).count() > 0;
        if has_expression || !is_counting || !script.calls_in(&header).all(is_test) {
            return Vec::new();
        }
        let sets =
            |range: &Range<usize>| identifiers(script.source(&header)).any(|variable| script.may_set(range, variable));
        let steps = statements(script, self.around).into_iter().map(|list| {
            let range = script.node(list).range.clone();
            let assigned = script.command_of(list).and_then(|command| script.assigned(command));
            let is_step = assigned.is_some_and(|(_, value)| is_repeatable(script, &value.range));
            let is_after = range.start > script.node(self.statement).range.start;
            (!sets(&range)).then_some(None).or((is_step && is_after).then_some(Some(range)))
        });
        steps.collect::<Option<Vec<_>>>().unwrap_or_default().into_iter().flatten().collect()
    }

    /// Returns the code before and after a loop from which it reads lines, if it can be executed
    /// twice: `find . |`, `<FILE`, `< <(find .)`.
    fn input(&self) -> Result<(String, String), EditRefusal> {
        let script = self.call.script;
        let node = &script.node(self.around.node).range;
        let feeder = self
            .pipeline()
            .and_then(|pipeline| script.children(pipeline).next())
            .map_or(node.start, |first| script.node(first).range.start);
        let (before, mut after) = (feeder..node.start, self.end()..node.end);
        // Other questions of the loop.
        while let Some(length) = answers_length(script.source(&after)) {
            after.start += length;
        }
        let text = name(script.source(&after));
        let is_of_file = text.trim_start().strip_prefix('<').is_some_and(|file| {
            let file = file.trim();
            let quoted = file.strip_prefix('"').and_then(|file| file.strip_suffix('"'));
            let is_plain =
                |byte: u8| byte.is_ascii_alphanumeric() || b"_./-$".contains(&byte) || byte == b' ' && quoted.is_some();
            !file.is_empty() && quoted.unwrap_or(file).bytes().all(is_plain)
        });
        let is_of_program = text.trim_start().starts_with("< <(")
            && script.inside(self.around.node).any(|index| {
                let inner = script.node(index);
                matches!(inner.kind, Kind::Substitution)
                    && inner.range.start >= after.start
                    && inner.range.end == after.end
            });
        let is_known = if before.is_empty() { is_of_file || is_of_program } else { after.is_empty() };
        // A program may see what the loop changes.
        let is_same = before.is_empty() && is_of_file || self.only_reads();
        match is_known && is_same && is_repeatable(script, &before) && is_repeatable(script, &after) {
            true => Ok((name(script.source(&before)), text)),
            false => refuse("the list of the loop may change"),
        }
    }

    /// Whether the loop changes no files, apart from what the question itself does.
    fn only_reads(&self) -> bool {
        self.only_calls(only_reads_files)
    }

    fn only_calls(&self, is_of_kind: fn(&Script<'_>, usize) -> bool) -> bool {
        let script = self.call.script;
        let own = script.node(self.statement).range.start..script.node(self.asked).range.end;
        only_calls(script, self.around, &own, is_of_kind)
    }

    /// Returns the pipeline that ends with the loop.
    fn pipeline(&self) -> Option<usize> {
        let (script, node) = (self.call.script, self.around.node);
        let is_command = |each: &usize| !matches!(script.node(*each).kind, Kind::Substitution);
        script.node(node).parent.filter(|pipeline| {
            matches!(script.node(*pipeline).kind, Kind::Pipeline { is_negated: false })
                && script.children(*pipeline).filter(is_command).last() == Some(node)
        })
    }

    /// Returns the position after `done`.
    fn end(&self) -> usize {
        self.around.body.end + b"done".len()
    }

    /// Returns the call for all words of the loop, and what checks that each has an answer of one
    /// line: `stat -c %s *`.
    fn about_words(&self) -> Result<String, EditRefusal> {
        let (script, call) = (self.call.script, self.call);
        let each = self.each_line()?;
        // Commits do not change, whatever is written to files.
        let is_kept = if call.rewrite.program == b"git" { is_reader } else { only_reads_files };
        refuse_if(!self.only_calls(is_kept), "the loop has commands that may change the answer")?;
        let range = &script.node(call.command).range;
        let last = script.node(call.pipeline[call.pipeline.len() - 1]).range.end;
        let filters = if each == LineEach::Count { String::new() } else { name(script.source(&(range.end..last))) };
        let redirected =
            call.simple.redirections.iter().find(|each| each.operator == b"<").filter(|_| each == LineEach::Count);
        let operand = match redirected {
            Some(redirection) => &redirection.target,
            None => &call.simple.words[self.operand()?],
        };
        let before = self.with_changed_words(&each, redirected.map_or(operand.range.start, |each| each.range.start));
        let is_last = redirected.is_some() || call.simple.words.last().is_some_and(|last| last.range == operand.range);
        let drops_errors = call.simple.redirections.iter().any(|each| matches!(each.operator, b"2>" | b"&>"));
        let after = match is_condition(call) {
            true => String::new(),
            false => name(script.source(&(operand.range.end..range.end))),
        };
        let quiet = if drops_errors && !is_condition(call) { "" } else { " 2>/dev/null" };
        let print = format!("printf '%s\\n' \"$answers\"{filters}");
        let words =
            self.words().filter(|(variable, _, is_certain)| *is_certain && operand.variable() == Some(variable));
        if let Some((variable, list, _)) = words.filter(|_| !uses_parameters(before.as_bytes())) {
            if redirected.is_none() {
                position_of(call, variable)?;
            }
            let ask = self.checked(&each, &format!("{before}\"$@\"{after}{quiet}"), "$#", '\'');
            return Ok(format!("set -- {list}; {ask} && {print}"));
        }
        refuse_if(!is_last, "the file is not the last argument")?;
        let word = call.plain_source(operand)?;
        let rounds = self.rounds(script.source(&operand.range), &format!("printf '%s\\0' {word}"))?;
        let fixed = Script::parse(before.as_bytes());
        let fixed = fixed.and_then(|call| Some(call.simple(call.command_of(0)?)?.words.len())).unwrap_or(0);
        let ask = self.checked(&each, "\"$@\" 2>/dev/null", &format!("$(($# - {fixed}))"), '"');
        let before = before.trim_end();
        Ok(format!(
            "answers=$({rounds} | xargs -r0 sh -c '{ask} && printf \"%s\\n\" \"$answers\"' sh {before}{after}) && {print}"
        ))
    }

    /// Returns code that keeps the answers to a call about a number of words, and fails unless each
    /// has one.
    fn checked(&self, each: &LineEach, call: &str, number: &str, quote: char) -> String {
        // No match is an answer of grep.
        let status = if self.call.rewrite.program == b"grep" { " || [ $? -eq 1 ]" } else { "" };
        let lines = match each {
            LineEach::Count => format!("$(({number} + ({number} > 1)))"),
            LineEach::With(_) => number.to_owned(),
        };
        let print = format!("printf {quote}%s\\n{quote} \"$answers\"");
        format!("answers=$({call}){status} && [ $({print} | wc -l) -eq {lines} ]")
    }

    /// Returns the call up to a position, with the words that are different for several operands.
    fn with_changed_words(&self, each: &LineEach, end: usize) -> String {
        let (script, call) = (self.call.script, self.call);
        let LineEach::With(changes) = each else {
            return format!("{}-- ", name(script.source(&(script.node(call.command).range.start..end))));
        };
        let splices: Vec<Splice> =
            changes.iter().map(|(word, text)| splice(call.simple.words[*word].range.clone(), text.clone())).collect();
        name(&spliced(&script.text[..end], &splices)[script.node(call.command).range.start..])
    }

    /// Returns which word of the call is its file.
    fn operand(&self) -> Result<usize, EditRefusal> {
        super::many::operand_of(self.call, self.call.command, std::slice::from_ref(self.around))
    }

    /// Returns how the program prints a line for each operand, and checks the filters after it.
    fn each_line(&self) -> Result<LineEach, EditRefusal> {
        let call = self.call;
        let refused = || refuse(format!("{} does not certainly print one line for each word", call.program()));
        let of_call = |arguments: &Vec<Vec<u8>>| {
            let words: Vec<&[u8]> = arguments.iter().map(Vec::as_slice).collect();
            let each = match is_condition(call) && call.rewrite.program == b"grep" {
                true => LineEach::of_condition(&words),
                false => LineEach::of(&call.rewrite.program, &words),
            };
            each.filter(|_| !words.iter().any(|word| word.contains(&b'\n')))
        };
        let answer = call.rewrite.calls.first().and_then(of_call);
        let Some(first) = answer.clone() else { return refused() };
        let is_head = call.pipeline.first() == Some(&call.command);
        let is_count = first == LineEach::Count;
        let is_filter = |words: Vec<_>| if is_count { keeps_number(&words) } else { answers_each_line(&words, b"") };
        let is_known = |command: &usize| self.filter(*command).is_some_and(is_filter);
        let has_name = is_count && call.simple.words.len() > 2 && call.pipeline.len() == 1;
        let is_same = call.rewrite.calls.iter().all(|arguments| of_call(arguments) == answer);
        if is_head && call.pipeline[1..].iter().all(is_known) && is_same && !has_name { Ok(first) } else { refused() }
    }

    fn filter(&self, command: usize) -> Option<Vec<Vec<u8>>> {
        let simple = self.call.script.simple(command).filter(|simple| simple.redirections.is_empty())?;
        simple.words.iter().map(Word::literal).collect()
    }

    /// Returns the loop that prints all texts, and the filters: `for i in 1 2; do echo "$i"; done |
    /// bc`.
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
            filters.iter().all(|command| self.filter(*command).is_some_and(|words| answers_each_line(&words, source)))
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
        self.filtered(source, &echo, &filters)
    }

    /// Returns the loop that prints all texts, through filters.
    fn filtered(&self, source: &[u8], echo: &str, filters: &str) -> Result<String, EditRefusal> {
        let (script, call) = (self.call.script, self.call);
        let is_bc = |command: &usize| script.program(*command).is_some_and(|program| program == b"bc");
        if !source.iter().any(|byte| b"/%(^".contains(byte)) || !call.pipeline.iter().any(is_bc) {
            return Ok(format!("{} | {filters}", self.rounds(source, echo)?));
        }
        // bc prints nothing for an error, such as a division by zero. A mark shows where each
        // answer ends.
        refuse_if(call.rewrite.program != b"bc" || call.pipeline.len() > 2, "bc may print nothing")?;
        let marked = self.rounds(source, &format!("{echo}; echo 'print \"#\\n\"'"))?;
        Ok(format!("{marked} | {filters} | awk '$0 == \"#\" {{ print line; line = \"\"; next }} {{ line = $0 }}'"))
    }

    /// Returns the statements before the question that a text depends on. They must only assign,
    /// and nothing else may change the text.
    fn assignments_for(&self, text: &[u8]) -> Result<Vec<Range<usize>>, EditRefusal> {
        let script = self.call.script;
        let start = script.node(self.statement).range.start;
        let header = script.source(&self.around.header(script));
        let mut needed: Vec<&[u8]> = identifiers(text).collect();
        let mut all = Vec::new();
        let steps = self.steps();
        for list in statements(script, self.around).into_iter().rev() {
            let range = script.node(list).range.clone();
            let mut changed = needed.iter().copied().filter(|_| !steps.contains(&range));
            let Some(variable) = changed.find(|variable| script.may_set(&range, variable)) else {
                continue;
            };
            let value = script.command_of(list).and_then(|command| script.assigned(command));
            let value = value.filter(|(assigned, value)| {
                *assigned == variable && range.start < start && is_repeatable(script, &value.range)
            });
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

    /// Returns the changes: the loop reads each answer from a here-document. `may_lack`: if that
    /// has none, the round asks for itself.
    fn document(&self, question: &str, may_lack: bool) -> Result<Vec<Splice>, EditRefusal> {
        let script = self.call.script;
        let line_end = self.line_end()?;
        let is_free = |descriptor: &u8| {
            let forms = [format!("{descriptor}<"), format!("{descriptor}>"), format!("&{descriptor}")];
            !forms.iter().any(|form| contains(script.text, form.as_bytes()))
        };
        let Some(descriptor) = (3..10).find(is_free) else { return refuse("no descriptor is free") };
        let mut delimiter = "END".to_owned();
        while names(script.text, delimiter.as_bytes()) {
            delimiter.push('_');
        }
        let mut splices = self.reads(descriptor, may_lack);
        // The text of the first document on a line comes first.
        splices.extend([
            splice(self.end()..self.end(), format!(" {descriptor}<<{delimiter}")),
            splice(line_end..line_end, format!("\n$({question})\n{delimiter}")),
        ]);
        Ok(splices)
    }

    /// Returns the end of the line on which the loop ends, if the loop is a statement that ends
    /// there.
    fn line_end(&self) -> Result<usize, EditRefusal> {
        let (script, node) = (self.call.script, self.around.node);
        let end = script.node(node).range.end;
        let line_end = line_end(script.text, end);
        let after = script.text[end..line_end].trim_ascii();
        let is_inside = script.ancestors(node).any(|each| matches!(script.node(each).kind, Kind::Substitution));
        let list = self.pipeline().and_then(|pipeline| script.node(pipeline).parent);
        let is_statement = list.is_some_and(|list| {
            script.children(list).count() == 1 && matches!(script.node(list).kind, Kind::List { is_background: false })
        });
        match (after.is_empty() || after.starts_with(b"#")) && !is_inside && is_statement {
            true => Ok(line_end),
            false => refuse("the loop has no line of its own at its end"),
        }
    }

    /// Returns the changes of the statement that asks: it reads an answer from a descriptor.
    fn reads(&self, descriptor: u8, may_lack: bool) -> Vec<Splice> {
        let script = self.call.script;
        // The number is padded with blanks.
        let (ifs, rest) = if self.call.rewrite.program == b"wc" { ("", " _") } else { ("IFS= ", "") };
        let read = |variable: &str, asked: &str| match may_lack {
            true => format!("{ifs}read -r {variable}{rest} <&{descriptor} && [ -n \"${variable}\" ] || {asked}"),
            false => format!("{ifs}read -r {variable}{rest} <&{descriptor}"),
        };
        let holder = script.command_of(self.statement);
        let assigned = holder
            .and_then(|holder| script.assigned(holder))
            .filter(|(_, value)| value.substitution() == Some(self.asked));
        if let Some((variable, _)) = assigned {
            let range = script.node(self.statement).range.clone();
            return vec![splice(range.clone(), read(&name(variable), &name(script.source(&range))))];
        }
        let variable = unused_variable(script, &format!("{}_result", self.call.program()));
        let range = script.node(self.asked).range.clone();
        let asked = name(script.source(&range));
        let text = match (is_condition(self.call), may_lack) {
            (true, _) => format!("case ${variable} in '') {asked};; 0) false;; *) true;; esac").into_bytes(),
            (false, true) => format!("${{{variable}:-{asked}}}").into_bytes(),
            (false, false) => used(script, &variable, range.end),
        };
        let read = read(&variable, &format!("{variable}="));
        vec![insertion_at(script.text, script.node(self.statement).range.start, &read), splice(range, text)]
    }
}

/// Returns the length of ` 3<<END`, with which answers are read.
fn answers_length(text: &[u8]) -> Option<usize> {
    let rest = text.strip_prefix(b" ").filter(|rest| rest.first().is_some_and(u8::is_ascii_digit))?;
    let rest = rest[1..].strip_prefix(b"<<END")?;
    let length = rest.iter().take_while(|byte| **byte == b'_').count();
    Some(text.len() - rest.len() + length)
}
