//! Names of system calls.

use crate::event::syscalls::name;

/// Returns the name of a system call, or `system call 999` if it has no known name.
pub(super) fn name_or_number(number: u16) -> String {
    name(number).map_or_else(|| format!("system call {number}"), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_without_a_name_is_a_number() {
        assert_eq!(name_or_number(0), "read");
        assert_eq!(name_or_number(999), "system call 999");
    }
}
