//! Errors in the command line: what was meant, and which values an argument has.

use std::env;
use std::ffi::OsString;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Parser};

use super::output::escape_lines;
use super::verbs::Arguments;
use crate::present::text;

pub fn print(error: &clap::Error) {
    // The error does not mark which words it quotes from the command line. Therefore the arguments
    // are escaped and parsed again.
    let typed: Vec<OsString> = env::args_os().collect();
    let shown = typed.iter().map(|argument| text::escape(argument.as_encoded_bytes()));
    let mut escaped_error = Arguments::try_parse_from(shown).err();
    let is_help = typed.get(1).is_some_and(|verb| verb == "help");
    if let Some(escaped_error) =
        escaped_error.as_mut().filter(|escaped_error| escaped_error.kind() == ErrorKind::InvalidSubcommand && !is_help)
    {
        let command = text::command_line(typed.iter().skip(1).map(|argument| argument.as_bytes()), None);
        suggest_record(escaped_error, &command);
    }
    if let Some(missing) = escaped_error.as_mut().filter(|error| error.kind() == ErrorKind::MissingRequiredArgument) {
        list_values(missing, typed.get(1));
    }
    let message = escaped_error.as_ref().unwrap_or(error).render().to_string();
    let _ = writeln!(io::stderr(), "{}", escape_lines(&name_the_numbers(message.trim_end())));
}

/// Says which numbers an option takes, instead of clap's and the standard library's reasons for
/// refusing one.
fn name_the_numbers(message: &str) -> String {
    let message = message.replace("invalid digit found in string", "needs a whole number");
    let (first, rest) = message.split_once('\n').unwrap_or((&message, ""));
    let refused = first.rsplit_once(": ").and_then(|(what, reason)| Some((what, reason.split_once(" is not in ")?.1)));
    let Some((what, (low, high))) = refused.and_then(|(what, range)| Some((what, range.split_once("..=")?))) else {
        return message;
    };
    let is_limit_of_type = high.parse().is_ok_and(|high: u32| high >= i32::MAX as u32);
    let end = if is_limit_of_type { "on".to_owned() } else { format!("to {high}") };
    format!("{what}: needs a whole number from {low} {end}\n{rest}")
}

fn list_values(error: &mut clap::Error, verb: Option<&OsString>) {
    let mut definition = Arguments::command();
    // An argument has a text only in a complete definition.
    definition.build();
    let verb = verb.and_then(|verb| definition.find_subcommand(verb));
    let Some(ContextValue::Strings(missing)) = error.get(ContextKind::InvalidArg) else { return };
    let arguments = verb.into_iter().flat_map(clap::Command::get_arguments);
    let values = arguments.filter(|argument| missing.contains(&argument.to_string()));
    let names: Vec<String> =
        values.flat_map(clap::Arg::get_possible_values).map(|value| value.get_name().to_owned()).collect();
    if !names.is_empty() {
        let tip = format!("possible values: {}", names.join(", "));
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
}

/// If a command was typed instead of a verb, adds the tip "did you mean `spawnscope record --
/// COMMAND`?". clap's own tip is kept if it names a similar verb that is not hidden.
fn suggest_record(error: &mut clap::Error, command: &str) {
    let definition = Arguments::command();
    let typed = match error.get(ContextKind::InvalidSubcommand) {
        Some(ContextValue::String(typed)) => typed.clone(),
        _ => String::new(),
    };
    if let Some(ContextValue::Strings(mut names)) = error.remove(ContextKind::SuggestedSubcommand) {
        names.retain(|name| {
            let is_hidden = definition.find_subcommand(name).is_some_and(clap::Command::is_hide_set);
            !is_hidden && is_similar(&typed, name)
        });
        if !names.is_empty() {
            error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(names));
        }
    }
    let tip = format!("did you mean `spawnscope record -- {command}`?");
    error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
}

/// A name is similar if at most one in CHARACTERS_PER_MISTAKE of its characters is wrong.
const CHARACTERS_PER_MISTAKE: usize = 3;

/// Whether a user who typed `typed` may have meant `name`.
fn is_similar(typed: &str, name: &str) -> bool {
    let longer = typed.chars().count().max(name.chars().count());
    let is_beginning = !typed.is_empty() && name.starts_with(typed);
    is_beginning || strsim::osa_distance(typed, name) <= (longer / CHARACTERS_PER_MISTAKE).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistyped_names_are_similar_and_other_words_are_not() {
        for (typed, name) in
            [("reprot", "report"), ("recrod", "record"), ("tpo", "top"), ("diffs", "diff"), ("rec", "record")]
        {
            assert!(is_similar(typed, name), "{typed} {name}");
        }
        for (typed, name) in [("nosuch", "bench"), ("make", "tree"), ("cargo", "record"), ("", "top")] {
            assert!(!is_similar(typed, name), "{typed} {name}");
        }
    }
}
