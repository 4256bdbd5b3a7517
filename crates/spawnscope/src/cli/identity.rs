//! Chooses the user that the command runs as. If sudo itself started spawnscope, this is the user
//! who called sudo. If a root shell that sudo started, or a script in such a shell, starts
//! spawnscope, SUDO_UID is set as well; then the command runs as root, as any other program would.
//! `--user` and `--as-root` override the choice. Output files belong to the same user.

use std::ffi::{CString, OsString};
use std::os::unix::fs::MetadataExt;

use anyhow::{Context, Result, bail};
use clap::{Args, ValueHint};
use nix::unistd::{Gid, Uid, User, getgrouplist};
use tempfile::TempDir;

use super::variable;
use crate::held::Identity;
use crate::owner::{Owner, act_as};

/// The user's choice on the command line.
#[derive(Clone, Debug, Default, Args)]
pub struct IdentityArguments {
    /// Run the command as the user NAME (needs root) [default: the user who called sudo, or you]
    #[arg(long, value_name = "NAME", conflicts_with = "as_root", value_hint = ValueHint::Username)]
    pub user: Option<String>,
    /// Run the command as root even if sudo started spawnscope
    #[arg(long)]
    pub as_root: bool,
}

/// The user that the command runs as, and a notice about it.
#[derive(Debug, Default)]
pub struct Decision {
    /// The ids to run as; `None` means those of spawnscope itself.
    pub identity: Option<Identity>,
    /// A message to print if the command does not run as the caller of spawnscope, or if the choice
    /// may surprise.
    pub notice: Option<String>,
}

/// Creates a temporary directory, which belongs to the user who called sudo, if any.
pub fn temporary_directory() -> Result<TempDir> {
    let caller = caller()?;
    let _owner_guard = act_as(caller.as_ref().map(Caller::owner).as_ref())?;
    tempfile::Builder::new().prefix("spawnscope.").tempdir().context("failed to make a temporary directory")
}

pub fn decide(choice: &IdentityArguments) -> Result<Decision> {
    let is_root = Uid::effective().is_root();
    if let Some(name) = &choice.user {
        if !is_root {
            bail!("--user needs root: run spawnscope with sudo");
        }
        let identity = look_up(name)?;
        let notice = Some(format!("the command runs as {name}"));
        return Ok(Decision { identity: Some(identity), notice });
    }
    if choice.as_root {
        if !is_root {
            bail!("--as-root needs root: run spawnscope with sudo");
        }
        return Ok(Decision::default());
    }
    if let Some(Caller { identity, name }) = caller()? {
        let notice = format!("the command runs as {name}, who called sudo (--as-root runs it as root)");
        return Ok(Decision { identity: Some(identity), notice: Some(notice) });
    }
    let notice = sudo_user().filter(|_| is_root).map(|(uid, _)| {
        format!(
            "the command runs as root: sudo did not start spawnscope itself, so SUDO_UID={uid} is ignored (--user runs it as \
             another user, --as-root hides this notice)"
        )
    });
    Ok(Decision { identity: None, notice })
}

/// The user who called spawnscope through sudo.
#[derive(Debug)]
pub struct Caller {
    pub identity: Identity,
    /// The user's name, or `user UID` if the user has no name.
    pub name: String,
}

impl Caller {
    pub fn owner(&self) -> Owner {
        owner(&self.identity)
    }
}

/// Looks up the user who called sudo. Returns `None` if sudo did not start spawnscope.
pub fn caller() -> Result<Option<Caller>> {
    let Some((uid, gid)) = sudo_user().filter(|_| Uid::effective().is_root() && is_child_of_sudo()) else {
        return Ok(None);
    };
    let user = User::from_uid(uid).with_context(|| format!("failed to look up user {uid}, named by SUDO_UID"))?;
    let name = user.as_ref().map_or_else(|| format!("user {uid}"), |user| user.name.clone());
    let identity = identity(uid, gid, user)?;
    Ok(Some(Caller { identity, name }))
}

pub fn owner(identity: &Identity) -> Owner {
    Owner { uid: identity.uid, gid: identity.gid, groups: identity.groups.clone() }
}

/// Reads the user from SUDO_UID and SUDO_GID. Returns `None` if they are not set or name root.
fn sudo_user() -> Option<(Uid, Gid)> {
    let uid: u32 = variable("SUDO_UID")?.parse().ok()?;
    let gid = variable("SUDO_GID")?.parse().ok()?;
    (uid != 0).then(|| (Uid::from_raw(uid), Gid::from_raw(gid)))
}

/// Whether the parent process is sudo: its program has that name and belongs to root.
fn is_child_of_sudo() -> bool {
    let program = format!("/proc/{}/exe", nix::unistd::getppid());
    let is_named_sudo =
        std::fs::read_link(&program).is_ok_and(|path| path.file_name().is_some_and(|name| name == "sudo"));
    is_named_sudo && std::fs::metadata(&program).is_ok_and(|file| file.uid() == 0)
}

fn look_up(name: &str) -> Result<Identity> {
    let found = match name.parse::<u32>() {
        Ok(uid) => User::from_uid(Uid::from_raw(uid)),
        Err(_) => User::from_name(name),
    };
    let user = found.with_context(|| format!("failed to look up user '{name}'"))?;
    let user = user.with_context(|| format!("there is no user '{name}'"))?;
    identity(user.uid, user.gid, Some(user))
}

fn identity(uid: Uid, gid: Gid, user: Option<User>) -> Result<Identity> {
    let Some(user) = user else {
        return Ok(Identity { uid, gid, groups: vec![gid], environment: Vec::new() });
    };
    let name = CString::new(user.name.clone()).context("failed to read the user's name")?;
    let groups = getgrouplist(&name, gid).with_context(|| format!("failed to look up the groups of {}", user.name))?;
    let environment =
        [("HOME", user.dir.into_os_string()), ("USER", user.name.clone().into()), ("LOGNAME", user.name.into())];
    let environment = environment.map(|(name, value)| (OsString::from(name), value)).to_vec();
    Ok(Identity { uid, gid, groups, environment })
}
