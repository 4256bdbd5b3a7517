//! Edits of shell scripts: finds the recorded calls in the script, and replaces them where they
//! stand. `once` and `many` move them out of loops.

use std::collections::BTreeSet;
use std::ops::Range;

use super::around::{checks_status, declared, insertion};
pub(super) use super::around::{unused_variable, used};
use super::embedded::EXPANDED;
use super::form::{Form, Operand, expansion, filled, form_for};
use super::stages::fed_word;
use super::{
    NewCode, Result, Splice, adjacent, difference, directories, in_order, inserted, launchers, limited, lookup, once,
    one_line, or_refuse, refuse, refuse_if, splice, spliced, stages, wait, zsh,
};
use crate::explain::advice::phrases::name;
use crate::patterns::script::{Kind, Part, Redirection, Script, Simple, Word, is_several_words, names};
use crate::patterns::shells::Dialect;

/// How to rewrite the calls of a program in a line of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ShellRewrite {
    /// The base name of the program.
    pub(crate) program: Vec<u8>,
    /// The different lists of arguments of the recorded calls.
    pub(crate) calls: BTreeSet<Vec<Vec<u8>>>,
    pub(crate) code: NewCode,
    pub(crate) dialect: Dialect,
    /// Whether one of the recorded calls had another exit status than 0.
    pub(crate) has_failures: bool,
    /// Whether one of them failed: an exit status of 1 may also be an answer.
    pub(crate) has_errors: bool,
    /// The lists of arguments of other recorded calls from the line, which the edit does not
    /// replace.
    pub(crate) others: BTreeSet<Vec<Vec<u8>>>,
    /// Whether no two of the calls have the same arguments.
    pub(crate) is_distinct: bool,
    /// Other programs of which a launch from this file failed.
    pub(crate) failed: BTreeSet<Vec<u8>>,
}

/// The expansion of a path that has a slash to its directory.
const DIRECTORY: &str = "%/*";

/// The text that a program reads.
pub(super) type Input<'s> = Option<&'s Word<'s>>;

/// A call in a script.
pub(super) struct FoundCall<'s> {
    pub(super) script: &'s Script<'s>,
    pub(super) rewrite: &'s ShellRewrite,
    /// The node of the command.
    pub(super) command: usize,
    pub(super) simple: &'s Simple<'s>,
    /// The commands of the pipeline that the command ends.
    pub(super) pipeline: Vec<usize>,
    /// The number of calls that the edit has replaced before. Each has a variable of its own.
    pub(super) number: usize,
    /// The new code for the words of the call.
    pub(super) form: Form,
    /// The text that is the input of the pipeline: `echo "$x" | program`, `program <<<"$x"`.
    pub(super) fed: Input<'s>,
    /// The `$( )` that contains the pipeline and nothing else.
    pub(super) substitution: Option<usize>,
}

