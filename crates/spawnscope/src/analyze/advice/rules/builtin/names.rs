//! Names and facts: parts of paths, where and who the shell is, what time it is.

use super::super::super::shell::Dialect;
use super::call::{Call, Substitute};

const OF_DIRNAME: &str = "${p%/*} leaves a name without a slash as it is and makes nothing of /name, where dirname says . and /; \
                          it does not pass over a slash at the end, nor over several in a row; ask `case $p in */*)` first where \
                          such names come";
const OF_BASENAME: &str = "${p##*/} makes nothing of a path that ends with a slash: take that off first with ${p%/}";
const OF_SUFFIX: &str = "basename leaves a name that is nothing but the suffix";
const OF_NEWLINES: &str = "newlines at the end of a name stay";
const OF_ONCE: &str = "what is kept in a variable does not follow later changes";
const OF_USER: &str = "$USER and $HOSTNAME are variables, which the environment or the script can change, and which cron and containers \
                       may not set";

pub(super) fn dirname(call: &Call) -> Option<Substitute> {
    match call.words()[..] {
        [path] | ["--", path] if !path.starts_with('-') || call.arguments.len() == 2 => {
            Substitute::expansion("$(dirname \"$p\")", "${p%/*}", &[OF_DIRNAME, OF_NEWLINES])
        }
        _ => None,
    }
}

pub(super) fn basename(call: &Call) -> Option<Substitute> {
    let of_path = || Substitute::expansion("$(basename \"$p\")", "${p##*/}", &[OF_BASENAME, OF_NEWLINES]);
    let of_suffix = |suffix: &str| {
        let suffix = if suffix.chars().all(|c| c.is_alphanumeric() || "._-+".contains(c)) {
            suffix
        } else {
            "\"$suffix\""
        };
        Substitute::statement(
            format!("$(basename \"$p\" {suffix})"),
            format!("b=${{p##*/}}; b=${{b%{suffix}}}"),
            "b",
            &[OF_BASENAME, OF_SUFFIX, OF_NEWLINES],
        )
    };
    match call.words()[..] {
        ["--", _] => of_path(),
        [path] if !path.starts_with('-') => of_path(),
        ["--", _, suffix] | ["-s", suffix, _] => of_suffix(suffix),
        [path, suffix] if !path.starts_with('-') => of_suffix(suffix),
        _ => None,
    }
}

pub(super) fn pwd(call: &Call) -> Option<Substitute> {
    match call.words()[..] {
        [] | ["-L"] => Substitute::expansion(
            "$(/bin/pwd)",
            "$PWD",
            &["/bin/pwd resolves links where $PWD keeps them"],
        ),
        ["-P"] => Substitute::builtin("$(/bin/pwd -P)", "$(pwd -P)", &[]),
        _ => None,
    }
}

pub(super) fn hostname(call: &Call) -> Option<Substitute> {
    match (&call.words()[..], call.dialect) {
        ([], Dialect::Bash) => Substitute::expansion("$(hostname)", "$HOSTNAME", &[OF_USER]),
        ([], Dialect::Zsh) => Substitute::expansion("$(hostname)", "$HOST", &[OF_USER]),
        // A name would be set.
        (words, _) if words.iter().all(|word| word.starts_with('-')) => fact("hostname", call),
        _ => None,
    }
}

pub(super) fn whoami(call: &Call) -> Option<Substitute> {
    match (&call.words()[..], call.dialect) {
        ([], Dialect::Posix) => fact("whoami", call),
        ([], _) => Substitute::expansion("$(whoami)", "$USER", &[OF_USER]),
        _ => None,
    }
}

pub(super) fn id(call: &Call) -> Option<Substitute> {
    match (&call.words()[..], call.dialect) {
        (["-u"], Dialect::Bash | Dialect::Zsh) => Substitute::expansion("$(id -u)", "$EUID", &[]),
        _ => fact("id", call),
    }
}

