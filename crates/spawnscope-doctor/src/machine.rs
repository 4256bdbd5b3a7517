//! The machine that is examined: the root directory below which files such as /proc/meminfo are
//! read, the environment variables, the working directory, the processes, and the mounts. In tests,
//! all of these are made up.
//!
//! The mount table says which file system a path is on, because a call to the file system itself
//! can hang.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::fs::Access;

use spawnscope_system::held::Identity;
use spawnscope_system::procfs::field;
pub(super) use spawnscope_system::procfs::field_bytes;

/// At most this much of a file is read. The files that checks need are smaller, but some files of
/// /proc are endless.
const MAX_FILE_BYTES: u64 = 16 << 20;

/// A machine, real or made up by a test.
#[derive(Clone, Debug, Default)]
pub struct Machine {
    root: PathBuf,
    environment: BTreeMap<OsString, OsString>,
    directory: PathBuf,
    is_privileged: bool,
    /// The user that programs are started as; `None` for the doctor's own user.
    user: Option<Identity>,
    /// Directories that did not answer, or that were not tried. They are never accessed, and count
    /// as missing.
    left_out: HashSet<PathBuf>,
}

impl Machine {
    /// Returns the real machine. If `user` is given, programs are started as that user, and the
    /// variables of `user` replace those of the same name. Fails if the working directory no longer
    /// exists.
    pub fn real(user: Option<Identity>) -> io::Result<Machine> {
        let user_variables = user.iter().flat_map(|user| user.environment.iter().cloned());
        let environment = std::env::vars_os().chain(user_variables).collect();
        Ok(Machine {
            root: PathBuf::from("/"),
            environment,
            user,
            directory: std::env::current_dir()?,
            is_privileged: nix::unistd::geteuid().is_root(),
            left_out: HashSet::new(),
        })
    }

    /// Returns a machine whose files are below `root`, with an empty environment, examined without
    /// privilege.
    pub fn with_root(root: impl Into<PathBuf>) -> Machine {
        Machine { root: root.into(), directory: PathBuf::from("/"), ..Machine::default() }
    }

    #[must_use]
    pub fn with_variable(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Machine {
        self.environment.insert(name.into(), value.into());
        self
    }

    /// Returns the same machine without the variables whose names `matches` accepts.
    pub fn without_variables(mut self, matches: impl Fn(&str) -> bool) -> Machine {
        self.environment.retain(|name, _| !matches(&name.to_string_lossy()));
        self
    }

    #[must_use]
    pub fn in_directory(mut self, directory: impl Into<PathBuf>) -> Machine {
        self.directory = directory.into();
        self
    }

    /// Returns the same machine without `directories`, because accessing them could hang.
    #[must_use]
    pub fn without_directories<'d>(mut self, directories: impl IntoIterator<Item = &'d PathBuf>) -> Machine {
        self.left_out.extend(directories.into_iter().cloned());
        self
    }

    pub fn is_left_out(&self, absolute: impl AsRef<Path>) -> bool {
        // The first condition makes the usual case fast: a PATH can have thousands of directories.
        !self.left_out.is_empty() && absolute.as_ref().ancestors().any(|above| self.left_out.contains(above))
    }

    pub fn working_directory(&self) -> &Path {
        &self.directory
    }

    /// Returns whether the doctor runs as root, and so can see the files and processes of other
    /// users.
    pub fn is_privileged(&self) -> bool {
        self.is_privileged
    }

    /// Returns whether the doctor runs under sudo, and starts programs as the invoking user.
    pub fn is_under_sudo(&self) -> bool {
        self.user.is_some()
    }

    /// Returns where an absolute path of this machine really is: in tests, below the root of the
    /// made-up machine.
    pub fn path(&self, absolute: impl AsRef<Path>) -> PathBuf {
        let absolute = absolute.as_ref();
        self.root.join(absolute.strip_prefix("/").unwrap_or(absolute))
    }

