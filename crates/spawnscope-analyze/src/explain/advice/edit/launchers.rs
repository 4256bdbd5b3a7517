//! Edits of `xargs` and `find -exec` that launch a program for each input: they pass it many
//! inputs. A shell that they launch loops over them.

use std::ops::Range;

use super::shell::FoundCall;
use super::{Result, Splice, inserted, or_refuse, refuse, refuse_for, refuse_if, splice, spliced};
use crate::explain::advice::phrases::name;
use crate::model::launch::base_name;
use crate::patterns::programs::has_property;
use crate::patterns::script::{Assignment, Kind, Part, Script, identifiers, is_name_byte, names};
use crate::patterns::shells::is_shell;
use crate::patterns::words::contains;
use crate::patterns::xargs::XargsOptions;

/// Passes many inputs at once.
pub(super) fn pass_many(call: &FoundCall<'_>) -> Result<Vec<Splice>> {
    refuse_if(call.rewrite.has_failures, format!("{} failed", call.program()))?;
    let words = call.simple.texts();
    match call.rewrite.program.ends_with(b"find") {
        true => find(call, &words),
        false => xargs(call, &words),
    }
}

/// `find -exec program {} \;` becomes `find -exec program {} +`.
fn find(call: &FoundCall<'_>, words: &[Vec<u8>]) -> Result<Vec<Splice>> {
    let exec = or_refuse(words.iter().rposition(|word| word == b"-exec"), "find has no -exec")?;
    let [command @ .., file, end] = &words[exec + 1..] else { return refuse("find has no command") };
    let is_last = file == b"{}" && end == b";" && !command.iter().any(|word| contains(word, b"{}"));
    refuse_if(!is_last, "`{}` is not the last argument of the command")?;
    let last = words.len() - 1;
    let plus = splice(call.simple.words[last].range.clone(), b"+");
    let body = looped(call, &words[exec + 1..last - 1], exec + 1, None)?;
    Ok(body.into_iter().chain([plus]).collect())
}

/// `xargs -n1 program` and `xargs -I{} program {}` become `xargs program`.
fn xargs(call: &FoundCall<'_>, words: &[Vec<u8>]) -> Result<Vec<Splice>> {
    let options = XargsOptions::of(&words.iter().map(Vec::as_slice).collect::<Vec<_>>());
    refuse_for(options.other.map(|other| format!("xargs has the option `{}`", name(&words[other]))))?;
    refuse_if(
        options.single.is_empty() || options.parallel.is_some() || options.command >= words.len(),
        "xargs already passes several inputs, or to several processes",
    )?;
    let command = &words[options.command..];
    let mut splices: Vec<Splice> = options.single.iter().map(|at| without(call, *at)).collect();
    let Some(placeholder) = &options.placeholder else {
        splices.extend(looped(call, command, options.command, None)?);
        return Ok(splices);
    };
    // With a placeholder, an input is a line, and xargs does nothing without inputs.
    let separator = if options.has_separator { " -r" } else { " -r -d '\\n'" };
    let end = call.simple.words[0].range.end;
    splices.push(inserted(end, separator.as_bytes().to_vec()));
    let uses: Vec<usize> = (0..command.len()).filter(|at| contains(&command[*at], placeholder)).collect();
    match uses[..] {
        [at] if at + 1 == command.len() && command[at] == *placeholder && at > 0 => {
            splices.push(without(call, options.command + at));
            splices.extend(looped(call, &command[..at], options.command, None)?);
        }
        [2] if command.len() == 3 => splices.extend(looped(call, command, options.command, Some(placeholder))?),
        _ => return refuse(format!("`{}` is not the last argument of the command", name(placeholder))),
    }
    Ok(splices)
}

/// Removes a word and the blanks before it.
fn without(call: &FoundCall<'_>, at: usize) -> Splice {
    let words = &call.simple.words;
    splice(words[at - 1].range.end..words[at].range.end, "")
}

/// Returns the change of `sh -c 'code' sh`: a loop over the arguments. Nothing for other programs,
/// which take many themselves. `start` is the position of the first word, `placeholder` the text
/// that stands for the input in the code.
fn looped(call: &FoundCall<'_>, command: &[Vec<u8>], start: usize, placeholder: Option<&[u8]>) -> Result<Vec<Splice>> {
    if !command.first().is_some_and(|program| is_shell(base_name(program))) {
        return Ok(Vec::new());
    }
    // Without a name for the shell, the input is `$0`.
    let (code, shell_name, parameter) = match command {
        [_, option, code] if option == b"-c" => (code, " sh", b'0'),
        [_, option, code, _] if option == b"-c" && placeholder.is_none() => (code, "", b'1'),
        _ => return refuse("the shell has other arguments"),
    };
    let range = call.simple.words[start + 2].range.clone();
    let file = ["f", "file", "input"].into_iter().find(|file| !names(code, file.as_bytes())).unwrap_or("each_file");
    let body = name(&with_variable(code, file, placeholder, parameter)?);
    let end = if body.contains('\n') { "\n" } else { "; " };
    let text = format!("'for {file}; do {body}{end}done'{shell_name}");
    Ok(vec![splice(range, text)])
}

