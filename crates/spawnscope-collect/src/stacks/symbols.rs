//! Finds the names of code addresses in files: function, source file and line, and the functions
//! inlined there. They come from the file itself, or from separate debug information with the same
//! build id.

use std::cell::OnceCell;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use blazesym::helper::read_elf_build_id;
use blazesym::symbolize::source::{Elf, Source};
use blazesym::symbolize::{CodeInfo, Input, Sym, Symbolizer};

use spawnscope_data::event::{Frame, Language};

/// Maximum distance, in bytes, from a symbol without a size. Functions in assembly language may
/// have such symbols, but they are short. An address further away is in a function whose own symbol
/// was stripped.
const MAX_UNSIZED_BYTES: usize = 4096;

/// Finds the names in one file.
pub(super) struct Names {
    /// The separate debug file, if there is one, and the file itself.
    paths: Vec<PathBuf>,
    /// Created when the first name is needed, because few of the mapped files launch anything.
    symbolizer: OnceCell<Symbolizer>,
}

impl Names {
    /// Prepares to find names in the file at `path`, which must remain accessible there.
    pub(super) fn new(path: PathBuf, build_id: Option<&[u8]>) -> Names {
        Names { paths: build_id.and_then(debug_file).into_iter().chain([path]).collect(), symbolizer: OnceCell::new() }
    }

    /// Returns the frames at an address, from the innermost outwards, so that inlined functions
    /// come first. `address` is a virtual address in the ELF file; it is a return address if
    /// `is_return`. `module` is the path of the file as the process sees it.
    pub(super) fn frames(&self, module: &Arc<[u8]>, address: u64, is_return: bool) -> Vec<Frame> {
        let plain = Frame { module: Some(module.to_vec()), address: Some(address), ..Frame::unknown(Language::Native) };
        let symbolizer = self.symbolizer.get_or_init(Symbolizer::new);
        let address = address - u64::from(is_return);
        // If the debug information cannot be parsed, use the file's symbol table.
        let mut sources = self.paths.iter().flat_map(|path| [(path, true), (path, false)]);
        let Some(symbol) = sources.find_map(|(path, debug_syms)| look_up(symbolizer, path, debug_syms, address)) else {
            return vec![plain];
        };
        let inlined = symbol.inlined.iter().rev();
        let mut frames: Vec<_> =
            inlined.map(|function| named_frame(&plain, &function.name, function.code_info.as_ref(), true)).collect();
        frames.push(named_frame(&plain, &symbol.name, symbol.code_info.as_deref(), false));
        frames
    }
}

fn look_up<'a>(symbolizer: &'a Symbolizer, path: &Path, debug_syms: bool, address: u64) -> Option<Sym<'a>> {
    let source = Source::Elf(Elf { debug_syms, ..Elf::new(path) });
    let symbol = symbolizer.symbolize_single(&source, Input::VirtOffset(address)).ok()?.into_sym()?;
    // Debug information gives no size for a function in several parts, but it gives a line.
    let is_within = symbol.code_info.is_some() || symbol.size.is_some_and(|size| size > 0);
    (is_within || symbol.offset < MAX_UNSIZED_BYTES).then_some(symbol)
}

/// Adds a function's name, file and line to a frame.
fn named_frame(plain: &Frame, name: &str, code: Option<&CodeInfo<'_>>, is_inlined: bool) -> Frame {
    Frame {
        function: (!name.is_empty()).then(|| name.as_bytes().to_vec()),
        file: code.map(|code| code.to_path().as_os_str().as_bytes().to_vec()),
        line: code.and_then(|code| code.line).filter(|&line| line > 0),
        is_inlined,
        ..plain.clone()
    }
}

/// Returns the path where distributions install the separate debug file for a build id, if the file
/// exists. The ELF file itself contains no reference to it.
fn debug_file(build_id: &[u8]) -> Option<PathBuf> {
    let digits: String = build_id.iter().map(|byte| format!("{byte:02x}")).collect();
    let (first, rest) = digits.split_at_checked(2)?;
    let name = format!("/usr/lib/debug/.build-id/{first}/{rest}.debug");
    let found = read_elf_build_id(&name).ok()??;
    (*found == *build_id).then(|| name.into())
}
