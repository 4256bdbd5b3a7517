//! The table of replacements: for each small program, the calls that a shell can replace reliably.

use super::call::{Call, ECHO_DIFFERS, OF_BASENAME, OF_NEWLINES, OF_VARIABLE};
use super::row::Word::{Any, Is, OneOf, Operand};
use super::row::{Row, Word, any, of};
use super::{names, numbers, row, sed, text};
use crate::patterns::shells::Dialect::{self, Bash, Ksh, Posix, Zsh};

/// Rows by program, sorted by program name.
pub(super) const TABLE: [(&[u8], &[Row]); 33] = [
    (
        b"[",
        &[any().builtin(["/usr/bin/[ ... ]", "[ ... ]"], row::BUILTIN_LIMITS)],
    ),
    (b"arch", &[any().once()]),
    (b"awk", AWK),
    (b"basename", BASENAME),
    (b"cat", CAT),
    (b"cut", &[any().captured().computed(text::cut)]),
    (b"date", DATE),
    (b"dirname", DIRNAME),
    (b"echo", ECHO),
    (b"expr", EXPR),
    (b"false", &[of(NONE).same_builtin()]),
    (b"gawk", AWK),
    (b"getconf", &[any().once()]),
    (b"grep", &[any().fed().computed(text::grep)]),
    (b"head", HEAD),
    (b"hostname", HOSTNAME),
    (b"id", ID),
    (b"kill", &[any().same_builtin()]),
    (b"logname", &[any().once()]),
    (b"mawk", AWK),
    (b"nproc", &[any().once()]),
    (b"printf", &[any().same_builtin()]),
    (b"pwd", PWD),
    (b"sed", &[any().captured().computed(sed::sed)]),
    (b"seq", &[any().captured().computed(numbers::seq)]),
    (b"sleep", SLEEP),
    // `[[ ]]` is not suggested: it saves nothing more, treats the right side of `=` as a pattern, and evaluates operands of -eq.
    (b"test", &[any().same_builtin()]),
    (b"tr", TR),
    (b"true", &[of(NONE).same_builtin()]),
    (b"uname", &[any().once()]),
    (b"wc", WC),
    (b"which", WHICH),
    (b"whoami", WHOAMI),
];

const NONE: &[&[Word]] = &[&[]];
/// The shells that agree on most extensions.
const EXTENDED: &[Dialect] = &[Bash, Ksh, Zsh];

const OF_DIRNAME: &str = "${p%/*} keeps a name without a slash and turns /name into nothing, where dirname prints . and /; it does not \
                          skip a slash at the end, or several in a row; test `case $p in */*)` first if such names occur";
const OF_USER: &str = "$USER and $HOSTNAME are variables, which the environment or the script can change, and which cron and containers \
                       may leave unset";
const OF_REALTIME: &[&str] =
    &["$EPOCHREALTIME needs bash 5.0, and has microseconds: the last three digits of the nanoseconds are 000"];
const OF_FIRST_LINE: &str = "read returns only the first line, and exits with status 1 if that has no newline";
const OF_LETTERS: &str =
    "tr changes only a to z, the shell all letters of its locale, as in émile; LC_ALL=C restricts it to a to z";
const OF_CASE: &[&str] = &[OF_VARIABLE, OF_LETTERS, ECHO_DIFFERS];
const OF_CASE_IN_BASH: &[&str] = &["needs bash 4.0", OF_VARIABLE, OF_LETTERS, ECHO_DIFFERS];
const OF_SMALL: &str = "for small files, since mapfile stores every line, and not for output of another program; it counts a last line \
                        without a newline; wc also prints the name of a file argument";
const OF_ECHO: &str = "if echo feeds wc, wc counts one newline more";

const AWK: &[Row] = &[any().captured().computed(text::awk)];

const BASENAME: &[Row] = &[
    of(&[&[Is("--"), Any], &[Operand]]).expansion(["$(basename \"$p\")", "${p##*/}"], &[OF_BASENAME, OF_NEWLINES]),
    any().computed(names::basename_with_suffix),
];

const CAT: &[Row] = &[
    of(&[&[Operand]])
        .captured()
        .in_shells(EXTENDED)
        .builtin(["$(cat \"$f\")", "$(<\"$f\")"], &["for one readable file"]),
    of(&[&[Operand]]).captured().setting("x").expansion(
        ["x=$(cat \"$f\")", "IFS= read -r x <\"$f\""],
        &[
            "only for files of one line; sh has no equivalent for more",
            OF_FIRST_LINE,
        ],
    ),
];

