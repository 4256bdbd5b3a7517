//! Calls the readers of interpreters, which ptrace and eBPF share (`readers.c`).

use std::cell::Cell;
use std::ptr::NonNull;

use spawnscope_data::event::Pid;
use zerocopy::FromZeros;

use super::RunningInterpreter;
use super::memory::{KnownMemory, Memory};
use crate::wire::*;

/// The first members of `struct reader`.
#[repr(C)]
struct Head {
    read: unsafe extern "C" fn(&mut Memory, *mut u8, u32, u64) -> bool,
    read_text: unsafe extern "C" fn(&mut Memory, *mut u8, u32, u64) -> u32,
    memory: *mut Memory,
    creator: WireTask,
    child: WireTask,
    is_own: u32,
    is_spawn: u32,
}

#[expect(improper_ctypes, reason = "C only passes the memory on")]
unsafe extern "C" {
    fn spawnscope_reader_bytes() -> usize;
    fn spawnscope_read_bash(reader: *mut Head, bias: u64, layout: &WireBash) -> Option<NonNull<WireScriptCalled>>;
    fn spawnscope_read_dash(reader: *mut Head, bias: u64, layout: &WireDash) -> Option<NonNull<WireScriptCalled>>;
    fn spawnscope_read_perl(
        reader: *mut Head,
        bias: u64,
        layout: &WirePerl,
        thread_pointer: u64,
    ) -> Option<NonNull<WireScriptCalled>>;
    fn spawnscope_read_make(
        reader: *mut Head,
        bias: u64,
        layout: &WireMake,
        stack_pointer: u64,
    ) -> Option<NonNull<WireScriptCalled>>;
    fn spawnscope_read_zsh(reader: *mut Head, bias: u64, layout: &WireZsh) -> Option<NonNull<WireScriptCalled>>;
    fn spawnscope_read_python(
        reader: *mut Head,
        bias: u64,
        layout: &WirePython,
        tid: u64,
    ) -> Option<NonNull<WirePythonCalled>>;
}

thread_local! {
    /// The words of the last reader, for the next one: they are many, and each launch needs a
    /// reader.
    static SPARE_WORDS: Cell<Vec<u64>> = const { Cell::new(Vec::new()) };
}

/// Reads the memory of one stopped process.
pub(super) struct Reader {
    /// The structure of C, in words that are aligned as it is.
    words: Vec<u64>,
    memory: Box<Memory>,
    /// An address in the process minus the same address in the ELF file.
    bias: u64,
}

/// A call site in a script, and the data behind the record.
pub(super) type ScriptCall = (WireScriptCalled, Vec<u8>);

impl Reader {
    pub(super) fn new(process: Pid, running: &RunningInterpreter) -> Reader {
        // SAFETY: returns a constant.
        let bytes = unsafe { spawnscope_reader_bytes() };
        let mut words = SPARE_WORDS.take();
        words.resize(bytes.div_ceil(size_of::<u64>()), 0);
        Reader { words, memory: Box::new(Memory::new(process, &running.memory)), bias: running.bias }
    }

    /// Returns what the reader of the next launch needs.
    pub(super) fn known_memory(&self) -> KnownMemory {
        self.memory.known()
    }

    fn head(&mut self) -> *mut Head {
        let head = self.words.as_mut_ptr().cast::<Head>();
        // SAFETY: the words have room for the whole structure, whose other members are valid if
        // they are zero.
        unsafe {
            ((*head).read, (*head).read_text) = (read, read_text);
            (*head).memory = &raw mut *self.memory;
        }
        head
    }

    /// Reads what a bash executes. Returns also the state of the child.
    pub(super) fn bash(&mut self, layout: &WireBash, creator: &WireTask) -> (Option<ScriptCall>, WireTask) {
        let head = self.head();
        // SAFETY: the structure is complete, and the layout outlives the call.
        unsafe {
            ((*head).creator, (*head).child) = (*creator, WireTask::new_zeroed());
            let called = spawnscope_read_bash(head, self.bias, layout);
            (called.map(|called| script_call(called)), (*head).child)
        }
    }

