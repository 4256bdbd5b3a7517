//! Whether a text in a script has one line: filters such as `cut` handle each line separately, an
//! expansion handles the whole text. Also finds programs that answer for each operand, or for each
//! line of their input, with one line.

use super::adjacent::{in_double_quotes, is_one_substitution};
use crate::explain::advice::phrases::name;
use crate::explain::advice::programs::{is_value_of_jq, joins};
use crate::model::launch::base_name;
use crate::patterns::programs::has_property;
use crate::patterns::script::{Assignment, For, Kind, Part, Script, Simple, Word, identifiers, names};
use crate::patterns::words::{Words, contains};

/// Filters that print one line, whatever they read.
const ONE_OF_ALL: &str = "cksum, head -1, head -n1, head -n 1, md5sum, sha1sum, sha256sum, sha384sum, sha512sum, tail -1, tail -n1, tail -n 1, \
                          wc -c, wc -l, wc -w";
/// Variables and functions of awk that depend on the line only.
const OF_A_LINE: Words = Words("NF index int length substr tolower toupper");
/// Values of more variables are not followed.
const MAX_VARIABLES: usize = 20;

/// Whether a word certainly has one line.
pub(super) fn is_one_line(script: &Script<'_>, word: &Word<'_>) -> bool {
    is_line(script, word, &mut Vec::new())
}

/// Like `is_one_line`, but takes for lines what other files pass to a function that this one never
/// calls, and a value that jq prints.
pub(super) fn may_be_one_line(script: &Script<'_>, word: &Word<'_>) -> bool {
    let is_named_once = |name: &[u8]| identifiers(script.text).filter(|word| *word == name).count() == 1;
    let is_library_function =
        |index: &usize| matches!(script.kind(*index), Kind::Function) && is_named_once(script.function_name(*index));
    let is_taken = |index: &usize| is_library_function(index) || is_value_of_json(script, *index);
    is_line(script, word, &mut (0..script.len()).filter(is_taken).map(|index| script.code(index)).collect())
}

/// Whether a command prints one value of one JSON file. Its text may have several lines, but rarely
/// has.
fn is_value_of_json(script: &Script<'_>, command: usize) -> bool {
    let Some(simple) = script.simple(command) else { return false };
    let [program, words @ ..] = &simple.words[..] else { return false };
    let is_option = |word: &&Word<'_>| word.literal().is_some_and(|text| text.starts_with(b"-"));
    let options = words.iter().take_while(is_option).count();
    let is_raw = words[..options].iter().all(|word| word.literal().as_deref() == Some(b"-r"));
    let filter = words.get(options).and_then(|word| word.literal().or(in_double_quotes(script.source(&word.range))));
    let is_value = filter.is_some_and(|filter| is_value_of_jq(&name(&filter)));
    let files = words.get(options + 1..).unwrap_or_default();
    program.literal().as_deref() == Some(b"jq")
        && is_raw
        && is_value
        && files.len() < 2
        && files.iter().all(is_one_word)
}

/// Whether a word certainly has a slash: it is written in the word, or in all values of its
/// variable.
pub(super) fn has_slash(script: &Script<'_>, word: &Word<'_>) -> bool {
    let is_written = |word: &Word<'_>| {
        word.parts.iter().any(|part| matches!(part, Part::Literal { text, .. } if text.contains(&b'/')))
    };
    let is_set_so = |index: usize, variable: &[u8]| match script.kind(index) {
        Kind::For(each) => each.name == variable && each.words.iter().all(is_written),
        _ => script.assigned(index).is_some_and(|(own, value)| own == variable && is_written(value)),
    };
    let has_values = |variable: &[u8]| {
        let mut setters = (0..script.len()).filter(|index| script.sets(*index, variable)).peekable();
        setters.peek().is_some() && setters.all(|index| is_set_so(index, variable))
    };
    is_written(word) || word.variable().is_some_and(has_values)
}

fn is_line<'t>(script: &Script<'t>, word: &Word<'t>, known: &mut Vec<&'t [u8]>) -> bool {
    word.parts.iter().all(|part| match part {
        Part::Literal { text, .. } => !text.contains(&b'\n'),
        Part::Pattern => true,
        Part::Variable { name, .. } => is_line_at(script, word, name, known),
        Part::Substitution { node, .. } => prints_one_line(script, *node, known),
        Part::Other { text, .. } => match part.changed() {
            Some((name, _)) => !text.contains(&b'\n') && is_line_at(script, word, name, known),
            None => {
                text.starts_with(b"$((") || text.starts_with(b"${#") || matches!(*text, b"$#" | b"$?" | b"$$" | b"$!")
            }
        },
    })
}

