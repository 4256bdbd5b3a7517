//! Words, pieces and names, compared with what the installed shells do.

extern crate std;

use std::process::Command;
use std::string::String;
use std::vec::Vec;

use super::*;

/// Divides a text into words without expansions.
fn words(text: &str) -> Option<Vec<String>> {
    let mut lexer = Lexer::new(text.as_bytes());
    let mut words = Vec::new();
    loop {
        lexer.skip_blanks();
        if lexer.rest().is_empty() {
            return Some(words);
        }
        let mut word = Vec::new();
        read_word(
            &mut lexer,
            |byte| byte >= 128,
            |byte| {
                word.push(byte);
                Ok(())
            },
        )
        .ok()?;
        words.push(String::from_utf8(word).ok()?);
    }
}

#[test]
fn words_are_read_as_by_a_shell() {
    for (text, expected) in [
        (" a\\tb \tc ", &["atb", "c"][..]),
        ("a'b c'\"d\\\"e\" '' \\'", &["ab cd\"e", "", "'"]),
        ("'gr\u{f6}\u{df}e' \"a\nb\" x=y", &["gr\u{f6}\u{df}e", "a\nb", "x=y"]),
        ("\"a\\b!\" '\\'", &["a\\b!", "\\"]),
    ] {
        assert_eq!(words(text).expect(text), expected, "{text}");
    }
    for text in [
        "$x", "\"$x\"", "`x`", "*", "a;b", "a|b", "(a)", "~", "#", "!", "{a}", "a\nb", "a\\\nb", "a\\", "'a", "\"a",
        "\"a\\", "gr\u{f6}\u{df}e", "\\\t", "$'a'", "'a\x01'", "a&b", "[a]", "a?",
    ] {
        assert_eq!(words(text), None, "{text}");
    }
}

#[test]
fn any_text_is_divided_into_pieces_without_gaps() {
    let text = b"a'b'\"\\x\\$$'c\\'d'`\\\n\xff\\";
    let mut lexer = Lexer::new(text);
    let (mut pieces, mut read) = (Vec::new(), 0);
    while let Some(piece) = lexer.next() {
        assert!(lexer.position() > read);
        read = lexer.position();
        if piece == Piece::Expansion(b'$') {
            lexer.open_dollar_quotes();
        }
        pieces.push(piece);
    }
    assert_eq!(read, text.len());
    assert!(pieces.contains(&Piece::Literal(b'$')) && lexer.is_quoted());
}

#[test]
fn every_builtin_of_the_installed_shells_is_known() {
    let listed = Command::new("bash").args(["-c", "compgen -b; compgen -k"]).output().expect("bash");
    let names = String::from_utf8(listed.stdout).expect("text");
    assert!(names.lines().count() > 60);
    for name in names.lines() {
        assert!(is_builtin(name.as_bytes(), Shell::Bash), "{name}");
    }
    // dash cannot list its builtins, so all strings in its program that look like names are tried.
    let dash = std::fs::read("/bin/dash").expect("dash");
    for word in dash.split(|byte| *byte == 0) {
        let is_name = !word.is_empty() && word.len() < 9 && word.iter().all(u8::is_ascii_lowercase);
        let Some(name) = is_name.then(|| String::from_utf8_lossy(word)) else { continue };
        let output = Command::new("dash").args(["-c", "PATH=; command -V \"$1\"", "sh", &name]).output().expect("dash");
        let is_known = is_builtin(word, Shell::Dash);
        assert!(is_known || !String::from_utf8_lossy(&output.stdout).contains("shell"), "{name}");
    }
}

#[test]
fn what_a_shell_runs_itself_is_not_a_program() {
    for word in ["", "-x", "+x", "a=b", "./a=b", "%1"] {
        assert!(!is_program(word.as_bytes()), "{word}");
    }
    for shell in [Shell::Dash, Shell::Bash, Shell::Mksh, Shell::Busybox] {
        for word in ["echo", "if", "[", "!", "{", ":", ".", "kill", "whence"] {
            assert!(is_builtin(word.as_bytes(), shell), "{shell:?}: {word}");
        }
        assert_eq!(is_builtin(b"cat", shell), shell == Shell::Mksh);
    }
}
