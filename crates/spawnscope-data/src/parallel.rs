//! Runs closures in parallel and returns their results. If no thread can be created (`ulimit -u`, a
//! full pids cgroup), the calling thread runs all of them. A panic in a worker thread is resumed in
//! the calling thread.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, Builder, ScopedJoinHandle};

/// Runs `there` on a separate thread while `here` runs on the calling thread.
pub fn join<A: Send, B>(there: impl FnOnce() -> A + Send, here: impl FnOnce() -> B) -> (A, B) {
    // If the thread cannot be created, the closure passed to it is dropped. `there` must survive
    // that.
    let work = Mutex::new(Some(there));
    let run = || {
        let work = work.lock().unwrap_or_else(PoisonError::into_inner).take();
        work.map(|work| work())
    };
    thread::scope(|scope| {
        let thread = Builder::new().spawn_scoped(scope, run);
        let here = here();
        let there = thread.map_or_else(|_| run(), join_thread);
        (there.expect("`run` is called once"), here)
    })
}

/// Calls `function` for every index below `count`, on at most `max_threads` threads and on no more
/// threads than there are CPUs. Returns the results in the order of the indexes.
pub fn map<T: Send>(count: usize, max_threads: usize, function: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let workers = thread::available_parallelism().map_or(1, usize::from).min(count).min(max_threads);
    let work = || {
        let mut done = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            if index >= count {
                return done;
            }
            done.push((index, function(index)));
        }
    };
    let mut done = thread::scope(|scope| {
        let others: Vec<_> = (1..workers).filter_map(|_| Builder::new().spawn_scoped(scope, work).ok()).collect();
        let mut done = work();
        others.into_iter().for_each(|other| done.extend(join_thread(other)));
        done
    });
    done.sort_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, done)| done).collect()
}

fn join_thread<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| resume_unwind(panic))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_results_are_returned() {
        let text = String::from("here");
        assert_eq!(join(|| 1 + 1, || text.as_str()), (2, "here"));
    }

    #[test]
    fn results_keep_their_order() {
        assert_eq!(map(100, 4, |index| index * 2), (0..100).map(|index| index * 2).collect::<Vec<_>>());
        assert!(map(0, 4, |index| index).is_empty());
        assert_eq!(map(3, 0, |index| index), [0, 1, 2]);
    }

    #[test]
    #[should_panic(expected = "in the other thread")]
    fn a_panic_is_resumed_in_the_caller() {
        join(|| panic!("in the other thread"), || ());
    }
}
