//! Whom the command runs as: started through sudo, the user who typed it, and the recording is that user's.

use std::ffi::{CString, OsString};
use std::path::Path;

use anyhow::{Context, Result};
use nix::unistd::{Gid, Uid, User, getgrouplist};

use crate::collect::held::Identity;

/// The user behind sudo; `None` when this was not started through it.
///
/// # Errors
/// When sudo names a user or group that cannot be looked up.
pub fn behind_sudo() -> Result<Option<Identity>> {
    let id = |name| std::env::var(name).ok().and_then(|text| text.parse::<u32>().ok());
    let (Some(uid), Some(gid)) = (id("SUDO_UID"), id("SUDO_GID")) else {
        return Ok(None);
    };
    if uid == 0 || !Uid::effective().is_root() {
        return Ok(None);
    }
    let (uid, gid) = (Uid::from_raw(uid), Gid::from_raw(gid));
    let user = User::from_uid(uid).with_context(|| format!("failed to look up user {uid}, named by SUDO_UID"))?;
    let Some(user) = user else {
        return Ok(Some(Identity {
            uid,
            gid,
            groups: vec![gid],
            environment: Vec::new(),
        }));
    };
    let name = CString::new(user.name.clone()).context("failed to read the user's name")?;
    let groups = getgrouplist(&name, gid).with_context(|| format!("failed to look up the groups of {}", user.name))?;
    let environment = [
        ("HOME", user.dir.into_os_string()),
        ("USER", user.name.clone().into()),
        ("LOGNAME", user.name.into()),
    ];
    let environment = environment.map(|(name, value)| (OsString::from(name), value)).to_vec();
    Ok(Some(Identity {
        uid,
        gid,
        groups,
        environment,
    }))
}

/// Gives a file to the user behind sudo.
///
/// # Errors
/// When the file's owner cannot be changed.
pub fn give(file: &Path, identity: &Identity) -> Result<()> {
    std::os::unix::fs::chown(file, Some(identity.uid.as_raw()), Some(identity.gid.as_raw()))
        .with_context(|| format!("failed to give {} to user {}", file.display(), identity.uid))
}
