//! Finds the secrets in the arguments of one command: by the table of programs, by secret names, and within each argument. A command that
//! another one runs (`sudo`, `docker exec`, `env`) is searched as well.

use std::collections::VecDeque;

use super::names::{self, Name};
use super::options::{self, Matched, have_come, is_given, is_verb};
use super::spots::Spots;
use super::table::{self, Positional, Program, Template};
use super::template::secret_of;
use super::values::secret_part;
use super::word::Word;
use super::{assignments, shapes, text, urls};

/// The role of an argument, given by the arguments before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// The table describes it.
    Template(Template),
    /// The value of an option with a secret name.
    Named(Name),
    /// An HTTP header.
    Header,
    /// The value of an option without secrets.
    Other,
    /// Prose.
    Prose,
    /// A script for a shell or another interpreter: `sh -c TEXT`.
    Script,
}

/// Finds the secrets of a command. Returns which part of its input is secret, if it reads a secret.
pub(super) fn find(words: &[Word<'_>], depth: u8, spots: &mut Spots) -> Option<Template> {
    let is_assignment = |word: &&Word| is_assignment(&word.text);
    let count = words.iter().take_while(is_assignment).count();
    find_behind(words, count, depth, spots)
}

/// Finds the secrets of a command that another one runs. A single argument is a script: `ssh host 'PASS=X make'`.
fn find_carried(words: &[Word<'_>], depth: u8, spots: &mut Spots) -> Option<Template> {
    match words {
        [_] => find_behind(words, 0, depth, spots),
        _ => find(words, depth, spots),
    }
}

/// Finds the secrets of a command after some assignments.
fn find_behind(words: &[Word<'_>], count: usize, depth: u8, spots: &mut Spots) -> Option<Template> {
    for word in &words[..count] {
        inspect(word, None, None, depth, spots);
    }
    let (name, _) = words[count..].split_first()?;
    inspect(name, None, Some(Role::Script), depth, spots);
    let walk = Walk {
        words: &words[count..],
        program: table::find(name_of(&name.text)),
        depth,
        spots,
        awaited: VecDeque::new(),
        positionals: Vec::new(),
        given: Vec::new(),
        has_ended: false,
    };
    walk.go()
}

/// Returns the name of a program, or of its container image: `curlimages/curl:8.1`.
fn name_of(text: &[u8]) -> &[u8] {
    let base = text.iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash + 1);
    let end = text[base..].iter().position(|byte| matches!(byte, b':' | b'@'));
    &text[..end.map_or(text.len(), |end| base + end)]
}

fn is_assignment(text: &[u8]) -> bool {
    let name = text.split(|byte| *byte == b'=').next().unwrap_or_default();
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'+' | b'[' | b']');
    name.len() < text.len() && name.first().is_some_and(|first| !first.is_ascii_digit()) && name.iter().all(is_name)
}

struct Walk<'w, 's> {
    words: &'w [Word<'w>],
    program: Option<&'static Program>,
    depth: u8,
    spots: &'s mut Spots,
    /// The roles of the next arguments.
    awaited: VecDeque<Role>,
    /// Positions of the arguments that are not options.
    positionals: Vec<usize>,
    /// The options so far.
    given: Vec<&'w [u8]>,
    /// Whether `--` occurred.
    has_ended: bool,
}

