//! Finds the secrets in the arguments of one command: by the table of programs, by secret names, by
//! general forms of logins, and within each argument. If the command runs another command (`sudo`,
//! `docker exec`, `env`), that one is searched as well.

use std::collections::VecDeque;
use std::ops::Range;

use super::inside::{self, Kind};
use super::names::{self, Evidence, List, is_among};
use super::options::{OptionMatch, ends_with_verbs, is_flag_among, is_given, match_option, occur_in_order, takes_next};
use super::table::{self, Program, Rule, Template};
use super::text;
use super::urls::add_pair;
use super::values::{self, is_reference, is_word_like};
use super::words::{Found, Word};

static USERS: List = List::named("user options");
/// What the name of an option contains whose value may be `user:X`.
const USER_OPTIONS: [&str; 7] = ["user", "login", "auth", "cred", "basic", "digest", "ntlm"];
/// What the name of an option contains that is about a secret, even if the option's value is none.
const SECRET_PARTS: [&str; 5] = ["pass", "token", "secret", "key", "pwd"];
static PASSWORDS: List = List::named("password options");
static LOGIN_SECRETS: List = List::named("login options");
static LOGINS: List = List::named("logins");
static SETTERS: List = List::named("setters");
/// What the name of an option contains whose next two arguments are a name and its value: `--arg`,
/// `--stringparam`.
const PAIR_OPTIONS: [&str; 10] = ["arg", "param", "var", "set", "define", "env", "prop", "field", "config", "option"];

/// The role of an argument, which the arguments before it determine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// The table of programs has this template for the argument.
    Template(Template),
    Named(Evidence),
    Header,
    /// The value of an option without secrets.
    Other,
    Prose,
    /// A script for a shell or another interpreter: `sh -c TEXT`.
    Script,
    /// A command that prints a secret: `--password-command 'echo X'`.
    Printing,
}

