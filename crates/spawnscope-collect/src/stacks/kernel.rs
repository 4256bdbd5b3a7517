//! Finds the names of the kernel's functions in /proc/kallsyms.

use std::cell::OnceCell;

use blazesym::MaybeDefault;
use blazesym::symbolize::source::{Kernel, Source};
use blazesym::symbolize::{Input, Symbolizer};

use spawnscope_data::event::{Frame, Language};

/// The function in which a thread leaves its CPU. The frames inwards of this function are the
/// thread switch and the BPF programs that reported it.
const SWITCH: &[u8] = b"__schedule";

/// Finds the names of kernel functions.
#[derive(Default)]
pub(super) struct KernelNames {
    /// Created when the first name is needed, because reading the list of symbols takes long.
    symbolizer: OnceCell<Symbolizer>,
}

impl KernelNames {
    /// Returns the frame at a kernel address, which is a return address if `is_return`. The frame
    /// has no name if the kernel hides its addresses.
    pub(super) fn frame(&self, address: u64, is_return: bool) -> Frame {
        let symbolizer = self.symbolizer.get_or_init(Symbolizer::new);
        // Do not use a kernel image on disk, because it may not be the running kernel.
        let source = Source::Kernel(Kernel { vmlinux: MaybeDefault::None, debug_syms: false, ..Kernel::default() });
        let input = Input::AbsAddr(address - u64::from(is_return && address > 0));
        let symbol = symbolizer.symbolize_single(&source, input);
        let symbol = symbol.ok().and_then(|symbolized| symbolized.into_sym());
        Frame {
            function: symbol.map(|symbol| symbol.name.as_bytes().to_vec()),
            address: Some(address),
            ..Frame::unknown(Language::Kernel)
        }
    }
}

/// Removes the frames of the thread switch from the stack of a waiting thread.
pub(super) fn remove_switch(frames: &mut Vec<Frame>) {
    if let Some(switch) = frames.iter().position(is_switch) {
        frames.drain(..=switch);
    }
}

fn is_switch(frame: &Frame) -> bool {
    frame.language == Language::Kernel && frame.function.as_deref() == Some(SWITCH)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(names: &[&str]) -> Vec<Frame> {
        let functions = names.iter().map(|name| Some(name.as_bytes().to_vec()));
        functions.map(|function| Frame { function, ..Frame::unknown(Language::Kernel) }).collect()
    }

    #[test]
    fn the_stack_of_a_wait_begins_outside_of_the_thread_switch() {
        let mut frames_found = frames(&["bpf_trace_run4", "__schedule", "schedule", "do_wait"]);
        remove_switch(&mut frames_found);
        assert_eq!(frames_found, frames(&["schedule", "do_wait"]));
        remove_switch(&mut frames_found);
        assert_eq!(frames_found, frames(&["schedule", "do_wait"]), "no switch to remove");
    }
}
