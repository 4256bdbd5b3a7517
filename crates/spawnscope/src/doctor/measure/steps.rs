//! Single steps of launches: a system call, a look-up in a directory of PATH, a move to a control group.

use std::fs;
use std::path::PathBuf;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use super::median;
use crate::collect::now;
use crate::doctor::machine::Machine;
use crate::event::Nanos;

const CALLS: u64 = 200;
const ROUNDS: usize = 9;
/// Names that are looked up in a directory; each only once, since the kernel remembers that it found nothing.
const NAMES: usize = 9;
/// How long all directories together may take.
const PATIENCE: Duration = Duration::from_millis(300);
const MOVES: usize = 5;

/// What a system call takes that does nothing.
pub(super) fn system_call() -> Option<Nanos> {
    let round = || {
        let began = now();
        for _ in 0..CALLS {
            // SAFETY: a plain system call without arguments.
            unsafe { libc::syscall(libc::SYS_getppid) };
        }
        Nanos(now().since(began).0 / CALLS)
    };
    median((0..ROUNDS).map(|_| round()).collect())
}

/// What it takes to find nothing in each directory of PATH. A thread that hangs in one is left behind.
pub(super) fn lookups(machine: &Machine) -> Vec<(PathBuf, Option<Nanos>)> {
    let until = Instant::now() + PATIENCE;
    let mut lookups: Vec<(PathBuf, Option<Nanos>)> = Vec::new();
    for directory in machine.search_path() {
        if !directory.is_absolute() || lookups.iter().any(|(known, _)| *known == directory) {
            continue;
        }
        let (tell, told) = mpsc::channel();
        let place = machine.path(&directory);
        thread::spawn(move || {
            let times = place.is_dir().then(|| {
                let names = (0..NAMES).map(|number| place.join(format!("spawnscope-{}-{number}", std::process::id())));
                names
                    .map(|name| {
                        let began = now();
                        let _ = fs::metadata(name);
                        now().since(began)
                    })
                    .collect()
            });
            // Nobody waits any more, then.
            let _ = tell.send(times);
        });
        match told.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(None) => {}
            // A slow file system is slow each time; a busy machine adds to some.
            Ok(Some(times)) => lookups.push((directory, Vec::into_iter(times).min())),
            Err(_) => lookups.push((directory, None)),
        }
    }
    lookups
}

/// What the kernel takes to move a process to another control group: mostly waiting for all CPUs to notice, which it does also
/// when the group is the one that the process is in. Only who may move processes can know.
pub(super) fn migration(machine: &Machine) -> Option<Nanos> {
    let groups = machine.text("/proc/self/cgroup")?;
    let group = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let roots = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];
    let file = roots
        .iter()
        .map(|root| machine.path(format!("{root}/{group}/cgroup.procs")))
        .find(|file| file.exists())?;
    let times: Option<Vec<Nanos>> = (0..MOVES)
        .map(|_| {
            let began = now();
            fs::write(&file, "0").ok()?;
            Some(now().since(began))
        })
        .collect();
    median(times?)
}
