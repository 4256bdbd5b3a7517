//! Helper functions, which launch on behalf of their callers: `run "$@"` in a shell,
//! `execute(command)` in Python. The call site of such a launch is the line that calls the helper,
//! because that line decides what is launched.

use std::collections::{HashMap, HashSet};

use crate::model::frames::Frame;
use crate::model::tree::Forest;
use spawnscope_data::rows::StackId;

/// Lines of helper functions, each with its function.
pub(super) type Helpers<'a> = HashSet<Frame<'a>>;

/// Finds the lines in functions at which different callers launch different programs. If all
/// callers of a line launch the same programs, the line names them itself.
pub(super) fn find<'a>(forest: &Forest<'a>) -> Helpers<'a> {
    let mut programs: HashMap<StackId, HashSet<&[u8]>> = HashMap::new();
    for launch in forest.launches.iter().filter(|launch| !launch.execs.is_empty()) {
        if let Some(stack) = launch.script_stack {
            programs.entry(stack).or_default().insert(launch.command.name);
        }
    }
    let mut by_caller: HashMap<Frame<'a>, HashMap<Frame<'a>, HashSet<&[u8]>>> = HashMap::new();
    for (stack, programs) in programs {
        let mut frames = forest.frames(Some(stack)).peekable();
        while let (Some(frame), Some(caller)) = (frames.next(), frames.peek()) {
            if frame.function.is_some() && frame.line.is_some() {
                by_caller.entry(frame).or_default().entry(*caller).or_default().extend(&programs);
            }
        }
    }
    by_caller.retain(|_, callers| {
        let mut sets = callers.values();
        sets.next().is_some_and(|first| sets.any(|other| other != first))
    });
    by_caller.into_keys().collect()
}
