//! Finds the secrets in the arguments of one command: by the table of programs, by secret names, and within each argument. If the command runs
//! another command (`sudo`, `docker exec`, `env`), that one is searched as well.

use std::collections::VecDeque;

use super::names::{self, SecretType};
use super::options::{self, OptionMatch, is_given, is_verb, occur_in_order};
use super::secret_ranges::SecretRanges;
use super::table::{self, Positional, Program, Template};
use super::template::secret_range;
use super::values::secret_part;
use super::word::Word;
use super::{assignments, shapes, text, urls};

/// The role of an argument, which the arguments before it determine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// The table of programs has this template for the argument.
    Template(Template),
    /// The value of an option with a secret name.
    Named(SecretType),
    /// An HTTP header.
    Header,
    /// The value of an option without secrets.
    Other,
    /// Prose.
    Prose,
    /// A script for a shell or another interpreter: `sh -c TEXT`.
    Script,
}

/// Finds the secrets of a command. Returns which part of its standard input is secret, if it reads a secret.
pub(super) fn find(words: &[Word<'_>], depth: u8, ranges: &mut SecretRanges) -> Option<Template> {
    let count = words.iter().take_while(|word| is_assignment(&word.text)).count();
    find_after_assignments(words, count, depth, ranges)
}

/// Finds the secrets of a command that another one runs. If it consists of a single word, that word may be a script: `ssh host 'PASS=X make'`.
fn find_carried(words: &[Word<'_>], depth: u8, ranges: &mut SecretRanges) -> Option<Template> {
    match words {
        [_] => find_after_assignments(words, 0, depth, ranges),
        _ => find(words, depth, ranges),
    }
}

/// Finds the secrets of a command whose first `count` words are assignments.
fn find_after_assignments(words: &[Word<'_>], count: usize, depth: u8, ranges: &mut SecretRanges) -> Option<Template> {
    for word in &words[..count] {
        inspect(word, None, None, depth, ranges);
    }
    let (name, _) = words[count..].split_first()?;
    inspect(name, None, Some(Role::Script), depth, ranges);
    let walk = Walk {
        words: &words[count..],
        program: table::find(program_name(&name.text)),
        depth,
        ranges,
        next_roles: VecDeque::new(),
        positionals: Vec::new(),
        given: Vec::new(),
        options_ended: false,
    };
    walk.run()
}

/// Returns the name of a program, or of its container image: `curlimages/curl:8.1`.
fn program_name(text: &[u8]) -> &[u8] {
    let base = text.iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash + 1);
    let end = text[base..].iter().position(|byte| matches!(byte, b':' | b'@'));
    &text[..end.map_or(text.len(), |end| base + end)]
}

fn is_assignment(text: &[u8]) -> bool {
    let name = text.split(|byte| *byte == b'=').next().unwrap_or_default();
    name.len() < text.len()
        && name.first().is_some_and(|first| !first.is_ascii_digit())
        && name.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'+' | b'[' | b']'))
}

/// A walk through the arguments of a command, from left to right.
struct Walk<'w, 's> {
    words: &'w [Word<'w>],
    program: Option<&'static Program>,
    depth: u8,
    ranges: &'s mut SecretRanges,
    /// The roles of the next arguments.
    next_roles: VecDeque<Role>,
    /// The indexes of the arguments that are not options.
    positionals: Vec<usize>,
    /// The options so far, without their values.
    given: Vec<&'w [u8]>,
    /// Whether `--` has ended the options.
    options_ended: bool,
}

