//! Decodes what was read from the memory of an interpreter, by BPF programs or by the ptrace
//! collector, into call chains.

pub(crate) mod make;
pub(crate) mod node;
pub(crate) mod python;
pub(crate) mod script;

/// Converts `c\0b\0a\0` to /a/b/c.
pub(crate) fn join_components(innermost_first: &[u8]) -> Vec<u8> {
    let mut path = Vec::with_capacity(innermost_first.len() + 1);
    for component in innermost_first.split(|&byte| byte == 0).rev().filter(|component| !component.is_empty()) {
        path.push(b'/');
        path.extend_from_slice(component);
    }
    if path.is_empty() {
        path.push(b'/');
    }
    path
}
