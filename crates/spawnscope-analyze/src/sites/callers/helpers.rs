//! Helper functions, which launch on behalf of their callers: `run "$@"` in a shell,
//! `execute(command)` in Python. The call site of such a launch is the line that calls the helper,
//! because that line decides what is launched.

use std::collections::{HashMap, HashSet};

use crate::model::frames::Frame;
use crate::model::tree::Forest;
use crate::patterns::shells::{command_of, wrapped_child};
use crate::patterns::subcommands::subcommand_of;
use spawnscope_data::rows::StackId;

/// Lines of helper functions, each with its function.
pub(super) type Helpers<'a> = HashSet<Frame<'a>>;

/// What a launch executes: the program, and the subcommand if it has some.
type Program<'a> = (&'a [u8], Option<&'a [u8]>);

/// Finds the lines in functions at which different callers launch different programs, or different
/// subcommands of one. If all callers of a line launch the same ones, the line names them itself.
pub(super) fn find<'a>(forest: &Forest<'a>) -> Helpers<'a> {
    let mut programs: HashMap<StackId, HashSet<Program<'a>>> = HashMap::new();
    for (index, launch) in (0..).zip(&forest.launches) {
        // What a shell launches for the program is a program of its line.
        let wrapped = launch.execs.first().and_then(command_of).and_then(|_| wrapped_child(forest, index));
        let launched = wrapped.map_or(launch, |child| &forest.launches[child as usize]);
        if let (Some(stack), Some(exec)) = (launch.script_stack, launched.execs.last()) {
            programs.entry(stack).or_default().insert((launched.command.name, subcommand_of(exec)));
        }
    }
    let mut by_caller: HashMap<Frame<'a>, HashMap<Frame<'a>, HashSet<Program<'a>>>> = HashMap::new();
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
