//! Builds a library as for users, since cargo does not build it for a test. `vspawn-preload` has
//! this file, too.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

pub const CRATE: &str = env!("CARGO_MANIFEST_DIR");

/// Builds the library of this crate. Returns the directory of its files.
pub fn build() -> PathBuf {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--locked", "--offline", "--lib", "--manifest-path"]).arg(Path::new(CRATE).join("Cargo.toml"));
    if !cfg!(debug_assertions) {
        cargo.arg("--release");
    }
    succeed(&mut cargo);
    // This program is in PROFILE/deps.
    let this_program = std::env::current_exe().expect("a program has a path");
    this_program.ancestors().nth(2).expect("cargo's directories").to_owned()
}

/// Runs a command, which must succeed. Otherwise, panics with the command's output.
pub fn succeed(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let text = [&output.stdout[..], &output.stderr[..]].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    assert!(output.status.success(), "{command:?}: {}\n{}", output.status, text.concat());
    output
}
