//! Decodes what a shell stores about its script's call chain.

use crate::wire::*;
use spawnscope_data::event::{Chain, Frame, Language};

/// The shell's data for one frame.
struct Kept<'a> {
    file: &'a [u8],
    function: &'a [u8],
}

/// The chain of a record and the data that follows it; without frames if nothing is known. `None` if it is not a record of this
/// format.
pub(crate) fn chain(called: &WireScriptCalled, data: &[u8]) -> Option<Chain> {
    let data = data.get(..called.data_bytes as usize)?;
    let mut texts = data.split(|&byte| byte == 0);
    let mut kept = Vec::new();
    for _ in 0..called.frames {
        let (file, function) = (texts.next()?, texts.next()?);
        kept.push(Kept { file, function });
    }
    match called.interpreter {
        INTERPRETER_BASH => Some(bash(called, &kept, texts.next().unwrap_or_default())),
        INTERPRETER_DASH => Some(dash(called, kept.first()?)),
        INTERPRETER_PERL => Some(perl(called, &kept)),
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
/// Bash's name for such code in the script itself, whose frame is the outermost.
const MAIN: &[u8] = b"main";

/// `own_name` is $0 if it matters, otherwise empty.
fn bash(called: &WireScriptCalled, kept: &[Kept<'_>], own_name: &[u8]) -> Chain {
    let is_truncated = called.flags & SCRIPT_TRUNCATED != 0;
    let is_interactive = called.flags & SCRIPT_INTERACTIVE != 0;
    let ends = called.flags & SCRIPT_OUTERMOST != 0;
    let is_from_zero = called.flags & SCRIPT_FROM_ZERO != 0;
    let outermost = kept.last().filter(|_| ends && !is_truncated);
    let is_script = outermost.is_some_and(|frame| frame.function == MAIN);
    let frame = |(at, kept): (usize, &Kept<'_>)| {
        let is_main = is_script && at + 1 == called.frames as usize;
        let is_function = !is_main && kept.function != SOURCE;
        // The file names that bash reports for functions that came from no file.
        let came_in = kept.file == MAIN || kept.file == own_name || own_name.is_empty();
        // With a prompt, bash counts lines in functions differently, and most functions called by startup files were evaluated by
        // them.
        let has_line = !is_interactive || kept.function == SOURCE;
        let is_placeholder = is_function && (kept.file == b"environment" || (!ends && came_in));
        let has_line = has_line && !(is_placeholder && is_from_zero);
        Frame {
            function: Some(kept.function)
                .filter(|_| is_function)
                .filter(known)
                .map(<[u8]>::to_vec),
            file: Some(kept.file)
                .filter(|_| !is_placeholder)
                .filter(known)
                .map(<[u8]>::to_vec),
            line: line(called, at).filter(|_| has_line),
            ..Frame::unknown(Language::Bash)
        }
    };
    let mut frames: Vec<Frame> = kept.iter().enumerate().map(frame).collect();
    // The outermost code came from `-c` or standard input.
    if !ends && !is_truncated && !is_interactive {
        frames.push(Frame {
            line: line(called, kept.len()).filter(|_| !is_from_zero),
            ..Frame::unknown(Language::Bash)
        });
    }
    Chain { frames, is_truncated }
}

/// Dash keeps only the innermost frame.
fn dash(called: &WireScriptCalled, kept: &Kept<'_>) -> Chain {
    let frame = Frame {
        function: Some(kept.function).filter(known).map(<[u8]>::to_vec),
        file: Some(kept.file).filter(known).map(<[u8]>::to_vec),
        line: line(called, 0),
        ..Frame::unknown(Language::Dash)
    };
    let is_known = frame != Frame::unknown(Language::Dash);
    Chain {
        frames: is_known.then_some(frame).into_iter().collect(),
        is_truncated: called.flags & SCRIPT_TRUNCATED != 0,
    }
}

/// What Perl calls the texts that it evaluates, such as `(eval 3)`.
const EVALUATED: &[u8] = b"(eval ";

/// Lines of evaluated texts are in no file, so what they call has the line where they are evaluated.
fn perl(called: &WireScriptCalled, kept: &[Kept<'_>]) -> Chain {
    let frames = kept.iter().enumerate();
    let frames = frames.filter(|(_, kept)| !kept.file.starts_with(EVALUATED));
    let frames = frames.map(|(at, kept)| Frame {
        function: Some(kept.function).filter(known).map(<[u8]>::to_vec),
        file: Some(kept.file).filter(known).map(<[u8]>::to_vec),
        line: line(called, at),
        ..Frame::unknown(Language::Perl)
    });
    Chain {
        frames: frames.collect(),
        is_truncated: called.flags & SCRIPT_TRUNCATED != 0,
    }
}

fn known(text: &&[u8]) -> bool {
    !text.is_empty()
}

#[cfg(test)]
mod tests {
    use zerocopy::FromZeros;

    use super::*;

    /// Decodes a record with these lines, with file and function of each frame, and with any remaining texts.
    fn decoded(interpreter: u32, flags: u32, lines: &[u32], texts: &[&str], frames: u32) -> Option<Chain> {
        let mut called = WireScriptCalled::new_zeroed();
        called.lines[..lines.len()].copy_from_slice(lines);
        let data = texts
            .iter()
            .fold(Vec::new(), |data, text| [&data, text.as_bytes(), b"\0"].concat());
        (called.interpreter, called.flags, called.frames) = (interpreter, flags, frames);
        (called.known_lines, called.data_bytes) = (SCRIPT_FRAMES + 1, data.len() as u32);
        chain(&called, &data)
    }

    fn places(chain: &Chain) -> Vec<(Option<&str>, Option<u32>, Option<&str>)> {
        let text = |bytes| std::str::from_utf8(bytes).unwrap();
        let frames = chain.frames.iter();
        frames
            .map(|frame| {
                let [file, function] = [&frame.file, &frame.function].map(|name| name.as_deref().map(text));
                (file, frame.line, function)
            })
            .collect()
    }

    #[test]
    fn a_script_is_not_a_function_unless_it_is_called_main() {
        let texts = ["a.sh", "main", "lib.sh", "source", "a.sh", "main"];
        let script = decoded(INTERPRETER_BASH, SCRIPT_OUTERMOST, &[7, 5, 9, 0], &texts, 3).unwrap();
        assert_eq!(
            places(&script),
            [
                (Some("a.sh"), Some(7), Some("main")),
                (Some("lib.sh"), Some(5), None),
                (Some("a.sh"), Some(9), None)
            ]
        );
    }

    #[test]
    fn functions_that_came_from_no_file_are_in_none() {
        for placeholder in ["main", "environment", "bash"] {
            let given = decoded(INTERPRETER_BASH, 0, &[2, 4], &[placeholder, "f", "bash"], 1).unwrap();
            assert_eq!(places(&given), [(None, Some(2), Some("f")), (None, Some(4), None)]);
        }
        let from_file = decoded(INTERPRETER_BASH, 0, &[2, 4], &["lib.sh", "f", "bash"], 1).unwrap();
        assert_eq!(places(&from_file)[0].0, Some("lib.sh"));
        let script = decoded(
            INTERPRETER_BASH,
            SCRIPT_OUTERMOST,
            &[2, 4, 0],
            &["main", "f", "main", "main"],
            2,
        )
        .unwrap();
        assert_eq!(places(&script)[0].0, Some("main"), "a script of that name");
    }

    #[test]
    fn lines_that_may_be_counted_from_zero_are_unknown_but_in_files() {
        let texts = ["lib.sh", "f", "main", "g", "bash"];
        let given = decoded(INTERPRETER_BASH, SCRIPT_FROM_ZERO, &[2, 4, 7], &texts, 2).unwrap();
        assert_eq!(
            places(&given),
            [
                (Some("lib.sh"), Some(2), Some("f")),
                (None, None, Some("g")),
                (None, None, None)
            ]
        );
    }

    #[test]
    fn a_shell_with_a_prompt_has_lines_in_the_files_that_it_reads_and_nothing_around_its_functions() {
        let texts = ["rc", "f", "rc", "source", "rc", "g", "bash"];
        let chain = decoded(INTERPRETER_BASH, SCRIPT_INTERACTIVE, &[2, 4, 7], &texts, 3).unwrap();
        assert_eq!(
            places(&chain),
            [
                (Some("rc"), None, Some("f")),
                (Some("rc"), Some(4), None),
                (Some("rc"), None, Some("g"))
            ]
        );
        let chain = decoded(INTERPRETER_BASH, SCRIPT_INTERACTIVE, &[2, 4], &["rc", "f", "bash"], 1).unwrap();
        assert_eq!(places(&chain), [(Some("rc"), None, Some("f"))]);
        assert!(
            decoded(INTERPRETER_BASH, SCRIPT_INTERACTIVE, &[2], &["bash"], 0)
                .unwrap()
                .frames
                .is_empty()
        );
    }

    #[test]
    fn places_unknown_to_dash_give_no_chain() {
        let known = decoded(INTERPRETER_DASH, SCRIPT_TRUNCATED, &[3], &["", "f"], 1).unwrap();
        assert_eq!(
            (places(&known), known.is_truncated),
            (vec![(None, Some(3), Some("f"))], true)
        );
        assert!(
            decoded(INTERPRETER_DASH, 0, &[0], &["", ""], 1)
                .unwrap()
                .frames
                .is_empty()
        );
    }

    #[test]
    fn a_text_that_perl_evaluates_has_the_line_of_its_eval() {
        let texts = ["(eval 3)", "", "lib/A.pm", "f", "-e", ""];
        let chain = decoded(INTERPRETER_PERL, SCRIPT_TRUNCATED, &[7, 5, 1], &texts, 3).unwrap();
        assert_eq!(
            places(&chain),
            [(Some("lib/A.pm"), Some(5), Some("f")), (Some("-e"), Some(1), None)]
        );
        assert!(chain.is_truncated);
    }

    #[test]
    fn a_record_that_is_too_short_is_malformed() {
        assert_eq!(decoded(INTERPRETER_BASH, 0, &[1], &["a.sh"], 2), None);
        assert_eq!(decoded(9, 0, &[1], &["a.sh", "f"], 1), None);
    }
}
