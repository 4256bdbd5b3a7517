//! Launches in Perl programs: `system`, backquotes and `qx`, as far as their commands are plain.

use std::ops::Range;

use super::command::{CommandCall, CommandWord, FoundLaunch, Piece, Usage, listed, split, split_code};
use super::{Result, Splice, inserted, line_start, refuse_if, splice};
use crate::explain::advice::phrases::name;
use crate::patterns::script::{identifier_length, is_name_byte};
use crate::patterns::words::{contains, string_length};

/// A statement continues on at most this many lines.
const MAX_LINES: usize = 8;

/// Returns the launches of a statement that begins at a line.
pub(super) fn launches(text: &[u8], line: u32) -> Result<Vec<FoundLaunch>> {
    let start: usize =
        text.split_inclusive(|byte| *byte == b'\n').take(line.saturating_sub(1) as usize).map(<[u8]>::len).sum();
    let statement = start..statement_end(text, start);
    refuse_if(may_use_status(text, &statement), "the program may use the status of its last child")?;
    let mut found = Vec::new();
    let mut at = start;
    while at < statement.end {
        let rest = &text[at..statement.end];
        let is_word = at == 0 || !(text[at - 1].is_ascii_alphanumeric() || b"_$@%&>:".contains(&text[at - 1]));
        if is_word && rest.starts_with(b"#") {
            at += rest.iter().take_while(|byte| **byte != b'\n').count();
        } else if let Some(launch) = quoted(text, at, is_word).or_else(|| called(text, at).filter(|_| is_word)) {
            at = launch.range.end.max(at + 1);
            found.push(launch);
        } else {
            at += 1;
        }
    }
    Ok(found)
}

/// Whether a program may use `$?` after a statement. What follows another launch, without a block
/// in between, uses the status of that.
fn may_use_status(text: &[u8], statement: &Range<usize>) -> bool {
    let follows_another = |at: usize| {
        let launches = [&b"system("[..], b"system \"", b"waitpid(", b"waitpid $", b"`"].into_iter();
        let ends = |launch: &[u8]| text[..at].windows(launch.len()).rposition(|part| part == launch);
        let Some(last) = launches.filter_map(ends).max() else { return false };
        let between = &text[last..at];
        let first = between.split(|byte| *byte == b';').next().unwrap_or_default();
        let before = &text[line_start(text, last)..last];
        let has = |code: &[u8], words: &[&[u8]]| words.iter().any(|word| contains(code, word));
        let is_conditional = has(before, &[b" and ", b" or ", b"&&", b"||", b"? "])
            || has(&[before, first].concat(), &[b" if ", b" unless ", b" for", b" while "]);
        let is_comment = before.contains(&b'#');
        !statement.contains(&last) && !statement.contains(&at) && !is_comment && !is_conditional && is_straight(between)
    };
    let mut uses = text.windows(2).enumerate().filter(|(_, two)| *two == b"$?").map(|(at, _)| at);
    contains(text, b"CHILD_ERROR") || !uses.all(follows_another)
}

/// Whether code has no blocks except those of conditions, in which it ends.
fn is_straight(code: &[u8]) -> bool {
    let mut headers = code.split(|byte| *byte == b'{').collect::<Vec<_>>();
    headers.pop();
    let is_condition = |header: &[u8]| {
        let header = header.rsplit(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
        header.starts_with(b"if ") || header.starts_with(b"unless ")
    };
    !code.contains(&b'}') && headers.into_iter().all(is_condition)
}

/// Returns the end of the line on which a statement ends.
fn statement_end(text: &[u8], start: usize) -> usize {
    let ends = text[start..].iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| start + at);
    let ends: Vec<usize> = ends.take(MAX_LINES).collect();
    let is_end = |end: &&usize| matches!(text[start..**end].trim_ascii_end().last(), Some(b';' | b'{' | b'}'));
    ends.iter().find(is_end).or(ends.first()).copied().unwrap_or(text.len())
}

/// Returns a launch in backquotes or `qx`.
fn quoted(text: &[u8], at: usize, is_word: bool) -> Option<FoundLaunch> {
    let (open, close) = match &text[at..] {
        [b'`', ..] => (at, b'`'),
        [b'q', b'x', open @ (b'(' | b'{' | b'[' | b'/' | b'|' | b'!'), ..] if is_word => (at + 2, closing_of(*open)),
        _ => return None,
    };
    let end = match text[open] == close {
        true => open + 1 + string_length(&text[open + 1..], close)?,
        false => closing(text, open, close)?,
    };
    let range = at..end + 1;
    let command = split(&pieces(&text[open + 1..end])?)?;
    let before = text[line_start(text, at)..at].trim_ascii_end().strip_suffix(b"=");
    let variable = before.and_then(|before| before.trim_ascii_end().rsplit(u8::is_ascii_whitespace).next());
    let is_scalar = variable.is_some_and(|variable| variable.starts_with(b"$"));
    Some(FoundLaunch { range, command, usage: Usage::Text, is_scalar, is_bytes: false })
}

