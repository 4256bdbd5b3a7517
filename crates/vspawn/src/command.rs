//! The description of a process to start: a builder with the interface of [`std::process::Command`]
//! and additional properties.

use std::collections::{BTreeMap, btree_map};
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::fd::{OwnedFd, RawFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::request::{Attributes, Mechanism};
use crate::stdio::{Source, Stdio};
use crate::sys::signal_bit;

/// A process to start. Requests are checked by [`Command::prepare`] and the `spawn` methods, not
/// before.
///
/// ```
/// let mut command = vspawn::Command::new("sh");
/// command.args(["-c", "echo $GREETING; pwd"]).env("GREETING", "hello").current_dir("/");
/// assert_eq!(command.output()?.stdout, b"hello\n/\n");
/// assert_eq!(format!("{command:?}"), r#""sh" "-c" "echo $GREETING; pwd""#);
/// # Ok::<(), vspawn::Error>(())
/// ```
#[derive(Clone)]
pub struct Command {
    pub(crate) program: OsString,
    pub(crate) args: Vec<OsString>,
    /// argv[0] if it differs from the program.
    pub(crate) name: Option<OsString>,
    pub(crate) clear_env: bool,
    pub(crate) env_unlocked: bool,
    /// Changes to the inherited environment; `None` removes the variable.
    pub(crate) env: BTreeMap<OsString, Option<OsString>>,
    pub(crate) cwd: Option<PathBuf>,
    pub(crate) chroot: Option<PathBuf>,
    pub(crate) fds: BTreeMap<i32, Source>,
    pub(crate) attributes: Attributes,
    /// The first invalid request, returned as an error by `prepare`.
    pub(crate) mistake: Option<String>,
}

/// Shows the program and its arguments, but not the environment, which may contain secrets.
impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.program)?;
        self.args.iter().try_for_each(|arg| write!(f, " {arg:?}"))
    }
}

impl Command {
    /// Creates a command for a program. `program` is a path, or a name that is looked up in PATH as
    /// by execvp. The child inherits environment, directory and standard streams. As with std, no
    /// signal is blocked in the child and SIGPIPE has its default effect.
    ///
    /// ```
    /// assert!(vspawn::Command::new("true").status()?.success());
    /// let error = vspawn::Command::new("/nowhere").spawn().unwrap_err();
    /// assert_eq!(error.to_string(), "exec /nowhere: No such file or directory (os error 2)");
    /// # Ok::<(), vspawn::Error>(())
    /// ```
    pub fn new(program: impl AsRef<OsStr>) -> Command {
        Command {
            program: program.as_ref().to_owned(),
            args: Vec::new(),
            name: None,
            clear_env: false,
            env_unlocked: false,
            env: BTreeMap::new(),
            cwd: None,
            chroot: None,
            fds: BTreeMap::new(),
            attributes: Attributes {
                default_signals: signal_bit(libc::SIGPIPE),
                signal_mask: Some(0),
                ..Attributes::default()
            },
            mistake: None,
        }
    }

    /// Adds an argument.
    ///
    /// ```
    /// assert_eq!(vspawn::Command::new("echo").arg("two words").output()?.stdout, b"two words\n");
    /// # Ok::<(), vspawn::Error>(())
    /// ```
    pub fn arg(&mut self, arg: impl AsRef<OsStr>) -> &mut Command {
        self.args.push(arg.as_ref().to_owned());
        self
    }

