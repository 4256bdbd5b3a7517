//! What to start and how: a builder with the interface of [`std::process::Command`] and additional properties.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::fd::{OwnedFd, RawFd};
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Output};
use std::sync::Arc;

use crate::actions::Action;
use crate::capture::Capture;
use crate::environment::Inheritance;
use crate::error::{Error, Stage};
use crate::launch::Start;
use crate::plan::{Hook, Identity, Limit};
use crate::prepared::Prepared;
use crate::process::Child;
use crate::stdio::{Source, Stdio};
use crate::sys::{SignalSet, signal_bit};

/// How the child is created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mechanism {
    /// The child shares the parent's memory until its exec, however large that memory is.
    #[default]
    Share,
    /// The child gets a copy of the parent's page tables, which dominates the cost for a large parent.
    Fork,
}

/// A process to start. Requests are checked by [`Command::prepare`] and the `spawn` methods, not before.
#[derive(Clone)]
pub struct Command {
    pub(crate) program: OsString,
    pub(crate) args: Vec<OsString>,
    /// argv[0] if it differs from the program.
    pub(crate) name: Option<OsString>,
    pub(crate) clear_env: bool,
    pub(crate) env_unlocked: bool,
    /// Changes to the inherited environment; `None` removes.
    pub(crate) env: BTreeMap<OsString, Option<OsString>>,
    pub(crate) cwd: Option<PathBuf>,
    pub(crate) chroot: Option<PathBuf>,
    pub(crate) fds: BTreeMap<i32, Source>,
    pub(crate) close_others: bool,
    pub(crate) actions: Vec<Action>,
    pub(crate) umask: Option<u32>,
    pub(crate) new_session: bool,
    pub(crate) controlling_terminal: Option<i32>,
    pub(crate) process_group: Option<i32>,
    pub(crate) limits: Vec<Limit>,
    pub(crate) nice: Option<i32>,
    pub(crate) scheduler: Option<(i32, i32)>,
    pub(crate) affinity: Vec<u64>,
    pub(crate) no_new_privileges: bool,
    pub(crate) identity: Option<Identity>,
    pub(crate) signal_mask: SignalSet,
    pub(crate) default_signals: SignalSet,
    pub(crate) ignored_signals: SignalSet,
    pub(crate) cgroup: Option<Arc<OwnedFd>>,
    pub(crate) parent_death_signal: Option<i32>,
    pub(crate) pre_exec: Option<Hook>,
    pub(crate) mechanism: Mechanism,
    /// The first invalid request, returned as an error by `prepare`.
    pub(crate) mistake: Option<String>,
}

/// Program and arguments, but not the environment, which may contain secrets.
impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.program)?;
        self.args.iter().try_for_each(|arg| write!(f, " {arg:?}"))
    }
}

