//! Matches an argument with a program's options in all forms: with the value in the next argument, as `-pX`, as `--opt=X`, and as one of several
//! letters (`-su user:X`).

use super::table::{Program, SecretOption, Template, Verb};

/// How an argument matches an option.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum OptionMatch<'t> {
    /// The next arguments have these templates.
    Next(&'t [Template]),
    /// The rest of the argument, from this offset, has this template.
    Rest(usize, Template),
}

/// Returns the secret option that an argument matches.
pub(super) fn find<'t>(program: &'t Program, argument: &[u8], verbs: &[&[u8]]) -> Option<OptionMatch<'t>> {
    let possible = program.options.iter().filter(|option| occur_in_order(&option.verbs, verbs));
    // Exact matches take precedence over letters: `-pass` is not `-p`.
    let mut letters = None;
    for option in possible {
        if let Some(matched) = match_whole(option, argument) {
            return Some(matched);
        }
        letters = letters
            .or_else(|| match_attached(program, option, argument))
            .or_else(|| match_cluster(program, option, argument));
    }
    letters
}

/// Whether the wanted words occur in this order, possibly with other words between them.
pub(super) fn occur_in_order(wanted: &[Verb], verbs: &[&[u8]]) -> bool {
    let mut rest = verbs.iter();
    wanted.iter().all(|verb| rest.any(|word| is_verb(verb, word)))
}

/// Whether a word is one of the alternatives of a verb.
pub(super) fn is_verb(verb: &Verb, word: &[u8]) -> bool {
    verb.iter().any(|alternative| match alternative.strip_suffix('*') {
        Some(start) => word.get(..start.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(start.as_bytes())),
        None => word.eq_ignore_ascii_case(alternative.as_bytes()),
    })
}

/// Matches an option without an attached value (`-p`), or with a value after a separator (`--opt=X`, `/opt:X`).
fn match_whole<'t>(option: &'t SecretOption, argument: &[u8]) -> Option<OptionMatch<'t>> {
    let flag = option.flag.as_bytes();
    let rest = argument.strip_prefix(flag)?;
    match rest.first() {
        None => (!option.values.is_empty()).then_some(OptionMatch::Next(&option.values)),
        Some(_) if option.values.is_empty() => Some(OptionMatch::Rest(flag.len(), option.attached)),
        Some(b'=') => Some(OptionMatch::Rest(flag.len() + 1, option.attached)),
        Some(b':') if flag[0] == b'/' => Some(OptionMatch::Rest(flag.len() + 1, option.attached)),
        Some(_) => None,
    }
}

/// Returns the letter of a short option, if it can be followed by its value or clustered.
fn short_letter(program: &Program, option: &SecretOption) -> Option<u8> {
    match option.flag.as_bytes() {
        [b'-', letter] if !program.is_exact && !option.values.is_empty() => Some(*letter),
        _ => None,
    }
}

/// Matches `-pX`.
fn match_attached<'t>(program: &Program, option: &'t SecretOption, argument: &[u8]) -> Option<OptionMatch<'t>> {
    let letter = short_letter(program, option)?;
    let is_attached = argument.len() > 2 && argument[..2] == [b'-', letter];
    is_attached.then_some(OptionMatch::Rest(2, option.attached))
}

/// Matches `-vp X` and `-vpX`.
fn match_cluster<'t>(program: &Program, option: &'t SecretOption, argument: &[u8]) -> Option<OptionMatch<'t>> {
    let letter = short_letter(program, option)?;
    let letters = argument.strip_prefix(b"-").filter(|letters| letters.len() > 1)?;
    let at = letters.iter().position(|byte| *byte == letter)?;
    let are_switches = letters[..at].iter().all(|byte| byte.is_ascii_alphanumeric() && !is_valued(program, *byte));
    let rest = at + 2;
    match (are_switches && at > 0, rest == argument.len()) {
        (false, _) => None,
        (true, true) => Some(OptionMatch::Next(&option.values)),
        (true, false) => Some(OptionMatch::Rest(rest, option.attached)),
    }
}

/// Whether the option with this letter has a value.
fn is_valued(program: &Program, letter: u8) -> bool {
    let mut flags = program.valued.iter().copied().chain(program.options.iter().map(|option| option.flag));
    flags.any(|flag| flag.as_bytes() == [b'-', letter])
}

/// Whether an argument is a cluster of short options, and the next argument is the value of the last one.
pub(super) fn takes_next(program: &Program, argument: &[u8]) -> bool {
    match argument {
        [b'-', letters @ .., last] if !program.is_exact && !letters.is_empty() && letters[0] != b'-' => {
            let all_letters = letters.iter().all(u8::is_ascii_alphanumeric);
            all_letters && !letters.iter().any(|byte| is_valued(program, *byte)) && is_valued(program, *last)
        }
        _ => false,
    }
}

/// Returns the offset of the value in `--opt=value` if the table lists this option as not secret, otherwise 0.
pub(super) fn value_start(program: &Program, argument: &[u8]) -> usize {
    program
        .valued
        .iter()
        .find_map(|flag| argument.strip_prefix(flag.as_bytes())?.strip_prefix(b"=").map(|_| flag.len() + 1))
        .unwrap_or(0)
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
