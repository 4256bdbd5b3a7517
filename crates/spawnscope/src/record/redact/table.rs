//! Reads `programs.txt`: which programs there are, and where on their command lines secrets stand. It judges no arguments.

use std::collections::HashMap;
use std::sync::LazyLock;

/// The table, as it is written.
const TEXT: &str = include_str!("programs.txt");

/// What of a value is secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Template {
    /// `_`: nothing.
    Nothing,
    /// `X`: all of it.
    Whole,
    /// `?X`: all of it, unless it is a path, a switch or a small number.
    Likely,
    /// `U:X`, `U%X`, `U,X`: what follows the first of this byte.
    After(u8),
    /// `U/X@`, `U:X@`: what stands between the first of this byte and the last `@`.
    Between(u8),
    /// `N=X`: what follows the equals sign; without one, it is a file.
    AfterEquals,
    /// `pass:X`: what follows these words.
    Behind(&'static str),
    /// `N`: a name; if it is one of a secret, the next argument is that secret.
    Named,
}

/// An option whose value is, or holds, a secret.
#[derive(Debug)]
pub(super) struct SecretOption {
    /// Words that must have come before: the verb.
    pub(super) verbs: Vec<Verb>,
    /// The option.
    pub(super) flag: &'static str,
    /// What its values are, in the next arguments; empty: in the same argument only.
    pub(super) values: Vec<Template>,
    /// What the rest of the same argument is.
    pub(super) attached: Template,
}

/// A word, or one of several.
pub(super) type Verb = Vec<&'static str>;

/// Arguments that are secrets by their position.
#[derive(Debug)]
pub(super) struct Positional {
    /// The words before them.
    pub(super) verbs: Vec<Verb>,
    /// Only with this option.
    pub(super) flag: Option<&'static str>,
    /// What follows the words; the last one stands for all the rest, if `repeats`.
    pub(super) slots: Vec<Template>,
    pub(super) repeats: bool,
    /// They are the last arguments, not the next.
    pub(super) is_last: bool,
}

/// Where the command begins that a program runs.
#[derive(Debug)]
pub(super) struct Carries {
    pub(super) verbs: Vec<Verb>,
    /// So many arguments come before it.
    pub(super) skipped: usize,
    /// It begins behind one of these words.
    pub(super) behind: Vec<&'static str>,
}

/// When a program takes a secret from its standard input, and what of that is secret.
#[derive(Debug)]
pub(super) struct Reads {
    pub(super) verbs: Vec<Verb>,
    /// Only with this option.
    pub(super) flag: Option<&'static str>,
    pub(super) template: Template,
}

/// A program of the table.
#[derive(Debug, Default)]
pub(super) struct Program {
    pub(super) options: Vec<SecretOption>,
    pub(super) positionals: Vec<Positional>,
    pub(super) carries: Vec<Carries>,
    /// Options with a value of their own that is no secret.
    pub(super) valued: Vec<&'static str>,
    /// Options whose values are prose.
    pub(super) prose: Vec<&'static str>,
    /// When it takes a secret from its standard input.
    pub(super) reads: Vec<Reads>,
    /// Long options have one dash: none is a cluster of short ones.
    pub(super) is_exact: bool,
    /// `name:value` is a header.
    pub(super) has_headers: bool,
    /// `-D` sets properties, not macros of C.
    pub(super) has_properties: bool,
    /// Options without a value, whatever their names tell.
    pub(super) bare: Vec<&'static str>,
    /// Its arguments are no command, whatever they look like.
    pub(super) is_plain: bool,
    /// Its name is a word of other meanings too.
    pub(super) is_word: bool,
}

impl Program {
    /// Whether it makes an argv suspicious.
    fn has_secrets(&self) -> bool {
        !self.options.is_empty() || !self.positionals.is_empty() || !self.reads.is_empty() || self.has_headers
    }
}

/// `config set NAME X`, which many programs have.
pub(super) static SETTING: LazyLock<Positional> = LazyLock::new(|| Positional {
    verbs: vec![vec!["set", "config:set", "env:set"]],
    flag: None,
    slots: vec![Template::Named, Template::Whole],
    repeats: false,
    is_last: false,
});

static TABLE: LazyLock<HashMap<&'static [u8], Program>> = LazyLock::new(|| read(TEXT));

/// The program of a name: with its folder, `.exe` or a version (`python3.11`, `psql-15`) too.
pub(super) fn find(name: &[u8]) -> Option<&'static Program> {
    let name = name.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    let name = name.strip_prefix(b"-").unwrap_or(name);
    if let Some(program) = TABLE.get(name) {
        return Some(program);
    }
    const SUFFIXES: [&[u8]; 12] = [
        b".exe", b".cmd", b".bat", b".sh", b".py", b".js", b".mjs", b".rb", b".pl", b".php", b".jar", b".bin",
    ];
    let stem = SUFFIXES
        .iter()
        .find_map(|suffix| name.strip_suffix(*suffix))
        .unwrap_or(name);
    let letters = stem
        .iter()
        .rposition(|byte| !byte.is_ascii_digit() && !b".-_".contains(byte))?;
    TABLE.get(stem).or_else(|| TABLE.get(&stem[..=letters]))
}

/// The names of the programs that make an argv suspicious.
pub(super) fn suspicious() -> Vec<&'static str> {
    let named = TABLE.iter().filter(|(_, program)| program.has_secrets());
    let mut names: Vec<&str> = named.filter_map(|(name, _)| std::str::from_utf8(name).ok()).collect();
    names.sort_unstable();
    names
}

