//! Which live tests may run at the same time. Most record programs and compare facts, which other
//! tests do not change, so two of them share the machine. A measurement needs the machine for
//! itself: `best_of_three` makes its attempts alone, and so do tests that need `Quiet`.

use std::cell::{Cell, RefCell};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::{Duration, Instant};

/// Held for reading by each running test, and for writing by a test that runs alone.
static MACHINE: RwLock<()> = RwLock::new(());

enum Hold {
    Nothing,
    Shared { _guard: RwLockReadGuard<'static, ()> },
    Alone,
}

thread_local! {
    static HOLD: RefCell<Hold> = const { RefCell::new(Hold::Nothing) };
    /// How long the test of this thread has waited for others.
    static WAITED: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

/// Runs a test beside others. Returns how long it took, without the time in which it waited for
/// them.
pub fn beside_others(test: impl FnOnce()) -> Duration {
    HOLD.set(shared());
    // A test that panics must not hold the machine: its thread runs other tests.
    let _end = EndOfHold;
    timed(test)
}

/// Runs a test alone. Returns how long it took.
pub fn without_others(test: impl FnOnce()) -> Duration {
    alone(|| timed(test))
}

fn timed(test: impl FnOnce()) -> Duration {
    WAITED.set(Duration::ZERO);
    let start = Instant::now();
    test();
    start.elapsed().saturating_sub(WAITED.get())
}

/// Waits until no other test runs, and keeps others from running during `work`. If `work` panics,
/// the test has ended and holds nothing.
pub fn alone<T>(work: impl FnOnce() -> T) -> T {
    if HOLD.with_borrow(|hold| matches!(hold, Hold::Alone)) {
        return work();
    }
    let is_test = matches!(HOLD.replace(Hold::Nothing), Hold::Shared { .. });
    let start = Instant::now();
    let guard = Exclusive { _guard: MACHINE.write().unwrap_or_else(PoisonError::into_inner), _end: EndOfHold };
    WAITED.set(WAITED.get() + start.elapsed());
    HOLD.set(Hold::Alone);
    let result = work();
    drop(guard);
    if is_test {
        HOLD.set(shared());
    }
    result
}

fn shared() -> Hold {
    let start = Instant::now();
    let guard = MACHINE.read().unwrap_or_else(PoisonError::into_inner);
    WAITED.set(WAITED.get() + start.elapsed());
    Hold::Shared { _guard: guard }
}

struct Exclusive {
    _guard: RwLockWriteGuard<'static, ()>,
    _end: EndOfHold,
}

struct EndOfHold;

impl Drop for EndOfHold {
    fn drop(&mut self) {
        HOLD.set(Hold::Nothing);
    }
}
