//! Edits of shell scripts: finds the recorded calls in the script, and replaces them where they
//! stand. `once` and `many` move them out of loops.

use std::collections::BTreeSet;
use std::ops::Range;

use super::around::{checks_status, declared, insertion};
use super::form::{Form, Operand, expansion, form_for};
use super::stages::fed_word;
use super::{
    EditRefusal, NewCode, Splice, difference, directories, in_order, launchers, limited, lookup, once, one_line,
    refuse, refuse_if, splice, spliced, stages, together, wait, zsh,
};
use crate::explain::advice::phrases::name;
use crate::patterns::script::{Kind, Part, Script, Simple, Word, is_several_words, names};
use crate::patterns::shells::Dialect;

/// How to rewrite the calls of a program in a line of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::explain::advice) struct ShellRewrite {
    /// The base name of the program.
    pub(in crate::explain::advice) program: Vec<u8>,
    /// The different lists of arguments of the recorded calls.
    pub(in crate::explain::advice) calls: BTreeSet<Vec<Vec<u8>>>,
    pub(in crate::explain::advice) code: NewCode,
    pub(in crate::explain::advice) dialect: Dialect,
    /// Whether one of the recorded calls had another exit status than 0.
    pub(in crate::explain::advice) has_failures: bool,
    /// Whether one of them failed: an exit status of 1 may also be an answer.
    pub(in crate::explain::advice) has_errors: bool,
    /// The lists of arguments of other recorded calls from the line, which the edit does not
    /// replace.
    pub(in crate::explain::advice) others: BTreeSet<Vec<Vec<u8>>>,
    /// Whether no two of the calls have the same arguments.
    pub(in crate::explain::advice) is_distinct: bool,
    /// Other programs of which a launch from this file failed.
    pub(in crate::explain::advice) failed: BTreeSet<Vec<u8>>,
}

/// A call in a script.
pub(super) struct FoundCall<'s, 't> {
    pub(super) script: &'s Script<'t>,
    pub(super) rewrite: &'s ShellRewrite,
    /// The node of the command.
    pub(super) command: usize,
    pub(super) simple: &'s Simple<'t>,
    /// The commands of the pipeline that the command ends.
    pub(super) pipeline: Vec<usize>,
    /// The number of calls that the edit has replaced before. Each has a variable of its own.
    pub(super) number: usize,
    /// The new code for the words of the call.
    pub(super) form: Form,
    /// The text that is the input of the pipeline: `echo "$x" | program`, `program <<<"$x"`.
    pub(super) fed: Option<&'s Word<'t>>,
    /// The `$( )` that contains the pipeline and nothing else.
    pub(super) substitution: Option<usize>,
}

