//! The table of replacements: for each small program, the calls that a shell can replace reliably.

use super::call::{BASENAME_LIMIT, Call, ECHO_DIFFERS, NEWLINES_LIMIT, VARIABLE_LIMIT};
use super::row::Word::{Any, Is, OneOf, Operand};
use super::row::{Row, RowEdit, Word, any_call, calls_with};
use super::{names, numbers, row, sed, text};
use crate::patterns::shells::Dialect::{self, Bash, Ksh, Posix, Zsh};

/// The rows of each program, sorted by program name.
pub(super) const TABLE: [(&[u8], &[Row]); 33] = [
    (b"[", &[any_call().builtin(["/usr/bin/[ ... ]", "{program} ... ]"], row::BUILTIN_LIMITS)]),
    (b"arch", &[any_call().once()]),
    (b"awk", AWK),
    (b"basename", BASENAME),
    (b"cat", CAT),
    (b"cut", &[any_call().if_captured().computed_by(text::cut)]),
    (b"date", DATE),
    (b"dirname", DIRNAME),
    (b"echo", ECHO),
    (b"expr", EXPR),
    (b"false", &[calls_with(NO_ARGUMENTS).same_builtin()]),
    (b"gawk", AWK),
    (b"getconf", &[any_call().once()]),
    (b"grep", &[any_call().if_fed().computed_by(text::grep)]),
    (b"head", HEAD),
    (b"hostname", HOSTNAME),
    (b"id", ID),
    (b"kill", &[any_call().same_builtin()]),
    (b"logname", &[any_call().once()]),
    (b"mawk", AWK),
    (b"nproc", &[any_call().once()]),
    (b"printf", &[any_call().same_builtin()]),
    (b"pwd", PWD),
    (b"sed", &[any_call().if_captured().computed_by(sed::sed)]),
    (b"seq", &[any_call().if_captured().computed_by(numbers::seq)]),
    (b"sleep", SLEEP),
    // `[[ ]]` is not suggested: it saves nothing more than `[ ]`, treats the right side of `=` as a
    // pattern, and evaluates the operands of -eq.
    (b"test", &[any_call().same_builtin()]),
    (b"tr", TR),
    (b"true", &[calls_with(NO_ARGUMENTS).same_builtin()]),
    (b"uname", &[any_call().once()]),
    (b"wc", WC),
    (b"which", WHICH),
    (b"whoami", WHOAMI),
];

const NO_ARGUMENTS: &[&[Word]] = &[&[]];
/// The shells that agree on most extensions.
const EXTENDED: &[Dialect] = &[Bash, Ksh, Zsh];

const DIRNAME_LIMIT: &str = "for a name without a slash, `${p%/*}` gives the name, whereas dirname gives `.`: test `case $p in */*)` first if such \
                             names occur; for /name, `${p%/*}` gives nothing, whereas dirname gives `/`; `${p%/*}` does not skip a slash at the \
                             end, or several in a row";
const USER_LIMIT: &str = "the environment or the script can change `$USER`, and cron and containers may leave it unset";
const HOSTNAME_LIMIT: &str = "the environment or the script can change `$HOSTNAME`";
const HOST_LIMIT: &str = "the script can change `$HOST`";
const REALTIME_LIMITS: &[&str] =
    &["`$EPOCHREALTIME` needs bash 5.0, and counts in microseconds, so the nanoseconds end in 000"];
const FIRST_LINE_LIMIT: &str =
    "`read` returns only the first line, and exits with status 1 if that line has no newline";
const LETTERS_LIMIT: &str = "tr changes only ASCII letters; the shell also changes other letters of its locale, such as é, unless LC_ALL=C is set";
const CASE_LIMITS: &[&str] = &[VARIABLE_LIMIT, LETTERS_LIMIT, ECHO_DIFFERS];
const CASE_IN_BASH_LIMITS: &[&str] = &["needs bash 4.0", VARIABLE_LIMIT, LETTERS_LIMIT, ECHO_DIFFERS];
const MAPFILE_LIMIT: &str = "only for small files, since mapfile stores every line, and not for the output of another program; unlike wc, \
                             mapfile counts a last line without a newline; wc also prints the name of a file argument";
