//! The machine that is examined: the root directory below which files such as /proc/meminfo are
//! read, the environment variables, and the working directory. In tests, all of these are made up.

use std::collections::{BTreeMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::fs::Access;

use super::mounts::{self, Mount};
use spawnscope_system::held::Identity;

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
        match mounts::has_room(&path, 1, 1) {
            true => Ok(()),
            false => Err(io::ErrorKind::StorageFull.into()),
        }
    }

    /// Returns all mounts in order: later ones cover earlier ones.
    pub(super) fn mounts(&self) -> Vec<Mount> {
        mounts::all(&self.text("/proc/self/mountinfo").unwrap_or_default())
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
