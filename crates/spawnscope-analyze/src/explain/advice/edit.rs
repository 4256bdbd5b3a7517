//! Edits: how a fix rewrites a line of the user's own script or makefile. A rule describes the command and its replacement as data; `Edit::apply`
//! finds the command in the text of the file, and replaces exactly that part. It refuses whatever may change what the script does. Nothing here
//! reads files.

use std::fmt;
use std::ops::Range;

use super::phrases::name;
use crate::model::launch::base_name;
use crate::patterns::script_calls::{
    ScriptCommand, ScriptWord, Substitution, assigned_name, begins_command, is_set_only_by_read, substitutions,
};

/// An edit of one line of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// The file, as in the recording.
    pub file: Vec<u8>,
    /// The directory that a relative `file` starts from, if known.
    pub directory: Option<Vec<u8>>,
    /// The line that the recording names, from 1.
    pub line: u32,
    /// How to rewrite the line, or why the recording shows that it must not be rewritten.
    pub(super) rewrite: Result<Rewrite, EditRefusal>,
}

/// An edit, looked up in the file of the user. The analysis reads no files, so whoever shows the advice looks it up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EditedLine {
    /// The file, as in the recording.
    pub file: Vec<u8>,
    /// The line, from 1.
    pub line: u32,
    /// The line before and after the edit, or why the file is not edited.
    pub change: Result<[Vec<u8>; 2], String>,
}

/// Why a line is not edited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EditRefusal {
    /// The file has fewer lines.
    NoSuchLine,
    /// No command in the line has the recorded program and arguments, and a quoted variable where the replacement needs one.
    NoSuchCommand(String),
    /// Several commands in the line have.
    SeveralCommands(String),
    /// The recording contains other calls from this line, which the replacement does not handle.
    OtherCalls(String),
    /// For some recorded arguments, the replacement would give another result.
    OtherResults(String),
    /// The variable may contain several lines, which the program handles separately.
    SeveralLines(String),
    /// The replacement consists of several commands, so it can only replace a line that just assigns the result.
    NoAssignment(String),
    /// `echo` of this shell interprets backslashes.
    Echo,
    /// Not exactly one line defines a variable with this command.
    NoDefinition(String),
}

impl fmt::Display for EditRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EditRefusal::NoSuchLine => f.write_str("the file has no such line"),
            EditRefusal::NoSuchCommand(program) => {
                write!(f, "the line does not call {program} in $( ) with a quoted variable, as in \"$name\"")
            }
            EditRefusal::SeveralCommands(program) => write!(f, "the line calls {program} several times"),
            EditRefusal::OtherCalls(program) => {
                write!(f, "the line also calls {program} with arguments that the replacement does not handle")
            }
            EditRefusal::OtherResults(program) => {
                write!(f, "the replacement gives another result than {program} for some of the recorded arguments")
            }
            EditRefusal::SeveralLines(variable) => {
                write!(f, "`${variable}` may contain several lines: not only `read` sets it")
            }
            EditRefusal::NoAssignment(program) => {
                write!(f, "the line does more than assign the output of {program} to a variable")
            }
            EditRefusal::Echo => f.write_str("echo of this shell interprets backslashes"),
            EditRefusal::NoDefinition(text) => {
                write!(f, "the makefile does not define exactly one variable as `= $(shell {text})`")
            }
        }
    }
}

/// How to rewrite a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Rewrite {
    /// A command substitution in a shell script.
    Substitution(SubstitutionRewrite),
    /// A variable of a makefile that is defined with `=` as the output of this command.
    MakeVariable(Vec<u8>),
}

/// How to rewrite a command substitution in a shell script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SubstitutionRewrite {
    /// The base name of the program.
    pub(super) program: Vec<u8>,
    /// The arguments. `None` is the variable.
    pub(super) arguments: Vec<Option<Vec<u8>>>,
    /// Whether echo of the shell prints every text as it is, except its own options.
    pub(super) has_plain_echo: bool,
    /// The suffixes of the expansions that replace the program: `%/*` for `${p%/*}`. With several, each expands the result of the previous
    /// one.
    pub(super) steps: Vec<String>,
}

/// The part of a line that changes.
struct Change {
    range: Range<usize>,
    text: Vec<u8>,
}

