//! The work of the measuring process: it creates children that exit at once, from a small and from
//! a large process, and times them. It obeys the rules for measuring processes (`launch_timing`).

#[cfg(target_arch = "x86_64")]
use std::ffi::CStr;
use std::ffi::c_int;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::MIN_ROUNDS;
use super::shared_results::{MAX_ROUNDS, SharedResults};
use crate::clock::now;
use crate::launch_timing::clone::{ChildStack, CloneCall, IdleCopy};
use crate::launch_timing::keeper::{ignore_requests_to_end, pause};
use crate::launch_timing::mappings::{Memory, PAGE_BYTES};
use crate::launch_timing::run_queue_waits::RunQueueWaits;
use crate::launch_timing::timing::{Deadline, timed};
use crate::process::{await_end, reap};
#[cfg(target_arch = "x86_64")]
use crate::ptrace::identification;
use spawnscope_data::event::{CALIBRATION_PAUSE, Nanos};

/// The memory that the large process has in addition to the small one's, in bytes. More memory
/// would take too long to fill: 0.25 ms per MiB, and several times that on a busy machine. Its page
/// tables fit a cache; copying those of some GiB takes up to twice as long per MiB.
pub(super) const LARGE_BYTES: usize = 8 << 20;
/// Copy-on-write faults in a round, 1 to 2 us each, and as many writes after the child has ended.
pub(super) const FAULTS: u32 = 100;

/// CPUID instructions in a round: 0.03 us each, or 2 to 40 us if a hypervisor emulates them.
pub(super) const IDENTIFICATIONS: u32 = 8;

/// A program that does nothing and is linked with the machine's C library.
#[cfg(target_arch = "x86_64")]
const STARTED_PROGRAM: &CStr = c"/bin/true";

/// Failing opens in a round, 0.5 to 3 us each.
pub(super) const OPENS: u32 = 32;

/// Maximum number of rounds for measurements that take long or vary little.
const ENOUGH_ROUNDS: usize = 8;

const MAX_PAUSED_ROUNDS: usize = 6;

/// Maximum time from the wake-up of a process until it runs, if its CPU is idle.
const MAX_WAKE_UP: Nanos = Nanos(200_000);

/// Measures all constants: first with `MIN_ROUNDS` rounds each, up to `last_needed` from now, then
/// with the remaining rounds, up to `last_round` from now. Without this order, the constants that
/// are measured last would be unknown on a busy machine, where each round takes several times as
/// long. Any failure ends the measurement early.
pub(super) fn measure(results: &SharedResults, last_round: Duration, last_needed: Duration) -> Option<()> {
    ignore_requests_to_end();
    let (needed, more) = (Deadline::after(last_needed), Deadline::after(last_round));
    let few_pages = Memory::map(2 * FAULTS as usize * PAGE_BYTES).ok()?;
    let many_pages = Memory::map(LARGE_BYTES).ok()?;
    for pages in [&few_pages, &many_pages] {
        // With huge pages, there would be no page tables to copy.
        pages.advise(libc::MADV_NOHUGEPAGE).ok()?;
        pages.populate();
        pages.advise(libc::MADV_DONTFORK).ok()?;
    }
    let bench = Bench { results, stack: ChildStack::map().ok()?, few_pages, many_pages };
    bench.rounds(needed, |_| MIN_ROUNDS)?;
    #[cfg(target_arch = "x86_64")]
    // Takes 2 to 5 ms. Without a program to trace, the count is unknown, but the rest is not
    // affected.
    if let Some(count) = needed.rounds(1).next().and_then(|_| identification::count(STARTED_PROGRAM)) {
        results.instructions_at_start.add([count.into()]);
    }
    bench.rounds(more, |max_rounds| max_rounds - MIN_ROUNDS)
}

struct Bench<'a> {
    results: &'a SharedResults,
    stack: ChildStack,
    /// Pages to write to. Children get copies of them only when faults are measured.
    few_pages: Memory,
    /// The memory that makes this process a large one. Children get copies of it only when large
    /// forks are measured.
    many_pages: Memory,
}

