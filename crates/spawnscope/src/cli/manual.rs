//! Man pages and completions, from the definition in `args`.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use anyhow::{Context, Result};
use clap::{Command, CommandFactory};
use clap_mangen::Man;

use super::args::Arguments;

/// What recording costs; README.md has the figures.
const OVERHEAD: &str = "\
Starting and finishing takes 0.2 s. In a storm of launches the cost of
recording was lost in the noise of the machine it was measured on. A launch
takes about 260 bytes. Measure on yours: benchmarks/overhead.py in the source.";

/// Writes spawnscope(1) and a page for each verb.
///
/// # Errors
/// When the directory or a page cannot be written.
pub fn write_pages(directory: &Path) -> Result<()> {
    fs::create_dir_all(directory).with_context(|| format!("failed to make {}", directory.display()))?;
    let mut command = Arguments::command().disable_help_subcommand(true);
    command.build();
    write_page(&command, "spawnscope", directory)?;
    for verb in command.get_subcommands().filter(|verb| !verb.is_hide_set()) {
        write_page(verb, &format!("spawnscope-{}", verb.get_name()), directory)?;
    }
    Ok(())
}

fn write_page(command: &Command, name: &str, directory: &Path) -> Result<()> {
    let page = Man::new(command.clone())
        .title(name.to_uppercase())
        .manual("Spawnscope");
    let mut text = Vec::new();
    render(&page, command, &mut text).context("failed to render a man page")?;
    let path = directory.join(format!("{name}.1"));
    fs::write(&path, text).with_context(|| format!("failed to write {}", path.display()))
}

/// The library's sections, but the text after the options under headings of its own, its lines as they are.
fn render(page: &Man, command: &Command, text: &mut Vec<u8>) -> io::Result<()> {
    page.render_title(text)?;
    page.render_name_section(text)?;
    page.render_synopsis_section(text)?;
    page.render_description_section(text)?;
    page.render_options_section(text)?;
    if command.get_subcommands().any(|verb| !verb.is_hide_set()) {
        page.render_subcommands_section(text)?;
    }
    let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    for part in after.split("\n\n").filter(|part| !part.is_empty()) {
        match part.split_once(":\n") {
            Some(("Examples", lines)) => write_section("EXAMPLES", lines, text)?,
            _ => write_section("NOTES", part, text)?,
        }
    }
    if command.get_name() == "record" {
        write_section("OVERHEAD", OVERHEAD, text)?;
    }
    Ok(())
}

fn write_section(heading: &str, lines: &str, text: &mut Vec<u8>) -> io::Result<()> {
    let escaped = lines.replace('\\', "\\e").replace('-', "\\-").replace('\'', "\\(aq");
    writeln!(text, ".SH {heading}\n.nf\n{escaped}\n.fi")
}

/// Prints a completion script.
pub fn print_completions(shell: clap_complete::Shell) {
    clap_complete::generate(shell, &mut Arguments::command(), "spawnscope", &mut io::stdout());
}
