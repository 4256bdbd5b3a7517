//! The lower bound: the bare system calls, without what a library needs (blocking signals,
//! reporting errors, placing descriptors).

use std::ffi::{CString, c_char};

use crate::arch::{call, clone_arguments, clone_into};

const STACK_BYTES: usize = 64 * 1024;
const CLONE_CLEAR_SIGHAND: u64 = 0x1_0000_0000;

/// Starts children by bare system calls. `output` becomes their standard output unless it is -1.
#[repr(C)]
pub struct Raw {
    path: *const c_char,
    argv: [*const c_char; 2],
    envp: *const *const c_char,
    output: i64,
    stack: *mut u8,
    _path: CString,
}

impl Raw {
    pub fn new(path: &str) -> Raw {
        let owned = CString::new(path).expect("a path");
        let stack: &'static mut [u8] = Box::leak(vec![0u8; STACK_BYTES].into_boxed_slice());
        unsafe extern "C" {
            static environ: *const *const c_char;
        }
        Raw {
            path: owned.as_ptr(),
            argv: [owned.as_ptr(), std::ptr::null()],
            // SAFETY: no thread changes the environment.
            envp: unsafe { environ },
            output: -1,
            stack: stack.as_mut_ptr(),
            _path: owned,
        }
    }

    /// Sets the descriptor that becomes the standard output of later children; with -1, they
    /// inherit the parent's.
    pub fn set_output(&mut self, fd: i32) {
        self.output = fd.into();
    }

    fn stack_top(&self) -> usize {
        (self.stack as usize + STACK_BYTES) & !15
    }

    /// Calls clone(CLONE_VM | CLONE_VFORK); the child calls exec. Returns the child's pid.
    pub fn clone(&self) -> i32 {
        let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
        // SAFETY: the child has its own stack and only calls exec.
        unsafe { self.start(libc::SYS_clone, clone_arguments(flags as usize, self.stack_top(), 0, 0)) }
    }

    /// Calls clone(CLONE_VM), and does not wait for the child's exec. Returns the child's pid. This
    /// `Raw` must not start another child before this one has ended.
    pub fn clone_nowait(&self) -> i32 {
        let flags = libc::CLONE_VM | libc::SIGCHLD;
        // SAFETY: as above; no other code uses the stack before the child's end.
        unsafe { self.start(libc::SYS_clone, clone_arguments(flags as usize, self.stack_top(), 0, 0)) }
    }

    /// Calls clone3 with the flags that vspawn uses; the child calls exec. Returns the child's
    /// pidfd.
    pub fn clone3(&self) -> i32 {
        let mut pidfd = -1i32;
        let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_PIDFD;
        let args: [u64; 8] = [
            flags as u64 | CLONE_CLEAR_SIGHAND,
            (&raw mut pidfd) as u64,
            0,
            0,
            libc::SIGCHLD as u64,
            self.stack as u64,
            (STACK_BYTES & !15) as u64,
            0,
        ];
        // SAFETY: as above.
        unsafe { self.start(libc::SYS_clone3, [args.as_ptr() as usize, size_of_val(&args), 0, 0, 0]) };
        pidfd
    }

    unsafe fn start(&self, number: libc::c_long, arguments: [usize; 5]) -> i32 {
        let argument = std::ptr::from_ref(self).cast();
        // SAFETY: the caller's promise; the child only reads memory that the parent keeps.
        let pid = unsafe { clone_into(number, arguments, child, argument) };
        assert!(pid > 0, "system call {number} returned {pid}");
        pid as i32
    }
}

unsafe extern "C" fn child(raw: *const u8) -> ! {
    // SAFETY: the parent keeps the `Raw` and its strings.
    unsafe {
        let raw = &*raw.cast::<Raw>();
        if raw.output >= 0 {
            call(libc::SYS_dup3, [raw.output as usize, 1, 0, 0, 0, 0]);
        }
        let (path, argv, envp) = (raw.path as usize, raw.argv.as_ptr() as usize, raw.envp as usize);
        call(libc::SYS_execve, [path, argv, envp, 0, 0, 0]);
        loop {
            call(libc::SYS_exit_group, [127, 0, 0, 0, 0, 0]);
        }
    }
}

pub fn wait_pid(pid: i32) {
    // SAFETY: no status is requested.
    let waited = unsafe { libc::waitpid(pid, std::ptr::null_mut(), 0) };
    assert_eq!(waited, pid);
}

pub fn wait_pidfd(pidfd: i32) {
    // SAFETY: the kernel fills `info`; the descriptor is ours to close.
    unsafe {
        let mut info: libc::siginfo_t = std::mem::zeroed();
        let waited = libc::waitid(libc::P_PIDFD, pidfd as u32, &raw mut info, libc::WEXITED);
        assert_eq!(waited, 0);
        libc::close(pidfd);
    }
}
