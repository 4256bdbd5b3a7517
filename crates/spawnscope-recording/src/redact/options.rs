//! Matches arguments with the options and words of the table, in all forms: with the value in the
//! next argument, as `-pX`, as `--opt=X`, and as one of several letters (`-su user:X`).

use super::table::{Program, Template, Verb};
use super::words::Word;

pub(super) fn is_flag_among(argument: &[u8], flags: &[&str]) -> bool {
    flags.iter().any(|flag| flag.as_bytes() == argument)
}

/// Whether the wanted words occur in this order, possibly with other words between them.
pub(super) fn occur_in_order(wanted: &[Verb], verbs: &[&Word<'_>]) -> bool {
    let mut rest = verbs.iter();
    wanted.iter().all(|verb| rest.any(|word| is_verb(verb, &word.text)))
}

pub(super) fn ends_with_verbs(wanted: &[Verb], verbs: &[&Word<'_>]) -> bool {
    let start = verbs.len().checked_sub(wanted.len());
    start.is_some_and(|start| wanted.iter().zip(&verbs[start..]).all(|(verb, word)| is_verb(verb, &word.text)))
}

fn is_verb(verb: &Verb, word: &[u8]) -> bool {
    verb.iter().any(|alternative| match alternative.strip_suffix('*') {
        Some(start) => word.get(..start.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(start.as_bytes())),
        None => word.eq_ignore_ascii_case(alternative.as_bytes()),
    })
}

/// How an argument matches an option of the table.
pub(super) enum OptionMatch {
    /// The next arguments have these templates.
    Next(&'static [Template]),
    /// The rest of the argument, from this offset, has this template.
    Rest(usize, Template),
}

/// Matches an argument with a program's options: with the value in the next argument, as `-pX`, as
/// `--opt=X`, and as one of several letters (`-su user:X`). Exact matches take precedence over
/// letters: `-pass` is not `-p`.
pub(super) fn match_option(program: &'static Program, argument: &[u8], verbs: &[&Word<'_>]) -> Option<OptionMatch> {
    let rules = program.rules.iter().filter(|rule| !rule.is_last && occur_in_order(&rule.verbs, verbs));
    let mut letters = None;
    for (rule, flag) in rules.filter_map(|rule| Some((rule, rule.flag?.as_bytes()))) {
        let first = rule.slots.first().copied().unwrap_or(Template::Whole);
        match argument.strip_prefix(flag) {
            Some([]) if !rule.slots.is_empty() => return Some(OptionMatch::Next(&rule.slots)),
            Some([_, ..]) if rule.slots.is_empty() => return Some(OptionMatch::Rest(flag.len(), first)),
            Some([b'=', ..]) => return Some(OptionMatch::Rest(flag.len() + 1, first)),
            Some([b':', ..]) if flag[0] == b'/' => return Some(OptionMatch::Rest(flag.len() + 1, first)),
            _ => {}
        }
        if let [b'-', letter] = flag
            && !program.is_exact
            && !rule.slots.is_empty()
            && let Some(end) = end_of_cluster(program, argument, *letter)
        {
            letters = letters.or(Some(match end == argument.len() {
                true => OptionMatch::Next(&rule.slots),
                false => OptionMatch::Rest(end, first),
            }));
        }
    }
    letters
}

/// Returns the offset after this letter in a cluster of short options, if all letters before it
/// have no value: `-vp`.
fn end_of_cluster(program: &Program, argument: &[u8], letter: u8) -> Option<usize> {
    let letters = argument.strip_prefix(b"-")?;
    let at = letters.iter().position(|byte| *byte == letter)?;
    let are_switches = letters[..at].iter().all(|byte| byte.is_ascii_alphanumeric() && !is_valued(program, *byte));
    are_switches.then_some(at + 2)
}

fn is_valued(program: &Program, letter: u8) -> bool {
    let mut flags = program.rules.iter().filter_map(|rule| rule.flag);
    program.letters.as_bytes().contains(&letter) || flags.any(|flag| flag.as_bytes() == [b'-', letter])
}

/// Whether an argument is a cluster of short options, and the next argument is the value of the
/// last one.
pub(super) fn takes_next(program: &Program, argument: &[u8]) -> bool {
    match argument {
        [b'-', letters @ .., last] if !program.is_exact && !letters.is_empty() && letters[0] != b'-' => {
            let all_letters = letters.iter().all(u8::is_ascii_alphanumeric);
            all_letters && !letters.iter().any(|byte| is_valued(program, *byte)) && is_valued(program, *last)
        }
        _ => false,
    }
}

/// Whether an option was given, alone or in a cluster of letters.
pub(super) fn is_given(flag: &str, given: &[&[u8]]) -> bool {
    given.iter().any(|argument| match (flag.as_bytes(), *argument) {
        (flag, argument) if flag == argument => true,
        ([b'-', letter], [b'-', letters @ ..]) if letters.first() != Some(&b'-') => {
            letters.contains(letter) && letters.iter().all(u8::is_ascii_alphanumeric)
        }
        _ => false,
    })
}
