//! Finds the child that a thread was waiting for when the recording ended. No wake-up ended such an
//! open wait, but a call that waits for children waits for a child that is still alive.

use crate::model::timeline::{ThreadIndex, Timelines, last_threads};
use crate::model::tree::Forest;
use foldhash::HashMap;
use spawnscope_data::event::{LeftCpu, ObjectKind, Pid};
use spawnscope_data::rows::{ObjectRef, SliceRow};

mod calls {
    pub(crate) use spawnscope_data::event::syscalls::CREATIONS;
    use spawnscope_data::event::syscalls::number;

    pub(crate) const READ: u16 = number("read");
    pub(crate) const WAIT4: u16 = number("wait4");
    pub(crate) const WAITID: u16 = number("waitid");
}

/// For each launch, the children that were alive at the end of the recording, in order of creation.
#[derive(Clone, Debug, Default)]
pub(crate) struct OpenWaits(HashMap<u32, Vec<Child>>);

#[derive(Clone, Copy, Debug)]
struct Child {
    launch: u32,
    pid: Option<Pid>,
}

/// What is known about the child that a call waits for.
enum AwaitedChild {
    Any,
    Pid(Pid),
    /// One child, but it is unknown which.
    One,
}

impl OpenWaits {
    pub(crate) fn new(forest: &Forest<'_>) -> OpenWaits {
        let mut open_waits: HashMap<u32, Vec<Child>> = HashMap::default();
        for (index, launch) in (0..).zip(&forest.launches) {
            if let Some(parent) = forest.parent(index as usize).filter(|_| launch.is_unfinished()) {
                let pid = launch.pid.get();
                open_waits.entry(parent as u32).or_default().push(Child { launch: index, pid });
            }
        }
        OpenWaits(open_waits)
    }

    /// Maps each thread with an open wait to the thread that it waited for, if that is known.
    pub(crate) fn awaited(&self, timelines: &Timelines) -> HashMap<ThreadIndex, ThreadIndex> {
        let threads = (0..).zip(&timelines.threads);
        let last = last_threads(timelines, |launch| timelines.outlives(launch));
        let waiting = threads.filter_map(|(index, thread): (ThreadIndex, _)| {
            let children = self.0.get(&thread.launch)?;
            let slice = timelines.slices(index).last().filter(|slice| slice.is_open_wait())?;
            let child = find_child(children, &awaited_child(&slice)?)?;
            Some((index, last.get(&child).copied().unwrap_or(child)))
        });
        waiting.collect()
    }
}

/// Returns which child the thread of a slice waits for. `None` when it waits for something else.
fn awaited_child(slice: &SliceRow) -> Option<AwaitedChild> {
    let kind = slice.object.map(ObjectRef::kind);
    match (slice.syscall?, slice.reason) {
        (_, LeftCpu::Stopped) => None,
        // A wait for any child, or for a process group, is attributed to the last child created.
        (calls::WAIT4, _) => match slice.argument.map(|argument| argument as i32) {
            Some(pid) if pid > 0 => Some(AwaitedChild::Pid(Pid(pid))),
            Some(_) => Some(AwaitedChild::Any),
            None => Some(AwaitedChild::One),
        },
        // The first argument of waitid is the id type; 0 (P_ALL) means any child.
        (calls::WAITID, _) if slice.argument == Some(0) => Some(AwaitedChild::Any),
        (calls::WAITID, _) => Some(AwaitedChild::One),
        (call, LeftCpu::Uninterruptible) if calls::CREATIONS.contains(&call) => Some(AwaitedChild::Any),
        // A shell reads the output of a substitution. With several children it is unknown which one
        // writes, so only a single child counts.
        (calls::READ, _) if kind == Some(ObjectKind::Pipe) => Some(AwaitedChild::One),
        _ => None,
    }
}

fn find_child(children: &[Child], awaited: &AwaitedChild) -> Option<u32> {
    let found = match awaited {
        AwaitedChild::Any => children.last(),
        AwaitedChild::Pid(pid) => {
            let of_pid = children.iter().find(|child| child.pid == Some(*pid));
            // A parent in another pid namespace sees its children under different pids.
            of_pid.or_else(|| only(children))
        }
        AwaitedChild::One => only(children),
    };
    found.map(|child| child.launch)
}

fn only(children: &[Child]) -> Option<&Child> {
    let [child] = children else { return None };
    Some(child)
}
