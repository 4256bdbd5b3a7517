//! Decodes what was read from the memory of GNU make into a call chain of one frame.

use crate::callers::Files;
use crate::callers::make::makefiles::{self, Site};
use crate::callers::sources::Place;
use crate::wire::*;
use spawnscope_data::event::Chain;

/// Returns the chain of a record. `data` follows the record: file, target, text, and the components
/// of the working directory, unless the place is given. Returns `None` if the record does not have
/// this format.
pub(crate) fn chain(called: &WireScriptCalled, data: &[u8], place: Option<Place>, files: &mut Files) -> Option<Chain> {
    let data = data.get(..called.data_bytes as usize)?;
    let mut texts = data.splitn(4, |&byte| byte == 0);
    let (file, target, text) = (texts.next()?, texts.next()?, texts.next()?);
    let components = texts.next().unwrap_or_default();
    let place = place.unwrap_or_else(|| Place::in_record(called, components));
    let [line, index] = [MAKE_AT_LINE, MAKE_AT_INDEX].map(|at| called.lines[at as usize]);
    let site = Site { kind: called.flags & MAKE_KIND, file, target, line, index, text, place: &place };
    Some(makefiles::chain(&site, &mut files.sources))
}

#[cfg(test)]
mod tests {
    use zerocopy::FromZeros;

    use super::*;

    #[test]
    fn a_record_contains_file_target_and_working_directory() {
        let mut called = WireScriptCalled::new_zeroed();
        let data = b"sub.mk\0all\0echo\0b\0a\0";
        (called.flags, called.data_bytes) = (MAKE_READS | SCRIPT_HAS_DIRECTORY, data.len() as u32);
        called.lines[MAKE_AT_LINE as usize] = 7;
        let read = chain(&called, data, None, &mut Files::default()).unwrap();
        let frame = &read.frames[0];
        assert_eq!(frame.file.as_deref(), Some(&b"/a/b/sub.mk"[..]));
        assert_eq!((frame.line, frame.function.as_deref()), (Some(7), Some(&b"all"[..])));
        called.flags = MAKE_READS;
        let read = chain(&called, data, None, &mut Files::default()).unwrap();
        assert_eq!(read.frames[0].file.as_deref(), Some(&b"sub.mk"[..]));
    }

    #[test]
    fn a_record_that_is_too_short_is_malformed() {
        let mut called = WireScriptCalled::new_zeroed();
        called.data_bytes = 8;
        assert_eq!(chain(&called, b"sub.mk\0all\0", None, &mut Files::default()), None);
        assert_eq!(chain(&called, b"sub", None, &mut Files::default()), None);
    }
}
