//! Where output goes: how wide a terminal is, what leaves the program as a message, a reader that has seen enough.

use std::env;
use std::ffi::OsString;
use std::fmt::Display;
use std::io::{self, IsTerminal, Write};
use std::ops::RangeInclusive;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use clap::Parser;
use clap::error::ErrorKind;

use super::args::{Arguments, DEFAULT_FILE};
use crate::present::text;
use crate::record::Redaction;
use crate::record::reader::Contradictions;
use crate::units;

/// Columns where there is no terminal to ask, and nobody says.
const DEFAULT_WIDTH: usize = 80;
/// What `COLUMNS` may say.
const WIDTHS: RangeInclusive<usize> = 20..=1000;
/// Names standard output where a file could be named.
const STANDARD_OUTPUT: &str = "-";
/// What every output can be laid out in; a narrower terminal wraps lines.
const LEAST_WIDTH: usize = 40;

/// Columns of the stream's terminal; when it is none, those that `COLUMNS` says, or 80.
#[must_use]
pub fn width(stream: &impl AsFd) -> usize {
    let said = || {
        env::var("COLUMNS")
            .ok()?
            .parse()
            .ok()
            .filter(|said| WIDTHS.contains(said))
    };
    let width = terminal_width(stream).or_else(said);
    width.unwrap_or(DEFAULT_WIDTH).max(LEAST_WIDTH)
}

/// Columns of the stream's terminal, if it knows them.
#[must_use]
pub fn terminal_width(stream: &impl AsFd) -> Option<usize> {
    let fd = stream.as_fd();
    let size = rustix::termios::tcgetwinsize(fd.is_terminal().then_some(fd)?).ok()?;
    (size.ws_col > 0).then_some(usize::from(size.ws_col).max(LEAST_WIDTH))
}

/// The file that was named with -o; `None` for standard output, which `-` names too.
#[must_use]
pub fn file(named: Option<&Path>) -> Option<&Path> {
    named.filter(|path| *path != Path::new(STANDARD_OUTPUT))
}

/// How a recording is named on a command line; `None` for the default one, which needs no name.
#[must_use]
pub fn typed(file: &Path) -> Option<String> {
    let is_default = file == Path::new(DEFAULT_FILE);
    // A name that begins with a hyphen would be read as an option.
    let is_option = file.as_os_str().as_bytes().starts_with(b"-");
    let file = if is_option {
        Path::new(".").join(file)
    } else {
        file.to_path_buf()
    };
    (!is_default).then(|| text::quote(file.as_os_str().as_bytes()))
}

/// Tells the user something of our own, in one line or more. This is the one place where messages leave the program: whatever they quote, a
/// name of a file or what SQLite said of one, is fit for a terminal then and holds no secret of a known form. A standard error that cannot be
/// written to is no reason to fail.
pub fn tell(message: &str) {
    let _ = writeln!(io::stderr(), "spawnscope: {}", lines(message));
}

/// Tells a failure with its causes.
pub fn tell_failure(error: &anyhow::Error) {
    tell(&line(format!("{error:#}")));
}

/// Tells what is wrong with what was typed.
pub fn tell_usage(error: &clap::Error) {
    // Only the parser knows which of its words are quoted: it is asked again with arguments that are fit to show.
    let typed: Vec<OsString> = env::args_os().collect();
    let shown = typed.iter().map(|argument| text::escape(argument.as_encoded_bytes()));
    let again = Arguments::try_parse_from(shown).err();
    let message = again.as_ref().unwrap_or(error).render().to_string();
    let _ = writeln!(io::stderr(), "{}", lines(message.trim_end()));
    let is_help = typed.get(1).is_some_and(|verb| verb == "help");
    if error.kind() == ErrorKind::InvalidSubcommand && !is_help {
        let command = text::command_line(typed.iter().skip(1).map(|argument| argument.as_bytes()), None);
        let _ = writeln!(
            io::stderr(),
            "{}",
            lines(&format!("\nTo record a command: spawnscope record -- {command}"))
        );
    }
}

/// Something that others wrote, to be put into a message: as one line.
#[must_use]
pub fn line(quoted: impl Display) -> String {
    text::escape(quoted.to_string().as_bytes())
}

/// A message of several lines without anything but text in them, and without secrets.
fn lines(message: &str) -> String {
    let message = Redaction::Mask.apply_to_text(message);
    let shown: Vec<String> = message.split('\n').map(line).collect();
    shown.join("\n")
}

/// Tells what of a recording cannot be true, where the output itself has no place for it.
pub fn tell_contradictions(recording: &Path, contradictions: &Contradictions) {
    for kind in &contradictions.0 {
        let rows = units::count(kind.rows);
        tell(&format!(
            "recording {} contradicts itself: {rows} {}, the first of them {}: what is said about these is wrong",
            recording.display(),
            kind.what,
            kind.first
        ));
    }
}

/// Whether a failure is only that the reader of our output went away, as `head` does.
#[must_use]
pub fn reader_went_away(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<io::Error>())
        .any(|cause| cause.kind() == io::ErrorKind::BrokenPipe)
}