impl Command {
    /// Creates a command for a program: a path, or a name that is searched for in PATH as execvp does. It inherits
    /// environment, directory and standard streams. As with std, no signal is blocked in it and SIGPIPE has its default.
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
            close_others: false,
            actions: Vec::new(),
            umask: None,
            new_session: false,
            controlling_terminal: None,
            process_group: None,
            limits: Vec::new(),
            nice: None,
            scheduler: None,
            affinity: Vec::new(),
            no_new_privileges: false,
            identity: None,
            signal_mask: 0,
            default_signals: signal_bit(libc::SIGPIPE),
            ignored_signals: 0,
            cgroup: None,
            parent_death_signal: None,
            pre_exec: None,
            mechanism: Mechanism::Share,
            mistake: None,
        }
    }

    /// Adds an argument.
    pub fn arg(&mut self, arg: impl AsRef<OsStr>) -> &mut Command {
        self.args.push(arg.as_ref().to_owned());
        self
    }

    /// Adds arguments.
    pub fn args(&mut self, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> &mut Command {
        self.args.extend(args.into_iter().map(|arg| arg.as_ref().to_owned()));
        self
    }

    /// Sets argv[0]. The default is the program as given.
    pub fn arg0(&mut self, name: impl AsRef<OsStr>) -> &mut Command {
        self.name = Some(name.as_ref().to_owned());
        self
    }

    /// Sets a variable of the child's environment.
    pub fn env(&mut self, key: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> &mut Command {
        let value = value.as_ref().to_owned();
        self.env.insert(key.as_ref().to_owned(), Some(value));
        self
    }

    /// Sets variables.
    pub fn envs(&mut self, vars: impl IntoIterator<Item = (impl AsRef<OsStr>, impl AsRef<OsStr>)>) -> &mut Command {
        for (key, value) in vars {
            self.env(key, value);
        }
        self
    }

    /// Removes a variable.
    pub fn env_remove(&mut self, key: impl AsRef<OsStr>) -> &mut Command {
        self.env.insert(key.as_ref().to_owned(), None);
        self
    }

    /// Clears the environment: the child inherits no variable.
    pub fn env_clear(&mut self) -> &mut Command {
        self.clear_env = true;
        self.env.clear();
        self
    }

    /// Takes the inherited variables directly from C's `environ`, without std's lock and without std's copies. This halves the time of
    /// [`Command::prepare`], and [`Command::spawn`] makes no copy in a process with several threads either. Without effect on a command that
    /// sets or removes variables.
    ///
    /// # Safety
    /// No thread may change the environment while the command is prepared or spawned. Meant for interpreters that hold their own lock, and for
    /// programs that change no variable while they have several threads.
    pub unsafe fn env_unlocked(&mut self) -> &mut Command {
        self.env_unlocked = true;
        self
    }

    /// Sets the child's working directory, entered after `chroot` and with the rights of the child's user.
    pub fn current_dir(&mut self, directory: impl AsRef<Path>) -> &mut Command {
        self.cwd = Some(directory.as_ref().to_owned());
        self
    }

    /// Sets the child's root directory. Programs and directories are then looked up in it. Without a
    /// [`Command::current_dir`], the child starts in its root.
    pub fn chroot(&mut self, directory: impl AsRef<Path>) -> &mut Command {
        self.chroot = Some(directory.as_ref().to_owned());
        self
    }

    /// Sets the child's standard input.
    pub fn stdin(&mut self, stdin: impl Into<Stdio>) -> &mut Command {
        self.place(0, stdin.into().0)
    }

    /// Sets the child's standard output.
    pub fn stdout(&mut self, stdout: impl Into<Stdio>) -> &mut Command {
        self.place(1, stdout.into().0)
    }

    /// Sets the child's standard error.
    pub fn stderr(&mut self, stderr: impl Into<Stdio>) -> &mut Command {
        self.place(2, stderr.into().0)
    }

    /// Gives the child a file at the descriptor `target`. Sources may be each other's targets.
    pub fn fd(&mut self, target: i32, file: impl Into<OwnedFd>) -> &mut Command {
        self.place(target, Source::Fd(Arc::new(file.into())))
    }

    /// Lets the child keep the parent's descriptor with this number, close-on-exec or not, even with
    /// [`Command::close_others`]. As with [`Stdio::number`], the command does not keep it open.
    pub fn keep(&mut self, number: RawFd) -> &mut Command {
        self.place(number, Source::Number(number))
    }

    /// As [`Command::fd`], for a parent's descriptor that the command does not own (see [`Stdio::number`]).
    pub fn fd_number(&mut self, target: i32, source: i32) -> &mut Command {
        self.place(target, Source::Number(source))
    }

    pub(crate) fn place(&mut self, target: i32, source: Source) -> &mut Command {
        self.fds.insert(target, source);
        self
    }

    /// Closes, in the child, all descriptors except the standard streams and those given with [`Command::fd`]. Otherwise,
    /// the child inherits every descriptor without close-on-exec, as with std. With `close_others`, the time of a spawn does not
    /// depend on the number of files that the parent has open, unless a given file has a high number.
    pub fn close_others(&mut self, close: bool) -> &mut Command {
        self.close_others = close;
        self
    }

    /// Sets the child's file mode creation mask.
    pub fn umask(&mut self, mask: u32) -> &mut Command {
        self.umask = Some(mask);
        self
    }

    /// Puts the child into a process group; 0 creates one with the child's pid.
    pub fn process_group(&mut self, group: i32) -> &mut Command {
        self.process_group = Some(group);
        self
    }

    /// Starts a session (`setsid`), and with it a process group.
    pub fn new_session(&mut self, begin: bool) -> &mut Command {
        self.new_session = begin;
        self
    }

    /// Starts a session with the parent's descriptor `terminal` as its controlling terminal.
    pub fn controlling_terminal(&mut self, terminal: i32) -> &mut Command {
        self.controlling_terminal = Some(terminal);
        self.new_session(true)
    }

    /// Sets a resource limit (`libc::RLIMIT_*`) to soft and hard values; `libc::RLIM_INFINITY` removes it.
    pub fn resource_limit(&mut self, resource: u32, soft: u64, hard: u64) -> &mut Command {
        let values = [soft, hard];
        self.limits.push(Limit { resource, values });
        self
    }

    /// Adds to the child's niceness.
    pub fn nice(&mut self, increment: i32) -> &mut Command {
        self.nice = Some(increment);
        self
    }

    /// Sets the scheduling policy (`libc::SCHED_*`) and its priority: 0, or 1 to 99 for SCHED_FIFO and SCHED_RR.
    ///
    /// ```
    /// let mut command = vspawn::Command::new("true");
    /// assert!(command.scheduler(libc::SCHED_BATCH, 0).status()?.success());
    /// # Ok::<(), vspawn::Error>(())
    /// ```
    pub fn scheduler(&mut self, policy: i32, priority: i32) -> &mut Command {
        self.scheduler = Some((policy, priority));
        self
    }

    /// Restricts the child to these CPUs.
    ///
    /// ```no_run
    /// vspawn::Command::new("make").affinity([0, 1]).status()?;
    /// # Ok::<(), vspawn::Error>(())
    /// ```
    pub fn affinity(&mut self, cpus: impl IntoIterator<Item = usize>) -> &mut Command {
        const MAX_CPUS: usize = 1 << 16;
        self.affinity = vec![0];
        for cpu in cpus {
            if cpu >= MAX_CPUS {
                self.mistake
                    .get_or_insert(format!("use CPU {cpu}, which does not exist"));
                continue;
            }
            if self.affinity.len() <= cpu / 64 {
                self.affinity.resize(cpu / 64 + 1, 0);
            }
            self.affinity[cpu / 64] |= 1 << (cpu % 64);
        }
        self
    }

    /// Keeps the child and its descendants from gaining privileges by an exec (`PR_SET_NO_NEW_PRIVS`): set-user-id bits and file
    /// capabilities have no effect for them.
    ///
    /// ```
    /// let mut command = vspawn::Command::new("grep");
    /// command.args(["-q", "NoNewPrivs:.1", "/proc/self/status"]).no_new_privileges(true);
    /// assert!(command.status()?.success());
    /// # Ok::<(), vspawn::Error>(())
    /// ```
    pub fn no_new_privileges(&mut self, give_up: bool) -> &mut Command {
        self.no_new_privileges = give_up;
        self
    }

    /// Sets the effective user and group id to the real ones, as POSIX_SPAWN_RESETIDS: for set-user-id programs.
    pub fn reset_ids(&mut self) -> &mut Command {
        self.identity().reset = true;
        self
    }

    fn identity(&mut self) -> &mut Identity {
        self.identity.get_or_insert_default()
    }

    /// Sets the real, effective and saved user id. A parent with user id 0 also drops its supplementary groups, unless
    /// [`Command::groups`] sets them.
    ///
    /// Until such a child has called exec, the parent's dumpable flag may be off; it is restored then. Spawns that change
    /// the user wait for each other.
    pub fn uid(&mut self, uid: u32) -> &mut Command {
        self.identity().uid = Some(uid);
        self
    }

    /// Sets the real, effective and saved group id.
    pub fn gid(&mut self, gid: u32) -> &mut Command {
        self.identity().gid = Some(gid);
        self
    }

    /// Sets the supplementary groups.
    pub fn groups(&mut self, groups: &[u32]) -> &mut Command {
        self.identity().groups = Some(groups.to_vec());
        self
    }

    /// Blocks these signals in the child, and unblocks all others.
    pub fn blocked_signals(&mut self, signals: &[i32]) -> &mut Command {
        self.signal_mask = self.signal_set(signals);
        self
    }

    /// Resets these signals to their default effect, even if the parent ignores them. SIGPIPE is always reset, unless it is in
    /// [`Command::ignored_signals`].
    pub fn default_signals(&mut self, signals: &[i32]) -> &mut Command {
        let set = self.signal_set(signals);
        self.default_signals |= set;
        self.ignored_signals &= !set;
        self
    }

    /// Ignores these signals in the child.
    pub fn ignored_signals(&mut self, signals: &[i32]) -> &mut Command {
        let set = self.signal_set(signals);
        self.ignored_signals |= set;
        self.default_signals &= !set;
        self
    }

    /// Leaves SIGPIPE as it is in the parent, like C's `posix_spawn`.
    pub fn inherit_sigpipe(&mut self) -> &mut Command {
        self.default_signals &= !signal_bit(libc::SIGPIPE);
        self
    }

    fn signal_set(&mut self, signals: &[i32]) -> SignalSet {
        let (valid, invalid): (Vec<i32>, Vec<i32>) = signals.iter().partition(|signal| (1..=64).contains(*signal));
        if let Some(signal) = invalid.first() {
            self.mistake
                .get_or_insert(format!("set signal {signal}, which does not exist"));
        }
        valid.into_iter().fold(0, |set, signal| set | signal_bit(signal))
    }

    /// Creates the child in this cgroup (v2), given by its open directory. Needs clone3 (Linux 5.7).
    pub fn cgroup(&mut self, directory: impl Into<OwnedFd>) -> &mut Command {
        self.cgroup = Some(Arc::new(directory.into()));
        self
    }

    /// Sets the signal that the child gets when the *thread* that spawned it ends.
    pub fn parent_death_signal(&mut self, signal: i32) -> &mut Command {
        self.parent_death_signal = Some(signal);
        self
    }

    /// Sets how the child is created. `Mechanism::Fork` is only used if it is set here.
    pub fn mechanism(&mut self, mechanism: Mechanism) -> &mut Command {
        self.mechanism = mechanism;
        self
    }

    /// Runs a function in the child just before its exec. The function needs its own copy of memory, so this also requires
    /// [`Mechanism::Fork`]; `prepare` returns an error otherwise. The function returns an errno to abort the spawn.
    ///
    /// # Safety
    /// As for [`std::os::unix::process::CommandExt::pre_exec`]: other threads may have held locks (for instance the allocator's)
    /// that no thread in the child will ever release.
    pub unsafe fn pre_exec(&mut self, function: impl Fn() -> Result<(), i32> + Send + Sync + 'static) -> &mut Command {
        self.pre_exec = Some(Arc::new(function));
        self
    }

    /// Prepares everything, so that [`Prepared::spawn`] allocates nothing. Environment, PATH and descriptors are
    /// read at this time.
    ///
    /// # Errors
    /// [`Stage::Prepare`](crate::Stage::Prepare) with `EINVAL`: a NUL byte, an empty program, or a request that requires
    /// another one.
    pub fn prepare(&self) -> Result<Prepared, Error> {
        Prepared::new(self, Inheritance::Copied)
    }

    /// Starts the process. Returns after its exec.
    ///
    /// If the command neither sets nor removes variables and the process has one thread, the kernel reads them where they are, in C's `environ`,
    /// as after C's `posix_spawn`: they cost nothing. With several threads they are copied under std's lock, since another thread may call
    /// [`std::env::set_var`] meanwhile. [`Command::env_unlocked`] omits the copy; so does [`Command::prepare`], made once for many spawns.
    ///
    /// # Errors
    /// The step that failed, with its errno. No process remains.
    pub fn spawn(&self) -> Result<Child, Error> {
        match Prepared::new(self, Inheritance::InPlace)?.start(Start::Waited) {
            // The kernel met a variable that another thread was changing. (No other argument can have this result.)
            Err(error) if error.stage() == Stage::Exec && error.raw_os_error() == libc::EFAULT => {
                self.prepare()?.start(Start::Waited)
            }
            result => result,
        }
    }

    /// Starts the process and returns at once: see [`Prepared::spawn_nowait`].
    ///
    /// # Errors
    /// As for [`Prepared::spawn_nowait`].
    pub fn spawn_nowait(&self) -> Result<Child, Error> {
        self.prepare()?.spawn_nowait()
    }

    /// Replaces this process by the command, after all that a child would do before its exec. Returns only if that fails: the error,
    /// while this process keeps whatever was already changed (descriptors, user, directory, limits). Pipes are an invalid request here, and so
    /// is a cgroup, in which a process can only be created.
    ///
    /// ```no_run
    /// let error = vspawn::Command::new("/bin/sh").arg("-l").exec();
    /// eprintln!("failed to {error}");
    /// ```
    pub fn exec(&mut self) -> Error {
        match Prepared::new(self, Inheritance::InPlace) {
            Ok(prepared) => prepared.exec(),
            Err(error) => error,
        }
    }

    /// Starts the process and waits for its end.
    ///
    /// # Errors
    /// As [`Command::spawn`] and [`Child::wait`].
    pub fn status(&mut self) -> Result<ExitStatus, Error> {
        self.spawn()?.wait()
    }

    /// Starts the process, reads its standard output and error to their ends, and waits for it. As with std, these are piped and
    /// its standard input is empty, unless the command says otherwise. For input, limits or a timeout, see
    /// [`Command::capture`].
    ///
    /// # Errors
    /// As [`Command::spawn`] and [`Child::wait`], and [`Stage::Communicate`](crate::Stage::Communicate).
    pub fn output(&mut self) -> Result<Output, Error> {
        self.capture().run()
    }

    /// Like [`Command::output`], with input, limits and a timeout.
    pub fn capture(&self) -> Capture<'_> {
        Capture::new(self)
    }
}
