//! Carries out the redirections of a command as dash does, in a process that then executes the command, or as file actions of a spawn.
//! What cannot be proven to work is left to the shell, before or after it was tried: opening a regular file again has the same result.

use libc::{c_char, c_int, posix_spawn_file_actions_t as Actions};

use crate::strings::{PathBuffer, errno, status_of};
use crate::text::{Destination, Mode, REDIRECTIONS_MAX, Redirection, Words};

const NULL: &[u8] = b"/dev/null";
/// The device number of `/dev/null`.
const NULL_DEVICE: libc::dev_t = libc::makedev(1, 3);
/// The mode of a new file, as the shells give it.
const NEW_FILE: libc::mode_t = 0o666;
/// Descriptors that a program uses by number are below this one.
const FIRST_SAVED: c_int = 10;
/// No process has a descriptor from this one on, so closing these closes nothing.
const BEYOND_ALL: u32 = 0x7fff_fff0;
const CLOSE_RANGE_UNSHARE: u32 = 2;

/// Whether all redirections of a command will succeed, as far as this can be known without an effect, and without waiting.
pub fn are_sound(words: &Words) -> bool {
    let mut is_set = [false; 3];
    words.redirections().iter().all(|redirection| {
        let is_sound = match redirection.to {
            Destination::File { name, mode } => is_sound_file(words.name(name), mode),
            Destination::Descriptor(from) => is_at(&is_set, from) || is_inherited(from),
        };
        if let Some(place) = usize::try_from(redirection.target)
            .ok()
            .and_then(|at| is_set.get_mut(at))
        {
            *place = true;
        }
        is_sound
    })
}

fn is_at(places: &[bool; 3], at: c_int) -> bool {
    usize::try_from(at).is_ok_and(|at| places.get(at) == Some(&true))
}

/// Where standard error leads afterwards: its redirections decide whether a shell's message about a killed command is seen.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Errors {
    Unchanged,
    Null,
    Elsewhere,
}

pub fn errors_of(words: &Words) -> Errors {
    let mut places = [Errors::Elsewhere, Errors::Elsewhere, Errors::Unchanged];
    for redirection in words.redirections() {
        let to = match redirection.to {
            Destination::File { name, .. } if words.name(name) == NULL => Errors::Null,
            Destination::File { .. } => Errors::Elsewhere,
            Destination::Descriptor(from) => match places.get(from.unsigned_abs() as usize) {
                Some(place) => *place,
                None => Errors::Elsewhere,
            },
        };
        if let Some(place) = places.get_mut(redirection.target.unsigned_abs() as usize) {
            *place = to;
        }
    }
    places[2]
}

/// Regular files and `/dev/null`. Opening others may wait or have an effect each time; bash has names of its own below `/dev`.
fn is_sound_file(name: &[u8], mode: Mode) -> bool {
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

/// Whether a descriptor is open, and would be in a shell.
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

/// Whether this thread shares its descriptors with no other. An exec would separate them too, so doing it before has no other effect.
fn has_own_descriptors() -> bool {
    // SAFETY: no descriptor is closed. The first call is known to more seccomp profiles, the second to older kernels.
    unsafe {
        libc::syscall(libc::SYS_close_range, BEYOND_ALL, u32::MAX, CLOSE_RANGE_UNSHARE) == 0
            || libc::unshare(libc::CLONE_FILES) == 0
    }
}

/// The file actions of a spawn that carry the redirections out. The error is an errno.
///
/// # Safety
/// The actions are initialized.
pub unsafe fn add_to(actions: *mut Actions, words: &Words) -> c_int {
    for redirection in words.redirections() {
        // SAFETY: as the caller promises; the name is a C string, which is copied.
        let error = unsafe {
            match redirection.to {
                Destination::Descriptor(from) => {
                    libc::posix_spawn_file_actions_adddup2(actions, from, redirection.target)
                }
                Destination::File { name, mode } => {
                    let name = words.name(name).as_ptr().cast();
                    libc::posix_spawn_file_actions_addopen(actions, redirection.target, name, flags(mode), NEW_FILE)
                }
            }
        };
        if error != 0 {
            return error;
        }
    }
    0
}

/// The redirected descriptors of this process, with what they were before.
pub struct Redirected {
    saved: [Option<Saved>; REDIRECTIONS_MAX],
}

#[derive(Clone, Copy)]
struct Saved {
    target: c_int,
    /// `None`: the target was closed.
    copy: Option<c_int>,
    /// Its flag O_CLOEXEC.
    flags: c_int,
}

impl Redirected {
    /// Redirects this process, which is to execute the command. `None`, with nothing changed but files, if it fails.
    pub fn apply(words: &Words) -> Option<Redirected> {
        let mut redirected = Redirected {
            saved: [None; REDIRECTIONS_MAX],
        };
        if words.redirections().is_empty() {
            return Some(redirected);
        }
        if !has_own_descriptors() {
            return None;
        }
        for (redirection, place) in words.redirections().iter().zip(0..) {
            if redirected.carry_out(*redirection, place, words).is_none() {
                redirected.undo();
                return None;
            }
        }
        Some(redirected)
    }

    fn carry_out(&mut self, redirection: Redirection, place: usize, words: &Words) -> Option<()> {
        let target = redirection.target;
        // SAFETY: the name is a C string; only this process's descriptors change, and the copies are closed by an exec.
        unsafe {
            let is_closed_on_exec = libc::fcntl(target, libc::F_GETFD) == libc::FD_CLOEXEC;
            let copy = libc::fcntl(target, libc::F_DUPFD_CLOEXEC, FIRST_SAVED);
            if copy < 0 && errno() != libc::EBADF {
                return None;
            }
            *self.saved.get_mut(place)? = Some(Saved {
                target,
                copy: (copy >= 0).then_some(copy),
                flags: if is_closed_on_exec { libc::O_CLOEXEC } else { 0 },
            });
            match redirection.to {
                Destination::Descriptor(from) => (libc::dup2(from, target) == target).then_some(()),
                Destination::File { name, mode } => {
                    let name: *const c_char = words.name(name).as_ptr().cast();
                    let file = libc::open(name, flags(mode) | libc::O_CLOEXEC, NEW_FILE);
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

    /// Restores the descriptors, because a shell takes over.
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