impl<'w> Walk<'w, '_> {
    fn go(mut self) -> Option<Template> {
        for at in 1..self.words.len() {
            if let Some(start) = self.step(at) {
                self.find_positionals();
                let within = find_carried(&self.words[start..], self.depth, self.spots);
                return within.or_else(|| self.reads());
            }
        }
        self.find_positionals();
        self.reads()
    }

    /// Handles one argument. Returns where the command that this one runs begins, if it begins here or next.
    fn step(&mut self, at: usize) -> Option<usize> {
        let words = self.words;
        let argument = &*words[at].text;
        if argument.starts_with(b"+") && self.given.last().is_some_and(|option| option.starts_with(b"+")) {
            // `+login anonymous +quit`: each `+` starts a command of its own.
            self.awaited.clear();
        }
        if let Some(role) = self.awaited.pop_front()
            && self.take(at, role)
        {
            return None;
        }
        if self.begins_command(argument) {
            return Some(at + 1).filter(|next| *next < words.len());
        }
        if argument == b"--" {
            self.has_ended = true;
        } else if argument == b"-" {
            self.given.push(argument);
        } else if self.is_option(argument) {
            self.option(at);
        } else {
            return self.positional(at);
        }
        None
    }

    /// Handles an argument in its role. Returns false if it turns out to be an option.
    fn take(&mut self, at: usize, role: Role) -> bool {
        let word = &self.words[at];
        match role {
            Role::Template(template) => {
                let secret = secret_of(template, &word.text);
                if let Some(part) = &secret {
                    self.spots.add(word.outer(part.clone()));
                }
                if secret != Some(0..word.text.len()) {
                    inspect(word, self.program, Some(role), self.depth, self.spots);
                }
            }
            Role::Named(name) => {
                if word.text.starts_with(b"-") {
                    return false;
                }
                match secret_part(name, &word.text) {
                    Some(part) => self.spots.add(word.outer(part)),
                    None => inspect(word, self.program, Some(role), self.depth, self.spots),
                }
            }
            Role::Header | Role::Other | Role::Prose | Role::Script => {
                inspect(word, self.program, Some(role), self.depth, self.spots);
            }
        }
        true
    }

    fn is_option(&self, argument: &[u8]) -> bool {
        let begins_so = |option: &table::SecretOption| argument.starts_with(option.flag.as_bytes());
        let is_known = |known: &Program| {
            known.options.iter().any(begins_so) || known.valued.iter().any(|flag| argument.starts_with(flag.as_bytes()))
        };
        let is_other = || matches!(argument[0], b'/' | b'+') && self.program.is_some_and(is_known);
        !self.has_ended && argument.len() > 1 && (argument[0] == b'-' || is_other())
    }

    fn verbs(&self) -> Vec<&'w [u8]> {
        self.positionals.iter().map(|at| &*self.words[*at].text).collect()
    }

    fn option(&mut self, at: usize) {
        let word = &self.words[at];
        let argument: &'w [u8] = &word.text;
        self.given.push(argument);
        let of_table = self.program.filter(|program| !program.options.is_empty());
        match of_table.and_then(|program| options::find(program, argument, &self.verbs())) {
            Some(Matched::Next(templates)) => self.awaited.extend(templates.iter().map(|one| Role::Template(*one))),
            Some(Matched::Rest(start, template)) => {
                let part = secret_of(template, &argument[start..]);
                part.into_iter()
                    .for_each(|part| self.spots.add(word.outer(start + part.start..start + part.end)));
                let mut own = Spots::default();
                find_parts(&argument[start..], &mut own);
                own.iter()
                    .for_each(|part| self.spots.add(word.outer(start + part.start..start + part.end)));
            }
            None => {
                let pair = self.is_login(at).then_some(Role::Template(Template::Whole));
                self.awaited.extend(pair.or_else(|| self.role_of_next(argument)));
                inspect(word, self.program, None, self.depth, self.spots);
            }
        }
    }

    /// Whether an unknown program gets a user and a password: `-u me -p X`. Ports, paths and mappings do not count.
    fn is_login(&self, at: usize) -> bool {
        const USERS: [&[u8]; 7] = [
            b"-u",
            b"-U",
            b"--user",
            b"--username",
            b"-user",
            b"-username",
            b"--login",
        ];
        let word = |at: Option<usize>| at.and_then(|at| self.words.get(at)).map(|word| &*word.text);
        let is_user = |at: Option<usize>| word(at).is_some_and(|flag| USERS.contains(&flag));
        let is_flag = matches!(word(Some(at)), Some(b"-p" | b"-P"));
        let value = word(Some(at + 1)).unwrap_or_default();
        // Levels, queues and the like are words; a port is a number.
        let is_word = value.iter().all(u8::is_ascii_digit) || value.iter().all(u8::is_ascii_alphabetic);
        let is_other = is_word || value.starts_with(b"-") || value.iter().any(|byte| b":/,=".contains(byte));
        let is_named =
            is_user(at.checked_sub(2)) && !word(at.checked_sub(1)).is_some_and(|user| user.starts_with(b"-"));
        self.program.is_none() && is_flag && !is_other && (is_named || is_user(Some(at + 2)))
    }

    /// Returns the role of the argument after this option.
    fn role_of_next(&self, argument: &[u8]) -> Option<Role> {
        let is_in = |flags: &[&str]| flags.iter().any(|flag| flag.as_bytes() == argument);
        if let Some(program) = self.program {
            let is_condition = program
                .positionals
                .iter()
                .filter_map(|item| item.flag)
                .any(|flag| is_in(&[flag]));
            if is_condition || is_in(&program.bare) {
                return None;
            }
            if is_in(&program.prose) {
                return Some(Role::Prose);
            }
            if is_in(&program.valued) {
                return Some(if argument == b"-c" { Role::Script } else { Role::Other });
            }
        }
        let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.".contains(byte);
        match argument {
            b"-H" | b"--header" | b"--headers" | b"-header" | b"--extra-header" | b"--add-header"
            | b"--http-header" => Some(Role::Header),
            [b'-', letters @ .., b'c'] if letters.len() < 5 && letters.iter().all(u8::is_ascii_lowercase) => {
                Some(Role::Script)
            }
            _ => {
                let named = (argument.len() > 2 && argument.iter().all(is_word))
                    .then(|| names::judge_flag(argument))
                    .flatten();
                let takes_next = || {
                    self.program
                        .is_some_and(|program| options::takes_next(program, argument))
                };
                named.map(Role::Named).or_else(|| takes_next().then_some(Role::Other))
            }
        }
    }

    fn positional(&mut self, at: usize) -> Option<usize> {
        let words = self.words;
        let word = &words[at];
        let runs_this = self.program.is_some_and(|program| !program.carries.is_empty());
        let is_text = at + 1 == words.len() && word.text.iter().any(u8::is_ascii_whitespace);
        if runs_this && is_assignment(&word.text) && !is_text {
            // Part of the environment of the command.
            inspect(word, self.program, None, self.depth, self.spots);
            return None;
        }
        self.positionals.push(at);
        if self.is_carried(&word.text) {
            return Some(at);
        }
        inspect(word, self.program, None, self.depth, self.spots);
        None
    }

    /// Whether the command begins after this argument: `find -exec`, `kubectl exec pod --`.
    fn begins_command(&self, argument: &[u8]) -> bool {
        let Some(program) = self.program.filter(|program| !program.carries.is_empty()) else {
            return false;
        };
        let verbs = self.verbs();
        let fitting = program
            .carries
            .iter()
            .filter(|carries| have_come(&carries.verbs, &verbs));
        fitting
            .flat_map(|carries| &carries.behind)
            .any(|word| word.as_bytes() == argument)
    }

    /// Whether the command begins with this argument, the last positional one so far.
    fn is_carried(&self, argument: &[u8]) -> bool {
        let Some(program) = self.program else {
            // What an unknown program does is unknown, but if it names a known program, it probably runs it.
            return table::find(argument).is_some_and(|named| !named.is_plain && !named.is_word);
        };
        if program.carries.is_empty() {
            return false;
        }
        let verbs = self.verbs();
        let in_place = program.carries.iter().filter(|carries| carries.behind.is_empty());
        in_place.into_iter().any(|carries| {
            let end = verbs.len().checked_sub(carries.skipped + 1);
            end.is_some_and(|end| match carries.verbs.len() {
                0 => end == 0,
                _ => ends_with_verbs(&carries.verbs, &verbs[..end]),
            })
        })
    }

    /// Finds secrets by position, once all arguments are known.
    fn find_positionals(&mut self) {
        let of_program = self.program.map_or(&[][..], |program| &program.positionals);
        let is_plain = self.program.is_some_and(|program| program.is_plain);
        let has_setting = || self.positionals.iter().any(|at| self.words[*at].text.ends_with(b"set"));
        let setting = (!is_plain && has_setting()).then(|| &*table::SETTING);
        for item in of_program.iter().chain(setting) {
            if item.flag.is_none_or(|flag| is_given(flag, &self.given)) {
                self.find_positional(item);
            }
        }
    }

    fn find_positional(&mut self, item: &Positional) {
        let verbs = self.verbs();
        if item.is_last {
            let start = verbs.len().saturating_sub(item.slots.len());
            self.fill(item, start);
            return;
        }
        let length = item.verbs.len();
        let starts: Vec<usize> = match length {
            0 => vec![0],
            _ => (length..=verbs.len())
                .filter(|end| ends_with_verbs(&item.verbs, &verbs[..*end]))
                .collect(),
        };
        starts.into_iter().for_each(|start| self.fill(item, start));
    }

    /// Applies the slots of an item from one positional argument on.
    fn fill(&mut self, item: &Positional, start: usize) {
        let mut name = None;
        for (at, index) in self.positionals.iter().skip(start).enumerate() {
            let slot = item
                .slots
                .get(at)
                .or_else(|| item.slots.last().filter(|_| item.repeats));
            let word = &self.words[*index];
            let part = match (slot, name) {
                (None, _) => return,
                (Some(Template::Named), _) => {
                    name = names::judge(&word.text).filter(|_| !word.text.contains(&b'='));
                    if name.is_none() {
                        return;
                    }
                    None
                }
                (Some(Template::Whole), Some(name)) => secret_part(name, &word.text),
                (Some(template), _) => secret_of(*template, &word.text),
            };
            if let Some(part) = part {
                self.spots.add(word.outer(part));
            }
        }
    }

    /// Returns which part of the program's input is secret, if it reads a secret.
    fn reads(&self) -> Option<Template> {
        let verbs = self.verbs();
        let fits = |reads: &&table::Reads| {
            have_come(&reads.verbs, &verbs) && reads.flag.is_none_or(|flag| is_given(flag, &self.given))
        };
        self.program?.reads.iter().find(fits).map(|reads| reads.template)
    }
}

