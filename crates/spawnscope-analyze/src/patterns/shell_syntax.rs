//! Determines what the COMMAND of `sh -c COMMAND` needs: only the execution of a program, something
//! that the caller can do itself (redirections, a directory, variables, a home directory), or a
//! shell.

use super::script::{Kind, Part, Script, Simple, Word};
use super::words::Words;

/// What a command needs from a shell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Need {
    /// Nothing: it is a program with arguments.
    Nothing,
    /// Redirections, `cd DIRECTORY &&`, variables or `~`, which the caller can replace with options
    /// of its launching call.
    Caller,
    /// A shell, for pipes, expansions, several commands, or keywords.
    Shell,
}

/// Words that are keywords or builtins at the beginning of a command, not programs.
const KEYWORDS: Words = Words(
    "! . : [ [[ alias break case cd eval exit export for function if local readonly return select set shift source time
     trap type ulimit umask unset until while",
);

pub(crate) fn need_of(command: &[u8]) -> Need {
    Script::parse(command).and_then(|script| need(&script)).unwrap_or(Need::Shell)
}

/// Returns the need of a script with one command, perhaps after `cd DIRECTORY &&`. `None` if it
/// needs a shell.
fn need(script: &Script<'_>) -> Option<Need> {
    let list = (script.len() > 0).then_some(0)?;
    let is_only = script.inside(list).end == script.len();
    let pipelines: Vec<usize> = script.children(list).collect();
    let (last, before) = pipelines.split_last()?;
    let simple_command = |pipeline: usize| {
        let command = script.only_child(pipeline)?;
        let is_plain = matches!(script.kind(pipeline), Kind::Pipeline { is_negated: false });
        script.simple(command).filter(|_| is_plain && script.inside(command).is_empty())
    };
    let changes_directory = match before {
        [] => script.command_of(list).map(|_| false)?,
        [directory] => {
            let between = script.end(*directory)..script.start(*last);
            let simple = simple_command(*directory).filter(|_| script.source(&between).trim_ascii() == b"&&")?;
            is_cd(script, simple).then_some(true)?
        }
        _ => return None,
    };
    let simple = simple_command(*last).filter(|_| is_only)?;
    let is_exec = simple.words.first().and_then(Word::literal).is_some_and(|first| first == b"exec");
    let command = &simple.words[usize::from(is_exec)..];
    let first = command.first()?;
    let is_quoted = first.parts.iter().any(|part| matches!(part, Part::Literal { is_quoted: true, .. }));
    let is_program = is_quoted || !KEYWORDS.contains(&first.literal()?);
    let values = simple.assignments.iter().map(|assignment| assignment.value.as_ref());
    let targets = simple.redirections.iter().map(|redirection| Some(&redirection.target));
    let has_document = simple.redirections.iter().any(|each| each.operator.windows(2).any(|two| two == b"<<"));
    let needs: Option<Vec<Need>> =
        command.iter().map(Some).chain(values).chain(targets).map(|word| need_of_word(script, word?)).collect();
    let has_syntax = changes_directory || !simple.assignments.is_empty() || !simple.redirections.is_empty();
    let need = needs?.into_iter().max()?.max(if has_syntax { Need::Caller } else { Need::Nothing });
    (is_program && !has_document).then_some(need)
}

/// Whether a command is `cd DIRECTORY`.
fn is_cd(script: &Script<'_>, simple: &Simple<'_>) -> bool {
    let [cd, directory] = &simple.words[..] else { return false };
    simple.is_bare() && cd.literal().as_deref() == Some(b"cd") && need_of_word(script, directory).is_some()
}

/// Returns what a word needs. `None` if it needs a shell: a caller can expand `~` only.
fn need_of_word(script: &Script<'_>, word: &Word<'_>) -> Option<Need> {
    let has_pattern = script.source(&word.range).iter().any(|byte| b"*?[{(".contains(byte));
    let needs = word.parts.iter().map(|part| match part {
        Part::Literal { .. } => Some(Need::Nothing),
        Part::Pattern if !has_pattern => Some(Need::Caller),
        _ => None,
    });
    needs.collect::<Option<Vec<_>>>().map(|needs| needs.into_iter().max().unwrap_or(Need::Nothing))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_need_a_shell_only_for_syntax_that_no_caller_can_replace() {
        let cases = [
            ("git log HEAD~3", Need::Nothing),
            ("git show HEAD@{1}", Need::Nothing),
            ("find . -name '*.c'", Need::Nothing),
            ("find . -name \"*.c\" -print", Need::Nothing),
            ("git commit -m 'what! $HOME'", Need::Nothing),
            ("echo a\\*b wow!", Need::Nothing),
            ("xargs -I{} mv {} dir", Need::Nothing),
            ("exec prog arg", Need::Nothing),
            ("cksum file;\n", Need::Nothing),
            ("prog # a comment | with a pipe", Need::Nothing),
            ("prog 2>/dev/null", Need::Caller),
            ("prog >out 2>&1", Need::Caller),
            ("prog <in", Need::Caller),
            ("cd sub && prog x", Need::Caller),
            ("LC_ALL=C sort file", Need::Caller),
            ("ls ~/x", Need::Caller),
            ("A=~/x prog", Need::Caller),
            ("a | b", Need::Shell),
            ("prog $HOME", Need::Shell),
            ("prog \"$HOME\"", Need::Shell),
            ("rm *.o", Need::Shell),
            ("cp {a,b} c", Need::Shell),
            ("a; b", Need::Shell),
            ("a && b", Need::Shell),
            ("cd x && a && b", Need::Shell),
            ("cd x && cd y && a", Need::Shell),
            ("a &", Need::Shell),
            ("! grep x y", Need::Shell),
            ("if a; then b; fi", Need::Shell),
            ("cat <<END\nx\nEND", Need::Shell),
            ("{ a; }", Need::Shell),
            ("(a)", Need::Shell),
            ("umask 022", Need::Shell),
            ("A=b", Need::Shell),
            ("'unclosed", Need::Shell),
            ("", Need::Shell),
        ];
        for (command, need) in cases {
            assert_eq!(need_of(command.as_bytes()), need, "{command}");
        }
    }
}
