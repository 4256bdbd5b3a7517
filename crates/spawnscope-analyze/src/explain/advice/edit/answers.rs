//! Edits of loops that ask a program in each round: `x=$(program "$f")`, `if grep -q a "$f"` or
//! `x=$(echo "$y" | filter)`. One call answers all rounds, and the loop reads its lines from a
//! here-document. So the loop stays in its shell, with its variables. Words may fail one by one:
//! unless the call for all of them succeeds and prints one line for each, every round asks for
//! itself.

use std::ops::Range;

use super::around::{
    Around, LoopKind, insertion_at, is_certain, is_reader, only_calls, only_reads_files, statements, uses_parameters,
};
use super::lookup::is_condition;
use super::many::{operand_of, position_of};
use super::one_line::{LineEach, answers_each_line, is_one_line, keeps_number};
use super::shell::{FoundCall, unused_variable, used};
use super::{Result, Splice, inserted, limited, line_end, or_refuse, refuse_for, refuse_if, splice, spliced};
use crate::explain::advice::phrases::{ECHO_LIMIT, name};
use crate::patterns::programs::has_property;
use crate::patterns::script::{Kind, Script, Word, identifiers, names, span};
use crate::patterns::words::{Words, contains};

/// Commands after which the other answers of a loop would not be read, or read too late.
const LEAVE_THE_ROUND: Words = Words("break continue exit return");

/// The question of a round.
struct Question<'q> {
    call: &'q FoundCall<'q>,
    around: &'q Around<'q>,
    /// The `$( )` of the call, or the call itself if only its exit status counts.
    asked: usize,
    /// The statement of the loop that contains the call.
    statement: usize,
}

/// Replaces the calls in a loop by one.
pub(super) fn of_one_call(call: &FoundCall<'_>, loops: &[Around<'_>]) -> Result<Vec<Splice>> {
    let script = call.script;
    let asked = call.substitution.or(is_condition(call).then_some(call.command));
    let found = or_refuse(loops.first().zip(asked), "the call is not in a loop over words or lines");
    let (around, asked) = found?;
    let above: Vec<usize> = script.ancestors(asked).take_while(|each| *each != around.node).collect();
    // The answer is needed in each round.
    let is_always = above.iter().zip(above.iter().skip(1)).all(|(inner, outer)| {
        let is_first = script.children(*outer).next() == Some(*inner);
        is_first
            || matches!(script.kind(*inner), Kind::Simple(_)) && matches!(script.kind(*outer), Kind::Pipeline { .. })
    });
    let statement = or_refuse(above.last().filter(|_| is_always), "the call is not a statement of the loop")?;
    let question = Question { call, around, asked, statement: *statement };
    question.check_before()?;
    match call.fed {
        // `$( )` removes empty answers at the end, but not those before a dot.
        Some(text) => {
            let limits: &[&str] = if call.pipeline.len() > 1 { &[ECHO_LIMIT] } else { &[] };
            Ok(limited(question.document(&(question.about_text(text)? + "; echo ."), false)?, limits))
        }
        None => Ok(limited(
            question.document(&question.about_words()?, true)?,
            &["the answers are from before the loop: what other programs change while it runs is not seen"],
        )),
    }
}

/// Whether code prints the same if it is executed twice: it only reads, and not from its standard
/// input.
fn is_repeatable(script: &Script<'_>, range: &Range<usize>) -> bool {
    let is_head =
        |command: usize| script.parent(command).and_then(|pipeline| script.children(pipeline).next()) == Some(command);
    let is_repeatable = |index: usize| match script.kind(index) {
        Kind::Simple(simple) => {
            let program = script.program(index).unwrap_or_default();
            (has_property(&program, "no-input") || !is_head(index) && has_property(&program, "filter"))
                && only_reads_files(script, index)
                && simple.assignments.is_empty()
        }
        Kind::List { is_background } => !is_background,
        Kind::Pipeline { .. } | Kind::Substitution => true,
        _ => false,
    };
    script.nodes_in(range).all(is_repeatable) && !names(script.source(range), b"RANDOM")
}