const WC_ECHO_LIMIT: &str = "if echo feeds wc, wc also counts the newline of echo";

const AWK: &[Row] = &[any_call().if_captured().computed_by(text::awk)];

const BASENAME: &[Row] = &[
    calls_with(&[&[Is("--"), Any], &[Operand]])
        .replaced_with(["$(basename \"$p\")", "${p##*/}"], &[BASENAME_LIMIT, NEWLINES_LIMIT])
        .edited(RowEdit::OfName("##*/")),
    any_call().computed_by(names::basename_with_suffix),
];

const CAT: &[Row] = &[
    calls_with(&[&[Operand]])
        .if_captured()
        .in_shells(EXTENDED)
        .builtin(["$(cat \"$f\")", "$(<\"$f\")"], &["only for one readable file"])
        .edited(RowEdit::Captured("$(<{1})")),
    calls_with(&[&[Operand]]).if_captured().sets_variable("x").replaced_with(
        ["x=$(cat \"$f\")", "IFS= read -r x <\"$f\""],
        &["only for files of one line; sh has no equivalent for longer files", FIRST_LINE_LIMIT],
    ),
];

const DATE: &[Row] = &[
    calls_with(&[&[Is("+%s")]])
        .in_shells(&[Bash])
        .replaced_with(["$(date '+%s')", "$EPOCHSECONDS"], &["`$EPOCHSECONDS` needs bash 5.0"])
        .edited(RowEdit::Word("$EPOCHSECONDS")),
    calls_with(&[&[Is("+%s")]])
        .in_shells(&[Zsh])
        .replaced_with(["$(date '+%s')", "$EPOCHSECONDS"], &["`$EPOCHSECONDS` needs `zmodload zsh/datetime`"]),
    // In some locales, the decimal separator of $EPOCHREALTIME is a comma.
    calls_with(&[&[Is("+%s.%N")]])
        .in_shells(&[Bash])
        .replaced_with(["$(date '+%s.%N')", "${EPOCHREALTIME/,/.}000"], REALTIME_LIMITS)
        .edited(RowEdit::Word("${EPOCHREALTIME/,/.}000")),
    calls_with(&[&[Is("+%s%N")]])
        .in_shells(&[Bash])
        .replaced_with(["$(date '+%s%N')", "${EPOCHREALTIME//[.,]/}000"], REALTIME_LIMITS)
        .edited(RowEdit::Word("${EPOCHREALTIME//[.,]/}000")),
    calls_with(&[&[Is("+%s%3N")]])
        .in_shells(&[Bash])
        .replaced_with(
            ["$(date '+%s%3N')", "$((${EPOCHREALTIME//[.,]/} / 1000))"],
            &["`$EPOCHREALTIME` needs bash 5.0"],
        )
        .edited(RowEdit::Word("$((${EPOCHREALTIME//[.,]/} / 1000))")),
    any_call().in_shells(&[Bash]).computed_by(names::date),
];

const DIRNAME: &[Row] = &[calls_with(&[&[Operand], &[Is("--"), Any]])
    .replaced_with(["$(dirname \"$p\")", "${p%/*}"], &[DIRNAME_LIMIT, NEWLINES_LIMIT])
    .edited(RowEdit::OfDirectory("%/*"))];

const ECHO: &[Row] =
    &[any_call().in_shells(&[Bash]).same_builtin(), any_call().only_if(prints_the_same_everywhere).same_builtin()];