impl ShellRewrite {
    /// Returns the changes of the calls at a line, or of all calls.
    pub(super) fn splices(&self, text: &[u8], line: Option<u32>) -> Result<Vec<Splice>, EditRefusal> {
        let Some(script) = Script::parse(text) else {
            return refuse("the script has syntax that Spawnscope does not read");
        };
        let program = name(&self.program);
        let found = line.map_or_else(|| script.calls(&self.program).collect(), |line| self.calls_at(&script, line));
        refuse_if(found.is_empty(), format!("the line does not call {program} by its name"))?;
        let is_found = |call: &&Vec<Vec<u8>>| found.iter().any(|command| can_be(&script, *command, call));
        if !self.calls.iter().all(|call| is_found(&call)) {
            return refuse(format!("{program} got other arguments from this line than those that are written there"));
        }
        let is_one_of = |all: &BTreeSet<_>, command| all.iter().any(|call: &Vec<_>| can_be(&script, command, call));
        let mut splices = Vec::new();
        // A pipeline is merged as a whole.
        let is_merged = self.code.form == Form::Many;
        let pipeline = |command: usize| script.node(command).parent;
        let is_last = |command: &usize| {
            !is_merged || !found.iter().any(|other| other > command && pipeline(*other) == pipeline(*command))
        };
        let found: Vec<usize> = found.iter().copied().filter(is_last).collect();
        for (number, command) in found.into_iter().filter(|command| is_one_of(&self.calls, *command)).enumerate() {
            if is_one_of(&self.others, command) {
                return refuse(format!(
                    "the line also calls {program} with arguments that the replacement does not handle"
                ));
            }
            let call = FoundCall::new(&script, self, command, number)?;
            if let Some(stage) = stages::last_stage(&call) {
                let separated = spliced(text, &[stage]);
                let of_stages = in_order(self.splices(&separated, line)?)?;
                let limits = of_stages.iter().flat_map(|splice| &splice.limits).copied().collect();
                return Ok(vec![Splice { limits, ..difference(text, &spliced(&separated, &of_stages)) }]);
            }
            let mut limits = [self.code.form.limits(), &self.code.limits].concat();
            limits.extend(stages::is_split(&call).then_some(stages::SPLIT_LIMIT));
            splices.extend(limited(call.splices()?, &limits));
        }
        let is_escaped = |splice: &Splice| splice.text.contains(&b'\\') && is_in_backquotes(&script, &splice.range);
        if splices.iter().any(is_escaped) { refuse("the call is within backquotes") } else { Ok(splices) }
    }

    /// Returns the calls that begin in a line or, if there are none, those that contain it. bash
    /// names the line of `$(function)` for the last command of the function, so the functions that
    /// the line calls are searched last.
    fn calls_at(&self, script: &Script<'_>, line: u32) -> Vec<usize> {
        let lines = |command: &usize| {
            let range = &script.node(*command).range;
            script.line_of(range.start)..=script.line_of(range.end)
        };
        let calls: Vec<usize> = script.calls(&self.program).collect();
        let at_line = |command: &usize| *lines(command).start() == line;
        let beginning: Vec<usize> = calls.iter().copied().filter(at_line).collect();
        let around = calls.iter().copied().filter(|command| lines(command).contains(&line));
        let around: Vec<usize> = if beginning.is_empty() { around.collect() } else { beginning };
        if !around.is_empty() {
            return around;
        }
        let commands =
            (0..script.len()).filter(at_line).filter_map(|index| script.simple(index)?.words.first()?.literal());
        let functions: Vec<Range<usize>> = commands.filter_map(|command| script.function(&command)).collect();
        let is_called =
            |command: &usize| functions.iter().any(|range| range.contains(&script.node(*command).range.start));
        calls.into_iter().filter(is_called).collect()
    }
}

/// Whether a range is within backquotes, where backslashes have another meaning.
fn is_in_backquotes(script: &Script<'_>, range: &Range<usize>) -> bool {
    (0..script.len()).map(|index| script.node(index)).any(|node| {
        let is_around = node.range.start < range.start && range.end < node.range.end;
        is_around && matches!(node.kind, Kind::Substitution) && script.source(&node.range).starts_with(b"`")
    })
}

/// Whether a command may have made a recorded call.
pub(super) fn can_be(script: &Script<'_>, command: usize, call: &[Vec<u8>]) -> bool {
    let words = script.simple(command).map(|simple| &simple.words[1..]).unwrap_or_default();
    words.len() == call.len() && words.iter().zip(call).all(|(word, argument)| word.can_be(argument))
}