fn is_line_at<'t>(script: &Script<'t>, word: &Word<'t>, name: &'t [u8], known: &mut Vec<&'t [u8]>) -> bool {
    let at = word.range.start;
    match name {
        // The path of the script.
        b"0" => true,
        [b'1'..=b'9', ..] => is_parameter_line(script, at, known),
        _ => is_assigned_before(script, at, name, known) || is_variable_line(script, name, known),
    }
}

/// Whether the last statement before a position that may set a variable always runs before it, and
/// sets the variable to one line.
fn is_assigned_before<'t>(script: &Script<'t>, at: usize, name: &'t [u8], known: &[&'t [u8]]) -> bool {
    let is_list =
        |index: &usize| matches!(script.kind(*index), Kind::List { .. }) && script.range(*index).contains(&at);
    let Some(innermost) = (0..script.len()).rfind(is_list) else { return false };
    for each in std::iter::once(innermost).chain(script.ancestors(innermost)) {
        match script.kind(each) {
            Kind::For(of) if of.name == name => return has_lines(of),
            Kind::For(_) | Kind::Loop { .. } | Kind::Function => return false,
            Kind::List { .. } if script.may_set(&(script.start(each)..at), name) => return false,
            Kind::List { .. } => {}
            _ => continue,
        }
        let parent = script.parent(each);
        let mut before = (0..each).rev().filter(|other| script.parent(*other) == parent);
        if let Some(last) = before.find(|other| script.may_set(&script.range(*other), name)) {
            let has_branches = parent.is_some_and(|parent| {
                matches!(script.kind(parent), Kind::Compound) && !script.code(parent).starts_with(b"{")
            });
            let Some(command) = script.command_of(last).filter(|_| !has_branches) else { return false };
            let value = script.assigned(command).filter(|(variable, _)| *variable == name);
            let is_declared = |simple: &Simple<'t>| {
                contains(script.code(command), &[name, b"="].concat())
                    && declares_line(script, simple, name, &mut known.to_vec())
            };
            return value.is_some_and(|(_, value)| is_line(script, value, &mut known.to_vec()))
                || script.simple(command).is_some_and(is_declared);
        }
    }
    false
}

/// Whether everything that sets a variable sets it to one line.
fn is_variable_line<'t>(script: &Script<'t>, name: &'t [u8], known: &mut Vec<&'t [u8]>) -> bool {
    if known.contains(&name) {
        return true;
    }
    if known.len() >= 2 * MAX_VARIABLES {
        return false;
    }
    known.push(name);
    let mut setters = (0..script.len()).filter(|index| script.sets(*index, name)).peekable();
    setters.peek().is_some()
        && setters.all(|index| match script.kind(index) {
            Kind::For(each) => each.name == name && has_lines(each),
            Kind::Simple(simple) => {
                let mut own = simple.assignments.iter().filter(|assignment| assignment.name == name);
                let is_line =
                    |each: &Assignment<'t>| each.value.as_ref().is_some_and(|value| is_line(script, value, known));
                match simple.words.is_empty() {
                    true => own.all(is_line),
                    false => {
                        own.next().is_none()
                            && (reads_lines(script, simple, name) || declares_line(script, simple, name, known))
                    }
                }
            }
            _ => false,
        })
}

/// Whether each word of a loop is one line. Those that are split have no newlines.
fn has_lines(each: &For<'_>) -> bool {
    let is_quoted = |part: &Part<'_>| {
        matches!(part, Part::Variable { is_quoted: true, .. } | Part::Substitution { is_quoted: true, .. })
    };
    each.words.iter().all(|word| match &word.parts[..] {
        [only] if is_quoted(only) => false,
        _ => word.literal().is_none_or(|text| !text.contains(&b'\n')),
    })
}

/// Whether all parameters of the function around a position have one line, in all its calls.
fn is_parameter_line<'t>(script: &Script<'t>, at: usize, known: &mut Vec<&'t [u8]>) -> bool {
    let is_around = |index: &usize| matches!(script.kind(*index), Kind::Function) && script.range(*index).contains(&at);
    let Some(function) = (0..script.len()).rfind(is_around) else { return false };
    let (source, name) = (script.code(function), script.function_name(function));
    if known.contains(&source) {
        return true;
    }
    known.push(source);
    let calls = script.calls_everywhere(name).unwrap_or_default();
    let sets = script.calls_in(&script.range(function)).any(|program| program == b"set");
    known.len() <= 2 * MAX_VARIABLES
        && !(calls.is_empty() || sets)
        && calls
            .iter()
            .filter_map(|call| script.simple(*call))
            .all(|call| call.words.iter().skip(1).all(|word| is_line(script, word, known)))
}

