//! Reads which command a dash process executes when it forks, or, in a forked shell, before its first system call after setup. `ebpf/dash.h`
//! documents what is read and why. The results of both must be equal, with one exception: the BPF program counts the files that dash reads,
//! in order to know whether a function may come from another file than the script. Here, a function belongs to the script if the script
//! defines it at that line.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};

use spawnscope_data::event::Pid;

use super::memory::Memory;
use super::script::Script;
use super::shell::{InputKind, Shell};
use crate::scripts::path_as_seen_by;
use crate::wire::*;

const MAX_INPUT_DEPTH: usize = 8;
/// Maximum number of bytes of a script that are searched for a function.
const MAX_SEARCHED_BYTES: u64 = 1 << 20;

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

/// What a dash process is executing.
pub(super) struct Position {
    pub(super) line: u32,
    pub(super) function_line: u32,
    pub(super) input_kind: InputKind,
    /// The largest line count of the strings being evaluated; 0 if there are none.
    pub(super) string_lines: u32,
    /// The number of lines that were read from the input.
    pub(super) read_lines: u32,
    /// Whether the shell reads the input of the shell that forked it.
    pub(super) inherits_input: bool,
    /// Whether the shell is forking for a pipeline.
    pub(super) is_pipeline: bool,
}

/// The addresses of the variables of a dash process.
pub(super) struct Variables<'a> {
    pub(super) process: Pid,
    layout: &'a WireDash,
    /// The addresses of the blocks in which busybox keeps the shell's variables and its parameters; 0: none.
    block: u64,
    parameters_block: u64,
}

