//! `libvspawn_preload.so`: if a program executes `sh -c TEXT` and TEXT is provably one simple
//! command, executes that command instead. Everything else goes to the shell, unchanged.
//!
//! The following rules hold for everything that an exec or spawn hook reaches, because it may run
//! in a child of vfork, which shares its parent's memory, or in a signal handler:
//! - No allocation and no lock. Buffers are on the stack and limited; what does not fit goes to the
//!   shell.
//! - No write to memory that the parent reads, except counters, which are atomic.
//! - errno is restored if the real function would not have set it.
//! - The real exec functions are looked up in a constructor (`hooks`); a hook never calls a hook.
//! - No panic: slices are read with `get`, unless the lines around it limit the index.
//!
//! `popen`, `pclose`, `fclose` and `system` may lock (`lock`), as those of libc do.

// The installed library has neither std nor an unwinder: with them, it would have 340 KB instead of
// 60, and load libgcc_s into every program. Other builds, such as those for tests, may unwind,
// which needs std.
#![cfg_attr(panic = "abort", no_std)]

mod environment;
mod exec;
mod hooks;
mod in_place;
mod lock;
#[path = "../../spawnscope/src/cli/accel/obstacle.rs"]
mod obstacle;
mod plan;
mod popen;
mod preload;
mod program;
mod redirect;
mod settings;
mod shell;
mod spawn;
mod status;
mod strings;
mod system;
mod text;
mod variadic;

// Without std, nothing else links libc, and unversioned references could be resolved to old
// versions of its functions.
#[link(name = "c")]
unsafe extern "C" {}

#[cfg(panic = "abort")]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    // SAFETY: it does not return.
    unsafe { libc::abort() }
}
