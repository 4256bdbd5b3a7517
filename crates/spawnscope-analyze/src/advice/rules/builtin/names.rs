//! Parts of paths, and facts: the directory, the user, the host and the time.

use super::call::{Call, Substitute};
use crate::patterns::shells::Dialect;

const OF_DIRNAME: &str = "${p%/*} keeps a name without a slash and turns /name into nothing, where dirname prints . and /; it does not \
                          skip a slash at the end, or several in a row; test `case $p in */*)` first if such names occur";
const OF_BASENAME: &str =
    "${p##*/} turns a path that ends with a slash into nothing: remove the slash first with ${p%/}";
const OF_SUFFIX: &str = "basename keeps a name that equals the suffix";
const OF_NEWLINES: &str = "newlines at the end of a name are kept";
const OF_ONCE: &str = "the variable does not follow later changes";
const OF_USER: &str = "$USER and $HOSTNAME are variables, which the environment or the script can change, and which cron and containers \
                       may leave unset";

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
            &["/bin/pwd resolves symbolic links; $PWD keeps them"],
        ),
        ["-P"] => Substitute::builtin("$(/bin/pwd -P)", "$(pwd -P)", &[]),
        _ => None,
    }
}

pub(super) fn hostname(call: &Call) -> Option<Substitute> {
    match (&call.words()[..], call.dialect) {
        ([], Dialect::Bash) => Substitute::expansion("$(hostname)", "$HOSTNAME", &[OF_USER]),
        ([], Dialect::Zsh) => Substitute::expansion("$(hostname)", "$HOST", &[OF_USER]),
        // An argument would set the host name.
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

/// Returns the substitute for a program whose output never changes.
fn fact(program: &str, call: &Call) -> Option<Substitute> {
    let words: Vec<&str> = std::iter::once(program).chain(call.words()).collect();
    let words = words.join(" ");
    Substitute::once(
        format!("$({words}) each time"),
        format!("fact=$({words}) once, before the loop, then \"$fact\""),
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
        // In some locales the decimal separator is a comma.
        ("%s.%N", Dialect::Bash) => Substitute::expansion(before, "${EPOCHREALTIME/,/.}000", OF_REALTIME),
        ("%s%N", Dialect::Bash) => Substitute::expansion(before, "${EPOCHREALTIME//[.,]/}000", OF_REALTIME),
        ("%s%3N", Dialect::Bash) => Substitute::expansion(before, "$((${EPOCHREALTIME//[.,]/} / 1000))", OF_REALTIME),
        (_, Dialect::Bash) if is_of_strftime(format) => Substitute::statement(
            before,
            format!("printf -v t '%({format})T' -1"),
            "t",
            &["printf %(...)T needs bash 4.2, and ignores a TZ that is set only for date"],
        ),
        _ => None,
    }
}

const OF_REALTIME: &[&str] =
    &["$EPOCHREALTIME needs bash 5.0, and has microseconds: the last three digits of the nanoseconds are 000"];

/// Maximum length between `%(` and `)T`: the buffer of bash has 128 bytes.
const MOST_FORMAT: usize = 40;

/// Whether strftime, which bash calls, supports the whole format. date has letters and colons that strftime lacks. Characters that the
/// shell would read as the end of the format or as an escape are excluded.
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
