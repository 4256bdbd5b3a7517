//! `vspawn._core`: the Rust side of the Python package. The public names (`run`, `Popen`, ...) are
//! in `python/`.
//!
//! A call goes through these files: `values` (Python's objects) -> `request` (a command) -> `child`
//! (prepared or started), then `run`, or `exchange` (for `Popen`). `waiting` blocks without the GIL
//! and lets signal handlers run; `failure` creates exceptions.

mod child;
mod exchange;
mod failure;
mod pty;
mod request;
mod run;
mod values;
mod waiting;

#[pyo3::pymodule]
mod _core {
    #[pymodule_export]
    use crate::child::{Child, Prepared};
    #[pymodule_export]
    use crate::exchange::Exchange;
    #[pymodule_export]
    use crate::pty::{open_pty, open_terminal, pty_size, resize_pty};
    #[pymodule_export]
    use crate::run::run_once;
}
