//! Opens an event on each CPU, maps its ring buffer, and reads the ring buffer.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use perf_event_open_sys::bindings as perf;
use perf_event_open_sys::bindings::perf_event_attr;
use perf_event_open_sys::{ioctls, perf_event_open};
use spawnscope_data::event::Pid;

use super::refusal::Refusal;

/// The event of one CPU with its ring buffer, which the kernel writes to as long as this value lives.
#[derive(Debug)]
pub(crate) struct Ring {
    event: OwnedFd,
    header: NonNull<perf::perf_event_mmap_page>,
    page_bytes: usize,
    data_bytes: usize,
    /// Whether the kernel reports how many records it has dropped (since Linux 6.0).
    counts_lost: bool,
}

// SAFETY: the mapping belongs to the ring alone, and its methods that change it need `&mut`.
unsafe impl Send for Ring {}

/// Opens an event for a process on every CPU, each with a ring buffer of `data_bytes` bytes: a power of two of pages.
///
/// # Errors
/// If the kernel refuses an event or the memory of a ring buffer.
pub(super) fn open_all(process: Pid, attributes: perf_event_attr, data_bytes: usize) -> Result<Vec<Ring>, Refusal> {
    let cpus = 0..configured_cpus();
    let events: Result<Vec<_>, _> = cpus.map(|cpu| open(process, cpu, attributes)).collect();
    let events = events.map_err(Refusal::Event)?.into_iter().flatten();
    let page_bytes = rustix::param::page_size();
    let rings = events.map(|(event, counts_lost)| Ring::map(event, counts_lost, page_bytes, data_bytes));
    rings.collect::<io::Result<Vec<Ring>>>().map_err(Refusal::Memory)
}

/// Returns the number of CPUs that the machine can have.
pub(super) fn configured_cpus() -> i32 {
    let cpus = nix::unistd::sysconf(nix::unistd::SysconfVar::_NPROCESSORS_CONF);
    let cpus = cpus.ok().flatten().and_then(|cpus| i32::try_from(cpus).ok());
    cpus.unwrap_or(1).max(1)
}

/// Opens the event of a CPU; `None` if there is no such CPU. Also returns whether the kernel counts dropped records.
fn open(process: Pid, cpu: i32, mut attributes: perf_event_attr) -> io::Result<Option<(OwnedFd, bool)>> {
    let mut counts_lost = attributes.read_format != 0;
    let flags = perf::PERF_FLAG_FD_CLOEXEC.into();
    loop {
        // SAFETY: the attributes are a structure of the size stored in them. The event writes only to memory that `Ring::map` maps.
        let event = unsafe { perf_event_open(&raw mut attributes, process.0, cpu, -1, flags) };
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
            Some(header) if start != libc::MAP_FAILED => {
                Ok(Ring { event, header, page_bytes, data_bytes, counts_lost })
            }
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Returns a descriptor that is readable when the ring buffer contains enough records to wake the reader.
    #[must_use]
    pub(crate) fn readiness(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }

    /// Moves all complete records from the ring buffer to the end of `bytes`. Returns how full the ring buffer was, from 0 to 1.
    pub(crate) fn take(&mut self, bytes: &mut Vec<u8>) -> f64 {
        // SAFETY: the page is mapped while the ring lives. The kernel also accesses these two numbers atomically.
        let (head, tail) = unsafe {
            let header = self.header.as_ptr();
            (AtomicU64::from_ptr(&raw mut (*header).data_head), AtomicU64::from_ptr(&raw mut (*header).data_tail))
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
        length as f64 / self.data_bytes as f64
    }

    /// Returns the number of dropped records, if the kernel reports it.
    #[must_use]
    pub(crate) fn lost(&self) -> Option<u64> {
        let mut values = [0u8; 16];
        let length = rustix::io::read(&self.event, &mut values).ok().filter(|_| self.counts_lost)?;
        let (_, lost) = values.get(..length)?.split_at_checked(8)?;
        lost.first_chunk().map(|lost| u64::from_ne_bytes(*lost))
    }

    /// Starts the event, including for all processes that inherited it.
    pub(crate) fn start(&self) {
        // SAFETY: an ioctl without memory. It cannot fail for an event.
        unsafe { ioctls::ENABLE(self.event.as_raw_fd(), 0) };
    }

    /// Stops the event, including for all processes that inherited it. The contents of the ring buffer remain.
    pub(crate) fn stop(&self) {
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