const DATE: &[Row] = &[
    of(&[&[Is("+%s")]])
        .in_shells(&[Bash])
        .expansion(["$(date '+%s')", "$EPOCHSECONDS"], &["$EPOCHSECONDS needs bash 5.0"]),
    of(&[&[Is("+%s")]])
        .in_shells(&[Zsh])
        .expansion(["$(date '+%s')", "$EPOCHSECONDS"], &["after `zmodload zsh/datetime`"]),
    // In some locales the decimal separator is a comma.
    of(&[&[Is("+%s.%N")]])
        .in_shells(&[Bash])
        .expansion(["$(date '+%s.%N')", "${EPOCHREALTIME/,/.}000"], OF_REALTIME),
    of(&[&[Is("+%s%N")]])
        .in_shells(&[Bash])
        .expansion(["$(date '+%s%N')", "${EPOCHREALTIME//[.,]/}000"], OF_REALTIME),
    of(&[&[Is("+%s%3N")]])
        .in_shells(&[Bash])
        .expansion(["$(date '+%s%3N')", "$((${EPOCHREALTIME//[.,]/} / 1000))"], OF_REALTIME),
    of(&[&[Any]]).in_shells(&[Bash]).computed(names::date),
];

const DIRNAME: &[Row] =
    &[of(&[&[Operand], &[Is("--"), Any]]).expansion(["$(dirname \"$p\")", "${p%/*}"], &[OF_DIRNAME, OF_NEWLINES])];

const ECHO: &[Row] = &[
    any().in_shells(&[Bash]).same_builtin(),
    any().only_if(prints_the_same_everywhere).same_builtin(),
];

const EXPR: &[Row] = &[
    of(&[&[Any, OneOf(&["+", "-", "*", "/", "%"]), Any]]).computed(numbers::arithmetic),
    of(&[&[Any, OneOf(&["<", "<=", ">", ">=", "=", "!="]), Any]]).computed(numbers::comparison),
    of(&[&[Is("length"), Any]])
        .in_shells(EXTENDED)
        .expansion(["$(expr length \"$s\")", "${#s}"], &[]),
    of(&[&[Is("length"), Any]]).expansion(
        ["$(expr length \"$s\")", "${#s}"],
        &["sh may count bytes; expr counts characters"],
    ),
    of(&[&[Is("substr"), Any, Any, Any]]).in_shells(EXTENDED).expansion(
        ["$(expr substr \"$s\" 1 n)", "${s:0:n}"],
        &["positions start at 0, not at 1", ECHO_DIFFERS],
    ),
    // Without a group, expr prints the length of the match.
    of(&[&[Any, Is(":"), Any]])
        .in_shells(&[Bash])
        .only_if(|call| call.arguments[2].contains("\\("))
        .setting("y")
        .expansion(
            [
                "$(expr \"$s\" : '\\(regex\\)')",
                "y=; [[ $s =~ ^(regex) ]] && y=${BASH_REMATCH[1]}",
            ],
            &[
                "[[ =~ ]] takes extended regular expressions; expr takes basic ones, anchored at the beginning",
                ECHO_DIFFERS,
            ],
        ),
];

const HEAD: &[Row] = &[
    of(&[&[OneOf(&["-1", "-n1"])], &[Is("-n"), Is("1")]])
        .captured()
        .in_shells(EXTENDED)
        .setting("y")
        .expansion(
            ["$(echo \"$x\" | head -n1)", "IFS= read -r y <<<\"$x\""],
            &[OF_VARIABLE, ECHO_DIFFERS],
        ),
    of(&[&[OneOf(&["-1", "-n1"])], &[Is("-n"), Is("1")]])
        .captured()
        .expansion(
            ["$(echo \"$x\" | head -n1)", "${x%%\"$newline\"*}"],
            &[OF_VARIABLE, "$newline must contain a newline", ECHO_DIFFERS],
        ),
    of(&[&[OneOf(&["-1", "-n1"]), Operand], &[Is("-n"), Is("1"), Operand]])
        .captured()
        .setting("x")
        .expansion(["x=$(head -n1 \"$f\")", "IFS= read -r x <\"$f\""], &[OF_FIRST_LINE]),
];