/// Whether a command is a `read` of lines into variables.
fn reads_lines(script: &Script<'_>, simple: &Simple<'_>, name: &[u8]) -> bool {
    let mut words = simple.words.iter();
    words.next().and_then(Word::literal).as_deref() == Some(b"read")
        && words.all(|word| match word.literal().as_deref() {
            Some(b"-r") => true,
            Some(text) => !text.starts_with(b"-") && (text == name || !names(text, name)),
            None => !names(script.source(&word.range), name),
        })
}

/// Whether a command declares the variable without a value, or with a value of one line: `local
/// x=$y`.
fn declares_line<'t>(script: &Script<'t>, simple: &Simple<'t>, name: &'t [u8], known: &mut Vec<&'t [u8]>) -> bool {
    const BUILTINS: Words = Words("declare export local readonly typeset unset");
    let builtin = simple.words.first().and_then(Word::literal);
    let mut words = simple.words.iter().skip(1).filter(|word| names(script.source(&word.range), name));
    builtin.is_some_and(|builtin| BUILTINS.contains(&builtin))
        && words.all(|word| match &word.parts[..] {
            [Part::Literal { text, .. }, rest @ ..] if text.starts_with(name) => {
                let value = Word { range: word.range.clone(), parts: rest.to_vec() };
                !text.contains(&b'\n') && is_line(script, &value, known)
            }
            _ => is_line(script, word, known),
        })
}

/// Whether a substitution prints one line: a program that does, or filters of a text of one line.
fn prints_one_line<'t>(script: &Script<'t>, substitution: usize, known: &mut Vec<&'t [u8]>) -> bool {
    let is_command = |index: &usize| !matches!(script.kind(*index), Kind::List { .. } | Kind::Pipeline { .. });
    let commands = script.inside(substitution).filter(is_command).map(|index| Some((index, script.simple(index)?)));
    let Some(all) = commands.collect::<Option<Vec<(usize, &Simple<'t>)>>>() else { return false };
    let pipeline = script.only_child(substitution).and_then(|list| script.only_child(list));
    let last = pipeline.and_then(|pipeline| script.children(pipeline).filter_map(|each| script.simple(each)).last());
    if last.is_some_and(|last| prints_one_of_all(script, last)) {
        return true;
    }
    let mut is_first = true;
    all.iter().all(|(command, simple)| {
        let program = simple.words.first().and_then(Word::literal).unwrap_or_default();
        // Before a letter or a digit, it may stand for a newline. In sed, digits are groups.
        let is_escape =
            |next: u8| next.is_ascii_alphanumeric() && !(program == b"sed" && (b'1'..=b'9').contains(&next));
        let escapes =
            |text: &[u8]| text.windows(2).any(|two| two[0] == b'\\' && (is_escape(two[1]) || two[1] == b'\n'));
        let has_escape = simple.words.iter().any(|word| escapes(script.source(&word.range)));
        let prints = match std::mem::take(&mut is_first) {
            true if program == b"echo" => simple.words.iter().all(|word| is_line(script, word, known)),
            true if program == b"git" => is_line_of_git(simple),
            true if program == b"sed" => prints_numbered_line(simple),
            true => has_property(base_name(&program), "one-line") || known.contains(&script.code(*command)),
            false => {
                has_property(base_name(&program), "keeps-lines")
                    || simple.literals().is_some_and(|words| answers_each_line(&words, b""))
            }
        };
        prints && !has_escape
    })
}

/// Whether a command prints one line of all that it reads from its input or from one file.
fn prints_one_of_all(script: &Script<'_>, simple: &Simple<'_>) -> bool {
    let sources: Vec<&[u8]> = simple.words.iter().map(|word| script.source(&word.range)).collect();
    if simple.literals().is_some_and(|words| removes_newlines(&words)) {
        return true;
    }
    let is_form = |words: &[&[u8]]| ONE_OF_ALL.split(", ").any(|form| words.join(&b' ') == form.as_bytes());
    let has_file = simple.words.last().is_some_and(is_one_word);
    is_form(&sources) || has_file && is_form(&sources[..sources.len() - 1])
}

/// Whether sed prints one line of a file, by its number: `sed -n 2p`, `sed -n '2s/^Date: //p'`.
fn prints_numbered_line(simple: &Simple<'_>) -> bool {
    let [_, option, code, files @ ..] = &simple.words[..] else { return false };
    let code = code.literal().unwrap_or_default();
    let command = &code[code.iter().take_while(|byte| byte.is_ascii_digit()).count()..];
    let is_substitution = command.starts_with(b"s") && command.ends_with(b"p");
    let is_line = command == b"p" || is_substitution && !command.iter().any(|byte| b";}\n".contains(byte));
    let is_number = command.len() < code.len();
    option.literal().as_deref() == Some(b"-n")
        && is_number
        && is_line
        && files.len() < 2
        && files.iter().all(is_one_word)
}

