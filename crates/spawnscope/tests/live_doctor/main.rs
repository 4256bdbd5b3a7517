//! The doctor on the real machine: scanners that hold up real launches, and conditions that tests make in namespaces of their own or
//! by the environment. Each file is one subject; tests that cannot run here say why.

#[expect(dead_code, reason = "shared with the live tests, which use the rest")]
#[path = "../support/mod.rs"]
mod support;

mod conditions;
mod examined;
mod scanners;

fn main() -> std::process::ExitCode {
    let subjects = [conditions::tests(), scanners::tests()];
    support::main(subjects.into_iter().flatten().collect())
}
