//! Bare system calls, without what a library adds: blocking signals, reporting errors, placing descriptors. The child runs in the parent's
//! memory; it only makes system calls, and never returns.

use std::ffi::{CString, c_char};
use std::io;

use spawnscope_system::arch::{call, clone_into, vfork_call};

/// The program of a raw child, and its stack. Boxed, because the child receives its address.
#[repr(C)]
pub struct Raw {
    path: *const c_char,
    argv: *const *const c_char,
    envp: *const *const c_char,
    closing: Closing,
    most_files: usize,
    stack: Box<[u8]>,
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

/// The system call that creates the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    Vfork,
    Clone { flags: i32 },
    Clone3,
}

const STACK_BYTES: usize = 64 * 1024;
const CLONE_CLEAR_SIGHAND: u64 = 0x1_0000_0000;
const NAMES_BYTES: usize = 4096;

impl Raw {
    /// `argv` must end with a null pointer; `path` and `argv` must outlive all children.
    pub fn new(path: &CString, argv: &[*const c_char], closing: Closing, most_files: usize) -> Box<Raw> {
        unsafe extern "C" {
            static environ: *const *const c_char;
        }
        Box::new(Raw {
            path: path.as_ptr(),
            argv: argv.as_ptr(),
            // SAFETY: a worker never changes its environment.
            envp: unsafe { environ },
            closing,
            most_files,
            stack: vec![0; STACK_BYTES].into_boxed_slice(),
        })
    }
}

impl Raw {
    /// Starts a child and returns its pid. The `Raw` of a detached child must not be used again before the child has ended.
    pub fn start(&self, call: Call) -> io::Result<i32> {
        let top = (self.stack.as_ptr() as usize + STACK_BYTES) & !15;
        let mut pidfd = -1i32;
        let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_PIDFD;
        let args: [u64; 8] = [
            flags as u64 | CLONE_CLEAR_SIGHAND,
            (&raw mut pidfd) as u64,
            0,
            0,
            libc::SIGCHLD as u64,
            self.stack.as_ptr() as u64,
            (top - self.stack.as_ptr() as usize) as u64,
            0,
        ];
        let (number, arguments) = match call {
            Call::Vfork => vfork_call(),
            Call::Clone { flags } => (libc::SYS_clone, [(flags | libc::SIGCHLD) as usize, top]),
            Call::Clone3 => (libc::SYS_clone3, [args.as_ptr() as usize, size_of_val(&args)]),
        };
        // SAFETY: the child has its own stack, or the parent waits and does not read below its stack pointer; the child
        // executes `child`, which never returns.
        let outcome = unsafe { clone_into(number, arguments, child, std::ptr::from_ref(self).cast()) };
        if pidfd >= 0 {
            // SAFETY: the descriptor is ours, and not used elsewhere.
            unsafe { libc::close(pidfd) };
        }
        match i32::try_from(outcome) {
            Ok(pid) if pid > 0 => Ok(pid),
            _ => Err(io::Error::from_raw_os_error(-outcome as i32)),
        }
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
                for number in 3..raw.most_files {
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
