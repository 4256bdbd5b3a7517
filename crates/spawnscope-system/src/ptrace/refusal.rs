//! Explains why the kernel refuses to trace a process.

use crate::procfs::{self, Status};
use spawnscope_data::event::Pid;

/// Returns the likely reason why PTRACE_SEIZE failed for a process of this user.
pub fn reason(process: Pid) -> String {
    let tracer = Status::read(process).and_then(|status| status.tracer);
    reason_for(tracer, procfs::yama_scope())
}

fn reason_for(tracer: Option<Pid>, yama_scope: Option<u8>) -> String {
    match (tracer, yama_scope) {
        (Some(Pid(tracer)), _) => {
            format!("process {tracer} already traces it, for example a debugger or strace that started spawnscope")
        }
        (None, Some(3..)) => "kernel.yama.ptrace_scope is 3: tracing is disabled until the next boot".to_owned(),
        (None, Some(2)) => "kernel.yama.ptrace_scope is 2: only root may trace; run spawnscope with sudo".to_owned(),
        (None, _) => {
            "a sandbox forbids it; in a container, allow the ptrace system call (docker run --cap-add SYS_PTRACE)"
                .to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_depends_on_the_tracer_and_on_yama() {
        assert!(reason_for(Some(Pid(7)), Some(2)).contains("process 7 already traces it"));
        assert!(reason_for(None, Some(3)).contains("ptrace_scope is 3"));
        assert!(reason_for(None, Some(2)).contains("sudo"));
        for scope in [None, Some(0), Some(1)] {
            assert!(reason_for(None, scope).contains("container"), "{scope:?}");
        }
    }
}
