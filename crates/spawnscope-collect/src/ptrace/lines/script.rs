//! Builds the call chain of a script from its interpreter's memory, as the same record that the BPF programs send (`ebpf/script.h`).

use spawnscope_data::event::Chain;
use zerocopy::FromZeros;

use super::memory::Memory;
use crate::callers::chains;
use crate::wire::*;

pub(super) struct Script {
    pub(super) memory: Memory,
    /// An address in the process minus the same address in the ELF file.
    pub(super) bias: u64,
    /// Whether the line at which the process was created cannot be determined.
    pub(super) line_is_uncertain: bool,
    pub(super) called: WireScriptCalled,
    data: Vec<u8>,
}

impl Script {
    pub(super) fn new(memory: Memory, bias: u64, interpreter: u32) -> Script {
        let called = WireScriptCalled { interpreter, known_lines: SCRIPT_FRAMES + 1, ..WireScriptCalled::new_zeroed() };
        Script { memory, bias, line_is_uncertain: false, called, data: Vec::new() }
    }

    /// Reads the variable of the interpreter that has this address in the ELF file.
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

    /// Appends the string at an address, or an empty string, which means unknown.
    pub(super) fn add_text_if_known(&mut self, address: Option<u64>, room: u32) {
        let text = address.and_then(|address| self.memory.text(address, room as usize));
        self.append(&text.unwrap_or_default());
    }

    fn append(&mut self, text: &[u8]) {
        self.data.extend_from_slice(text);
        self.data.push(0);
        self.called.data_bytes = self.data.len() as u32;
    }

    /// Returns the chain; `None` if no frame is known.
    pub(super) fn chain(&self) -> Option<Chain> {
        let chain = chains::script::chain(&self.called, &self.data)?;
        (!chain.frames.is_empty()).then_some(chain)
    }
}
