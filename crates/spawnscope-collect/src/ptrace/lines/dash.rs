//! Reads what a dash executes when it forks, or in a forked shell before its first own system call. `ebpf/dash.h` documents what is read and
//! why; both must report the same. One thing differs: that program counts the files that a dash reads, and so knows that a function may be
//! from another one. Here, a function is of the script if the script defines it at that line.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};

use spawnscope_data::event::Pid;

use super::memory::Memory;
use super::script::Script;
use super::shell::{Reads, Shell};
use crate::ptrace::programs::seen_by;
use crate::wire::*;

const INPUT_DEPTH: usize = 8;
/// Bytes of a script that are searched for a function.
const SEARCHED: u64 = 1 << 20;

/// input.h: struct parsefile
struct Input {
    outer: u64,
    line: u32,
    /// -1: a string
    fd: i32,
}

impl Input {
    fn read(memory: &mut Memory, at: u64) -> Option<Input> {
        Some(Input {
            outer: memory.pointer(at)?,
            line: memory.number(at.wrapping_add(8))?,
            fd: memory.number(at.wrapping_add(12))?.cast_signed(),
        })
    }
}

/// The position of a dash.
pub(super) struct Position {
    pub(super) line: u32,
    pub(super) function_line: u32,
    pub(super) reads: Reads,
    /// The largest line count of the strings being evaluated; 0 if there are none.
    pub(super) counted: u32,
    /// Lines read from the input.
    pub(super) read_lines: u32,
    /// Whether it reads the input of the shell that forked it.
    pub(super) inherits: bool,
    /// Whether it is forking for a pipeline.
    pub(super) is_pipeline: bool,
}

/// Where the variables of a dash are in a process.
pub(super) struct Place<'a> {
    pub(super) process: Pid,
    layout: &'a WireDash,
    /// The addresses of its blocks.
    own: u64,
    words: u64,
}