pub(super) fn uname(call: &Call) -> Option<Substitute> {
    fact("uname", call)
}

pub(super) fn arch(call: &Call) -> Option<Substitute> {
    fact("arch", call)
}

pub(super) fn nproc(call: &Call) -> Option<Substitute> {
    fact("nproc", call)
}

pub(super) fn getconf(call: &Call) -> Option<Substitute> {
    fact("getconf", call)
}

pub(super) fn logname(call: &Call) -> Option<Substitute> {
    fact("logname", call)
}

/// An answer that is always the same.
fn fact(program: &str, call: &Call) -> Option<Substitute> {
    let words: Vec<&str> = std::iter::once(program).chain(call.words()).collect();
    let words = words.join(" ");
    Substitute::once(
        format!("$({words}) again and again"),
        format!("fact=$({words}) once, before the loop, and \"$fact\" from then on"),
        &[OF_ONCE],
    )
}

pub(super) fn date(call: &Call) -> Option<Substitute> {
    let words = call.words();
    let [format] = words[..] else { return None };
    let format = format.strip_prefix('+')?;
    let before = format!("$(date '+{format}')");
    match (format, call.dialect) {
        ("%s", Dialect::Bash) => Substitute::expansion(before, "$EPOCHSECONDS", &["$EPOCHSECONDS needs bash 5.0"]),
        ("%s", Dialect::Zsh) => Substitute::expansion(before, "$EPOCHSECONDS", &["after `zmodload zsh/datetime`"]),
        // Some locales have a comma for the point.
        ("%s.%N", Dialect::Bash) => Substitute::expansion(before, "${EPOCHREALTIME/,/.}000", OF_REALTIME),
        ("%s%N", Dialect::Bash) => Substitute::expansion(before, "${EPOCHREALTIME//[.,]/}000", OF_REALTIME),
        ("%s%3N", Dialect::Bash) => Substitute::expansion(before, "$((${EPOCHREALTIME//[.,]/} / 1000))", OF_REALTIME),
        (_, Dialect::Bash) if is_of_strftime(format) => Substitute::statement(
            before,
            format!("printf -v t '%({format})T' -1"),
            "t",
            &["printf %(...)T needs bash 4.2, and knows nothing of a TZ that only date is given"],
        ),
        _ => None,
    }
}

const OF_REALTIME: &[&str] = &["$EPOCHREALTIME needs bash 5.0, and has microseconds: nanoseconds are 000 behind them"];

/// What bash takes between `%(` and `)T`: its buffer has 128 bytes.
const MOST_FORMAT: usize = 40;

/// Whether strftime, which bash calls, knows all of a format of date: that one has letters and colons of its own, and what the shell
/// would take for the end of the format or for an escape is not in it.
fn is_of_strftime(format: &str) -> bool {
    let mut rest = format;
    while let Some((text, conversion)) = rest.split_once('%') {
        let conversion = conversion.trim_start_matches(['-', '_', '0', '^']);
        let mut letters = conversion.chars();
        let is_known = letters
            .next()
            .is_some_and(|letter| "aAbBcCdDeFgGhHIjklmMpPrRsSTuUVwWxXyYzZ%".contains(letter));
        if !is_known || !is_plain_text(text) {
            return false;
        }
        rest = letters.as_str();
    }
    is_plain_text(rest) && (1..=MOST_FORMAT).contains(&format.len())
}

fn is_plain_text(text: &str) -> bool {
    text.chars()
        .all(|each| each.is_ascii_alphanumeric() || " _./:,=@+-".contains(each))
}

pub(super) fn which(call: &Call) -> Option<Substitute> {
    let words = call.words();
    match words[..] {
        [program] if !program.starts_with('-') => Substitute::builtin(
            "which \"$program\"",
            "command -v \"$program\"",
            &["command -v also finds functions, builtins and aliases"],
        ),
        _ => None,
    }
}
