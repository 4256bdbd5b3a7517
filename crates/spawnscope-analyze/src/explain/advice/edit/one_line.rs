//! Whether a text in a script has one line. Filters such as `cut` handle each line separately; an
//! expansion handles the whole text.

use super::line_each::answers_each_line;
use crate::explain::advice::phrases::name;
use crate::model::launch::base_name;
use crate::patterns::programs::has_property;
use crate::patterns::script::{For, Kind, Part, Script, Simple, Word, names};

/// Filters that print one line, whatever they read.
const ONE_OF_ALL: &str = "cksum, head -1, head -n1, head -n 1, md5sum, sha1sum, sha256sum, sha384sum, sha512sum, tail -1, tail -n1, tail -n 1, \
                          wc -c, wc -l, wc -w";
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
        // The path of the script.
        Part::Variable { name: b"0", .. } => true,
        Part::Variable { name, .. } if name[0].is_ascii_digit() => is_parameter_line(script, word.range.start, known),
        Part::Variable { name, .. } => is_line_at(script, word, name, known),
        Part::Substitution { node, .. } => prints_one_line(script, *node, known),
        Part::Other { text, .. } => match text.strip_prefix(b"${") {
            Some(inside) => {
                let length = inside.iter().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_').count();
                let is_removal =
                    matches!(inside.get(length), Some(b'#' | b'%' | b':' | b',' | b'^')) && !inside.contains(&b'$');
                inside.starts_with(b"#")
                    || length > 0 && is_removal && is_line_at(script, word, &inside[..length], known)
            }
            None => text.starts_with(b"$((") || matches!(*text, b"$#" | b"$?" | b"$$" | b"$!"),
        },
    })
}

fn is_line_at<'t>(script: &Script<'t>, word: &Word<'t>, name: &'t [u8], known: &mut Vec<&'t [u8]>) -> bool {
    is_assigned_before(script, word.range.start, name, known) || is_variable_line(script, name, known)
}

/// Whether the last statement before a position that may set a variable always runs before it, and
/// sets the variable to one line.
fn is_assigned_before<'t>(script: &Script<'t>, at: usize, name: &'t [u8], known: &[&'t [u8]]) -> bool {
    let is_list = |index: &usize| {
        matches!(script.node(*index).kind, Kind::List { .. }) && script.node(*index).range.contains(&at)
    };
    let Some(innermost) = (0..script.len()).rfind(is_list) else { return false };
    for each in std::iter::once(innermost).chain(script.ancestors(innermost)) {
        match &script.node(each).kind {
            Kind::For(of) if of.name == name => return has_lines(of),
            Kind::For(_) | Kind::Loop { .. } | Kind::Function => return false,
            Kind::List { .. } if script.may_set(&(script.node(each).range.start..at), name) => return false,
            Kind::List { .. } => {}
            _ => continue,
        }
        let parent = script.node(each).parent;
        let mut before = (0..each).rev().filter(|other| script.node(*other).parent == parent);
        if let Some(last) = before.find(|other| script.may_set(&script.node(*other).range, name)) {
            let around = parent.map(|parent| script.node(parent));
            let has_branches = around.is_some_and(|node| {
                matches!(node.kind, Kind::Compound) && !script.source(&node.range).starts_with(b"{")
            });
            let assigned = script.command_of(last).and_then(|command| script.assigned(command));
            let value = assigned.filter(|(variable, _)| *variable == name && !has_branches);
            return value.is_some_and(|(_, value)| is_line(script, value, &mut known.to_vec()));
        }
    }
    false
}

