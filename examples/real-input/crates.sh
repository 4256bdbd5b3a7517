#!/usr/bin/env bash
# Writes a workspace of four crates into the new directory DIRECTORY. Three have build scripts: one asks git and rustc for versions,
# one compiles C, and one probes what rustc supports, as autocfg does, unless FEATURES is set. Needs no registry. Usage: crates.sh DIRECTORY
set -euo pipefail

mkdir "$1"
cd "$1"

crate() {
    mkdir -p "$1/src"
    printf '[package]\nname = "%s"\nversion = "0.1.0"\nedition = "2021"\n%s\n' "$1" "${2-}" >"$1/Cargo.toml"
    cat >"$1/src/${3-lib.rs}"
}

printf '[workspace]\nmembers = ["app", "version", "native", "probe"]\nresolver = "2"\n' >Cargo.toml
crate app '[dependencies]
version = { path = "../version" }
native = { path = "../native" }
probe = { path = "../probe" }' main.rs <<'RUST'
fn main() {
    println!("{} {} {}", version::RUSTC, native::sum(), probe::FEATURES);
}
RUST
crate version <<<'pub const RUSTC: &str = env!("RUSTC_VERSION");'
crate probe <<<'pub const FEATURES: &str = env!("FEATURES");'
crate native <<'RUST'
extern "C" { fn part0() -> i32; fn part5() -> i32; }
pub fn sum() -> i32 { unsafe { part0() + part5() } }
RUST

cat >version/build.rs <<'RUST'
use std::process::Command;
fn ask(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output();
    output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()).unwrap_or_default()
}
fn main() {
    println!("cargo:rustc-env=RUSTC_VERSION={}", ask(&std::env::var("RUSTC").unwrap(), &["--version"]));
    println!("cargo:rustc-env=COMMIT={}", ask("git", &["rev-parse", "HEAD"]));
    println!("cargo:rustc-env=BRANCH={}", ask("git", &["symbolic-ref", "--short", "HEAD"]));
    println!("cargo:rustc-env=TAG={}", ask("git", &["describe", "--always", "--dirty"]));
}
RUST

cat >native/build.rs <<'RUST'
use std::process::Command;
fn run(program: &str, arguments: &[String]) {
    assert!(Command::new(program).args(arguments).status().unwrap().success());
}
fn main() {
    let out = std::env::var("OUT_DIR").unwrap();
    let mut archive = vec!["crs".to_owned(), format!("{out}/libparts.a")];
    for part in 0..6 {
        let (source, object) = (format!("{out}/part{part}.c"), format!("{out}/part{part}.o"));
        let code = format!("#include <stdio.h>\n#include <stdlib.h>\nint part{part}(void) {{ return {part}; }}\n");
        std::fs::write(&source, code).unwrap();
        run("cc", &["-O2".to_owned(), "-c".to_owned(), source, "-o".to_owned(), object.clone()]);
        archive.push(object);
    }
    run("ar", &archive);
    println!("cargo:rustc-link-search={out}");
    println!("cargo:rustc-link-lib=static=parts");
}
RUST

cat >probe/build.rs <<'RUST'
use std::process::{Command, Stdio};
fn supports(index: usize, code: &str) -> bool {
    let (rustc, out) = (std::env::var("RUSTC").unwrap(), std::env::var("OUT_DIR").unwrap());
    let file = format!("{out}/probe{index}.rs");
    std::fs::write(&file, code).unwrap();
    let mut command = Command::new(rustc);
    command.args(["--crate-type=lib", "--emit=metadata", "--out-dir", &out, &file]);
    command.stderr(Stdio::null()).status().unwrap().success()
}
fn main() {
    if let Ok(known) = std::env::var("FEATURES") {
        println!("cargo:rustc-env=FEATURES={known}");
        return;
    }
    let features = [
        "pub fn f() -> u128 { 0 }", "pub async fn f() {}", "pub const fn f() -> u8 { 1 }", "pub use std::sync::OnceLock;",
        "pub use std::sync::LazyLock;", "pub use std::net::IpAddr;", "pub fn f() { never_exists() }", "pub use std::simd::f32x4;",
    ];
    let count = features.iter().enumerate().filter(|(index, code)| supports(*index, code)).count();
    println!("cargo:rustc-env=FEATURES={count}");
}
RUST
