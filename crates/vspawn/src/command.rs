//! What to start and how: a builder in the shape of [`std::process::Command`], with what that one lacks.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::fd::{OwnedFd, RawFd};
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Output};
use std::sync::Arc;

use crate::capture::Capture;
use crate::error::Error;
use crate::launch::Start;
use crate::plan::{Hook, Identity, Limit};
use crate::prepared::Prepared;
use crate::process::Child;
use crate::stdio::{Source, Stdio};
use crate::sys::{SignalSet, signal_bit};

/// How the child is created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mechanism {
    /// It shares the parent's memory until its exec, whatever that memory's size.
    #[default]
    Share,
    /// It gets a copy of the parent's page tables, which for a large parent takes longer than all else.
    Fork,
}

/// A process to start. Nothing is checked before [`Command::prepare`] or a `spawn`.
#[derive(Clone)]
pub struct Command {
    pub(crate) program: OsString,
    pub(crate) args: Vec<OsString>,
    /// argv[0] if it is not the program.
    pub(crate) name: Option<OsString>,
    pub(crate) clear_env: bool,
    pub(crate) env_unlocked: bool,
    /// Changes to the inherited environment; `None` removes.
    pub(crate) env: BTreeMap<OsString, Option<OsString>>,
    pub(crate) cwd: Option<PathBuf>,
    pub(crate) chroot: Option<PathBuf>,
    pub(crate) fds: BTreeMap<i32, Source>,
    pub(crate) close_others: bool,
    pub(crate) umask: Option<u32>,
    pub(crate) new_session: bool,
    pub(crate) controlling_terminal: Option<i32>,
    pub(crate) process_group: Option<i32>,
    pub(crate) limits: Vec<Limit>,
    pub(crate) nice: Option<i32>,
    pub(crate) identity: Option<Identity>,
    pub(crate) signal_mask: SignalSet,
    pub(crate) default_signals: SignalSet,
    pub(crate) ignored_signals: SignalSet,
    pub(crate) cgroup: Option<Arc<OwnedFd>>,
    pub(crate) parent_death_signal: Option<i32>,
    pub(crate) pre_exec: Option<Hook>,
    pub(crate) mechanism: Mechanism,
    /// The first thing said that cannot be, told by `prepare`.
    pub(crate) mistake: Option<String>,
}

/// Program and arguments; not the environment, which may hold secrets.
impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.program)?;
        self.args.iter().try_for_each(|arg| write!(f, " {arg:?}"))
    }
}

impl Command {
    /// A command for a program: a path, or a name that is searched for in PATH as execvp does. It inherits
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
            umask: None,
            new_session: false,
            controlling_terminal: None,
            process_group: None,
            limits: Vec::new(),
            nice: None,
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

    /// Sets argv[0], which is otherwise the program as given.
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

    /// Inherits no variable.
    pub fn env_clear(&mut self) -> &mut Command {
        self.clear_env = true;
        self.env.clear();
        self
    }

    /// Takes the inherited variables from C's `environ` as it is, without the lock that std holds over it and without std's
    /// copies: half of what [`Command::prepare`] takes. Without effect on a command that sets or removes variables.
    ///
    /// # Safety
    /// Nobody may change the environment while the command is prepared: for an interpreter whose own lock sees to that.
    pub unsafe fn env_unlocked(&mut self) -> &mut Command {
        self.env_unlocked = true;
        self
    }

    /// The child's working directory, entered after `chroot` and with the rights of the child's user.
    pub fn current_dir(&mut self, directory: impl AsRef<Path>) -> &mut Command {
        self.cwd = Some(directory.as_ref().to_owned());
        self
    }

    /// The child's root directory. Programs and directories are then looked up in it; without a
    /// [`Command::current_dir`] it starts at its root.
    pub fn chroot(&mut self, directory: impl AsRef<Path>) -> &mut Command {
        self.chroot = Some(directory.as_ref().to_owned());
        self
    }

    /// The child's standard input.
    pub fn stdin(&mut self, stdin: impl Into<Stdio>) -> &mut Command {
        self.place(0, stdin.into().0)
    }

    /// The child's standard output.
    pub fn stdout(&mut self, stdout: impl Into<Stdio>) -> &mut Command {
        self.place(1, stdout.into().0)
    }

    /// The child's standard error.
    pub fn stderr(&mut self, stderr: impl Into<Stdio>) -> &mut Command {
        self.place(2, stderr.into().0)
    }

    /// Gives the child a file at a descriptor of its own numbering. Sources may be each other's targets.
    pub fn fd(&mut self, target: i32, file: impl Into<OwnedFd>) -> &mut Command {
        self.place(target, Source::Fd(Arc::new(file.into())))
    }

    /// Lets the child keep what the parent has at this number, close-on-exec or not, also with
    /// [`Command::close_others`]. As with [`Stdio::number`], it is not kept open.
    pub fn keep(&mut self, number: RawFd) -> &mut Command {
        self.place(number, Source::Number(number))
    }

    /// As [`Command::fd`], for the parent's descriptor of a number that stays somebody else's (see [`Stdio::number`]).
    pub fn fd_number(&mut self, target: i32, source: i32) -> &mut Command {
        self.place(target, Source::Number(source))
    }

    pub(crate) fn place(&mut self, target: i32, source: Source) -> &mut Command {
        self.fds.insert(target, source);
        self
    }

