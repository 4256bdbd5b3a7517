//! Whose doing a wait is that is not over when the recording ends: nobody has ended it, but in the calls that wait for children it
//! is for one that is still alive.

use std::collections::HashMap;

use super::timeline::{ThreadIndex, Timelines, last_threads};
use super::tree::Forest;
use crate::event::{LeftCpu, ObjectKind, Pid};
use crate::record::reader::{ObjectRef, SliceRow};

/// System calls that wait for a child, by x86-64's numbers, which all rows have.
mod calls {
    pub(super) const READ: u16 = 0;
    /// clone, fork, vfork, clone3: a vfork's parent sleeps until its child's exec.
    pub(super) const CREATIONS: [u16; 4] = [56, 57, 58, 435];
    pub(super) const WAIT4: u16 = 61;
    pub(super) const WAITID: u16 = 247;
}

/// The children of each launch that were alive at the end, in the order of their creation.
#[derive(Clone, Debug, Default)]
pub(super) struct OpenWaits(HashMap<u32, Vec<Child>>);

#[derive(Clone, Copy, Debug)]
struct Child {
    launch: u32,
    pid: Option<Pid>,
}

/// What is known of the child that a call waits for.
enum AwaitedChild {
    Any,
    Pid(Pid),
    /// One, but not which.
    One,
}

impl OpenWaits {
    pub(super) fn of(forest: &Forest<'_>) -> OpenWaits {
        let mut open_waits: HashMap<u32, Vec<Child>> = HashMap::new();
        for (index, launch) in (0..).zip(&forest.launches) {
            if let Some(parent) = forest.parent(index as usize).filter(|_| launch.is_unfinished()) {
                let pid = launch.pid;
                open_waits
                    .entry(parent as u32)
                    .or_default()
                    .push(Child { launch: index, pid });
            }
        }
        OpenWaits(open_waits)
    }

    /// For each thread that waited to the end, the thread that it waited for, where that is known.
    pub(super) fn awaited(&self, timelines: &Timelines) -> HashMap<ThreadIndex, ThreadIndex> {
        let threads = (0..).zip(&timelines.threads);
        let last = last_threads(timelines, |launch| timelines.outlives(launch));
        let waiting = threads.filter_map(|(index, thread): (ThreadIndex, _)| {
            let children = self.0.get(&thread.launch)?;
            let slice = timelines.slices(index).last().filter(|slice| slice.is_open_wait())?;
            let child = child_of(children, &asked(&slice)?)?;
            Some((index, last.get(&child).copied().unwrap_or(child)))
        });
        waiting.collect()
    }
}

/// `None` for a wait that is for something else.
fn asked(slice: &SliceRow) -> Option<AwaitedChild> {
    let kind = slice.object.map(ObjectRef::kind);
    match (slice.syscall?, slice.reason) {
        (_, LeftCpu::Stopped) => None,
        // Who wants any child has to wait for all that there are. A group is as good as any.
        (calls::WAIT4, _) => match slice.argument.map(|argument| argument as i32) {
            Some(pid) if pid > 0 => Some(AwaitedChild::Pid(Pid(pid))),
            Some(_) => Some(AwaitedChild::Any),
            None => Some(AwaitedChild::One),
        },
        // Its first argument is a kind of number; 0 is any child.
        (calls::WAITID, _) if slice.argument == Some(0) => Some(AwaitedChild::Any),
        (calls::WAITID, _) => Some(AwaitedChild::One),
        (call, LeftCpu::Uninterruptible) if calls::CREATIONS.contains(&call) => Some(AwaitedChild::Any),
        // What a shell's substitution writes. The one made last reads or writes at its end; nothing else is known of a pipe.
        (calls::READ, _) if kind == Some(ObjectKind::Pipe) => Some(AwaitedChild::One),
        _ => None,
    }
}

fn child_of(children: &[Child], asked: &AwaitedChild) -> Option<u32> {
    let found = match asked {
        AwaitedChild::Any => children.last(),
        AwaitedChild::Pid(pid) => {
            let has_pid = |child: &&Child| child.pid == Some(*pid);
            // In a pid namespace of its own, a parent knows its children by other numbers.
            children.iter().find(has_pid).or_else(|| only(children))
        }
        AwaitedChild::One => only(children),
    };
    found.map(|child| child.launch)
}

fn only(children: &[Child]) -> Option<&Child> {
    let [child] = children else { return None };
    Some(child)
}
