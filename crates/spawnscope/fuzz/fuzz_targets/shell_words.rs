//! A text for `sh -c` that vspawn may run without a shell: what it takes apart, another parser of shell words takes apart alike.
#![no_main]

use libfuzzer_sys::fuzz_target;

/// What `shell_words` needs of its crate, which is a library for C and none for Rust.
mod error {
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
