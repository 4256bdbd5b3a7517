//! Decodes what was read from the memory of a shell or of Perl about the call chain of its script.

use crate::callers::dash::functions::{Call, sources_between};
use crate::callers::sources::Place;
use crate::callers::{Files, known};
use crate::wire::*;
use spawnscope_data::event::{Chain, Frame, Language};

/// What the interpreter stores about one frame.
struct RawFrame<'a> {
    file: &'a [u8],
    function: &'a [u8],
}

/// Returns the chain of a record; it has no frames if nothing is known. `data` follows the record.
/// Returns `None` if it does not have this format.
pub(crate) fn chain(called: &WireScriptCalled, data: &[u8]) -> Option<Chain> {
    let data = data.get(..called.data_bytes as usize)?;
    let mut texts = data.split(|&byte| byte == 0);
    let mut raw = Vec::new();
    for _ in 0..called.frames {
        let (file, function) = (texts.next()?, texts.next()?);
        raw.push(RawFrame { file, function });
    }
    match called.interpreter {
        INTERPRETER_BASH => Some(bash(called, &raw, texts.next().unwrap_or_default())),
        INTERPRETER_PERL => Some(perl(called, &raw)),
        INTERPRETER_ZSH => Some(zsh(called, &raw, texts.next().unwrap_or_default())),
        _ => None,
    }
}

fn line(called: &WireScriptCalled, frame: usize) -> Option<u32> {
    let is_known = frame < called.known_lines as usize;
    let line = called.lines.get(frame).copied().filter(|_| is_known);
    line.filter(|&line| line != 0)
}

/// Bash's name for code outside of functions in a file that another file sources.
const SOURCE: &[u8] = b"source";
/// Bash's name for code outside of functions in the script itself, whose frame is the outermost.
const MAIN: &[u8] = b"main";