fn ends_with_verbs(wanted: &[Vec<&'static str>], verbs: &[&[u8]]) -> bool {
    let start = verbs.len().checked_sub(wanted.len());
    start.is_some_and(|start| {
        wanted
            .iter()
            .zip(&verbs[start..])
            .all(|(verb, word)| is_verb(verb, word))
    })
}

/// Finds secrets within one argument.
fn inspect(word: &Word<'_>, program: Option<&'static Program>, role: Option<Role>, depth: u8, spots: &mut Spots) {
    // The value of an option in the table is not a secret itself, but may contain one.
    let start = program.map_or(0, |program| options::value_start(program, &word.text));
    let text = &word.text[start..];
    let has_spaces = text.iter().any(u8::is_ascii_whitespace);
    let mut own = Spots::default();
    let is_text = matches!(role, Some(Role::Script | Role::Prose)) && has_spaces;
    let has_properties = program.is_some_and(|program| program.has_properties);
    let is_whole = !is_text && assignments::find_whole(text, has_properties, &mut own);
    let may_be_header = role == Some(Role::Header) || program.is_some_and(|program| program.has_headers);
    let header = if may_be_header { Some(0) } else { attached_header(text) };
    if let Some(header) = header {
        let mut within = Spots::default();
        assignments::find_in_header(&text[header..], &mut within);
        own.add_shifted(&within, header);
    }
    if !is_whole {
        // Unquoted text was searched together with the text around it.
        if depth == 0 || word.is_quoted() {
            find_parts(text, &mut own);
        }
        if word.is_quoted() {
            shapes::find(text, false, &mut own);
        }
        if has_spaces && role != Some(Role::Prose) {
            own.add_shifted(&text::find(text, depth + 1), 0);
        }
    }
    own.iter()
        .for_each(|part| spots.add(word.outer(start + part.start..start + part.end)));
}

/// Returns where the header begins in `-HX-Api-Key: X` and `--header=X-Api-Key: X`.
fn attached_header(argument: &[u8]) -> Option<usize> {
    const OPTIONS: [&[u8]; 4] = [b"-H", b"--header=", b"--headers=", b"-header="];
    OPTIONS
        .iter()
        .find(|option| argument.starts_with(option) && argument.len() > option.len())
        .map(|option| option.len())
}

/// Finds secrets in addresses and assignments.
fn find_parts(text: &[u8], spots: &mut Spots) {
    urls::find(text, spots);
    assignments::find(text, spots);
}
