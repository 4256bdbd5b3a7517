//! Selects the frame of a call chain that is reported as the call site, and formats it. The call
//! site is the innermost frame whose code the user can change, so libraries that every launch goes
//! through are skipped.

use super::count::Helpers;
use crate::model::frames::{Frame, Frames, is_standard_library};
use crate::model::launch::{Exec, Launch, base_name, is_version_of};
use crate::model::tree::Forest;
use crate::patterns::words::{Words, contains};
use spawnscope_data::event::Language;

/// The precision of a call site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    Line,
    Function,
}

/// The code that requested launches. Unknown fields are `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CallSite {
    pub language: Language,
    /// The source file, as in the call chain.
    pub file: Option<Vec<u8>>,
    /// The line in the file or script, from 1.
    pub line: Option<u32>,
    /// The function, or the target of a makefile. `None` if it is unknown, if the code is outside
    /// of all functions, or if the line makes several targets.
    pub function: Option<Vec<u8>>,
    /// The ELF file that contains the machine code; for a generated makefile, the template that it
    /// was generated from.
    pub module: Option<Vec<u8>>,
    /// The address in `module`, if neither function nor file is known.
    pub address: Option<u64>,
    /// The program that ran the script, when no file is known.
    pub program: Option<Vec<u8>>,
    /// The line that requested the launch, in a script that was given with `-c`; with
    /// `Detail::Function`, the first line of the script. Truncated, so that scripts with the same
    /// beginning share one call site.
    pub text: Option<Vec<u8>>,
    /// Whether another file of the recording has the same base name. Labels then contain the whole
    /// path.
    pub(crate) has_namesake: bool,
}

/// The label of a call site in a rule that is built into make.
const BUILT_IN_RULE: &[u8] = b"built-in rule of make";

/// Maximum length of `CallSite::text`, in bytes, without the `…` of a truncated line.
const MAX_TEXT_BYTES: usize = 48;

/// Prefixes of the names of libraries that launch on behalf of other code: the C library, the
/// loader, Python itself.
const RUNTIME_LIBRARIES: Words =
    Words("libc.so libc- libpthread ld-linux ld-musl ld.so libpython _posixsubprocess [vdso]");
/// Names of interpreters, without a version. A function of an interpreter does not identify the
/// script.
const INTERPRETERS: [&[u8]; 6] = [b"bash", b"dash", b"sh", b"busybox", b"python", b"perl"];
/// Functions of the C library that launch. They identify a C library that is linked statically.
const LAUNCHING_FUNCTIONS: Words = Words(
    "fork __fork __libc_fork _Fork vfork __vfork __libc_vfork clone __clone clone3 __clone3 __clone_internal \
     posix_spawn posix_spawnp __spawni __spawnix system do_system popen _IO_new_popen _IO_new_proc_open",
);

/// Prefixes of the functions in Go's own packages, which lie between the program and the system
/// call.
const GO_PACKAGES: [&[u8]; 6] = [b"runtime.", b"syscall.", b"sync.", b"os.", b"os/exec.", b"internal/"];

