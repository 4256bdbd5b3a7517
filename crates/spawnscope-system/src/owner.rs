//! The owner of the files that spawnscope creates. Under sudo, spawnscope is root, but it writes to
//! directories of the user who called sudo, and that user can put links and other files into them
//! at any moment. Spawnscope therefore creates these files as that user: a thread takes on the
//! user's file system ids, and thereby loses root's right to bypass file permissions. It cannot
//! open a file that the user may not open, so a link cannot lead it to a file that the user could
//! not have written.
//!
//! Only the calling thread changes its ids, and the threads that it starts meanwhile inherit them.
//! Raw system calls are used, because they act on one thread, while libc's setgroups and similar
//! functions change all threads (credentials(7), setfsuid(2)).

use std::io;
use std::marker::PhantomData;

use nix::unistd::{Gid, Uid, getgroups, setfsgid, setfsuid};
use rustix::thread::{CapabilitySet, capabilities, set_thread_groups};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    pub uid: Uid,
    pub gid: Gid,
    pub groups: Vec<Gid>,
}

/// While this value lives, its thread opens, creates, renames and removes files as another user.
#[derive(Debug)]
#[must_use = "the thread changes back when this is dropped"]
pub struct OwnerGuard {
    before: Owner,
    // Not `Send`, because dropping it on another thread would change that thread's ids.
    _not_send: PhantomData<*const ()>,
}

/// Acts as the owner, if there is one. Otherwise files are created with the process's own ids.
pub fn act_as(owner: Option<&Owner>) -> io::Result<Option<OwnerGuard>> {
    owner.map(Owner::act).transpose()
}

/// Root's capabilities to bypass file permissions. The kernel drops them when the file system user
/// id changes from 0, unless the process's securebits disable that.
const PERMISSION_BYPASSES: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::DAC_READ_SEARCH)
    .union(CapabilitySet::FOWNER);

impl Owner {
    /// Takes on this user's file system ids, in this thread. Fails if the thread keeps capabilities
    /// that the user does not have, and then leaves the thread unchanged.
    pub fn act(&self) -> io::Result<OwnerGuard> {
        let guard = OwnerGuard { before: Owner::of_this_thread()?, _not_send: PhantomData };
        self.set_thread_ids()?;
        if capabilities(None)?.effective.intersects(PERMISSION_BYPASSES) {
            return Err(io::Error::other("the thread keeps root's rights to files because of its securebits"));
        }
        Ok(guard)
    }

    fn of_this_thread() -> io::Result<Owner> {
        Ok(Owner { uid: file_uid(), gid: file_gid(), groups: getgroups()? })
    }

    fn set_thread_ids(&self) -> io::Result<()> {
        let groups: Vec<_> = self.groups.iter().map(|group| rustix::process::Gid::from_raw(group.as_raw())).collect();
        set_thread_groups(&groups)?;
        // These two calls do not report failure.
        setfsgid(self.gid);
        setfsuid(self.uid);
        if (file_uid(), file_gid()) == (self.uid, self.gid) {
            Ok(())
        } else {
            Err(io::ErrorKind::PermissionDenied.into())
        }
    }
}

impl Drop for OwnerGuard {
    fn drop(&mut self) {
        // If this fails, the thread has fewer rights than before, not more.
        let _ = self.before.set_thread_ids();
    }
}

/// Returns the user id with which this thread opens files.
pub fn file_uid() -> Uid {
    // Setting an invalid id changes nothing and returns the current id.
    setfsuid(Uid::from_raw(u32::MAX))
}

fn file_gid() -> Gid {
    setfsgid(Gid::from_raw(u32::MAX))
}
