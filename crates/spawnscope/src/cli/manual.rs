//! Man pages and completions, from the definition in `args`.

use std::fs;
use std::io;
use std::path::Path;

use anyhow::{Context, Result};
use clap::{Command, CommandFactory};

use super::args::Arguments;

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
    let page = clap_mangen::Man::new(command.clone())
        .title(name.to_uppercase())
        .manual("Spawnscope");
    let mut text = Vec::new();
    page.render(&mut text).context("failed to render a man page")?;
    let path = directory.join(format!("{name}.1"));
    fs::write(&path, text).with_context(|| format!("failed to write {}", path.display()))
}

/// Prints a completion script.
pub fn print_completions(shell: clap_complete::Shell) {
    clap_complete::generate(shell, &mut Arguments::command(), "spawnscope", &mut io::stdout());
}
