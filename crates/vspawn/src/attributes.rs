//! Requests for attributes of the child: session, limits, scheduling, user, signals, cgroup.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use crate::command::Command;
use crate::request::{Identity, Limit};
use crate::sys::{SignalSet, signal_bit};

impl Command {
    /// Sets the child's file mode creation mask.
    ///
    /// ```
    /// assert_eq!(vspawn::Command::new("sh").args(["-c", "umask"]).umask(0o77).output()?.stdout, b"0077\n");
    /// # Ok::<(), vspawn::Error>(())
    /// ```
    pub fn umask(&mut self, mask: u32) -> &mut Command {
        self.attributes.umask = Some(mask);
        self
    }

    /// Puts the child into a process group; 0 creates a group whose id is the child's pid.
    ///
    /// ```
    /// let mut child = vspawn::Command::new("sleep").arg("60").process_group(0).spawn()?;
    /// child.signal_group(libc::SIGTERM)?; // the child and whatever it has started
    /// assert!(!child.wait()?.success());
    /// # Ok::<(), vspawn::Error>(())
    /// ```
    pub fn process_group(&mut self, group: i32) -> &mut Command {
        self.attributes.process_group = Some(group);
        self
    }

    /// Starts a session (`setsid`), and with it a process group.
    ///
    /// ```
    /// // The sixth field of /proc/PID/stat is the session.
    /// let mut command = vspawn::Command::new("sh");
    /// command.args(["-c", "read -r _ _ _ _ _ session _ < /proc/$$/stat && test $session = $$"]).new_session(true);
    /// assert!(command.status()?.success());
    /// # Ok::<(), vspawn::Error>(())
    /// ```
    pub fn new_session(&mut self, new_session: bool) -> &mut Command {
        self.attributes.new_session = new_session;
        self
    }

    /// Starts a session with the parent's descriptor `terminal` as its controlling terminal.
    ///
    /// ```
    /// use std::os::fd::AsRawFd;
    /// use vspawn::pty::{Pty, Size};
    ///
    /// // `Pty::spawn` does this, and gives the child its streams.
    /// let pty = Pty::open(Size::new(24, 80))?;
    /// let terminal = pty.terminal()?;
    /// let mut command = vspawn::Command::new("sh");
    /// command.args(["-c", ": < /dev/tty"]).controlling_terminal(terminal.as_raw_fd());
    /// assert!(command.status()?.success());
    /// # Ok::<(), vspawn::Error>(())
    /// ```
    pub fn controlling_terminal(&mut self, terminal: i32) -> &mut Command {
        self.attributes.controlling_terminal = Some(terminal);
        self.new_session(true)
    }

    /// Sets a resource limit (`libc::RLIMIT_*`) to soft and hard values; `libc::RLIM_INFINITY`
    /// removes it.
    ///
    /// ```
    /// let mut command = vspawn::Command::new("sh");
    /// command.args(["-c", "ulimit -n"]).resource_limit(libc::RLIMIT_NOFILE, 64, 64);
    /// assert_eq!(command.output()?.stdout, b"64\n");
    /// # Ok::<(), vspawn::Error>(())
    /// ```
    pub fn resource_limit(&mut self, resource: u32, soft: u64, hard: u64) -> &mut Command {
        let values = [soft, hard];
        self.attributes.limits.push(Limit { resource, values });
        self
    }

    /// Adds `increment` to the child's niceness.
    ///
    /// ```
    /// assert!(vspawn::Command::new("true").nice(5).status()?.success());
    /// # Ok::<(), vspawn::Error>(())
    /// ```
    pub fn nice(&mut self, increment: i32) -> &mut Command {
        self.attributes.nice = Some(increment);
        self
    }

    /// Sets the scheduling policy (`libc::SCHED_*`) and its priority: 0, or 1 to 99 for SCHED_FIFO
    /// and SCHED_RR.
    ///
    /// ```
    /// let mut command = vspawn::Command::new("true");
    /// assert!(command.scheduler(libc::SCHED_BATCH, 0).status()?.success());
    /// # Ok::<(), vspawn::Error>(())
    /// ```
    pub fn scheduler(&mut self, policy: i32, priority: i32) -> &mut Command {
        self.attributes.scheduler = Some((policy, priority));
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
        self.attributes.affinity = vec![0];
        for cpu in cpus {
            if cpu >= MAX_CPUS {
                self.mistake.get_or_insert(format!("use CPU {cpu}, which does not exist"));
                continue;
            }
            if self.attributes.affinity.len() <= cpu / 64 {
                self.attributes.affinity.resize(cpu / 64 + 1, 0);
            }
            self.attributes.affinity[cpu / 64] |= 1 << (cpu % 64);
        }
        self
    }

