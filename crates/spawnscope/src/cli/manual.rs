//! Generates man pages and completions from the definition in `args`.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use anyhow::{Context, Result};
use clap::{Command, CommandFactory};
use clap_complete::Shell;
use clap_mangen::Man;

use super::verbs::Arguments;

pub fn write_pages(directory: &Path) -> Result<()> {
    fs::create_dir_all(directory).with_context(|| format!("failed to create {}", directory.display()))?;
    let mut command = Arguments::command().disable_help_subcommand(true);
    command.build();
    write_page(&command, "spawnscope", directory)?;
    for verb in command.get_subcommands().filter(|verb| !verb.is_hide_set()) {
        write_page(verb, &format!("spawnscope-{}", verb.get_name()), directory)?;
    }
    Ok(())
}

fn write_page(command: &Command, name: &str, directory: &Path) -> Result<()> {
    let page = Man::new(command.clone()).title(name.to_uppercase()).manual("Spawnscope");
    let mut text = Vec::new();
    render(&page, command, &mut text).context("failed to render a man page")?;
    let path = directory.join(format!("{name}.1"));
    fs::write(&path, text).with_context(|| format!("failed to write {}", path.display()))
}

/// Renders a page with the sections of clap_mangen, but puts the text after the options under
/// separate headings: examples verbatim, other text as paragraphs.
fn render(page: &Man, command: &Command, text: &mut Vec<u8>) -> io::Result<()> {
    page.render_title(text)?;
    page.render_name_section(text)?;
    write_synopsis(command, text)?;
    page.render_description_section(text)?;
    page.render_options_section(text)?;
    if command.get_subcommands().any(|verb| !verb.is_hide_set()) {
        page.render_subcommands_section(text)?;
    }
    let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let mut notes: Vec<&str> = Vec::new();
    for part in after.split("\n\n").filter(|part| !part.is_empty()) {
        match part.split_once(":\n") {
            Some(("Examples", lines)) => write_lines("EXAMPLES", lines, text)?,
            _ => notes.push(part),
        }
    }
    if !notes.is_empty() {
        write_paragraphs("NOTES", &notes, text)?;
    }
    Ok(())
}

/// Writes the usage of the help text. The synopsis of clap_mangen lists options without their
/// values.
fn write_synopsis(command: &Command, text: &mut Vec<u8>) -> io::Result<()> {
    let usage = command.clone().render_usage().to_string();
    write_lines("SYNOPSIS", &usage.trim_start_matches("Usage: ").replace("\n       ", "\n"), text)
}

/// Writes lines verbatim, without the indentation of the help text: the section macro indents them.
fn write_lines(heading: &str, lines: &str, text: &mut Vec<u8>) -> io::Result<()> {
    let lines: Vec<&str> = lines.lines().map(|line| line.strip_prefix("  ").unwrap_or(line)).collect();
    writeln!(text, ".SH {heading}\n.nf\n{}\n.fi", escape_roff(&lines.join("\n")))
}

/// Writes paragraphs that the man page viewer fills to the terminal's width.
fn write_paragraphs(heading: &str, paragraphs: &[&str], text: &mut Vec<u8>) -> io::Result<()> {
    let paragraphs: Vec<String> = paragraphs.iter().map(|paragraph| escape_roff(paragraph)).collect();
    // roff would treat a line that begins with a dot as a request.
    let paragraphs = paragraphs.iter().map(|paragraph| paragraph.replace("\n.", "\n\\&."));
    writeln!(text, ".SH {heading}\n{}", paragraphs.collect::<Vec<_>>().join("\n.PP\n"))
}

fn escape_roff(text: &str) -> String {
    text.replace('\\', "\\e").replace('-', "\\-").replace('\'', "\\(aq")
}

pub fn print_help(help: &clap::Error) -> Result<()> {
    help.print().context("failed to write to standard output")
}

/// Prints a completion script without the hidden verbs, which spawnscope uses internally.
pub fn print_completions(shell: Shell) -> Result<()> {
    let whole = Arguments::command();
    let visible = whole.get_subcommands().filter(|verb| !verb.is_hide_set()).cloned();
    let mut command = Command::new("spawnscope")
        .args(whole.get_arguments().cloned())
        .subcommands(visible)
        .version(env!("CARGO_PKG_VERSION"));
    // clap_complete panics if it cannot write, so it writes to memory.
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, "spawnscope", &mut script);
    if shell == Shell::Fish {
        script.extend_from_slice(fish_positionals(&command).as_bytes());
    }
    let mut stdout = io::stdout().lock();
    let written = stdout.write_all(&script).and_then(|()| stdout.flush());
    written.context("failed to write the completion script")
}

/// Returns fish commands that complete the values of positional arguments, such as the checks of
/// `doctor`. clap_complete completes only values of options.
fn fish_positionals(command: &Command) -> String {
    let mut lines = String::new();
    for verb in command.get_subcommands() {
        for values in verb.get_positionals().filter_map(|argument| argument.get_value_parser().possible_values()) {
            let names: Vec<String> = values.map(|value| value.get_name().to_owned()).collect();
            lines.push_str(&format!(
                "complete -c spawnscope -n \"__fish_spawnscope_using_subcommand {}\" -f -a \"{}\"\n",
                verb.get_name(),
                names.join(" ")
            ));
        }
    }
    lines
}