impl<'w> Walk<'w, '_> {
    fn run(mut self) -> Option<Template> {
        for at in 1..self.words.len() {
            if let Some(start) = self.step(at) {
                self.find_positionals();
                let within = find_carried(&self.words[start..], self.depth, self.ranges);
                return within.or_else(|| self.input_template());
            }
        }
        self.find_positionals();
        self.input_template()
    }

    /// Handles one argument. If the command that this one runs begins with this or the next argument, returns the index of that argument.
    fn step(&mut self, at: usize) -> Option<usize> {
        let words = self.words;
        let argument = &*words[at].text;
        if argument.starts_with(b"+") && self.given.last().is_some_and(|option| option.starts_with(b"+")) {
            // In `+login anonymous +quit`, each `+` starts a new command.
            self.next_roles.clear();
        }
        if let Some(role) = self.next_roles.pop_front()
            && self.apply_role(at, role)
        {
            return None;
        }
        if self.begins_command(argument) {
            return Some(at + 1).filter(|next| *next < words.len());
        }
        if argument == b"--" {
            self.options_ended = true;
        } else if argument == b"-" {
            self.given.push(argument);
        } else if self.is_option(argument) {
            self.handle_option(at);
        } else {
            return self.handle_positional(at);
        }
        None
    }

    /// Handles an argument according to its role. Returns false if the argument is an option instead.
    fn apply_role(&mut self, at: usize, role: Role) -> bool {
        let word = &self.words[at];
        match role {
            Role::Template(template) => {
                let secret = secret_range(template, &word.text);
                if let Some(part) = &secret {
                    self.ranges.add(word.outer(part.clone()));
                }
                if secret != Some(0..word.text.len()) {
                    inspect(word, self.program, Some(role), self.depth, self.ranges);
                }
            }
            Role::Named(secret_type) => {
                if word.text.starts_with(b"-") {
                    return false;
                }
                match secret_part(secret_type, &word.text) {
                    Some(part) => self.ranges.add(word.outer(part)),
                    None => inspect(word, self.program, Some(role), self.depth, self.ranges),
                }
            }
            Role::Header | Role::Other | Role::Prose | Role::Script => {
                inspect(word, self.program, Some(role), self.depth, self.ranges);
            }
        }
        true
    }

    fn is_option(&self, argument: &[u8]) -> bool {
        if self.options_ended || argument.len() < 2 {
            return false;
        }
        match argument[0] {
            b'-' => true,
            b'/' | b'+' => self.program.is_some_and(|program| {
                program.options.iter().any(|option| argument.starts_with(option.flag.as_bytes()))
                    || program.valued.iter().any(|flag| argument.starts_with(flag.as_bytes()))
            }),
            _ => false,
        }
    }

    /// Returns the arguments so far that are not options.
    fn verbs(&self) -> Vec<&'w [u8]> {
        self.positionals.iter().map(|at| &*self.words[*at].text).collect()
    }

    fn handle_option(&mut self, at: usize) {
        let word = &self.words[at];
        let argument: &'w [u8] = &word.text;
        self.given.push(argument);
        let known = self.program.filter(|program| !program.options.is_empty());
        match known.and_then(|program| options::find(program, argument, &self.verbs())) {
            Some(OptionMatch::Next(templates)) => {
                self.next_roles.extend(templates.iter().map(|one| Role::Template(*one)));
            }
            Some(OptionMatch::Rest(start, template)) => {
                let part = secret_range(template, &argument[start..]);
                part.into_iter().for_each(|part| self.ranges.add(word.outer(start + part.start..start + part.end)));
                let mut within = SecretRanges::default();
                find_parts(&argument[start..], &mut within);
                within.iter().for_each(|part| self.ranges.add(word.outer(start + part.start..start + part.end)));
            }
            None => {
                let password = self.is_login(at).then_some(Role::Template(Template::Whole));
                self.next_roles.extend(password.or_else(|| self.role_of_next(argument)));
                inspect(word, self.program, None, self.depth, self.ranges);
            }
        }
    }

    /// Whether the value of this option of an unknown program is a password, because another option names a user: `-u me -p X`. Ports, paths and
    /// mappings are not passwords.
    fn is_login(&self, at: usize) -> bool {
        const USERS: [&[u8]; 7] = [b"-u", b"-U", b"--user", b"--username", b"-user", b"-username", b"--login"];
        // The option with two words before it and two words after it.
        let nearby = [at.wrapping_sub(2), at.wrapping_sub(1), at, at + 1, at + 2];
        let [flag_before, user, flag, value, flag_after] =
            nearby.map(|at| self.words.get(at).map_or(&[][..], |word| &word.text));
        let is_flag = matches!(flag, b"-p" | b"-P");
        // Values such as levels and queues are words, and a port is a number.
        let is_uniform = value.iter().all(u8::is_ascii_digit) || value.iter().all(u8::is_ascii_alphabetic);
        let is_other = is_uniform || value.starts_with(b"-") || value.iter().any(|byte| b":/,=".contains(byte));
        let is_named = USERS.contains(&flag_before) && !user.starts_with(b"-") || USERS.contains(&flag_after);
        self.program.is_none() && is_flag && !is_other && is_named
    }

    /// Returns the role of the argument after an option.
    fn role_of_next(&self, argument: &[u8]) -> Option<Role> {
        if let Some(program) = self.program {
            let mut flags_of_positionals = program.positionals.iter().filter_map(|item| item.flag);
            if flags_of_positionals.any(|flag| flag.as_bytes() == argument) || is_one_of(argument, &program.bare) {
                return None;
            }
            if is_one_of(argument, &program.prose) {
                return Some(Role::Prose);
            }
            if is_one_of(argument, &program.valued) {
                return Some(if argument == b"-c" { Role::Script } else { Role::Other });
            }
        }
        match argument {
            b"-H" | b"--header" | b"--headers" | b"-header" | b"--extra-header" | b"--add-header"
            | b"--http-header" => Some(Role::Header),
            [b'-', letters @ .., b'c'] if letters.len() < 5 && letters.iter().all(u8::is_ascii_lowercase) => {
                Some(Role::Script)
            }
            _ => {
                let named = (argument.len() > 2
                    && argument.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(byte)))
                .then(|| names::judge_flag(argument))
                .flatten();
                let takes_next = self.program.is_some_and(|program| options::takes_next(program, argument));
                named.map(Role::Named).or(takes_next.then_some(Role::Other))
            }
        }
    }

    /// Handles an argument that is not an option. Returns its index if it begins the command that this one runs.
    fn handle_positional(&mut self, at: usize) -> Option<usize> {
        let words = self.words;
        let word = &words[at];
        let runs_command = self.program.is_some_and(|program| !program.carries.is_empty());
        let is_text = at + 1 == words.len() && word.text.iter().any(u8::is_ascii_whitespace);
        if runs_command && is_assignment(&word.text) && !is_text {
            // The assignment is for the environment of the command that this one runs.
            inspect(word, self.program, None, self.depth, self.ranges);
            return None;
        }
        self.positionals.push(at);
        if self.is_carried(&word.text) {
            return Some(at);
        }
        inspect(word, self.program, None, self.depth, self.ranges);
        None
    }

    /// Whether the command that this one runs begins after this argument: `find -exec`, `kubectl exec pod --`.
    fn begins_command(&self, argument: &[u8]) -> bool {
        let Some(program) = self.program.filter(|program| !program.carries.is_empty()) else {
            return false;
        };
        let verbs = self.verbs();
        let matching = program.carries.iter().filter(|carries| occur_in_order(&carries.verbs, &verbs));
        matching.flat_map(|carries| &carries.separators).any(|word| word.as_bytes() == argument)
    }

    /// Whether the command that this one runs begins with this argument, the last positional one so far.
    fn is_carried(&self, argument: &[u8]) -> bool {
        let Some(program) = self.program else {
            // If an argument of an unknown program is the name of a known program, the unknown program probably runs it.
            return table::find(argument).is_some_and(|named| !named.is_plain && !named.is_word);
        };
        if program.carries.is_empty() {
            return false;
        }
        let verbs = self.verbs();
        let by_position = program.carries.iter().filter(|carries| carries.separators.is_empty());
        by_position.into_iter().any(|carries| {
            let end = verbs.len().checked_sub(carries.skipped + 1);
            end.is_some_and(|end| match carries.verbs.len() {
                0 => end == 0,
                _ => ends_with_verbs(&carries.verbs, &verbs[..end]),
            })
        })
    }

    /// Finds secrets by position, once all arguments are known.
    fn find_positionals(&mut self) {
        let known = self.program.map_or(&[][..], |program| &program.positionals);
        let is_plain = self.program.is_some_and(|program| program.is_plain);
        let sets_value = !is_plain && self.positionals.iter().any(|at| self.words[*at].text.ends_with(b"set"));
        let set_command = sets_value.then(|| &*table::SET_COMMAND);
        for item in known.iter().chain(set_command) {
            if item.flag.is_none_or(|flag| is_given(flag, &self.given)) {
                self.find_positional(item);
            }
        }
    }

    fn find_positional(&mut self, item: &Positional) {
        let verbs = self.verbs();
        if item.is_last {
            let start = verbs.len().saturating_sub(item.slots.len());
            self.apply_slots(item, start);
            return;
        }
        let length = item.verbs.len();
        let starts: Vec<usize> = match length {
            0 => vec![0],
            _ => (length..=verbs.len()).filter(|end| ends_with_verbs(&item.verbs, &verbs[..*end])).collect(),
        };
        starts.into_iter().for_each(|start| self.apply_slots(item, start));
    }

    /// Applies the slots of an item to the positional arguments from `start` on.
    fn apply_slots(&mut self, item: &Positional, start: usize) {
        let mut secret_type = None;
        for (at, index) in self.positionals.iter().skip(start).enumerate() {
            let slot = item.slots.get(at).or_else(|| item.slots.last().filter(|_| item.repeats));
            let word = &self.words[*index];
            let part = match (slot, secret_type) {
                (None, _) => return,
                (Some(Template::Named), _) => {
                    secret_type = names::judge(&word.text).filter(|_| !word.text.contains(&b'='));
                    if secret_type.is_none() {
                        return;
                    }
                    None
                }
                (Some(Template::Whole), Some(secret_type)) => secret_part(secret_type, &word.text),
                (Some(template), _) => secret_range(*template, &word.text),
            };
            if let Some(part) = part {
                self.ranges.add(word.outer(part));
            }
        }
    }

    /// Returns which part of the program's standard input is secret, if it reads a secret.
    fn input_template(&self) -> Option<Template> {
        let verbs = self.verbs();
        self.program?
            .reads
            .iter()
            .find(|reads| {
                occur_in_order(&reads.verbs, &verbs) && reads.flag.is_none_or(|flag| is_given(flag, &self.given))
            })
            .map(|reads| reads.template)
    }
}

