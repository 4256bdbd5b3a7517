//! Launches by bare system calls, without what a library adds: blocking signals, reporting errors, placing descriptors. The child runs in
//! the parent's memory; it only makes system calls, and never returns.

use std::ffi::{CStr, c_char};
use std::io;

use spawnscope_system::ExecStrings;
use spawnscope_system::arch::call;
use spawnscope_system::launch_timing::clone::{ChildStack, CloneCall};

/// The program of a raw child, and its stack. Boxed, because the child receives its address.
pub struct Raw {
    path: *const c_char,
    argv: *const *const c_char,
    envp: *const *const c_char,
    closing: Closing,
    max_files: usize,
    stack: ChildStack,
}

/// How the child closes descriptors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closing {
    /// By close-on-exec only.
    Exec,
    /// close(3), close(4), ... up to the limit.
    Loop,
    /// Each number in /proc/self/fd.
    Proc,
    /// One close_range.
    Range,
    /// One close_range that also unshares the descriptor table.
    Unshare,
}

const NAMES_BYTES: usize = 4096;

impl Raw {
    /// `path` and `argv` must outlive all children.
    pub fn new(path: &CStr, argv: &ExecStrings, closing: Closing, max_files: usize) -> io::Result<Box<Raw>> {
        unsafe extern "C" {
            static environ: *const *const c_char;
        }
        Ok(Box::new(Raw {
            path: path.as_ptr(),
            argv: argv.as_ptr(),
            // SAFETY: a worker never changes its environment.
            envp: unsafe { environ },
            closing,
            max_files,
            stack: ChildStack::map()?,
        }))
    }

    /// Starts a child and returns its pid. The `Raw` of a detached child must not be used again before the child has ended.
    pub fn start(&self, call: CloneCall) -> io::Result<i32> {
        // SAFETY: the child only makes system calls, on what the parent keeps. The caller waits before the stack is used again.
        unsafe { self.stack.start(call, child, std::ptr::from_ref(self).cast()) }
    }
}

unsafe extern "C" fn child(raw: *const u8) -> ! {
    const UNSHARE: usize = 2;
    // SAFETY: the parent keeps everything that the pointers lead to.
    unsafe {
        let raw = &*raw.cast::<Raw>();
        match raw.closing {
            Closing::Exec => {}
            Closing::Loop => {
                for number in 3..raw.max_files {
                    call(libc::SYS_close, [number, 0, 0]);
                }
            }
            Closing::Proc => close_listed(),
            Closing::Range => {
                call(libc::SYS_close_range, [3, u32::MAX as usize, 0]);
            }
            Closing::Unshare => {
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
    let mut names = [0u8; NAMES_BYTES];
    let flags = (libc::O_RDONLY | libc::O_DIRECTORY) as usize;
    // SAFETY: the path ends with NUL; passes the real length of the buffer; records are within it.
    unsafe {
        let directory = c"/proc/self/fd".as_ptr() as usize;
        let listing = call(libc::SYS_openat, [libc::AT_FDCWD as usize, directory, flags]);
        loop {
            let arguments = [listing as usize, names.as_mut_ptr() as usize, NAMES_BYTES];
            let length = call(libc::SYS_getdents64, arguments);
            if length <= 0 {
                break;
            }
            let mut at = 0;
            while at < length as usize {
                let record = names.as_ptr().add(at);
                let mut digit = record.add(19);
                let mut number = 0usize;
                while (*digit).is_ascii_digit() {
                    number = number * 10 + usize::from(*digit - b'0');
                    digit = digit.add(1);
                }
                if number > 2 && number != listing as usize {
                    call(libc::SYS_close, [number, 0, 0]);
                }
                at += usize::from(record.add(16).cast::<u16>().read_unaligned());
            }
        }
        call(libc::SYS_close, [listing as usize, 0, 0]);
    }
}