    /// Prevents the child and its descendants from gaining privileges by an exec
    /// (`PR_SET_NO_NEW_PRIVS`): set-user-id bits and file capabilities have no effect for them.
    ///
    /// ```
    /// let mut command = vspawn::Command::new("grep");
    /// command.args(["-q", "NoNewPrivs:.1", "/proc/self/status"]).no_new_privileges(true);
    /// assert!(command.status()?.success());
    /// # Ok::<(), vspawn::Error>(())
    /// ```
    pub fn no_new_privileges(&mut self, enable: bool) -> &mut Command {
        self.attributes.no_new_privileges = enable;
        self
    }

    /// Sets the effective user and group id to the real ones, like POSIX_SPAWN_RESETIDS. This is
    /// useful in set-user-id programs.
    ///
    /// ```
    /// assert!(vspawn::Command::new("true").reset_ids().status()?.success());
    /// # Ok::<(), vspawn::Error>(())
    /// ```
    pub fn reset_ids(&mut self) -> &mut Command {
        self.identity().reset = true;
        self
    }

    fn identity(&mut self) -> &mut Identity {
        self.attributes.identity.get_or_insert_default()
    }

    /// Sets the real, effective and saved user id. If the parent runs as root (real user id 0), the
    /// child also drops all supplementary groups, unless [`Command::groups`] sets them.
    ///
    /// While any child that changes its user has not yet called exec, the parent's dumpable flag
    /// may be off. It is restored afterwards.
    ///
    /// ```no_run
    /// // Starts a worker without privileges. Needs CAP_SETUID and CAP_SETGID.
    /// vspawn::Command::new("worker").uid(65534).gid(65534).groups(&[]).status()?;
    /// # Ok::<(), vspawn::Error>(())
    /// ```
    pub fn uid(&mut self, uid: u32) -> &mut Command {
        self.identity().uid = Some(uid);
        self
    }

    /// Sets the real, effective and saved group id.
    ///
    /// ```no_run
    /// vspawn::Command::new("worker").gid(65534).status()?; // needs CAP_SETGID
    /// # Ok::<(), vspawn::Error>(())
    /// ```
    pub fn gid(&mut self, gid: u32) -> &mut Command {
        self.identity().gid = Some(gid);
        self
    }

    /// Sets the supplementary groups.
    ///
    /// ```no_run
    /// vspawn::Command::new("worker").groups(&[4, 27]).status()?; // needs CAP_SETGID
    /// # Ok::<(), vspawn::Error>(())
    /// ```
    pub fn groups(&mut self, groups: &[u32]) -> &mut Command {
        self.identity().groups = Some(groups.to_vec());
        self
    }

    /// Blocks these signals in the child, and unblocks all others.
    ///
    /// ```
    /// let mut command = vspawn::Command::new("sh");
    /// command.args(["-c", "kill -TERM $$; exit 5"]).blocked_signals(&[libc::SIGTERM]);
    /// assert_eq!(command.status()?.code(), Some(5));
    /// # Ok::<(), vspawn::Error>(())
    /// ```
    pub fn blocked_signals(&mut self, signals: &[i32]) -> &mut Command {
        self.attributes.signal_mask = Some(self.signal_set(signals));
        self
    }

    /// Leaves the blocked signals as they are in the thread that starts the child, like C's
    /// `posix_spawn`.
    ///
    /// ```
    /// use std::os::unix::process::ExitStatusExt;
    ///
    /// let mut command = vspawn::Command::new("sh");
    /// command.args(["-c", "kill -TERM $$"]).inherit_signal_mask(); // this thread does not block it
    /// assert_eq!(command.status()?.signal(), Some(libc::SIGTERM));
    /// # Ok::<(), vspawn::Error>(())
    /// ```
    pub fn inherit_signal_mask(&mut self) -> &mut Command {
        self.attributes.signal_mask = None;
        self
    }

