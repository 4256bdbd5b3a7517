//! Names of the kernel's functions, from /proc/kallsyms.

use std::cell::OnceCell;

use blazesym::MaybeDefault;
use blazesym::symbolize::source::{Kernel, Source};
use blazesym::symbolize::{Input, Symbolizer};

use spawnscope_data::event::{Frame, Language};

/// The last function that all waits have in common. Inwards of it are the thread switch, and the programs that reported it.
const SWITCH: &[u8] = b"__schedule";

/// Finds the names of kernel functions.
#[derive(Default)]
pub(super) struct KernelNames {
    /// Created for the first name, because the list is long.
    symbolizer: OnceCell<Symbolizer>,
}

impl KernelNames {
    /// The frame at a kernel address, which is a return address if `is_return`. Without a name if the kernel hides its addresses.
    pub(super) fn frame(&self, address: u64, is_return: bool) -> Frame {
        let symbolizer = self.symbolizer.get_or_init(Symbolizer::new);
        // A kernel image on disk would have to be verified as the running one.
        let source = Source::Kernel(Kernel {
            vmlinux: MaybeDefault::None,
            debug_syms: false,
            ..Kernel::default()
        });
        let called_from = Input::AbsAddr(address - u64::from(is_return && address > 0));
        let symbol = symbolizer.symbolize_single(&source, called_from);
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
    let is_switch = |frame: &Frame| frame.language == Language::Kernel && frame.function.as_deref() == Some(SWITCH);
    if let Some(switch) = frames.iter().position(is_switch) {
        frames.drain(..=switch);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(names: &[&str]) -> Vec<Frame> {
        let frame = |name: &&str| Frame {
            function: Some(name.as_bytes().to_vec()),
            ..Frame::unknown(Language::Kernel)
        };
        names.iter().map(frame).collect()
    }

    #[test]
    fn a_wait_begins_where_the_thread_asked_to_wait() {
        let mut frames_found = frames(&["bpf_trace_run4", "__schedule", "schedule", "do_wait"]);
        remove_switch(&mut frames_found);
        assert_eq!(frames_found, frames(&["schedule", "do_wait"]));
        remove_switch(&mut frames_found);
        assert_eq!(frames_found, frames(&["schedule", "do_wait"]), "no switch to remove");
    }
}
