//! Tests the analysis with recordings built by hand. Needs no privilege and no kernel feature. Only
//! `advice_recipes` runs programs.

#![expect(clippy::unwrap_used, reason = "helpers of tests: a panic is the failure")]

mod advice_batch;
mod advice_builtin;
mod advice_chains;
mod advice_forks;
mod advice_interpreters;
mod advice_loops;
mod advice_machine;
mod advice_make;
mod advice_nested;
mod advice_off_path;
mod advice_parents;
mod advice_recipes;
mod advice_repeats;
mod advice_scanner;
mod advice_sites;
mod alike;
mod attribution;
mod build_labels;
mod builder;
mod callers;
mod child_waits;
mod critical_path;
mod dependence;
mod diff;
mod drift;
mod last_commands;
mod open_ends;
mod partial;
mod path_search;
mod peers;
mod phases;
mod poll_loops;
mod polling;
mod prelude;
mod recordings;
mod replay;
mod serial;
mod slices;
mod tool_calls;
mod tree;
mod waits;
mod wakers;
mod whatif;
mod whatif_batch;
mod whatif_constants;
mod whatif_work;
mod windows;