    /// Adds arguments.
    ///
    /// ```
    /// assert_eq!(vspawn::Command::new("echo").args(["one", "two"]).output()?.stdout, b"one two\n");
    /// # Ok::<(), vspawn::Error>(())
    /// ```
    pub fn args(&mut self, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> &mut Command {
        self.args.extend(args.into_iter().map(|arg| arg.as_ref().to_owned()));
        self
    }

    /// Sets argv\[0\]. The default is the program as given.
    ///
    /// ```
    /// let output = vspawn::Command::new("/bin/sh").arg0("a-name").args(["-c", "echo $0"]).output()?;
    /// assert_eq!(output.stdout, b"a-name\n");
    /// # Ok::<(), vspawn::Error>(())
    /// ```
    pub fn arg0(&mut self, name: impl AsRef<OsStr>) -> &mut Command {
        self.name = Some(name.as_ref().to_owned());
        self
    }

    /// Sets a variable of the child's environment.
    ///
    /// ```
    /// let output = vspawn::Command::new("sh").args(["-c", "echo $COLOR"]).env("COLOR", "green").output()?;
    /// assert_eq!(output.stdout, b"green\n");
    /// # Ok::<(), vspawn::Error>(())
    /// ```
    pub fn env(&mut self, key: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> &mut Command {
        let value = value.as_ref().to_owned();
        self.env.insert(key.as_ref().to_owned(), Some(value));
        self
    }

    /// Sets variables.
    ///
    /// ```
    /// let mut command = vspawn::Command::new("env");
    /// let output = command.env_clear().env("PATH", "/usr/bin:/bin").envs([("A", "1"), ("B", "2")]).output()?;
    /// assert_eq!(output.stdout, b"A=1\nB=2\nPATH=/usr/bin:/bin\n");
    /// # Ok::<(), vspawn::Error>(())
    /// ```
    pub fn envs(&mut self, vars: impl IntoIterator<Item = (impl AsRef<OsStr>, impl AsRef<OsStr>)>) -> &mut Command {
        for (key, value) in vars {
            self.env(key, value);
        }
        self
    }

    /// Removes a variable.
    ///
    /// ```
    /// let output = vspawn::Command::new("sh").args(["-c", "echo ${HOME-none}"]).env_remove("HOME").output()?;
    /// assert_eq!(output.stdout, b"none\n");
    /// # Ok::<(), vspawn::Error>(())
    /// ```
    pub fn env_remove(&mut self, key: impl AsRef<OsStr>) -> &mut Command {
        self.env.insert(key.as_ref().to_owned(), None);
        self
    }

    /// Clears the environment: the child inherits no variable.
    ///
    /// ```
    /// let output = vspawn::Command::new("/usr/bin/env").env_clear().output()?;
    /// assert!(output.stdout.is_empty());
    /// # Ok::<(), vspawn::Error>(())
    /// ```
    pub fn env_clear(&mut self) -> &mut Command {
        self.clear_env = true;
        self.env.clear();
        self
    }

    /// Takes the inherited variables directly from C's `environ`, without std's lock and copies.
    /// This halves the time of [`Command::prepare`], and [`Command::spawn`] makes no copy even in a
    /// process with several threads. It has no effect on a command that sets or removes variables.
    ///
    /// # Safety
    /// No thread may change the environment while the command is prepared or spawned. Meant for
    /// interpreters, which hold a lock of their own, and for programs that change no variable while
    /// they have several threads.
    ///
    /// ```
    /// let mut command = vspawn::Command::new("true");
    /// // SAFETY: no other thread changes a variable in this program.
    /// unsafe { command.env_unlocked() };
    /// assert!(command.status()?.success());
    /// # Ok::<(), vspawn::Error>(())
    /// ```
    pub unsafe fn env_unlocked(&mut self) -> &mut Command {
        self.env_unlocked = true;
        self
    }

    /// Sets the child's working directory, entered after `chroot` and with the rights of the
    /// child's user.
    ///
    /// ```
    /// assert_eq!(vspawn::Command::new("pwd").current_dir("/").output()?.stdout, b"/\n");
    /// # Ok::<(), vspawn::Error>(())
    /// ```
    pub fn current_dir(&mut self, directory: impl AsRef<Path>) -> &mut Command {
        self.cwd = Some(directory.as_ref().to_owned());
        self
    }

    /// Sets the child's root directory. Programs and directories are then looked up in it. Without
    /// [`Command::current_dir`], the child starts in its root.
    ///
    /// ```no_run
    /// // Needs CAP_SYS_CHROOT.
    /// vspawn::Command::new("/bin/sh").chroot("/srv/root").current_dir("/tmp").status()?;
    /// # Ok::<(), vspawn::Error>(())
    /// ```
    pub fn chroot(&mut self, directory: impl AsRef<Path>) -> &mut Command {
        self.chroot = Some(directory.as_ref().to_owned());
        self
    }

    /// Sets the child's standard input.
    ///
    /// ```
    /// use vspawn::{Command, Stdio};
    ///
    /// assert!(Command::new("cat").stdin(Stdio::null()).output()?.stdout.is_empty());
    /// # Ok::<(), vspawn::Error>(())
    /// ```
    pub fn stdin(&mut self, stdin: impl Into<Stdio>) -> &mut Command {
        self.set_source(0, stdin.into().0)
    }

    /// Sets the child's standard output.
    ///
    /// ```
    /// use std::io::Read;
    /// use vspawn::{Command, Stdio};
    ///
    /// let mut child = Command::new("echo").arg("hello").stdout(Stdio::piped()).spawn()?;
    /// let mut printed = String::new();
    /// child.stdout.take().unwrap().read_to_string(&mut printed).unwrap();
    /// assert_eq!(printed, "hello\n");
    /// assert!(child.wait()?.success());
    /// # Ok::<(), vspawn::Error>(())
    /// ```
    pub fn stdout(&mut self, stdout: impl Into<Stdio>) -> &mut Command {
        self.set_source(1, stdout.into().0)
    }

    /// Sets the child's standard error.
    ///
    /// ```
    /// use vspawn::{Command, Stdio};
    ///
    /// let mut command = Command::new("sh");
    /// command.args(["-c", "echo out; echo error >&2"]).stderr(Stdio::stdout());
    /// assert_eq!(command.output()?.stdout, b"out\nerror\n");
    /// # Ok::<(), vspawn::Error>(())
    /// ```
    pub fn stderr(&mut self, stderr: impl Into<Stdio>) -> &mut Command {
        self.set_source(2, stderr.into().0)
    }

    /// Gives the child a file as its descriptor `target`. Calls may swap descriptors: the source of
    /// one may be the target of another.
    ///
    /// ```
    /// let file = std::fs::File::open("/dev/zero").unwrap();
    /// let output = vspawn::Command::new("sh").args(["-c", "head -c 3 <&7"]).fd(7, file).output()?;
    /// assert_eq!(output.stdout, [0, 0, 0]);
    /// # Ok::<(), vspawn::Error>(())
    /// ```
    pub fn fd(&mut self, target: i32, file: impl Into<OwnedFd>) -> &mut Command {
        self.set_source(target, Source::Fd(Arc::new(file.into())))
    }

    /// Lets the child keep the parent's descriptor with this number, even if it is close-on-exec,
    /// and even with [`Command::close_others`]. As with [`Stdio::number`], the command does not
    /// keep the descriptor open in the parent.
    ///
    /// ```
    /// use std::os::fd::AsRawFd;
    ///
    /// let zeros = std::fs::File::open("/dev/zero").unwrap(); // close-on-exec, as std opens all files
    /// let number = zeros.as_raw_fd();
    /// let mut command = vspawn::Command::new("head");
    /// command.args(["-c", "3"]).arg(format!("/proc/self/fd/{number}")).keep(number).close_others(true);
    /// assert_eq!(command.output()?.stdout, [0, 0, 0]);
    /// # Ok::<(), vspawn::Error>(())
    /// ```
    pub fn keep(&mut self, number: RawFd) -> &mut Command {
        self.set_source(number, Source::Number(number))
    }

    /// Like [`Command::fd`], but for a descriptor of the parent that the command does not own (see
    /// [`Stdio::number`]).
    ///
    /// ```
    /// use std::os::fd::AsRawFd;
    ///
    /// let zeros = std::fs::File::open("/dev/zero").unwrap();
    /// let mut command = vspawn::Command::new("head");
    /// command.args(["-c", "3", "/proc/self/fd/9"]).fd_number(9, zeros.as_raw_fd());
    /// assert_eq!(command.output()?.stdout, [0, 0, 0]);
    /// # Ok::<(), vspawn::Error>(())
    /// ```
    pub fn fd_number(&mut self, target: i32, source: i32) -> &mut Command {
        self.set_source(target, Source::Number(source))
    }

    pub(crate) fn set_source(&mut self, target: i32, source: Source) -> &mut Command {
        self.fds.insert(target, source);
        self
    }

    /// Closes, in the child, all descriptors except the standard streams and those of `fd`,
    /// `fd_number` and `keep`. By default, the child inherits every descriptor without
    /// close-on-exec, as with std. With `close_others`, the time of a spawn does not depend on the
    /// number of files that the parent has open, unless the child gets a file with a high number
    /// (1024 or more).
    ///
    /// ```
    /// let mut command = vspawn::Command::new("sh");
    /// command.args(["-c", "ls /proc/$$/fd"]).close_others(true);
    /// assert!(command.output()?.stdout.starts_with(b"0\n1\n2\n"));
    /// # Ok::<(), vspawn::Error>(())
    /// ```
    pub fn close_others(&mut self, close: bool) -> &mut Command {
        self.attributes.close_others = close;
        self
    }

    /// Sets how the child is created. `Mechanism::Fork` is only used if it is set here.
    ///
    /// ```
    /// use vspawn::{Command, Mechanism};
    ///
    /// // For a system call filter that refuses children which share memory.
    /// let mut command = Command::new("true");
    /// let shared = command.status();
    /// assert!(shared.or_else(|_| command.mechanism(Mechanism::Fork).status())?.success());
    /// # Ok::<(), vspawn::Error>(())
    /// ```
    pub fn mechanism(&mut self, mechanism: Mechanism) -> &mut Command {
        self.attributes.mechanism = mechanism;
        self
    }

    /// Runs a function in the child just before its exec. The function needs its own copy of
    /// memory, so this also requires [`Mechanism::Fork`]; `prepare` returns an error otherwise. The
    /// function returns an errno to abort the spawn.
    ///
    /// # Safety
    /// The function must be safe after a fork, as for
    /// [`std::os::unix::process::CommandExt::pre_exec`]: other threads may have held locks (for
    /// instance the allocator's) that no thread in the child will ever release.
    ///
    /// ```
    /// use vspawn::{Command, Mechanism};
    ///
    /// let mut command = Command::new("sh");
    /// command.args(["-c", "exit 0"]).mechanism(Mechanism::Fork);
    /// // SAFETY: the function allocates nothing and takes no lock.
    /// unsafe { command.pre_exec(|| Err(libc::EPERM)) };
    /// assert_eq!(command.spawn().unwrap_err().stage(), vspawn::Stage::PreExec);
    /// # Ok::<(), vspawn::Error>(())
    /// ```
    pub unsafe fn pre_exec(&mut self, function: impl Fn() -> Result<(), i32> + Send + Sync + 'static) -> &mut Command {
        self.attributes.pre_exec = Some(Arc::new(function));
        self
    }
}

/// Getters, named as in [`std::process::Command`].
impl Command {
    /// Returns the program, as passed to [`Command::new`].
    ///
    /// ```
    /// assert_eq!(vspawn::Command::new("ls").get_program(), "ls");
    /// ```
    #[must_use]
    pub fn get_program(&self) -> &OsStr {
        &self.program
    }

    /// Returns the arguments, without argv\[0\].
    ///
    /// ```
    /// let mut command = vspawn::Command::new("ls");
    /// assert!(command.args(["-l", "/"]).get_args().eq(["-l", "/"]));
    /// ```
    #[must_use]
    pub fn get_args(&self) -> CommandArgs<'_> {
        CommandArgs(self.args.iter())
    }

    /// Returns the changes to the inherited environment, sorted by name. A value of `None` means
    /// that the variable is removed.
    ///
    /// ```
    /// let mut command = vspawn::Command::new("ls");
    /// command.env("B", "2").env_remove("A");
    /// let envs: Vec<_> = command.get_envs().collect();
    /// assert_eq!(envs, [("A".as_ref(), None), ("B".as_ref(), Some("2".as_ref()))]);
    /// ```
    #[must_use]
    pub fn get_envs(&self) -> CommandEnvs<'_> {
        CommandEnvs(self.env.iter())
    }

