//! Fuzzes the split of a text for `sh -c` into words, with which vspawn runs the text without a shell. If there is a result, it must be equal to
//! that of another parser of shell words.
#![no_main]

use libfuzzer_sys::fuzz_target;

/// The part of vspawn-capi that `shell_words` uses. That crate has only a C interface.
mod failure {
    pub struct Failure;

    impl Failure {
        pub fn invalid(_: &str) -> Failure {
            Failure
        }
    }
}

#[path = "../../../vspawn-capi/src/shell_words.rs"]
mod shell_words;

fuzz_target!(|bytes: &[u8]| {
    let Ok(words) = shell_words::shell_words(bytes) else { return };
    let expected: Option<Vec<Vec<u8>>> = shlex::bytes::split(bytes);
    assert_eq!(Some(words), expected, "{:?}", String::from_utf8_lossy(bytes));
});