/// Finds the secrets of a command. Returns which part of its standard input is secret, if it reads
/// a secret.
pub(super) fn find(words: &[Word<'_>], depth: u8, found: &mut Found) -> Option<Template> {
    let count = words.iter().take_while(|word| is_assignment(&word.text)).count();
    find_after_assignments(words, count, depth, found)
}

/// Finds the secrets of a command whose first `count` words are assignments.
fn find_after_assignments(words: &[Word<'_>], count: usize, depth: u8, found: &mut Found) -> Option<Template> {
    words[..count].iter().for_each(|word| inspect(word, None, None, depth, found));
    let (name, _) = words[count..].split_first()?;
    inspect(name, None, Some(Role::Script), depth, found);
    let walk = Walk {
        words: &words[count..],
        program: table::find(program_name(&name.text)),
        depth,
        found,
        next_roles: VecDeque::new(),
        verbs: Vec::new(),
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

pub(super) fn is_assignment(text: &[u8]) -> bool {
    let name = text.split(|byte| *byte == b'=').next().unwrap_or_default();
    name.len() < text.len()
        && name.first().is_some_and(|first| !first.is_ascii_digit())
        && name.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'+' | b'[' | b']'))
}

struct Walk<'w, 's> {
    words: &'w [Word<'w>],
    program: Option<&'static Program>,
    depth: u8,
    found: &'s mut Found,
    next_roles: VecDeque<Role>,
    /// The arguments that are not options.
    verbs: Vec<&'w Word<'w>>,
    /// The options so far, without their values.
    given: Vec<&'w [u8]>,
    options_ended: bool,
}

impl<'w> Walk<'w, '_> {
    fn run(mut self) -> Option<Template> {
        let mut carried = None;
        for at in 1..self.words.len() {
            if let Some(start) = self.step(at) {
                carried = Some(&self.words[start..]);
                break;
            }
        }
        let own = &self.words[..self.words.len() - carried.map_or(0, <[Word]>::len)];
        self.find_named_pairs(own);
        self.find_positionals();
        let within = carried.and_then(|words| match words {
            // A single word may be a script: `ssh host 'PASS=X make'`.
            [_] => find_after_assignments(words, 0, self.depth, self.found),
            _ => find(words, self.depth, self.found),
        });
        within.or_else(|| self.input_template())
    }

    /// Handles one argument. If the command that this one runs begins with this or the next
    /// argument, returns the index of that argument.
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

    /// Handles an argument according to its role. Returns false if the argument is an option
    /// instead.
    fn apply_role(&mut self, at: usize, role: Role) -> bool {
        let word = &self.words[at];
        let whole = 0..word.text.len();
        match role {
            Role::Template(template) => {
                if !mark_template(word, whole, template, self.found) {
                    inspect(word, self.program, Some(role), self.depth, self.found);
                }
            }
            Role::Named(_) if word.text.starts_with(b"-") => return false,
            Role::Named(evidence) => {
                if !self.found.mark_word(evidence, word, whole) {
                    inspect(word, self.program, Some(role), self.depth, self.found);
                }
            }
            Role::Printing => text::find_printed(word, self.found),
            Role::Script => {
                inside::find(word, Kind::Text, self.found);
                let parameters = self.words.get(at + 1..).unwrap_or_default();
                text::find_script(word, parameters, self.depth, self.found);
            }
            Role::Header | Role::Other | Role::Prose => inspect(word, self.program, Some(role), self.depth, self.found),
        }
        true
    }

    fn is_option(&self, argument: &[u8]) -> bool {
        if self.options_ended || argument.len() < 2 {
            return false;
        }
        let is_flag = |flag: &str| argument.starts_with(flag.as_bytes());
        match argument[0] {
            b'-' => true,
            b'/' | b'+' => {
                self.program.is_some_and(|program| program.rules.iter().filter_map(|rule| rule.flag).any(is_flag))
            }
            _ => false,
        }
    }

    fn handle_option(&mut self, at: usize) {
        let word = &self.words[at];
        let argument: &'w [u8] = &word.text;
        self.given.push(argument);
        // `-password` is a name rather than `-p` with a value.
        let is_named = argument.len() > 4
            && argument[1..].iter().all(u8::is_ascii_alphabetic)
            && names::judge_flag(argument).is_some();
        let known = self.program.and_then(|program| match_option(program, argument, &self.verbs));
        match known.filter(|known| !(is_named && matches!(known, OptionMatch::Rest(2, _)))) {
            Some(OptionMatch::Next(templates)) => {
                self.next_roles.extend(templates.iter().map(|one| Role::Template(*one)));
            }
            Some(OptionMatch::Rest(start, template)) => {
                let part = start..argument.len();
                if !mark_template(word, part.clone(), template, self.found) {
                    inside::find(&word.part(part), Kind::Argument, self.found);
                }
            }
            None => {
                self.next_roles.extend(self.login_role(at).or_else(|| self.role_of_next(argument)));
                inspect(word, self.program, None, self.depth, self.found);
            }
        }
    }

    /// Returns the role of the value of an option that the table does not have, because of its
    /// form: `-u me:X`, `-u me -p X`, `login -p X`. Ports, paths, mappings and groups are no
    /// passwords.
    fn login_role(&self, at: usize) -> Option<Role> {
        let option = &*self.words[at].text;
        let value = &*self.words.get(at + 1)?.text;
        let is_known = |program: &Program| {
            let mut flags = program.bare.iter().copied().chain(program.rules.iter().filter_map(|rule| rule.flag));
            program.is_plain || program.takes_other(option) || flags.any(|flag| flag.as_bytes() == option)
        };
        if self.program.is_some_and(is_known) {
            return None;
        }
        let mut separators = (0..value.len()).filter(|at| b":%,".contains(&value[*at]));
        if let Some((user, [separator, password @ ..])) = separators.next().map(|at| value.split_at(at))
            && separators.next().is_none()
            && (is_among(option, "-u -U -a") || !option.contains(&b'=') && contains_any(option, &USER_OPTIONS))
        {
            let is_group = password.iter().all(u8::is_ascii_digit) || is_word_like(password);
            let is_login = !is_group && values::may_be_user(user) && !password.starts_with(b"//");
            return is_login.then_some(Role::Template(Template::After(*separator)));
        }
        let is_user = |pair: &[Word]| {
            let user = &*pair[1].text;
            let is_name = !user.starts_with(b"-") && !user.contains(&b':') && !user.iter().all(u8::is_ascii_digit);
            USERS.has(&pair[0].text) && is_name
        };
        let is_login = LOGIN_SECRETS.has(option) && self.verbs.iter().any(|verb| LOGINS.has(&verb.text))
            || PASSWORDS.has(option) && self.words.windows(2).any(is_user);
        let is_number = value.iter().all(|byte| byte.is_ascii_digit());
        let is_mapping = value.iter().any(|byte| b":/,={ ".contains(byte)) && !values::looks_random(value);
        (is_login && !is_number && !is_mapping && !value.starts_with(b"-")).then_some(Role::Named(Evidence::Password))
    }

    fn role_of_next(&self, argument: &[u8]) -> Option<Role> {
        if let Some(program) = self.program {
            let mut given = program.rules.iter().filter(|rule| rule.is_last).filter_map(|rule| rule.flag);
            if given.any(|flag| flag.as_bytes() == argument) || is_flag_among(argument, &program.bare) {
                return None;
            }
            if is_flag_among(argument, &program.prose) {
                return Some(Role::Prose);
            }
            if program.takes_other(argument) {
                return Some(if argument == b"-c" { Role::Script } else { Role::Other });
            }
        }
        if argument.starts_with(b"--")
            && contains_any(argument, &["command", "cmd", "eval"])
            && contains_any(argument, &SECRET_PARTS)
        {
            return Some(Role::Printing);
        }
        const HEADERS: &str = "-H --header --headers -header --extra-header --add-header --http-header";
        match argument {
            _ if is_among(argument, HEADERS) => Some(Role::Header),
            [b'-', letters @ .., b'c'] if letters.len() < 5 && letters.iter().all(u8::is_ascii_lowercase) => {
                Some(Role::Script)
            }
            _ => {
                let is_name = argument.len() > 2
                    && argument.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(byte));
                let named = is_name.then(|| names::judge_flag(argument)).flatten();
                let takes_next = self.program.is_some_and(|program| takes_next(program, argument));
                named.map(Role::Named).or(takes_next.then_some(Role::Other))
            }
        }
    }

    /// Handles an argument that is not an option. Returns its index if it begins the command that
    /// this one runs.
    fn handle_positional(&mut self, at: usize) -> Option<usize> {
        let word = &self.words[at];
        let runs_command = self.program.is_some_and(|program| !program.carries.is_empty());
        let is_text = at + 1 == self.words.len() && word.text.iter().any(u8::is_ascii_whitespace);
        if !(runs_command && is_assignment(&word.text) && !is_text) {
            self.verbs.push(&self.words[at]);
            if self.is_carried(&word.text) {
                return Some(at);
            }
        }
        inspect(word, self.program, None, self.depth, self.found);
        None
    }

    /// Whether the command that this one runs begins after this argument: `find -exec`,
    /// `kubectl exec pod --`.
    fn begins_command(&self, argument: &[u8]) -> bool {
        self.program.into_iter().flat_map(|program| &program.carries).any(|carries| {
            carries.separators.iter().any(|word| word.as_bytes() == argument)
                && occur_in_order(&carries.verbs, &self.verbs)
        })
    }

    /// Whether the command that this one runs begins with this argument, the last positional one so
    /// far.
    fn is_carried(&self, argument: &[u8]) -> bool {
        let Some(program) = self.program else {
            // If an argument of an unknown program is the name of a known program, the unknown
            // program probably runs it.
            return table::find(argument).is_some_and(|named| !named.is_plain && !named.is_word);
        };
        program.carries.iter().filter(|carries| carries.separators.is_empty()).any(|carries| {
            let end = self.verbs.len().checked_sub(carries.skipped + 1);
            end.is_some_and(|end| match carries.verbs.len() {
                0 => end == 0,
                _ => ends_with_verbs(&carries.verbs, &self.verbs[..end]),
            })
        })
    }

    fn find_positionals(&mut self) {
        let verbs = &self.verbs;
        let rules = self.program.map_or(&[][..], |program| &program.rules);
        for rule in rules.iter().filter(|rule| rule.is_last || rule.flag.is_none()) {
            match rule.verbs.len() {
                _ if rule.is_last => {
                    if rule.flag.is_none_or(|flag| is_given(flag, &self.given)) {
                        apply_slots(rule, &verbs[verbs.len().saturating_sub(rule.slots.len())..], self.found);
                    }
                }
                0 => apply_slots(rule, verbs, self.found),
                count => {
                    let ends = (count..=verbs.len()).filter(|end| ends_with_verbs(&rule.verbs, &verbs[..*end]));
                    ends.for_each(|start| apply_slots(rule, &verbs[start..], self.found));
                }
            }
        }
    }

    /// Finds the name of a secret as one argument and its value as the next:
    /// `config set api.token X`, `--arg password X`. Without such a word or option before, and for
    /// all later arguments, only a value that looks random is secret: `token add X`,
    /// `set-user-password vm me X`.
    fn find_named_pairs(&mut self, words: &[Word<'_>]) {
        let mut sets = words.first().is_some_and(|name| SETTERS.has(&name.text));
        let is_plain = !sets && self.program.is_some_and(|program| program.is_plain);
        let mut reveals = false;
        for at in 1..words.len() {
            let (before, word) = (&*words[at - 1].text, &*words[at].text);
            if word.starts_with(b"-") || word.starts_with(b"+") || word.windows(3).any(|part| part == b"://") {
                continue;
            }
            if reveals && !USERS.has(before) {
                let value = word.iter().rposition(|byte| *byte == b'=').map_or(0, |equals| equals + 1);
                self.found.mark_word(Evidence::Weak, &words[at], value..word.len());
            }
            if before == b"Bearer" && !word.iter().all(|byte| byte.is_ascii_alphabetic()) {
                self.found.mark_word(Evidence::Secret, &words[at], 0..word.len());
            }
            let is_pair = before.starts_with(b"-") && before.len() > 3 && contains_any(before, &PAIR_OPTIONS);
            let is_name = !word.iter().any(|byte| byte.is_ascii_whitespace() || b"=\"'$(){}@".contains(byte));
            let judged = names::judge(word.rsplit(|byte| *byte == b'/').next().unwrap_or_default()).filter(|_| is_name);
            let sets_password = judged == Some(Evidence::Password) && contains_any(word, &["reset-", "initial-"]);
            let is_set = (sets && judged != Some(Evidence::Login) || sets_password) && !is_plain;
            if let Some(evidence) = judged.filter(|_| is_set || is_pair)
                && let Some(value) = words.get(at + 1).filter(|value| !value.text.starts_with(b"-"))
            {
                self.found.mark_word(evidence, value, 0..value.text.len());
            }
            let is_verb = is_pair || !before.starts_with(b"-");
            reveals |=
                !is_plain && is_verb && (judged.is_some_and(|judged| judged != Evidence::Weak) || LOGINS.has(word));
            sets |= SETTERS.has(word);
        }
    }

    /// Returns which part of the program's standard input is secret, if it reads a secret.
    fn input_template(&self) -> Option<Template> {
        // `--password-stdin`, `--with-token`, `--passphrase-fd 0`
        let reads_named = self
            .given
            .iter()
            .any(|option| contains_any(option, &["stdin", "-fd", "with-"]) && contains_any(option, &SECRET_PARTS));
        let mut reads = self.program.map_or(&[][..], |program| &program.reads).iter();
        let known = reads.find(|reads| {
            occur_in_order(&reads.verbs, &self.verbs) && reads.flag.is_none_or(|flag| is_given(flag, &self.given))
        });
        known.map(|reads| reads.template).or(reads_named.then_some(Template::Whole))
    }
}

