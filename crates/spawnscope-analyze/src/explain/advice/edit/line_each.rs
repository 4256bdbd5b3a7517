//! Programs that answer for each operand, or for each line of their input, with one line, and interpreters whose code can loop over its operands.

use crate::explain::advice::phrases::name;
use crate::explain::advice::programs::{Together, joins};
use crate::model::launch::{base_name, is_version_of};
use crate::patterns::script::{Script, Simple, identifiers};
use crate::patterns::words::Words;

/// Programs that print one line for each operand.
const PRINT_A_LINE_EACH: Words =
    Words("b2sum md5sum readlink realpath sha1sum sha224sum sha256sum sha384sum sha512sum");
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
    /// Returns how a call prints one line for its last operand. `arguments` are without the program.
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
            (b"jq", [b"-r", path, _]) => plain(Together::Jq.join(&[path.to_vec()], &["x".to_owned()]).is_some()),
            (_, [_, code, _]) if is_interpreter(program) => plain(prints_once(code)),
            _ => plain(PRINT_A_LINE_EACH.contains(program) && joins(program, arguments)),
        }
    }

    /// Returns how a grep prints the number of lines that it finds in its last operand, instead of its exit status.
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

/// Whether a filter prints one line for each line that it reads. `words` begin with the program, `text` is the code of the line.
pub(in crate::explain::advice) fn answers_each_line(words: &[Vec<u8>], text: &[u8]) -> bool {
    let Some((program, arguments)) = words.split_first() else { return false };
    let has = |part: &[u8]| arguments.iter().any(|word| word.windows(part.len()).any(|window| window == part));
    match &program[..] {
        b"awk" | b"mawk" | b"gawk" => match arguments {
            [options @ .., code] => {
                let field = code.trim_ascii().strip_prefix(b"{").and_then(|code| code.trim_ascii().strip_suffix(b"}"));
                let printed = field.and_then(|field| field.trim_ascii().strip_prefix(b"print "));
                let is_field = |text: &[u8]| {
                    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"$, .*+-()\"_:".contains(byte);
                    let counts = [&b"++"[..], b"--"].iter().any(|part| text.windows(2).any(|two| two == *part));
                    text.iter().all(is_plain) && !counts && identifiers(text).all(|name| OF_A_LINE.contains(name))
                };
                options.iter().all(|option| option.starts_with(b"-F") && option.len() > 2)
                    && printed.is_some_and(is_field)
            }
            [] => false,
        },
        // A base would also be that of the next line.
        b"bc" => arguments.iter().all(|word| word == b"-l") && !text.windows(5).any(|part| part == b"base="),
        b"cut" => !has(b"-s") && !has(b"--only") && arguments.iter().all(|word| word.starts_with(b"-")),
        b"rev" => arguments.is_empty(),
        b"sed" => {
            matches!(arguments, [code] | [_, code] if super::adjacent::is_one_substitution(code) && arguments.iter().rev().skip(1).all(|option| matches!(&option[..], b"-E" | b"-r" | b"-e")))
        }
        b"tr" => ![&b"\\n"[..], b"\n", b"space", b"cntrl", b"-c", b"-C", b"-s", b"\\0"].iter().any(|part| has(part)),
        _ => false,
    }
}

pub(super) fn is_interpreter(program: &[u8]) -> bool {
    is_version_of(program, b"python") || program == b"node"
}

/// Whether code prints one line, if the text that it prints has one.
fn prints_once(code: &[u8]) -> bool {
    let code = String::from_utf8_lossy(code);
    let prints = ["print(", "console.log("].iter().map(|print| code.matches(print).count()).sum::<usize>();
    prints == 1 && !["for ", "while ", "end=", "def ", "=>", "if ", "write("].iter().any(|other| code.contains(other))
}

/// What may end the process, continue later, or differ in a loop.
const NOT_IN_A_LOOP: Words =
    Words("exit quit async await then( setTimeout setInterval .on( \"\"\" ''' __future__ stdin return");

/// Returns the position of the code of `python3 -c CODE FILE`, and the same code in a loop over its operands.
pub(super) fn looped_code(script: &Script<'_>, simple: &Simple<'_>) -> Option<(usize, String)> {
    let [program, option, code, _] = &simple.words[..] else { return None };
    let (program, option) = (program.literal()?, option.literal()?);
    let program = base_name(&program);
    let is_python = is_version_of(program, b"python") && option == b"-c";
    let is_node = program == b"node" && option == b"-e";
    let text = code.literal()?;
    let text = String::from_utf8(text).ok()?;
    let source = name(script.source(&code.range));
    let quote =
        source.chars().next().filter(|quote| "'\"".contains(*quote) && source.len() > 1 && source.ends_with(*quote))?;
    let inside = source[1..source.len() - 1].to_owned();
    let only_first = text.matches("argv").count() == text.matches("argv[1]").count() && text.contains("argv[1]");
    if inside.contains(quote) && quote == '\''
        || !only_first
        || text.contains("\\\n")
        || NOT_IN_A_LOOP.iter().any(|other| text.contains(other))
    {
        return None;
    }
    let inside = if is_node {
        format!("for (process.argv[1] of process.argv.slice(1)) {{ {inside} }}")
    } else if is_python && !text.contains('\n') {
        const COMPOUND: Words = Words("async class def for if try while with");
        let first = text.trim_start().split(|each: char| !each.is_alphanumeric()).next().unwrap_or_default();
        (!COMPOUND.contains(first.as_bytes()) && !text.starts_with('@')).then_some(())?;
        format!("import sys\nfor sys.argv[1] in sys.argv[1:]: {inside}")
    } else if is_python {
        format!(
            "import sys\nfor sys.argv[1] in sys.argv[1:]:\n {}",
            inside.trim_start_matches('\n').replace('\n', "\n ")
        )
    } else {
        return None;
    };
    Some((2, format!("{quote}{inside}{quote}")))
}