const EXPR: &[Row] = &[
    calls_with(&[&[Any, OneOf(&["+", "-", "*", "/", "%"]), Any]]).computed_by(numbers::arithmetic),
    calls_with(&[&[Any, OneOf(&["<", "<=", ">", ">=", "=", "!="]), Any]]).computed_by(numbers::comparison),
    calls_with(&[&[Is("length"), Any]])
        .in_shells(EXTENDED)
        .replaced_with(["$(expr length \"$s\")", "${#s}"], &[])
        .edited(RowEdit::Word("${#{$2}}")),
    calls_with(&[&[Is("length"), Any]])
        .replaced_with(["$(expr length \"$s\")", "${#s}"], &["sh may count bytes; expr counts characters"]),
    calls_with(&[&[Is("substr"), Any, Any, Any]]).in_shells(EXTENDED).replaced_with(
        ["$(expr substr \"$s\" 1 n)", "${s:0:n}"],
        &["positions in `${s:0:n}` start at 0, not at 1", ECHO_DIFFERS],
    ),
    // Without a group, expr prints the length of the match.
    calls_with(&[&[Any, Is(":"), Any]])
        .in_shells(&[Bash])
        .only_if(|call| call.arguments[2].contains("\\("))
        .sets_variable("y")
        .replaced_with(
            ["$(expr \"$s\" : '\\(regex\\)')", "y=; [[ $s =~ ^(regex) ]] && y=${BASH_REMATCH[1]}"],
            &[
                "`[[ =~ ]]` takes extended regular expressions; expr takes basic ones, anchored at the beginning",
                ECHO_DIFFERS,
            ],
        ),
];

const HEAD: &[Row] = &[
    calls_with(&[&[OneOf(&["-1", "-n1"])], &[Is("-n"), Is("1")]])
        .if_captured()
        .in_shells(EXTENDED)
        .sets_variable("y")
        .replaced_with(["$(echo \"$x\" | head -n1)", "IFS= read -r y <<<\"$x\""], &[VARIABLE_LIMIT, ECHO_DIFFERS])
        .edited(RowEdit::OfInput("%%$'\\n'*")),
    calls_with(&[&[OneOf(&["-1", "-n1"])], &[Is("-n"), Is("1")]]).if_captured().replaced_with(
        ["$(echo \"$x\" | head -n1)", "${x%%\"$newline\"*}"],
        &[VARIABLE_LIMIT, "`$newline` must contain a newline", ECHO_DIFFERS],
    ),
    calls_with(&[&[OneOf(&["-1", "-n1"]), Operand], &[Is("-n"), Is("1"), Operand]])
        .if_captured()
        .sets_variable("x")
        .replaced_with(["x=$(head -n1 \"$f\")", "IFS= read -r x <\"$f\""], &[FIRST_LINE_LIMIT]),
];

const HOSTNAME: &[Row] = &[
    calls_with(NO_ARGUMENTS)
        .in_shells(&[Bash])
        .replaced_with(["$(hostname)", "$HOSTNAME"], &[HOSTNAME_LIMIT])
        .edited(RowEdit::Word("$HOSTNAME")),
    calls_with(NO_ARGUMENTS).in_shells(&[Zsh]).replaced_with(["$(hostname)", "$HOST"], &[HOST_LIMIT]),
    // An argument would set the host name.
    any_call().only_if(has_only_options).once(),
];

const ID: &[Row] = &[
    calls_with(&[&[Is("-u")]])
        .in_shells(&[Bash, Zsh])
        .replaced_with(["$(id -u)", "$EUID"], &[])
        .edited(RowEdit::Word("$EUID")),
    any_call().once(),
];

const PWD: &[Row] = &[
    calls_with(&[&[], &[Is("-L")]])
        .replaced_with(["$(/bin/pwd)", "$PWD"], &["/bin/pwd without -L resolves symbolic links; `$PWD` keeps them"]),
    calls_with(&[&[Is("-P")]]).builtin(["$(/bin/pwd -P)", "$(pwd -P)"], &[]),
];

const SLEEP: &[Row] = &[calls_with(&[&[OneOf(&["0", "0.0", "0s", ".0"])]])
    .replaced_with(["sleep 0", ":"], &["sleep 0 also yields the CPU"])];