impl<'s, 't> FoundCall<'s, 't> {
    fn new(
        script: &'s Script<'t>,
        rewrite: &'s ShellRewrite,
        command: usize,
        number: usize,
    ) -> Result<Self, EditRefusal> {
        let simple = script.simple(command).filter(|simple| simple.assignments.is_empty());
        let Some(simple) = simple else { return refuse("the line sets variables only for this call") };
        let pipeline: Vec<usize> =
            script.node(command).parent.map(|parent| script.children(parent).collect()).unwrap_or_default();
        let list = script.node(command).parent.and_then(|pipeline| script.node(pipeline).parent);
        let substitution = list.and_then(|list| script.node(list).parent).filter(|parent| {
            let is_alone =
                script.children(*parent).count() == 1 && list.is_some_and(|list| script.children(list).count() == 1);
            let opening = script.source(&script.node(*parent).range);
            matches!(script.node(*parent).kind, Kind::Substitution)
                && is_alone
                && !opening.starts_with(b"<")
                && !opening.starts_with(b">")
        });
        let here = simple.redirections.iter().find(|each| each.operator == b"<<<").map(|each| &each.target);
        let feeder = pipeline.first().filter(|first| **first != command).and_then(|first| script.simple(*first));
        let fed = feeder.map_or(here, fed_word);
        let form = form_for(rewrite, simple)?;
        Ok(FoundCall { script, rewrite, command, simple, pipeline, number, form, fed, substitution })
    }

    pub(super) fn program(&self) -> String {
        name(&self.rewrite.program)
    }

    pub(super) fn splices(&self) -> Result<Vec<Splice>, EditRefusal> {
        zsh::check(self)?;
        match &self.form {
            Form::Once => once::once(self),
            Form::Many => stages::without_reversing(self).unwrap_or_else(|| lookup::lookup(self)),
            Form::Pass => launchers::pass_many(self),
            Form::Feed => stages::without_stage(self),
            Form::Together => together::together(self),
            Form::Wait => wait::for_child(self),
            Form::Tested => directories::tested(self),
            Form::Builtin(name) => Ok(vec![splice(self.simple.words[0].range.clone(), name.clone())]),
            _ if self.substitution.is_some() => self.in_substitution(),
            _ => self.in_place(),
        }
    }

    /// Returns the text that the program reads, and checks that nothing else leads into or out of
    /// the call.
    pub(super) fn input(&self) -> Result<Option<&'s Word<'t>>, EditRefusal> {
        let is_quiet =
            |operator: &[u8], target: &Word<'_>| operator == b"2>" && target.literal().as_deref() == Some(b"/dev/null");
        let redirections = self.simple.redirections.iter().filter(|each| !is_quiet(each.operator, &each.target));
        let redirections: Vec<_> = redirections.collect();
        let other = || refuse(format!("the input of {} is not the text of a variable", self.program()));
        match (self.form.has_input(), &self.pipeline[..], &redirections[..]) {
            (false, [_], []) => Ok(None),
            (true, [_], [here]) if here.operator == b"<<<" => Ok(Some(&here.target)),
            (true, [feeder, last], []) if *last == self.command => match self.script.simple(*feeder).and_then(fed_word)
            {
                Some(word) => Ok(Some(word)),
                None => other(),
            },
            (true, ..) => other(),
            (false, ..) => refuse(format!("the input or output of {} is redirected", self.program())),
        }
    }

    /// Replaces `$( )` by a word, or by a variable that commands before it set.
    fn in_substitution(&self) -> Result<Vec<Splice>, EditRefusal> {
        let Some(substitution) = self.substitution else { return refuse("there is no substitution") };
        let input = self.input()?;
        self.check_status(substitution)?;
        let range = self.script.node(substitution).range.clone();
        if let Some(text) = self.word(input)? {
            return Ok(vec![splice(range, text)]);
        }
        let Some(holder) = self.script.node(substitution).parent else {
            return refuse("there is no command around the call");
        };
        if let Some(splices) = self.in_assignment(holder, substitution, input)? {
            return Ok(splices);
        }
        let variable = self.new_variable(input);
        let commands = self.commands(&variable, input)?.join("; ");
        let before = insertion(self.script, holder, &commands)?;
        Ok(vec![before, splice(range.clone(), used(self.script, &variable, range.end))])
    }

