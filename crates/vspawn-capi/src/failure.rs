//! The failure of a call: its stage, its errno and its text. The last failure of each thread is
//! kept for `vspawn_last_error`.

use std::cell::Cell;
use std::ffi::{c_char, c_int};

use crate::entry::entry;
use crate::pointers::null;

/// Size of an error's text, including the NUL at its end.
pub const ERROR_TEXT_BYTES: usize = 240;

/// The stage at which a call failed.
#[cfg_attr(not(test), expect(dead_code, reason = "most stages come from the core as numbers; only C uses their names"))]
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// No failure yet, or a failure without a stage.
    None = 0,
    /// Preparing the request: it is invalid, or memory is short. No process was started.
    Prepare = 1,
    /// Making a pipe.
    Pipe = 2,
    /// Mapping the child's stack.
    Stack = 3,
    /// Blocking or restoring the caller's signals, or setting the child's.
    Signals = 4,
    /// Creating the process.
    Clone = 5,
    /// Giving the child its own file table.
    UnshareFiles = 6,
    /// setsid.
    Session = 7,
    /// Taking a controlling terminal.
    ControllingTerminal = 8,
    /// setpgid.
    ProcessGroup = 9,
    /// Opening /dev/null.
    OpenNull = 10,
    /// Copying a descriptor to its number in the child.
    Dup = 11,
    /// Changing the niceness.
    Nice = 12,
    /// Setting a resource limit.
    ResourceLimit = 13,
    /// chroot.
    Chroot = 14,
    /// setgroups.
    Groups = 15,
    /// setresgid.
    Group = 16,
    /// setresuid.
    User = 17,
    /// chdir.
    Chdir = 18,
    /// Closing all other descriptors.
    CloseOthers = 19,
    /// Requesting a signal at the parent's death.
    ParentDeath = 20,
    /// A function of the caller in the child (not reachable from C).
    PreExec = 21,
    /// execve.
    Exec = 22,
    /// Waiting for the process.
    Wait = 23,
    /// Sending the process a signal.
    Kill = 24,
    /// Reading the process's output or writing its input.
    Communicate = 25,
    /// The timeout has expired.
    Timeout = 26,
    /// The output exceeded its limit.
    Limit = 27,
    /// A file action of the child.
    FileAction = 28,
    /// Setting the scheduling policy or the CPUs.
    Scheduler = 29,
    /// Giving up the right to gain privileges.
    NoNewPrivileges = 30,
    /// Creating, resizing or opening a pseudo-terminal.
    Pty = 31,
}

/// A failure that is returned to the caller.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) errno: c_int,
    stage: u32,
    text: String,
}

impl Failure {
    pub(crate) fn new(stage: Stage, errno: c_int, action: &str) -> Failure {
        let why = std::io::Error::from_raw_os_error(errno);
        let text = format!("{action}: {why}");
        let stage = stage as u32;
        Failure { errno, stage, text }
    }

    /// Creates the failure of an invalid request.
    pub(crate) fn invalid(action: &str) -> Failure {
        Failure::new(Stage::Prepare, libc::EINVAL, action)
    }

    /// Creates a failure with the errno that a libc function has just set.
    pub(crate) fn last_os_error(stage: Stage, action: &str) -> Failure {
        let errno = std::io::Error::last_os_error().raw_os_error();
        Failure::new(stage, errno.unwrap_or(libc::EIO), action)
    }

    /// Stores the failure as the thread's last error.
    pub(crate) fn record(&self) {
        let mut last = LastError { error: self.errno, stage: self.stage as c_int, ..NO_FAILURE };
        let text = &self.text.as_bytes()[..fitting_length(&self.text)];
        last.text.iter_mut().zip(text).for_each(|(target, byte)| *target = *byte as c_char);
        LAST.set(last);
    }
}

/// Returns the length of the longest prefix that fits with a NUL and ends between two characters.
fn fitting_length(text: &str) -> usize {
    let text = text.split('\0').next().unwrap_or_default();
    let max = text.len().min(ERROR_TEXT_BYTES - 1);
    (0..=max).rev().find(|length| text.is_char_boundary(*length)).unwrap_or(0)
}

impl From<vspawn_core::Error> for Failure {
    fn from(error: vspawn_core::Error) -> Failure {
        Failure { errno: error.raw_os_error(), stage: error.stage() as u32, text: error.to_string() }
    }
}

/// The last failure of the calling thread.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct LastError {
    /// Set to sizeof(struct vspawn_error) by the caller. The library stores how many bytes it has
    /// filled.
    pub size: usize,
    /// The errno.
    pub error: c_int,
    /// The stage that failed: an enum vspawn_stage. A later library may have more values.
    pub stage: c_int,
    /// What failed, on what and why: a fragment that fits after "failed to", truncated to the
    /// buffer, with a NUL at its end.
    pub text: [c_char; ERROR_TEXT_BYTES],
}

const NO_FAILURE: LastError =
    LastError { size: size_of::<LastError>(), error: 0, stage: 0, text: [0; ERROR_TEXT_BYTES] };

thread_local! {
    /// It has no destructor, so there is nothing to free when a thread ends.
    static LAST: Cell<LastError> = const { Cell::new(NO_FAILURE) };
}

/// Stores the calling thread's last failure: error 0 and stage VSPAWN_STAGE_NONE if there was none.
/// A success does not change it.
///
/// error: filled; its size must be set. Returns 0, or EINVAL (which is not itself stored as the
/// last failure).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vspawn_last_error(error: *mut LastError) -> c_int {
    let last = LAST.get();
    let code = entry(|| {
        if error.is_null() {
            return Err(null("error"));
        }
        // SAFETY: not NULL; the caller's struct begins with its size.
        if unsafe { error.cast::<usize>().read() } < size_of::<LastError>() {
            return Err(Failure::invalid("fill a struct whose size is not set"));
        }
        // SAFETY: the caller's struct has at least this size.
        unsafe { error.write(last) };
        Ok(())
    });
    LAST.set(last);
    code
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_have_the_same_numbers_as_in_the_core() {
        use vspawn_core::Stage as Core;
        macro_rules! assert_same_numbers {
            ($($name:ident)*) => {$(assert_eq!(Core::$name as u32, Stage::$name as u32, stringify!($name));)*};
        }
        assert_same_numbers!(
            Prepare Pipe Stack Signals Clone UnshareFiles Session ControllingTerminal ProcessGroup OpenNull Dup Nice
            ResourceLimit Chroot Groups Group User Chdir CloseOthers ParentDeath PreExec Exec Wait Kill Communicate
            Timeout Limit FileAction Scheduler NoNewPrivileges Pty
        );
    }

    #[test]
    fn a_long_text_is_cut_between_characters() {
        assert_eq!(fitting_length(&"ä".repeat(200)), ERROR_TEXT_BYTES - 2);
        assert_eq!(fitting_length("chdir to /x"), 11);
    }
}
