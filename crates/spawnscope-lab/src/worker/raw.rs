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
    stack: ChildStack,
}

impl RawLaunch {
    /// Prepares launches of a program. `path` and `argv` must outlive all children.
    pub fn new(path: &CStr, argv: &ExecStrings) -> io::Result<Box<RawLaunch>> {
        unsafe extern "C" {
            static environ: *const *const c_char;
        }
        Ok(Box::new(RawLaunch {
            path: path.as_ptr(),
            argv: argv.as_ptr(),
            // SAFETY: a worker never changes its environment.
            envp: unsafe { environ },
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
    // SAFETY: the parent keeps everything that the pointers point to.
    unsafe {
        let raw = &*raw.cast::<RawLaunch>();
        let arguments = [raw.path as usize, raw.argv as usize, raw.envp as usize];
        call(libc::SYS_execve, arguments);
        loop {
            call(libc::SYS_exit_group, [127, 0, 0]);
        }
    }
}
