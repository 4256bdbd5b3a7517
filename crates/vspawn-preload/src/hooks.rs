//! The list of hooked functions. It generates the declarations and the table of the real functions;
//! the hooks of the same name are in `exec`, `spawn`, `popen`, `system` and `variadic`.

use core::ffi::c_void;
use core::mem::transmute;
use core::sync::atomic::{AtomicPtr, Ordering::Relaxed};

use libc::{FILE, c_char, c_int, pid_t, posix_spawn_file_actions_t as Actions, posix_spawnattr_t as Attributes};

use crate::strings::StringArray;

// `execv` and `execvp` are hooked, too, but only `execve` and `execvpe` are called. `jumped to`:
// functions with any number of arguments. Their hooks (in `variadic`) jump to the real function, so
// only its address is needed.
macro_rules! hooks {
    ($($(#[$doc:meta])* fn $name:ident($($argument:ident: $type:ty),*) -> $result:ty;)*
        jumped to: $($jump:ident),*;) => {
        /// The real functions, from the next library that has them.
        pub mod real {
            use super::*;
            $(
                $(#[$doc])*
                pub unsafe fn $name($($argument: $type),*) -> $result {
                    let address = address_of::$name();
                    // SAFETY: the address is that of the function with this signature, which all C
                    // libraries share.
                    unsafe {
                        let function: unsafe extern "C" fn($($type),*) -> $result = transmute(address);
                        function($($argument),*)
                    }
                }
            )*
        }

        /// The addresses of the real functions, each looked up once.
        pub mod address_of {
            use super::*;
            $( hooks!(address $name); )*
            $( hooks!(address $jump); )*
        }
    };
    (address $name:ident) => {
                pub fn $name() -> *mut c_void {
                    static FOUND: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());
                    let found = FOUND.load(Relaxed);
                    if !found.is_null() {
                        return found;
                    }
                    // A function that may be called in a child of vfork is looked up by the
                    // constructor below.
                    let found = look_up(concat!(stringify!($name), "\0"));
                    FOUND.store(found, Relaxed);
                    found
                }
    };
}

hooks! {
    fn execve(path: *const c_char, argv: StringArray, environment: StringArray) -> c_int;
    fn execvpe(file: *const c_char, argv: StringArray, environment: StringArray) -> c_int;
    fn posix_spawn(pid: *mut pid_t, path: *const c_char, actions: *const Actions, attributes: *const Attributes,
        argv: StringArray, environment: StringArray) -> c_int;
    fn posix_spawnp(pid: *mut pid_t, file: *const c_char, actions: *const Actions, attributes: *const Attributes,
        argv: StringArray, environment: StringArray) -> c_int;
    fn posix_spawn_file_actions_addchdir_np(actions: *mut Actions, path: *const c_char) -> c_int;
    fn posix_spawn_file_actions_addfchdir_np(actions: *mut Actions, descriptor: c_int) -> c_int;
    fn system(text: *const c_char) -> c_int;
    fn popen(text: *const c_char, mode: *const c_char) -> *mut FILE;
    fn pclose(stream: *mut FILE) -> c_int;
    fn fclose(stream: *mut FILE) -> c_int;
    jumped to: execl, execlp, execle;
}

fn look_up(name: &'static str) -> *mut c_void {
    // SAFETY: all names end with NUL.
    unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr().cast()) }
}

/// Runs before the program. A lookup takes the loader's lock, for which a child of vfork must not
/// wait. Such a child calls exec functions only; the others are looked up when they are called,
/// since most programs call none.
extern "C" fn construct() {
    address_of::execve();
    address_of::execvpe();
    address_of::execl();
    address_of::execlp();
    address_of::execle();
    crate::settings::read();
}

#[used]
#[unsafe(link_section = ".init_array")]
static CONSTRUCTOR: extern "C" fn() = construct;
