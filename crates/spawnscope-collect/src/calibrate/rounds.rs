//! The measuring process: creates children that exit at once, from a small and from a large process, and times them. It was forked
//! from a process with threads, so it only makes system calls and uses memory mapped here. It must not allocate, lock or panic.

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use super::shared_results::{Life, MOST_ROUNDS, SharedResults};
use crate::now;
use spawnscope_data::event::CALIBRATION_PAUSE;

/// Memory of the large process, in addition to the small one's. Filling takes 0.25 ms per MiB, and several times that on a busy
/// machine, so more would take too long.
pub(super) const LARGE_BYTES: usize = 8 << 20;
/// Copy-on-write faults per round, 1 to 2 us each, and as many after the child's end.
pub(super) const FAULTS: u32 = 100;

/// CPUID instructions per round: 0.03 us each, or 2 to 40 us where a hypervisor emulates them.
pub(super) const IDENTIFICATIONS: u32 = 8;

/// Rounds of the small process before anything else.
const FIRST_ROUNDS: usize = 6;

/// Rounds of measurements that take long or vary little.
const ENOUGH_ROUNDS: usize = 8;

/// Rounds that are each preceded by a pause.
const PAUSES: usize = 6;

const PAGE: usize = 4096;
const STACK_BYTES: usize = 64 << 10;

/// Measures until all rounds are done or the time is up. Any failure ends it early.
pub(super) fn run(results: &SharedResults, last_round: Duration) -> ! {
    // SAFETY: plain system calls in a process of our own. It closes the recorder's descriptors (the held command must notice the
    // recorder's death), dies with the recorder, and resets SIGCHLD so that its wait calls see its children.
    unsafe {
        libc::syscall(libc::SYS_close_range, 0, u32::MAX, 0);
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        libc::signal(libc::SIGCHLD, libc::SIG_DFL);
    }
    let until = now().0.saturating_add(last_round.as_nanos() as u64);
    let _ = measure(results, || now().0 < until);
    // SAFETY: exits at once; none of the recorder's code runs here.
    unsafe { libc::_exit(0) }
}

/// Measures the small process first, so that its constants are known even if time is short, as on a busy machine. It runs only some
/// of its rounds then, and the others at the end.
fn measure(results: &SharedResults, is_time_left: impl Fn() -> bool) -> Option<()> {
    let bench = Bench {
        results,
        stack: Memory::map(STACK_BYTES)?,
    };
    let rounds = |most: usize| (0..most).take_while(|_| is_time_left());
    let small = |most: usize| -> Option<()> {
        for _ in rounds(most) {
            results.small.add(bench.life(0)?);
            results.vfork.add(bench.life(libc::CLONE_VM | libc::CLONE_VFORK)?);
        }
        Some(())
    };
    small(FIRST_ROUNDS)?;
    #[cfg(target_arch = "x86_64")]
    for _ in rounds(ENOUGH_ROUNDS) {
        results.identifications.add(timed(identify));
    }
    let few_pages = Memory::map(2 * FAULTS as usize * PAGE)?;
    // With huge pages, there would be no page tables to copy.
    few_pages.advise(libc::MADV_NOHUGEPAGE)?;
    few_pages.fill();
    for _ in rounds(ENOUGH_ROUNDS) {
        bench.faults(&few_pages)?;
    }
    few_pages.advise(libc::MADV_DONTFORK)?;
    let many_pages = Memory::map(LARGE_BYTES)?;
    many_pages.advise(libc::MADV_NOHUGEPAGE)?;
    many_pages.fill();
    for _ in rounds(ENOUGH_ROUNDS) {
        results.large.add(bench.life(0)?);
    }
    many_pages.advise(libc::MADV_DONTFORK)?;
    for _ in rounds(PAUSES) {
        pause();
        results.cold.add(bench.life(0)?);
    }
    small(MOST_ROUNDS - FIRST_ROUNDS)
}

/// Everything needed to create a child.
struct Bench<'a> {
    results: &'a SharedResults,
    stack: Memory,
}

/// The argument of a child that stays alive: both ends of the pipe whose closing ends it.
struct Pipe {
    read: c_int,
    write: c_int,
}

