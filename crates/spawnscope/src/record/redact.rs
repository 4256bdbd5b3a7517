//! Masks what looks like a secret in an argv before it is stored. Pure. Argument boundaries stay; a mask does not tell
//! how long the secret was. It errs towards masking where a name says "password", and towards keeping where ordinary
//! build commands look alike (`-DEND_TOKEN=5`, `--passes=3`).

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::bytes::{Captures, Regex};

/// Whether secrets are masked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Redaction {
    /// What looks like a secret is replaced by `***`.
    Mask,
    /// Everything is stored as it is.
    Keep,
}

impl Redaction {
    /// An argv (each argument ended by NUL; the last may be cut) as it is to be stored.
    pub(super) fn apply(self, argv: &[u8]) -> Cow<'_, [u8]> {
        // This runs for each launch, and hardly any holds a secret.
        let is_plain = || !SUSPICIOUS.is_match(argv) && short_flags(program_of(argv)).next().is_none();
        if self == Redaction::Keep || is_plain() {
            Cow::Borrowed(argv)
        } else {
            Cow::Owned(mask_argv(argv))
        }
    }
}

const MASK: &[u8] = b"***";

/// What an argument is, judged by those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// Nothing special.
    Plain,
    /// A secret as a whole.
    Secret,
    /// `name:secret`.
    Credentials,
    /// A program text: `sh -c TEXT`.
    Script,
}

/// An option with a secret for value that has no telling name.
struct ShortFlag {
    programs: &'static [&'static str],
    flag: &'static str,
    role: Role,
    form: Form,
}

/// Where the value of an option stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// In the same argument only.
    Attached,
    /// In the same argument, or in the next.
    Either,
    /// In the next argument only.
    Next,
}

const MYSQL: &[&str] = &[
    "mysql",
    "mysqldump",
    "mysqladmin",
    "mysqlimport",
    "mariadb",
    "mariadb-dump",
    "mariadb-admin",
];

#[rustfmt::skip]
const SHORT_FLAGS: &[ShortFlag] = &[
    ShortFlag { programs: &["curl"], flag: "-u", role: Role::Credentials, form: Form::Either },
    ShortFlag { programs: &["curl"], flag: "-U", role: Role::Credentials, form: Form::Either },
    ShortFlag { programs: &["curl"], flag: "--user", role: Role::Credentials, form: Form::Next },
    ShortFlag { programs: &["curl"], flag: "--proxy-user", role: Role::Credentials, form: Form::Next },
    ShortFlag { programs: &["openssl"], flag: "-pass", role: Role::Credentials, form: Form::Next },
    ShortFlag { programs: &["openssl"], flag: "-passin", role: Role::Credentials, form: Form::Next },
    ShortFlag { programs: &["openssl"], flag: "-passout", role: Role::Credentials, form: Form::Next },
    ShortFlag { programs: &["redis-cli"], flag: "-a", role: Role::Secret, form: Form::Next },
    ShortFlag { programs: &["sshpass"], flag: "-p", role: Role::Secret, form: Form::Either },
    ShortFlag { programs: MYSQL, flag: "-p", role: Role::Secret, form: Form::Attached },
];

fn short_flags(program: &[u8]) -> impl Iterator<Item = &'static ShortFlag> {
    SHORT_FLAGS
        .iter()
        .filter(move |short| short.programs.iter().any(|name| name.as_bytes() == program))
}

/// Base name of the first argument.
fn program_of(argv: &[u8]) -> &[u8] {
    let first = argv.split(|byte| *byte == 0).next().unwrap_or_default();
    first.rsplit(|byte| *byte == b'/').next().unwrap_or_default()
}

fn mask_argv(argv: &[u8]) -> Vec<u8> {
    let program = program_of(argv);
    let mut masked = Vec::with_capacity(argv.len());
    let mut role = Role::Plain;
    for argument in argv.split_inclusive(|byte| *byte == 0) {
        let (text, end) = argument
            .strip_suffix(b"\0")
            .map_or((argument, &b""[..]), |text| (text, b"\0"));
        masked.extend_from_slice(&mask_argument(program, role, text));
        masked.extend_from_slice(end);
        role = role_of_next(program, text);
    }
    masked
}

/// What the argument after `text` is.
fn role_of_next(program: &[u8], text: &[u8]) -> Role {
    let short = short_flags(program).find(|short| short.form != Form::Attached && short.flag.as_bytes() == text);
    match short {
        Some(short) => short.role,
        None if is_secret_flag(text) => Role::Secret,
        None if SCRIPT_FLAG.is_match(text) => Role::Script,
        None => Role::Plain,
    }
}

