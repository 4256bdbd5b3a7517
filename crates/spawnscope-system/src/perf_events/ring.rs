//! Opens the event of one CPU, maps its ring buffer, and reads that.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use perf_event_open_sys::bindings as perf;
use perf_event_open_sys::{ioctls, perf_event_open};
use spawnscope_data::event::Pid;

use super::refusal::Refused;

/// Bytes after which the kernel wakes the reader. The loader of a program writes more than that, so that most programs can still be looked
/// at in /proc when the reader runs.
const WAKE_AT: u32 = 1024;

/// The event of one CPU with its ring buffer. The kernel writes to it as long as it lives.
#[derive(Debug)]
pub struct Ring {
    event: OwnedFd,
    header: NonNull<perf::perf_event_mmap_page>,
    page_bytes: usize,
    data_bytes: usize,
    /// Whether the kernel tells how many records it has dropped (Linux 6.0).
    counts_lost: bool,
}

// SAFETY: the mapping belongs to the ring alone, and its methods that change it need `&mut`.
unsafe impl Send for Ring {}

/// Follows a process, which must be held, on every CPU. The ring buffers share `buffer_bytes`; each is halved while the kernel refuses the
/// memory.
///
/// # Errors
/// If the kernel refuses the events, or even the smallest ring buffers.
pub fn follow(process: Pid, buffer_bytes: u32) -> Result<Vec<Ring>, Refused> {
    let cpus = nix::unistd::sysconf(nix::unistd::SysconfVar::_NPROCESSORS_CONF)
        .ok()
        .flatten();
    let cpus = cpus.and_then(|cpus| i32::try_from(cpus).ok()).unwrap_or(1).max(1);
    let page_bytes = rustix::param::page_size();
    let wanted = buffer_bytes as usize / cpus as usize / page_bytes;
    let mut pages = 1 << wanted.max(1).ilog2();
    loop {
        let events: Result<Vec<_>, _> = (0..cpus).map(|cpu| open(process, cpu)).collect();
        let events = events.map_err(Refused::Event)?;
        let rings = events
            .into_iter()
            .flatten()
            .map(|(event, counts_lost)| Ring::map(event, counts_lost, page_bytes, pages * page_bytes));
        match rings.collect::<io::Result<Vec<Ring>>>() {
            Ok(rings) => return Ok(rings),
            Err(_) if pages > 1 => pages /= 2,
            Err(error) => return Err(Refused::Memory(error)),
        }
    }
}

/// Opens the event of a CPU; `None` if there is no such CPU. Also returns whether the kernel counts dropped records.
fn open(process: Pid, cpu: i32) -> io::Result<Option<(OwnedFd, bool)>> {
    let mut attributes = attributes();
    let mut counts_lost = true;
    loop {
        // SAFETY: the attributes are a structure of the size stored in them. The event writes only to memory that `Ring::map` maps.
        let event = unsafe {
            perf_event_open(
                &raw mut attributes,
                process.0,
                cpu,
                -1,
                perf::PERF_FLAG_FD_CLOEXEC.into(),
            )
        };
        if event >= 0 {
            // SAFETY: the kernel has just returned this descriptor to us.
            return Ok(Some((unsafe { OwnedFd::from_raw_fd(event) }, counts_lost)));
        }
        let error = io::Error::last_os_error();
        match error.raw_os_error() {
            Some(libc::ENODEV) => return Ok(None),
            Some(libc::EINVAL) if counts_lost => {
                attributes.read_format = 0;
                counts_lost = false;
            }
            _ => return Err(error),
        }
    }
}

fn attributes() -> perf::perf_event_attr {
    let mut attributes = perf::perf_event_attr {
        type_: perf::PERF_TYPE_SOFTWARE,
        size: size_of::<perf::perf_event_attr>() as u32,
        config: perf::PERF_COUNT_SW_DUMMY.into(),
        sample_type: (perf::PERF_SAMPLE_TID | perf::PERF_SAMPLE_TIME | perf::PERF_SAMPLE_CPU).into(),
        read_format: perf::PERF_FORMAT_LOST.into(),
        clockid: libc::CLOCK_MONOTONIC,
        ..perf::perf_event_attr::default()
    };
    attributes.__bindgen_anon_2.wakeup_watermark = WAKE_AT;
    attributes.set_watermark(1);
    attributes.set_inherit(1);
    attributes.set_exclude_kernel(1);
    attributes.set_exclude_hv(1);
    attributes.set_task(1);
    attributes.set_comm(1);
    attributes.set_comm_exec(1);
    attributes.set_mmap(1);
    attributes.set_mmap2(1);
    // The loader's last step changes the protection of its own data.
    attributes.set_mmap_data(1);
    attributes.set_context_switch(1);
    attributes.set_sample_id_all(1);
    attributes.set_use_clockid(1);
    attributes
}

impl Ring {
    fn map(event: OwnedFd, counts_lost: bool, page_bytes: usize, data_bytes: usize) -> io::Result<Ring> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping at an address that the kernel chooses.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                page_bytes + data_bytes,
                protection,
                libc::MAP_SHARED,
                event.as_raw_fd(),
                0,
            )
        };
        match NonNull::new(start.cast()) {
            Some(header) if start != libc::MAP_FAILED => Ok(Ring {
                event,
                header,
                page_bytes,
                data_bytes,
                counts_lost,
            }),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Readable when the ring buffer has something to read.
    #[must_use]
    pub fn readiness(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }

    /// Moves all complete records to the end of `bytes`.
    pub fn take(&mut self, bytes: &mut Vec<u8>) {
        // SAFETY: the page is mapped while the ring lives; the kernel accesses these two numbers atomically as well.
        let (head, tail) = unsafe {
            let header = self.header.as_ptr();
            (
                AtomicU64::from_ptr(&raw mut (*header).data_head),
                AtomicU64::from_ptr(&raw mut (*header).data_tail),
            )
        };
        let (from, to) = (tail.load(Ordering::Relaxed), head.load(Ordering::Acquire));
        let length = (to.wrapping_sub(from) as usize).min(self.data_bytes);
        let start = from as usize & (self.data_bytes - 1);
        let until_end = length.min(self.data_bytes - start);
        for (start, length) in [(start, until_end), (0, length - until_end)] {
            // SAFETY: the range is in the data pages, which follow the header. The kernel does not write to it before `tail` is moved.
            let part = unsafe {
                let data = self.header.as_ptr().cast::<u8>().add(self.page_bytes);
                std::slice::from_raw_parts(data.add(start), length)
            };
            bytes.extend_from_slice(part);
        }
        tail.store(to, Ordering::Release);
    }

    /// The number of dropped records, if the kernel tells it.
    #[must_use]
    pub fn lost(&self) -> Option<u64> {
        let mut values = [0u8; 16];
        let length = rustix::io::read(&self.event, &mut values)
            .ok()
            .filter(|_| self.counts_lost)?;
        let (_, lost) = values.get(..length)?.split_at_checked(8)?;
        lost.first_chunk().map(|lost| u64::from_ne_bytes(*lost))
    }

    /// Ends the event, including for all processes that inherited it. The contents of the ring buffer remain.
    pub fn stop(&self) {
        // SAFETY: an ioctl without memory. It cannot fail for an event.
        unsafe { ioctls::DISABLE(self.event.as_raw_fd(), 0) };
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: nothing refers to the mapping any more.
        unsafe { libc::munmap(self.header.as_ptr().cast(), self.page_bytes + self.data_bytes) };
    }
}
