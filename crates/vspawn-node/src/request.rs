//! Converts the object that `lib/options.js` builds to a command.

use std::fs::File;
use std::io;

use napi_derive::napi;
use vspawn::Command;

/// What to start. Its fields are those of `SpawnOptions` in index.d.ts, in the types of Rust.
#[napi(object, object_to_js = false)]
pub struct Request {
    pub file: String,
    pub args: Vec<String>,
    pub argv0: Option<String>,
    /// Whether `file` and `args` are `/bin/sh -c TEXT`, and the program of a simple text may be
    /// started without the shell.
    pub is_shell: bool,
    /// Names and values in turn. Without them, the child inherits the process's environment.
    pub env: Option<Vec<String>>,
    pub cwd: Option<String>,
    /// For each descriptor of the child: the parent's number, or a constant of `start`.
    pub stdio: Vec<i32>,
    pub detached: bool,
    pub uid: Option<u32>,
    pub gid: Option<u32>,
    pub groups: Option<Vec<u32>>,
    pub umask: Option<u32>,
    pub process_group: Option<i32>,
    /// Each: the number of the resource, the soft and the hard limit.
    pub rlimits: Vec<Vec<f64>>,
    pub nice: Option<i32>,
    pub cpus: Option<Vec<u32>>,
    pub cgroup: Option<String>,
    pub pdeathsig: Option<i32>,
    pub chroot: Option<String>,
    pub no_new_privs: bool,
    /// The rows and columns of a pseudo-terminal.
    pub pty: Option<Vec<u16>>,
}

impl Request {
    /// Returns a command without its streams, for a program and its arguments.
    pub(crate) fn command(&self, file: &str, args: &[String]) -> io::Result<Command> {
        let mut command = Command::new(file);
        command.args(args).new_session(self.detached).no_new_privileges(self.no_new_privs);
        match &self.env {
            Some(env) => command.env_clear().envs(env.chunks_exact(2).map(|pair| (&pair[0], &pair[1]))),
            // SAFETY: only Node's main thread asks for this, and it is the one that changes the
            // environment. (A worker with SHARE_ENV could, too; Node's own calls of libc read the
            // environment at the same time then. No Rust code changes it, so std's lock does not
            // help.)
            None => unsafe { command.env_unlocked() },
        };
        // When Node starts, it ignores SIGPIPE, which the core restores, and this signal.
        command.default_signals(&[SIGXFSZ]);
        self.argv0.as_ref().map(|name| command.arg0(name));
        self.cwd.as_ref().map(|directory| command.current_dir(directory));
        self.uid.map(|uid| command.uid(uid));
        self.gid.map(|gid| command.gid(gid));
        self.groups.as_ref().map(|groups| command.groups(groups));
        self.umask.map(|mask| command.umask(mask));
        self.process_group.map(|group| command.process_group(group));
        self.nice.map(|increment| command.nice(increment));
        self.cpus.as_ref().map(|cpus| command.affinity(cpus.iter().map(|cpu| *cpu as usize)));
        self.pdeathsig.map(|signal| command.parent_death_signal(signal));
        self.chroot.as_ref().map(|directory| command.chroot(directory));
        for limit in &self.rlimits {
            // Infinity becomes the largest number, which is RLIM_INFINITY.
            command.resource_limit(limit[0] as u32, limit[1] as u64, limit[2] as u64);
        }
        if let Some(cgroup) = &self.cgroup {
            command.cgroup(File::open(cgroup)?);
        }
        Ok(command)
    }
}

const SIGXFSZ: i32 = rustix::process::Signal::XFSZ.as_raw();