    /// Returns the real path, or an error if the file is in a left-out directory.
    fn accessible_path(&self, absolute: impl AsRef<Path>) -> io::Result<PathBuf> {
        match self.is_left_out(&absolute) {
            true => Err(io::ErrorKind::TimedOut.into()),
            false => Ok(self.path(absolute)),
        }
    }

    /// Returns the path without symbolic links; `None` if it does not exist.
    pub fn canonical(&self, absolute: impl AsRef<Path>) -> Option<PathBuf> {
        let found = self.accessible_path(absolute).ok()?.canonicalize().ok()?;
        let root = self.root.canonicalize().ok()?;
        Some(Path::new("/").join(found.strip_prefix(root).ok()?))
    }

    pub fn check_directory(&self, absolute: impl AsRef<Path>) -> io::Result<()> {
        fs::metadata(self.accessible_path(absolute)?.join(".")).map(drop)
    }

    /// Checks that the doctor's user can create files in a directory, without creating one.
    pub fn check_writable(&self, absolute: impl AsRef<Path>) -> io::Result<()> {
        self.check_directory(&absolute)?;
        let path = self.accessible_path(absolute)?;
        rustix::fs::access(&path, Access::WRITE_OK | Access::EXEC_OK)?;
        match has_room(&path, 1, 1) {
            true => Ok(()),
            false => Err(io::ErrorKind::StorageFull.into()),
        }
    }

    /// Returns all mounts in order: later ones cover earlier ones.
    pub(super) fn mounts(&self) -> Vec<Mount> {
        all_mounts(&self.text("/proc/self/mountinfo").unwrap_or_default())
    }

    pub fn bytes(&self, absolute: impl AsRef<Path>) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        File::open(self.accessible_path(absolute)?)?.take(MAX_FILE_BYTES).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Returns a file's text without leading and trailing white space; `None` if it cannot be read.
    pub fn text(&self, absolute: impl AsRef<Path>) -> Option<String> {
        let bytes = self.bytes(absolute).ok()?;
        Some(String::from_utf8_lossy(&bytes).trim().to_owned())
    }

    pub fn link(&self, absolute: impl AsRef<Path>) -> Option<PathBuf> {
        fs::read_link(self.accessible_path(absolute).ok()?).ok()
    }