impl<'a> Variables<'a> {
    /// Finds the variables. Returns `None` for a busybox that runs an applet other than ash, because it has no such blocks.
    pub(super) fn find(script: &mut Script, process: Pid, layout: &'a WireDash) -> Option<Variables<'a>> {
        let (mut block, mut parameters_block) = (0, 0);
        if layout.state_block != 0 {
            block = script.pointer(layout.state_block).filter(|block| *block != 0)?;
            parameters_block = script.pointer(layout.parameters_block)?;
        }
        Some(Variables { process, layout, block, parameters_block })
    }

    fn address(script: &Script, block: u64, variable: u64) -> u64 {
        let base = if variable < DASH_BLOCK_BYTES { block } else { script.bias };
        base.wrapping_add(variable)
    }
}

/// Reads the only frame that dash keeps; returns `None` if it cannot be read.
pub(super) fn read(script: &mut Script, variables: &Variables<'_>, shell: &Shell) -> Option<Position> {
    let layout = variables.layout;
    let line_address = Variables::address(script, variables.block, layout.line);
    let mut position = Position {
        line: script.memory.number(line_address)?,
        function_line: script.number(layout.function_line)?,
        input_kind: InputKind::NoFile,
        string_lines: 0,
        read_lines: 0,
        inherits_input: false,
        is_pipeline: false,
    };
    let job = script.pointer(layout.job)?;
    find_input(script, variables, shell, &mut position)?;
    // jobs.h: struct job, whose list of processes is the structure itself if there is only one process
    let processes = (job != 0).then(|| script.memory.pointer(job.wrapping_add(16))).flatten();
    position.is_pipeline = processes.is_some_and(|processes| processes != job);
    let mut line = line(&position, layout, shell);
    if shell.is_pending {
        line = restore_creator_position(&mut position, shell, line)?;
    }
    add_names(script, variables, &position);
    script.called.frames = 1;
    script.called.lines[0] = line;
    if position.function_line != 0 || position.input_kind == InputKind::File {
        script.called.flags |= SCRIPT_TRUNCATED;
    }
    Some(position)
}

/// Finds the input being read, outside of the strings being evaluated. A subshell no longer has the inputs of the shell that forked it.
fn find_input(script: &mut Script, variables: &Variables<'_>, shell: &Shell, position: &mut Position) -> Option<()> {
    let pointer = Variables::address(script, variables.block, variables.layout.input);
    let memory = &mut script.memory;
    let address = memory.pointer(pointer)?;
    let mut input = Input::read(memory, address)?;
    for _ in 0..MAX_INPUT_DEPTH {
        if input.fd >= 0 || input.outer == 0 {
            break;
        }
        let lines = input.line;
        input = Input::read(memory, input.outer)?;
        // The string given to -c is the script: nothing was read from the input around it.
        if !shell.is_subshell && input.outer == 0 && input.fd == 0 && input.line.cast_signed() <= 1 {
            break;
        }
        position.string_lines = position.string_lines.max(lines);
    }
    position.read_lines = input.line;
    position.inherits_input = shell.is_subshell && input.outer == 0 && input.fd <= 0;
    position.input_kind = match (input.fd, input.outer) {
        (..=0, _) => InputKind::NoFile,
        (_, 0) => InputKind::Script,
        _ => InputKind::File,
    };
    if position.inherits_input {
        position.input_kind = shell.input_kind;
        position.string_lines = position.string_lines.max(shell.string_lines);
    }
    Some(())
}

/// Returns the line in the file; 0 if it is unknown. It is unknown if it is a line of a string, or if a function sources a file.
fn line(position: &Position, layout: &WireDash, shell: &Shell) -> u32 {
    let (line, function_line) = (position.line, position.function_line);
    // Busybox counts the lines of the -c string from 0.
    if layout.state_block != 0 && position.input_kind == InputKind::NoFile {
        return 0;
    }
    let is_unknown = match function_line {
        0 => position.string_lines != 0,
        _ => position.input_kind == InputKind::File || line <= position.string_lines,
    };
    if is_unknown {
        return 0;
    }
    if position.inherits_input && function_line == shell.function_line && (shell.line == 0 || line < shell.line) {
        return shell.line;
    }
    if line < function_line { 0 } else { line }
}

/// Restores the position at which this shell was forked. Returns the line: this shell's own if it has one, otherwise that of its creator;
/// `None` if the shell has since entered or left a function.
fn restore_creator_position(position: &mut Position, shell: &Shell, line: u32) -> Option<u32> {
    if position.function_line != shell.function_line {
        if shell.has_own_line || shell.function_line != 0 {
            return None;
        }
        position.function_line = 0;
    }
    Some(if shell.has_own_line { line } else { shell.line })
}

fn add_names(script: &mut Script, variables: &Variables<'_>, position: &Position) {
    let function = function_name(script, variables, position);
    let dollar_zero = Variables::address(script, variables.block, variables.layout.dollar_zero);
    let command_name = Variables::address(script, variables.block, variables.layout.command_name);
    let file = match position.input_kind {
        InputKind::Script => script.memory.pointer(dollar_zero).filter(|name| {
            position.function_line == 0
                || (position.function_line > 1
                    && defines(script, variables.process, *name, function, position.function_line))
        }),
        InputKind::File if position.function_line == 0 && position.string_lines == 0 => {
            script.memory.pointer(command_name)
        }
        _ => None,
    };
    script.add_text_if_known(file, SCRIPT_FILE_BYTES);
    script.add_text_if_known(function, SCRIPT_FUNCTION_BYTES);
}

/// Returns the address of the function's name. The name precedes the positional parameters, unless `set` has replaced them.
fn function_name(script: &mut Script, variables: &Variables<'_>, position: &Position) -> Option<u64> {
    if position.function_line == 0 {
        return None;
    }
    // options.h: struct shparam, from `malloc` on
    let parameters = Variables::address(script, variables.parameters_block, variables.layout.parameters);
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
    let Ok(file) = File::open(path_as_seen_by(process, &path)) else {
        return false;
    };
    if !file.metadata().is_ok_and(|file| file.is_file()) {
        return false;
    }
    let lines = BufReader::new(file.take(MAX_SEARCHED_BYTES)).split(b'\n');
    let text = lines.map_while(Result::ok).nth(line as usize - 1);
    text.is_some_and(|text| is_definition(&text, name.as_deref().unwrap_or_default()))
}

/// Whether a line contains the head of a function, such as `name ()`.
fn is_definition(line: &[u8], name: &[u8]) -> bool {
    let mut opening = (0..line.len()).filter(|at| line[*at] == b'(');
    opening.any(|at| {
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
