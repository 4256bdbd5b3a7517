//! Explains why the kernel refuses perf events, and how to permit them.

use std::io;

/// What the kernel refused.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// The kernel refused an event.
    Event(io::Error),
    /// The kernel refused the memory of the ring buffers.
    Memory(io::Error),
}

/// The largest value of `kernel.perf_event_paranoid` with which users may follow their own processes.
const MAX_PARANOID: i32 = 2;

impl Refusal {
    /// Returns the likely reason on this machine, and what to do.
    #[must_use]
    pub(crate) fn reason(&self) -> String {
        let paranoid = setting("perf_event_paranoid");
        self.reason_with(paranoid, setting("perf_event_mlock_kb"))
    }

    fn reason_with(&self, paranoid: Option<i32>, locked_kib: Option<i32>) -> String {
        match self {
            Refusal::Memory(error) => {
                let limit = locked_kib.map_or_else(String::new, |kib| {
                    format!(" is {kib} and also covers other ring buffers of this user")
                });
                format!(
                    "{error}: the kernel refuses memory for the ring buffers: kernel.perf_event_mlock_kb{limit}; raise it (`sudo sysctl \
                     kernel.perf_event_mlock_kb=2048`) or the limit of locked memory (`ulimit -l`)"
                )
            }
            Refusal::Event(error) => match (error.raw_os_error(), paranoid) {
                (Some(libc::EACCES | libc::EPERM), Some(level)) if level > MAX_PARANOID => format!(
                    "kernel.perf_event_paranoid is {level}: run `sudo sysctl kernel.perf_event_paranoid={MAX_PARANOID}`, or give spawnscope \
                     the capability CAP_PERFMON (`sudo setcap cap_perfmon+ep $(command -v spawnscope)`)"
                ),
                (Some(libc::EACCES | libc::EPERM), _) => format!(
                    "{error}: a sandbox forbids perf_event_open, or the command belongs to another user; in a container, allow the call \
                     (docker run --cap-add PERFMON)"
                ),
                (Some(libc::ENOSYS), _) => {
                    "this kernel or sandbox has no perf events (perf_event_open: ENOSYS)".to_owned()
                }
                (Some(libc::EMFILE | libc::ENFILE), _) => {
                    format!("{error}: perf events need a descriptor for each CPU; raise the limit (`ulimit -n`)")
                }
                _ => format!("perf_event_open: {error}"),
            },
        }
    }
}

fn setting(name: &str) -> Option<i32> {
    let text = std::fs::read_to_string(format!("/proc/sys/kernel/{name}")).ok()?;
    text.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason(errno: i32, paranoid: Option<i32>) -> String {
        Refusal::Event(io::Error::from_raw_os_error(errno)).reason_with(paranoid, None)
    }

    #[test]
    fn the_reason_says_how_to_permit_events() {
        for (errno, level) in [(libc::EACCES, 4), (libc::EPERM, 3)] {
            let reason = reason(errno, Some(level));
            assert!(reason.contains(&format!("perf_event_paranoid is {level}")), "{reason}");
            assert!(reason.contains("perf_event_paranoid=2") && reason.contains("CAP_PERFMON"), "{reason}");
        }
        for paranoid in [Some(2), Some(-1), None] {
            assert!(reason(libc::EPERM, paranoid).contains("container"), "{paranoid:?}");
        }
        assert!(reason(libc::ENOSYS, Some(2)).contains("no perf events"));
        assert!(reason(libc::EMFILE, None).contains("ulimit -n"));
        assert!(reason(libc::EINVAL, None).starts_with("perf_event_open: "));
    }

    #[test]
    fn the_reason_for_refused_memory_names_the_limits() {
        let refused = Refusal::Memory(io::Error::from_raw_os_error(libc::EPERM));
        let reason = refused.reason_with(Some(2), Some(516));
        assert!(reason.contains("perf_event_mlock_kb is 516") && reason.contains("ulimit -l"), "{reason}");
        assert!(refused.reason_with(None, None).contains("perf_event_mlock_kb;"));
    }
}
