//! Identifies the Python call that forked. Functions of the standard library leave Python frames; built-in functions leave only native
//! frames.

use crate::callers::{Frame, is_standard_library};
use crate::launch::{Launch, base_name};
use crate::tree::Forest;
use spawnscope_data::event::Language;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum PythonCall {
    Subprocess,
    Multiprocessing,
    Pty,
    OsFork,
    /// The innermost frame is not in a library: a built-in function or an extension forked.
    Direct,
}

impl PythonCall {
    /// Identifies the call by the call chains of a launch that copied its parent. `None` when they are inconclusive.
    pub(super) fn of(forest: &Forest<'_>, launch: &Launch<'_>) -> Option<PythonCall> {
        let innermost = forest.frames(launch.script_stack).next();
        let innermost = innermost.filter(|frame| frame.language == Language::Python)?;
        let file = innermost.file.map(base_name)?;
        let in_library = is_standard_library(&innermost);
        match file {
            b"subprocess.py" if in_library => Some(PythonCall::Subprocess),
            b"popen_fork.py" if in_library => Some(PythonCall::Multiprocessing),
            b"pty.py" if in_library => Some(PythonCall::Pty),
            _ if forest.frames(launch.native_stack).any(|frame| is_os_fork(&frame)) => Some(PythonCall::OsFork),
            _ if in_library => None,
            _ => Some(PythonCall::Direct),
        }
    }

    /// Describes the call, and when it copies page tables.
    pub(super) fn words(self) -> &'static str {
        match self {
            PythonCall::Subprocess => {
                "subprocess, which forks for preexec_fn, user=, group= and extra_groups=, and always before Python 3.10"
            }
            PythonCall::Multiprocessing => "multiprocessing with the start method \"fork\"",
            PythonCall::Pty => "pty.fork()",
            PythonCall::OsFork => "os.fork()",
            PythonCall::Direct => "os.fork(), or a function of an extension",
        }
    }
}

fn is_os_fork(frame: &Frame<'_>) -> bool {
    frame
        .function
        .is_some_and(|name| matches!(name, b"os_fork" | b"os_fork_impl" | b"os_forkpty" | b"os_forkpty_impl"))
}
