//! Programs that answer for each operand, or for each line of their input, with one line.

use crate::explain::advice::phrases::name;
use crate::explain::advice::programs::{Together, joins};
use crate::patterns::programs::has_property;
use crate::patterns::script::identifiers;
use crate::patterns::words::{Words, contains};

/// Variables and functions of awk that depend on the line only.
const OF_A_LINE: Words = Words("NF index int length substr tolower toupper");

/// How a program prints one line for each operand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum LineEach {
    /// If words of the call are changed, by their positions.
    With(Vec<(usize, String)>),
    /// A number before the name, and perhaps a total at the end.
    Count,
}

impl LineEach {
    /// Returns how a call prints one line for its last operand. `arguments` are without the
    /// program.
    pub(super) fn of(program: &[u8], arguments: &[&[u8]]) -> Option<LineEach> {
        let has_format =
            arguments.iter().any(|argument| argument.starts_with(b"-c") || argument.starts_with(b"--format"));
        let is_line = !arguments.iter().any(|argument| argument.contains(&b'\n'));
        let plain = |is_known: bool| is_known.then(|| LineEach::With(Vec::new()));
        match (program, arguments) {
            (b"stat", _) => plain(has_format && is_line),
            (b"git", [words @ .., commit]) => of_git(words, commit),
            (b"grep", [option, _, _]) if option.starts_with(b"-c") && !option.contains(&b'r') => {
                Some(LineEach::With(vec![(1, format!("-h {}", name(option)))]))
            }
            (b"wc", [b"-l" | b"-c" | b"-m" | b"-w"] | [b"-l" | b"-c" | b"-m" | b"-w", _]) => Some(LineEach::Count),
            (b"jq", [b"-r", path, _]) => plain(Together::Jq.join(&[path.to_vec()], &["x".to_owned()], false).is_some()),
            _ => plain(has_property(program, "line-each") && joins(program, arguments)),
        }
    }

    /// Returns how a grep prints the number of lines that it finds in its last operand, instead of
    /// its exit status.
    pub(super) fn of_condition(arguments: &[&[u8]]) -> Option<LineEach> {
        let (at, letters, rest) = match arguments {
            [option, rest @ .., _, _] if option.len() > 1 && option.starts_with(b"-") => (1, &option[1..], rest),
            [_, _] => (0, &b""[..], &[][..]),
            _ => return None,
        };
        let is_known = letters.iter().all(|letter| b"EFiqswx".contains(letter))
            && rest.iter().all(|word| matches!(*word, b"--" | b"-e"));
        let program = if at == 0 { "grep " } else { "" };
        let letters = name(letters).replace('q', "");
        is_known.then(|| LineEach::With(vec![(at, format!("{program}-hc{letters}"))]))
    }
}

/// Returns how git prints one line about a commit. `git log` would look for its ancestors, too.
fn of_git(words: &[&[u8]], commit: &[u8]) -> Option<LineEach> {
    const FIELDS: &[u8] = b"HhTtPpsf";
    let is_line = |word: &[u8]| {
        let format = word.strip_prefix(b"--format=").or(word.strip_prefix(b"--pretty=format:"))?;
        let mut fields = format.split(|byte| *byte == b'%').skip(1);
        let is_field = |field: &[u8]| match field {
            [b'a' | b'c', second, ..] => second.is_ascii_alphabetic(),
            [first, ..] => FIELDS.contains(first),
            [] => false,
        };
        fields.all(is_field).then_some(())
    };
    // The name of a tag may print more.
    (commit.len() >= 40 && commit.iter().all(u8::is_ascii_hexdigit)).then_some(())?;
    match words {
        [b"rev-parse", b"--short"] => {
            Some(LineEach::With(vec![(1, "show".to_owned()), (2, "-s --format=%h".to_owned())]))
        }
        [b"show", b"-s" | b"--no-patch", format] | [b"show", format, b"-s" | b"--no-patch"] => {
            is_line(format).map(|()| LineEach::With(Vec::new()))
        }
        [b"log", option, format] | [b"log", format, option] if matches!(*option, b"-1" | b"-n1") => {
            let at = if words[1] == *option { 2 } else { 3 };
            is_line(format).map(|()| LineEach::With(vec![(1, "show".to_owned()), (at, "-s".to_owned())]))
        }
        _ => None,
    }
}

/// Whether a filter of what wc prints about one file leaves its number alone.
pub(super) fn keeps_number(words: &[Vec<u8>]) -> bool {
    const FILTERS: [&str; 6] =
        ["awk {print $1}", "cut -d  -f1", "cut -d   -f1", "cut -d   -f 1", "tr -d  ", "tr -d [:space:]"];
    FILTERS.iter().any(|filter| words.join(&b' ') == filter.as_bytes())
}

/// Whether a filter prints one line for each line that it reads. `words` begin with the program,
/// `text` is the code of the line.
pub(in crate::explain::advice) fn answers_each_line(words: &[Vec<u8>], text: &[u8]) -> bool {
    let Some((program, arguments)) = words.split_first() else { return false };
    let has = |part: &[u8]| arguments.iter().any(|word| contains(word, part));
    match &program[..] {
        b"awk" | b"mawk" | b"gawk" => match arguments {
            [options @ .., code] => {
                let field = code.trim_ascii().strip_prefix(b"{").and_then(|code| code.trim_ascii().strip_suffix(b"}"));
                let printed = field.and_then(|field| field.trim_ascii().strip_prefix(b"print "));
                let is_field = |text: &[u8]| {
                    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"$, .*+-()\"_:".contains(byte);
                    let counts = contains(text, b"++") || contains(text, b"--");
                    text.iter().all(is_plain) && !counts && identifiers(text).all(|name| OF_A_LINE.contains(name))
                };
                options.iter().all(|option| option.starts_with(b"-F") && option.len() > 2)
                    && printed.is_some_and(is_field)
            }
            [] => false,
        },
        // A base would also be that of the next line.
        b"bc" => arguments.iter().all(|word| word == b"-l") && !contains(text, b"base="),
        b"cut" => !has(b"-s") && !has(b"--only") && arguments.iter().all(|word| word.starts_with(b"-")),
        b"rev" => arguments.is_empty(),
        b"sed" => {
            matches!(arguments, [code] | [_, code] if super::adjacent::is_one_substitution(code) && arguments.iter().rev().skip(1).all(|option| matches!(&option[..], b"-E" | b"-r" | b"-e")))
        }
        b"tr" => ![&b"\\n"[..], b"\n", b"space", b"cntrl", b"-c", b"-C", b"-s", b"\\0"].iter().any(|part| has(part)),
        _ => false,
    }
}