impl Bench<'_> {
    /// Measures each constant in turn. `choose_count` returns the number of rounds, given the
    /// maximum number for a constant.
    fn rounds(&self, deadline: Deadline, choose_count: impl Fn(usize) -> usize) -> Option<()> {
        let results = self.results;
        let rounds = |max_rounds| deadline.rounds(choose_count(max_rounds));
        for _ in rounds(ENOUGH_ROUNDS) {
            results.opens.add([timed(open_absent).0]);
        }
        #[cfg(target_arch = "x86_64")]
        for _ in rounds(ENOUGH_ROUNDS) {
            results.identifications.add([timed(identify).0]);
        }
        for _ in rounds(MAX_ROUNDS) {
            results.small.add(self.life(0)?);
            results.vfork.add(self.life(libc::CLONE_VM | libc::CLONE_VFORK)?);
        }
        self.few_pages.advise(libc::MADV_DOFORK).ok()?;
        for _ in rounds(ENOUGH_ROUNDS) {
            self.faults(&self.few_pages)?;
        }
        self.few_pages.advise(libc::MADV_DONTFORK).ok()?;
        self.many_pages.advise(libc::MADV_DOFORK).ok()?;
        for _ in rounds(ENOUGH_ROUNDS) {
            results.large.add(self.life(0)?);
        }
        self.many_pages.advise(libc::MADV_DONTFORK).ok()?;
        for _ in rounds(MAX_PAUSED_ROUNDS) {
            pause(Duration::from_nanos(CALIBRATION_PAUSE.0));
            results.cold.add(self.life(0)?);
        }
        Some(())
    }

    /// Times a child that only exits. Long waits for a CPU do not count: other programs use it.
    fn life(&self, flags: c_int) -> Option<[u64; 2]> {
        let call = CloneCall::Clone { flags };
        let argument = std::ptr::from_ref(self.results).cast();
        let waits = RunQueueWaits::begin();
        let began = now();
        // SAFETY: the child only makes system calls and exits. The results outlive it, and the
        // stack is not used again before its end.
        let child = unsafe { self.stack.start(call, exit_at_once, argument) }.ok()?;
        await_end(child).ok()?;
        let ended = now();
        let born = Nanos(self.results.born.load(Ordering::Relaxed));
        let waits = waits.each_until_end_of(child).map(|wait| if wait > MAX_WAKE_UP { wait.0 } else { 0 });
        let reaping = timed(|| drop(reap(child)));
        Some(without_waits(born.since(began), Nanos(ended.since(began).0 + reaping.0), waits))
    }

    /// Writes to pages that a running child shares. Then the child ends, and as many other pages
    /// that it has shared are written.
    fn faults(&self, pages: &Memory) -> Option<()> {
        let copy = IdleCopy::start().ok()?;
        let half = FAULTS as usize * PAGE_BYTES;
        self.results.faults.add([timed(|| pages.write_first(half)).0]);
        copy.end().ok()?;
        // Writing all pages reaches the second half. A page that was already written costs almost
        // nothing.
        self.results.reuses.add([timed(|| pages.write()).0]);
        Some(())
    }
}

/// Returns the times until a child was born and until it was reaped, without the waits of its
/// parent and of the child for a CPU. The parent's are after the birth.
fn without_waits(born: Nanos, reaped: Nanos, [own, of_child]: [u64; 2]) -> [u64; 2] {
    let born = born.0.saturating_sub(of_child);
    [born, reaped.0.saturating_sub(own + of_child).max(born)]
}

unsafe extern "C" fn exit_at_once(results: *const u8) -> ! {
    // SAFETY: the shared results, which are mapped in every child.
    let results = unsafe { &*results.cast::<SharedResults>() };
    results.born.store(now().0, Ordering::Relaxed);
    // SAFETY: exits at once.
    unsafe { libc::_exit(0) }
}

/// Opens libraries that do not exist, as a loader does in each directory that it searches before
/// the right one.
fn open_absent() {
    for _ in 0..OPENS {
        // SAFETY: the path is a string. Nothing is opened, since no library has this name.
        let opened =
            unsafe { libc::open(c"/usr/lib/libabsent-of-spawnscope.so.0".as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) };
        std::hint::black_box(opened);
    }
}

/// Queries the sizes of the caches by CPUID, as the C library does when a program starts.
#[cfg(target_arch = "x86_64")]
fn identify() {
    const CACHES: u32 = 4;
    for cache in 0..IDENTIFICATIONS {
        std::hint::black_box(std::arch::x86_64::__cpuid_count(CACHES, cache % 4));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_birth_waits_for_the_cpu_of_the_child_and_a_reaping_for_both() {
        let [born, reaped] = [Nanos(4_100_000), Nanos(9_300_000)];
        assert_eq!(without_waits(born, reaped, [0, 0]), [4_100_000, 9_300_000]);
        assert_eq!(without_waits(born, reaped, [5_000_000, 4_000_000]), [100_000, 300_000]);
        assert_eq!(without_waits(born, reaped, [9_000_000, 4_000_000]), [100_000, 100_000]);
    }
}