    /// Replaces an assignment of the result to a variable. `None` if the command is not one.
    fn in_assignment(
        &self,
        holder: usize,
        substitution: usize,
        input: Option<&Word<'t>>,
    ) -> Result<Option<Vec<Splice>>, EditRefusal> {
        let Some(simple) = self.script.simple(holder) else { return Ok(None) };
        let range = self.script.node(holder).range.clone();
        let (variable, declaration) = match (&simple.assignments[..], &simple.words[..]) {
            ([only], []) if only.value.as_ref().and_then(Word::substitution) == Some(substitution) => (only.name, None),
            ([], [builtin, word]) => match (declared(builtin, word, substitution), builtin.literal()) {
                (Some(variable), Some(builtin)) => (variable, Some(builtin)),
                _ => return Ok(None),
            },
            _ => return Ok(None),
        };
        if !simple.redirections.is_empty() {
            return Ok(None);
        }
        let uses = |word: &Word<'_>| names(self.script.source(&word.range), variable);
        if declaration.is_some() && (input.is_some_and(uses) || self.simple.words.iter().any(uses)) {
            return refuse("the declared variable is also an argument of the call");
        }
        let variable = name(variable);
        let mut commands = self.commands(&variable, input)?;
        match declaration.as_deref() {
            None => {}
            Some(b"export") => commands.push(format!("export {variable}")),
            Some(builtin) => commands.insert(0, format!("{} {variable}", name(builtin))),
        }
        let text = commands.join("; ");
        let text = if self.script.statement(holder).is_some() || commands.len() == 1 {
            text
        } else {
            format!("{{ {text}; }}")
        };
        Ok(Some(vec![splice(range, text)]))
    }

    /// Replaces a command that prints its result, or whose exit status is used.
    fn in_place(&self) -> Result<Vec<Splice>, EditRefusal> {
        if let Form::Condition(template) = &self.form {
            let input = self.input()?;
            let first = self.script.node(self.pipeline[0]).range.start;
            let range = first..self.script.node(self.command).range.end;
            return Ok(vec![splice(range, self.filled(template, &self.new_variable(input), input)?)]);
        }
        let (range, input) = stages::printing(self)?;
        refuse_if(self.rewrite.has_failures, format!("{} failed", self.program()))?;
        if let Some(word) = self.word(input)? {
            return Ok(vec![splice(range, [b"printf '%s\\n' \"", &word[..], b"\""].concat())]);
        }
        let pipeline = self.script.node(self.command).parent;
        let list = pipeline.and_then(|pipeline| self.script.node(pipeline).parent);
        let is_whole = |list: usize| {
            let node = self.script.node(list);
            matches!(node.kind, Kind::List { is_background: false }) && node.range.len() == range.len()
        };
        if self.script.statement(self.command).is_none() && !list.is_some_and(is_whole) {
            return refuse("the call is joined to other commands, and the replacement consists of several");
        }
        let variable = self.new_variable(input);
        let mut commands = self.commands(&variable, input)?;
        commands.push(format!("printf '%s\\n' \"${variable}\""));
        Ok(vec![splice(range, commands.join("; "))])
    }

    /// Returns the new code as one word. `None` if it consists of commands.
    fn word(&self, input: Option<&Word<'t>>) -> Result<Option<Vec<u8>>, EditRefusal> {
        match &self.form {
            Form::Captured(_) if self.substitution.is_none() => {
                refuse(format!("the line does not call {} in $( )", self.program()))
            }
            Form::Word(template) | Form::Captured(template) => {
                self.filled(template, "", input).map(|word| Some(word.into_bytes()))
            }
            Form::Steps { operand, steps } => {
                let word = self.operand(*operand, input)?;
                let ([step], Some(variable)) = (&steps[..], word.variable()) else { return Ok(None) };
                self.check_lines(word)?;
                Ok(Some(expansion(&name(variable), &self.step(step)?).into_bytes()))
            }
            _ => Ok(None),
        }
    }