const LOWER: Word = OneOf(&["a-z", "[a-z]", "[:lower:]"]);
const UPPER: Word = OneOf(&["A-Z", "[A-Z]", "[:upper:]"]);
const TO_UPPER: Row = calls_with(&[&[LOWER, UPPER]]).if_captured();
const TO_LOWER: Row = calls_with(&[&[UPPER, LOWER]]).if_captured();
const ECHO_PIPE: &str = "$(echo \"$x\" | {call})";

const TR: &[Row] = &[
    TO_UPPER
        .in_shells(&[Bash])
        .replaced_with([ECHO_PIPE, "${x^^}"], CASE_IN_BASH_LIMITS)
        .edited(RowEdit::OfInput("^^")),
    TO_UPPER.in_shells(&[Ksh]).sets_variable("y").replaced_with([ECHO_PIPE, "typeset -u y=$x"], CASE_LIMITS),
    TO_UPPER.in_shells(&[Zsh]).replaced_with([ECHO_PIPE, "${(U)x}"], CASE_LIMITS),
    TO_LOWER
        .in_shells(&[Bash])
        .replaced_with([ECHO_PIPE, "${x,,}"], CASE_IN_BASH_LIMITS)
        .edited(RowEdit::OfInput(",,")),
    TO_LOWER.in_shells(&[Ksh]).sets_variable("y").replaced_with([ECHO_PIPE, "typeset -l y=$x"], CASE_LIMITS),
    TO_LOWER.in_shells(&[Zsh]).replaced_with([ECHO_PIPE, "${(L)x}"], CASE_LIMITS),
    calls_with(&[&[Any, Any]]).if_captured().in_shells(EXTENDED).computed_by(text::tr),
];

const COUNT_LINES: &str = "mapfile -t lines <\"$f\"; n=${#lines[@]}";

const WC: &[Row] = &[
    // Not in dash, whose ${#x} counts bytes in every locale.
    calls_with(&[&[Is("-m")]])
        .if_captured()
        .if_fed()
        .in_shells(EXTENDED)
        .replaced_with(["$(printf %s \"$x\" | wc -m)", "${#x}"], &[WC_ECHO_LIMIT]),
    calls_with(&[&[Is("-c")]]).if_captured().if_fed().replaced_with(
        ["$(printf %s \"$x\" | wc -c)", "${#x}"],
        &["`${#x}` counts characters; it counts bytes only with LC_ALL=C", WC_ECHO_LIMIT],
    ),
    calls_with(&[&[Is("-l")]])
        .if_captured()
        .in_shells(&[Bash])
        .sets_variable("n")
        .replaced_with(["n=$(wc -l <\"$f\")", COUNT_LINES], &[MAPFILE_LIMIT]),
    calls_with(&[&[Is("-l"), Operand]])
        .if_captured()
        .in_shells(&[Bash])
        .sets_variable("n")
        .replaced_with(["n=$(wc -l \"$f\")", COUNT_LINES], &[MAPFILE_LIMIT]),
];

const WHICH: &[Row] = &[calls_with(&[&[Operand]])
    .builtin(
        ["which \"$program\"", "command -v \"$program\""],
        &["`command -v` also finds functions, builtins and aliases"],
    )
    .edited(RowEdit::Lookup("command -v"))];

const WHOAMI: &[Row] = &[
    calls_with(NO_ARGUMENTS).in_shells(&[Posix]).once(),
    calls_with(NO_ARGUMENTS).replaced_with(["$(whoami)", "$USER"], &[USER_LIMIT]),
];

/// Whether the builtin echo of every shell prints the same. Shells differ in options and
/// backslashes.
fn prints_the_same_everywhere(call: &Call) -> bool {
    let has_options = call.arguments.first().is_some_and(|word| word.starts_with('-') && word != "-n");
    !has_options && call.arguments.iter().all(|word| !word.contains('\\'))
}

fn has_only_options(call: &Call) -> bool {
    call.arguments.iter().all(|word| word.starts_with('-'))
}

#[cfg(test)]
mod tests {
    use super::TABLE;

    #[test]
    fn programs_are_sorted_for_the_binary_search() {
        assert!(TABLE.is_sorted_by_key(|(program, _)| program));
    }
}