fn ends_with_verbs(wanted: &[Vec<&'static str>], verbs: &[&[u8]]) -> bool {
    let start = verbs.len().checked_sub(wanted.len());
    start.is_some_and(|start| wanted.iter().zip(&verbs[start..]).all(|(verb, word)| is_verb(verb, word)))
}

/// Finds secrets within one argument.
fn inspect(
    word: &Word<'_>,
    program: Option<&'static Program>,
    role: Option<Role>,
    depth: u8,
    ranges: &mut SecretRanges,
) {
    // The value of an option that the table lists as not secret may still contain a secret.
    let start = program.map_or(0, |program| options::value_start(program, &word.text));
    let text = &word.text[start..];
    let has_spaces = text.iter().any(u8::is_ascii_whitespace);
    let mut found = SecretRanges::default();
    let is_text = matches!(role, Some(Role::Script | Role::Prose)) && has_spaces;
    let has_properties = program.is_some_and(|program| program.has_properties);
    let is_whole = !is_text && assignments::find_whole(text, has_properties, &mut found);
    let may_be_header = role == Some(Role::Header) || program.is_some_and(|program| program.has_headers);
    let header = if may_be_header { Some(0) } else { attached_header(text) };
    if let Some(header) = header {
        let mut within = SecretRanges::default();
        assignments::find_in_header(&text[header..], &mut within);
        found.add_relative(&within, header);
    }
    if !is_whole {
        // An unquoted word of a script was already searched together with the whole script.
        if depth == 0 || word.is_quoted() {
            find_parts(text, &mut found);
        }
        if word.is_quoted() {
            shapes::find(text, false, &mut found);
        }
        if has_spaces && role != Some(Role::Prose) {
            found.add_relative(&text::find(text, depth + 1), 0);
        }
    }
    found.iter().for_each(|part| ranges.add(word.outer(start + part.start..start + part.end)));
}

fn is_one_of(argument: &[u8], flags: &[&str]) -> bool {
    flags.iter().any(|flag| flag.as_bytes() == argument)
}

/// Returns the offset of the header in `-HX-Api-Key: X` and `--header=X-Api-Key: X`.
fn attached_header(argument: &[u8]) -> Option<usize> {
    const OPTIONS: [&[u8]; 4] = [b"-H", b"--header=", b"--headers=", b"-header="];
    OPTIONS
        .iter()
        .find(|option| argument.starts_with(option) && argument.len() > option.len())
        .map(|option| option.len())
}

/// Finds the secrets in URLs and assignments within a text.
fn find_parts(text: &[u8], ranges: &mut SecretRanges) {
    urls::find(text, ranges);
    assignments::find(text, ranges);
}
