//! The two events that are opened. One writes the records. The other copies the stack of a thread at some of its page faults, because the
//! stack of a new program contains its arguments and its environment.

use perf_event_open_sys::bindings as perf;
use perf_event_open_sys::bindings::perf_event_attr;
use spawnscope_data::event::Pid;

use super::refusal::Refusal;
use super::ring::{Ring, configured_cpus, open_all};

/// The number of unread bytes at which the kernel wakes the reader. The loader of a program causes more than that, so that most programs can
/// still be examined in /proc when the reader runs.
const WAKE_AT_BYTES: u32 = 1024;

/// Each thread's stack is copied at one in this many page faults in user space. Dynamically linked programs cause more faults than that
/// before they end (/bin/true about 40). Each copy takes some microseconds.
///
/// In a storm of /bin/true, recorded time / plain time and the share of unknown arguments were 1.12
/// and 14 % with one in 24 faults, 1.11 and 17 % with 32, 1.11 and 26 % with 40. Some arguments are
/// unknown in any case: if a whole page is within the gap before the strings (`COPY_BYTES`), the
/// page does not exist yet, and the copy ends there.
const FAULTS_PER_COPY: u64 = 32;

/// Minimum size of the ring buffer of records, in pages, if stacks are copied. The ring buffer of stacks is twice as large. If there is less
/// memory, no stacks are copied.
const MIN_PAGES: usize = 8;

/// Bytes of the stack that are copied. The loader uses up to 3 KiB, pointers and the auxiliary vector take 1 KiB, and between them and the
/// strings, the kernel leaves a random gap of up to 8 KiB (`arch_align_stack`).
const COPY_BYTES: u32 = 12 * 1024;

/// The stack pointer's number among the registers of a sample (`asm/perf_regs.h`).
#[cfg(target_arch = "x86_64")]
const STACK_POINTER: u32 = 7;
#[cfg(target_arch = "aarch64")]
const STACK_POINTER: u32 = 31;

/// The ring buffers of a followed process.
#[derive(Debug)]
pub(crate) struct Rings {
    /// The ring buffers of records.
    pub(crate) records: Vec<Ring>,
    /// The ring buffers of copied stacks, which the caller has to start; empty if stacks cannot be copied.
    pub(crate) stacks: Vec<Ring>,
}

/// Follows a process, which must be held, on every CPU. All ring buffers together have up to `buffer_bytes` bytes. As long as the kernel refuses
/// the memory, their size is halved.
///
/// # Errors
/// If the kernel refuses the events, or even the smallest ring buffers.
pub(crate) fn follow(process: Pid, buffer_bytes: u32) -> Result<Rings, Refusal> {
    let page_bytes = rustix::param::page_size();
    let share = (buffer_bytes as usize / configured_cpus() as usize / page_bytes).max(1);
    let mut pages = 1 << (share / 4).max(1).ilog2();
    while pages >= MIN_PAGES {
        match open_both(process, pages * page_bytes) {
            Ok(rings) => return Ok(rings),
            Err(Refusal::Memory(_)) => pages /= 2,
            // This kernel cannot copy stacks, or does not permit any events.
            Err(Refusal::Event(_)) => break,
        }
    }
    let mut pages = 1 << share.ilog2();
    loop {
        match open_all(process, record_attributes(), pages * page_bytes) {
            Err(Refusal::Memory(_)) if pages > 1 => pages /= 2,
            records => {
                return records.map(|records| Rings { records, stacks: Vec::new() });
            }
        }
    }
}

/// Opens ring buffers of `record_bytes` bytes for records, and ring buffers of twice this size for copied stacks.
fn open_both(process: Pid, record_bytes: usize) -> Result<Rings, Refusal> {
    Ok(Rings {
        stacks: open_all(process, stack_attributes(), record_bytes * 2)?,
        records: open_all(process, record_attributes(), record_bytes)?,
    })
}

/// Returns the attributes of the event that writes records.
fn record_attributes() -> perf_event_attr {
    let mut attributes = software_event(perf::PERF_COUNT_SW_DUMMY);
    attributes.read_format = perf::PERF_FORMAT_LOST.into();
    attributes.__bindgen_anon_2.wakeup_watermark = WAKE_AT_BYTES;
    attributes.set_task(1);
    attributes.set_comm(1);
    attributes.set_comm_exec(1);
    attributes.set_mmap(1);
    attributes.set_mmap2(1);
    // Needed for the loader's last step, which changes the protection of its own data.
    attributes.set_mmap_data(1);
    attributes.set_context_switch(1);
    attributes.set_sample_id_all(1);
    attributes
}

/// Returns the attributes of the event that copies stacks.
fn stack_attributes() -> perf_event_attr {
    let mut attributes = software_event(perf::PERF_COUNT_SW_PAGE_FAULTS);
    attributes.set_disabled(1);
    // Copies never wake the reader.
    attributes.__bindgen_anon_2.wakeup_watermark = u32::MAX;
    attributes.__bindgen_anon_1.sample_period = FAULTS_PER_COPY;
    attributes.sample_type |= u64::from(perf::PERF_SAMPLE_REGS_USER | perf::PERF_SAMPLE_STACK_USER);
    attributes.sample_regs_user = 1 << STACK_POINTER;
    attributes.sample_stack_user = COPY_BYTES;
    attributes
}

/// Returns the attributes of a software event that new processes and threads inherit, and that does not count in the kernel.
fn software_event(event: u32) -> perf_event_attr {
    let mut attributes = perf_event_attr {
        type_: perf::PERF_TYPE_SOFTWARE,
        size: size_of::<perf_event_attr>() as u32,
        config: event.into(),
        sample_type: (perf::PERF_SAMPLE_TID | perf::PERF_SAMPLE_TIME | perf::PERF_SAMPLE_CPU).into(),
        clockid: libc::CLOCK_MONOTONIC,
        ..perf_event_attr::default()
    };
    attributes.set_watermark(1);
    attributes.set_inherit(1);
    attributes.set_exclude_kernel(1);
    attributes.set_exclude_hv(1);
    attributes.set_use_clockid(1);
    attributes
}
