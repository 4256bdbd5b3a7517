//! Parses `programs.txt`, which lists the known programs and the positions of secrets on their command lines.

use std::collections::HashMap;
use std::sync::LazyLock;

/// The source text of the table.
const TEXT: &str = include_str!("programs.txt");

/// Which part of a value is secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Template {
    /// `_`: nothing.
    Nothing,
    /// `X`: the whole value.
    Whole,
    /// `?X`: the whole value, unless it is a path, a switch or a small number.
    Likely,
    /// `U:X`, `U%X`, `U,X`: the part after the first occurrence of this byte.
    After(u8),
    /// `U/X@`, `U:X@`: the part between the first occurrence of this byte and the last `@`.
    Between(u8),
    /// `N=X`: the part after the equals sign. A value without an equals sign is a file.
    AfterEquals,
    /// `pass:X`: the part after this prefix.
    AfterPrefix(&'static str),
    /// `N`: nothing, but if the value is the name of a secret, the next argument is that secret.
    Named,
}

/// An option whose value is or contains a secret.
#[derive(Debug)]
pub(super) struct SecretOption {
    /// The words that must occur before the option.
    pub(super) verbs: Vec<Verb>,
    pub(super) flag: &'static str,
    /// The templates of the values in the next arguments. If empty, the value can only be in the same argument.
    pub(super) values: Vec<Template>,
    /// The template of the rest of the argument, if the value is in the same argument.
    pub(super) attached: Template,
}

/// Alternatives for one word.
pub(super) type Verb = Vec<&'static str>;

/// Arguments that are secrets because of their position.
#[derive(Debug)]
pub(super) struct Positional {
    /// The words before these arguments.
    pub(super) verbs: Vec<Verb>,
    /// The option that must have been given, if any.
    pub(super) flag: Option<&'static str>,
    /// The templates of the arguments after the words.
    pub(super) slots: Vec<Template>,
    /// Whether the last template applies to all following arguments.
    pub(super) repeats: bool,
    /// Whether the slots are for the last arguments of the command instead of the next ones.
    pub(super) is_last: bool,
}

/// Where the command that a program runs begins.
#[derive(Debug)]
pub(super) struct CarriedCommand {
    /// The words that must occur before the command.
    pub(super) verbs: Vec<Verb>,
    /// The number of arguments between these words and the command.
    pub(super) skipped: usize,
    /// The words after which the command begins; if empty, it begins after `skipped` arguments.
    pub(super) separators: Vec<&'static str>,
}

/// When a program reads a secret from its standard input, and which part of the input is secret.
#[derive(Debug)]
pub(super) struct SecretInput {
    /// The words that must occur among the arguments.
    pub(super) verbs: Vec<Verb>,
    /// The option that must have been given, if any.
    pub(super) flag: Option<&'static str>,
    pub(super) template: Template,
}

/// What the table says about a program.
#[derive(Debug, Default)]
pub(super) struct Program {
    pub(super) options: Vec<SecretOption>,
    pub(super) positionals: Vec<Positional>,
    pub(super) carries: Vec<CarriedCommand>,
    /// Options whose values are not secret.
    pub(super) valued: Vec<&'static str>,
    /// Options whose values are prose.
    pub(super) prose: Vec<&'static str>,
    /// When the program reads a secret from its standard input.
    pub(super) reads: Vec<SecretInput>,
    /// Whether long options have one dash, so that no option is a cluster of letters.
    pub(super) is_exact: bool,
    /// Whether arguments of the form `name:value` are HTTP headers.
    pub(super) has_headers: bool,
    /// Whether `-D` sets properties instead of C macros.
    pub(super) has_properties: bool,
    /// Options without a value, regardless of their names.
    pub(super) bare: Vec<&'static str>,
    /// Whether the arguments are never a command, even if they look like one.
    pub(super) is_plain: bool,
    /// Whether the program's name is also an ordinary word.
    pub(super) is_word: bool,
}

impl Program {
    /// Whether an argv that contains the program's name is searched for secrets.
    fn has_secrets(&self) -> bool {
        !self.options.is_empty() || !self.positionals.is_empty() || !self.reads.is_empty() || self.has_headers
    }
}