impl Edit {
    /// Returns the line that changes (from 1), and its new text. Both are without a newline at the end.
    ///
    /// # Errors
    /// Why the file is not edited.
    pub fn apply(&self, script: &[u8]) -> Result<(u32, Vec<u8>), EditRefusal> {
        match self.rewrite.as_ref().map_err(Clone::clone)? {
            Rewrite::Substitution(rewrite) => {
                let line = line_at(script, self.line).ok_or(EditRefusal::NoSuchLine)?;
                Ok((self.line, apply(line, &rewrite.change(script, self.line, line)?)))
            }
            Rewrite::MakeVariable(command) => define_once(script, command),
        }
    }
}

fn line_at(text: &[u8], line: u32) -> Option<&[u8]> {
    text.split(|byte| *byte == b'\n').nth(line.checked_sub(1)? as usize)
}

fn apply(line: &[u8], change: &Change) -> Vec<u8> {
    [&line[..change.range.start], &change.text, &line[change.range.end..]].concat()
}

impl SubstitutionRewrite {
    fn change(&self, script: &[u8], number: u32, line: &[u8]) -> Result<Change, EditRefusal> {
        let program = name(&self.program);
        let found = substitutions(line);
        let calls: Vec<&Substitution> = found.iter().filter(|found| self.is_called_in(found)).collect();
        let [call] = calls[..] else {
            return Err(if calls.is_empty() {
                EditRefusal::NoSuchCommand(program)
            } else {
                EditRefusal::SeveralCommands(program)
            });
        };
        let pipeline = call.pipeline.as_deref().unwrap_or_default();
        let variable = self.variable(pipeline)?.ok_or(EditRefusal::NoSuchCommand(program.clone()))?;
        if !self.has_operand() && !is_set_only_by_read(script, variable) {
            return Err(EditRefusal::SeveralLines(name(variable)));
        }
        if let [step] = &self.steps[..] {
            return Ok(Change { range: call.range.clone(), text: expansion(variable, step) });
        }
        let assigned = assigned_name(line, &call.range).filter(|_| begins_command(script, number));
        let assigned = assigned.ok_or(EditRefusal::NoAssignment(program))?;
        let start = call.range.start - assigned.len() - 1;
        Ok(Change { range: start..call.range.end, text: self.assignments(assigned, variable) })
    }

    /// Whether the last command of a pipeline calls the program.
    fn is_called_in(&self, substitution: &Substitution) -> bool {
        let last = substitution.pipeline.as_deref().and_then(<[ScriptCommand]>::last);
        matches!(last.and_then(|command| command.words.first()), Some(ScriptWord::Literal(path)) if base_name(path) == self.program)
    }

    /// Returns the variable whose text the program gets, as an argument or as its input. `None` if the call is not the recorded one.
    fn variable<'p>(&self, pipeline: &'p [ScriptCommand]) -> Result<Option<&'p [u8]>, EditRefusal> {
        let Some((last, before)) = pipeline.split_last() else { return Ok(None) };
        let Some(operand) = self.operand(&last.words[1..]) else { return Ok(None) };
        Ok(match (operand, before, &last.here_word) {
            (Some(variable), [], None) => Some(variable),
            (None, [], Some(ScriptWord::Variable(variable))) => Some(variable),
            (None, [feeder], None) => self.fed_variable(feeder)?,
            _ => None,
        })
    }

    /// Compares arguments with the recorded ones. Returns the variable among them, if there must be one; `None` if they differ.
    fn operand<'p>(&self, words: &'p [ScriptWord]) -> Option<Option<&'p [u8]>> {
        let mut operand = None;
        for (word, argument) in words.iter().zip(&self.arguments) {
            match (word, argument) {
                (ScriptWord::Literal(text), Some(argument)) if text == argument => {}
                (ScriptWord::Variable(variable), None) => operand = Some(variable.as_slice()),
                _ => return None,
            }
        }
        (words.len() == self.arguments.len()).then_some(operand)
    }

    /// Returns the variable that the first command of a pipeline prints.
    fn fed_variable<'p>(&self, feeder: &'p ScriptCommand) -> Result<Option<&'p [u8]>, EditRefusal> {
        if feeder.here_word.is_some() {
            return Ok(None);
        }
        Ok(match &feeder.words[..] {
            [ScriptWord::Literal(echo), ScriptWord::Variable(variable)] if echo == b"echo" => {
                if !self.has_plain_echo {
                    return Err(EditRefusal::Echo);
                }
                Some(variable)
            }
            [ScriptWord::Literal(printf), ScriptWord::Literal(format), ScriptWord::Variable(variable)]
                if printf == b"printf" && (format == b"%s" || format == b"%s\\n") =>
            {
                Some(variable)
            }
            _ => None,
        })
    }

    /// Whether one of the arguments is the variable, not the input.
    fn has_operand(&self) -> bool {
        self.arguments.iter().any(Option::is_none)
    }

    /// Returns `y=${x#*:}; y=${y%%:*}`.
    fn assignments(&self, assigned: &[u8], variable: &[u8]) -> Vec<u8> {
        let mut from = variable;
        let mut parts: Vec<Vec<u8>> = Vec::new();
        for step in &self.steps {
            parts.push([assigned, b"=", &expansion(from, step)].concat());
            from = assigned;
        }
        parts.join(&b"; "[..])
    }
}