/// Returns a launch by `system`.
fn called(text: &[u8], at: usize) -> Option<FoundLaunch> {
    let Some(rest) = text[at..].strip_prefix(b"system") else { return by_function(text, at) };
    let blanks = rest.len() - rest.trim_ascii_start().len();
    let open = at + b"system".len() + blanks;
    let (arguments, mut end) = match text.get(open)? {
        b'(' => {
            let end = closing(text, open, b')')?;
            (open + 1..end, end + 1)
        }
        b'"' | b'\'' if blanks > 0 => {
            let length = text[open..].iter().position(|byte| *byte == b';')?;
            (open..open + length, open + length)
        }
        _ => return None,
    };
    let command = command(&text[arguments])?;
    let after = &text[end..];
    let blanks = after.len() - after.trim_ascii_start().len();
    let after = after.trim_ascii_start();
    let usage = if let Some(tested) = [&b"== 0"[..], b"!= 0"].iter().find(|test| after.starts_with(test)) {
        end += blanks + tested.len();
        if tested.starts_with(b"=") { Usage::Checked } else { Usage::Negated }
    } else {
        is_statement(text, &(at..end)).then_some(Usage::Ignored)?
    };
    Some(FoundLaunch { range: at..end, command, usage, is_scalar: true, is_bytes: false })
}

/// Whether a call is a statement, perhaps with a condition after it.
fn is_statement(text: &[u8], call: &Range<usize>) -> bool {
    let before = text[line_start(text, call.start)..call.start].trim_ascii();
    let after = text[call.end..].trim_ascii_start();
    let is_end = [&b";"[..], b"}", b"if ", b"unless ", b"for ", b"foreach "].iter().any(|end| after.starts_with(end));
    is_end && (before.is_empty() || before.ends_with(b"{") || before.ends_with(b";"))
}

/// Returns what a call of a function launches that only passes its arguments to `system`, and may
/// end the program: `sub run { system(@_) == 0 or die }`.
fn by_function(text: &[u8], at: usize) -> Option<FoundLaunch> {
    let length = identifier_length(&text[at..]);
    let open = at + length;
    (length > 0 && text.get(open) == Some(&b'(')).then_some(())?;
    let end = closing(text, open, b')')? + 1;
    is_statement(text, &(at..end)).then_some(())?;
    let definition = [b"sub ", &text[at..open], b" {"].concat();
    let mut definitions = text.windows(definition.len()).enumerate().filter(|(_, code)| *code == definition);
    let start = definitions.next().filter(|_| definitions.next().is_none())?.0 + definition.len();
    let body = name(&text[start..closing(text, start - 1, b'}')?]);
    let statements: Vec<String> = body.split(';').map(|code| code.split_whitespace().collect::<String>()).collect();
    let statements: Vec<&str> = statements.iter().map(String::as_str).filter(|code| !code.is_empty()).collect();
    let (list, launch) = match statements[..] {
        [launch] => ("@_", launch),
        [list, launch] => (list.strip_prefix("my")?.strip_suffix("=@_")?.trim_matches(['(', ')']), launch),
        _ => return None,
    };
    let rest = launch.strip_prefix("system")?.trim_start_matches('(').strip_prefix(list)?.trim_start_matches(')');
    let usage = match rest {
        "" => Usage::Ignored,
        _ => ["==0ordie", "anddie", "==0||die"].iter().any(|end| rest.starts_with(end)).then_some(Usage::Fatal)?,
    };
    let command = command(&text[open + 1..end - 1])?;
    Some(FoundLaunch { range: at..end, command, usage, is_scalar: true, is_bytes: false })
}

/// Returns what closes a quoted text.
fn closing_of(open: u8) -> u8 {
    match open {
        b'(' => b')',
        b'{' => b'}',
        b'[' => b']',
        other => other,
    }
}

/// Returns where the bracket that opens at a position closes.
fn closing(text: &[u8], open: usize, close: u8) -> Option<usize> {
    let ends = text[open..].iter().enumerate().filter(|(_, byte)| **byte == close).map(|(at, _)| open + at);
    ends.take(MAX_LINES * 4).find(|end| split_code(&text[open + 1..*end], b',').is_some())
}

/// Returns the command that `system` gets: a string, or a list of words.
fn command(arguments: &[u8]) -> Option<CommandCall> {
    if let [line] = split_code(arguments, b',')?[..] {
        return split(&string(line)?);
    }
    listed(arguments, |word| match string(word) {
        Some(pieces) => Some(CommandWord::Pieces(pieces)),
        None => word.starts_with(b"$").then(|| CommandWord::Expression(word.to_vec())),
    })
}

