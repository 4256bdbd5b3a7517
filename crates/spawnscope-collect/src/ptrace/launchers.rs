//! Stops threads at the entry and exit of each system call while they may launch, if the settings
//! request it. This shows when a thread entered the call that creates a process, and which child a
//! wait has reaped. A thread that launches nothing for a while is no longer stopped.

use spawnscope_data::event::{Nanos, Pid};
use spawnscope_system::ids::IdMap;
use spawnscope_system::ptrace::CallStop;

/// Number of stops since a thread's last launch after which it is no longer stopped.
const STOPS_AFTER_LAUNCH: u32 = 400;
/// Number of stops after which a thread that has launched nothing yet is no longer stopped. bash
/// makes some 60 calls before it launches; most programs never launch.
const STOPS_BEFORE_FIRST_LAUNCH: u32 = 160;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Call {
    pub(super) number: libc::c_long,
    pub(super) arguments: [u64; 6],
    /// When the thread was stopped at the entry of the call.
    pub(super) entered: Nanos,
}

#[derive(Debug)]
struct Calls {
    stops_left: u32,
    current: Option<Call>,
}

/// The threads whose calls are traced.
#[derive(Debug, Default)]
pub(super) struct Launchers {
    pub(super) is_enabled: bool,
    threads: IdMap<Pid, Calls>,
}

impl Launchers {
    pub(super) fn new(is_enabled: bool) -> Launchers {
        Launchers { is_enabled, threads: IdMap::default() }
    }

    /// Begins to trace the calls of a thread, from its next stop on.
    pub(super) fn watch(&mut self, thread: Pid) {
        self.watch_for(thread, STOPS_BEFORE_FIRST_LAUNCH);
    }

    fn watch_for(&mut self, thread: Pid, stops_left: u32) {
        if self.is_enabled {
            let calls = Calls { stops_left, current: None };
            self.threads.insert(thread, calls);
        }
    }

    pub(super) fn is_watched(&self, thread: Pid) -> bool {
        self.threads.contains_key(&thread)
    }

    pub(super) fn forget(&mut self, thread: Pid) {
        self.threads.remove(&thread);
    }

    /// Call when a thread has created a process. Returns when the thread entered the call, if its
    /// calls were traced at that time.
    pub(super) fn on_launch(&mut self, thread: Pid) -> Option<Nanos> {
        let entered = self.threads.get(&thread).and_then(|calls| calls.current);
        self.watch_for(thread, STOPS_AFTER_LAUNCH);
        entered.map(|call| call.entered)
    }

    /// Call when a thread is stopped. If it leaves a call, returns the call and its result.
    pub(super) fn on_stop(&mut self, thread: Pid, stop: CallStop, at: Nanos) -> Option<(Call, i64)> {
        let calls = self.threads.get_mut(&thread)?;
        calls.stops_left = calls.stops_left.saturating_sub(1);
        let call = calls.current.take();
        let mut left = None;
        match stop {
            CallStop::Enters(number, arguments) => {
                calls.current =
                    libc::c_long::try_from(number).ok().map(|number| Call { number, arguments, entered: at });
            }
            CallStop::Leaves(result) => left = call.map(|call| (call, result)),
            CallStop::Neither => {}
        }
        if calls.stops_left == 0 && calls.current.is_none() {
            self.forget(thread);
        }
        left
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const THREAD: Pid = Pid(7);

    fn enters(number: libc::c_long) -> CallStop {
        CallStop::Enters(number as u64, [0; 6])
    }

    #[test]
    fn the_entry_of_the_call_that_launches_is_known() {
        let mut launchers = Launchers::new(true);
        launchers.watch(THREAD);
        assert_eq!(launchers.on_stop(THREAD, enters(libc::SYS_getpid), Nanos(10)), None);
        assert!(launchers.on_stop(THREAD, CallStop::Leaves(1), Nanos(20)).is_some());
        assert_eq!(launchers.on_launch(THREAD), None, "between two calls");
        launchers.on_stop(THREAD, enters(libc::SYS_clone), Nanos(30));
        assert_eq!(launchers.on_launch(THREAD), Some(Nanos(30)));
        assert_eq!(launchers.on_launch(Pid(8)), None);
    }

    #[test]
    fn a_thread_that_launches_nothing_is_no_longer_traced_after_it_leaves_a_call() {
        let mut launchers = Launchers::new(true);
        launchers.watch(THREAD);
        for _ in 0..STOPS_BEFORE_FIRST_LAUNCH / 2 {
            assert!(launchers.is_watched(THREAD));
            launchers.on_stop(THREAD, enters(libc::SYS_getpid), Nanos(1));
            launchers.on_stop(THREAD, CallStop::Leaves(1), Nanos(2));
        }
        assert!(!launchers.is_watched(THREAD));
        launchers.on_launch(THREAD);
        assert!(launchers.is_watched(THREAD), "the thread launches again");
    }

    #[test]
    fn nothing_is_traced_unless_requested() {
        let mut launchers = Launchers::new(false);
        launchers.watch(THREAD);
        assert!(!launchers.is_watched(THREAD));
    }
}