    /// Returns whether the environment is cleared ([`Command::env_clear`]), so that the child
    /// inherits no variable.
    ///
    /// ```
    /// assert!(vspawn::Command::new("ls").env_clear().get_env_clear());
    /// ```
    #[must_use]
    pub fn get_env_clear(&self) -> bool {
        self.clear_env
    }

    /// Returns the working directory, if one was set.
    ///
    /// ```
    /// let mut command = vspawn::Command::new("ls");
    /// assert_eq!(command.get_current_dir(), None);
    /// assert_eq!(command.current_dir("/").get_current_dir(), Some("/".as_ref()));
    /// ```
    #[must_use]
    pub fn get_current_dir(&self) -> Option<&Path> {
        self.cwd.as_deref()
    }
}

/// An iterator over the arguments of a command. See [`Command::get_args`].
#[derive(Clone, Debug)]
pub struct CommandArgs<'a>(std::slice::Iter<'a, OsString>);

/// An iterator over a command's changes to the environment. See [`Command::get_envs`].
#[derive(Clone, Debug)]
pub struct CommandEnvs<'a>(btree_map::Iter<'a, OsString, Option<OsString>>);

impl<'a> Iterator for CommandArgs<'a> {
    type Item = &'a OsStr;

    fn next(&mut self) -> Option<&'a OsStr> {
        self.0.next().map(OsString::as_os_str)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl ExactSizeIterator for CommandArgs<'_> {}

impl<'a> Iterator for CommandEnvs<'a> {
    type Item = (&'a OsStr, Option<&'a OsStr>);

    fn next(&mut self) -> Option<Self::Item> {
        let (key, value) = self.0.next()?;
        Some((key, value.as_deref()))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl ExactSizeIterator for CommandEnvs<'_> {}