    /// Returns the new code as commands that set a variable.
    fn commands(&self, variable: &str, input: Option<&Word<'t>>) -> Result<Vec<String>, EditRefusal> {
        match &self.form {
            Form::Statement(template) => Ok(vec![self.filled(template, variable, input)?]),
            Form::Steps { operand, steps } => {
                let word = self.operand(*operand, input)?;
                self.check_lines(word)?;
                let mut commands = Vec::new();
                let mut from = word.variable().map(name);
                if from.is_none() {
                    commands.push(format!("{variable}={}", self.plain_source(word)?));
                    from = Some(variable.to_owned());
                }
                for step in steps {
                    let step = self.step(step)?;
                    commands.push(format!("{variable}={}", expansion(from.as_deref().unwrap_or(variable), &step)));
                    from = Some(variable.to_owned());
                }
                Ok(commands)
            }
            _ => refuse("the replacement sets no variable"),
        }
    }

    /// Inserts words of the call, as texts, into an expansion.
    fn step(&self, template: &str) -> Result<String, EditRefusal> {
        self.simple.words.iter().enumerate().skip(1).try_fold(template.to_owned(), |step, (number, word)| {
            let placeholder = format!("{{{number}}}");
            if step.contains(&placeholder) {
                Ok(step.replace(&placeholder, &self.quoted_source(word)?))
            } else {
                Ok(step)
            }
        })
    }

