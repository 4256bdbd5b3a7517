//! What creating a process costs on the recorded machine, as measured before the recording. On a
//! busy machine, the measured time includes a wait for a CPU, which is usually some milliseconds:
//! the time slice of another process.

use spawnscope_data::event::Constant;
use spawnscope_data::rows::Recording;

/// Maximum time of a fork by a small process on any machine, in nanoseconds. Larger values come
/// from large processes or from a busy machine.
pub const MAX_FORK_CREATE: f64 = 200_000.0;
/// Maximum time of a vfork on any machine, in nanoseconds.
pub const MAX_VFORK_CREATE: f64 = 100_000.0;
/// With its exit and the reaping, a process takes up to about twice as long as its creation.
const WITH_EXIT: f64 = 2.0;

/// Returns what a creation, or a creation with an exit, costs in nanoseconds. `None` if it was not
/// measured.
pub fn creation_cost(recording: &Recording, what: Constant) -> Option<f64> {
    let max = match what {
        Constant::ForkCreate => MAX_FORK_CREATE,
        Constant::ForkExit => WITH_EXIT * MAX_FORK_CREATE,
        Constant::VforkCreate => MAX_VFORK_CREATE,
        Constant::VforkExit => WITH_EXIT * MAX_VFORK_CREATE,
        _ => f64::INFINITY,
    };
    Some(recording.measured_ns(what)?.min(max))
}

#[cfg(test)]
mod tests {
    use super::*;
    use spawnscope_data::event::Calibration;

    #[test]
    fn a_time_slice_of_another_process_is_no_cost_of_a_creation() {
        let costs = |[create, exit]: [f64; 2]| {
            let calibration = [(Constant::ForkCreate, create), (Constant::ForkExit, exit)]
                .map(|(what, ns)| Calibration { what, ns, low_ns: None, high_ns: None })
                .to_vec();
            let recording = Recording { calibration, ..Recording::default() };
            [Constant::ForkCreate, Constant::ForkExit, Constant::VforkExit].map(|what| creation_cost(&recording, what))
        };
        assert_eq!(costs([150_000.0, 290_000.0]), [Some(150_000.0), Some(290_000.0), None]);
        assert_eq!(costs([3_990_000.0, 4_350_000.0]), [Some(200_000.0), Some(400_000.0), None]);
    }
}
