//! The command handle, with one function for each property of the process to start. `start` has the
//! functions that start it.

use std::ffi::{c_char, c_int};
use std::os::fd::{BorrowedFd, OwnedFd};

use libc::{gid_t, mode_t, pid_t, rlim_t, sigset_t, uid_t};
use vspawn_core::{Mechanism, Stdio};

use crate::call_memory;
use crate::entry::{entry, entry_or};
use crate::failure::{Failure, Stage};
use crate::out_of_memory;
use crate::pointers::{array, free, null, signals, string, string_array};

/// A process to start. Used by one thread at a time.
// The number is the sum of the bytes that the caller has passed.
pub struct Command(pub(crate) vspawn_core::Command, usize);

impl Command {
    /// Reserves the memory to start the command: for its strings, and for a copy of the caller's
    /// environment if one is made.
    pub(crate) fn reserve_start(&self, copies_environment: bool) -> Result<(), Failure> {
        out_of_memory::reserve(self.1)?;
        out_of_memory::reserve_environment(copies_environment)
    }

    /// Returns whether a start copies the caller's variables, because the command changes some.
    /// Otherwise, the kernel reads them directly.
    pub(crate) fn changes_environment(&self) -> bool {
        self.0.get_envs().len() > 0 && !self.0.get_env_clear()
    }
}

/// The kinds of a child's standard stream.
#[repr(C)]
#[derive(Clone, Copy)]
pub enum StdioKind {
    /// The parent's own stream.
    Inherit = 0,
    /// /dev/null.
    Null = 1,
    /// A new pipe, whose other end vspawn_child_take_stdin and the similar functions return.
    Piped = 2,
    /// A descriptor of the parent.
    Fd = 3,
    /// The same file as the child's standard output, like 2>&1.
    Stdout = 4,
}

/// How the child is created.
#[repr(C)]
#[derive(Clone, Copy)]
pub enum MechanismKind {
    /// The child shares the parent's memory until its exec.
    Share = 0,
    /// The child gets a copy of the parent's page tables. Only used if requested.
    Fork = 1,
}

pub(crate) fn stdio(kind: c_int, fd: c_int) -> Result<Stdio, Failure> {
    match kind {
        kind if kind == StdioKind::Inherit as c_int => Ok(Stdio::inherit()),
        kind if kind == StdioKind::Null as c_int => Ok(Stdio::null()),
        kind if kind == StdioKind::Piped as c_int => Ok(Stdio::piped()),
        kind if kind == StdioKind::Fd as c_int => Ok(Stdio::number(fd)),
        kind if kind == StdioKind::Stdout as c_int => Ok(Stdio::stdout()),
        _ => Err(Failure::invalid(&format!("make a standard stream of kind {kind}"))),
    }
}

pub(crate) fn set_stream(
    command: &mut vspawn_core::Command,
    stream: c_int,
    stdio: Stdio,
) -> Result<&mut vspawn_core::Command, Failure> {
    match stream {
        0 => Ok(command.stdin(stdio)),
        1 => Ok(command.stdout(stdio)),
        2 => Ok(command.stderr(stdio)),
        _ => Err(Failure::invalid(&format!("use descriptor {stream} as a standard stream"))),
    }
}

/// # Safety
/// `command` is NULL or a live handle that no other thread uses.
pub(crate) unsafe fn with_command(
    command: *mut Command,
    change: impl FnOnce(&mut vspawn_core::Command) -> Result<&mut vspawn_core::Command, Failure>,
) -> c_int {
    entry(|| {
        // SAFETY: the caller's promise.
        let command = unsafe { command.as_mut() }.ok_or_else(|| null("command"))?;
        out_of_memory::reserve(0)?;
        change(&mut command.0)?;
        command.1 += call_memory::bytes() + out_of_memory::STRING_OVERHEAD_BYTES;
        Ok(())
    })
}

/// Calls `with_command` with an expression that changes the command and returns it.
macro_rules! change {
    ($command:ident, $changed:expr) => {
        // SAFETY: a handle or NULL. The strings, arrays and signal sets are as documented, or NULL.
        unsafe { $crate::command::with_command($command, |$command| $changed) }
    };
}
pub(crate) use change;