    /// Returns the names in a directory, sorted.
    pub fn names(&self, absolute: impl AsRef<Path>) -> Vec<String> {
        let entries = self.accessible_path(absolute).and_then(fs::read_dir).into_iter().flatten().flatten();
        let mut names: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    pub fn exists(&self, absolute: impl AsRef<Path>) -> bool {
        self.accessible_path(absolute).is_ok_and(|path| path.exists())
    }

    /// Returns the value of a variable; `None` if it is unset or empty.
    pub fn variable(&self, name: &str) -> Option<&OsStr> {
        let value = self.environment.get(OsStr::new(name))?;
        (!value.is_empty()).then_some(value.as_os_str())
    }

    pub fn variable_text(&self, name: &str) -> Option<String> {
        Some(self.variable(name)?.to_string_lossy().into_owned())
    }

    /// Returns the directories of PATH in order, as written. An empty entry means the working
    /// directory, even if it is the only entry.
    pub fn search_path(&self) -> Vec<PathBuf> {
        let Some(path) = self.environment.get(OsStr::new("PATH")) else { return Vec::new() };
        let directories = path.as_bytes().split(|&byte| byte == b':');
        directories.map(|directory| PathBuf::from(OsStr::from_bytes(directory))).collect()
    }

    /// Returns the file that a search in the absolute directories of PATH finds for a name.
    pub fn program(&self, name: &str) -> Option<PathBuf> {
        let candidates = self.search_path().into_iter().filter(|directory| directory.is_absolute());
        candidates.map(|directory| directory.join(name)).find(|file| self.is_executable(file))
    }

    pub fn is_executable(&self, absolute: impl AsRef<Path>) -> bool {
        let metadata = self.accessible_path(absolute).and_then(fs::metadata);
        metadata.is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
    }

    /// Returns a command that runs `program` as the user, with this machine's environment and
    /// working directory.
    pub fn command(&self, program: impl AsRef<Path>) -> Command {
        let mut command = Command::new(self.path(program));
        command.env_clear().envs(&self.environment).current_dir(&self.directory);
        self.avoid_left_out(&mut command);
        if let Some(user) = self.user.clone() {
            // SAFETY: the closure makes system calls only, on memory that it owns.
            unsafe { command.pre_exec(move || Ok(user.assume()?)) };
        }
        command
    }

    pub fn command_with(&self, program: impl AsRef<Path>, arguments: &[&str]) -> Command {
        let mut command = self.command(program);
        command.args(arguments);
        command
    }

    /// Removes left-out directories from the environment of a command. Otherwise the command could
    /// hang in them, and could not even be killed. Lists such as PATH keep their other entries.
    fn avoid_left_out(&self, command: &mut Command) {
        for (name, value) in &self.environment {
            let directories = value.as_bytes().split(|&byte| byte == b':');
            let (left_out, others): (Vec<&[u8]>, Vec<&[u8]>) =
                directories.partition(|directory| self.is_left_out(OsStr::from_bytes(directory)));
            if !left_out.is_empty() {
                command.env(name, OsStr::from_bytes(&others.join(&b':')));
            }
        }
        for (name, replacement) in [("HOME", "/"), ("TMPDIR", "/tmp")] {
            if self.variable(name).is_some_and(|directory| self.is_left_out(Path::new(directory))) {
                command.env(name, replacement);
            }
        }
        if self.is_left_out(&self.directory) {
            command.current_dir("/");
        }
    }

    pub fn temporary_directory(&self) -> PathBuf {
        let temporary = self.variable("TMPDIR").map_or(Path::new("/tmp"), Path::new);
        self.directory.join(temporary)
    }

    /// Returns the environment, for programs that are not launched through `command`.
    pub(super) fn environment(&self) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        self.environment.iter().map(|(name, value)| (name.as_os_str(), value.as_os_str()))
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Process {
    pub(super) pid: u32,
    /// The process name, at most 15 bytes.
    pub(super) name: String,
    parent: u32,
    /// Resident anonymous memory, whose page tables a fork copies.
    pub(super) anonymous_bytes: u64,
}

impl Process {
    pub(super) fn file(&self, name: &str) -> String {
        format!("/proc/{}/{name}", self.pid)
    }
}

pub(super) fn processes(machine: &Machine) -> Vec<Process> {
    let pids = machine.names("/proc").into_iter().filter_map(|name| name.parse().ok());
    pids.filter_map(|pid| read_process(machine, pid)).collect()
}

pub(super) fn child_counts(processes: &[Process]) -> HashMap<u32, u64> {
    let mut children = HashMap::new();
    for process in processes {
        *children.entry(process.parent).or_default() += 1;
    }
    children
}

fn read_process(machine: &Machine, pid: u32) -> Option<Process> {
    let status = machine.text(format!("/proc/{pid}/status"))?;
    Some(Process {
        pid,
        name: field(&status, "Name")?.to_owned(),
        parent: field(&status, "PPid")?.parse().ok()?,
        anonymous_bytes: field_bytes(&status, "RssAnon").unwrap_or_default(),
    })
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mount {
    pub(super) point: PathBuf,
    /// The type, such as `ext4` or `fuse.sshfs`.
    pub(super) kind: String,
    pub(super) options: String,
}

impl Mount {
    pub(super) fn has_option(&self, wanted: &str) -> bool {
        self.options.split(',').any(|option| option == wanted)
    }

    /// Returns what the file system is, if accesses may have to wait for another machine or
    /// process.
    pub(super) fn remote_description(&self) -> Option<&'static str> {
        let kind = self.kind.as_str();
        match kind {
            "nfs" | "nfs4" | "cifs" | "smb3" | "afs" | "ceph" | "glusterfs" | "lustre" | "gpfs" | "beegfs" => {
                Some("a network file system")
            }
            "9p" | "drvfs" => Some("a host file system, accessed by messages"),
            "virtiofs" | "vboxsf" | "prl_fs" => Some("a host file system"),
            "autofs" => Some("a file system that is mounted on first access"),
            _ if kind == "fuse" || kind == "fuseblk" || kind.starts_with("fuse.") => {
                Some("a file system in a user process (FUSE)")
            }
            _ => None,
        }
    }
}

/// Returns all mounts of a table such as /proc/self/mountinfo, in order: later ones cover earlier
/// ones.
fn all_mounts(table: &str) -> Vec<Mount> {
    table.lines().filter_map(parse_mount).collect()
}

/// Returns the mount that contains an absolute path without symbolic links.
pub(super) fn containing_mount<'m>(mounts: &'m [Mount], path: &Path) -> Option<&'m Mount> {
    mounts
        .iter()
        .enumerate()
        .filter(|(_, mount)| path.starts_with(&mount.point))
        .max_by_key(|(position, mount)| (mount.point.as_os_str().len(), *position))
        .map(|(_, mount)| mount)
}

