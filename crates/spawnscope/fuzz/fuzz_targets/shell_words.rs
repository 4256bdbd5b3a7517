//! Fuzzes the reader of simple shell text, with which vspawn runs a text for `sh -c` without a
//! shell. If there is a result, it must be equal to that of another parser of shell words. Any
//! other text is divided into pieces without gaps.
#![no_main]

use libfuzzer_sys::fuzz_target;
use vspawn_shell::{Lexer, read_word};

fn words(text: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut lexer = Lexer::new(text);
    let mut words = Vec::new();
    loop {
        lexer.skip_blanks();
        match lexer.rest() {
            [] => return Some(words),
            [b'<' | b'>', ..] => return None,
            _ => {}
        }
        let mut word = Vec::new();
        let mut push = |byte| {
            word.push(byte);
            Ok(())
        };
        read_word(&mut lexer, |byte| byte >= 128, &mut push).ok()?;
        words.push(word);
    }
}

fuzz_target!(|text: &[u8]| {
    let mut lexer = Lexer::new(text);
    let mut end = 0;
    while lexer.next().is_some() {
        assert!((1..=2).contains(&(lexer.position() - end)));
        lexer.open_dollar_quotes();
        end = lexer.position();
    }
    assert_eq!(end, text.len());
    if let Some(words) = words(text) {
        assert_eq!(Some(words), shlex::bytes::split(text), "{:?}", String::from_utf8_lossy(text));
    }
});
