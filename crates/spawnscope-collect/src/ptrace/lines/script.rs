//! Builds the call chain of a shell script from its interpreter's memory, as the record that the BPF programs send (`ebpf/script.h`).

use spawnscope_data::event::Chain;
use zerocopy::FromZeros;

use super::memory::Memory;
use crate::callers::chains;
use crate::wire::*;

pub(super) struct Script {
    pub(super) memory: Memory,
    /// The difference between addresses in the process and in the file.
    pub(super) bias: u64,
    /// Whether the line at which the process was created cannot be determined.
    pub(super) doubt: bool,
    pub(super) called: WireScriptCalled,
    data: Vec<u8>,
}

impl Script {
    pub(super) fn new(memory: Memory, bias: u64, interpreter: u32) -> Script {
        let called = WireScriptCalled {
            interpreter,
            known_lines: SCRIPT_FRAMES + 1,
            ..WireScriptCalled::new_zeroed()
        };
        Script {
            memory,
            bias,
            doubt: false,
            called,
            data: Vec::new(),
        }
    }

    /// A variable of the interpreter. The address is that in the file.
    pub(super) fn number(&mut self, variable: u64) -> Option<u32> {
        self.memory.number(self.bias.wrapping_add(variable))
    }

    pub(super) fn pointer(&mut self, variable: u64) -> Option<u64> {
        self.memory.pointer(self.bias.wrapping_add(variable))
    }

    /// Appends the string at an address.
    pub(super) fn add_text(&mut self, address: u64, room: u32) -> Option<()> {
        let text = self.memory.text(address, room as usize)?;
        self.append(&text);
        Some(())
    }

    /// Appends the string at an address, or an empty one, which means unknown.
    pub(super) fn add_text_if_known(&mut self, address: Option<u64>, room: u32) {
        let text = address.and_then(|address| self.memory.text(address, room as usize));
        self.append(&text.unwrap_or_default());
    }

    fn append(&mut self, text: &[u8]) {
        self.data.extend_from_slice(text);
        self.data.push(0);
        self.called.data_bytes = self.data.len() as u32;
    }

    /// The chain; `None` if nothing is known.
    pub(super) fn chain(&self) -> Option<Chain> {
        let chain = chains::script::chain(&self.called, &self.data)?;
        (!chain.frames.is_empty()).then_some(chain)
    }
}
