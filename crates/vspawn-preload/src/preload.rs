//! Leaves this library out of the LD_PRELOAD of programs that it must not be loaded into: those
//! with an `obstacle`, and those that do not find its file, after a chroot or without the right to
//! read it. The rest of the environment stays as it is, in the same order.

use core::ffi::CStr;
use core::mem::MaybeUninit;

use libc::{R_OK, c_char, c_int};

use crate::obstacle::obstacle;
use crate::strings::{PathBuffer, StringArray, base_name, bytes, entries, errno, set_errno};

const LIBRARY: &[u8] = b"libvspawn_preload.so";
const VARIABLE: &[u8] = b"LD_PRELOAD=";
/// The largest size of an environment that can be copied, with the NULL at its end. A larger one
/// stays as it is.
const VARIABLES_MAX: usize = 480;

/// Calls a function with the environment for a program: without this library if it must not be
/// loaded into the program.
///
/// # Safety
/// `path` is a C string; `environment` is NULL, or an array of C strings that ends with NULL.
pub unsafe fn with_environment(
    path: *const c_char,
    environment: StringArray,
    call: impl FnOnce(StringArray) -> c_int,
) -> c_int {
    let before = errno();
    // SAFETY: as the caller promises.
    let is_left_out =
        unsafe { library(environment).is_some_and(|library| !is_loadable(library, CStr::from_ptr(path))) };
    set_errno(before);
    // SAFETY: as the caller promises.
    if is_left_out { unsafe { with_copy(environment, call) } } else { call(environment) }
}

fn is_loadable(library: &[u8], program: &CStr) -> bool {
    let mut file = PathBuffer::new();
    // SAFETY: the buffer has a C string.
    file.set(&[library]) && unsafe { libc::access(file.as_ptr(), R_OK) } == 0 && obstacle(program).is_none()
}

unsafe fn library<'a>(environment: StringArray) -> Option<&'a [u8]> {
    // SAFETY: as the caller promises.
    let mut lists = unsafe { variables(environment) }.filter_map(|(_, list)| list);
    lists.find_map(|list| libraries(list).find(|library| base_name(library) == LIBRARY))
}

/// Returns each variable and, if it is an LD_PRELOAD, its value.
unsafe fn variables<'a>(environment: StringArray) -> impl Iterator<Item = (*const c_char, Option<&'a [u8]>)> {
    // SAFETY: as the caller promises; the entries are C strings. Most are not read to their end.
    unsafe { entries(environment) }.map(|variable| unsafe {
        let is_list = libc::strncmp(variable, VARIABLE.as_ptr().cast(), VARIABLE.len()) == 0;
        (variable, is_list.then(|| bytes(variable.add(VARIABLE.len()))))
    })
}

/// Splits the value of LD_PRELOAD.
fn libraries(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    list.split(|byte| matches!(byte, b' ' | b':')).filter(|library| !library.is_empty())
}

/// Calls the function with a copy of the environment without this library, which needs 5 KiB of the
/// stack.
#[inline(never)]
unsafe fn with_copy(environment: StringArray, call: impl FnOnce(StringArray) -> c_int) -> c_int {
    // Not zeroed: in a forked child, each page of the stack that is written first costs a fault.
    let mut copy = [MaybeUninit::uninit(); VARIABLES_MAX];
    let mut rest = PathBuffer::new();
    // SAFETY: as the caller promises.
    match unsafe { copy_without_library(environment, &mut copy, &mut rest) } {
        Some(()) => call(copy.as_ptr().cast()),
        None => call(environment),
    }
}

/// Copies an environment without this library. `rest` is for an LD_PRELOAD with other libraries;
/// there is room for one.
unsafe fn copy_without_library(
    environment: StringArray,
    copy: &mut [MaybeUninit<*const c_char>; VARIABLES_MAX],
    rest: &mut PathBuffer,
) -> Option<()> {
    let mut count = 0;
    let mut add = |variable| {
        copy.get_mut(count)?.write(variable);
        count += 1;
        Some(())
    };
    // SAFETY: as the caller promises.
    for (variable, list) in unsafe { variables(environment) } {
        let Some(list) = list.filter(|list| libraries(list).any(|library| base_name(library) == LIBRARY)) else {
            add(variable)?;
            continue;
        };
        if libraries(list).all(|library| base_name(library) == LIBRARY) {
            continue;
        }
        if !rest.as_bytes().is_empty() {
            return None;
        }
        for library in libraries(list).filter(|library| base_name(library) != LIBRARY) {
            let separator: &[u8] = if rest.as_bytes().is_empty() { VARIABLE } else { b":" };
            rest.push(&[separator, library]).then_some(())?;
        }
        add(rest.as_ptr())?;
    }
    add(core::ptr::null())
}
