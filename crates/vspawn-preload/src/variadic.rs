//! The hooks of the exec functions with any number of arguments. A hook cannot pass such arguments on. So it saves the registers with the
//! first arguments, inspects these, restores the registers, and jumps to the real function, which finds its arguments where the caller put
//! them. `sh -c TEXT`, NULL and the environment fit into the registers on both architectures.

use core::ffi::c_void;

use libc::c_char;

use crate::exec::{own_environment, skip_searched_shell, skip_shell};
use crate::hooks::{StringArray, address_of};

type Text = *const c_char;

macro_rules! variadic {
    ($name:ident, $inspect:ident) => {
        #[cfg(target_arch = "x86_64")]
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name() {
            // With the return address, seven words keep the stack aligned to 16 bytes.
            core::arch::naked_asm!(
                "push rdi", "push rsi", "push rdx", "push rcx", "push r8", "push r9", "sub rsp, 8",
                "call {inspect}",
                "add rsp, 8", "pop r9", "pop r8", "pop rcx", "pop rdx", "pop rsi", "pop rdi",
                "jmp rax",
                inspect = sym $inspect,
            )
        }

        #[cfg(target_arch = "aarch64")]
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name() {
            core::arch::naked_asm!(
                "stp x29, x30, [sp, #-80]!", "stp x0, x1, [sp, #16]", "stp x2, x3, [sp, #32]",
                "stp x4, x5, [sp, #48]", "stp x6, x7, [sp, #64]",
                "bl {inspect}",
                "mov x16, x0",
                "ldp x0, x1, [sp, #16]", "ldp x2, x3, [sp, #32]", "ldp x4, x5, [sp, #48]",
                "ldp x6, x7, [sp, #64]", "ldp x29, x30, [sp], #80",
                "br x16",
                inspect = sym $inspect,
            )
        }
    };
}

variadic!(execl, inspect_execl);
variadic!(execlp, inspect_execlp);
variadic!(execle, inspect_execle);

/// Returns the arguments as an array if there are exactly three. Registers after the NULL are undefined.
fn exactly_three(arguments: [Text; 4]) -> Option<[Text; 4]> {
    (arguments.iter().position(|argument| argument.is_null()) == Some(3)).then_some(arguments)
}

unsafe extern "C" fn inspect_execl(path: Text, shell: Text, option: Text, text: Text, end: Text) -> *mut c_void {
    if let Some(argv) = exactly_three([shell, option, text, end]) {
        // SAFETY: the arguments are the caller's.
        unsafe { skip_shell(path, argv.as_ptr(), own_environment()) };
    }
    address_of::execl()
}

unsafe extern "C" fn inspect_execlp(file: Text, shell: Text, option: Text, text: Text, end: Text) -> *mut c_void {
    if let Some(argv) = exactly_three([shell, option, text, end]) {
        // SAFETY: the arguments are the caller's.
        unsafe { skip_searched_shell(file, argv.as_ptr(), own_environment()) };
    }
    address_of::execlp()
}

unsafe extern "C" fn inspect_execle(
    path: Text,
    shell: Text,
    option: Text,
    text: Text,
    end: Text,
    environment: StringArray,
) -> *mut c_void {
    if let Some(argv) = exactly_three([shell, option, text, end]) {
        // SAFETY: the arguments are the caller's.
        unsafe { skip_shell(path, argv.as_ptr(), environment) };
    }
    address_of::execle()
}
