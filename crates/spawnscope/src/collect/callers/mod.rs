//! Interpreters whose scripts ask for launches.

pub(super) mod python;