/// Returns the parts of a string in quotes.
fn string(code: &[u8]) -> Option<Vec<Piece>> {
    let quote = *code.first()?;
    let inside = code.get(1..code.len().checked_sub(1)?)?;
    let is_string = matches!(quote, b'"' | b'\'') && string_length(&code[1..], quote)? + 2 == code.len();
    match (is_string, quote) {
        (true, b'"') => pieces(inside),
        (true, _) => (!inside.contains(&b'\\')).then(|| vec![Piece::Text(inside.to_vec())]),
        _ => None,
    }
}

/// Splits the text of a string into text and variables.
fn pieces(text: &[u8]) -> Option<Vec<Piece>> {
    let (mut pieces, mut plain, mut at) = (Vec::new(), Vec::new(), 0);
    while at < text.len() {
        match text[at] {
            b'$' => {
                let length = variable_length(&text[at..])?;
                pieces.extend((!plain.is_empty()).then(|| Piece::Text(std::mem::take(&mut plain))));
                pieces.push(Piece::Code(text[at..at + length].to_vec()));
                at += length;
                continue;
            }
            b'\\' => return None,
            b'@' if text.get(at + 1).is_some_and(|next| next.is_ascii_alphabetic() || b"_{$".contains(next)) => {
                return None;
            }
            byte => plain.push(byte),
        }
        at += 1;
    }
    pieces.extend((!plain.is_empty()).then_some(Piece::Text(plain)));
    Some(pieces)
}

/// Returns the length of a variable in a string, with its subscripts.
fn variable_length(text: &[u8]) -> Option<usize> {
    let mut at = match text.get(1)? {
        b'{' => {
            let length = identifier_length(&text[2..]);
            (text.get(2 + length) == Some(&b'}')).then_some(3 + length)?
        }
        _ => 1 + identifier_length(&text[1..]),
    };
    (at > 1 && text.get(at) != Some(&b':')).then_some(())?;
    loop {
        let arrow = if text[at..].starts_with(b"->[") || text[at..].starts_with(b"->{") { 2 } else { 0 };
        let Some(open @ (b'[' | b'{')) = text.get(at + arrow) else { return Some(at) };
        let length = text[at + arrow + 1..].iter().take_while(|byte| is_name_byte(**byte) || **byte == b'$').count();
        let end = at + arrow + 1 + length;
        (length > 0 && text.get(end) == Some(&closing_of(*open))).then_some(())?;
        at = end + 1;
    }
}

/// Returns a word as an expression.
pub(super) fn value(word: &CommandWord) -> Option<String> {
    let pieces = match word {
        CommandWord::Expression(code) => return Some(name(code)),
        CommandWord::Pieces(pieces) => pieces,
    };
    if let [Piece::Code(code)] = &pieces[..] {
        return Some(name(code));
    }
    if let Some(text) = word.literal() {
        return (!text.contains(&b'\'')).then(|| format!("'{}'", name(text)));
    }
    let mut string = String::new();
    for piece in pieces {
        match piece {
            Piece::Code(code) => string.push_str(&name(code)),
            Piece::Text(text) => {
                (!text.iter().any(|byte| b"\"$@".contains(byte))).then_some(())?;
                string.push_str(&name(text));
            }
        }
    }
    Some(format!("\"{string}\""))
}

/// Returns how to keep the answer of a launch in a variable.
pub(super) fn kept(text: &[u8], launch: &FoundLaunch, variable: &str) -> Result<Vec<Splice>> {
    let is_constant = launch.command.words.iter().all(|word| word.literal().is_some());
    refuse_if(!is_constant || !launch.is_scalar || launch.usage != Usage::Text, "the answer is used in another way")?;
    let code = name(&text[launch.range.clone()]);
    Ok(vec![splice(launch.range.clone(), format!("(our ${variable} //= {code})"))])
}

/// Returns how to load a module, if the program does not.
pub(super) fn import(text: &[u8], module: &str) -> Result<Option<Splice>> {
    let (mut at, mut place) = (0, None);
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        if let Some(rest) = line.strip_prefix(b"use ") {
            if rest.starts_with(module.as_bytes()) && !rest[module.len()..].starts_with(b":") {
                return Ok(None);
            }
            place = Some(at + line.len());
        } else if place.is_none() && !line.starts_with(b"#") && !line.trim_ascii().is_empty() {
            place = Some(at);
        }
        at += line.len();
        // What follows the first statement may be another package.
        if place.is_some() && !line.starts_with(b"use ") && !line.trim_ascii().is_empty() {
            break;
        }
    }
    Ok(place.map(|at| inserted(at, format!("use {module} ();\n"))))
}