fn mask_argument<'a>(program: &[u8], role: Role, text: &'a [u8]) -> Cow<'a, [u8]> {
    match role {
        Role::Secret if is_secret_value(text) => Cow::Borrowed(MASK),
        Role::Credentials => Cow::Owned(mask_credentials(text)),
        Role::Script => mask_inside(text),
        Role::Secret | Role::Plain => mask_attached(program, text)
            .or_else(|| mask_assignment(text))
            .map_or_else(|| mask_inside(text), Cow::Owned),
    }
}

/// `name:secret`
fn mask_credentials(text: &[u8]) -> Vec<u8> {
    let name_end = text.iter().position(|byte| *byte == b':');
    name_end.map_or_else(|| text.to_vec(), |colon| [&text[..=colon], MASK].concat())
}

/// `-pSECRET`, for the programs known to take it.
fn mask_attached(program: &[u8], text: &[u8]) -> Option<Vec<u8>> {
    let attached = short_flags(program).filter(|short| short.form != Form::Next);
    let (short, value) = attached
        .filter_map(|short| text.strip_prefix(short.flag.as_bytes()).map(|value| (short, value)))
        .find(|(_, value)| !value.is_empty())?;
    let masked = if short.role == Role::Credentials {
        mask_credentials(value)
    } else {
        MASK.to_vec()
    };
    Some([short.flag.as_bytes(), &masked].concat())
}

/// An argument that is one assignment as a whole, `--password=SECRET` or `API_KEY=SECRET`: the secret may hold anything,
/// spaces and quotes too.
fn mask_assignment(text: &[u8]) -> Option<Vec<u8>> {
    let equals = text.iter().position(|byte| *byte == b'=')?;
    let (name, value) = (&text[..equals], &text[equals + 1..]);
    let is_one_word = !name.iter().any(u8::is_ascii_whitespace);
    (is_one_word && is_secret_name(name) && is_secret_value(value))
        .then(|| [&mask_inside(name), &b"="[..], MASK].concat())
}

/// Secrets that stand out by their own form, and assignments and options inside a longer text.
fn mask_inside(text: &[u8]) -> Cow<'_, [u8]> {
    let mut masked = Cow::Borrowed(text);
    for (pattern, replace) in [
        (&*HEADER, keep_and_mask as fn(&Captures) -> Vec<u8>),
        (&*URL_PASSWORD, mask_url_password),
        (&*TOKEN, |_| MASK.to_vec()),
        (&*ASSIGNMENT_INSIDE, mask_assignment_inside),
    ] {
        if let Cow::Owned(replaced) = pattern.replace_all(&masked, |found: &Captures| replace(found)) {
            masked = Cow::Owned(replaced);
        }
    }
    masked
}

fn keep_and_mask(found: &Captures) -> Vec<u8> {
    [&found["keep"], MASK].concat()
}

fn mask_url_password(found: &Captures) -> Vec<u8> {
    // `docker://image:tag@sha256:...` is no login.
    let is_digest = found["host"].starts_with(b"sha");
    if is_digest {
        found[0].to_vec()
    } else {
        [&found["keep"], MASK, b"@", &found["host"]].concat()
    }
}

fn mask_assignment_inside(found: &Captures) -> Vec<u8> {
    let name = &found["name"];
    let is_named = if found["separator"].trim_ascii().is_empty() {
        is_secret_flag(name)
    } else {
        is_secret_name(name)
    };
    if is_named && is_secret_value(&found["value"]) {
        keep_and_mask(found)
    } else {
        found[0].to_vec()
    }
}

/// Whether what `name` is set to is a secret.
fn is_secret_name(name: &[u8]) -> bool {
    // A C macro about tokens belongs to a parser; a property of Java has dots.
    let is_macro = name.starts_with(b"-D") && !name.contains(&b'.');
    CLEAR_NAME.is_match(name) || (!is_macro && SHORT_NAME.is_match(name))
}

/// Whether the argument after this one is a secret.
fn is_secret_flag(text: &[u8]) -> bool {
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.".contains(byte);
    text.starts_with(b"-") && text.iter().all(is_word) && is_secret_name(text) && !SWITCH.is_match(text)
}

/// Whether a value can be a secret: not another option, a switch, a reference to a variable, or Docker's `id=name,src=file`.
fn is_secret_value(value: &[u8]) -> bool {
    !NO_SECRET.is_match(value)
}

/// Compiles a pattern. Bytes, not UTF-8: the kernel does not care either.
fn compile(pattern: &str) -> Regex {
    Regex::new(&format!("(?sx-u){pattern}")).expect("the patterns of this file are well formed, as its tests show")
}

