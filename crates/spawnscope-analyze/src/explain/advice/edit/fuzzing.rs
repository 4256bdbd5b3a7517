//! For `fuzz/`: makes an edit of a text as if calls in it had been recorded, and checks what must
//! hold for every edit.

use super::makefile::MakeRewrite;
use super::shell::ShellRewrite;
use super::{Edit, Form, Host, NewCode, Operand, PackageRewrite, Rewrite, spliced};
use crate::patterns::script::Script;
use crate::patterns::shells::Dialect;

/// Makes the edit that `selector` chooses. `words` are the program and its arguments.
///
/// # Panics
/// If the edit is wrong.
pub fn edit_for_fuzzing(selector: u8, line: u32, words: &[&[u8]], text: &[u8]) {
    let words: Vec<Vec<u8>> = words.iter().map(|word| word.to_vec()).collect();
    let Some((program, arguments)) = words.split_first() else { return };
    let steps =
        |operand, steps: &[&str]| Form::Steps { operand, steps: steps.iter().map(|step| (*step).to_owned()).collect() };
    let form = match selector {
        0 => steps(Operand::Last, &["%/*"]),
        1 => steps(Operand::First, &["##*/", "%.c"]),
        2 => steps(Operand::Input, &["#*:", "%%:*"]),
        3 => Form::Word("$(({#1} + {#3}))".to_owned()),
        4 => Form::Statement("printf -v {y} '%(%F)T' -1".to_owned()),
        5 => Form::Condition("[[ {x} == *'a'* ]]".to_owned()),
        6 => Form::Builtin("printf".to_owned()),
        7 => Form::Once,
        12 => Form::Pass,
        13 => Form::Wait,
        15 => Form::Feed,
        _ => Form::Many,
    };
    let calls = ShellRewrite {
        program: program.clone(),
        calls: [arguments.to_vec()].into(),
        code: NewCode { needs_one_line: selector == 2, ..form.into() },
        others: [].into(),
        dialect: Dialect::Bash,
        has_failures: false,
        has_errors: false,
        is_distinct: true,
        failed: [].into(),
    };
    let rewrite = match selector {
        9 => Rewrite::Make(MakeRewrite { commands: [words.join(&b' ')].into(), ..MakeRewrite::default() }),
        11 => Rewrite::Python([words.join(&b' ')].into()),
        10 => Rewrite::Package(PackageRewrite {
            scripts: words.iter().cloned().collect(),
            programs: words.iter().cloned().collect(),
        }),
        14 => Rewrite::Shell(calls, Host::Recipe),
        _ => Rewrite::Shell(calls, Host::Script),
    };
    let is_script = matches!(rewrite, Rewrite::Shell(_, Host::Script));
    let edit = Edit::of((b"file", line, None), 0, Ok(rewrite));
    let Ok(splices) = edit.splices(text) else { return };
    assert!(!splices.is_empty(), "an edit that changes nothing is refused");
    let edited = spliced(text, &splices);
    let (first, last) = (splices[0].range.start, splices[splices.len() - 1].range.end);
    assert!(edited.starts_with(&text[..first]) && edited.ends_with(&text[last..]), "the rest of the file stays");
    if is_script {
        assert!(Script::parse(&edited).is_some(), "the script stays readable: {}", String::from_utf8_lossy(&edited));
    }
}
