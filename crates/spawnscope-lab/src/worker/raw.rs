//! Launches by bare system calls. A library also blocks signals, reports errors and sets up
//! descriptors, which these launches do not. The child runs in the parent's memory; it only makes
//! system calls, and never returns.

use std::ffi::{CStr, c_char};
use std::io;

use spawnscope_system::ExecStrings;
use spawnscope_system::arch::call;
use spawnscope_system::launch_timing::clone::{ChildStack, CloneCall};

/// The program of a child, and the child's stack. The value is boxed, because the child receives
/// its address.
pub struct RawLaunch {
    path: *const c_char,
    argv: *const *const c_char,
    envp: *const *const c_char,
    closing: CloseMethod,
    max_files: usize,
    stack: ChildStack,
}

/// How the child closes descriptors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloseMethod {
    /// The exec closes descriptors that are close-on-exec; the child closes none.
    Exec,
    /// The child calls close(3), close(4), ... up to the limit on open files.
    Loop,
    /// The child closes each descriptor that it finds in /proc/self/fd.
    Proc,
    /// The child calls close_range once.
    Range,
    /// The child calls close_range once, with CLOSE_RANGE_UNSHARE.
    Unshare,
}

/// The size of the buffer for directory entries.
const LISTING_BYTES: usize = 4096;

impl RawLaunch {
    /// Prepares launches of a program. `path` and `argv` must outlive all children.
    pub fn new(path: &CStr, argv: &ExecStrings, closing: CloseMethod, max_files: usize) -> io::Result<Box<RawLaunch>> {
        unsafe extern "C" {
            static environ: *const *const c_char;
        }
        Ok(Box::new(RawLaunch {
            path: path.as_ptr(),
            argv: argv.as_ptr(),
            // SAFETY: a worker never changes its environment.
            envp: unsafe { environ },
            closing,
            max_files,
            stack: ChildStack::map()?,
        }))
    }

    /// Starts a child and returns its pid. The `RawLaunch` of a detached child must not be used
    /// again before the child has ended.
    pub fn start(&self, call: CloneCall) -> io::Result<i32> {
        // SAFETY: the child only makes system calls, with memory that the parent keeps. The caller
        // waits before it uses the stack again.
        unsafe { self.stack.start(call, child, std::ptr::from_ref(self).cast()) }
    }
}

unsafe extern "C" fn child(raw: *const u8) -> ! {
    const UNSHARE: usize = 2;
    // SAFETY: the parent keeps everything that the pointers point to.
    unsafe {
        let raw = &*raw.cast::<RawLaunch>();
        match raw.closing {
            CloseMethod::Exec => {}
            CloseMethod::Loop => {
                for number in 3..raw.max_files {
                    call(libc::SYS_close, [number, 0, 0]);
                }
            }
            CloseMethod::Proc => close_listed(),
            CloseMethod::Range => {
                call(libc::SYS_close_range, [3, u32::MAX as usize, 0]);
            }
            CloseMethod::Unshare => {
                call(libc::SYS_close_range, [3, u32::MAX as usize, UNSHARE]);
            }
        }
        let arguments = [raw.path as usize, raw.argv as usize, raw.envp as usize];
        call(libc::SYS_execve, arguments);
        loop {
            call(libc::SYS_exit_group, [127, 0, 0]);
        }
    }
}

/// Closes the descriptors listed in /proc/self/fd, except for the first three.
unsafe fn close_listed() {
    let mut listing_buffer = [0u8; LISTING_BYTES];
    let flags = (libc::O_RDONLY | libc::O_DIRECTORY) as usize;
    // SAFETY: the path ends with NUL, the length is that of the buffer, and all records are within
    // it.
    unsafe {
        let directory = c"/proc/self/fd".as_ptr() as usize;
        let listing = call(libc::SYS_openat, [libc::AT_FDCWD as usize, directory, flags]);
        loop {
            let arguments = [listing as usize, listing_buffer.as_mut_ptr() as usize, LISTING_BYTES];
            let length = call(libc::SYS_getdents64, arguments);
            if length <= 0 {
                break;
            }
            let mut offset = 0;
            // The fields of `linux_dirent64`: `d_reclen` at offset 16, `d_name` at offset 19.
            while offset < length as usize {
                let record = listing_buffer.as_ptr().add(offset);
                let mut digit = record.add(19);
                let mut number = 0usize;
                while (*digit).is_ascii_digit() {
                    number = number * 10 + usize::from(*digit - b'0');
                    digit = digit.add(1);
                }
                if number > 2 && number != listing as usize {
                    call(libc::SYS_close, [number, 0, 0]);
                }
                offset += usize::from(record.add(16).cast::<u16>().read_unaligned());
            }
        }
        call(libc::SYS_close, [listing as usize, 0, 0]);
    }
}