/// Whether everything that sets a variable sets it to one line.
fn is_variable_line<'t>(script: &Script<'t>, name: &'t [u8], known: &mut Vec<&'t [u8]>) -> bool {
    if known.contains(&name) {
        return true;
    }
    if known.len() == MAX_VARIABLES {
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
            Kind::For(each) => each.name == name && has_lines(each),
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

/// Whether each word of a loop is one line. Those that are split have no newlines.
fn has_lines(each: &For<'_>) -> bool {
    let is_quoted = |part: &Part<'_>| {
        matches!(part, Part::Variable { is_quoted: true, .. } | Part::Substitution { is_quoted: true, .. })
    };
    each.words.iter().all(|word| match &word.parts[..] {
        [only] if is_quoted(only) => false,
        _ => word.literal().is_none_or(|text| !text.contains(&b'\n')),
    })
}

/// Whether all parameters of the function around a position have one line, in all its calls.
fn is_parameter_line<'t>(script: &Script<'t>, at: usize, known: &mut Vec<&'t [u8]>) -> bool {
    let is_around =
        |index: &usize| matches!(script.node(*index).kind, Kind::Function) && script.node(*index).range.contains(&at);
    let Some(function) = (0..script.len()).rfind(is_around) else { return false };
    let (range, name) = (&script.node(function).range, script.function_name(function));
    let source = script.source(range);
    if known.contains(&source) {
        return true;
    }
    known.push(source);
    let calls = script.calls_everywhere(name).unwrap_or_default();
    let sets = script.calls_in(range).any(|program| program == b"set");
    known.len() <= MAX_VARIABLES
        && !(calls.is_empty() || sets)
        && calls
            .iter()
            .filter_map(|call| script.simple(*call))
            .all(|call| call.words.iter().skip(1).all(|word| is_line(script, word, known)))
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

/// Whether a command declares the variable without a value, or with a value of one line: `local
/// x=$y`.
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
    let is_inside = |index: &usize| script.ancestors(*index).any(|each| each == substitution);
    let is_command = |index: &usize| !matches!(script.node(*index).kind, Kind::List { .. } | Kind::Pipeline { .. });
    let nodes: Vec<usize> = script.inside(substitution).filter(|index| is_inside(index) && is_command(index)).collect();
    let all: Option<Vec<&Simple<'t>>> = nodes.iter().map(|index| script.simple(*index)).collect();
    let Some(all) = all else { return false };
    let only = |parent: usize| script.children(parent).next().filter(|_| script.children(parent).count() == 1);
    let pipeline = only(substitution).and_then(only);
    let last = pipeline.and_then(|pipeline| script.children(pipeline).filter_map(|each| script.simple(each)).last());
    if last.is_some_and(|last| prints_one_of_all(script, last)) {
        return true;
    }
    let mut is_first = true;
    all.iter().all(|simple| {
        let program = simple.words.first().and_then(Word::literal).unwrap_or_default();
        let has_escape = simple.words.iter().any(|word| script.source(&word.range).contains(&b'\\'));
        let words = || simple.words.iter().map(Word::literal).collect::<Option<Vec<_>>>();
        let prints = match std::mem::take(&mut is_first) {
            true if program == b"echo" => simple.words.iter().all(|word| is_line(script, word, known)),
            true if program == b"git" => is_line_of_git(simple),
            true => has_property(base_name(&program), "one-line"),
            false => {
                has_property(base_name(&program), "keeps-lines")
                    || words().is_some_and(|words| answers_each_line(&words, b""))
            }
        };
        prints && !has_escape
    })
}

/// Whether a command prints one line of all that it reads from its input or from one file.
fn prints_one_of_all(script: &Script<'_>, simple: &Simple<'_>) -> bool {
    let sources: Vec<&[u8]> = simple.words.iter().map(|word| script.source(&word.range)).collect();
    let is_form = |words: &[&[u8]]| ONE_OF_ALL.split(", ").any(|form| words.join(&b' ') == form.as_bytes());
    let is_one_word = |part: &Part<'_>| matches!(part, Part::Literal { .. } | Part::Variable { is_quoted: true, .. });
    let has_file = simple.words.last().is_some_and(|file| file.parts.iter().all(is_one_word));
    is_form(&sources) || has_file && is_form(&sources[..sources.len() - 1])
}

/// Whether git prints one line about one commit.
fn is_line_of_git(simple: &Simple<'_>) -> bool {
    let words: Vec<Vec<u8>> = simple.words.iter().skip(1).map(|word| word.literal().unwrap_or_default()).collect();
    let Some((subcommand, words)) = words.split_first() else { return false };
    const FORMATS: [&[u8]; 3] = [b"--format=format:", b"--pretty=format:", b"--format="];
    let format = words.iter().find_map(|word| FORMATS.iter().find_map(|option| word.strip_prefix(*option)));
    let has_format = format.is_some_and(|format| is_format_of_one_line(&name(format)));
    let options = words.iter().filter(|word| word.starts_with(b"-")).count();
    match &subcommand[..] {
        b"describe" => words.len() - options < 2,
        b"log" => has_format && words.iter().any(|word| matches!(&word[..], b"-1" | b"-n1")),
        b"rev-parse" | b"symbolic-ref" => words.len() - options == 1 && options < 2,
        b"show" => has_format && words.iter().any(|word| matches!(&word[..], b"-s" | b"--no-patch")),
        _ => false,
    }
}

/// Whether a format of git is one line of text for every commit.
fn is_format_of_one_line(format: &str) -> bool {
    let mut fields = format.split('%');
    fields.next().is_some()
        && fields.all(|field| {
            let is_of_person =
                field.starts_with(['a', 'c']) && field[1..].starts_with(|next: char| "nNeEdDrtiIs".contains(next));
            is_of_person || field.starts_with(['H', 'h', 's'])
        })
        && !format.contains(['\n', '\''])
}