const HOSTNAME: &[Row] = &[
    of(NONE)
        .in_shells(&[Bash])
        .expansion(["$(hostname)", "$HOSTNAME"], &[OF_USER]),
    of(NONE)
        .in_shells(&[Zsh])
        .expansion(["$(hostname)", "$HOST"], &[OF_USER]),
    // An argument would set the host name.
    any().only_if(has_only_options).once(),
];

const ID: &[Row] = &[
    of(&[&[Is("-u")]])
        .in_shells(&[Bash, Zsh])
        .expansion(["$(id -u)", "$EUID"], &[]),
    any().once(),
];

const PWD: &[Row] = &[
    of(&[&[], &[Is("-L")]]).expansion(
        ["$(/bin/pwd)", "$PWD"],
        &["/bin/pwd resolves symbolic links; $PWD keeps them"],
    ),
    of(&[&[Is("-P")]]).builtin(["$(/bin/pwd -P)", "$(pwd -P)"], &[]),
];

const SLEEP: &[Row] =
    &[of(&[&[OneOf(&["0", "0.0", "0s", ".0"])]]).expansion(["sleep 0", ":"], &["sleep 0 also yields the CPU"])];

const LOWER: Word = OneOf(&["a-z", "[a-z]", "[:lower:]"]);
const UPPER: Word = OneOf(&["A-Z", "[A-Z]", "[:upper:]"]);
const TO_UPPER: Row = of(&[&[LOWER, UPPER]]).captured();
const TO_LOWER: Row = of(&[&[UPPER, LOWER]]).captured();
const THROUGH: &str = "$(echo \"$x\" | {call})";

const TR: &[Row] = &[
    TO_UPPER
        .in_shells(&[Bash])
        .expansion([THROUGH, "${x^^}"], OF_CASE_IN_BASH),
    TO_UPPER
        .in_shells(&[Ksh])
        .setting("y")
        .expansion([THROUGH, "typeset -u y=$x"], OF_CASE),
    TO_UPPER.in_shells(&[Zsh]).expansion([THROUGH, "${(U)x}"], OF_CASE),
    TO_LOWER
        .in_shells(&[Bash])
        .expansion([THROUGH, "${x,,}"], OF_CASE_IN_BASH),
    TO_LOWER
        .in_shells(&[Ksh])
        .setting("y")
        .expansion([THROUGH, "typeset -l y=$x"], OF_CASE),
    TO_LOWER.in_shells(&[Zsh]).expansion([THROUGH, "${(L)x}"], OF_CASE),
    of(&[&[Any, Any]]).captured().in_shells(EXTENDED).computed(text::tr),
];

const COUNT_LINES: &str = "mapfile -t lines <\"$f\"; n=${#lines[@]}";

const WC: &[Row] = &[
    // dash counts bytes in every locale.
    of(&[&[Is("-m")]])
        .captured()
        .fed()
        .in_shells(EXTENDED)
        .expansion(["$(printf %s \"$x\" | wc -m)", "${#x}"], &[OF_ECHO]),
    of(&[&[Is("-c")]]).captured().fed().expansion(
        ["$(printf %s \"$x\" | wc -c)", "${#x}"],
        &["${#x} counts characters; it counts bytes only with LC_ALL=C", OF_ECHO],
    ),
    of(&[&[Is("-l")]])
        .captured()
        .in_shells(&[Bash])
        .setting("n")
        .expansion(["n=$(wc -l <\"$f\")", COUNT_LINES], &[OF_SMALL]),
    of(&[&[Is("-l"), Operand]])
        .captured()
        .in_shells(&[Bash])
        .setting("n")
        .expansion(["n=$(wc -l \"$f\")", COUNT_LINES], &[OF_SMALL]),
];

const WHICH: &[Row] = &[of(&[&[Operand]]).builtin(
    ["which \"$program\"", "command -v \"$program\""],
    &["command -v also finds functions, builtins and aliases"],
)];

const WHOAMI: &[Row] = &[
    of(NONE).in_shells(&[Posix]).once(),
    of(NONE).expansion(["$(whoami)", "$USER"], &[OF_USER]),
];

/// Whether every shell prints this the same: shells differ in options and backslashes.
fn prints_the_same_everywhere(call: &Call) -> bool {
    let has_options = call
        .arguments
        .first()
        .is_some_and(|word| word.starts_with('-') && word != "-n");
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
