//! Runs a command and captures its output.

use std::ffi::{c_int, c_uchar, c_void};
use std::os::unix::process::ExitStatusExt;
use std::time::Duration;

use crate::command::Command;
use crate::entry::{entry, entry_or};
use crate::failure::{Failure, Stage};
use crate::pointers::{array, borrow, free, options, out_handle};

/// The options of vspawn_command_output. If all fields except size are zero, there is no input, no
/// limit and no timeout.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct CaptureOptions {
    /// Set to sizeof(struct vspawn_capture_options) by the caller.
    pub size: usize,
    /// Bytes for the child's standard input, which is closed after them; borrowed for the call.
    /// NULL: the standard input is empty, unless the command sets it.
    pub input: *const c_void,
    /// The number of bytes in input.
    pub input_length: usize,
    /// The limit on standard output, and on standard error, in bytes. A child that writes more is
    /// killed. 0: no limit.
    pub limit: usize,
    /// The timeout in milliseconds, after which the child is killed. 0: no timeout.
    pub timeout_ms: u32,
    /// Must be 0.
    pub reserved: [u32; 5],
}

/// The output of a command. Immutable.
pub struct Output {
    status: c_int,
    /// Ends with a NUL that is not part of the output, as does `stderr`.
    stdout: Vec<u8>,
    stderr: Vec<u8>,
}

/// Runs a command, reads its output and error to their ends, and waits for it.
///
/// command: borrowed for the call. options: borrowed for the call; NULL means all zero. output:
/// receives a handle that the caller owns and passes to vspawn_output_free. If the child exceeds
/// the timeout (ETIMEDOUT) or the limit (EMSGSIZE), the handle contains what was read before the
/// child was killed. After any other failure, output is NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vspawn_command_output(
    command: *const Command,
    options: *const CaptureOptions,
    output: *mut *mut Output,
) -> c_int {
    entry(|| {
        // SAFETY: room for a pointer, or NULL.
        let target = unsafe { out_handle(output, "output") }?;
        // SAFETY: a handle or NULL; options that begin with their size, or NULL.
        let (command, options) = unsafe { (borrow(command, "command")?, read_options(options)?) };
        // SAFETY: the options' input has its length.
        let input = unsafe { array(options.input.cast::<u8>(), options.input_length, "input") }?;
        command.reserve_start(command.changes_environment())?;
        let mut capture = command.0.capture();
        if !options.input.is_null() {
            capture = capture.input(input);
        }
        if options.limit != 0 {
            capture = capture.limit(options.limit);
        }
        if options.timeout_ms != 0 {
            capture = capture.timeout(Duration::from_millis(options.timeout_ms.into()));
        }
        let captured = capture.run_to_any_end()?;
        *target = Box::into_raw(Box::new(Output {
            status: captured.status.into_raw(),
            stdout: with_nul(captured.stdout)?,
            stderr: with_nul(captured.stderr)?,
        }));
        captured.cut.map_or(Ok(()), |error| Err(error.into()))
    })
}

/// # Safety
/// NULL, or options that begin with their size.
unsafe fn read_options(caller_options: *const CaptureOptions) -> Result<CaptureOptions, Failure> {
    if caller_options.is_null() {
        // SAFETY: valid when all zero.
        return Ok(unsafe { std::mem::zeroed() });
    }
    // SAFETY: the caller's promise; valid when all zero.
    let read = unsafe { options(caller_options) }?;
    if read.reserved != [0; 5] {
        return Err(Failure::invalid("use reserved options"));
    }
    Ok(read)
}

fn with_nul(mut bytes: Vec<u8>) -> Result<Vec<u8>, Failure> {
    bytes
        .try_reserve_exact(1)
        .map_err(|_| Failure::new(Stage::Communicate, libc::ENOMEM, "allocate memory for an output"))?;
    bytes.push(0);
    Ok(bytes)
}

/// Returns the command's status as waitpid stores it; -1 with errno EINVAL for NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vspawn_output_status(output: *const Output) -> c_int {
    // SAFETY: a handle or NULL.
    entry_or(-1, || Ok(unsafe { borrow(output, "output") }?.status))
}

/// # Safety
/// `length` is NULL or room for a number.
unsafe fn store_length(bytes: &[u8], length: *mut usize) -> *const c_uchar {
    // SAFETY: the caller's promise.
    if let Some(target) = unsafe { length.as_mut() } {
        *target = bytes.len() - 1;
    }
    bytes.as_ptr()
}

/// Returns what the command wrote to its standard output, followed by a NUL. The bytes belong to
/// the handle. Returns NULL with errno EINVAL if output is NULL.
///
/// length: receives the number of bytes, without the NUL; may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vspawn_output_stdout(output: *const Output, length: *mut usize) -> *const c_uchar {
    // SAFETY: a handle or NULL; room for a number or NULL.
    entry_or(std::ptr::null(), || unsafe { Ok(store_length(&borrow(output, "output")?.stdout, length)) })
}

/// Returns what the command wrote to its standard error. Otherwise like vspawn_output_stdout.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vspawn_output_stderr(output: *const Output, length: *mut usize) -> *const c_uchar {
    // SAFETY: a handle or NULL; room for a number or NULL.
    entry_or(std::ptr::null(), || unsafe { Ok(store_length(&borrow(output, "output")?.stderr, length)) })
}

/// Frees output. output: consumed; NULL does nothing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vspawn_output_free(output: *mut Output) {
    // SAFETY: a handle that the caller gives up, or NULL.
    unsafe { free(output) };
}
