//! Decodes what was read from the memory of GNU make into a call chain of one frame.

use super::join_components;
use crate::callers::make::makefiles::{Makefiles, Site};
use crate::wire::*;
use spawnscope_data::event::{Chain, Pid};

/// Returns the chain of a record. `data` follows the record: file, target, text, and the components
/// of the working directory, unless it is given as `directory`. Returns `None` if the record does
/// not have this format.
pub(crate) fn chain(
    called: &WireScriptCalled,
    data: &[u8],
    directory: Option<Vec<u8>>,
    makefiles: &mut Makefiles,
) -> Option<Chain> {
    let data = data.get(..called.data_bytes as usize)?;
    let mut texts = data.splitn(4, |&byte| byte == 0);
    let (file, target, text) = (texts.next()?, texts.next()?, texts.next()?);
    let components = texts.next().unwrap_or_default();
    let has_directory = called.flags & MAKE_HAS_DIRECTORY != 0;
    let directory = directory.or_else(|| has_directory.then(|| join_components(components)));
    let [process, line, index] = [MAKE_AT_PROCESS, MAKE_AT_LINE, MAKE_AT_INDEX].map(|at| called.lines[at as usize]);
    let process = i32::try_from(process).ok().filter(|&pid| pid != 0);
    Some(makefiles.chain(&Site {
        kind: called.flags & MAKE_KIND,
        file,
        target,
        line,
        index,
        text,
        directory: directory.as_deref(),
        process: process.map(Pid),
        is_in_other_mounts: called.flags & MAKE_IN_OTHER_MOUNTS != 0,
    }))
}

#[cfg(test)]
mod tests {
    use zerocopy::FromZeros;

    use super::*;

    #[test]
    fn a_record_contains_file_target_and_working_directory() {
        let mut called = WireScriptCalled::new_zeroed();
        let data = b"sub.mk\0all\0echo\0b\0a\0";
        (called.flags, called.data_bytes) = (MAKE_READS | MAKE_HAS_DIRECTORY, data.len() as u32);
        called.lines[MAKE_AT_LINE as usize] = 7;
        let read = chain(&called, data, None, &mut Makefiles::default()).unwrap();
        let frame = &read.frames[0];
        assert_eq!(frame.file.as_deref(), Some(&b"/a/b/sub.mk"[..]));
        assert_eq!((frame.line, frame.function.as_deref()), (Some(7), Some(&b"all"[..])));
        called.flags = MAKE_READS;
        let read = chain(&called, data, None, &mut Makefiles::default()).unwrap();
        assert_eq!(read.frames[0].file.as_deref(), Some(&b"sub.mk"[..]));
    }

    #[test]
    fn a_record_that_is_too_short_is_malformed() {
        let mut called = WireScriptCalled::new_zeroed();
        called.data_bytes = 8;
        assert_eq!(chain(&called, b"sub.mk\0all\0", None, &mut Makefiles::default()), None);
        assert_eq!(chain(&called, b"sub", None, &mut Makefiles::default()), None);
    }
}
