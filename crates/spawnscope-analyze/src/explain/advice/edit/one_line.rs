//! Whether a text in a script has one line. Filters such as `cut` handle each line separately; an expansion handles the whole text.

use crate::model::launch::base_name;
use crate::patterns::script::{Kind, Part, Script, Simple, Word, names};
use crate::patterns::words::Words;

/// Programs that print one line.
const PRINT_ONE_LINE: Words =
    Words("basename date dirname expr hostname id mktemp nproc pwd readlink realpath tty uname wc which whoami");
/// Filters that print at most one line for each line.
const KEEP_LINES: Words = Words("cut head rev sed sort tail tr");
/// Values of more variables are not followed.
const MAX_VARIABLES: usize = 20;

/// Whether a word certainly has one line.
pub(super) fn is_one_line(script: &Script<'_>, word: &Word<'_>) -> bool {
    is_line(script, word, &mut Vec::new())
}

fn is_line<'t>(script: &Script<'t>, word: &Word<'t>, known: &mut Vec<&'t [u8]>) -> bool {
    word.parts.iter().all(|part| match part {
        Part::Literal { text, .. } => !text.contains(&b'\n'),
        Part::Pattern => true,
        Part::Variable { name, .. } => is_variable_line(script, name, known),
        Part::Substitution { node, .. } => prints_one_line(script, *node, known),
        Part::Other { text, .. } => match text.strip_prefix(b"${") {
            Some(inside) => {
                let length = inside.iter().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_').count();
                let is_removal =
                    matches!(inside.get(length), Some(b'#' | b'%' | b':' | b',' | b'^')) && !inside.contains(&b'$');
                inside.starts_with(b"#")
                    || length > 0 && is_removal && is_variable_line(script, &inside[..length], known)
            }
            None => text.starts_with(b"$((") || matches!(*text, b"$#" | b"$?" | b"$$" | b"$!"),
        },
    })
}

/// Whether everything that sets a variable sets it to one line.
fn is_variable_line<'t>(script: &Script<'t>, name: &'t [u8], known: &mut Vec<&'t [u8]>) -> bool {
    if known.contains(&name) {
        return true;
    }
    if name[0].is_ascii_digit() || known.len() == MAX_VARIABLES {
        return false;
    }
    known.push(name);
    let mut is_set = false;
    for index in 0..script.len() {
        let node = script.node(index);
        if !script.sets(node, name) {
            continue;
        }
        is_set = true;
        let is_line = match &node.kind {
            // The words of a loop that are split have no newlines.
            Kind::For(each) => {
                each.name == name
                    && each.words.iter().all(|word| word.literal().is_none_or(|text| !text.contains(&b'\n')))
            }
            Kind::Simple(simple) if simple.words.is_empty() => {
                let own = simple.assignments.iter().filter(|assignment| assignment.name == name);
                let mut values = own.map(|assignment| assignment.value.as_ref());
                values.all(|value| value.is_some_and(|value| is_line(script, value, known)))
            }
            Kind::Simple(simple) => {
                let is_prefix = simple.assignments.iter().any(|each| each.name == name);
                !is_prefix && (reads_lines(script, simple, name) || declares_line(script, simple, name, known))
            }
            _ => false,
        };
        if !is_line {
            return false;
        }
    }
    is_set
}

/// Whether a command is a `read` of lines into variables.
fn reads_lines(script: &Script<'_>, simple: &Simple<'_>, name: &[u8]) -> bool {
    let mut words = simple.words.iter();
    words.next().and_then(Word::literal).as_deref() == Some(b"read")
        && words.all(|word| match word.literal().as_deref() {
            Some(b"-r") => true,
            Some(text) => !text.starts_with(b"-") && (text == name || !names(text, name)),
            None => !names(script.source(&word.range), name),
        })
}

/// Whether a command declares the variable without a value, or with a value of one line: `local x=$y`.
fn declares_line<'t>(script: &Script<'t>, simple: &Simple<'t>, name: &'t [u8], known: &mut Vec<&'t [u8]>) -> bool {
    const BUILTINS: [&[u8]; 6] = [b"declare", b"export", b"local", b"readonly", b"typeset", b"unset"];
    let builtin = simple.words.first().and_then(Word::literal);
    let mut words = simple.words.iter().skip(1).filter(|word| names(script.source(&word.range), name));
    builtin.is_some_and(|builtin| BUILTINS.contains(&&builtin[..]))
        && words.all(|word| match &word.parts[..] {
            [Part::Literal { text, .. }, rest @ ..] if text.starts_with(name) => {
                let value = Word { range: word.range.clone(), parts: rest.to_vec() };
                !text.contains(&b'\n') && is_line(script, &value, known)
            }
            _ => is_line(script, word, known),
        })
}

/// Whether a substitution prints one line: a program that does, or filters of a text of one line.
fn prints_one_line<'t>(script: &Script<'t>, substitution: usize, known: &mut Vec<&'t [u8]>) -> bool {
    let inside =
        (substitution + 1..script.len()).filter(|index| script.ancestors(*index).any(|each| each == substitution));
    let mut nodes =
        inside.filter(|index| !matches!(script.node(*index).kind, Kind::List { .. } | Kind::Pipeline { .. }));
    let mut is_first = true;
    nodes.all(|index| {
        let Some(simple) = script.simple(index) else { return false };
        let program = simple.words.first().and_then(Word::literal).unwrap_or_default();
        let has_escape = simple.words.iter().any(|word| script.source(&word.range).contains(&b'\\'));
        let prints = match std::mem::take(&mut is_first) {
            true if program == b"echo" => simple.words.iter().all(|word| is_line(script, word, known)),
            true => PRINT_ONE_LINE.contains(base_name(&program)),
            false => KEEP_LINES.contains(base_name(&program)),
        };
        prints && !has_escape
    })
}
