//! Recognizes programs that trace processes. A process can have only one tracer, so these programs
//! do not work while spawnscope traces them, what they launch, or the processes that their
//! arguments name (`strace -p PID`). They are recognized by their name, or by what they import:
//! ptrace, or a sanitizer whose leak check traces its own process.

use std::collections::HashMap;
use std::fs::{self, File};

use object::elf::FileHeader64;
use object::read::elf::{ElfFile, Sym as _};
use object::{Endianness, Object as _, ObjectSection as _, ObjectSymbol as _, ReadCache};
use spawnscope_data::event::Pid;
use spawnscope_data::words::Words;

use super::facts::FileVersion;

/// Names of tracers that may be linked statically, or that import ptrace only in one of their
/// libraries.
const NAMES: Words = Words("strace ltrace gdb gdbserver lldb-server rr perf-trace uftrace tracexec spawnscope");

/// Names of programs that import ptrace, but do not trace what they launch.
const EXCEPTIONS: [&[u8]; 1] = [b"perf"];

/// Symbols whose import makes a program a tracer.
const IMPORTS: [&str; 3] = ["ptrace", "__asan_init", "__lsan_init"];
/// Symbols that programs built with a sanitizer export.
const EXPORTS: [&str; 2] = ["__asan_init", "__lsan_init"];

/// Whether each executable examined so far is a tracer.
#[derive(Debug, Default)]
pub struct Tracers(HashMap<FileVersion, bool>);

impl Tracers {
    /// Whether the file that a process has just executed is a tracer. `file`: this file, if it is
    /// known.
    pub fn is_tracer(&mut self, process: Pid, path: &[u8], file: Option<FileVersion>) -> bool {
        let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
        NAMES.contains(name) || !EXCEPTIONS.contains(&name) && self.has_tracer_symbols(process, file).unwrap_or(false)
    }

    fn has_tracer_symbols(&mut self, process: Pid, file: Option<FileVersion>) -> Option<bool> {
        let path = format!("/proc/{}/exe", process.0);
        let file = file.or_else(|| Some(FileVersion::of(&fs::metadata(&path).ok()?)))?;
        let known = self.0.entry(file);
        Some(*known.or_insert_with(|| File::open(path).is_ok_and(|file| has_dynamic_symbol(&file).unwrap_or(false))))
    }
}

/// Whether an executable imports or exports one of the symbols of tracers.
fn has_dynamic_symbol(file: &File) -> Option<bool> {
    let data = ReadCache::new(file);
    let program: ElfFile<'_, FileHeader64<Endianness>, _> = ElfFile::parse(&data).ok()?;
    // The names are read at once, because some programs have thousands.
    let names = program.section_by_name(".dynstr").and_then(|names| names.data().ok()).unwrap_or_default();
    Some(program.dynamic_symbols().any(|symbol| {
        let wanted = if symbol.is_undefined() { &IMPORTS[..] } else { &EXPORTS };
        let name = names.get(symbol.elf_symbol().st_name(program.endian()) as usize..).unwrap_or_default();
        let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
        wanted.iter().any(|wanted| wanted.as_bytes() == name)
    }))
}

/// Returns the ids in the arguments of a tracer that may name the processes that it is going to
/// trace: `strace -p 7`, `gdb --pid=7`, `gdb program 7`.
pub fn named_processes(arguments: &[Vec<u8>]) -> impl Iterator<Item = Pid> {
    const OPTIONS: [&[u8]; 5] = [b"-p", b"--pid", b"-pid", b"--attach", b"attach"];
    arguments.iter().enumerate().skip(1).filter_map(|(at, argument)| {
        let attached = OPTIONS
            .iter()
            .find_map(|option| argument.strip_prefix(*option))
            .map(|rest| rest.strip_prefix(b"=").unwrap_or(rest));
        let is_named = OPTIONS.contains(&&arguments[at - 1][..]) || at + 1 == arguments.len();
        let digits = attached.or(is_named.then_some(argument))?;
        std::str::from_utf8(digits).ok()?.parse().ok().filter(|pid| *pid > 0).map(Pid)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_are_named_by_arguments() {
        let named = |line: &str| {
            let arguments: Vec<Vec<u8>> = line.split(' ').map(|word| word.as_bytes().to_vec()).collect();
            named_processes(&arguments).map(|Pid(pid)| pid).collect::<Vec<_>>()
        };
        assert_eq!(named("strace -f -s 64 -p 7 -p8"), [7, 8]);
        assert_eq!(named("gdb --pid=7 -batch"), [7]);
        assert_eq!(named("gdb program 7"), [7]);
        assert!(named("strace -s 64 sleep 5s").is_empty());
    }

    #[test]
    fn tracers_are_recognized_by_name_or_import() {
        let own = Pid(std::process::id().cast_signed());
        let mut tracers = Tracers::default();
        assert!(tracers.is_tracer(own, b"/usr/bin/strace", None));
        // Make this test's own executable import ptrace.
        std::hint::black_box(libc::ptrace as *const ());
        assert!(tracers.is_tracer(own, b"/opt/anything", None));
        assert!(!tracers.is_tracer(own, b"/usr/bin/perf", None));
        let mut other = std::process::Command::new("sleep").arg("10").spawn().unwrap();
        let sleep = Pid(other.id().cast_signed());
        // When `spawn` returns, the child has executed its program.
        assert!(!tracers.is_tracer(sleep, b"/opt/strace/sleep", None));
        other.kill().unwrap();
        other.wait().unwrap();
    }
}
