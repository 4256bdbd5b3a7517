//! Carries out the redirections of a command as dash does, in a process that then executes the
//! command, or as file actions of a spawn. Redirections that are not proven to work are left to the
//! shell. So are those that fail when they are carried out: the shell opens the same regular files
//! again, with the same result. `noclobber` cannot be set: no variable sets it in dash, and with
//! the option `-C`, the arguments would not be exactly `-c TEXT`.

use libc::{c_char, c_int, posix_spawn_file_actions_t as Actions};

use crate::strings::{PathBuffer, errno, status_of};
use crate::text::{Destination, Mode, REDIRECTIONS_MAX, Redirection, Words};

const NULL: &[u8] = b"/dev/null";
const NULL_DEVICE: libc::dev_t = libc::makedev(1, 3);
const NEW_FILE_MODE: libc::mode_t = 0o666;
/// The lowest number for the copy of a descriptor. Scripts and programs refer only to lower
/// descriptors by number.
const MIN_COPY: c_int = 10;
/// No process has a descriptor with this number or a larger one, so closing all of them closes
/// nothing.
const ABOVE_ALL_DESCRIPTORS: u32 = 0x7fff_fff0;
const CLOSE_RANGE_UNSHARE: u32 = 2;

/// Whether all redirections of a command will succeed, as far as this can be known without an
/// effect, and without waiting.
pub fn will_succeed(words: &Words) -> bool {
    let mut redirected = [false; 3];
    words.redirections().iter().all(|redirection| {
        let is_sound = match redirection.destination {
            Destination::File { name, mode } => can_be_opened(words.name(name), mode),
            Destination::Descriptor(from) => is_redirected(&redirected, from) || is_inherited(from),
        };
        if let Some(flag) = usize::try_from(redirection.target).ok().and_then(|target| redirected.get_mut(target)) {
            *flag = true;
        }
        is_sound
    })
}

fn is_redirected(redirected: &[bool; 3], descriptor: c_int) -> bool {
    usize::try_from(descriptor).is_ok_and(|descriptor| redirected.get(descriptor) == Some(&true))
}

/// The destination of standard error after the redirections, which decides whether a shell's
/// message about a killed command is seen.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum ErrorDestination {
    Unchanged,
    Null,
    Elsewhere,
}

pub fn error_destination(words: &Words) -> ErrorDestination {
    use ErrorDestination::{Elsewhere, Null, Unchanged};
    let mut destinations = [Elsewhere, Elsewhere, Unchanged];
    for redirection in words.redirections() {
        let new = match redirection.destination {
            Destination::File { name, .. } if words.name(name) == NULL => Null,
            Destination::File { .. } => Elsewhere,
            Destination::Descriptor(from) => match destinations.get(from.unsigned_abs() as usize) {
                Some(destination) => *destination,
                None => Elsewhere,
            },
        };
        if let Some(destination) = destinations.get_mut(redirection.target.unsigned_abs() as usize) {
            *destination = new;
        }
    }
    destinations[2]
}

/// Whether a file is a regular one or `/dev/null`, or will be created. Opening other files may
/// wait, or have an effect each time. bash treats some names below `/dev` itself.
fn can_be_opened(name: &[u8], mode: Mode) -> bool {
    if name.starts_with(b"/dev/") && name != NULL {
        return false;
    }
    let mut path = PathBuffer::new();
    if !path.set(&[name]) {
        return false;
    }
    match status_of(path.as_ptr()) {
        Ok(status) => match status.st_mode & libc::S_IFMT {
            libc::S_IFREG => true,
            libc::S_IFCHR => status.st_rdev == NULL_DEVICE,
            _ => false,
        },
        Err(error) => error == libc::ENOENT && mode != Mode::Read,
    }
}

/// Whether a descriptor is open, and not close-on-exec, so that a shell would inherit it.
fn is_inherited(descriptor: c_int) -> bool {
    // SAFETY: the flags are only read.
    unsafe { libc::fcntl(descriptor, libc::F_GETFD) == 0 }
}

fn flags(mode: Mode) -> c_int {
    match mode {
        Mode::Read => libc::O_RDONLY,
        Mode::Write => libc::O_WRONLY | libc::O_CREAT | libc::O_TRUNC,
        Mode::Append => libc::O_WRONLY | libc::O_CREAT | libc::O_APPEND,
    }
}