    /// Closes, in the child, all descriptors but the standard streams and those given with [`Command::fd`]. Without it
    /// the child inherits whatever is not marked close-on-exec, as with std. With it, and unless a given file has a high
    /// number, the spawn does not take longer the more files the parent has open.
    pub fn close_others(&mut self, close: bool) -> &mut Command {
        self.close_others = close;
        self
    }

    /// The child's file mode creation mask.
    pub fn umask(&mut self, mask: u32) -> &mut Command {
        self.umask = Some(mask);
        self
    }

    /// Puts the child into a process group; 0 begins one with the child's pid.
    pub fn process_group(&mut self, group: i32) -> &mut Command {
        self.process_group = Some(group);
        self
    }

    /// Begins a session (`setsid`), and with it a process group.
    pub fn new_session(&mut self, begin: bool) -> &mut Command {
        self.new_session = begin;
        self
    }

    /// Begins a session whose controlling terminal is the parent's descriptor `terminal`.
    pub fn controlling_terminal(&mut self, terminal: i32) -> &mut Command {
        self.controlling_terminal = Some(terminal);
        self.new_session(true)
    }

    /// Sets a resource limit (`libc::RLIMIT_*`) to soft and hard values; `libc::RLIM_INFINITY` is none.
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

    fn identity(&mut self) -> &mut Identity {
        self.identity.get_or_insert_default()
    }

    /// Real, effective and saved user id. A parent with user id 0 also gives up its supplementary groups, unless
    /// [`Command::groups`] says otherwise.
    ///
    /// While such a child has not called exec, the parent's dumpable flag may be off: it is put back. Spawns that change
    /// the user wait for each other.
    pub fn uid(&mut self, uid: u32) -> &mut Command {
        self.identity().uid = Some(uid);
        self
    }

    /// Real, effective and saved group id.
    pub fn gid(&mut self, gid: u32) -> &mut Command {
        self.identity().gid = Some(gid);
        self
    }

    /// Supplementary groups.
    pub fn groups(&mut self, groups: &[u32]) -> &mut Command {
        self.identity().groups = Some(groups.to_vec());
        self
    }

    /// Blocks these signals in the child; all others are not blocked.
    pub fn blocked_signals(&mut self, signals: &[i32]) -> &mut Command {
        self.signal_mask = self.signal_set(signals);
        self
    }

    /// Signals that have their default effect even if the parent ignores them. SIGPIPE always, unless it is among
    /// [`Command::ignored_signals`].
    pub fn default_signals(&mut self, signals: &[i32]) -> &mut Command {
        let set = self.signal_set(signals);
        self.default_signals |= set;
        self.ignored_signals &= !set;
        self
    }

    /// Signals that the child ignores.
    pub fn ignored_signals(&mut self, signals: &[i32]) -> &mut Command {
        let set = self.signal_set(signals);
        self.ignored_signals |= set;
        self.default_signals &= !set;
        self
    }

    /// Leaves SIGPIPE as the parent has it, like the `posix_spawn` of C.
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

    /// The cgroup (v2) that the child is born into, by its open directory. Needs clone3 (Linux 5.7).
    pub fn cgroup(&mut self, directory: impl Into<OwnedFd>) -> &mut Command {
        self.cgroup = Some(Arc::new(directory.into()));
        self
    }

    /// The signal that the child gets when the *thread* that spawned it ends.
    pub fn parent_death_signal(&mut self, signal: i32) -> &mut Command {
        self.parent_death_signal = Some(signal);
        self
    }

    /// How the child is created. `Mechanism::Fork` is only ever used when it is asked for here.
    pub fn mechanism(&mut self, mechanism: Mechanism) -> &mut Command {
        self.mechanism = mechanism;
        self
    }

    /// Runs a function in the child just before its exec. It can only run in memory of its own, so that this also needs
    /// [`Mechanism::Fork`]; `prepare` says so otherwise. It returns an errno to give up.
    ///
    /// # Safety
    /// As for [`std::os::unix::process::CommandExt::pre_exec`]: other threads may have held locks (the allocator's, for
    /// one) that nobody in the child will ever release.
    pub unsafe fn pre_exec(&mut self, function: impl Fn() -> Result<(), i32> + Send + Sync + 'static) -> &mut Command {
        self.pre_exec = Some(Arc::new(function));
        self
    }

    /// Makes everything ready, so that each [`Prepared::spawn`] allocates nothing. Environment, PATH and descriptors are
    /// taken as they are now.
    ///
    /// # Errors
    /// [`Stage::Prepare`](crate::Stage::Prepare) with `EINVAL`: a NUL byte, an empty program, a request that needs
    /// another one.
    pub fn prepare(&self) -> Result<Prepared, Error> {
        Prepared::new(self)
    }

    /// Starts it. The parent goes on after the exec.
    ///
    /// # Errors
    /// The step that failed, with its errno; no process is left.
    pub fn spawn(&mut self) -> Result<Child, Error> {
        self.prepare()?.start(Start::Waited)
    }

    /// Starts it and goes on at once: see [`Prepared::spawn_nowait`].
    ///
    /// # Errors
    /// As there.
    pub fn spawn_nowait(&mut self) -> Result<Child, Error> {
        self.prepare()?.spawn_nowait()
    }

    /// Starts it and waits for its end.
    ///
    /// # Errors
    /// As [`Command::spawn`] and [`Child::wait`].
    pub fn status(&mut self) -> Result<ExitStatus, Error> {
        self.spawn()?.wait()
    }

    /// Starts it, reads its standard output and error to their ends, and waits for it. As with std, these are piped and
    /// its standard input is empty, unless something else was said. For input, limits or a timeout see
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