impl CallSite {
    /// Returns the call site of a launch. `None` if no call chain shows it. `inline_script` is the
    /// script that the launching shell was given with `-c`. `helpers` are skipped.
    pub(super) fn find<'a>(
        forest: &Forest<'a>,
        launch: &Launch<'_>,
        inline_script: Option<&[u8]>,
        detail: Detail,
        helpers: &Helpers<'a>,
    ) -> Option<CallSite> {
        let script = script_frame(forest.frames(launch.script_stack), detail, helpers);
        let frame = script.or_else(|| machine_code_frame(&forest.frames(launch.native_stack)))?;
        Some(CallSite::from_frame(&frame, launch.birth_command.name, inline_script, detail))
    }

    fn from_frame(frame: &Frame<'_>, program: &[u8], inline_script: Option<&[u8]>, detail: Detail) -> CallSite {
        let has_name = frame.function.is_some() || frame.file.is_some();
        let line = match detail {
            Detail::Line => frame.line,
            Detail::Function => Some(1),
        };
        let is_inline = frame.language.is_script() && frame.file.is_none();
        CallSite {
            language: frame.language,
            file: frame.file.map(without_parents),
            line: frame.line.filter(|_| detail == Detail::Line),
            function: frame.function.map(<[u8]>::to_vec),
            module: frame.module.map(<[u8]>::to_vec),
            address: frame.address.filter(|_| !has_name),
            program: is_inline.then(|| program.to_vec()),
            text: inline_script.filter(|_| is_inline).and_then(|inline_script| script_line(inline_script, line?)),
            has_namesake: false,
        }
    }

    /// Returns the call site with the file as the command line of its process names it. Functions
    /// of dash are found in files with absolute paths.
    pub(super) fn named_as_in(mut self, exec: Option<&Exec<'_>>) -> CallSite {
        let Some((exec, directory)) = exec.and_then(|exec| Some((exec, exec.cwd()?))) else { return self };
        let file = self.file.as_deref().and_then(|file| file.strip_prefix(directory)?.strip_prefix(b"/"));
        let given = file
            .and_then(|file| exec.arguments().skip(1).find(|word| word.strip_prefix(b"./").unwrap_or(word) == file));
        self.file = given.map(without_parents).or(self.file);
        self
    }

    /// Formats the call site: `unpack.sh:14 in relocate()`, `relocate() in unpack.sh`, `spawn() in
    /// git`, `Makefile:9 (target all)`.
    #[must_use]
    pub fn label(&self) -> Vec<u8> {
        let file = self.file_and_line();
        let function = self.function.as_deref().map(|function| [function, b"()"].concat());
        if let (Language::Make, Some(file), Some(target)) = (self.language, &file, &self.function) {
            return [file, b" (target ".as_slice(), target, b")"].concat();
        }
        match (file, function) {
            (Some(file), Some(call)) if self.line.is_none() => [call, b" in ".to_vec(), file].concat(),
            (Some(file), Some(call)) => [file, b" in ".to_vec(), call].concat(),
            (Some(file), None) => file,
            (None, call) => self.module_label(call),
        }
    }

    /// Formats the call site without the function if the file is known, otherwise like `label`.
    #[must_use]
    pub fn short_label(&self) -> Vec<u8> {
        self.file_and_line().unwrap_or_else(|| self.label())
    }

    fn file_and_line(&self) -> Option<Vec<u8>> {
        let file = self.file.as_deref();
        let shown = file.map(|file| if self.has_namesake { file } else { base_name(file) });
        match (shown, self.line) {
            (Some(file), Some(line)) => Some([file, format!(":{line}").as_bytes()].concat()),
            (Some(file), None) => Some(file.to_vec()),
            (None, None) if self.language == Language::Make => Some(BUILT_IN_RULE.to_vec()),
            // A script given as an argument has no file.
            (None, line) => self.inline_script_label(line),
        }
    }

    /// Formats a script without a file: `sh -c 'mkdir -p "$d"'`, `sh -c 'mv a b' line 3`, `sh line
    /// 3`.
    fn inline_script_label(&self, line: Option<u32>) -> Option<Vec<u8>> {
        let program = self.program.as_deref()?;
        let line = line.filter(|line| self.text.is_none() || *line > 1);
        let line = line.map(|line| format!(" line {line}")).unwrap_or_default();
        let text = self.text.as_deref().map(|text| [b" -c '", text, b"'"].concat());
        Some([program, &text.unwrap_or_default(), line.as_bytes()].concat())
    }

    /// Returns the first word of a script line without a file.
    pub(super) fn first_word(&self) -> Option<&[u8]> {
        self.text.as_deref()?.split(u8::is_ascii_whitespace).next()
    }

    fn module_label(&self, call: Option<Vec<u8>>) -> Vec<u8> {
        let module = self.module.as_deref().map(base_name);
        match (call, module, self.address) {
            (Some(call), Some(module), _) => [&call, b" in ".as_slice(), module].concat(),
            (Some(call), None, _) => call,
            (None, Some(module), Some(address)) => [module, format!("+{address:#x}").as_bytes()].concat(),
            (None, Some(module), None) => module.to_vec(),
            (None, None, Some(address)) => format!("{address:#x}").into_bytes(),
            (None, None, None) => b"?".to_vec(),
        }
    }
}

/// Returns a path without `name/..`: a makefile that several directories include has one name.
fn without_parents(path: &[u8]) -> Vec<u8> {
    let mut parts: Vec<&[u8]> = Vec::new();
    for part in path.split(|byte| *byte == b'/') {
        let is_name = parts.last().is_some_and(|last| !last.is_empty() && !matches!(*last, b"." | b".."));
        if part == b".." && is_name {
            parts.pop();
        } else {
            parts.push(part);
        }
    }
    parts.join(&b'/')
}