impl<'q> Question<'q> {
    /// Checks that no statement before the question leaves the round.
    fn check_before(&self) -> Result<()> {
        let script = self.call.script;
        let before = self.around.body.start..script.start(self.statement);
        let leaves = script.calls_in(&before).any(|program| LEAVE_THE_ROUND.contains(&program));
        refuse_if(leaves, "the loop does not ask in each round")
    }

    /// Returns the words of the loop as they are written, if they can be expanded twice.
    fn words(&self) -> Option<(&'q [u8], String, bool)> {
        let script = self.call.script;
        let (LoopKind::Words(variable), Kind::For(each)) = (self.around.kind, script.kind(self.around.node)) else {
            return None;
        };
        let list = name(script.source(&span(&each.words)));
        let is_repeatable = !each.words.is_empty() && each.words.iter().all(|word| is_repeatable(script, &word.range));
        is_repeatable.then(|| (variable, list, each.words.iter().any(|word| is_certain(script, word))))
    }

    /// Returns a loop that does `body` for the same words or lines.
    fn rounds(&self, text: &[u8], body: &str) -> Result<String> {
        let script = self.call.script;
        let joined = |ranges: &[Range<usize>], separator: &str| {
            ranges.iter().map(|range| name(script.source(range)) + separator).collect::<String>()
        };
        let body = joined(&self.assignments_for(text)?, "; ") + body;
        if let Some((variable, list, _)) = self.words() {
            return Ok(format!("for {} in {list}; do {body}; done", name(variable)));
        }
        let header = script.start(self.around.node)..self.around.body.start - b"do".len();
        let header = name(script.source(&header)).replace('\n', "; ");
        let steps = self.steps();
        if !steps.is_empty() {
            return Ok(format!("{} do {body}; {}done", header.trim_end(), joined(&steps, "; ")));
        }
        let reads = script.inside(self.around.node).find_map(|index| script.program(index));
        let is_reading = header.starts_with("while ") && reads.is_some_and(|program| program == b"read");
        refuse_if(!is_reading, "the list of the loop may change")?;
        let (before, after) = self.input()?;
        Ok(format!("{before}{} do {body}; done{after}", header.trim_end()))
    }

    /// Returns the assignments with which a loop counts until a test of its header fails: `i=$((i +
    /// 1))`. Empty for other loops.
    fn steps(&self) -> Vec<Range<usize>> {
        let script = self.call.script;
        let header = self.around.header(script);
        let is_test = |program: Vec<u8>| matches!(&program[..], b"[" | b"test");
        let has_expression = script.nodes_in(&header).any(|index| matches!(script.kind(index), Kind::Expression(_)));
        let is_counting = self.around.kind == LoopKind::Other && script.calls_in(&header).count() > 0;
        if has_expression || !is_counting || !script.calls_in(&header).all(is_test) {
            return Vec::new();
        }
        let sets =
            |range: &Range<usize>| identifiers(script.source(&header)).any(|variable| script.may_set(range, variable));
        let steps = statements(script, self.around).into_iter().map(|list| {
            let range = script.range(list);
            let assigned = script.command_of(list).and_then(|command| script.assigned(command));
            let is_step = assigned.is_some_and(|(_, value)| is_repeatable(script, &value.range));
            let is_after = range.start > script.start(self.statement);
            (!sets(&range)).then_some(None).or((is_step && is_after).then_some(Some(range)))
        });
        steps.collect::<Option<Vec<_>>>().unwrap_or_default().into_iter().flatten().collect()
    }