    /// Reads what a dash executes when it forks. Returns also the state of the child. `is_spawn`:
    /// the child will execute a program at once.
    pub(super) fn dash(
        &mut self,
        layout: &WireDash,
        creator: &WireTask,
        is_spawn: bool,
    ) -> (Option<ScriptCall>, WireTask) {
        let head = self.head();
        // SAFETY: as above.
        unsafe {
            ((*head).creator, (*head).child) = (*creator, WireTask::new_zeroed());
            ((*head).is_own, (*head).is_spawn) = (0, is_spawn.into());
            let called = spawnscope_read_dash(head, self.bias, layout);
            (called.map(|called| script_call(called)), (*head).child)
        }
    }

    /// Reads what a forked dash executes when its setup is over. Returns also its state.
    pub(super) fn own_dash(&mut self, layout: &WireDash, own: &WireTask) -> (Option<ScriptCall>, WireTask) {
        let head = self.head();
        // SAFETY: as above.
        unsafe {
            ((*head).creator, (*head).is_own) = (*own, 1);
            let called = spawnscope_read_dash(head, self.bias, layout);
            (called.map(|called| script_call(called)), (*head).creator)
        }
    }

    pub(super) fn perl(&mut self, layout: &WirePerl, thread_pointer: u64) -> Option<ScriptCall> {
        // SAFETY: as above.
        unsafe {
            spawnscope_read_perl(self.head(), self.bias, layout, thread_pointer).map(|called| script_call(called))
        }
    }

    pub(super) fn zsh(&mut self, layout: &WireZsh) -> Option<ScriptCall> {
        // SAFETY: as above.
        unsafe { spawnscope_read_zsh(self.head(), self.bias, layout).map(|called| script_call(called)) }
    }

    pub(super) fn make(&mut self, layout: &WireMake, stack_pointer: u64) -> Option<ScriptCall> {
        // SAFETY: as above.
        unsafe { spawnscope_read_make(self.head(), self.bias, layout, stack_pointer).map(|called| script_call(called)) }
    }

    /// `tid`: the id of the thread in the interpreter's list.
    pub(super) fn python(&mut self, layout: &WirePython, tid: u64) -> Option<(WirePythonCalled, Vec<u8>)> {
        // SAFETY: as above. The data follows the record.
        unsafe {
            let called = spawnscope_read_python(self.head(), self.bias, layout, tid)?;
            let bytes = called.as_ref().bytes as usize;
            Some((*called.as_ref(), std::slice::from_raw_parts(called.add(1).as_ptr().cast(), bytes).to_vec()))
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        SPARE_WORDS.set(std::mem::take(&mut self.words));
    }
}

/// Copies a record with the data behind it.
///
/// # Safety
/// It must be the result of a reader, whose data is behind it.
unsafe fn script_call(called: NonNull<WireScriptCalled>) -> ScriptCall {
    // SAFETY: `data_bytes` bytes follow the record, as the caller guarantees.
    unsafe {
        let record = *called.as_ref();
        let data = std::slice::from_raw_parts(called.add(1).as_ptr().cast(), record.data_bytes as usize);
        (record, data.to_vec())
    }
}

/// # Safety
/// There must be room for `bytes` bytes at `to`.
unsafe extern "C" fn read(memory: &mut Memory, to: *mut u8, bytes: u32, address: u64) -> bool {
    // SAFETY: as the caller guarantees. The bytes are initialized, because the whole structure is,
    // and the C stack only gets whole values.
    let to = unsafe { std::slice::from_raw_parts_mut(to, bytes as usize) };
    memory.fill(to, address).is_some()
}

/// # Safety
/// There must be room for `room` bytes at `to`.
unsafe extern "C" fn read_text(memory: &mut Memory, to: *mut u8, room: u32, address: u64) -> u32 {
    // SAFETY: as above.
    let to = unsafe { std::slice::from_raw_parts_mut(to, room as usize) };
    memory.fill_text(to, address).map_or(0, |bytes| bytes as u32)
}
