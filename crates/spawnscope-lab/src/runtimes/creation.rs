//! How a process creates another one, as a tracer sees it.

use std::fs;
use std::path::Path;
use std::sync::mpsc::{self, Sender};
use std::thread;
use std::time::{Duration, Instant};

use spawnscope_data::event::Pid;
use spawnscope_system::ptrace::{Creation, Event, Options, Registers, Stop, Tracer};

use super::parent::RuntimeParent;
use crate::LabError;

/// Longer than any runtime needs for a launch.
const LIMIT: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(1);

impl RuntimeParent {
    /// Makes one launch, and returns how the process was created: `fork`, `vfork`, `clone`,
    /// `posix_spawn`, and the program between both, if there is one. `program`: what is launched.
    pub fn creation(&self, program: &Path) -> Result<String, LabError> {
        // Some runtimes first try what the kernel offers.
        self.launch(1)?;
        // A tracer is a thread. When it ends, the kernel detaches it from all that it traces.
        let pid = self.pid();
        thread::scope(|scope| {
            let (ready, is_ready) = mpsc::channel();
            let tracer = scope.spawn(move || observe(pid, program, &ready));
            let is_traced = is_ready.recv().is_ok();
            let launched = if is_traced { self.launch(1).map(|_| ()) } else { Ok(()) };
            let observed = tracer.join().map_err(|_| LabError::Invalid("the tracer failed".to_owned()))?;
            launched.and(observed)
        })
    }
}

/// Traces a process until a new process of it has executed the program. Sends a message to `ready`
/// once it traces. Returns how the new process was created. The creator may be preempted before it
/// stops, and then the new process stops at its exec first.
fn observe(pid: Pid, program: &Path, ready: &Sender<()>) -> Result<String, LabError> {
    let mut tracer = Tracer::new();
    let threads = fs::read_dir(format!("/proc/{}/task", pid.0)).map_err(LabError::doing("read the threads"))?;
    let threads = threads.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    for thread in threads.collect::<Vec<i32>>() {
        tracer.seize(Pid(thread), Options::CREATION | Options::EXEC).map_err(LabError::doing("trace a runtime"))?;
    }
    let _ = ready.send(());
    let (mut found, mut helper, mut is_executed) = (None, String::new(), false);
    let end = Instant::now() + LIMIT;
    while Instant::now() < end {
        let Some(event) = tracer.next_event() else {
            thread::sleep(PAUSE);
            continue;
        };
        let Event::Stopped(thread, stop) = event else { continue };
        match stop {
            Stop::Created { how: Creation::Fork | Creation::Vfork, .. } if found.is_none() => {
                found = Some(name_of(stop, thread));
            }
            Stop::Exec => {
                let executed = fs::read_link(format!("/proc/{}/exe", thread.0)).unwrap_or_default();
                if executed == program {
                    is_executed = true;
                } else {
                    let name = executed.file_name().unwrap_or_default().to_string_lossy().into_owned();
                    helper = format!(" of {name}");
                }
            }
            _ => {}
        }
        if let Some(name) = found.filter(|_| is_executed) {
            return Ok(name.to_owned() + &helper);
        }
        tracer.pass_on(thread, stop);
    }
    Err(LabError::Invalid("no new process executed the program".to_owned()))
}

/// Returns the name of the call that a thread is in. posix_spawn gives the new process a stack of
/// its own.
fn name_of(stop: Stop, thread: Pid) -> &'static str {
    let call = Registers::read(thread).map(|registers| registers.system_call());
    match (stop, call) {
        (Stop::Created { how: Creation::Fork, .. }, _) => "fork",
        #[cfg(target_arch = "x86_64")]
        (_, Ok((libc::SYS_vfork, _))) => "vfork",
        (_, Ok((libc::SYS_clone, [_, 0]))) => "clone",
        _ => "posix_spawn",
    }
}
