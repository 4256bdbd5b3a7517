//! Whose the files are that spawnscope makes. Started by sudo it is root, and the folders that it writes to are its caller's, who can
//! put links and other files there at any moment. It therefore makes these files as that user: a thread takes on the user's ids for
//! files, and loses root's right to pass over permissions with them. What the user may not open, that thread cannot open either, so
//! that no link leads anywhere that the user could not have written.
//!
//! Only the calling thread changes, and threads that it starts meanwhile: these are system calls of a thread, while those
//! functions of libc that are alike change every thread (credentials(7), setfsuid(2)).

use std::io;
use std::marker::PhantomData;

use nix::unistd::{Gid, Uid, getgroups, setfsgid, setfsuid};
use rustix::thread::{CapabilitySet, capabilities, set_thread_groups};

/// Whose files are to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// The user.
    pub uid: Uid,
    /// The group.
    pub gid: Gid,
    /// Supplementary groups.
    pub groups: Vec<Gid>,
}

/// While this lives, its thread opens, makes, renames and removes files as another user.
#[derive(Debug)]
#[must_use = "dropped at once, it changes nothing"]
pub struct Acting {
    before: Owner,
    // Of one thread: dropped on another one, it would change that one's.
    _of_thread: PhantomData<*const ()>,
}

/// Acts as the owner, where there is one. Without, files are made as by any other program.
///
/// # Errors
/// As for `Owner::act`.
pub fn act_as(owner: Option<&Owner>) -> io::Result<Option<Acting>> {
    owner.map(Owner::act).transpose()
}

/// Rights of root that permissions do not stop. The kernel takes them with the user id, unless the process asked it not to.
const PASSES_OVER_PERMISSIONS: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::DAC_READ_SEARCH)
    .union(CapabilitySet::FOWNER);

impl Owner {
    /// Takes on this user's ids for files, in this thread.
    ///
    /// # Errors
    /// When the kernel refuses, or leaves the thread rights that the user does not have. Then nothing has changed.
    pub fn act(&self) -> io::Result<Acting> {
        let acting = Acting {
            before: Owner::of_thread()?,
            _of_thread: PhantomData,
        };
        self.take_on()?;
        if capabilities(None)?.effective.intersects(PASSES_OVER_PERMISSIONS) {
            return Err(io::Error::other(
                "the thread keeps root's rights to files (its securebits say so)",
            ));
        }
        Ok(acting)
    }

    fn of_thread() -> io::Result<Owner> {
        Ok(Owner {
            uid: file_uid(),
            gid: file_gid(),
            groups: getgroups()?,
        })
    }

    /// Groups first: what they need is not lost with the user id, but nobody has to know that.
    fn take_on(&self) -> io::Result<()> {
        let groups: Vec<_> = self.groups.iter().map(|group| rustix_gid(*group)).collect();
        set_thread_groups(&groups)?;
        // These two tell no failure.
        setfsgid(self.gid);
        setfsuid(self.uid);
        if (file_uid(), file_gid()) == (self.uid, self.gid) {
            Ok(())
        } else {
            Err(io::ErrorKind::PermissionDenied.into())
        }
    }
}

impl Drop for Acting {
    fn drop(&mut self) {
        // Should it fail, the thread has fewer rights than before, not more.
        let _ = self.before.take_on();
    }
}

/// The user as whom this thread opens files. An id that nobody has changes nothing: the call says what the id was.
#[must_use]
pub fn file_uid() -> Uid {
    setfsuid(Uid::from_raw(u32::MAX))
}

fn file_gid() -> Gid {
    setfsgid(Gid::from_raw(u32::MAX))
}

fn rustix_gid(gid: Gid) -> rustix::process::Gid {
    rustix::process::Gid::from_raw(gid.as_raw())
}