    /// Returns the code before and after a loop from which it reads lines, if it can be executed
    /// twice: `find . |`, `<FILE`, `< <(find .)`.
    fn input(&self) -> Result<(String, String)> {
        let script = self.call.script;
        let node = script.range(self.around.node);
        let feeder = self.pipeline().and_then(|pipeline| script.children(pipeline).next()).unwrap_or(self.around.node);
        let feeder = script.start(feeder);
        let (before, mut after) = (feeder..node.start, self.around.end()..node.end);
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
        let mut last = script.nodes_in(&after).filter(|index| script.end(*index) == after.end);
        let is_of_program =
            text.trim_start().starts_with("< <(") && last.any(|index| matches!(script.kind(index), Kind::Substitution));
        let is_known = if before.is_empty() { is_of_file || is_of_program } else { after.is_empty() };
        // A program may see what the loop changes.
        let is_same = before.is_empty() && is_of_file || self.only_calls(only_reads_files);
        let is_repeatable = is_repeatable(script, &before) && is_repeatable(script, &after);
        refuse_if(!(is_known && is_same && is_repeatable), "the list of the loop may change")?;
        Ok((name(script.source(&before)), text))
    }

    /// Whether all commands of the loop, apart from the question itself, are of a kind.
    fn only_calls(&self, is_of_kind: fn(&Script<'_>, usize) -> bool) -> bool {
        let script = self.call.script;
        let own = script.start(self.statement)..script.end(self.asked);
        only_calls(script, self.around, &own, is_of_kind)
    }

    /// Returns the pipeline that ends with the loop.
    fn pipeline(&self) -> Option<usize> {
        let (script, node) = (self.call.script, self.around.node);
        let is_command = |each: &usize| !matches!(script.kind(*each), Kind::Substitution);
        script.parent(node).filter(|pipeline| {
            matches!(script.kind(*pipeline), Kind::Pipeline { is_negated: false })
                && script.children(*pipeline).filter(is_command).last() == Some(node)
        })
    }

    /// Returns the call for all words of the loop, and what checks that each has an answer of one
    /// line: `stat -c %s *`.
    fn about_words(&self) -> Result<String> {
        let (script, call) = (self.call.script, self.call);
        let each = self.each_line()?;
        let is_count = each == LineEach::Count;
        // Commits do not change, whatever is written to files.
        let is_kept = if call.rewrite.program == b"git" { is_reader } else { only_reads_files };
        refuse_if(!self.only_calls(is_kept), "the loop has commands that may change the answer")?;
        let (range, last) = (script.range(call.command), script.end(call.pipeline[call.pipeline.len() - 1]));
        let filters = if is_count { String::new() } else { name(script.source(&(range.end..last))) };
        let redirected = call.simple.redirections.iter().find(|each| is_count && each.operator == b"<");
        let operand = match redirected {
            Some(redirection) => &redirection.target,
            None => &call.simple.words[operand_of(call, call.command, std::slice::from_ref(self.around))?],
        };
        let before = self.with_changed_words(&each, redirected.map_or(operand.range.start, |each| each.range.start));
        let is_last = redirected.is_some() || call.simple.words.last().is_some_and(|last| last.range == operand.range);
        let drops_errors = call.simple.redirections.iter().any(|each| matches!(each.operator, b"2>" | b"&>"));
        let after = if is_condition(call) { range.end } else { operand.range.end };
        let after = name(script.source(&(after..range.end)));
        let quiet = if drops_errors && !is_condition(call) { "" } else { " 2>/dev/null" };
        let print = format!("printf '%s\\n' \"$answers\"{filters}");
        let words = self.words().filter(|(each, _, is_certain)| *is_certain && operand.variable() == Some(each));
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
            return format!("{}-- ", name(script.source(&(script.start(call.command)..end))));
        };
        let splices: Vec<Splice> =
            changes.iter().map(|(word, text)| splice(call.simple.words[*word].range.clone(), text.clone())).collect();
        name(&spliced(&script.text[..end], &splices)[script.start(call.command)..])
    }

