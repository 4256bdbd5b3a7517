//! Documents say what is true: their links lead somewhere, their commands parse, and the output that they show is what Spawnscope prints for
//! a stored recording. Needs no privilege.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod commands;
mod links;
mod pages;
mod shape;
mod shell;
mod shown;