/// Creates a command whose child inherits environment, directory and standard streams. As with
/// posix_spawn, no other thread may change the environment while the command is spawned. By
/// default, no signal is blocked in the child, and SIGPIPE has its default effect there.
///
/// program: copied; a path, or a name that is looked up in PATH as by execvp. Returns a handle that
/// the caller owns and passes to vspawn_command_free; NULL with errno on failure.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vspawn_command_new(program: *const c_char) -> *mut Command {
    entry_or(std::ptr::null_mut(), || {
        // SAFETY: the caller passes a string or NULL.
        let program = unsafe { string(program, "program") }?;
        let mut command = vspawn_core::Command::new(program);
        // SAFETY: as with `posix_spawn`, the caller changes no variable during a spawn (vspawn.h).
        unsafe { command.env_unlocked() };
        Ok(Box::into_raw(Box::new(Command(command, call_memory::bytes()))))
    })
}

/// Frees a command. Its children, and commands prepared from it, stay valid.
///
/// command: consumed; NULL does nothing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vspawn_command_free(command: *mut Command) {
    // SAFETY: a handle that the caller gives up, or NULL.
    unsafe { free(command) };
}

/// Adds an argument. arg: copied.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vspawn_command_arg(command: *mut Command, arg: *const c_char) -> c_int {
    change!(command, string(arg, "arg").map(|arg| command.arg(arg)))
}

/// Adds arguments. args: an array ended by NULL, copied with its strings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vspawn_command_args(command: *mut Command, args: *const *const c_char) -> c_int {
    change!(command, string_array(args, "args").map(|args| command.args(args)))
}

/// Sets argv[0]; the default is the program as given. name: copied.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vspawn_command_arg0(command: *mut Command, name: *const c_char) -> c_int {
    change!(command, string(name, "name").map(|name| command.arg0(name)))
}

/// Sets or removes a variable of the child's environment. key: copied. value: copied; NULL removes
/// the variable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vspawn_command_env(command: *mut Command, key: *const c_char, value: *const c_char) -> c_int {
    change!(command, {
        let key = string(key, "key")?;
        Ok(match value.is_null() {
            true => command.env_remove(key),
            false => command.env(key, string(value, "value")?),
        })
    })
}

/// Clears the environment: the child inherits no variable, and variables set before are removed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vspawn_command_env_clear(command: *mut Command) -> c_int {
    change!(command, Ok(command.env_clear()))
}

/// Sets the child's working directory, entered after chroot and with the rights of the child's
/// user. directory: copied.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vspawn_command_cwd(command: *mut Command, directory: *const c_char) -> c_int {
    change!(command, string(directory, "directory").map(|path| command.current_dir(path)))
}

/// Sets the child's root directory. Programs and directories are then looked up in it. directory:
/// copied.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vspawn_command_chroot(command: *mut Command, directory: *const c_char) -> c_int {
    change!(command, string(directory, "directory").map(|path| command.chroot(path)))
}

/// Sets a standard stream of the child.
///
/// stream: 0, 1 or 2. kind: an enum vspawn_stdio. fd: only used by VSPAWN_STDIO_FD; borrowed, and
/// must be open whenever the command is spawned.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vspawn_command_stdio(command: *mut Command, stream: c_int, kind: c_int, fd: c_int) -> c_int {
    change!(command, set_stream(command, stream, stdio(kind, fd)?))
}

/// Gives the child the parent's descriptor source as its own descriptor target. Calls may swap
/// descriptors: the source of one may be the target of another.
///
/// source: borrowed, and must be open whenever the command is spawned.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vspawn_command_fd(command: *mut Command, target: c_int, source: c_int) -> c_int {
    change!(command, Ok(command.fd_number(target, source)))
}

/// Closes, in the child, all descriptors except the standard streams and those of
/// vspawn_command_fd, unless close is 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vspawn_command_close_others(command: *mut Command, close: c_int) -> c_int {
    change!(command, Ok(command.close_others(close != 0)))
}

/// Sets the child's file mode creation mask.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vspawn_command_umask(command: *mut Command, mask: mode_t) -> c_int {
    change!(command, Ok(command.umask(mask)))
}

/// Puts the child into a process group; 0 creates a group whose id is the child's pid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vspawn_command_process_group(command: *mut Command, group: pid_t) -> c_int {
    change!(command, Ok(command.process_group(group)))
}

/// Starts a session, and with it a process group, unless begin is 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vspawn_command_new_session(command: *mut Command, begin: c_int) -> c_int {
    change!(command, Ok(command.new_session(begin != 0)))
}