/// Applies the slots of a rule to arguments that are not options.
fn apply_slots(rule: &Rule, words: &[&Word<'_>], found: &mut Found) {
    let last = rule.slots.last().filter(|_| rule.repeats);
    for (word, slot) in words.iter().zip(rule.slots.iter().chain(last.into_iter().cycle())) {
        mark_template(word, 0..word.text.len(), *slot, found);
    }
}

fn contains_any(text: &[u8], parts: &[&str]) -> bool {
    parts.iter().any(|part| text.windows(part.len()).any(|window| window.eq_ignore_ascii_case(part.as_bytes())))
}

/// Marks the secret in a part of a word by a template. Returns whether the whole part is secret.
pub(super) fn mark_template(word: &Word<'_>, part: Range<usize>, template: Template, found: &mut Found) -> bool {
    let (value, end) = (&word.text[part.clone()], part.end - part.start);
    let position = |byte: u8| value.iter().position(|other| *other == byte);
    let mut within = Found::default();
    let mut whole = None;
    match template {
        Template::Nothing => {}
        Template::Whole => whole = Some(0..end),
        Template::Likely => return found.mark_word(Evidence::Secret, word, part),
        Template::After(separator) => {
            position(separator).into_iter().for_each(|colon| add_pair(value, 0..end, colon, &mut within));
        }
        Template::Between(separator) => {
            let start = position(separator).filter(|start| *start > 0 && !value[*start..].starts_with(b"://"));
            let at = value.iter().rposition(|byte| *byte == b'@').filter(|at| Some(*at) > start);
            // There is no login in `/ as sysdba`, and a proxy may have none.
            if let Some(start) = start.filter(|_| at.is_some() || separator == b'/') {
                add_pair(value, 0..at.unwrap_or(end), start, &mut within);
            }
        }
        Template::AfterEquals => whole = position(b'=').map(|equals| equals + 1..end),
        Template::AfterPrefix(prefix) => whole = value.starts_with(prefix.as_bytes()).then_some(prefix.len()..end),
    }
    if let Some(secret) = whole {
        // The table declares the value as secret, but an empty value, `-` and a reference to a
        // secret are none.
        let value = &value[secret.clone()];
        if is_reference(value) {
            within.add_references(value);
        } else if value != b"-" {
            within.add(secret);
        }
    }
    let is_whole = template == Template::Whole && !within.is_empty();
    found.add_within(within, &word.part(part));
    is_whole
}

fn inspect(word: &Word<'_>, program: Option<&Program>, role: Option<Role>, depth: u8, found: &mut Found) {
    let has_spaces = word.text.iter().any(u8::is_ascii_whitespace);
    let is_text = matches!(role, Some(Role::Script | Role::Prose)) && has_spaces;
    let kind = match () {
        () if role == Some(Role::Header) || program.is_some_and(|program| program.has_headers) => Kind::Header,
        () if is_text => Kind::Text,
        () if program.is_some_and(|program| program.has_properties) => Kind::Property,
        () => Kind::Argument,
    };
    inside::find(word, kind, found);
    // The value of an option may be a header or a command: `--header=X-Api-Key: X`,
    // `--command='mysql -pX'`.
    let value = option_value(&word.text).filter(|start| *start < word.text.len());
    if let Some(start) = value {
        let part = word.part(start..word.text.len());
        inside::find(&part, Kind::Header, found);
        if has_spaces {
            text::find_script(&part, &[], depth, found);
        }
    } else if has_spaces && role != Some(Role::Prose) {
        text::find_script(word, &[], depth, found);
    }
}

/// Returns the offset of the value in `--option=value` and `-Hvalue`.
fn option_value(argument: &[u8]) -> Option<usize> {
    if argument.starts_with(b"-H") {
        return Some(2);
    }
    let equals = argument.iter().position(|byte| *byte == b'=')?;
    let is_option = argument.starts_with(b"-") && !argument[..equals].iter().any(u8::is_ascii_whitespace);
    is_option.then_some(equals + 1)
}
