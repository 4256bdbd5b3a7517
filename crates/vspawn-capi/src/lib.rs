//! The C ABI of vspawn: `include/vspawn.h` (generated from these files by cbindgen) and
//! `include/popen_noshell.h`.
//!
//! The rules for every function that C calls:
//! 1. Its body runs inside `entry` (or a similar function): no panic leaves it, and the thread is
//!    not cancelled within it.
//! 2. NULL for a required pointer is `EINVAL`. Where NULL has a meaning, the function's comment
//!    describes it.
//! 3. It returns 0 or a positive errno. If it must return another type, it sets errno. In both
//!    cases, the failure's stage and text are the thread's last error.
//! 4. It allocates memory only after `out_of_memory::reserve`. If there is no memory, it fails with
//!    ENOMEM, and its host process continues.
//! 5. Strings and arrays are copied, descriptors and handles borrowed, unless the function's
//!    comment says otherwise.
//!
//! One file per part of the header: `failure`, `command`, `actions`, `start`, `options`, `child`,
//! `capture`, `pty`, `stream` (popen), `system`, `noshell`.

mod actions;
mod call_memory;
mod capture;
mod child;
mod command;
mod entry;
mod failure;
mod noshell;
mod options;
mod out_of_memory;
mod pointers;
mod pty;
mod shell_words;
mod start;
mod state;
mod stream;
mod system;
