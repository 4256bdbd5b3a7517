//! The Rust side of the npm package `vspawn`. The public names (`spawn`, `exec`, ...) are in
//! `lib/`.
//!
//! A start goes through these files: `request` (JavaScript's object -> a command), `start` (pipes,
//! process, failure) and `watcher`, which reports the child's end from a thread of its own. Nothing
//! here waits for a child in Node's threads. `terminal` moves the data of pseudo-terminals.

mod request;
#[path = "../../vspawn-capi/src/shell_words.rs"]
mod shell_words;
mod start;
mod terminal;
mod watcher;

use std::sync::Arc;

use napi::bindgen_prelude::{FnArgs, Function};
use napi_derive::napi;
use vspawn::pty::Size;

use crate::request::Request;
use crate::start::{Started, start};
use crate::watcher::{Ended, Reporter, Watcher};

/// The entry of one JavaScript environment: of the main thread, or of a worker.
#[napi]
pub struct Starter {
    watcher: &'static Watcher,
    reporter: Arc<Reporter>,
}

// `allow`, because the macro copies attributes, and the copies do not expect anything.
#[allow(clippy::needless_pass_by_value, reason = "napi passes objects and functions by value")]
#[napi]
impl Starter {
    /// `ended` is called once for each child, with its id, exit code, signal and errno (`Ended`).
    #[napi(constructor)]
    pub fn new(ended: Function<'_, FnArgs<Ended>, ()>) -> napi::Result<Starter> {
        // A weak function does not keep the event loop running: lib/child.js decides that.
        let reporter = ended.build_threadsafe_function().weak::<true>().build()?;
        Ok(Starter { watcher: Watcher::get()?, reporter: Arc::new(reporter) })
    }

    /// Starts a child. A failure is part of the result.
    #[napi]
    pub fn start(&self, request: Request) -> napi::Result<Started> {
        let mut started = Started::default();
        if let Some((child, pty)) = start(&request, &mut started) {
            started.pid = child.id();
            started.id = self.watcher.watch(child, pty, &self.reporter)?;
        }
        Ok(started)
    }

    /// Sends a signal to a child that has not been reported yet. Returns an errno, or 0.
    #[napi]
    pub fn signal(&self, id: u32, signal: i32) -> i32 {
        self.watcher.control(id, |child| child.signal(signal))
    }

    /// Kills a child and all its descendants. Returns an errno, or 0.
    #[napi]
    pub fn kill_tree(&self, id: u32) -> i32 {
        self.watcher.control(id, |child| child.kill_tree().map(drop))
    }

    /// Sets the size of a child's pseudo-terminal. Does nothing if the terminal is closed.
    #[napi]
    pub fn resize(&self, id: u32, rows: u16, columns: u16) {
        if let Some(pty) = self.watcher.pty(id) {
            // Only a value that is no terminal could be refused.
            let _resized = pty.resize(Size::new(rows, columns));
        }
    }
}