/// Starts a session with a descriptor of the parent as its controlling terminal.
///
/// terminal: borrowed, and must be open whenever the command is spawned.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vspawn_command_controlling_terminal(command: *mut Command, terminal: c_int) -> c_int {
    change!(command, Ok(command.controlling_terminal(terminal)))
}

/// Sets the real, effective and saved user id. If the parent runs as root, the child also drops all
/// supplementary groups, unless vspawn_command_groups sets them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vspawn_command_uid(command: *mut Command, uid: uid_t) -> c_int {
    change!(command, Ok(command.uid(uid)))
}

/// Sets the real, effective and saved group id.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vspawn_command_gid(command: *mut Command, gid: gid_t) -> c_int {
    change!(command, Ok(command.gid(gid)))
}

/// Sets the supplementary groups. groups: count ids, copied; may be NULL if count is 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vspawn_command_groups(command: *mut Command, groups: *const gid_t, count: usize) -> c_int {
    change!(command, {
        out_of_memory::reserve(count.saturating_mul(size_of::<gid_t>()))?;
        array(groups, count, "groups").map(|groups| command.groups(groups))
    })
}

/// Sets a resource limit (RLIMIT_*) to soft and hard values.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vspawn_command_resource_limit(
    command: *mut Command,
    resource: c_int,
    soft: rlim_t,
    hard: rlim_t,
) -> c_int {
    change!(command, Ok(command.resource_limit(resource as u32, soft, hard)))
}

/// Adds increment to the child's niceness.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vspawn_command_nice(command: *mut Command, increment: c_int) -> c_int {
    change!(command, Ok(command.nice(increment)))
}

/// Blocks these signals in the child, and unblocks all others. set: copied.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vspawn_command_blocked_signals(command: *mut Command, set: *const sigset_t) -> c_int {
    change!(command, signals(set).map(|set| command.blocked_signals(&set)))
}

/// Resets these signals to their default effect in the child, even if the parent ignores them. set:
/// copied.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vspawn_command_default_signals(command: *mut Command, set: *const sigset_t) -> c_int {
    change!(command, signals(set).map(|set| command.default_signals(&set)))
}

/// Ignores these signals in the child. set: copied.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vspawn_command_ignored_signals(command: *mut Command, set: *const sigset_t) -> c_int {
    change!(command, signals(set).map(|set| command.ignored_signals(&set)))
}

/// Leaves SIGPIPE as it is in the parent, as posix_spawn does.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vspawn_command_inherit_sigpipe(command: *mut Command) -> c_int {
    change!(command, Ok(command.inherit_sigpipe()))
}

/// Creates the child in a cgroup (v2). Needs Linux 5.7 and clone3.
///
/// directory: a descriptor of the cgroup's directory; duplicated, so the caller may close it at
/// once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vspawn_command_cgroup(command: *mut Command, directory: c_int) -> c_int {
    change!(command, duplicate(directory).map(|fd| command.cgroup(fd)))
}

fn duplicate(fd: c_int) -> Result<OwnedFd, Failure> {
    let action = format!("duplicate descriptor {fd}");
    if fd < 0 {
        return Err(Failure::new(Stage::Prepare, libc::EBADF, &action));
    }
    // SAFETY: not -1; borrowed for this call, during which the caller keeps it open.
    let duplicate = unsafe { BorrowedFd::borrow_raw(fd) }.try_clone_to_owned();
    duplicate.map_err(|error| Failure::new(Stage::Prepare, error.raw_os_error().unwrap_or(libc::EBADF), &action))
}

/// Sets the signal that the child gets when the thread that spawned it ends.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vspawn_command_parent_death_signal(command: *mut Command, signal: c_int) -> c_int {
    change!(command, Ok(command.parent_death_signal(signal)))
}

/// Sets how the child is created. mechanism: an enum vspawn_mechanism.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vspawn_command_mechanism(command: *mut Command, mechanism: c_int) -> c_int {
    change!(command, {
        let mechanism = match mechanism {
            kind if kind == MechanismKind::Share as c_int => Mechanism::Share,
            kind if kind == MechanismKind::Fork as c_int => Mechanism::Fork,
            _ => return Err(Failure::invalid(&format!("create a process by mechanism {mechanism}"))),
        };
        Ok(command.mechanism(mechanism))
    })
}
