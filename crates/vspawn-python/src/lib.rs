//! `vspawn._core`: what Python's side needs of Rust. The names that users know (`run`, `Popen`, ...) are in `python/`.
//!
//! One way through the files: `values` (Python's objects) -> `request` (a command) -> `run`, or `child` and `exchange` (for
//! `Popen`); `waiting` blocks without the GIL and lets signals in; `failure` makes exceptions.

mod child;
mod exchange;
mod failure;
mod request;
mod run;
mod values;
mod waiting;

#[pyo3::pymodule]
mod _core {
    #[pymodule_export]
    use crate::child::{Child, spawn};
    #[pymodule_export]
    use crate::exchange::Exchange;
    #[pymodule_export]
    use crate::run::run;
}