/// Found in every argv that holds something to mask (but for short flags), and in few others.
static SUSPICIOUS: LazyLock<Regex> = LazyLock::new(|| {
    compile(
        r"(?i) passw | passphrase | _pass | mysql_pwd | token | secret | key | credential | authorization | cookie
        | ://[^/\s\x00]*@ | gh[pousr]_ | github_pat_ | glpat- | xox[a-z]- | akia | asia | aiza | eyj | sk_live_ | npm_ | hf_",
    )
});

/// Names that hardly stand for anything but a secret, wherever they end a longer one.
static CLEAR_NAME: LazyLock<Regex> = LazyLock::new(|| {
    compile(
        r"(?i: password | passwd | passphrase | api[-_]?key | (?: access | secret | auth | account )[-_]?key ) $
        | [A-Z0-9]_PASS $ | (?: ^ | [^A-Za-z] ) MYSQL_PWD $",
    )
});

/// Short names that must be a whole word: `NPM_TOKEN`, `authToken`, but not `tokens` or `mytoken`.
static SHORT_NAME: LazyLock<Regex> = LazyLock::new(|| {
    compile(r"(?i: (?: ^ | [^a-z0-9] ) (?: token | secret | credentials? ) ) $ | [a-z] (?: Token | Secret ) $")
});

/// Options about secrets that are switches themselves.
static SWITCH: LazyLock<Regex> =
    LazyLock::new(|| compile(r"^--?(?i: no | ask | prompt | require | disable | enable | skip | with | without )[-_]"));

/// Shells and many others take a program text after `-c`; shells also after `-lc`, `-ec` and the like.
static SCRIPT_FLAG: LazyLock<Regex> = LazyLock::new(|| compile(r"^-[a-z]{0,4}c$"));

static NO_SECRET: LazyLock<Regex> = LazyLock::new(|| {
    compile(
        r"^ (?: -.* | \$\{?\w+\}? | [0-9]{1,2} | (?: id | type | src | env )=.*
        | (?i: true | false | yes | no | on | off | none | null | auto )? ) $",
    )
});

/// A header of HTTP that says who one is, to the end of its line or quotes.
static HEADER: LazyLock<Regex> = LazyLock::new(|| {
    compile(
        r#"(?P<keep> (?: \b | -H ) (?i: (?: (?: proxy- )? authorization | (?: set- )? cookie | (?: private | job | deploy )-token
        | x-(?: [a-z]+- )*(?: token | secret | api-key ) ) [\ \t]* : [\ \t]*
          (?: (?: bearer | basic | token | digest | negotiate ) [\ \t]+ )? ) )
        [^"'\r\n]+"#,
    )
});

/// `scheme://user:secret@host`; the secret may hold an `@` that nobody encoded.
static URL_PASSWORD: LazyLock<Regex> =
    LazyLock::new(|| compile(r#"(?P<keep> [A-Za-z0-9+.-]+://[^\s/:@"']*: ) [^\s/"']+ @ (?P<host> [^\s/"'@]* )"#));

/// Tokens that their makers marked.
static TOKEN: LazyLock<Regex> = LazyLock::new(|| {
    compile(
        r"\b (?: gh[pousr]_[A-Za-z0-9]{16,} | github_pat_\w{20,} | glpat-[\w-]{16,} | xox[a-z]-[\w-]{10,}
        | (?: AKIA | ASIA )[0-9A-Z]{16} \b | AIza[\w-]{35} | sk_live_\w{16,} | npm_[A-Za-z0-9]{36} | hf_[A-Za-z0-9]{30,}
        | eyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]* )
        | -----BEGIN\ [A-Z\ ]*PRIVATE\ KEY----- .*",
    )
});

/// An assignment or option in a longer text whose name ends as secret ones do; whether it is one is looked at closely.
static ASSIGNMENT_INSIDE: LazyLock<Regex> = LazyLock::new(|| {
    compile(
        r#"(?P<keep> (?: ^ | [\s"'`;&|(?=,{:] )
            (?P<name> -{0,2} [A-Za-z_][\w.-]*? (?i: passwd | password | passphrase | token | secret | key | credentials? | _pass | _pwd )
                    | -{0,2} (?i: passwd | password | passphrase | token | secret | credentials? ) )
            (?P<separator> = | [\ \t]+ | "\s*:\s* ) )
        (?P<value> (?: " [^"]* (?: " | $ ) | ' [^']* (?: ' | $ ) | [^\s"'`;&|<>(),}] )+ )"#,
    )
});

#[cfg(test)]
mod tests;
