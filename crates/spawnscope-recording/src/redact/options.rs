//! Matches an argument with a program's options in all their forms: separate from the value, `-pX`, `--opt=X`, and as the last of several
//! letters (`-su user:X`).

use super::table::{Program, SecretOption, Template, Verb};

/// How an argument matches an option.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Matched<'t> {
    /// The next arguments have these templates.
    Next(&'t [Template]),
    /// The rest of the argument, from this offset, has this template.
    Rest(usize, Template),
}

/// Returns the secret option that an argument matches.
pub(super) fn find<'t>(program: &'t Program, argument: &[u8], verbs: &[&[u8]]) -> Option<Matched<'t>> {
    let fitting = program.options.iter().filter(|option| have_come(&option.verbs, verbs));
    // Exact options come before letters: `-pass` is not `-p`.
    let mut letters = None;
    for option in fitting {
        if let Some(matched) = whole(option, argument) {
            return Some(matched);
        }
        letters = letters
            .or_else(|| attached(program, option, argument))
            .or_else(|| clustered(program, option, argument));
    }
    letters
}

/// Whether these words occurred in this order, possibly with others between them.
pub(super) fn have_come(wanted: &[Verb], verbs: &[&[u8]]) -> bool {
    let mut rest = verbs.iter();
    wanted.iter().all(|verb| rest.any(|word| is_verb(verb, word)))
}

/// Whether a word is one of these.
pub(super) fn is_verb(verb: &Verb, word: &[u8]) -> bool {
    let is_one = |one: &&str| match one.strip_suffix('*') {
        Some(start) => word
            .get(..start.len())
            .is_some_and(|begin| begin.eq_ignore_ascii_case(start.as_bytes())),
        None => word.eq_ignore_ascii_case(one.as_bytes()),
    };
    verb.iter().any(is_one)
}

fn whole<'t>(option: &'t SecretOption, argument: &[u8]) -> Option<Matched<'t>> {
    let flag = option.flag.as_bytes();
    let rest = argument.strip_prefix(flag)?;
    match rest.first() {
        None => (!option.values.is_empty()).then_some(Matched::Next(&option.values)),
        Some(_) if option.values.is_empty() => Some(Matched::Rest(flag.len(), option.attached)),
        Some(b'=') => Some(Matched::Rest(flag.len() + 1, option.attached)),
        Some(b':') if flag[0] == b'/' => Some(Matched::Rest(flag.len() + 1, option.attached)),
        Some(_) => None,
    }
}

/// Returns the letter of a short option.
fn letter(program: &Program, option: &SecretOption) -> Option<u8> {
    match option.flag.as_bytes() {
        [b'-', letter] if !program.is_exact && !option.values.is_empty() => Some(*letter),
        _ => None,
    }
}

fn attached<'t>(program: &Program, option: &'t SecretOption, argument: &[u8]) -> Option<Matched<'t>> {
    let letter = letter(program, option)?;
    let is_attached = argument.len() > 2 && argument[..2] == [b'-', letter];
    is_attached.then_some(Matched::Rest(2, option.attached))
}

fn clustered<'t>(program: &Program, option: &'t SecretOption, argument: &[u8]) -> Option<Matched<'t>> {
    let letter = letter(program, option)?;
    let letters = argument.strip_prefix(b"-").filter(|letters| letters.len() > 1)?;
    let at = letters.iter().position(|byte| *byte == letter)?;
    let are_switches = letters[..at]
        .iter()
        .all(|byte| byte.is_ascii_alphanumeric() && !is_valued(program, *byte));
    let rest = at + 2;
    match (are_switches && at > 0, rest == argument.len()) {
        (false, _) => None,
        (true, true) => Some(Matched::Next(&option.values)),
        (true, false) => Some(Matched::Rest(rest, option.attached)),
    }
}

/// Whether an option letter takes the rest of the argument as its value.
fn is_valued(program: &Program, letter: u8) -> bool {
    let is_letter = |flag: &str| flag.as_bytes() == [b'-', letter];
    program.valued.iter().any(|flag| is_letter(flag)) || program.options.iter().any(|option| is_letter(option.flag))
}

/// Whether the last of several short options takes the next argument as a value that is not secret.
pub(super) fn takes_next(program: &Program, argument: &[u8]) -> bool {
    match argument {
        [b'-', letters @ .., last] if !program.is_exact && !letters.is_empty() && letters[0] != b'-' => {
            let all_letters = letters.iter().all(u8::is_ascii_alphanumeric);
            all_letters && !letters.iter().any(|byte| is_valued(program, *byte)) && is_valued(program, *last)
        }
        _ => false,
    }
}

/// Returns where the value begins in `--opt=value`, if the table says that this option is not secret.
pub(super) fn value_start(program: &Program, argument: &[u8]) -> usize {
    let value = |flag: &&str| {
        argument
            .strip_prefix(flag.as_bytes())?
            .strip_prefix(b"=")
            .map(|_| flag.len() + 1)
    };
    program.valued.iter().find_map(value).unwrap_or(0)
}

/// Whether an option was given, alone or among letters.
pub(super) fn is_given(flag: &str, given: &[&[u8]]) -> bool {
    let is_it = |argument: &&[u8]| match (flag.as_bytes(), *argument) {
        (flag, argument) if flag == argument => true,
        ([b'-', letter], [b'-', letters @ ..]) if letters.first() != Some(&b'-') => {
            letters.contains(letter) && letters.iter().all(u8::is_ascii_alphanumeric)
        }
        _ => false,
    };
    given.iter().any(is_it)
}
