//! Parses `programs.txt`, which lists the positions of secrets on the command lines of known
//! programs.

use std::collections::HashMap;
use std::sync::LazyLock;

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
}

/// Alternatives for one word.
pub(super) type Verb = Vec<&'static str>;

/// Where a secret is: in the value of an option, or in an argument at a certain position.
#[derive(Debug, Default)]
pub(super) struct Rule {
    /// The words that must occur before the option, or directly before the position.
    pub(super) verbs: Vec<Verb>,
    /// The option, or the option that must have been given for `is_last`.
    pub(super) flag: Option<&'static str>,
    /// The templates of the values. If empty, the value is in the same argument as the option.
    pub(super) slots: Vec<Template>,
    /// Whether the last template applies to all following arguments.
    pub(super) repeats: bool,
    /// Whether the slots are for the last arguments of the command.
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

#[derive(Debug, Default)]
pub(super) struct Program {
    pub(super) rules: Vec<Rule>,
    pub(super) carries: Vec<CarriedCommand>,
    pub(super) reads: Vec<SecretInput>,
    /// Options whose value is the next argument and not secret, unless it looks like a key.
    pub(super) valued: Vec<&'static str>,
    /// The same for short options: their letters.
    pub(super) letters: String,
    /// Options without a value, regardless of their names.
    pub(super) bare: Vec<&'static str>,
    /// Options whose values are prose.
    pub(super) prose: Vec<&'static str>,
    /// Whether long options have one dash, so that no option is a cluster of letters.
    pub(super) is_exact: bool,
    /// Whether arguments of the form `name:value` are HTTP headers.
    pub(super) has_headers: bool,
    /// Whether `-D` sets properties instead of C macros.
    pub(super) has_properties: bool,
    /// Whether the arguments are never a command and no names of secrets, although they may look
    /// like it: they are files and patterns.
    pub(super) is_plain: bool,
    /// Whether the program's name is also an ordinary word.
    pub(super) is_word: bool,
}

static TABLE: LazyLock<HashMap<&'static [u8], Program>> = LazyLock::new(|| parse(TEXT));

/// Returns the program with this name. A directory, a suffix such as `.exe`, and a version
/// (`python3.11`, `psql-15`) are ignored.
pub(super) fn find(name: &[u8]) -> Option<&'static Program> {
    const MAX_NAME_BYTES: usize = 64;
    const SUFFIXES: &str = ".exe .cmd .bat .sh .py .js .mjs .rb .pl .php .jar .bin";
    let name = name.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    let name = name.strip_prefix(b"-").unwrap_or(name);
    if name.len() > MAX_NAME_BYTES {
        return None;
    }
    let mut suffixes = SUFFIXES.split(' ');
    let stem = suffixes.find_map(|suffix| name.strip_suffix(suffix.as_bytes())).unwrap_or(name);
    let letters = stem.iter().rposition(|byte| !byte.is_ascii_digit() && !b".-_".contains(byte))?;
    [name, stem, &stem[..=letters]].into_iter().find_map(|name| TABLE.get(name)).or_else(|| {
        let family = |length: usize| TABLE.get(&[&name[..length], b"*"].concat()[..]);
        (2..=name.len()).rev().find_map(family)
    })
}

/// Returns the names of the programs for which an argv is searched for secrets.
pub(super) fn programs_with_secrets() -> Vec<&'static str> {
    let has_secrets = |program: &Program| !program.rules.is_empty() || !program.reads.is_empty() || program.has_headers;
    let named = TABLE.iter().filter(|(_, program)| has_secrets(program));
    let mut names: Vec<&str> = named.filter_map(|(name, _)| std::str::from_utf8(name).ok()).collect();
    names.sort_unstable();
    names
}

fn parse(text: &'static str) -> HashMap<&'static [u8], Program> {
    let mut table: HashMap<&'static [u8], Program> = HashMap::new();
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let lines: Vec<(&str, &str)> = lines.filter_map(|line| line.rsplit_once(": ")).collect();
    let names = |(_, names): &(&'static str, &'static str)| names.split_ascii_whitespace();
    let families: Vec<(&str, &str)> =
        lines.iter().flat_map(|line| names(line).filter_map(|name| Some((name.strip_suffix('*')?, line.0)))).collect();
    for (items, name) in lines.iter().flat_map(|line| names(line).map(|name| (line.0, name))) {
        let program = table.entry(name.as_bytes()).or_insert_with(|| {
            let mut program = Program::default();
            let own = families.iter().filter(|(start, _)| !name.ends_with('*') && name.starts_with(start));
            own.flat_map(|(_, items)| items.split(" | ")).for_each(|item| program.add(item));
            program
        });
        items.split(" | ").for_each(|item| program.add(item));
    }
    table
}

impl Program {
    /// Whether the next argument is the value of this option, and no secret unless it looks like
    /// one.
    pub(super) fn takes_other(&self, option: &[u8]) -> bool {
        matches!(option, [b'-', letter] if self.letters.as_bytes().contains(letter))
            || self.valued.iter().any(|flag| flag.as_bytes() == option)
    }

    fn add(&mut self, item: &'static str) {
        let words: Vec<&'static str> = item.split_ascii_whitespace().collect();
        let rest = &words[1..];
        match words[0] {
            "values" => self.valued.extend(rest),
            "letters" => self.letters.push_str(rest[0]),
            "prose" => self.prose.extend(rest),
            "bare" => self.bare.extend(rest),
            "word" => self.is_word = true,
            "exact" => self.is_exact = true,
            "headers" => self.has_headers = true,
            "properties" => self.has_properties = true,
            "plain" => self.is_plain = true,
            _ => match words.iter().position(|word| matches!(*word, "carries" | "reads")) {
                Some(at) if words[at] == "reads" => self.reads.push(SecretInput {
                    verbs: verbs(&words[..at]),
                    flag: words.get(at + 1).copied().filter(|word| is_flag(word)),
                    template: words.last().copied().and_then(template).unwrap_or(Template::Whole),
                }),
                Some(at) => self.add_carries(&words[..at], &words[at + 1..]),
                None => self.rules.push(rule(&words)),
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
}

fn rule(words: &[&'static str]) -> Rule {
    let is_slot = |word: &'static str| template(slot_name(word)).is_some();
    let first = words.iter().position(|word| is_flag(word) || is_slot(word)).unwrap_or(words.len());
    let (before, rest) = words.split_at(first);
    let (flag, slots) = match rest {
        [flag, slots @ ..] if is_flag(flag) => (Some(*flag), slots),
        slots => (None, slots),
    };
    let is_last = slots.first() == Some(&"...");
    let templates = slots.iter().filter_map(|slot| template(slot_name(slot))).collect();
    Rule {
        verbs: verbs(before),
        flag: if slots.is_empty() { flag.map(|flag| flag.strip_suffix('X').unwrap_or(flag)) } else { flag },
        slots: templates,
        repeats: slots.last().is_some_and(|slot| slot.ends_with("...") && *slot != "..."),
        is_last,
    }
}

fn slot_name(word: &'static str) -> &'static str {
    word.strip_suffix("...").unwrap_or(word)
}

fn verbs(words: &[&'static str]) -> Vec<Verb> {
    words.iter().map(|word| word.split(',').collect()).collect()
}

fn is_flag(word: &str) -> bool {
    word.len() > 1 && word.starts_with(['-', '/', '+'])
}

fn template(word: &'static str) -> Option<Template> {
    Some(match word {
        "_" => Template::Nothing,
        "X" => Template::Whole,
        "?X" => Template::Likely,
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
