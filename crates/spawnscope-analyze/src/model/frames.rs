//! Call chains of a recording: their frames, from the innermost outwards.

use spawnscope_data::event::Language;
use spawnscope_data::rows::{Recording, StackId, StackRow, TextId};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Frame<'a> {
    pub language: Language,
    /// The function. `None` if it is unknown, or if the code is outside of all functions of a
    /// script.
    pub function: Option<&'a [u8]>,
    pub file: Option<&'a [u8]>,
    /// The line in `file`, from 1.
    pub line: Option<u32>,
    /// The ELF file that contains the machine code.
    pub module: Option<&'a [u8]>,
    /// The address in `module`; without a module, the address in the memory of the process.
    pub address: Option<u64>,
    /// Whether the compiler inlined the function into its caller.
    pub is_inlined: bool,
}

/// A call chain from the innermost frame outwards.
#[derive(Clone, Debug)]
pub struct Frames<'a> {
    recording: &'a Recording,
    next: Option<StackId>,
    is_truncated: bool,
}

impl<'a> Frames<'a> {
    pub fn new(recording: &'a Recording, stack: Option<StackId>) -> Frames<'a> {
        Frames { recording, next: stack, is_truncated: false }
    }

    /// Whether the callers of the last returned frame could not be read.
    pub fn is_truncated(&self) -> bool {
        self.is_truncated
    }
}

impl<'a> Iterator for Frames<'a> {
    type Item = Frame<'a>;

    fn next(&mut self) -> Option<Frame<'a>> {
        let row: &StackRow = self.recording.stacks.get(self.next?.index() as usize)?;
        let frame = self.recording.frames.get(row.frame.0 as usize)?;
        self.next = row.caller;
        self.is_truncated = row.is_truncated;
        let text = |id: Option<TextId>| id.map(|id| self.recording.texts.get(id));
        Some(Frame {
            language: frame.language,
            function: text(frame.function),
            file: text(frame.file),
            line: frame.line,
            module: text(frame.module),
            address: frame.address,
            is_inlined: frame.is_inlined,
        })
    }
}

/// Whether a frame is in a module of the standard library, which comes with the interpreter.
pub(crate) fn is_standard_library(frame: &Frame<'_>) -> bool {
    let Some(file) = frame.file else { return false };
    match frame.language {
        Language::Python => comes_with_python(file),
        Language::Perl => comes_with_perl(file),
        _ => false,
    }
}

/// Whether a file is below `lib/python3.11` (or another version), but not in an installed package.
fn comes_with_python(file: &[u8]) -> bool {
    if file.starts_with(b"<frozen ") {
        return true;
    }
    let parts: Vec<&[u8]> = file.split(|byte| *byte == b'/').collect();
    let is_installed = [b"site-packages", b"dist-packages"].iter().any(|directory| parts.contains(&&directory[..]));
    let mut pairs = parts.windows(2);
    !is_installed && pairs.any(|pair| pair[0].starts_with(b"lib") && pair[1].starts_with(b"python3"))
}

/// Whether a file is in `perl-base`, or below `perl/5.36`, `perl5/5.38.0` or `lib/5.38.0`. Modules
/// that the user installs are excluded: Debian has them in `perl/5.36` below /usr/local, others in
/// `site_perl`.
fn comes_with_perl(file: &[u8]) -> bool {
    let is_local = file.starts_with(b"/usr/local/");
    let parts: Vec<&[u8]> = file.split(|byte| *byte == b'/').collect();
    parts.contains(&&b"perl-base"[..])
        || parts.windows(2).any(|pair| match pair[0] {
            b"perl" => !is_local && pair[1].starts_with(b"5."),
            b"perl5" | b"lib" => pair[1].starts_with(b"5."),
            _ => false,
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_of_perl_are_distinguished_from_installed_modules() {
        for own in [
            "/usr/share/perl/5.36/IPC/Cmd.pm",
            "/usr/lib/x86_64-linux-gnu/perl/5.36/IPC/SysV.pm",
            "/usr/lib/x86_64-linux-gnu/perl-base/IPC/Open3.pm",
            "/usr/local/lib/perl5/5.38.0/IPC/Open3.pm",
            "/opt/perlbrew/perls/perl-5.38.0/lib/5.38.0/IPC/Open3.pm",
        ] {
            assert!(comes_with_perl(own.as_bytes()), "{own}");
        }
        for other in [
            "/usr/share/perl5/IPC/Run.pm",
            "/usr/local/share/perl/5.36.0/IPC/Run.pm",
            "/usr/local/lib/perl5/site_perl/5.38.0/IPC/Run.pm",
            "lib/My/Module.pm",
            "-e",
        ] {
            assert!(!comes_with_perl(other.as_bytes()), "{other}");
        }
    }
}
