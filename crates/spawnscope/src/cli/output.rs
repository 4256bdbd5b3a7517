//! Output helpers: the terminal's width, messages on standard error, and detection of a closed
//! pipe.

use std::env;
use std::fmt::Display;
use std::io::{self, IsTerminal, Write};
use std::ops::RangeInclusive;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use anyhow::{Context, Result};
use rustix::termios::Winsize;

use super::args::{DEFAULT_FILE, STANDARD_STREAM};
use super::input;
use crate::present::text;
use crate::record::Redaction;
use crate::record::reader::Contradictions;
use crate::units;

/// The width in columns if there is no terminal and `COLUMNS` is not set.
const DEFAULT_WIDTH: usize = 80;
const ACCEPTED_WIDTHS: RangeInclusive<usize> = 20..=1000;
/// Minimum width that all outputs support. A narrower terminal wraps lines.
const MIN_WIDTH: usize = 40;

/// Returns the columns of the stream's terminal. If the stream is not a terminal, returns
/// `COLUMNS`, or 80 if that is not set.
pub fn width(stream: &impl AsFd) -> usize {
    let width = terminal_width(stream)
        .or_else(|| env::var("COLUMNS").ok()?.parse().ok().filter(|columns| ACCEPTED_WIDTHS.contains(columns)));
    width.unwrap_or(DEFAULT_WIDTH).max(MIN_WIDTH)
}

pub fn terminal_width(stream: &impl AsFd) -> Option<usize> {
    let size = terminal_size(stream)?;
    (size.ws_col > 0).then_some(usize::from(size.ws_col).max(MIN_WIDTH))
}

pub fn terminal_height(stream: &impl AsFd) -> Option<usize> {
    Some(usize::from(terminal_size(stream)?.ws_row)).filter(|rows| *rows > 0)
}

fn terminal_size(stream: &impl AsFd) -> Option<Winsize> {
    let fd = stream.as_fd();
    rustix::termios::tcgetwinsize(fd.is_terminal().then_some(fd)?).ok()
}

/// Returns text for a person, with ASCII in place of other glyphs if the terminal or the locale
/// cannot show them.
pub fn with_glyphs(text: String) -> String {
    if has_glyphs() { text } else { text::to_ascii(&text) }
}

/// Writes text for a person, like `with_glyphs`. Each piece that is written must be whole
/// characters, as `write!` does it.
pub fn glyph_writer(out: impl Write) -> impl Write {
    GlyphWriter { out, is_ascii: !has_glyphs() }
}

struct GlyphWriter<W> {
    out: W,
    is_ascii: bool,
}

impl<W: Write> Write for GlyphWriter<W> {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        match std::str::from_utf8(piece) {
            Ok(text) if self.is_ascii => self.out.write_all(text::to_ascii(text).as_bytes())?,
            _ => self.out.write_all(piece)?,
        }
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Whether the terminal and the locale can show glyphs beyond ASCII.
pub fn has_glyphs() -> bool {
    shows_glyphs(|name| env::var(name).ok())
}

/// Whether glyphs beyond ASCII can be shown. Without a locale, as in most containers, the terminal
/// is usually one for UTF-8.
fn shows_glyphs(variable: impl Fn(&str) -> Option<String>) -> bool {
    let mut locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().filter_map(&variable).filter(|value| !value.is_empty());
    let is_utf8 = locale.next().is_none_or(|locale| locale.to_ascii_lowercase().replace('-', "").contains("utf8"));
    is_utf8 && variable("TERM").as_deref() != Some("dumb")
}

/// Returns the file given with -o, or `None` for standard output, which `-` also names.
pub fn file(named: Option<&Path>) -> Option<&Path> {
    named.filter(|path| *path != Path::new(STANDARD_STREAM))
}

/// Returns a recording's name as typed on a command line, or `None` for the default recording,
/// which needs no name. For a recording from standard input, that is `-`: the user pipes it again.
pub fn typed_name(file: &Path) -> Option<String> {
    if input::is_standard_input(file) {
        return Some(STANDARD_STREAM.to_owned());
    }
    let is_default = file == Path::new(DEFAULT_FILE);
    // A name that begins with a hyphen would be parsed as an option.
    let is_option = file.as_os_str().as_bytes().starts_with(b"-");
    let file = if is_option { Path::new(".").join(file) } else { file.to_path_buf() };
    (!is_default).then(|| text::quote(file.as_os_str().as_bytes()))
}

/// Prints the result of a verb to standard output. `what` names it in an error.
pub fn print(text: &str, what: &str) -> Result<()> {
    anstream::stdout().lock().write_all(text.as_bytes()).with_context(|| format!("failed to write the {what}"))
}

/// Prints a message of one or more lines to standard error. All messages are printed here, so any
/// text that they quote (a file name, an error from SQLite) is escaped for the terminal, and its
/// recognizable secrets are masked. If standard error cannot be written to, the message is lost
/// without an error.
pub fn print_message(message: &str) {
    let _ = writeln!(io::stderr(), "spawnscope: {}", escape_lines(message));
}

/// Prints a message that may be long: on a terminal, in several lines.
pub fn print_long_message(message: &str) {
    let lines = terminal_width(&io::stderr()).map(|width| text::wrap(message, width - "spawnscope: ".len()));
    print_message(&lines.map_or_else(|| message.to_owned(), |lines| lines.join("\n  ")));
}

pub fn print_written(path: &Path) {
    print_message(&format!("wrote {}", escape_line(path.display())));
}

pub fn print_failure(error: &anyhow::Error) {
    print_message(&escape_line(format!("{error:#}")));
}

/// Escapes text from other sources so that it fits into a message as one line.
pub fn escape_line(quoted: impl Display) -> String {
    text::escape(quoted.to_string().as_bytes())
}

/// Escapes each line of a message and masks its secrets.
pub fn escape_lines(message: &str) -> String {
    let message = Redaction::Mask.apply_to_text(message);
    let shown: Vec<String> = message.split('\n').map(escape_line).collect();
    shown.join("\n")
}

/// Prints which rows of a recording contradict each other, for outputs that cannot contain such a
/// warning.
pub fn print_contradictions(recording: &Path, contradictions: &Contradictions) {
    for kind in &contradictions.0 {
        let rows = units::count(kind.rows);
        print_message(&format!(
            "recording {} contradicts itself ({}: {rows}, the first with id {}), so results about them are wrong",
            recording.display(),
            kind.what,
            kind.first_id
        ));
    }
}

/// Whether the failure is only a closed pipe: the reader of our output exited, as `head` does.
pub fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<io::Error>())
        .any(|cause| cause.kind() == io::ErrorKind::BrokenPipe)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn glyphs_depend_on_the_terminal_and_the_first_variable_of_the_locale() {
        let shows = |set: &[(&str, &str)]| {
            shows_glyphs(|name| set.iter().find(|(each, _)| *each == name).map(|(_, value)| (*value).to_owned()))
        };
        assert!(shows(&[]) && shows(&[("LANG", "C.UTF-8"), ("TERM", "xterm")]) && shows(&[("LC_ALL", "de_DE.utf8")]));
        assert!(!shows(&[("LANG", "C")]) && !shows(&[("LC_ALL", "C"), ("LANG", "en_US.UTF-8")]));
        assert!(!shows(&[("TERM", "dumb"), ("LANG", "en_US.UTF-8")]));
    }
}
