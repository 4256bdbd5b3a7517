//! Names of places in files: function, source file and line, and the functions that were inlined there. From the file
//! itself, or from separate debug information with the same build id.

use std::cell::OnceCell;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;

use blazesym::symbolize::source::{Elf, Source};
use blazesym::symbolize::{CodeInfo, Input, Symbolizer};

use crate::event::{Frame, Language};

/// Whoever names the places of one file.
pub(super) struct Names {
    path: PathBuf,
    /// Made when the first name is wanted: few of the files that are mapped launch anything.
    symbolizer: OnceCell<Symbolizer>,
}

impl Names {
    /// Of the file at `path`, which stays there.
    pub(super) fn of(path: PathBuf) -> Names {
        Names {
            path,
            symbolizer: OnceCell::new(),
        }
    }

    /// The frames at a place, from the innermost outwards: inlined functions first. `address` is where a call returns to
    /// if `is_return`, in the numbering of the file, which the process knows as `module`.
    pub(super) fn frames(&self, module: &Arc<[u8]>, address: u64, is_return: bool) -> Vec<Frame> {
        let plain = Frame {
            module: Some(module.to_vec()),
            address: Some(address),
            ..Frame::unknown(Language::Native)
        };
        let symbolizer = self.symbolizer.get_or_init(Symbolizer::new);
        let look_up = |debug_syms| {
            let source = Source::Elf(Elf {
                debug_syms,
                ..Elf::new(&self.path)
            });
            let address = Input::VirtOffset(address - u64::from(is_return));
            symbolizer.symbolize_single(&source, address).ok()?.into_sym()
        };
        // Debug information that cannot be understood does not take the file's own symbols away.
        let Some(symbol) = look_up(true).or_else(|| look_up(false)) else {
            return vec![plain];
        };
        let frame = |name: &str, code: Option<&CodeInfo<'_>>, is_inlined| Frame {
            function: (!name.is_empty()).then(|| name.as_bytes().to_vec()),
            file: code.map(|code| code.to_path().as_os_str().as_bytes().to_vec()),
            line: code.and_then(|code| code.line).filter(|&line| line > 0),
            is_inlined,
            ..plain.clone()
        };
        let inlined = symbol.inlined.iter().rev();
        let mut frames: Vec<_> = inlined
            .map(|function| frame(&function.name, function.code_info.as_ref(), true))
            .collect();
        frames.push(frame(&symbol.name, symbol.code_info.as_deref(), false));
        frames
    }
}