fn read(text: &'static str) -> HashMap<&'static [u8], Program> {
    let mut table: HashMap<&'static [u8], Program> = HashMap::new();
    let lines = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    for line in lines {
        let (names, items) = line.split_once(": ").unwrap_or((line, ""));
        for name in names.split_whitespace() {
            let program = table.entry(name.as_bytes()).or_default();
            items.split(" | ").for_each(|item| program.add(item.trim()));
        }
    }
    table
}

impl Program {
    fn add(&mut self, item: &'static str) {
        let words: Vec<&'static str> = item.split_whitespace().collect();
        let rest = words.get(1..).unwrap_or_default();
        match words.first().copied() {
            None => {}
            Some("values") => self.valued.extend(rest),
            Some("prose") => self.prose.extend(rest),
            Some("bare") => self.bare.extend(rest),
            Some("word") => self.is_word = true,
            Some("exact") => self.is_exact = true,
            Some("headers") => self.has_headers = true,
            Some("properties") => self.has_properties = true,
            Some("plain") => self.is_plain = true,
            Some(_) => match words.iter().position(|word| matches!(*word, "carries" | "reads")) {
                Some(at) if words[at] == "reads" => self.reads.push(Reads {
                    verbs: verbs(&words[..at]),
                    flag: words.get(at + 1).copied().filter(|word| word.starts_with('-')),
                    template: words.last().copied().and_then(template).unwrap_or(Template::Whole),
                }),
                Some(at) => self.add_carries(&words[..at], &words[at + 1..]),
                None => self.add_secret(&words),
            },
        }
    }

    fn add_carries(&mut self, before: &[&'static str], after: &[&'static str]) {
        let skipped = after.first().and_then(|word| word.parse().ok());
        self.carries.push(Carries {
            verbs: verbs(before),
            skipped: skipped.unwrap_or(0),
            behind: if skipped.is_some() { Vec::new() } else { after.to_vec() },
        });
    }

    fn add_secret(&mut self, words: &[&'static str]) {
        let is_slot = |word: &&'static str| template(word.trim_end_matches("...")).is_some() || *word == "...";
        let first = words.iter().position(|word| is_flag(word) || is_slot(word));
        let (before, rest) = words.split_at(first.unwrap_or(words.len()));
        let verbs = verbs(before);
        match rest {
            [flag, "...", slots @ ..] if is_flag(flag) => self.add_positional(verbs, Some(flag), slots, true),
            [attached] if is_flag(attached) => {
                // `-pX`: the same argument only.
                let flag = attached.strip_suffix('X').unwrap_or(attached);
                self.options.push(SecretOption {
                    verbs,
                    flag,
                    values: Vec::new(),
                    attached: Template::Whole,
                });
            }
            [flag, values @ ..] if is_flag(flag) => {
                let values: Vec<Template> = values.iter().filter_map(|value| template(value)).collect();
                let attached = values.first().copied().unwrap_or(Template::Whole);
                self.options.push(SecretOption {
                    verbs,
                    flag,
                    values,
                    attached,
                });
            }
            slots => self.add_positional(verbs, None, slots, false),
        }
    }

    fn add_positional(&mut self, verbs: Vec<Verb>, flag: Option<&'static str>, slots: &[&'static str], is_last: bool) {
        let repeats = slots.last().is_some_and(|slot| slot.ends_with("..."));
        let slots = slots.iter().filter_map(|slot| template(slot.trim_end_matches("...")));
        self.positionals.push(Positional {
            verbs,
            flag,
            slots: slots.collect(),
            repeats,
            is_last,
        });
    }
}

fn verbs(words: &[&'static str]) -> Vec<Verb> {
    words.iter().map(|word| word.split(',').collect()).collect()
}

fn is_flag(word: &str) -> bool {
    word.len() > 1 && (word.starts_with('-') || word.starts_with('/') || word.starts_with('+'))
}

fn template(word: &'static str) -> Option<Template> {
    Some(match word {
        "_" => Template::Nothing,
        "X" => Template::Whole,
        "?X" => Template::Likely,
        "N" => Template::Named,
        "N=X" => Template::AfterEquals,
        "U/X@" => Template::Between(b'/'),
        "U:X@" => Template::Between(b':'),
        _ => match word.as_bytes() {
            [b'U', separator, b'X'] => Template::After(*separator),
            [.., b':', b'X'] if !is_flag(word) => Template::Behind(&word[..word.len() - 1]),
            _ => return None,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_table_says_where_a_secret_stands() {
        for (name, program) in TABLE.iter() {
            let name = String::from_utf8_lossy(name);
            for option in &program.options {
                let is_attached = option.values.is_empty();
                assert!(is_flag(option.flag) || is_attached, "{name}: {option:?}");
                assert!(!option.flag.ends_with('X') || !is_attached, "{name}: {option:?}");
            }
            for positional in &program.positionals {
                let is_secret = positional.slots.iter().any(|slot| *slot != Template::Nothing);
                assert!(is_secret, "{name}: {positional:?}");
            }
        }
        assert!(TABLE.len() > 300, "{}", TABLE.len());
    }

    #[test]
    fn programs_are_found_with_folder_suffix_and_version() {
        for name in ["mysql", "/usr/bin/mysql", "mysql.exe", "mysql-8.0", "-mysql"] {
            assert!(find(name.as_bytes()).is_some(), "{name}");
        }
        assert!(find(b"mysqlx-something-else").is_none() && find(b"").is_none() && find(b"-").is_none());
    }
}