impl<'a> Place<'a> {
    /// `None` for a busybox that runs another applet: it has no such blocks.
    pub(super) fn find(script: &mut Script, process: Pid, layout: &'a WireDash) -> Option<Place<'a>> {
        let (mut own, mut words) = (0, 0);
        if layout.own_block != 0 {
            own = script.pointer(layout.own_block).filter(|block| *block != 0)?;
            words = script.pointer(layout.parameters_block)?;
        }
        Some(Place {
            process,
            layout,
            own,
            words,
        })
    }

    fn of(script: &Script, block: u64, variable: u64) -> u64 {
        let base = if variable < DASH_BLOCK_BYTES {
            block
        } else {
            script.bias
        };
        base.wrapping_add(variable)
    }
}

/// Reads the only frame of a shell; `None` if it cannot be read.
pub(super) fn read(script: &mut Script, place: &Place<'_>, shell: &Shell) -> Option<Position> {
    let layout = place.layout;
    let own_line = Place::of(script, place.own, layout.line);
    let mut position = Position {
        line: script.memory.number(own_line)?,
        function_line: script.number(layout.function_line)?,
        reads: Reads::Nothing,
        counted: 0,
        read_lines: 0,
        inherits: false,
        is_pipeline: false,
    };
    let job = script.pointer(layout.job)?;
    find_input(script, place, shell, &mut position)?;
    // jobs.h: struct job, which holds the process itself if there is only one
    let processes = (job != 0)
        .then(|| script.memory.pointer(job.wrapping_add(16)))
        .flatten();
    position.is_pipeline = processes.is_some_and(|processes| processes != job);
    let mut line = line(&position, layout, shell);
    if shell.is_pending {
        line = return_to_creator(&mut position, shell, line)?;
    }
    add_names(script, place, &position);
    script.called.frames = 1;
    script.called.lines[0] = line;
    if position.function_line != 0 || position.reads == Reads::File {
        script.called.flags |= SCRIPT_TRUNCATED;
    }
    Some(position)
}

/// Finds the input being read, below strings that are being evaluated. A subshell has lost the inputs it was forked in.
fn find_input(script: &mut Script, place: &Place<'_>, shell: &Shell, position: &mut Position) -> Option<()> {
    let at = Place::of(script, place.own, place.layout.input);
    let memory = &mut script.memory;
    let address = memory.pointer(at)?;
    let mut input = Input::read(memory, address)?;
    for _ in 0..INPUT_DEPTH {
        if input.fd >= 0 || input.outer == 0 {
            break;
        }
        let lines = input.line;
        input = Input::read(memory, input.outer)?;
        // The string given to -c is the script: nothing was read from the input around it.
        if !shell.is_subshell && input.outer == 0 && input.fd == 0 && input.line.cast_signed() <= 1 {
            break;
        }
        position.counted = position.counted.max(lines);
    }
    position.read_lines = input.line;
    position.inherits = shell.is_subshell && input.outer == 0 && input.fd <= 0;
    position.reads = match (input.fd, input.outer) {
        (..=0, _) => Reads::Nothing,
        (_, 0) => Reads::Script,
        _ => Reads::File,
    };
    if position.inherits {
        position.reads = shell.reads;
        position.counted = position.counted.max(shell.counted);
    }
    Some(())
}

/// The line in the file; 0 if unknown. It is unknown if it belongs to a string, or to a file that a function has read.
fn line(position: &Position, layout: &WireDash, shell: &Shell) -> u32 {
    let (line, function_line) = (position.line, position.function_line);
    // Busybox counts the lines of the -c string from 0.
    if layout.own_block != 0 && position.reads == Reads::Nothing {
        return 0;
    }
    let is_of_string = match function_line {
        0 => position.counted != 0,
        _ => position.reads == Reads::File || line <= position.counted,
    };
    if is_of_string {
        return 0;
    }
    if position.inherits && function_line == shell.function_line && (shell.line == 0 || line < shell.line) {
        return shell.line;
    }
    if line < function_line { 0 } else { line }
}

/// Restores the position of the shell that forked this one, and returns its line. This shell may have called a function since; the call
/// site of that function is then unknown.
fn return_to_creator(position: &mut Position, shell: &Shell, line: u32) -> Option<u32> {
    if position.function_line != shell.function_line {
        if shell.has_own_line || shell.function_line != 0 {
            return None;
        }
        position.function_line = 0;
    }
    Some(if shell.has_own_line { line } else { shell.line })
}

fn add_names(script: &mut Script, place: &Place<'_>, position: &Position) {
    let function = function(script, place, position);
    let own_name = Place::of(script, place.own, place.layout.own_name);
    let command_name = Place::of(script, place.own, place.layout.command_name);
    let file = match position.reads {
        Reads::Script => script.memory.pointer(own_name).filter(|name| {
            position.function_line == 0
                || (position.function_line > 1
                    && defines(script, place.process, *name, function, position.function_line))
        }),
        Reads::File if position.function_line == 0 && position.counted == 0 => script.memory.pointer(command_name),
        _ => None,
    };
    script.add_text_if_known(file, SCRIPT_FILE_BYTES);
    script.add_text_if_known(function, SCRIPT_FUNCTION_BYTES);
}

/// The name of the function. It precedes the parameters, unless `set` replaced them.
fn function(script: &mut Script, place: &Place<'_>, position: &Position) -> Option<u64> {
    if position.function_line == 0 {
        return None;
    }
    // options.h: struct shparam, from `malloc` on
    let parameters = Place::of(script, place.words, place.layout.parameters);
    let allocated = script.memory.byte(parameters.wrapping_sub(4))?;
    let words = script.memory.pointer(parameters)?;
    (allocated == 0).then(|| script.memory.pointer(words.wrapping_sub(8)))?
}

/// Whether the script at this path defines a function of this name, or one of unknown name, at this line.
fn defines(script: &mut Script, process: Pid, path: u64, name: Option<u64>, line: u32) -> bool {
    let path = script.memory.text(path, SCRIPT_FILE_BYTES as usize);
    let name = name.and_then(|name| script.memory.text(name, SCRIPT_FUNCTION_BYTES as usize));
    let Some(path) = path.filter(|path| !path.is_empty()) else {
        return false;
    };
    let Ok(file) = File::open(seen_by(process, &path)) else {
        return false;
    };
    if !file.metadata().is_ok_and(|file| file.is_file()) {
        return false;
    }
    let lines = BufReader::new(file.take(SEARCHED)).split(b'\n');
    let text = lines.map_while(Result::ok).nth(line as usize - 1);
    text.is_some_and(|text| is_definition(&text, name.as_deref().unwrap_or_default()))
}

/// Whether a line has the head of a function, such as `name ()`.
fn is_definition(line: &[u8], name: &[u8]) -> bool {
    let opening = (0..line.len()).filter(|at| line[*at] == b'(');
    opening.into_iter().any(|at| {
        let closes = line[at + 1..].trim_ascii_start().starts_with(b")");
        let before = line[..at].trim_ascii_end();
        let is_name = before.strip_suffix(name).is_some_and(|rest| {
            let last = rest.last();
            name.is_empty() || last.is_none_or(|byte| !byte.is_ascii_alphanumeric() && *byte != b'_')
        });
        closes && is_name && !before.is_empty()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_head_of_a_function_is_recognized() {
        for line in ["f() {", "  f ( ) {", "true; f() { :; }", "a() { :; }; f() {"] {
            assert!(is_definition(line.as_bytes(), b"f"), "{line}");
        }
        for line in ["", "f", "f $(x)", "of() {", "f2() {", "(f)"] {
            assert!(!is_definition(line.as_bytes(), b"f"), "{line}");
        }
        assert!(is_definition(b"set_() {", b""), "a function whose name is unknown");
        assert!(!is_definition(b"()", b"") && !is_definition(b"x=$(y)", b""));
    }
}