    fn operand<'w>(&'w self, operand: Operand, input: Option<&'w Word<'t>>) -> Result<&'w Word<'t>, EditRefusal> {
        let arguments = &self.simple.words[1..];
        let word = match operand {
            Operand::First => arguments.first(),
            Operand::Last => arguments.last(),
            Operand::Input => input,
        };
        let word = word.ok_or_else(|| EditRefusal(format!("{} has no argument in this line", self.program())))?;
        // Whether the path of the script has a slash depends on how it is called.
        let is_of_script = [&b"0"[..], b"BASH_SOURCE"].iter().any(|own| names(self.script.source(&word.range), own));
        let needs_slash = matches!(&self.form, Form::Steps { steps, .. } if steps.iter().any(|step| step == "%/*"));
        refuse_if(is_of_script && needs_slash, "the script may be called by a name without a slash")?;
        Ok(word)
    }

    /// Inserts words of the call into a template.
    fn filled(&self, template: &str, variable: &str, input: Option<&Word<'t>>) -> Result<String, EditRefusal> {
        let mut text = template.replace("{y}", variable);
        if let Some(input) = input {
            self.check_lines(input)?;
            text = text.replace("{x}", &self.plain_source(input)?);
        }
        for (number, word) in self.simple.words.iter().enumerate().skip(1) {
            for kind in ["", "#", "$", "@"] {
                let placeholder = format!("{{{kind}{number}}}");
                if text.contains(&placeholder) {
                    let source = match kind {
                        "" => self.plain_source(word)?,
                        "#" => self.number(word)?,
                        "@" => self.without_at(word)?,
                        _ => word
                            .variable()
                            .map(name)
                            .ok_or_else(|| EditRefusal("the argument is not a variable".to_owned()))?,
                    };
                    text = text.replace(&placeholder, &source);
                }
            }
        }
        Ok(text)
    }

    fn check_lines(&self, word: &Word<'_>) -> Result<(), EditRefusal> {
        refuse_if(
            self.rewrite.code.needs_one_line && !one_line::is_one_line(self.script, word),
            format!("`{}` may contain several lines", name(self.script.source(&word.range))),
        )
    }

    /// Returns a word as it is written. It must be one text, also where it is not split into
    /// several words.
    pub(super) fn plain_source(&self, word: &Word<'_>) -> Result<String, EditRefusal> {
        let source = self.script.source(&word.range);
        let is_list = word.parts.iter().any(|part| match part {
            Part::Pattern => true,
            Part::Other { text, .. } => is_several_words(text),
            _ => false,
        });
        refuse_if(is_list || source.contains(&b'\n'), format!("`{}` may be several words", name(source)))?;
        Ok(name(source))
    }

    /// Returns a word as one text, with quotes if it needs them.
    pub(super) fn quoted_source(&self, word: &Word<'_>) -> Result<String, EditRefusal> {
        let source = self.plain_source(word)?;
        let is_safe = source.contains(['"', '\'', '\\']) || !source.contains('$');
        Ok(if is_safe { source } else { format!("\"{source}\"") })
    }

    /// Returns what follows the `@` that begins a word.
    fn without_at(&self, word: &Word<'_>) -> Result<String, EditRefusal> {
        let source = self.plain_source(word)?;
        let unquoted = source.strip_prefix('"').and_then(|source| source.strip_suffix('"')).unwrap_or(&source);
        match unquoted.strip_prefix('@').filter(|rest| !rest.contains(['"', '\''])) {
            Some(rest) => Ok(format!("\"{rest}\"")),
            None => refuse(format!("`{source}` does not begin with @")),
        }
    }

    /// Returns a word as a number in arithmetic.
    fn number(&self, word: &Word<'_>) -> Result<String, EditRefusal> {
        match (word.variable(), word.literal()) {
            (Some(variable), _) if variable[0].is_ascii_digit() => Ok(format!("${}", expansion_of(&name(variable)))),
            (Some(variable), _) => Ok(name(variable)),
            (None, Some(literal)) => Ok(name(&literal)),
            _ => refuse(format!("`{}` is neither a number nor a variable", name(self.script.source(&word.range)))),
        }
    }

    /// Checks that nothing depends on the exit status of the substitution, if a call failed.
    fn check_status(&self, substitution: usize) -> Result<(), EditRefusal> {
        let is_number = matches!(&self.form, Form::Word(template) if template.starts_with("$(("));
        let holder =
            self.script.node(substitution).parent.and_then(|holder| Some((holder, self.script.simple(holder)?)));
        let has_own_status = holder.is_some_and(|(_, simple)| !simple.words.is_empty());
        let is_ignored = holder.is_some_and(|(holder, _)| self.script.statement(holder).is_some())
            && !checks_status(self.script.text);
        refuse_if(
            self.rewrite.has_failures && !(is_number && (has_own_status || is_ignored)),
            format!("the exit status of {} was not always 0", self.program()),
        )
    }

    /// Returns the name of a variable that the script does not use.
    fn new_variable(&self, input: Option<&Word<'_>>) -> String {
        let operand = self.simple.words[1..].iter().chain(input).find_map(Word::variable);
        let of = operand.filter(|variable| !variable[0].is_ascii_digit());
        let suffix = of.map_or("result".to_owned(), |variable| format!("of_{}", name(variable)));
        let number = if self.number == 0 { String::new() } else { format!("_{}", self.number + 1) };
        unused_variable(self.script, &format!("{}_{suffix}{number}", self.program()))
    }
}

/// Returns a name that a script does not contain, made of a text.
pub(super) fn unused_variable(script: &Script<'_>, text: &str) -> String {
    let mut base: String = text.chars().map(|each| if each.is_ascii_alphanumeric() { each } else { '_' }).collect();
    if base.starts_with(|first: char| first.is_ascii_digit()) {
        base.insert(0, '_');
    }
    let numbered = (2..).map(|number| format!("{base}{number}"));
    let mut candidates = std::iter::once(base.clone()).chain(numbered);
    candidates.find(|name| !names(script.text, name.as_bytes())).unwrap_or(base)
}

/// Returns the expansion of a variable, in braces if the next byte would belong to its name.
pub(super) fn used(script: &Script<'_>, variable: &str, next: usize) -> Vec<u8> {
    let is_longer = script.text.get(next).is_some_and(|next| next.is_ascii_alphanumeric() || b"_[".contains(next));
    if is_longer { format!("${{{variable}}}").into_bytes() } else { format!("${variable}").into_bytes() }
}

fn expansion_of(number: &str) -> String {
    if number.len() > 1 { format!("{{{number}}}") } else { number.to_owned() }
}
