//! Builds the library that `accel` preloads, which Cargo does not build for the tests of another
//! package.

use std::process::Command;
use std::sync::Once;

/// Builds the preload library, once.
pub fn build_library() {
    static BUILT: Once = Once::new();
    BUILT.call_once(|| {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["build", "--locked", "--offline", "--lib", "-p", "vspawn-preload"]);
        if !cfg!(debug_assertions) {
            cargo.arg("--release");
        }
        assert!(cargo.status().expect("cargo").success());
    });
}