/// Returns a line of a script, truncated if it is long. `None` if it is empty or does not exist.
fn script_line(script: &[u8], line: u32) -> Option<Vec<u8>> {
    let line = script.split(|byte| *byte == b'\n').nth(line.checked_sub(1)? as usize)?;
    let line = line.trim_ascii();
    if line.len() <= MAX_TEXT_BYTES {
        return (!line.is_empty()).then(|| line.to_vec());
    }
    // Does not cut a character: in UTF-8, all bytes of a character except the first begin with the
    // bits 10.
    let end = (0..=MAX_TEXT_BYTES).rev().find(|at| line[*at] & 0xc0 != 0x80);
    let end = end.unwrap_or_default();
    Some([&line[..end], "…".as_bytes()].concat())
}

/// Returns the innermost frame outside of the language's standard library, or the innermost frame
/// if all are in the library. Skips helper functions, too. If the line of that frame is unknown,
/// returns its caller in the same file, which is more precise.
fn script_frame<'a>(frames: Frames<'a>, detail: Detail, helpers: &Helpers<'a>) -> Option<Frame<'a>> {
    let mut innermost = None;
    // npm launches what `package.json` says, so its own code is no call site.
    let mut frames = frames.filter(|frame| has_position(frame) && !is_of_npm(frame));
    while let Some(frame) = frames.next() {
        if !is_standard_library(&frame) && !helpers.contains(&frame) {
            let lacks_line = detail == Detail::Line && frame.line.is_none() && frame.file.is_some();
            let caller = if lacks_line { frames.next() } else { None };
            let caller = caller.filter(|caller| caller.line.is_some() && caller.file == frame.file);
            return Some(caller.unwrap_or(frame));
        }
        innermost.get_or_insert(frame);
    }
    innermost
}

/// Returns the innermost frame outside of the C library and of interpreters or, if there is none,
/// the innermost frame of an interpreter.
fn machine_code_frame<'a>(frames: &Frames<'a>) -> Option<Frame<'a>> {
    let mut candidates =
        frames.clone().filter(|frame| has_position(frame) && frame.language == Language::Native && !is_runtime(frame));
    let outside = candidates.clone().find(|frame| !is_interpreter(frame));
    outside.or_else(|| candidates.next())
}

fn is_of_npm(frame: &Frame<'_>) -> bool {
    frame.language == Language::Node && frame.file.is_some_and(|file| contains(file, b"/node_modules/npm/"))
}

fn has_position(frame: &Frame<'_>) -> bool {
    frame.file.is_some() || frame.function.is_some() || frame.line.is_some() || frame.module.is_some()
}

/// Whether a frame is in the standard library of Go or Rust, which launches on behalf of other
/// code. Names of Go functions start with their package; Rust's library files have the path of the
/// build that made the library.
fn is_go_or_rust_library(frame: &Frame<'_>) -> bool {
    let (file, function) = (frame.file.unwrap_or_default(), frame.function.unwrap_or_default());
    let is_go = file.ends_with(b".go") || file.ends_with(b".s");
    let is_rust = file.starts_with(b"/rustc/") && file.windows(9).any(|part| part == b"/library/");
    is_rust || (is_go && GO_PACKAGES.iter().any(|package| function.starts_with(package)))
}

/// Whether a frame launches on behalf of other code: it is in a library or function that every
/// launch goes through.
fn is_runtime(frame: &Frame<'_>) -> bool {
    let library = frame.module.map(base_name);
    let is_library =
        library.is_some_and(|name| RUNTIME_LIBRARIES.iter().any(|begin| name.starts_with(begin.as_bytes())));
    let launches = frame.function.is_some_and(|name| LAUNCHING_FUNCTIONS.contains(name));
    is_library || launches || is_go_or_rust_library(frame)
}

fn is_interpreter(frame: &Frame<'_>) -> bool {
    let name = frame.module.map(base_name);
    name.is_some_and(|name| INTERPRETERS.iter().any(|program| is_version_of(name, program)))
}

#[cfg(test)]
mod tests {
    use super::without_parents;

    #[test]
    fn a_file_has_one_name_in_all_directories() {
        for (path, name) in [
            ("/a/lib/1/../../common.mk", "/a/common.mk"),
            ("lib/1/../../common.mk", "common.mk"),
            ("../../common.mk", "../../common.mk"),
            ("a/../../b", "../b"),
            ("./../a.sh", "./../a.sh"),
            ("/../a", "/../a"),
            ("./a.sh", "./a.sh"),
        ] {
            assert_eq!(without_parents(path.as_bytes()), name.as_bytes(), "{path}");
        }
    }
}