impl ShellRewrite {
    /// Returns the changes of the calls at a line, or of all calls.
    pub(super) fn splices(&self, text: &[u8], line: Option<u32>) -> Result<Vec<Splice>> {
        let program = name(&self.program);
        let script = or_refuse(Script::parse(text), "the script has syntax that Spawnscope does not read")?;
        let found = line.map_or_else(|| script.calls(&self.program).collect(), |line| self.calls_at(&script, line));
        refuse_if(found.is_empty(), format!("the line does not call {program} by its name"))?;
        let is_found = |call: &Vec<Vec<u8>>| found.iter().any(|command| can_be(&script, *command, call));
        let others = format!("{program} got other arguments from this line than those that are written there");
        refuse_if(!self.calls.iter().all(is_found), others)?;
        let is_one_of = |all: &BTreeSet<_>, command| all.iter().any(|call: &Vec<_>| can_be(&script, command, call));
        let mut splices = Vec::new();
        // A pipeline is merged as a whole.
        let is_merged = self.code.form == Form::Many;
        let is_last = |command: &usize| {
            !is_merged || !found.iter().any(|other| other > command && script.parent(*other) == script.parent(*command))
        };
        let found: Vec<usize> = found.iter().copied().filter(is_last).collect();
        for (number, command) in found.into_iter().filter(|command| is_one_of(&self.calls, *command)).enumerate() {
            let others = format!("the line also calls {program} with arguments that the replacement does not handle");
            refuse_if(is_one_of(&self.others, command), others)?;
            let call = FoundCall::new(&script, self, command, number)?;
            if let Some(stage) = stages::last_stage(&call) {
                let separated = spliced(text, &stage);
                let of_stages = in_order(self.splices(&separated, line)?)?;
                let limits = of_stages.iter().flat_map(|splice| &splice.limits).copied();
                // The echo is that of the first edit.
                let limits = limits.filter(|limit| !stages::INPUT_LIMITS.contains(limit)).collect();
                return Ok(vec![Splice { limits, ..difference(text, &spliced(&separated, &of_stages)) }]);
            }
            let mut limits = [self.code.form.limits(), &self.code.limits].concat();
            limits.extend(stages::input_limits(&call));
            splices.extend(limited(call.splices()?, &limits));
        }
        let is_escaped = |splice: &Splice| splice.text.contains(&b'\\') && is_in_backquotes(&script, &splice.range);
        if splices.iter().any(is_escaped) { refuse("the call is within backquotes") } else { Ok(splices) }
    }

    /// Returns the calls that begin in a line or, if there are none, those that contain it. bash
    /// names the line of `$(function)` for the last command of the function, so the functions that
    /// the line calls are searched last.
    fn calls_at(&self, script: &Script<'_>, line: u32) -> Vec<usize> {
        let begins = |command: &usize| script.line_of(script.start(*command)) == line;
        let contains = |command: &usize| {
            (script.line_of(script.start(*command))..=script.line_of(script.end(*command))).contains(&line)
        };
        // A shell may name the last line of the command around a substitution.
        let is_within = |command: &usize| {
            script.ancestors(*command).filter(|around| script.simple(*around).is_some()).any(|around| contains(&around))
        };
        let calls =
            |is_found: &dyn Fn(&usize) -> bool| script.calls(&self.program).filter(is_found).collect::<Vec<_>>();
        let found = [calls(&begins), calls(&contains), calls(&is_within)].into_iter().find(|calls| !calls.is_empty());
        found.unwrap_or_else(|| {
            let commands = (0..script.len()).filter(begins).filter_map(|index| script.program(index));
            let functions: Vec<Range<usize>> = commands.filter_map(|command| script.function(&command)).collect();
            calls(&|command| functions.iter().any(|range| range.contains(&script.start(*command))))
        })
    }
}

/// Whether a range is within backquotes, where backslashes have another meaning.
fn is_in_backquotes(script: &Script<'_>, range: &Range<usize>) -> bool {
    (0..script.len()).any(|index| {
        let is_around = script.start(index) < range.start && range.end < script.end(index);
        is_around && matches!(script.kind(index), Kind::Substitution) && script.code(index).starts_with(b"`")
    })
}

/// Whether a command may have made a recorded call.
pub(super) fn can_be(script: &Script<'_>, command: usize, call: &[Vec<u8>]) -> bool {
    let words = script.simple(command).map(|simple| &simple.words[1..]).unwrap_or_default();
    words.len() == call.len() && words.iter().zip(call).all(|(word, argument)| word.can_be(argument))
}

