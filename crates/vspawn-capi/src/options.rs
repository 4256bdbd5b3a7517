//! `vspawn`, which starts a process with one call, and its options.

use std::ffi::{c_char, c_int};

use libc::{mode_t, pid_t};
use vspawn_core::{Command, Mechanism};

use crate::child::{Child, start_child};
use crate::command::{set_stream, stdio};
use crate::failure::Failure;
use crate::out_of_memory;
use crate::pointers::{array, options, string, string_array};

/// Close all descriptors in the child except the standard streams and those in fds.
pub const FLAG_CLOSE_OTHERS: u64 = 1;
/// Start a session.
pub const FLAG_NEW_SESSION: u64 = 2;
/// Return at once, like vspawn_command_spawn_nowait.
pub const FLAG_NOWAIT: u64 = 4;
/// Use the field umask.
pub const FLAG_UMASK: u64 = 8;
/// Use the field process_group.
pub const FLAG_PROCESS_GROUP: u64 = 16;
/// Create the process by fork.
pub const FLAG_FORK: u64 = 32;
const ALL_FLAGS: u64 = 63;

/// A standard stream of a child. If all fields are zero, the child inherits the parent's.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Stream {
    /// An enum vspawn_stdio.
    pub kind: c_int,
    /// The parent's descriptor for VSPAWN_STDIO_FD; borrowed for the call.
    pub fd: c_int,
}

/// A descriptor that a child gets.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct FdPair {
    /// The descriptor's number in the child.
    pub target: c_int,
    /// The parent's descriptor; borrowed for the call.
    pub source: c_int,
}

/// The options of vspawn. If all fields except size are zero, the process is started as
/// vspawn_command_new describes. All pointers are borrowed for the call.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Options {
    /// Set to sizeof(struct vspawn_options) by the caller.
    pub size: usize,
    /// VSPAWN_FLAG_*, combined with |.
    pub flags: u64,
    /// The program; NULL: argv[0].
    pub program: *const c_char,
    /// The whole environment: "NAME=value" strings, ended by NULL. NULL: the parent's, which, as
    /// with posix_spawn, no other thread may change during the call.
    pub env: *const *const c_char,
    /// The working directory; NULL: the parent's.
    pub cwd: *const c_char,
    /// Standard input.
    pub input: Stream,
    /// Standard output.
    pub output: Stream,
    /// Standard error.
    pub error: Stream,
    /// Further descriptors; NULL if there are none.
    pub fds: *const FdPair,
    /// The number of further descriptors.
    pub fd_count: usize,
    /// The file mode creation mask. Used with VSPAWN_FLAG_UMASK.
    pub umask: mode_t,
    /// The process group; 0 creates one. Used with VSPAWN_FLAG_PROCESS_GROUP.
    pub process_group: pid_t,
    /// Must be 0.
    pub reserved: [u64; 4],
}

/// Starts a process.
///
/// argv: its arguments, ended by NULL; borrowed for the call. The first one is also the program
/// (searched for in PATH if it has no slash). options: borrowed for the call; NULL means all zero.
/// child: receives a handle that the caller owns and passes to vspawn_child_free; NULL on failure.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vspawn(argv: *const *const c_char, options: *const Options, child: *mut *mut Child) -> c_int {
    // SAFETY: the caller's pointers, as documented, or NULL.
    unsafe {
        start_child(child, || {
            if options.is_null() {
                return Ok(command_from_argv(std::ptr::null(), argv)?.spawn()?);
            }
            let options = read_options(options)?;
            let mut command = command_from_argv(options.program, argv)?;
            apply(&options, &mut command)?;
            Ok(match options.flags & FLAG_NOWAIT {
                0 => command.spawn()?,
                _ => {
                    out_of_memory::reserve_environment(options.env.is_null())?;
                    command.spawn_nowait()?
                }
            })
        })
    }
}

/// # Safety
/// NULL, or options that begin with their size.
unsafe fn read_options(caller_options: *const Options) -> Result<Options, Failure> {
    // SAFETY: the caller's promise; valid when all zero.
    let read = unsafe { options(caller_options) }?;
    if read.flags & !ALL_FLAGS != 0 || read.reserved != [0; 4] {
        return Err(Failure::invalid("use flags or reserved options that this version does not support"));
    }
    Ok(read)
}

/// # Safety
/// The pointers are as documented.
unsafe fn apply(options: &Options, command: &mut Command) -> Result<(), Failure> {
    // SAFETY: the caller's promise.
    unsafe {
        set_environment(options, command)?;
        if !options.cwd.is_null() {
            command.current_dir(string(options.cwd, "cwd")?);
        }
        out_of_memory::reserve(options.fd_count.saturating_mul(out_of_memory::STRING_OVERHEAD_BYTES))?;
        for pair in array(options.fds, options.fd_count, "fds")? {
            command.fd_number(pair.target, pair.source);
        }
    }
    for (number, stream) in (0..).zip([options.input, options.output, options.error]) {
        if stream.kind != 0 {
            set_stream(command, number, stdio(stream.kind, stream.fd)?)?;
        }
    }
    if options.has(FLAG_UMASK) {
        command.umask(options.umask);
    }
    if options.has(FLAG_PROCESS_GROUP) {
        command.process_group(options.process_group);
    }
    if options.has(FLAG_FORK) {
        command.mechanism(Mechanism::Fork);
    }
    command.close_others(options.has(FLAG_CLOSE_OTHERS));
    command.new_session(options.has(FLAG_NEW_SESSION));
    Ok(())
}

impl Options {
    fn has(&self, flag: u64) -> bool {
        self.flags & flag != 0
    }
}

/// # Safety
/// The pointers are as documented.
unsafe fn set_environment(options: &Options, command: &mut Command) -> Result<(), Failure> {
    if options.env.is_null() {
        return Ok(());
    }
    command.env_clear();
    // SAFETY: the caller's promise.
    for variable in unsafe { string_array(options.env, "env") }? {
        let bytes = variable.as_encoded_bytes();
        let Some(equals) = bytes.iter().position(|byte| *byte == b'=') else {
            return Err(Failure::invalid("pass a variable without ="));
        };
        let (name, value) = (&bytes[..equals], &bytes[equals + 1..]);
        command.env(os_str(name), os_str(value));
    }
    Ok(())
}

fn os_str(bytes: &[u8]) -> &std::ffi::OsStr {
    std::os::unix::ffi::OsStrExt::from_bytes(bytes)
}

/// Creates a command from its arguments. The first one is argv[0], and also the program if
/// `program` is NULL.
///
/// # Safety
/// `program` is NULL or a string, `argv` NULL or an array of strings ended by NULL.
pub(crate) unsafe fn command_from_argv(program: *const c_char, argv: *const *const c_char) -> Result<Command, Failure> {
    // SAFETY: the caller's promise.
    let argv = unsafe { string_array(argv, "argv") }?;
    let Some((name, args)) = argv.split_first() else { return Err(Failure::invalid("use an empty argv")) };
    let program = match program.is_null() {
        true => name,
        // SAFETY: the caller's promise.
        false => unsafe { string(program, "program") }?,
    };
    out_of_memory::reserve_environment(false)?;
    let mut command = Command::new(program);
    command.arg0(name).args(args);
    // SAFETY: as with `posix_spawn`, the caller changes no variable during a spawn (vspawn.h).
    unsafe { command.env_unlocked() };
    Ok(command)
}
