//! Finds out which shell a program is. `/bin/sh` may be dash or bash, and they prepare their
//! children differently.

use libc::c_char;
pub use vspawn_shell::Shell;

use crate::strings::{base_name, bytes, is_same_file, status_of};

/// /bin is a link to /usr/bin on most systems.
pub const KNOWN_SHELLS: [(&core::ffi::CStr, Shell); 4] = [
    (c"/usr/bin/dash", Shell::Dash),
    (c"/usr/bin/bash", Shell::Bash),
    (c"/bin/dash", Shell::Dash),
    (c"/bin/bash", Shell::Bash),
];

/// Returns whether the base name of a path or an argv[0] is that of a known shell. This runs at
/// every exec, so it is cheap.
///
/// # Safety
/// `path` is a C string.
pub unsafe fn is_named_as_shell(path: *const c_char) -> bool {
    // SAFETY: as the caller promises.
    let name = base_name(unsafe { bytes(path) });
    name == b"sh" || name == b"dash" || name == b"bash"
}

/// Finds out which shell a path refers to. The result is not cached, because `chroot` and upgrades
/// change it.
pub fn shell_at(path: *const c_char) -> Option<Shell> {
    let program = status_of(path).ok()?;
    KNOWN_SHELLS.iter().find_map(|(known, shell)| {
        let status = status_of(known.as_ptr()).ok()?;
        is_same_file(&program, &status).then_some(*shell)
    })
}