/// Parses a line such as
/// `36 35 98:0 /root /point rw,noatime master:1 - ext3 /dev/root rw,errors=continue`.
fn parse_mount(line: &str) -> Option<Mount> {
    let (mount, file_system) = line.split_once(" - ")?;
    let mut mount = mount.split(' ').skip(4);
    let (point, mount_options) = (mount.next()?, mount.next()?);
    let mut file_system = file_system.split(' ');
    let kind = file_system.next()?.to_owned();
    let options = file_system.nth(1).unwrap_or_default();
    Some(Mount { point: unescape(point), kind, options: format!("{mount_options},{options}") })
}

/// Replaces octal escapes such as `\040`, which the kernel writes for white space and backslashes.
fn unescape(text: &str) -> PathBuf {
    let mut bytes = Vec::new();
    let mut parts = text.split('\\');
    bytes.extend(parts.next().unwrap_or_default().bytes());
    for part in parts {
        match part.get(..3).and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                bytes.push(byte);
                bytes.extend(part.bytes().skip(3));
            }
            None => bytes.extend(part.bytes()),
        }
    }
    PathBuf::from(OsString::from_vec(bytes))
}

/// Returns whether a file system has room for this many bytes and files. A file system that reports
/// no total number of blocks or files counts as unlimited. Makes one system call, and does not
/// allocate memory if the path is a C string.
pub(super) fn has_room(path: impl rustix::path::Arg, bytes: u64, files: u64) -> bool {
    let Ok(room) = rustix::fs::statvfs(path) else { return true };
    let free = room.f_bavail.saturating_mul(room.f_frsize);
    !is_short(room.f_blocks, free, bytes) && !is_short(room.f_files, room.f_favail, files)
}

fn is_short(total: u64, free: u64, wanted: u64) -> bool {
    total > 0 && free < wanted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_mount_point_wins_or_the_later_of_two_equal_ones() {
        let mounts: Vec<Mount> = [
            "1 0 0:1 / / rw - ext4 /dev/vda rw",
            "2 1 0:2 / /mnt/a\\040b rw,noexec - tmpfs tmpfs rw,size=8m",
            "3 2 0:3 / /mnt/a\\040b rw - fuse.sshfs host:/ rw",
        ]
        .iter()
        .filter_map(|line| parse_mount(line))
        .collect();
        let found = containing_mount(&mounts, Path::new("/mnt/a b/c")).unwrap();
        assert!(found.remote_description().is_some() && !found.has_option("noexec"), "{found:?}");
        assert_eq!(containing_mount(&mounts, Path::new("/mnt/a")).unwrap().kind, "ext4");
        assert!(mounts[1].has_option("noexec") && mounts[1].has_option("size=8m"));
    }
}
