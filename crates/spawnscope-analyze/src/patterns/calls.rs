//! The call of a program as a user writes it. If an interpreter runs a script, the name of the
//! script is used.

use crate::model::launch::{Exec, base_name};
use crate::patterns::runtimes::Runtime;

/// A program by the name of its file, and its arguments.
pub(crate) struct Call<'a> {
    /// Base name of the script or the program.
    pub(crate) name: &'a [u8],
    /// The arguments after the script or the program.
    pub(crate) arguments: Vec<&'a [u8]>,
}

impl<'a> Call<'a> {
    /// Reads the call from the arguments of an exec. `None` for an interpreter without a script, or
    /// if the arguments are unknown.
    pub(crate) fn of(exec: &Exec<'a>) -> Option<Call<'a>> {
        let mut arguments = exec.arguments();
        arguments.next()?;
        let file = match options_of(exec).map(|options| next_code(&mut arguments, options)) {
            Some(code) => code.and_then(Code::script)?,
            None => exec.path(),
        };
        Some(Call { name: base_name(file), arguments: arguments.collect() })
    }
}

/// What an interpreter runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Code<'a> {
    Script(&'a [u8]),
    /// Text or a module, which follows this option.
    Other(&'a [u8]),
}

impl<'a> Code<'a> {
    pub(crate) fn of(exec: &Exec<'a>) -> Option<Code<'a>> {
        let named = || next_code(&mut exec.arguments().skip(1), options_of(exec)?);
        exec.interpreter().map(|_| Code::Script(exec.path())).or_else(named)
    }

    /// Returns the path of the script.
    pub(crate) fn script(self) -> Option<&'a [u8]> {
        match self {
            Code::Script(path) => Some(path),
            Code::Other(_) => None,
        }
    }
}

/// Options of an interpreter, as letters: those after which it runs other code than a script, those
/// that have a value, and those with which it only checks a script.
type Options = [&'static [u8]; 3];

/// Long options after which an interpreter runs other code than a script.
const CODE: [&[u8]; 3] = [b"--command", b"--eval", b"--print"];
/// Long options that have a value.
const WITH_VALUE: [&[u8]; 6] = [b"-classpath", b"-cp", b"--import", b"--init-file", b"--rcfile", b"--require"];
/// Long options with which an interpreter only checks a script.
const CHECKS: [&[u8]; 2] = [b"--check", b"--syntax-check"];

/// Returns the options of a program if its first other argument is a script.
fn options_of(exec: &Exec<'_>) -> Option<Options> {
    if exec.interpreter().is_some() { None } else { options(Runtime::named(exec.program_name())) }
}

fn options(runtime: Runtime) -> Option<Options> {
    match runtime {
        Runtime::Shell => Some([b"cs", b"oO", b"n"]),
        Runtime::Fish => Some([b"c", b"dCo", b"n"]),
        Runtime::Python => Some([b"cm", b"WX", b""]),
        Runtime::Perl => Some([b"eE", b"IMm", b"c"]),
        Runtime::Raku => Some([b"e", b"IM", b"c"]),
        Runtime::Ruby => Some([b"e", b"CEIr", b"c"]),
        Runtime::Node => Some([b"ep", b"Cr", b"c"]),
        Runtime::Php => Some([b"BERr", b"dz", b"lsw"]),
        Runtime::Lua => Some([b"e", b"l", b""]),
        Runtime::R => Some([b"e", b"", b""]),
        Runtime::Tcl | Runtime::Java => Some([b"", b"", b""]),
        _ => None,
    }
}

/// Returns the code after the options of an interpreter. The arguments after it remain. `None` if
/// it runs none.
fn next_code<'a>(arguments: &mut impl Iterator<Item = &'a [u8]>, options: Options) -> Option<Code<'a>> {
    let [code, value, check] = options;
    while let Some(word) = arguments.next() {
        let (b"-" | b"+", letters) = word.split_at_checked(1)? else { return Some(Code::Script(word)) };
        if letters == b"-" {
            return arguments.next().map(Code::Script);
        }
        // The letters after one that has a value are its value.
        let is_last = |letter: &u8| options.iter().any(|letters| letters.contains(letter));
        let last = letters.iter().position(is_last).filter(|_| !letters.starts_with(b"-"));
        let is_last_in = |options: &[u8]| last.is_some_and(|last| options.contains(&letters[last]));
        if CHECKS.contains(&word) || is_last_in(check) {
            return None;
        }
        if letters.is_empty() || CODE.contains(&word) || is_last_in(code) {
            return Some(Code::Other(word));
        }
        if WITH_VALUE.contains(&word) || is_last_in(value) && last == letters.len().checked_sub(1) {
            arguments.next();
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(runtime: Runtime, words: &'static str) -> Option<Code<'static>> {
        next_code(&mut words.split(' ').map(str::as_bytes), options(runtime).unwrap())
    }

    #[test]
    fn code_follows_the_options_of_its_interpreter() {
        for (runtime, words, expected) in [
            (Runtime::Shell, "-eu -o pipefail run.sh -c x", Code::Script(b"run.sh")),
            (Runtime::Shell, "-euo pipefail +x -- -run.sh", Code::Script(b"-run.sh")),
            (Runtime::Shell, "--rcfile rc run.sh", Code::Script(b"run.sh")),
            (Runtime::Shell, "-ec run.sh", Code::Other(b"-ec")),
            (Runtime::Python, "- x", Code::Other(b"-")),
            (Runtime::Python, "-u -W ignore -Xdev tool.py", Code::Script(b"tool.py")),
            (Runtime::Python, "-Sm tool", Code::Other(b"-Sm")),
            (Runtime::Perl, "-w -Ilib -MPOSIX tool.pl", Code::Script(b"tool.pl")),
            (Runtime::Perl, "-ne print tool.pl", Code::Other(b"-ne")),
            (Runtime::Node, "--no-warnings -r ./hook.js tool.js", Code::Script(b"tool.js")),
            (Runtime::Node, "--eval 1", Code::Other(b"--eval")),
            (Runtime::Php, "-d memory_limit=1G tool.php", Code::Script(b"tool.php")),
            (Runtime::Java, "-Xmx1g -cp a:b Main", Code::Script(b"Main")),
        ] {
            assert_eq!(code(runtime, words), Some(expected), "{words}");
        }
        for (runtime, words) in [(Runtime::Php, "-l x.php"), (Runtime::Shell, "-n x.sh"), (Runtime::Python, "-u")] {
            assert_eq!(code(runtime, words), None, "{words}");
        }
    }
}
