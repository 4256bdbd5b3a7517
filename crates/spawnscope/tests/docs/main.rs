//! Checks documents: their links lead to existing files, the program accepts their command lines,
//! and the output that they show is what it prints for a stored recording. Needs no privilege.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod commands;
mod example;
mod links;
mod pages;
mod shell;
mod shown;
mod sizes;
#[expect(dead_code, reason = "shared with tests that use the rest")]
#[path = "../support/stored.rs"]
mod stored;