/// Returns bash's chain. `dollar_zero` is $0, or empty if the record does not contain it.
fn bash(called: &WireScriptCalled, raw: &[RawFrame<'_>], dollar_zero: &[u8]) -> Chain {
    let is_truncated = called.flags & SCRIPT_TRUNCATED != 0;
    let is_interactive = called.flags & SCRIPT_INTERACTIVE != 0;
    let has_outermost = called.flags & SCRIPT_OUTERMOST != 0;
    let counts_from_zero = called.flags & SCRIPT_FROM_ZERO != 0;
    let outermost = raw.last().filter(|_| has_outermost && !is_truncated);
    let is_script = outermost.is_some_and(|frame| frame.function == MAIN);
    let mut frames = Vec::new();
    for (at, raw) in raw.iter().enumerate() {
        let is_main = is_script && at + 1 == called.frames as usize;
        let is_function = !is_main && raw.function != SOURCE;
        // Bash reports these file names for functions that do not come from a file.
        let is_from_no_file = raw.file == MAIN || raw.file == dollar_zero || dollar_zero.is_empty();
        // An interactive bash counts lines in functions differently. Startup files mostly call
        // functions from evaluated texts.
        let has_line = !is_interactive || raw.function == SOURCE;
        let is_placeholder = is_function && (raw.file == b"environment" || (!has_outermost && is_from_no_file));
        let has_line = has_line && !(is_placeholder && counts_from_zero);
        frames.push(Frame {
            function: known(raw.function).filter(|_| is_function),
            file: known(raw.file).filter(|_| !is_placeholder),
            line: line(called, at).filter(|_| has_line),
            ..Frame::unknown(Language::Bash)
        });
    }
    // The outermost code came from `-c` or standard input.
    if !has_outermost && !is_truncated && !is_interactive {
        frames.push(Frame {
            line: line(called, raw.len()).filter(|_| !counts_from_zero),
            ..Frame::unknown(Language::Bash)
        });
    }
    Chain { frames, is_truncated }
}

/// Returns the chain of a record of dash. Dash stores only the innermost frame, and not the file of
/// a function. `data` follows the record: `$0` or the sourced file being read, the function, and,
/// for a call site in a function, the sourced file being read. `place` tells how to open them.
/// Returns `None` if the record does not have this format.
pub(crate) fn dash(
    called: &WireScriptCalled,
    data: &[u8],
    place: impl FnOnce() -> Place,
    files: &mut Files,
) -> Option<Chain> {
    let mut texts = data.get(..called.data_bytes as usize)?.split(|&byte| byte == 0);
    let (script, function) = (texts.next()?, texts.next()?);
    let mut frame = Frame {
        function: known(function),
        file: known(script),
        line: line(called, 0),
        ..Frame::unknown(Language::Dash)
    };
    let function_line = called.lines[DASH_AT_FUNCTION as usize];
    if function_line != 0 && !script.is_empty() {
        let reading = texts.next()?;
        let place = place();
        let call = Call { script, reading, function, function_line };
        let is_only = called.flags & SCRIPT_IS_ONLY_FILE != 0;
        let unread = || frame.file.filter(|_| is_only);
        frame.file = files.functions.file_of(&call, &place, &mut files.sources).unwrap_or_else(unread);
        if called.flags & SCRIPT_READS_FILE != 0 {
            // If the function sources that file, it may be a line of that.
            let source = frame.file.as_ref().and_then(|file| files.sources.read(file, &place));
            let is_certain =
                |line: &u32| source.is_some_and(|source| !sources_between(&source.text, function_line, *line));
            frame.line = frame.line.filter(is_certain);
        }
    }
    let is_known = frame != Frame::unknown(Language::Dash);
    Some(Chain {
        frames: is_known.then_some(frame).into_iter().collect(),
        is_truncated: called.flags & SCRIPT_TRUNCATED != 0,
    })
}

/// The start of Perl's file names for the texts that it evaluates, such as `(eval 3)`.
const EVALUATED: &[u8] = b"(eval ";

/// Returns Perl's chain. Lines of evaluated texts are not in a file, so their frames are omitted;
/// the next frame outwards has the line of the eval.
fn perl(called: &WireScriptCalled, raw: &[RawFrame<'_>]) -> Chain {
    let frames = raw.iter().enumerate();
    let frames = frames.filter(|(_, raw)| !raw.file.starts_with(EVALUATED));
    let frames = frames.map(|(at, raw)| Frame {
        function: known(raw.function),
        file: known(raw.file),
        line: line(called, at),
        ..Frame::unknown(Language::Perl)
    });
    Chain { frames: frames.collect(), is_truncated: called.flags & SCRIPT_TRUNCATED != 0 }
}

/// What zsh takes for the file of commands that come from no file.
const NO_FILE: &[u8] = b"zsh";

/// Returns zsh's chain. `outermost` is the file of the outermost caller, or the name of the shell.
fn zsh(called: &WireScriptCalled, raw: &[RawFrame<'_>], outermost: &[u8]) -> Chain {
    let script = RawFrame { file: outermost, function: b"" };
    let name = outermost.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    let script = (name.strip_prefix(b"-").unwrap_or(name) != NO_FILE && !name.is_empty()).then_some(&script);
    let frames = raw.iter().chain(script).enumerate().map(|(at, raw)| Frame {
        function: known(raw.function).map(without_meta),
        file: known(raw.file).map(without_meta),
        line: line(called, at),
        ..Frame::unknown(Language::Zsh)
    });
    Chain { frames: frames.collect(), is_truncated: called.flags & SCRIPT_TRUNCATED != 0 }
}

/// In its texts, zsh replaces bytes with a special meaning by this byte and a changed byte.
const META: u8 = 0x83;

fn without_meta(text: Vec<u8>) -> Vec<u8> {
    let mut bytes = text.into_iter();
    std::iter::from_fn(|| match bytes.next()? {
        META => bytes.next().map(|byte| byte ^ 32),
        byte => Some(byte),
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use zerocopy::FromZeros;

    use super::*;

    /// Decodes a record with these lines, with file and function of each frame, and with any
    /// remaining texts.
    fn decoded(interpreter: u32, flags: u32, lines: &[u32], texts: &[&str], frames: u32) -> Option<Chain> {
        let (called, data) = record(interpreter, flags, lines, texts, frames);
        chain(&called, &data)
    }

    fn record(interpreter: u32, flags: u32, lines: &[u32], texts: &[&str], frames: u32) -> (WireScriptCalled, Vec<u8>) {
        let mut called = WireScriptCalled::new_zeroed();
        called.lines[..lines.len()].copy_from_slice(lines);
        let data = texts.iter().fold(Vec::new(), |data, text| [&data, text.as_bytes(), b"\0"].concat());
        (called.interpreter, called.flags, called.frames) = (interpreter, flags, frames);
        (called.known_lines, called.data_bytes) = (SCRIPT_FRAMES + 1, data.len() as u32);
        (called, data)
    }

    fn positions(chain: &Chain) -> Vec<(Option<&str>, Option<u32>, Option<&str>)> {
        let frames = chain.frames.iter();
        frames
            .map(|frame| {
                let [file, function] = [&frame.file, &frame.function]
                    .map(|name| name.as_deref().map(|bytes| std::str::from_utf8(bytes).unwrap()));
                (file, frame.line, function)
            })
            .collect()
    }

    #[test]
    fn the_outermost_file_of_zsh_is_a_script_unless_it_is_the_shell() {
        let chain = |outermost| decoded(INTERPRETER_ZSH, 0, &[7, 3], &["lib.zsh", "f", outermost], 1).unwrap();
        let (f, script) = ((Some("lib.zsh"), Some(7), Some("f")), (Some("/r/a.zsh"), Some(3), None));
        assert_eq!(positions(&chain("/r/a.zsh")), [f, script]);
        for shell in ["zsh", "-zsh", "/bin/zsh", ""] {
            assert_eq!(positions(&chain(shell)), [f], "{shell}");
        }
        assert_eq!(without_meta(b"\xc2\x83\xa3.zsh".to_vec()), b"\xc2\x83.zsh");
    }

    #[test]
    fn the_top_level_of_a_script_is_not_a_function_but_a_function_named_main_is() {
        let texts = ["a.sh", "main", "lib.sh", "source", "a.sh", "main"];
        let script = decoded(INTERPRETER_BASH, SCRIPT_OUTERMOST, &[7, 5, 9, 0], &texts, 3).unwrap();
        assert_eq!(
            positions(&script),
            [(Some("a.sh"), Some(7), Some("main")), (Some("lib.sh"), Some(5), None), (Some("a.sh"), Some(9), None)]
        );
    }

    #[test]
    fn functions_that_do_not_come_from_a_file_have_no_file() {
        for placeholder in ["main", "environment", "bash"] {
            let chain = decoded(INTERPRETER_BASH, 0, &[2, 4], &[placeholder, "f", "bash"], 1).unwrap();
            assert_eq!(positions(&chain), [(None, Some(2), Some("f")), (None, Some(4), None)]);
        }
        let from_file = decoded(INTERPRETER_BASH, 0, &[2, 4], &["lib.sh", "f", "bash"], 1).unwrap();
        assert_eq!(positions(&from_file)[0].0, Some("lib.sh"));
        let script =
            decoded(INTERPRETER_BASH, SCRIPT_OUTERMOST, &[2, 4, 0], &["main", "f", "main", "main"], 2).unwrap();
        assert_eq!(positions(&script)[0].0, Some("main"), "a script named main");
    }

    #[test]
    fn lines_that_may_be_counted_from_zero_are_known_only_in_files() {
        let texts = ["lib.sh", "f", "main", "g", "bash"];
        let chain = decoded(INTERPRETER_BASH, SCRIPT_FROM_ZERO, &[2, 4, 7], &texts, 2).unwrap();
        assert_eq!(
            positions(&chain),
            [(Some("lib.sh"), Some(2), Some("f")), (None, None, Some("g")), (None, None, None)]
        );
    }

    #[test]
    fn an_interactive_shell_has_lines_only_in_the_files_that_it_sources() {
        let texts = ["rc", "f", "rc", "source", "rc", "g", "bash"];
        let chain = decoded(INTERPRETER_BASH, SCRIPT_INTERACTIVE, &[2, 4, 7], &texts, 3).unwrap();
        assert_eq!(
            positions(&chain),
            [(Some("rc"), None, Some("f")), (Some("rc"), Some(4), None), (Some("rc"), None, Some("g"))]
        );
        let chain = decoded(INTERPRETER_BASH, SCRIPT_INTERACTIVE, &[2, 4], &["rc", "f", "bash"], 1).unwrap();
        assert_eq!(positions(&chain), [(Some("rc"), None, Some("f"))]);
        assert!(decoded(INTERPRETER_BASH, SCRIPT_INTERACTIVE, &[2], &["bash"], 0).unwrap().frames.is_empty());
    }

    #[test]
    fn a_position_that_dash_does_not_know_gives_no_chain() {
        let (known, data) = record(INTERPRETER_DASH, SCRIPT_TRUNCATED, &[3], &["", "f"], 1);
        let known = dash(&known, &data, Place::default, &mut Files::default()).unwrap();
        assert_eq!((positions(&known), known.is_truncated), (vec![(None, Some(3), Some("f"))], true));
        let (unknown, data) = record(INTERPRETER_DASH, 0, &[0], &["", ""], 1);
        assert!(dash(&unknown, &data, Place::default, &mut Files::default()).unwrap().frames.is_empty());
    }

    #[test]
    fn a_line_of_dash_is_unknown_where_it_may_be_in_a_file_that_the_function_sources() {
        let temporary = tempfile::tempdir().unwrap();
        std::fs::write(temporary.path().join("lib"), "f() {\n  a\n  . x\n  b\n}\n").unwrap();
        let script = temporary.path().join("main");
        std::fs::write(&script, ". ./lib\n").unwrap();
        let lines = |function: &str, flags, line| {
            let texts = [script.to_str().unwrap(), function, "other"];
            let (called, data) = record(INTERPRETER_DASH, flags, &[line, 1], &texts, 1);
            let chain = dash(&called, &data, Place::default, &mut Files::default()).unwrap();
            (chain.frames[0].file.is_some(), chain.frames[0].line)
        };
        assert_eq!(lines("f", 0, 4), (true, Some(4)));
        assert_eq!(lines("f", SCRIPT_READS_FILE, 2), (true, Some(2)));
        assert_eq!(lines("f", SCRIPT_READS_FILE, 4), (true, None));
        assert_eq!(lines("g", 0, 4), (false, Some(4)));
        assert_eq!(lines("g", SCRIPT_READS_FILE, 4), (false, None));
    }

    #[test]
    fn the_frames_of_a_text_that_perl_evaluates_are_omitted() {
        let texts = ["(eval 3)", "", "lib/A.pm", "f", "-e", ""];
        let chain = decoded(INTERPRETER_PERL, SCRIPT_TRUNCATED, &[7, 5, 1], &texts, 3).unwrap();
        assert_eq!(positions(&chain), [(Some("lib/A.pm"), Some(5), Some("f")), (Some("-e"), Some(1), None)]);
        assert!(chain.is_truncated);
    }

    #[test]
    fn a_record_that_is_too_short_is_malformed() {
        assert_eq!(decoded(INTERPRETER_BASH, 0, &[1], &["a.sh"], 2), None);
        assert_eq!(decoded(9, 0, &[1], &["a.sh", "f"], 1), None);
    }
}
