//! Why one launch cannot do what several do, however it is written: each has its own output, input
//! or reader. Such a reason refuses the edit, and the fix must not recommend one launch either, so
//! both ask here. What a script says is known once its file is read (`Edit::objection`); what a
//! shell got as its argument, `sh -c 'CODE'`, was recorded.

use super::one_line::answers_each_line;
use super::shell::can_be;
use super::{Edit, Form, Host, OneCall, Rewrite, embedded};
use crate::explain::advice::context::RuleContext;
use crate::explain::advice::phrases::name;
use crate::explain::advice::shared_line::arguments_of;
use crate::model::launch::base_name;
use crate::patterns::script::{Kind, Script, Simple, Word};
use crate::patterns::shells::command_of;

/// Returns why one call cannot take the place of the calls that a command makes.
fn to_command(script: &Script<'_>, command: usize, one_call: OneCall) -> Option<String> {
    let simple = script.simple(command)?;
    let program_of = |command: usize| script.program(command).map(|program| name(base_name(&program)));
    let program = program_of(command)?;
    if simple.redirections.iter().any(|each| each.operator.contains(&b'>') && !each.is_kept()) {
        return Some(format!("each {program} writes its own output"));
    }
    let changes = |word: &Word<'_>| word.literal().is_none();
    if simple.redirections.iter().any(|each| each.operator == b"<" && changes(&each.target))
        && one_call == OneCall::Inputs
    {
        return Some(format!("each {program} reads its own input"));
    }
    let pipeline = script.parent(command)?;
    let reader = script.children(pipeline).skip_while(|each| *each != command).nth(1)?;
    let words = script.simple(reader).and_then(Simple::literals);
    let is_filter = words.is_some_and(|words| answers_each_line(&words, b""));
    let is_reader = one_call == OneCall::Inputs && matches!(script.kind(reader), Kind::Simple(_)) && !is_filter;
    let reader = program_of(reader).filter(|_| is_reader)?;
    Some(format!("each {reader} reads what one {program} prints"))
}

/// Returns why one call cannot take the place of the recorded calls of a program in some code.
fn to_calls(
    code: &[u8],
    program: &[u8],
    calls: &[Vec<Vec<u8>>],
    one_call: OneCall,
    line: Option<u32>,
) -> Option<String> {
    let script = Script::parse(code)?;
    let is_recorded = |command: &usize| calls.iter().any(|call| can_be(&script, *command, call));
    let at_line = |command: &usize| line.is_none_or(|line| script.line_of(script.start(*command)) == line);
    let own: Vec<usize> = script.calls(program).filter(is_recorded).collect();
    let has_line = own.iter().any(at_line);
    own.into_iter().filter(|call| at_line(call) || !has_line).find_map(|call| to_command(&script, call, one_call))
}

/// Returns why one call cannot take the place of launches that are parts of command lines, which
/// the recording shows.
pub(crate) fn to_launches(context: &RuleContext<'_, '_>, launches: &[u32], one_call: OneCall) -> Option<String> {
    let forest = context.forest();
    let first = *launches.first()?;
    let launch = context.launch(first);
    let call: Vec<Vec<u8>> = arguments_of(launch.execs.first()?).into_iter().map(<[u8]>::to_vec).collect();
    let shell = forest.ancestors(first as usize).find(|parent| !forest.launches[*parent].execs.is_empty())?;
    let code = command_of(forest.launches[shell].execs.last()?)?;
    to_calls(code, launch.command.name, &[call], one_call, None)
}

impl Edit {
    /// Returns why the fix of this edit is wrong, however it is written, as the file shows.
    pub(crate) fn objection(&self, text: &[u8], one_call: OneCall) -> Option<String> {
        let Ok(Rewrite::Shell(rewrite, host)) = &self.rewrite else { return None };
        (rewrite.code.form == Form::Many).then_some(())?;
        let calls: Vec<Vec<Vec<u8>>> = rewrite.calls.iter().cloned().collect();
        let of = |code: &[u8], line| to_calls(code, &rewrite.program, &calls, one_call, line);
        match host {
            Host::Script => of(text, Some(self.line)),
            Host::Recipe => of(&embedded::recipe_at(text, self.line)?, None),
            Host::Package(command) => of(command, None),
        }
    }
}
