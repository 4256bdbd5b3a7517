//! Generates man pages and completions from the definition in `args`.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use anyhow::{Context, Result};
use clap::{Arg, Command, CommandFactory};
use clap_complete::Shell;
use clap_mangen::Man;

use super::args::Arguments;

/// The text on the overhead of recording. A test compares its figures with README.md.
const OVERHEAD: &str = "\
Starting and finishing takes 189 ms (quartiles 172 to 202). When recorded, a storm
of launches (bash, 1,000 x /bin/true) takes 1.06 (quartiles 1.01 to 1.08) times
as long, with --stacks 1.09 (quartiles 1.06 to 1.14), and GNU hello's cold
configure 1.01 (quartiles 0.99 to 1.05). For each of 4,000 launches through
xargs, 334 bytes are stored. A program that mostly makes system calls can take
twice as long.

These are medians on 2 shared virtual CPUs. Measure on your machine, in the
source tree: benchmarks/overhead.py --only start_and_finish; also storm,
storm_with_stacks, configure and losses.";

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

/// Renders a page with the sections of clap_mangen, but puts the text after the options under separate headings: examples verbatim, other
/// text as paragraphs.
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
        write_paragraphs("NOTES", notes, text)?;
    }
    if command.get_name() == "record" {
        write_paragraphs("OVERHEAD", OVERHEAD.split("\n\n"), text)?;
    }
    Ok(())
}

/// Writes the synopsis. That of clap_mangen lists options without their values.
fn write_synopsis(command: &Command, text: &mut Vec<u8>) -> io::Result<()> {
    let name = command.get_bin_name().unwrap_or_else(|| command.get_name());
    let mut parts = vec![format!("\\fB{}\\fR", escape_roff(name))];
    let options = command.get_arguments().filter(|argument| !argument.is_positional() && !argument.is_hide_set());
    for option in options {
        let short = option.get_short().map(|short| format!("\\fB\\-{short}\\fR"));
        let long = option.get_long().map(|long| format!("\\fB{}\\fR", escape_roff(&format!("--{long}"))));
        let names: Vec<String> = short.into_iter().chain(long).collect();
        let value = if option.get_action().takes_values() { values(option) } else { String::new() };
        let names = format!("{}{value}", names.join("|"));
        parts.push(if option.is_required_set() { names } else { format!("[{names}]") });
    }
    for argument in command.get_positionals() {
        let several = if argument.get_num_args().is_some_and(|count| count.max_values() > 1) { "..." } else { "" };
        let name = format!("{}{several}", placeholders(argument));
        parts.push(if argument.is_required_set() { name } else { format!("[{name}]") });
    }
    if command.get_subcommands().any(|verb| !verb.is_hide_set()) {
        parts.push("\\fICOMMAND\\fR".to_owned());
    }
    writeln!(text, ".SH SYNOPSIS\n{}", parts.join(" "))
}

/// Returns the value part of an option: ` S`, ` ID...`, `[=SEL]`.
fn values(option: &Arg) -> String {
    let count = option.get_num_args().unwrap_or_default();
    let names = placeholders(option);
    match (count.min_values(), count.max_values()) {
        (0, _) => format!("[={names}]"),
        (_, 1) => format!(" {names}"),
        _ => format!(" {names}..."),
    }
}

fn placeholders(argument: &Arg) -> String {
    let names = argument.get_value_names().unwrap_or_default();
    let names: Vec<String> = names.iter().map(|name| format!("\\fI{}\\fR", escape_roff(name))).collect();
    names.join(" ")
}

/// Writes lines verbatim, without the indentation of the help text: the section macro indents them.
fn write_lines(heading: &str, lines: &str, text: &mut Vec<u8>) -> io::Result<()> {
    let lines: Vec<&str> = lines.lines().map(|line| line.strip_prefix("  ").unwrap_or(line)).collect();
    writeln!(text, ".SH {heading}\n.nf\n{}\n.fi", escape_roff(&lines.join("\n")))
}

/// Writes paragraphs that the man page viewer fills to the terminal's width.
fn write_paragraphs<'a>(
    heading: &str,
    paragraphs: impl IntoIterator<Item = &'a str>,
    text: &mut Vec<u8>,
) -> io::Result<()> {
    let paragraphs: Vec<String> = paragraphs.into_iter().map(escape_roff).collect();
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

/// Returns fish commands that complete the values of positional arguments, such as the checks of `doctor`. clap_complete completes only
/// values of options.
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

#[cfg(test)]
mod tests {
    use super::OVERHEAD;

    #[test]
    fn the_overhead_equals_that_in_the_guide() {
        let guide = include_str!("../../../../docs/guide/costs.md");
        let joined = OVERHEAD.replace('\n', " ");
        for figure in ["189 ms (quartiles 172 to 202)", "334 bytes", "1,000 x /bin/true", "2 shared virtual CPUs"] {
            assert!(joined.contains(figure) && guide.contains(figure), "{figure}");
        }
        for (figure, row) in [
            ("1.06 (quartiles 1.01 to 1.08)", "--only storm --runs"),
            ("1.09 (quartiles 1.06 to 1.14)", "--only storm_with_stacks"),
            ("1.01 (quartiles 0.99 to 1.05)", "--only configure"),
        ] {
            assert!(
                joined.contains(figure) && guide.lines().any(|line| line.contains(row) && line.contains(figure)),
                "{figure}"
            );
        }
    }
}
