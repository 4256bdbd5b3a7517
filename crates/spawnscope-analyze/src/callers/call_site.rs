//! Picks the frame of a call chain that is reported as the call site, and formats it: the innermost frame that the user can change.
//! Libraries that every launch goes through are skipped.

use crate::frames::{Frame, Frames, is_standard_library};
use crate::launch::{Launch, base_name, is_version_of};
use crate::tree::Forest;
use spawnscope_data::event::Language;

/// The precision of a call site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// File and line.
    Line,
    /// Function only.
    Function,
}

/// A place in a program that requested launches. Unknown fields are `None`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CallSite {
    /// The language of the code.
    pub language: Language,
    /// The source file, as in the call chain.
    pub file: Option<Vec<u8>>,
    /// The line in it, from 1.
    pub line: Option<u32>,
    /// The function; in a makefile the target. `None` if it is unknown, outside of all functions, and for a line that makes several targets.
    pub function: Option<Vec<u8>>,
    /// The ELF file that contains the machine code; of a generated makefile, its template.
    pub module: Option<Vec<u8>>,
    /// The address in that file, when the function is unknown.
    pub address: Option<u64>,
    /// The program that ran the script, when no file is known.
    pub program: Option<Vec<u8>>,
    /// The line of a script given with `-c` that requested the launch; the first line at function precision. Truncated, so that scripts
    /// with the same beginning share one call site.
    pub text: Option<Vec<u8>>,
    /// Whether another file of the recording has the same base name. Labels then contain the whole path.
    pub(crate) has_namesake: bool,
}

/// The place of a rule that make knows without a makefile.
const BUILT_IN: &[u8] = b"built-in rule of make";

/// Maximum length of a script line, in bytes.
const MAX_TEXT: usize = 48;

/// Name prefixes of libraries that launch on behalf of others: the C library, the loader, Python itself.
const RUNTIME_LIBRARIES: [&[u8]; 9] = [
    b"libc.so",
    b"libc-",
    b"libpthread",
    b"ld-linux",
    b"ld-musl",
    b"ld.so",
    b"libpython",
    b"_posixsubprocess",
    b"[vdso]",
];
/// Name prefixes of interpreters. Their functions do not identify the script.
const INTERPRETERS: [&[u8]; 6] = [b"bash", b"dash", b"sh", b"busybox", b"python", b"perl"];
/// Functions of a C library that is linked statically into the program.
const LAUNCHING_FUNCTIONS: [&[u8]; 21] = [
    b"fork",
    b"__fork",
    b"__libc_fork",
    b"_Fork",
    b"vfork",
    b"__vfork",
    b"__libc_vfork",
    b"clone",
    b"__clone",
    b"clone3",
    b"__clone3",
    b"__clone_internal",
    b"posix_spawn",
    b"posix_spawnp",
    b"__spawni",
    b"__spawnix",
    b"system",
    b"do_system",
    b"popen",
    b"_IO_new_popen",
    b"_IO_new_proc_open",
];

/// Beginnings of the functions of Go's packages between a program and the system call.
const GO_PACKAGES: [&[u8]; 6] = [b"runtime.", b"syscall.", b"sync.", b"os.", b"os/exec.", b"internal/"];

impl CallSite {
    /// Returns the call site of a launch. `None` when no call chain shows it. `given` is the script that its shell was given with `-c`.
    pub(super) fn of(
        forest: &Forest<'_>,
        launch: &Launch<'_>,
        given: Option<&[u8]>,
        detail: Detail,
    ) -> Option<CallSite> {
        let script = in_script(forest.frames(launch.script_stack), detail);
        let frame = script.or_else(|| in_machine_code(&forest.frames(launch.native_stack)))?;
        Some(CallSite::of_frame(&frame, launch.birth_command.name, given, detail))
    }

    fn of_frame(frame: &Frame<'_>, program: &[u8], given: Option<&[u8]>, detail: Detail) -> CallSite {
        let has_name = frame.function.is_some() || frame.file.is_some();
        let line = match detail {
            Detail::Line => frame.line,
            Detail::Function => Some(1),
        };
        let is_given = frame.language.is_script() && frame.file.is_none();
        CallSite {
            language: frame.language,
            file: frame.file.map(<[u8]>::to_vec),
            line: frame.line.filter(|_| detail == Detail::Line),
            function: frame.function.map(<[u8]>::to_vec),
            module: frame.module.map(<[u8]>::to_vec),
            address: frame.address.filter(|_| !has_name),
            program: is_given.then(|| program.to_vec()),
            text: given.filter(|_| is_given).and_then(|given| beginning(given, line?)),
            has_namesake: false,
        }
    }

