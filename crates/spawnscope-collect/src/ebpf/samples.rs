//! The sampling clock: a perf event on each CPU that calls the program `on_sample`. It uses the CPU
//! clock, since virtual machines often have no hardware counters.

use std::io::{Error, Result};
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd};

use libbpf_rs::{Link, ProgramMut};

use spawnscope_data::event::Missing;

/// The BPF program that the clock calls.
pub(super) const PROGRAM: &str = "on_sample";

/// Makes the kernel call the program `frequency` times a second on each online CPU. If this fails,
/// returns what is unknown.
pub(super) fn attach(program: &ProgramMut<'_>, frequency: u32) -> std::result::Result<Vec<Link>, Missing> {
    let cpus = libbpf_rs::num_possible_cpus().unwrap_or(0);
    let links: Result<Vec<Option<Link>>> =
        (0..cpus).map(|cpu| attach_to(program, frequency, i32::try_from(cpu).map_err(Error::other)?)).collect();
    links.map(|links| links.into_iter().flatten().collect()).map_err(|error| Missing {
        what: format!("a clock for {frequency} samples per second ({error})"),
        effect: "what threads do on-CPU".to_owned(),
    })
}

/// Makes the kernel call the program on one CPU. Returns `None` if there is no such CPU, or if it
/// is offline.
fn attach_to(program: &ProgramMut<'_>, frequency: u32, cpu: i32) -> Result<Option<Link>> {
    let clock = match open_clock(frequency, cpu) {
        Err(error) if error.raw_os_error() == Some(libc::ENODEV) => return Ok(None),
        clock => clock?,
    };
    let link = program.attach_perf_event(clock.as_raw_fd()).map_err(Error::other)?;
    // The link owns the descriptor, and will close it.
    let _ = clock.into_raw_fd();
    Ok(Some(link))
}

fn open_clock(frequency: u32, cpu: i32) -> Result<OwnedFd> {
    let mut attributes = libbpf_sys::perf_event_attr {
        type_: libbpf_sys::PERF_TYPE_SOFTWARE,
        size: u32::try_from(size_of::<libbpf_sys::perf_event_attr>()).map_err(Error::other)?,
        config: u64::from(libbpf_sys::PERF_COUNT_SW_CPU_CLOCK),
        ..libbpf_sys::perf_event_attr::default()
    };
    attributes.__bindgen_anon_1.sample_freq = u64::from(frequency);
    attributes.set_freq(1);
    attributes.set_disabled(1);
    attributes.set_exclude_idle(1);
    let every_process: libc::pid_t = -1;
    let no_group: libc::c_int = -1;
    // SAFETY: the attributes are a structure of the size stored in them, which the kernel only
    // reads.
    let fd = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            &raw const attributes,
            every_process,
            cpu,
            no_group,
            libbpf_sys::PERF_FLAG_FD_CLOEXEC,
        )
    };
    match i32::try_from(fd) {
        // SAFETY: the kernel has just returned this descriptor to us.
        Ok(fd) if fd >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(fd) }),
        _ => Err(Error::last_os_error()),
    }
}