/// Whether a tr removes or replaces all newlines.
fn removes_newlines(words: &[Vec<u8>]) -> bool {
    let has_newline = |set: &[u8]| [&b"\\n"[..], b"\n", b"space:", b"cntrl:"].iter().any(|part| contains(set, part));
    match &words.iter().map(Vec::as_slice).collect::<Vec<_>>()[..] {
        [b"tr", b"-d", set] => has_newline(set) && !set.starts_with(b"^"),
        [b"tr", b"-dc" | b"-cd", set] => !has_newline(set) && !contains(set, b"\\0") && !contains(set, b"\\1"),
        [b"tr", b"\\n", to] => to.len() == 1 && *to != b"\n",
        _ => false,
    }
}

fn is_one_word(word: &Word<'_>) -> bool {
    word.parts.iter().all(|part| matches!(part, Part::Literal { .. } | Part::Variable { is_quoted: true, .. }))
}

/// Whether git prints one line about one commit.
fn is_line_of_git(simple: &Simple<'_>) -> bool {
    let words = simple.texts();
    let [_, subcommand, words @ ..] = &words[..] else { return false };
    let has_format = words.iter().any(|word| has_line_format(word));
    let options = words.iter().filter(|word| word.starts_with(b"-")).count();
    match &subcommand[..] {
        b"describe" => words.len() - options < 2,
        b"log" => has_format && words.iter().any(|word| matches!(&word[..], b"-1" | b"-n1")),
        b"rev-parse" | b"symbolic-ref" => words.len() - options == 1 && options < 2,
        b"show" => has_format && words.iter().any(|word| matches!(&word[..], b"-s" | b"--no-patch")),
        _ => false,
    }
}

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
            (b"jq", [b"-r", path, _]) => plain(is_value_of_jq(&name(path))),
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
    // The name of a tag may print more.
    (commit.len() >= 40 && commit.iter().all(u8::is_ascii_hexdigit)).then_some(())?;
    match words {
        [b"rev-parse", b"--short"] => {
            Some(LineEach::With(vec![(1, "show".to_owned()), (2, "-s --format=%h".to_owned())]))
        }
        [b"show", b"-s" | b"--no-patch", format] | [b"show", format, b"-s" | b"--no-patch"] => {
            has_line_format(format).then(|| LineEach::With(Vec::new()))
        }
        [b"log", option, format] | [b"log", format, option] if matches!(*option, b"-1" | b"-n1") => {
            let at = if words[1] == *option { 2 } else { 3 };
            has_line_format(format).then(|| LineEach::With(vec![(1, "show".to_owned()), (at, "-s".to_owned())]))
        }
        _ => None,
    }
}

/// Whether an option of git is a format of one line of text for each commit.
pub(super) fn has_line_format(option: &[u8]) -> bool {
    const FORMATS: [&[u8]; 3] = [b"--format=format:", b"--pretty=format:", b"--format="];
    const FIELDS: &[u8] = b"HhTtPpsf";
    let is_field = |field: &[u8]| match field {
        [b'a' | b'c', second, ..] => second.is_ascii_alphabetic(),
        [first, ..] => FIELDS.contains(first),
        [] => false,
    };
    let is_line = |format: &[u8]| !format.contains(&b'\n') && format.split(|byte| *byte == b'%').skip(1).all(is_field);
    FORMATS.iter().find_map(|begin| option.strip_prefix(*begin)).is_some_and(is_line)
}

/// Whether a filter of what wc prints about one file leaves its number alone.
pub(super) fn keeps_number(words: &[Vec<u8>]) -> bool {
    const FILTERS: [&str; 6] =
        ["awk {print $1}", "cut -d  -f1", "cut -d   -f1", "cut -d   -f 1", "tr -d  ", "tr -d [:space:]"];
    FILTERS.iter().any(|filter| words.join(&b' ') == filter.as_bytes())
}

/// Whether a filter prints one line for each line that it reads. `words` begin with the program,
/// `text` is the code of the line.
pub(crate) fn answers_each_line(words: &[Vec<u8>], text: &[u8]) -> bool {
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
            matches!(arguments, [code] | [_, code] if is_one_substitution(code) && arguments.iter().rev().skip(1).all(|option| matches!(&option[..], b"-E" | b"-r" | b"-e")))
        }
        b"tr" => ![&b"\\n"[..], b"\n", b"space", b"cntrl", b"-c", b"-C", b"-s", b"\\0"].iter().any(|part| has(part)),
        _ => false,
    }
}