fn expansion(variable: &[u8], step: &str) -> Vec<u8> {
    [b"${", variable, step.as_bytes(), b"}"].concat()
}

/// Replaces `NAME = $(shell command)` by `NAME := $(shell command)`, if exactly one line of a makefile has this form and nothing else sets the
/// variable.
fn define_once(makefile: &[u8], command: &[u8]) -> Result<(u32, Vec<u8>), EditRefusal> {
    let refusal = || EditRefusal::NoDefinition(name(command));
    let value = [b"$(shell ", command, b")"].concat();
    let lines: Vec<&[u8]> = makefile.split(|byte| *byte == b'\n').collect();
    let with_value: Vec<usize> = (0..lines.len()).filter(|at| contains(lines[*at], &value)).collect();
    let [at] = with_value[..] else { return Err(refusal()) };
    let line = lines[at];
    let equals = line.iter().position(|byte| *byte == b'=').ok_or_else(refusal)?;
    let variable = line[..equals].trim_ascii_end();
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    let is_continued = at.checked_sub(1).is_some_and(|before| lines[before].ends_with(b"\\"));
    let is_definition = !variable.is_empty()
        && variable.iter().all(is_name)
        && line[equals + 1..].trim_ascii() == value
        && !is_continued;
    let others = lines.iter().enumerate().filter(|(other, line)| *other != at && sets(line, variable));
    // `$` would be expanded where the variable is defined.
    if !is_definition || command.contains(&b'$') || others.count() > 0 {
        return Err(refusal());
    }
    Ok((at as u32 + 1, [&line[..equals], b":", &line[equals..]].concat()))
}

