//! The call site of a launch, as an object in the launch's NDJSON record.

use std::borrow::Cow;

use serde::Serialize;

use super::{hex_unless_text, lossy};
use crate::analyze::Forest;
use crate::analyze::callers::CallSite;
use crate::analyze::frames::{Frame, Frames};
use crate::analyze::launch::Launch;

/// The call site that a report shows, and the whole call chain from the innermost frame outwards. If the call chain of a script is known,
/// `stack` has this chain, and `native_stack` the chain of the interpreter's machine code.
#[derive(Serialize)]
pub(super) struct CallerObject<'a> {
    language: Option<&'static str>,
    file: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file_hex: Option<String>,
    line: Option<u32>,
    function: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    function_hex: Option<String>,
    stack: Vec<FrameObject<'a>>,
    stack_truncated: bool,
    native_stack: Vec<FrameObject<'a>>,
    native_stack_truncated: bool,
}

impl<'a> CallerObject<'a> {
    /// Returns `None` if nothing is known. A chain may be known even if no frame of it is useful as a call site.
    pub(super) fn new(
        forest: &Forest<'a>,
        launch: &Launch<'a>,
        call_site: Option<&'a CallSite>,
    ) -> Option<CallerObject<'a>> {
        let (stack, stack_truncated) = collect_stack(forest.frames(Some(launch.best_stack()?)));
        let native = launch.native_stack.filter(|_| launch.script_stack.is_some());
        let (native_stack, native_stack_truncated) = collect_stack(forest.frames(native));
        let file = call_site.and_then(|call_site| call_site.file.as_deref());
        let function = call_site.and_then(|call_site| call_site.function.as_deref());
        Some(CallerObject {
            language: call_site.map(|call_site| call_site.language.name()),
            file: file.map(lossy),
            file_hex: file.and_then(hex_unless_text),
            line: call_site.and_then(|call_site| call_site.line),
            function: function.map(lossy),
            function_hex: function.and_then(hex_unless_text),
            stack,
            stack_truncated,
            native_stack,
            native_stack_truncated,
        })
    }
}

fn collect_stack(mut frames: Frames<'_>) -> (Vec<FrameObject<'_>>, bool) {
    let stack = frames.by_ref().map(FrameObject::new).collect();
    (stack, frames.is_truncated())
}

#[derive(Serialize)]
struct FrameObject<'a> {
    language: &'static str,
    function: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    function_hex: Option<String>,
    file: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file_hex: Option<String>,
    line: Option<u32>,
    /// The ELF file. Only frames of machine code have this and an address.
    #[serde(skip_serializing_if = "Option::is_none")]
    module: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    address: Option<u64>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    is_inlined: bool,
}

impl<'a> FrameObject<'a> {
    fn new(frame: Frame<'a>) -> FrameObject<'a> {
        FrameObject {
            language: frame.language.name(),
            function: frame.function.map(lossy),
            function_hex: frame.function.and_then(hex_unless_text),
            file: frame.file.map(lossy),
            file_hex: frame.file.and_then(hex_unless_text),
            line: frame.line,
            module: frame.module.map(lossy),
            address: frame.address,
            is_inlined: frame.is_inlined,
        }
    }
}