impl<'s> FoundCall<'s> {
    fn new(script: &'s Script<'s>, rewrite: &'s ShellRewrite, command: usize, number: usize) -> Result<Self> {
        let simple = script.simple(command).filter(|simple| simple.assignments.is_empty());
        let simple = or_refuse(simple, "the line sets variables only for this call")?;
        let pipeline = script.parent(command).into_iter().flat_map(|parent| script.children(parent));
        let pipeline: Vec<usize> = pipeline.collect();
        let substitution = script.ancestors(command).nth(2).filter(|parent| {
            let is_alone = script.only_child(*parent).is_some_and(|list| script.only_child(list).is_some());
            let is_process = matches!(script.code(*parent).first(), Some(b'<' | b'>'));
            matches!(script.kind(*parent), Kind::Substitution) && is_alone && !is_process
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

    pub(super) fn splices(&self) -> Result<Vec<Splice>> {
        zsh::check(self)?;
        match &self.form {
            Form::Once => once::once(self),
            Form::Many => stages::without_reversing(self).unwrap_or_else(|| lookup::lookup(self)),
            Form::Pass => launchers::pass_many(self),
            Form::Feed => stages::without_stage(self),
            Form::Together => adjacent::together(self),
            Form::Wait => wait::for_child(self),
            Form::Tested => directories::tested(self),
            Form::Builtin(name) => Ok(vec![splice(self.simple.words[0].range.clone(), name.clone())]),
            Form::Condition(_) => self.in_place(),
            _ if stages::is_first_filter(self) => self.in_place(),
            _ => self.substitution.map_or_else(|| self.in_place(), |substitution| self.in_substitution(substitution)),
        }
    }

    /// Returns where the call is, from the beginning of its pipeline.
    pub(super) fn up_to_call(&self) -> Range<usize> {
        self.script.start(self.pipeline[0])..self.script.end(self.command)
    }

    /// Returns the text that the program reads, and checks that nothing else leads into or out of
    /// the call.
    pub(super) fn input(&self) -> Result<Input<'s>> {
        let is_condition = matches!(self.form, Form::Condition(_));
        let is_quiet = |each: &&Redirection<'_>| each.operator == b"2>&" || each.hides_output();
        let is_loud =
            |each: &&Redirection<'_>| each.writes_file() || each.operator != b"2>" && !(is_condition && is_quiet(each));
        let redirections: Vec<_> = self.simple.redirections.iter().filter(is_loud).collect();
        let word = match (self.form.has_input(), &self.pipeline[..], &redirections[..]) {
            (false, [_], []) => return Ok(None),
            (false, ..) => return refuse(format!("the input or output of {} is redirected", self.program())),
            (true, [_], [here]) if here.operator == b"<<<" => Some(&here.target),
            (true, [feeder, ..], []) if self.pipeline[1..] == [self.command] || stages::is_first_filter(self) => {
                self.script.simple(*feeder).and_then(fed_word)
            }
            (true, ..) => None,
        };
        or_refuse(word, format!("the input of {} is not the text of a variable", self.program())).map(Some)
    }

    /// Replaces `$( )` by a word, or by a variable that commands before it set.
    fn in_substitution(&self, substitution: usize) -> Result<Vec<Splice>> {
        let input = self.input()?;
        self.check_status(substitution)?;
        let range = self.script.range(substitution);
        let word = self.word(input)?;
        let holder = or_refuse(self.script.parent(substitution), "there is no command around the call")?;
        if let Some(text) = word {
            let new = splice(range, text);
            let errors = self.errors();
            if errors.is_empty() || !self.form.texts().iter().any(|text| text.contains("(<{")) {
                return Ok(vec![new]);
            }
            let is_assignment = self.script.assigned(holder).is_some_and(|(_, value)| value.substitution().is_some());
            refuse_if(!is_assignment, format!("the errors of {} are redirected", self.program()))?;
            let all = self.script.range(holder);
            return Ok(vec![inserted(all.start, "{ "), new, inserted(all.end, format!("; }} {}", errors.trim_end()))]);
        }
        if let Some(splices) = self.in_assignment(holder, substitution, input)? {
            return Ok(splices);
        }
        let variable = self.new_variable(input);
        let commands = self.commands(&variable, input)?.join("; ");
        let before = insertion(self.script, holder, &commands)?;
        Ok(vec![before, splice(range.clone(), used(self.script, &variable, range.end))])
    }

    /// Replaces an assignment of the result to a variable. `None` if the command is not one.
    fn in_assignment(&self, holder: usize, substitution: usize, input: Input<'_>) -> Result<Option<Vec<Splice>>> {
        let Some(simple) = self.script.simple(holder).filter(|simple| simple.redirections.is_empty()) else {
            return Ok(None);
        };
        let (variable, declaration) = match (&simple.assignments[..], &simple.words[..]) {
            ([only], []) if only.value.as_ref().and_then(Word::substitution) == Some(substitution) => (only.name, None),
            ([], [builtin, word]) => match (declared(builtin, word, substitution), builtin.literal()) {
                (Some(variable), Some(builtin)) => (variable, Some(builtin)),
                _ => return Ok(None),
            },
            _ => return Ok(None),
        };
        let uses = |word: &Word<'_>| names(self.script.source(&word.range), variable);
        let is_used = declaration.is_some() && (input.is_some_and(uses) || self.simple.words.iter().any(uses));
        refuse_if(is_used, "the declared variable is also an argument of the call")?;
        let variable = name(variable);
        let mut commands = self.commands(&variable, input)?;
        // A declaration hides a failure.
        if declaration.is_some() && checks_status(self.script.text) {
            commands
                .iter_mut()
                .filter(|command| command.contains(" || "))
                .for_each(|command| command.push_str(" || :"));
        }
        match declaration.as_deref() {
            None => {}
            Some(b"export") => commands.push(format!("export {variable}")),
            // Without a value, zsh prints the variable if it is known.
            Some(builtin) => {
                let value = if self.rewrite.dialect == Dialect::Zsh { "=" } else { "" };
                commands.insert(0, format!("{} {variable}{value}", name(builtin)));
            }
        }
        let is_statement = self.script.statement(holder).is_some() || commands.len() == 1;
        let text = commands.join("; ");
        let text = if is_statement { text } else { format!("{{ {text}; }}") };
        Ok(Some(vec![splice(self.script.range(holder), text)]))
    }

    /// Replaces a command that prints its result, or whose exit status is used.
    fn in_place(&self) -> Result<Vec<Splice>> {
        if let Form::Condition(template) = &self.form {
            let input = self.input()?;
            let (range, not) = self.tested(template)?;
            let condition = self.filled(template, &self.new_variable(input), input)?;
            return Ok(vec![splice(range, format!("{not}{condition}"))]);
        }
        let (range, input) = stages::printing(self)?;
        refuse_if(self.rewrite.has_failures, format!("{} failed", self.program()))?;
        if let Some(word) = self.word(input)? {
            return Ok(vec![splice(range, [b"printf '%s\\n' \"", &word[..], b"\""].concat())]);
        }
        let pipeline = self.script.parent(self.command);
        let list = pipeline.and_then(|pipeline| self.script.parent(pipeline));
        let is_whole = |list: usize| {
            let is_list = matches!(self.script.kind(list), Kind::List { is_background: false });
            is_list && self.script.range(list).len() == range.len()
        };
        refuse_if(
            self.script.statement(self.command).is_none() && !list.is_some_and(is_whole),
            "the call is joined to other commands, and the replacement consists of several",
        )?;
        let variable = self.new_variable(input);
        let mut commands = self.commands(&variable, input)?;
        commands.push(format!("printf '%s\\n' \"${variable}\""));
        Ok(vec![splice(range, commands.join("; "))])
    }

    /// Returns the code that asks whether the program finds anything, and what negates the answer:
    /// the call, if it prints nothing, or a test of its output, `[ -z "$(...)" ]`.
    fn tested(&self, template: &str) -> Result<(Range<usize>, &'static str)> {
        let is_quiet = |word: Vec<u8>| word.starts_with(b"-") && word.contains(&b'q');
        if self.simple.words.iter().skip(1).filter_map(Word::literal).any(is_quiet)
            || self.simple.redirections.iter().any(Redirection::hides_output)
        {
            return Ok((self.up_to_call(), ""));
        }
        let holder = self.substitution.and_then(|substitution| self.script.parent(substitution));
        let simple = holder.and_then(|holder| self.script.simple(holder)).filter(|simple| simple.is_bare());
        let texts = simple.map(|simple| simple.texts().join(&b' ')).unwrap_or_default();
        let is_whole = |word: &Word<'_>| matches!(word.parts[..], [Part::Substitution { is_quoted: true, .. }]);
        let is_text = simple.is_some_and(|simple| simple.words.iter().any(is_whole)) && !template.contains("=~");
        match (holder, &texts[..]) {
            (Some(test), b"[  ]" | b"[ -n  ]" | b"test " | b"test -n ") if is_text => Ok((self.script.range(test), "")),
            (Some(test), b"[ -z  ]" | b"test -z ") if is_text && self.script.is_alone(test) => {
                Ok((self.script.range(test), "! "))
            }
            _ => refuse(format!("what {} prints is used", self.program())),
        }
    }

    /// Returns where the errors of the pipeline go, for code that reads a file, which may be
    /// missing: nothing, or a redirection and a blank.
    pub(super) fn errors(&self) -> String {
        let simple = self.script.simple(self.pipeline[0]).map_or(&[][..], |simple| &simple.redirections);
        let errors = simple.iter().find(|each| each.operator == b"2>");
        errors.map_or(String::new(), |errors| format!("{} ", name(self.script.source(&errors.range))))
    }

    /// Returns the new code as one word. `None` if it consists of commands.
    fn word(&self, input: Input<'_>) -> Result<Option<Vec<u8>>> {
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
                if !self.is_plain_step(word, step, true) {
                    return Ok(None);
                }
                self.check_lines(word)?;
                Ok(Some(expansion(&name(variable), &self.step(step)?).into_bytes()))
            }
            _ => Ok(None),
        }
    }

