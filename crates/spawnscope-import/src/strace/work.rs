//! When a program begins its work: at the first call after loading that names one of its first
//! arguments as a file, or that reads standard input. The time before that is start-up, which each
//! launch of the program repeats. The collectors decide alike (`work.h`), but measure CPU time; a
//! log only has the time since the load without the known waits.

use spawnscope_data::event::{Loaded, Nanos};

use super::call::{Call, Text, string};
use super::processes::Tracker;

/// Number of arguments that are compared, and the bytes of each.
const ARGUMENTS: usize = 8;
const COMPARED: usize = 15;
/// Number of calls after which the search ends.
const MAX_CALLS: u32 = 4_096;

/// A program that may not have begun its work.
#[derive(Debug)]
pub struct Work {
    arguments: Vec<Vec<u8>>,
    calls: u32,
    /// The end of the load, and the waits since then.
    loaded: Option<Nanos>,
    waited: u64,
    /// The time between the load and the work.
    pub start_up: Option<Nanos>,
    /// Whether it opened a library after it seemed to have begun.
    is_loading: bool,
}

impl Work {
    pub fn new(path: &[u8], argv: &[Text]) -> Work {
        let own = argv.iter().skip(1).take(ARGUMENTS).map(|argument| &argument.bytes[..]);
        let arguments = std::iter::once(path).chain(own).map(|text| compared(text).to_vec());
        let arguments = arguments.filter(|text| !text.is_empty()).collect();
        Work { arguments, calls: 0, loaded: None, waited: 0, start_up: None, is_loading: false }
    }

    /// Whether a call may show that the work begins.
    pub fn needs(&self, name: &[u8], text: &[u8]) -> bool {
        let reads_input = self.start_up.is_none() && name == b"read" && text.starts_with(b"read(0");
        self.loaded.is_some() && self.calls < MAX_CALLS && (reads_input || path_index(name).is_some())
    }

    fn load(&mut self, loaded: &Loaded) {
        self.loaded = Some(loaded.load_end.unwrap_or(loaded.returned));
        self.waited = 0;
    }

    pub fn wait(&mut self, span: Nanos) {
        self.waited += span.0;
    }

    fn add(&mut self, call: &Call<'_>, start: Nanos) {
        let Some(loaded) = self.loaded.filter(|_| self.calls < MAX_CALLS) else { return };
        let path = path_index(call.name).and_then(|index| string(call.argument(index)));
        let reads_input = call.name == b"read" && call.number(0) == Some(0);
        if path.is_none() && !reads_input {
            return;
        }
        self.calls += 1;
        let path = path.map(|path| path.bytes);
        let is_argument = path.as_deref().is_some_and(|path| self.arguments.iter().any(|own| own == compared(path)));
        let opens_library = call.name.starts_with(b"open") && path.as_deref().is_some_and(is_of_system);
        let (begins, is_loading) = match self.start_up {
            None => (is_argument || reads_input, false),
            Some(_) => (
                if self.is_loading { is_argument || opens_library } else { opens_library && !is_argument },
                !is_argument,
            ),
        };
        if begins {
            self.start_up = Some(Nanos(start.since(loaded).0.saturating_sub(self.waited)));
            self.is_loading = is_loading;
        }
    }
}

impl Tracker {
    /// Adds a call to what a program has done until its work begins.
    pub fn load(&mut self, tid: i32, call: &Call<'_>, start: Nanos, end: Nanos) {
        let Some(task) = self.tasks.get(&tid) else { return };
        let Some(process) = self.processes.get_mut(&task.launch) else { return };
        let Some(loading) = &mut process.loading else {
            process.work.iter_mut().filter(|_| process.tid == tid).for_each(|work| work.add(call, start));
            return;
        };
        self.has_loader_calls |= call.name == b"mmap";
        if let Some(loaded) = loading.add(call, end) {
            process.loaded = loading.returned.map(|_| loaded);
            process.loading = None;
            process.work.iter_mut().zip(&process.loaded).for_each(|(work, loaded)| work.load(loaded));
        }
    }
}

fn compared(text: &[u8]) -> &[u8] {
    &text[..text.len().min(COMPARED)]
}

/// Returns which argument of a call names a file.
fn path_index(name: &[u8]) -> Option<usize> {
    match name {
        b"open" | b"stat" | b"lstat" | b"access" | b"readlink" => Some(0),
        b"openat" | b"newfstatat" | b"statx" | b"faccessat" | b"faccessat2" | b"readlinkat" => Some(1),
        _ => None,
    }
}

/// Whether a path is that of a library, a module or a data file of the system.
fn is_of_system(path: &[u8]) -> bool {
    path.ends_with(b".pyc") || [&b"/usr/l"[..], b"/usr/sh", b"/lib"].iter().any(|start| path.starts_with(start))
}