/// Gives this thread a table of descriptors that it shares with no other, as the exec would do
/// anyway. Returns whether that succeeded.
fn unshare_descriptors() -> bool {
    // SAFETY: no descriptor is closed. More seccomp profiles allow the first call; older kernels
    // have only the second.
    unsafe {
        libc::syscall(libc::SYS_close_range, ABOVE_ALL_DESCRIPTORS, u32::MAX, CLOSE_RANGE_UNSHARE) == 0
            || libc::unshare(libc::CLONE_FILES) == 0
    }
}

/// Adds file actions that carry the redirections out. Returns 0 or an errno.
///
/// # Safety
/// The actions are initialized.
pub unsafe fn add_file_actions(actions: *mut Actions, words: &Words) -> c_int {
    for redirection in words.redirections() {
        // SAFETY: as the caller promises; the name is a C string, which is copied.
        let error = unsafe {
            match redirection.destination {
                Destination::Descriptor(from) => {
                    libc::posix_spawn_file_actions_adddup2(actions, from, redirection.target)
                }
                Destination::File { name, mode } => {
                    let name = words.name(name).as_ptr().cast();
                    libc::posix_spawn_file_actions_addopen(
                        actions,
                        redirection.target,
                        name,
                        flags(mode),
                        NEW_FILE_MODE,
                    )
                }
            }
        };
        if error != 0 {
            return error;
        }
    }
    0
}

/// The redirected descriptors of this process, with copies from before the redirections.
pub struct AppliedRedirections {
    saved: [Option<SavedDescriptor>; REDIRECTIONS_MAX],
}

#[derive(Clone, Copy)]
struct SavedDescriptor {
    target: c_int,
    /// A copy of the target. `None` if the target was closed.
    copy: Option<c_int>,
    /// O_CLOEXEC if the target was close-on-exec, otherwise 0.
    flags: c_int,
}

impl AppliedRedirections {
    /// Redirects the descriptors of this process, which will execute the command. If that fails,
    /// restores them and returns `None`; files may have been created or emptied.
    pub fn apply(words: &Words) -> Option<AppliedRedirections> {
        let mut redirected = AppliedRedirections { saved: [None; REDIRECTIONS_MAX] };
        if words.redirections().is_empty() {
            return Some(redirected);
        }
        if !unshare_descriptors() {
            return None;
        }
        for (redirection, index) in words.redirections().iter().zip(0..) {
            if redirected.carry_out(*redirection, index, words).is_none() {
                redirected.undo();
                return None;
            }
        }
        Some(redirected)
    }

    fn carry_out(&mut self, redirection: Redirection, index: usize, words: &Words) -> Option<()> {
        let target = redirection.target;
        // SAFETY: the name is a C string; only this process's descriptors change, and the copies
        // are closed by an exec.
        unsafe {
            let is_closed_on_exec = libc::fcntl(target, libc::F_GETFD) == libc::FD_CLOEXEC;
            let copy = libc::fcntl(target, libc::F_DUPFD_CLOEXEC, MIN_COPY);
            if copy < 0 && errno() != libc::EBADF {
                return None;
            }
            *self.saved.get_mut(index)? = Some(SavedDescriptor {
                target,
                copy: (copy >= 0).then_some(copy),
                flags: if is_closed_on_exec { libc::O_CLOEXEC } else { 0 },
            });
            match redirection.destination {
                Destination::Descriptor(from) => (libc::dup2(from, target) == target).then_some(()),
                Destination::File { name, mode } => {
                    let name: *const c_char = words.name(name).as_ptr().cast();
                    let file = libc::open(name, flags(mode) | libc::O_CLOEXEC, NEW_FILE_MODE);
                    if file < 0 {
                        return None;
                    }
                    if file == target {
                        return (libc::fcntl(target, libc::F_SETFD, 0) == 0).then_some(());
                    }
                    let is_done = libc::dup2(file, target) == target;
                    libc::close(file);
                    is_done.then_some(())
                }
            }
        }
    }

    /// Restores the descriptors, because the shell is executed after all.
    pub fn undo(&self) {
        for saved in self.saved.iter().rev().flatten() {
            // SAFETY: the copies are this value's own.
            unsafe {
                match saved.copy {
                    Some(copy) => {
                        libc::dup3(copy, saved.target, saved.flags);
                        libc::close(copy);
                    }
                    None => {
                        libc::close(saved.target);
                    }
                }
            }
        }
    }
}