    /// Returns the new code as commands that set a variable.
    fn commands(&self, variable: &str, input: Input<'_>) -> Result<Vec<String>> {
        match &self.form {
            Form::Statement(template) => {
                let template = template.replace(" <{", &format!(" {}<{{", self.errors()));
                Ok(vec![self.filled(&template, variable, input)?])
            }
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
                    let of = from.as_deref().unwrap_or(variable);
                    let set = format!("{variable}={}", expansion(of, &self.step(step)?));
                    commands.push(match self.is_plain_step(word, step, steps.len() == 1) {
                        true => set,
                        false => format!("case ${of} in */*) {set};; *) {variable}=.;; esac"),
                    });
                    from = Some(variable.to_owned());
                }
                Ok(commands)
            }
            _ => refuse("the replacement sets no variable"),
        }
    }

    /// Inserts words of the call, as texts, into an expansion.
    fn step(&self, template: &str) -> Result<String> {
        filled(template, &self.simple.words, |kind, word| kind.is_empty().then(|| self.quoted_source(word)))
    }

    fn operand<'w>(&'w self, operand: Operand, input: Input<'w>) -> Result<&'w Word<'w>> {
        let arguments = &self.simple.words[1..];
        let word = match operand {
            Operand::First => arguments.first(),
            Operand::Last => arguments.last(),
            Operand::Input => input,
        };
        or_refuse(word, format!("{} has no argument in this line", self.program()))
    }

    /// Whether a step needs no test of the word: in place of dirname, it needs a slash, which may
    /// be the one that another step removes. A function of make needs none.
    fn is_plain_step(&self, word: &Word<'_>, step: &str, is_only: bool) -> bool {
        step != DIRECTORY
            || self.rewrite.program != b"dirname"
            || word.variable().is_some_and(|variable| variable.starts_with(EXPANDED.as_bytes()))
            || is_only && one_line::has_slash(self.script, word)
    }

    /// Inserts words of the call into a template.
    fn filled(&self, template: &str, variable: &str, input: Input<'_>) -> Result<String> {
        input.map_or(Ok(()), |input| self.check_lines(input))?;
        let template = template.replace("{y}", variable).replace("{r}", &self.new_variable(input));
        let template = match (template.contains("{#x}"), input.and_then(Word::variable)) {
            (true, None) => return refuse("the input is not the text of a variable"),
            (true, Some(text)) if stages::has_newline(self) => {
                template.replace("{#x}", &format!("$((${{#{}}} + 1))", name(text)))
            }
            (true, Some(text)) => template.replace("{#x}", &format!("${{#{}}}", name(text))),
            (false, _) => template,
        };
        let input = input.map_or(Ok(String::new()), |input| self.plain_source(input))?;
        let value = |kind: &str, word: &Word<'_>| match kind {
            "" => Some(self.plain_source(word)),
            "#" => Some(self.number(word)),
            "@" => Some(self.without_at(word)),
            "$" => Some(or_refuse(word.variable().map(name), "the argument is not a variable")),
            _ => None,
        };
        let parts = template.split("{x}").map(|part| filled(part, &self.simple.words, value));
        Ok(parts.collect::<Result<Vec<String>>>()?.join(&input))
    }

    fn check_lines(&self, word: &Word<'_>) -> Result<()> {
        refuse_if(
            self.rewrite.code.needs_one_line && !one_line::may_be_one_line(self.script, word),
            format!("`{}` may contain several lines", name(self.script.source(&word.range))),
        )
    }

    /// Returns a word as it is written. It must be one text, also where it is not split into
    /// several words.
    pub(super) fn plain_source(&self, word: &Word<'_>) -> Result<String> {
        let source = self.script.source(&word.range);
        let is_list = word.parts.iter().any(|part| {
            matches!(part, Part::Pattern) || matches!(part, Part::Other { text, .. } if is_several_words(text))
        });
        refuse_if(is_list || source.contains(&b'\n'), format!("`{}` may be several words", name(source)))?;
        Ok(name(source))
    }

    /// Returns a word as one text, with quotes if it needs them.
    pub(super) fn quoted_source(&self, word: &Word<'_>) -> Result<String> {
        let source = self.plain_source(word)?;
        let is_safe = source.contains(['"', '\'', '\\']) || !source.contains('$');
        Ok(if is_safe { source } else { format!("\"{source}\"") })
    }

    /// Returns what follows the `@` that begins a word.
    fn without_at(&self, word: &Word<'_>) -> Result<String> {
        let source = self.plain_source(word)?;
        let unquoted = source.strip_prefix('"').and_then(|source| source.strip_suffix('"')).unwrap_or(&source);
        let rest = unquoted.strip_prefix('@').filter(|rest| !rest.contains(['"', '\'']));
        or_refuse(rest.map(|rest| format!("\"{rest}\"")), format!("`{source}` does not begin with @"))
    }

    /// Returns a word as a number in arithmetic.
    fn number(&self, word: &Word<'_>) -> Result<String> {
        match (word.variable(), word.literal()) {
            (Some(number @ [b'0'..=b'9']), _) => Ok(format!("${}", name(number))),
            (Some(number @ [b'0'..=b'9', ..]), _) => Ok(format!("${{{}}}", name(number))),
            (Some(variable), _) => Ok(name(variable)),
            (None, Some(literal)) => Ok(name(&literal)),
            _ => refuse(format!("`{}` is neither a number nor a variable", name(self.script.source(&word.range)))),
        }
    }

    /// Checks that nothing depends on the exit status of the substitution, if a call failed.
    fn check_status(&self, substitution: usize) -> Result<()> {
        let is_number = matches!(&self.form, Form::Word(template) if template.starts_with("$(("));
        let holder = self.script.parent(substitution).and_then(|holder| Some((holder, self.script.simple(holder)?)));
        let has_own_status = holder.is_some_and(|(_, simple)| !simple.words.is_empty());
        let is_ignored = holder.is_some_and(|(holder, _)| self.script.statement(holder).is_some())
            && !checks_status(self.script.text);
        refuse_if(
            self.rewrite.has_failures && !(is_number && (has_own_status || is_ignored)),
            format!("the exit status of {} was not always 0", self.program()),
        )
    }

    /// Returns the name of a variable that the script does not use.
    fn new_variable(&self, input: Input<'_>) -> String {
        let operand = self.simple.words[1..].iter().chain(input).find_map(Word::variable);
        let of = operand.filter(|variable| !variable[0].is_ascii_digit());
        let suffix = of.map_or("result".to_owned(), |variable| format!("of_{}", name(variable)));
        let number = if self.number == 0 { String::new() } else { format!("_{}", self.number + 1) };
        unused_variable(self.script, &format!("{}_{suffix}{number}", self.program()))
    }
}