    /// Returns how the program prints a line for each operand, and checks the filters after it.
    fn each_line(&self) -> Result<LineEach> {
        let call = self.call;
        let of_call = |arguments: &Vec<Vec<u8>>| {
            let words: Vec<&[u8]> = arguments.iter().map(Vec::as_slice).collect();
            let each = match is_condition(call) && call.rewrite.program == b"grep" {
                true => LineEach::of_condition(&words),
                false => LineEach::of(&call.rewrite.program, &words),
            };
            each.filter(|_| !words.iter().any(|word| word.contains(&b'\n')))
        };
        let answer = call.rewrite.calls.first().and_then(of_call);
        let is_head = call.pipeline.first() == Some(&call.command);
        let is_count = answer == Some(LineEach::Count);
        let is_filter = |words: Vec<_>| if is_count { keeps_number(&words) } else { answers_each_line(&words, b"") };
        let is_known = |command: &usize| self.filter(*command).is_some_and(is_filter);
        let has_name = is_count && call.simple.words.len() > 2 && call.pipeline.len() == 1;
        let is_same = call.rewrite.calls.iter().all(|arguments| of_call(arguments) == answer);
        let is_certain = is_head && call.pipeline[1..].iter().all(is_known) && is_same && !has_name;
        let other = format!("{} does not certainly print one line for each word", call.program());
        or_refuse(answer.filter(|_| is_certain), other)
    }

    fn filter(&self, command: usize) -> Option<Vec<Vec<u8>>> {
        self.call.script.simple(command).filter(|simple| simple.redirections.is_empty())?.literals()
    }

    /// Returns the loop that prints all texts, and the filters: `for i in 1 2; do echo "$i"; done |
    /// bc`.
    fn about_text(&self, text: &Word<'q>) -> Result<String> {
        let (script, call) = (self.call.script, self.call);
        let is_line = call.pipeline.last() == Some(&call.command) && is_one_line(script, text);
        refuse_if(!is_line, format!("the input of {} is not one line", call.program()))?;
        let source = script.source(&text.range);
        let feeder = script.simple(call.pipeline[0]).filter(|_| call.pipeline.len() > 1);
        let is_here = feeder.is_none();
        let filters = if is_here { std::slice::from_ref(&call.command) } else { &call.pipeline[1..] };
        let ends_line =
            feeder.is_none_or(|feeder| !matches!(feeder.words[1].literal().as_deref(), Some(b"%s" | b"-n")));
        let is_filter = |words: Option<Vec<Vec<u8>>>| words.is_some_and(|words| answers_each_line(&words, source));
        let are_filters = match is_here {
            true => is_filter(call.simple.literals()),
            false => filters.iter().all(|command| is_filter(self.filter(*command))),
        };
        refuse_if(
            !ends_line || !are_filters,
            format!("{} does not certainly print one line for each line", call.program()),
        )?;
        let end = if is_here { span(&call.simple.words).end } else { script.end(call.command) };
        // echo prints no line for -n, and in sh two for `\\n`: the other answers would be wrong.
        let is_quoted = source.starts_with(b"\"") && source.ends_with(b"\"") && !source.contains(&b'\\');
        let echo = match is_here || is_quoted {
            true => format!("printf '%s\\n' {}", call.plain_source(text)?),
            false => name(script.code(call.pipeline[0])),
        };
        let filters = name(script.source(&(script.start(filters[0])..end)));
        self.filtered(source, &echo, &filters)
    }