    /// Resets these signals to their default effect, even if the parent ignores them. SIGPIPE is
    /// reset in any case, unless it is in [`Command::ignored_signals`] or
    /// [`Command::inherit_sigpipe`] is called.
    ///
    /// ```
    /// use std::os::unix::process::ExitStatusExt;
    ///
    /// let mut command = vspawn::Command::new("sh");
    /// command.args(["-c", "kill -INT $$"]).default_signals(&[libc::SIGINT]);
    /// assert_eq!(command.status()?.signal(), Some(libc::SIGINT));
    /// # Ok::<(), vspawn::Error>(())
    /// ```
    pub fn default_signals(&mut self, signals: &[i32]) -> &mut Command {
        let set = self.signal_set(signals);
        self.attributes.default_signals |= set;
        self.attributes.ignored_signals &= !set;
        self
    }

    /// Ignores these signals in the child.
    ///
    /// ```
    /// let mut command = vspawn::Command::new("sh");
    /// command.args(["-c", "kill -HUP $$; exit 5"]).ignored_signals(&[libc::SIGHUP]); // as `nohup`
    /// assert_eq!(command.status()?.code(), Some(5));
    /// # Ok::<(), vspawn::Error>(())
    /// ```
    pub fn ignored_signals(&mut self, signals: &[i32]) -> &mut Command {
        let set = self.signal_set(signals);
        self.attributes.ignored_signals |= set;
        self.attributes.default_signals &= !set;
        self
    }

    /// Leaves SIGPIPE as it is in the parent, like C's `posix_spawn`.
    ///
    /// ```
    /// // Rust programs ignore SIGPIPE, and so does this child.
    /// let mut command = vspawn::Command::new("sh");
    /// command.args(["-c", "kill -PIPE $$; exit 5"]).inherit_sigpipe();
    /// assert_eq!(command.status()?.code(), Some(5));
    /// # Ok::<(), vspawn::Error>(())
    /// ```
    pub fn inherit_sigpipe(&mut self) -> &mut Command {
        self.attributes.default_signals &= !signal_bit(libc::SIGPIPE);
        self
    }

    fn signal_set(&mut self, signals: &[i32]) -> SignalSet {
        let (valid, invalid): (Vec<i32>, Vec<i32>) = signals.iter().partition(|signal| (1..=64).contains(*signal));
        if let Some(signal) = invalid.first() {
            self.mistake.get_or_insert(format!("set signal {signal}, which does not exist"));
        }
        valid.into_iter().fold(0, |set, signal| set | signal_bit(signal))
    }

    /// Creates the child in a cgroup (v2). `directory` is the cgroup's open directory. Needs Linux
    /// 5.7 and clone3.
    ///
    /// ```no_run
    /// let cgroup = std::fs::File::open("/sys/fs/cgroup/workers").unwrap();
    /// vspawn::Command::new("worker").cgroup(cgroup).spawn()?;
    /// # Ok::<(), vspawn::Error>(())
    /// ```
    pub fn cgroup(&mut self, directory: impl Into<OwnedFd>) -> &mut Command {
        self.attributes.cgroup = Some(Arc::new(directory.into()));
        self
    }

    /// Decides whether the child gets a pidfd (the default). Without one, a launch takes two system
    /// calls less, [`Child::wait_timeout`] polls every 5 ms, and the pid identifies the child, as
    /// it does with std: other code must not wait for it.
    ///
    /// ```
    /// let mut child = vspawn::Command::new("true").with_pidfd(false).spawn()?;
    /// assert!(child.pidfd().is_none());
    /// assert!(child.wait()?.success());
    /// # Ok::<(), vspawn::Error>(())
    /// ```
    ///
    /// [`Child::wait_timeout`]: crate::Child::wait_timeout
    pub fn with_pidfd(&mut self, enable: bool) -> &mut Command {
        self.attributes.without_pidfd = !enable;
        self
    }

    /// Sets the signal that the child gets when the *thread* that spawned it ends.
    ///
    /// ```
    /// // The kernel kills the child when the thread that started it ends, whatever the reason.
    /// let mut child = vspawn::Command::new("sleep").arg("60").parent_death_signal(libc::SIGKILL).spawn()?;
    /// child.kill()?;
    /// child.wait()?;
    /// # Ok::<(), vspawn::Error>(())
    /// ```
    pub fn parent_death_signal(&mut self, signal: i32) -> &mut Command {
        self.attributes.parent_death_signal = Some(signal);
        self
    }
}