/// Whether a line of a makefile may set a variable: it names the variable without `$(`, and has an equals sign.
fn sets(line: &[u8], variable: &[u8]) -> bool {
    let Some(equals) = line.iter().position(|byte| *byte == b'=') else { return false };
    let is_operator = |byte: &u8| matches!(byte, b':' | b'+' | b'?' | b'!' | b' ' | b'\t');
    let end = line[..equals].iter().rposition(|byte| !is_operator(byte));
    end.is_some_and(|end| line[..=end].ends_with(variable))
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len().max(1)).any(|window| window == part)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dirname() -> SubstitutionRewrite {
        SubstitutionRewrite {
            program: b"dirname".to_vec(),
            arguments: vec![None],
            has_plain_echo: true,
            steps: vec!["%/*".to_owned()],
        }
    }

    fn cut(has_plain_echo: bool) -> SubstitutionRewrite {
        SubstitutionRewrite {
            program: b"cut".to_vec(),
            arguments: vec![Some(b"-d:".to_vec()), Some(b"-f2".to_vec())],
            has_plain_echo,
            steps: vec!["#*:".to_owned(), "%%:*".to_owned()],
        }
    }

    fn edited(rewrite: Rewrite, line: u32, script: &str) -> Result<String, EditRefusal> {
        let edit = Edit { file: b"a.sh".to_vec(), directory: None, line, rewrite: Ok(rewrite) };
        edit.apply(script.as_bytes()).map(|(_, line)| String::from_utf8(line).unwrap())
    }

    #[test]
    fn exactly_the_command_is_replaced() {
        for (line, expected) in [
            ("  dir=$(dirname \"$path\")  # here", "  dir=${path%/*}  # here"),
            ("mv a \"$(dirname \"${1}\")/b\" && x", "mv a \"${1%/*}/b\" && x"),
            ("d=`/usr/bin/dirname \"$p\"`", "d=${p%/*}"),
        ] {
            assert_eq!(edited(Rewrite::Substitution(dirname()), 2, &format!("#\n{line}\n")).unwrap(), expected);
        }
    }

    #[test]
    fn other_lines_are_refused() {
        let program = || "dirname".to_owned();
        for (line, refusal) in [
            ("dir=$(dirname $path)", EditRefusal::NoSuchCommand(program())),
            ("dir=$(dirname -z \"$path\")", EditRefusal::NoSuchCommand(program())),
            ("dir=$(basename \"$path\")", EditRefusal::NoSuchCommand(program())),
            ("a=$(dirname \"$a\") b=$(dirname \"$b\")", EditRefusal::SeveralCommands(program())),
        ] {
            assert_eq!(edited(Rewrite::Substitution(dirname()), 1, line), Err(refusal), "{line}");
        }
        assert_eq!(edited(Rewrite::Substitution(dirname()), 3, "a\nb"), Err(EditRefusal::NoSuchLine));
        assert_eq!(edited(Rewrite::Substitution(dirname()), 0, "a\nb"), Err(EditRefusal::NoSuchLine));
    }

    #[test]
    fn a_filter_is_replaced_if_its_text_has_one_line() {
        let (read, loop_over) = ("while read -r x; do", "for x in a; do");
        for feeder in ["printf '%s\\n' \"$x\" | cut -d: -f2", "cut -d: -f2 <<< \"$x\"", "echo \"$x\" | cut -d: -f2"] {
            let script = |first: &str| format!("{first}\n  y=$({feeder})\ndone");
            let cut_of = |has_plain_echo| Rewrite::Substitution(cut(has_plain_echo));
            let edited_line = edited(cut_of(true), 2, &script(read));
            assert_eq!(edited_line.unwrap(), "  y=${x#*:}; y=${y%%:*}");
            let refused = Err(EditRefusal::SeveralLines("x".to_owned()));
            assert_eq!(edited(cut_of(true), 2, &script(loop_over)), refused);
            let is_echo = feeder.starts_with("echo");
            assert_eq!(edited(cut_of(false), 2, &script(read)) == Err(EditRefusal::Echo), is_echo);
            let nested = format!("{read}\n  z \"$({feeder})\"\ndone");
            assert_eq!(edited(cut_of(true), 2, &nested), Err(EditRefusal::NoAssignment("cut".to_owned())));
        }
    }

    #[test]
    fn a_variable_of_a_makefile_is_defined_once() {
        let rewrite = || Rewrite::MakeVariable(b"cat VERSION".to_vec());
        for (makefile, expected) in [
            ("VERSION = $(shell cat VERSION)\nall:\n\techo $(VERSION)", Some("VERSION := $(shell cat VERSION)")),
            ("VERSION=$(shell cat VERSION)", Some("VERSION:=$(shell cat VERSION)")),
            ("VERSION := $(shell cat VERSION)", None),
            ("VERSION += $(shell cat VERSION)", None),
            ("VERSION = x$(shell cat VERSION)", None),
            ("VERSION = $(shell cat VERSION)\nVERSION += x", None),
            ("VERSION = $(shell cat VERSION)\nall: VERSION = x", None),
            ("VERSION = $(shell cat VERSION)\nOTHER = $(shell cat VERSION)", None),
            ("\tVERSION = $(shell cat VERSION)", None),
            ("define x\\\nVERSION = $(shell cat VERSION)", None),
            ("", None),
        ] {
            assert_eq!(edited(rewrite(), 9, makefile).ok().as_deref(), expected, "{makefile}");
        }
        let variable = Rewrite::MakeVariable(b"cat $(FILE)".to_vec());
        assert!(edited(variable, 1, "VERSION = $(shell cat $(FILE))").is_err());
    }
}