impl Bench<'_> {
    /// Times a child that only exits.
    fn life(&self, flags: c_int) -> Option<Life> {
        let entered = now();
        let child = self.clone(exit_at_once, flags, std::ptr::from_ref(self.results).cast())?;
        reap(child)?;
        let reaped = now();
        let born = self.results.born.load(Ordering::Relaxed);
        Some(Life {
            created: born.saturating_sub(entered.0),
            reaped: reaped.since(entered).0,
        })
    }

    /// Writes to pages that a living child shares, then to as many pages that it shared before it ended.
    fn faults(&self, pages: &Memory) -> Option<()> {
        let half = pages.bytes / 2;
        let mut ends = [0; 2];
        // SAFETY: `ends` has room for two descriptors.
        if unsafe { libc::pipe(ends.as_mut_ptr()) } != 0 {
            return None;
        }
        let pipe = Pipe {
            read: ends[0],
            write: ends[1],
        };
        let child = self.clone(exit_at_end_of_file, 0, std::ptr::from_ref(&pipe).cast());
        self.results.faults.add(timed(|| pages.part(half).touch()));
        // SAFETY: both are ours and no longer used here. The end of file ends the child.
        unsafe {
            libc::close(pipe.write);
            libc::close(pipe.read);
        }
        reap(child?)?;
        // The second half is reached by touching all pages: a page touched before costs almost nothing.
        self.results.reuses.add(timed(|| pages.touch()));
        Some(())
    }

    fn clone(
        &self,
        child: extern "C" fn(*mut c_void) -> c_int,
        flags: c_int,
        argument: *const c_void,
    ) -> Option<c_int> {
        // SAFETY: the child has a stack of its own even where it shares our memory. `argument` outlives it, because CLONE_VFORK
        // makes us wait for a child that shares memory. The child only makes system calls and ends in `_exit`.
        let pid = unsafe { libc::clone(child, self.stack.end(), flags | libc::SIGCHLD, argument.cast_mut()) };
        (pid > 0).then_some(pid)
    }
}

extern "C" fn exit_at_once(results: *mut c_void) -> c_int {
    // SAFETY: the shared results, which are mapped in every child.
    let results = unsafe { &*results.cast_const().cast::<SharedResults>() };
    results.born.store(now().0, Ordering::Relaxed);
    // SAFETY: exits at once.
    unsafe { libc::_exit(0) }
}

extern "C" fn exit_at_end_of_file(pipe: *mut c_void) -> c_int {
    // SAFETY: the pipe is on the parent's stack, of which this process has a copy. It closes its own copy of the write end, so that
    // the end of file arrives when the parent closes its copy or dies.
    unsafe {
        let pipe = &*pipe.cast_const().cast::<Pipe>();
        libc::close(pipe.write);
        let mut byte = 0u8;
        libc::read(pipe.read, (&raw mut byte).cast(), 1);
        libc::_exit(0)
    }
}

/// Queries what the C library of every program queries at startup: the sizes of the caches.
#[cfg(target_arch = "x86_64")]
fn identify() {
    const CACHES: u32 = 4;
    for cache in 0..IDENTIFICATIONS {
        std::hint::black_box(std::arch::x86_64::__cpuid_count(CACHES, cache % 4));
    }
}

/// Leaves the CPU long enough for the caches to go cold.
fn pause() {
    let time = libc::timespec {
        tv_sec: 0,
        tv_nsec: CALIBRATION_PAUSE.0 as libc::c_long,
    };
    // SAFETY: only reads the time. No caught signal can end the sleep early.
    unsafe { libc::nanosleep(&raw const time, std::ptr::null_mut()) };
}

fn timed(work: impl FnOnce()) -> Life {
    let began = now();
    work();
    Life {
        created: 0,
        reaped: now().since(began).0,
    }
}

fn reap(child: c_int) -> Option<()> {
    // SAFETY: a plain system call; the status is not needed.
    let reaped = unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
    (reaped == child).then_some(())
}

/// Private memory that lives as long as the process.
struct Memory {
    start: *mut u8,
    bytes: usize,
}

impl Memory {
    fn map(bytes: usize) -> Option<Memory> {
        // SAFETY: requests new memory and touches no existing mapping.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        (start != libc::MAP_FAILED).then_some(Memory {
            start: start.cast(),
            bytes,
        })
    }

    fn end(&self) -> *mut c_void {
        self.start.wrapping_add(self.bytes).cast()
    }

    fn advise(&self, advice: c_int) -> Option<()> {
        // SAFETY: the range is a mapping of ours, and no advice used here discards its content.
        let outcome = unsafe { libc::madvise(self.start.cast(), self.bytes, advice) };
        (outcome == 0).then_some(())
    }

    /// The first `bytes` of it.
    fn part(&self, bytes: usize) -> Memory {
        Memory {
            start: self.start,
            bytes: bytes.min(self.bytes),
        }
    }

    /// Populates its pages.
    fn fill(&self) {
        // A single call takes half the time. Before Linux 5.14, it is not available, and the pages are touched one by one.
        if self.advise(libc::MADV_POPULATE_WRITE).is_none() {
            self.touch();
        }
    }

    /// Writes to each page.
    fn touch(&self) {
        for offset in (0..self.bytes).step_by(PAGE) {
            // SAFETY: within the mapping, which only this process uses; `AtomicU8` has the alignment of a byte.
            let byte = unsafe { &*self.start.wrapping_add(offset).cast::<AtomicU8>() };
            byte.store(1, Ordering::Relaxed);
        }
    }
}