/// The form `config set NAME X`, which many programs have.
pub(super) static SET_COMMAND: LazyLock<Positional> = LazyLock::new(|| Positional {
    verbs: vec![vec!["set", "config:set", "env:set"]],
    flag: None,
    slots: vec![Template::Named, Template::Whole],
    repeats: false,
    is_last: false,
});

static TABLE: LazyLock<HashMap<&'static [u8], Program>> = LazyLock::new(|| parse(TEXT));

/// Returns the program with this name. A directory, a suffix such as `.exe`, and a version (`python3.11`, `psql-15`) are ignored.
pub(super) fn find(name: &[u8]) -> Option<&'static Program> {
    let name = name.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    let name = name.strip_prefix(b"-").unwrap_or(name);
    if let Some(program) = TABLE.get(name) {
        return Some(program);
    }
    const SUFFIXES: [&[u8]; 12] =
        [b".exe", b".cmd", b".bat", b".sh", b".py", b".js", b".mjs", b".rb", b".pl", b".php", b".jar", b".bin"];
    let stem = SUFFIXES.iter().find_map(|suffix| name.strip_suffix(*suffix)).unwrap_or(name);
    let letters = stem.iter().rposition(|byte| !byte.is_ascii_digit() && !b".-_".contains(byte))?;
    TABLE.get(stem).or_else(|| TABLE.get(&stem[..=letters]))
}

/// Returns the names of the programs for which an argv is searched for secrets.
pub(super) fn programs_with_secrets() -> Vec<&'static str> {
    let named = TABLE.iter().filter(|(_, program)| program.has_secrets());
    let mut names: Vec<&str> = named.filter_map(|(name, _)| std::str::from_utf8(name).ok()).collect();
    names.sort_unstable();
    names
}

fn parse(text: &'static str) -> HashMap<&'static [u8], Program> {
    let mut table: HashMap<&'static [u8], Program> = HashMap::new();
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
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
    /// Adds an item of a line.
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
                Some(at) if words[at] == "reads" => self.reads.push(SecretInput {
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
        self.carries.push(CarriedCommand {
            verbs: verbs(before),
            skipped: skipped.unwrap_or(0),
            separators: if skipped.is_some() { Vec::new() } else { after.to_vec() },
        });
    }

    fn add_secret(&mut self, words: &[&'static str]) {
        let first = words.iter().position(|word| {
            let is_slot = template(word.trim_end_matches("...")).is_some() || *word == "...";
            is_flag(word) || is_slot
        });
        let (before, rest) = words.split_at(first.unwrap_or(words.len()));
        let verbs = verbs(before);
        match rest {
            [flag, "...", slots @ ..] if is_flag(flag) => self.add_positional(verbs, Some(flag), slots, true),
            [attached] if is_flag(attached) => {
                // The item is `-pX`: the value is in the same argument.
                let flag = attached.strip_suffix('X').unwrap_or(attached);
                self.options.push(SecretOption { verbs, flag, values: Vec::new(), attached: Template::Whole });
            }
            [flag, values @ ..] if is_flag(flag) => {
                let values: Vec<Template> = values.iter().filter_map(|value| template(value)).collect();
                let attached = values.first().copied().unwrap_or(Template::Whole);
                self.options.push(SecretOption { verbs, flag, values, attached });
            }
            slots => self.add_positional(verbs, None, slots, false),
        }
    }

    fn add_positional(&mut self, verbs: Vec<Verb>, flag: Option<&'static str>, slots: &[&'static str], is_last: bool) {
        let repeats = slots.last().is_some_and(|slot| slot.ends_with("..."));
        let slots = slots.iter().filter_map(|slot| template(slot.trim_end_matches("...")));
        self.positionals.push(Positional { verbs, flag, slots: slots.collect(), repeats, is_last });
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
            [.., b':', b'X'] if !is_flag(word) => Template::AfterPrefix(&word[..word.len() - 1]),
            _ => return None,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_item_of_the_table_has_a_secret() {
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
    fn programs_are_found_with_directory_suffix_and_version() {
        for name in ["mysql", "/usr/bin/mysql", "mysql.exe", "mysql-8.0", "-mysql"] {
            assert!(find(name.as_bytes()).is_some(), "{name}");
        }
        assert!(find(b"mysqlx-something-else").is_none() && find(b"").is_none() && find(b"-").is_none());
    }
}