    /// Formats the call site: `unpack.sh:14 in relocate()`, `relocate() in unpack.sh`, `spawn() in git`, `Makefile:9 (target all)`.
    #[must_use]
    pub fn label(&self) -> Vec<u8> {
        let (file, function) = (self.file_and_line(), self.call());
        if let (Language::Make, Some(file), Some(target)) = (self.language, &file, &self.function) {
            return [file, b" (target ".as_slice(), target, b")"].concat();
        }
        match (file, function) {
            (Some(file), Some(call)) if self.line.is_none() => [call, b" in ".to_vec(), file].concat(),
            (Some(file), Some(call)) => [file, b" in ".to_vec(), call].concat(),
            (Some(file), None) => file,
            (None, call) => self.in_module(call),
        }
    }

    /// Formats the call site without the function, if a file is known.
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
            (None, None) if self.language == Language::Make => Some(BUILT_IN.to_vec()),
            // A script given as an argument has no file.
            (None, line) => self.in_given_script(line),
        }
    }

    /// Formats a script without a file: `sh -c 'mkdir -p "$d"'`, `sh -c 'mv a b' line 3`, `sh line 3`.
    fn in_given_script(&self, line: Option<u32>) -> Option<Vec<u8>> {
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

    fn call(&self) -> Option<Vec<u8>> {
        let function = self.function.as_deref()?;
        Some([function, b"()"].concat())
    }

    fn in_module(&self, call: Option<Vec<u8>>) -> Vec<u8> {
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

/// Returns the truncated beginning of a script line.
fn beginning(script: &[u8], line: u32) -> Option<Vec<u8>> {
    let line = script.split(|byte| *byte == b'\n').nth(line.checked_sub(1)? as usize)?;
    let line = line.trim_ascii();
    if line.len() <= MAX_TEXT {
        return (!line.is_empty()).then(|| line.to_vec());
    }
    // A character is not cut: the bytes after its first one begin with the bits 10.
    let end = (0..=MAX_TEXT).rev().find(|at| line[*at] & 0xc0 != 0x80);
    let end = end.unwrap_or_default();
    Some([&line[..end], "…".as_bytes()].concat())
}

/// Returns the innermost frame outside of the language's standard library, or the innermost one if all are in it. If that function has no
/// known line, its caller in the same file is more precise.
fn in_script(frames: Frames<'_>, detail: Detail) -> Option<Frame<'_>> {
    let mut innermost = None;
    let mut frames = frames.filter(says_where);
    while let Some(frame) = frames.next() {
        if !is_standard_library(&frame) {
            let lacks_line = detail == Detail::Line && frame.line.is_none() && frame.file.is_some();
            let caller = if lacks_line { frames.next() } else { None };
            let caller = caller.filter(|caller| caller.line.is_some() && caller.file == frame.file);
            return Some(caller.unwrap_or(frame));
        }
        innermost.get_or_insert(frame);
    }
    innermost
}

/// Returns the innermost frame outside of the C library and of interpreters. If only an interpreter is left, its frame.
fn in_machine_code<'a>(frames: &Frames<'a>) -> Option<Frame<'a>> {
    let own = |frame: &Frame<'_>| says_where(frame) && frame.language == Language::Native && !is_runtime(frame);
    let outside = frames.clone().find(|frame| own(frame) && !is_interpreter(frame));
    outside.or_else(|| frames.clone().find(own))
}

fn says_where(frame: &Frame<'_>) -> bool {
    frame.file.is_some() || frame.function.is_some() || frame.line.is_some() || frame.module.is_some()
}

/// Whether a frame is in the standard library of Go or Rust, which launches on behalf of others. Go's functions have the names of their
/// packages, which a module's own functions never have; Rust's files have the path of the build that made the library.
fn is_library_of_language(frame: &Frame<'_>) -> bool {
    let (file, function) = (frame.file.unwrap_or_default(), frame.function.unwrap_or_default());
    let is_go = file.ends_with(b".go") || file.ends_with(b".s");
    let is_rust = file.starts_with(b"/rustc/") && file.windows(9).any(|part| part == b"/library/");
    is_rust || (is_go && GO_PACKAGES.iter().any(|package| function.starts_with(package)))
}

fn is_runtime(frame: &Frame<'_>) -> bool {
    let begins = |name: &[u8], list: &[&[u8]]| list.iter().any(|beginning| name.starts_with(beginning));
    let is_library = frame
        .module
        .is_some_and(|module| begins(base_name(module), &RUNTIME_LIBRARIES));
    let launches = frame.function.is_some_and(|name| LAUNCHING_FUNCTIONS.contains(&name));
    is_library || launches || is_library_of_language(frame)
}

fn is_interpreter(frame: &Frame<'_>) -> bool {
    let name = frame.module.map(base_name);
    name.is_some_and(|name| INTERPRETERS.iter().any(|program| is_version_of(name, program)))
}