/// Returns code with a variable in place of the parameter or the placeholder. It must do the same
/// when it is repeated in one shell.
fn with_variable(code: &[u8], file: &str, placeholder: Option<&[u8]>, parameter: u8) -> Result<Vec<u8>> {
    let script = or_refuse(Script::parse(code), "the shell code has syntax that Spawnscope does not read")?;
    let has_part = [&b"'"[..], b"<<", b" #", b"\n#", b":=", b"+=", b"++"].iter().any(|part| contains(code, part));
    refuse_if(has_part, "the shell code contains quotes, counters or comments")?;
    refuse_if((0..script.len()).any(|index| lasts(&script, index)), "the shell code affects the next input, too")?;
    let uses = match placeholder {
        Some(placeholder) => placeholders(&script, placeholder, file),
        None => parameters(code, parameter).map(|uses| {
            let is_longer = |range: &Range<usize>| code.get(range.end).is_some_and(|next| is_name_byte(*next));
            let is_braced = |range: &Range<usize>| is_longer(range) && code[range.start - 1] == b'$';
            let text = |range: &Range<usize>| if is_braced(range) { format!("{{{file}}}") } else { file.to_owned() };
            uses.into_iter().map(|range| splice(range.clone(), text(&range))).collect()
        }),
    };
    let uses = uses.filter(|uses| !uses.is_empty());
    let changed = spliced(code, &or_refuse(uses, "the shell code uses its arguments in other ways")?);
    Ok(changed.trim_ascii().strip_suffix(b";").unwrap_or(changed.trim_ascii()).to_vec())
}

/// Whether a part of the code affects what is executed after it: a command that does, or a variable
/// that is not set again at the beginning.
fn lasts(script: &Script<'_>, index: usize) -> bool {
    let start = script.start(index);
    match script.kind(index) {
        Kind::Function | Kind::Expression(_) | Kind::Loop { .. } => true,
        Kind::List { is_background } => *is_background,
        Kind::For(each) => is_used_before(script, each.name, start),
        Kind::Simple(simple) if !simple.words.is_empty() => {
            script.program(index).is_none_or(|command| command.is_empty() || has_property(&command, "lasts"))
        }
        Kind::Simple(simple) => {
            let is_always = script.ancestors(index).all(|each| {
                let is_list = matches!(script.kind(each), Kind::List { .. } | Kind::Pipeline { .. });
                is_list && script.start(each) == start
            });
            let is_set = |each: &Assignment<'_>| {
                let value = each.value.as_ref().map(|value| script.source(&value.range));
                let is_new = value.is_some_and(|value| !names(value, each.name));
                is_always && is_new && !is_used_before(script, each.name, start)
            };
            !simple.assignments.iter().all(is_set)
        }
        _ => false,
    }
}

fn is_used_before(script: &Script<'_>, variable: &[u8], end: usize) -> bool {
    identifiers(&script.text[..end]).any(|each| each == variable)
}

/// Returns where the code has the digit of `$1` and `${1...}`. `None` if it has other parameters.
fn parameters(code: &[u8], parameter: u8) -> Option<Vec<Range<usize>>> {
    let mut uses = Vec::new();
    for at in (0..code.len()).filter(|at| code[*at] == b'$') {
        let digit = at + 1 + usize::from(code.get(at + 1) == Some(&b'{'));
        let is_longer = digit > at + 1 && code.get(digit + 1).is_some_and(u8::is_ascii_digit);
        match code.get(digit) {
            _ if at > 0 && code[at - 1] == b'\\' => return None,
            Some(byte) if *byte == parameter && !is_longer => uses.push(digit..digit + 1),
            Some(b'0'..=b'9' | b'@' | b'*' | b'#') => return None,
            _ => {}
        }
    }
    Some(uses)
}

/// Returns the changes of the words that contain the placeholder of xargs, within double quotes or
/// without any quotes. `None` if it is also elsewhere.
fn placeholders(script: &Script<'_>, text: &[u8], file: &str) -> Option<Vec<Splice>> {
    parameters(script.text, b'-')?;
    let commands = (0..script.len()).filter_map(|index| script.simple(index));
    let words = commands.flat_map(|simple| {
        simple.all_words().filter(|word| simple.words.first().map(|first| &first.range) != Some(&word.range))
    });
    let mut changes = Vec::new();
    for word in words {
        let nested =
            |part: &Part<'_>| if let Part::Substitution { node, .. } = part { Some(script.range(*node)) } else { None };
        let nested: Vec<Range<usize>> = word.parts.iter().filter_map(nested).collect();
        let own = word.range.clone().filter(|at| !nested.iter().any(|range| range.contains(at)));
        let quotes: Vec<usize> = own.clone().filter(|at| script.text[*at] == b'"').collect();
        let is_quoted = quotes[..] == [word.range.start, word.range.end - 1];
        for at in own.filter(|at| script.text[*at..].starts_with(text)) {
            let is_longer = script.text.get(at + text.len()).is_some_and(|next| is_name_byte(*next));
            let text_of_file = match (is_quoted, quotes.is_empty()) {
                (true, _) if is_longer => format!("${{{file}}}"),
                (true, _) => format!("${file}"),
                (false, true) => format!("\"${file}\""),
                (false, false) => return None,
            };
            changes.push(splice(at..at + text.len(), text_of_file));
        }
    }
    changes.sort_by_key(|change| change.range.start);
    let all = script.text.windows(text.len().max(1)).filter(|window| *window == text).count();
    (changes.len() == all).then_some(changes)
}