    /// Returns the loop that prints all texts, through filters.
    fn filtered(&self, source: &[u8], echo: &str, filters: &str) -> Result<String> {
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
    fn assignments_for(&self, text: &[u8]) -> Result<Vec<Range<usize>>> {
        let script = self.call.script;
        let start = script.start(self.statement);
        let header = script.source(&self.around.header(script));
        let mut needed: Vec<&[u8]> = identifiers(text).collect();
        let mut all = Vec::new();
        let steps = self.steps();
        for list in statements(script, self.around).into_iter().rev() {
            let range = script.range(list);
            let mut changed = needed.iter().copied().filter(|_| !steps.contains(&range));
            let Some(variable) = changed.find(|variable| script.may_set(&range, variable)) else {
                continue;
            };
            let value = script.command_of(list).and_then(|command| script.assigned(command));
            let value = value.filter(|(assigned, value)| {
                *assigned == variable && range.start < start && is_repeatable(script, &value.range)
            });
            let (_, value) = or_refuse(value, format!("`${}` depends on what the loop does", name(variable)))?;
            needed.retain(|each| *each != variable);
            needed.extend(identifiers(script.source(&value.range)));
            all.push(range);
        }
        let is_own = |variable: &[u8]| names(header, variable);
        let changed = needed.into_iter().find(|variable| {
            !is_own(variable) && self.around.may_set(script, variable) && script.may_set(&self.around.body, variable)
        });
        all.reverse();
        refuse_for(changed.map(|variable| format!("`${}` depends on what the loop does", name(variable))))?;
        Ok(all)
    }

    /// Returns the changes: the loop reads each answer from a here-document. `may_lack`: if that
    /// has none, the round asks for itself.
    fn document(&self, question: &str, may_lack: bool) -> Result<Vec<Splice>> {
        let script = self.call.script;
        let line_end = self.line_end()?;
        let is_free = |descriptor: &u8| {
            let forms = [format!("{descriptor}<"), format!("{descriptor}>"), format!("&{descriptor}")];
            !forms.iter().any(|form| contains(script.text, form.as_bytes()))
        };
        let descriptor = or_refuse((3..10).find(is_free), "no descriptor is free")?;
        let mut delimiter = "END".to_owned();
        while names(script.text, delimiter.as_bytes()) {
            delimiter.push('_');
        }
        let mut splices = self.reads(descriptor, may_lack);
        // The text of the first document on a line comes first.
        splices.extend([
            inserted(self.around.end(), format!(" {descriptor}<<{delimiter}")),
            inserted(line_end, format!("\n$({question})\n{delimiter}")),
        ]);
        Ok(splices)
    }

    /// Returns the end of the line on which the loop ends, if the loop is a statement that ends
    /// there.
    fn line_end(&self) -> Result<usize> {
        let (script, node) = (self.call.script, self.around.node);
        let end = script.end(node);
        let line_end = line_end(script.text, end);
        let after = script.text[end..line_end].trim_ascii();
        let is_end = after.is_empty() || after.starts_with(b"#");
        let list = self.pipeline().and_then(|pipeline| script.parent(pipeline));
        let is_statement = list.is_some_and(|list| {
            script.only_child(list).is_some() && matches!(script.kind(list), Kind::List { is_background: false })
        });
        let is_last = is_end && script.substitution_around(node).is_none() && is_statement;
        refuse_if(!is_last, "the loop has no line of its own at its end").map(|()| line_end)
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
        let assigned = script.command_of(self.statement).and_then(|holder| script.assigned(holder));
        if let Some((variable, _)) = assigned.filter(|(_, value)| value.substitution() == Some(self.asked)) {
            let text = read(&name(variable), &name(script.code(self.statement)));
            return vec![splice(script.range(self.statement), text)];
        }
        let variable = unused_variable(script, &format!("{}_result", self.call.program()));
        let range = script.range(self.asked);
        let asked = name(script.code(self.asked));
        let text = match (is_condition(self.call), may_lack) {
            (true, _) => format!("case ${variable} in '') {asked};; 0) false;; *) true;; esac").into_bytes(),
            (false, true) => format!("${{{variable}:-{asked}}}").into_bytes(),
            (false, false) => used(script, &variable, range.end),
        };
        let read = read(&variable, &format!("{variable}="));
        vec![insertion_at(script.text, script.start(self.statement), &read), splice(range, text)]
    }
}

/// Returns the length of ` 3<<END`, with which answers are read.
fn answers_length(text: &[u8]) -> Option<usize> {
    let rest = text.strip_prefix(b" ").filter(|rest| rest.first().is_some_and(u8::is_ascii_digit))?;
    let rest = rest[1..].strip_prefix(b"<<END")?;
    let length = rest.iter().take_while(|byte| **byte == b'_').count();
    Some(text.len() - rest.len() + length)
}
