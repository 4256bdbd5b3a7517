//! Decodes what was read from the memory of an interpreter, by BPF programs or by the ptrace collector, into call chains.

pub(crate) mod python;
pub(crate) mod script;
