//! Finds the interpreter of a script. `execve` of a script executes the interpreter, and the log
//! does not say so, but it shows the interpreter reading the first line, or `env` executing the
//! program that this line names.

use std::sync::Arc;

use spawnscope_data::event::{Chain, Executed, Frame, Language};

use super::call::{Call, Text, string};

/// Sets the interpreter if a call of the program has read the first line of a script.
pub fn find_interpreter(executed: &mut Executed, call: &Call<'_>) {
    if executed.interpreter.is_some() {
        return;
    }
    let Some(text) = string(call.argument(1)) else { return };
    let Some(line) = text.bytes.strip_prefix(b"#!") else { return };
    let end = line.iter().position(|byte| *byte == b'\n');
    let words = line[..end.unwrap_or(line.len())].trim_ascii();
    let (interpreter, argument) = match words.iter().position(|byte| matches!(byte, b' ' | b'\t')) {
        Some(space) => (&words[..space], words[space..].trim_ascii()),
        None => (words, &b""[..]),
    };
    // Without the end of the line, its last word may be cut. `env` would have executed another
    // program instead of reading.
    let is_whole = end.is_some() || !argument.is_empty();
    let is_env = interpreter.ends_with(b"/env");
    if is_whole && !is_env && interpreter.starts_with(b"/") {
        set(executed, interpreter, Some(argument).filter(|argument| !argument.is_empty()));
    }
}

/// Sets the interpreter if the program was `env`: it executes the program of the script's first
/// line, with the script as the argument.
pub fn find_env(executed: &mut Executed, argv: &[Text]) {
    let mut own = executed.argv.split(|byte| *byte == 0).skip(1);
    let mut next = argv.iter().skip(1);
    let is_script = next.next().is_some_and(|script| script.bytes == executed.path);
    let has_same = next.all(|argument| own.next().is_some_and(|own| own.starts_with(&argument.bytes)));
    if executed.interpreter.is_none() && is_script && has_same {
        let program = argv.first().map(|program| program.bytes.clone()).unwrap_or_default();
        set(executed, b"/usr/bin/env", Some(&program));
    }
}

/// Returns the call site of all that a shell launches, if it was given a script of one line, which
/// reads no other scripts: `sh -c 'a | b'`.
pub fn line_of(path: &[u8], argv: &[Text]) -> Option<Arc<Chain>> {
    let language = match path.rsplit(|byte| *byte == b'/').next()? {
        b"sh" | b"dash" => Language::Dash,
        b"bash" => Language::Bash,
        b"zsh" => Language::Zsh,
        _ => return None,
    };
    let [_, option, script, ..] = argv else { return None };
    let flags = option.bytes.strip_prefix(b"-").filter(|flags| flags.contains(&b'c'))?;
    let is_plain = flags.iter().all(|flag| b"ceux".contains(flag)) && !script.is_cut;
    let mut words = script.bytes.split(|byte| b" \t;&|({".contains(byte));
    let has_others = words.any(|word| matches!(word, b"." | b"source")) || script.bytes.contains(&b'\n');
    let frame = Frame { line: Some(1), ..Frame::unknown(language) };
    (is_plain && !has_others).then(|| Arc::new(Chain { frames: vec![frame], is_truncated: false }))
}

/// Sets the interpreter, and the arguments that it got.
fn set(executed: &mut Executed, interpreter: &[u8], argument: Option<&[u8]>) {
    let mut argv = [interpreter, b"\0"].concat();
    if let Some(argument) = argument {
        argv.extend_from_slice(argument);
        argv.push(0);
    }
    argv.extend_from_slice(&executed.path);
    argv.push(0);
    let first = executed.argv.iter().position(|byte| *byte == 0).map_or(executed.argv.len(), |end| end + 1);
    argv.extend_from_slice(&executed.argv[first..]);
    let omitted = executed.argv_bytes.saturating_sub(executed.argv.len() as u64);
    executed.argv_bytes = argv.len() as u64 + omitted;
    executed.argv = argv;
    executed.interpreter = Some(interpreter.to_vec());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn script() -> Executed {
        Executed { path: b"./s.sh".to_vec(), argv: b"s\0x\0".to_vec(), argv_bytes: 5, ..Executed::default() }
    }

    fn after_reading(text: &str) -> Executed {
        let mut executed = script();
        find_interpreter(&mut executed, &Call::parse(text.as_bytes()).unwrap());
        executed
    }

    #[test]
    fn the_first_line_names_the_interpreter_and_its_argument() {
        let executed = after_reading(r##"read(10, "#! /bin/sh -e\necho"..., 8192) = 90"##);
        assert_eq!(executed.interpreter.as_deref(), Some(&b"/bin/sh"[..]));
        assert_eq!((&executed.argv[..], executed.argv_bytes), (&b"/bin/sh\0-e\0./s.sh\0x\0"[..], 21));
    }

    #[test]
    fn other_reads_name_no_interpreter() {
        for text in [
            r##"read(10, "echo #!/bin/sh\n", 8192) = 15"##,
            r##"read(10, "#!/usr/bin/verylongna"..., 8192) = 90"##,
            r##"read(10, "#!/usr/bin/env python3\n", 8192) = 90"##,
            r##"read(10, 0x7ffc, 8192) = -1 EAGAIN (x)"##,
        ] {
            assert_eq!(after_reading(text).interpreter, None, "{text}");
        }
    }

    #[test]
    fn env_executes_the_program_of_the_first_line() {
        let text = |bytes: &str| Text { bytes: bytes.into(), is_cut: false };
        let mut executed = script();
        find_env(&mut executed, &[text("python3"), text("./s.sh"), text("x")]);
        assert_eq!(executed.argv, b"/usr/bin/env\0python3\0./s.sh\0x\0");
        let mut other = script();
        find_env(&mut other, &[text("python3"), text("./t.sh"), text("x")]);
        assert_eq!(other, script());
    }
}
