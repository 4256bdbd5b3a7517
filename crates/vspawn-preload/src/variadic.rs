//! The hooks of the exec functions with any number of arguments. Such a function cannot be written
//! in stable Rust. So the hook saves the registers, in which the first arguments are, and calls a
//! function that copies all arguments to an array and executes the program. If that fails, or there
//! are too many arguments, the hook restores the registers and jumps to the real function, which
//! finds its arguments where the caller put them.

use core::ffi::c_void;

use libc::c_char;

use crate::exec::{execute, execute_searched, own_environment};
use crate::hooks::address_of;
use crate::strings::StringArray;

type Text = *const c_char;

/// The number of arguments in registers, and of words between the saved registers and the arguments
/// on the stack: the return address.
#[cfg(target_arch = "x86_64")]
const REGISTERS: (usize, usize) = (6, 1);
#[cfg(target_arch = "aarch64")]
const REGISTERS: (usize, usize) = (8, 0);
const ARGUMENTS_MAX: usize = 128;

/// Defines a hook, and the function that it calls: `$execute` with the arguments of a call.
macro_rules! variadic {
    ($name:ident, $call:ident, $execute:ident, $environment:expr) => {
        #[cfg(target_arch = "x86_64")]
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name() {
            // With the return address, seven words keep the stack aligned to 16 bytes.
            core::arch::naked_asm!(
                "push r9", "push r8", "push rcx", "push rdx", "push rsi", "push rdi", "mov rdi, rsp", "sub rsp, 8",
                "call {execute}",
                "add rsp, 8", "pop rdi", "pop rsi", "pop rdx", "pop rcx", "pop r8", "pop r9",
                "jmp rax",
                execute = sym $call,
            )
        }

        #[cfg(target_arch = "aarch64")]
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name() {
            core::arch::naked_asm!(
                "stp x29, x30, [sp, #-80]!", "stp x0, x1, [sp, #16]", "stp x2, x3, [sp, #32]",
                "stp x4, x5, [sp, #48]", "stp x6, x7, [sp, #64]", "add x0, sp, #16",
                "bl {execute}",
                "mov x16, x0",
                "ldp x0, x1, [sp, #16]", "ldp x2, x3, [sp, #32]", "ldp x4, x5, [sp, #48]",
                "ldp x6, x7, [sp, #64]", "ldp x29, x30, [sp], #80",
                "br x16",
                execute = sym $call,
            )
        }

        unsafe extern "C" fn $call(saved: *const Text) -> *mut c_void {
            // SAFETY: the arguments are those of a call of the hooked function.
            unsafe {
                if let Some(arguments) = Arguments::copy(saved) {
                    let environment: unsafe fn(&Arguments) -> StringArray = $environment;
                    $execute(arguments.program, arguments.list.as_ptr(), environment(&arguments));
                }
            }
            address_of::$name()
        }
    };
}

variadic!(execl, call_execl, execute, |_| own_environment());
variadic!(execlp, call_execlp, execute_searched, |_| own_environment());
variadic!(execle, call_execle, execute, Arguments::environment);

/// The arguments of a call: the program, and the list that ends with NULL.
struct Arguments {
    program: Text,
    list: [Text; ARGUMENTS_MAX + 1],
    /// What follows the NULL, which only `execle` has.
    saved: *const Text,
    end: usize,
}

impl Arguments {
    /// Copies the arguments. Returns `None` if there are too many.
    unsafe fn copy(saved: *const Text) -> Option<Arguments> {
        let mut list = [core::ptr::null(); ARGUMENTS_MAX + 1];
        for (index, copied) in (1..).zip(&mut list) {
            // SAFETY: the arguments end with NULL, at which this loop ends.
            *copied = unsafe { argument(saved, index) };
            if copied.is_null() {
                // SAFETY: the program is the first argument.
                return Some(Arguments { program: unsafe { argument(saved, 0) }, list, saved, end: index });
            }
        }
        None
    }

    unsafe fn environment(&self) -> StringArray {
        // SAFETY: as the caller promises, the function is `execle`.
        unsafe { argument(self.saved, self.end + 1) }.cast()
    }
}

/// Reads one argument, in the saved registers or on the stack.
unsafe fn argument(saved: *const Text, index: usize) -> Text {
    let (in_registers, words_between) = REGISTERS;
    let words = if index < in_registers { 0 } else { words_between };
    // SAFETY: the caller reads no argument after the last.
    unsafe { *saved.add(index + words) }
}
