//! Stress tests. Eight threads spawn, wait for and kill children concurrently, and leave nothing
//! behind. Four threads do so while another forks and spawns in the forked process. Each runs for
//! one second, or for VSPAWN_STRESS_SECONDS.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use vspawn::{Command, Prepared, Stdio};

use crate::support::state::{State, mappings};
use crate::support::{Test, kernel, test};

pub fn tests() -> Vec<Test> {
    vec![
        test("eight_threads_spawn_wait_and_kill_concurrently_and_leave_nothing_behind", eight_threads),
        test("a_fork_in_another_thread_and_spawns_in_the_forked_process_work", fork_in_another_thread),
    ]
}

fn duration() -> Duration {
    let seconds = std::env::var("VSPAWN_STRESS_SECONDS").ok();
    Duration::from_secs(seconds.map_or(1, |seconds| seconds.parse().expect("a number of seconds")))
}

struct Commands {
    works: Prepared,
    fails: Prepared,
    echoes: Command,
    sleeps: Prepared,
}

impl Commands {
    fn new() -> Commands {
        let mut sleeps = Command::new("/bin/sleep");
        sleeps.arg("1000").process_group(0).close_others(true);
        let mut works = Command::new("/bin/true");
        Commands {
            works: works.stdin(Stdio::null()).close_others(true).prepare().unwrap(),
            fails: Command::new("/nowhere").prepare().unwrap(),
            echoes: Command::new("/bin/cat"),
            sleeps: sleeps.prepare().unwrap(),
        }
    }

    /// Uses a child in one of eight ways, selected by `way`.
    fn run(&self, way: u64, seed: u64) {
        match way % 8 {
            0 => assert!(self.works.spawn().unwrap().wait().unwrap().success()),
            1 => assert!(self.works.spawn_nowait().unwrap().wait().unwrap().success()),
            2 => assert!(self.fails.spawn().is_err()),
            3 => assert!(self.fails.spawn_nowait().unwrap().wait().is_err()),
            4 => {
                let input = seed.to_string();
                let output = self.echoes.capture().input(input.as_bytes()).run().unwrap();
                assert_eq!(output.stdout, input.as_bytes());
            }
            5 => {
                let mut child = self.sleeps.spawn().unwrap();
                child.kill().unwrap();
                assert!(!child.wait().unwrap().success());
            }
            6 => {
                let mut child = self.sleeps.spawn_nowait().unwrap();
                child.kill().unwrap();
                assert!(!child.wait().unwrap().success());
            }
            _ => {
                let mut child = self.sleeps.spawn_nowait().unwrap();
                assert_eq!(child.wait_timeout(Duration::from_micros(seed % 300)).unwrap(), None);
                child.signal_group(libc::SIGTERM).unwrap();
                assert!(!child.wait().unwrap().success());
            }
        }
    }
}

fn eight_threads() {
    let commands = Commands::new();
    (0..8).for_each(|way| commands.run(way, 7));
    let (before, mapped) = (State::now(), mappings());
    let (end, spawns) = (Instant::now() + duration(), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for thread in 0..8u64 {
            let (commands, spawns) = (&commands, &spawns);
            scope.spawn(move || {
                let mut state = thread + 1;
                while Instant::now() < end {
                    // Knuth's generator: a different sequence for each thread, the same in each
                    // run.
                    state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                    commands.run(state >> 33, state >> 40);
                    spawns.fetch_add(1, Relaxed);
                }
            });
        }
    });
    assert!(spawns.load(Relaxed) > 30);
    assert_eq!(before, State::now());
    // Up to 64 cached stacks have two mappings each; the rest are malloc arenas of libc.
    assert!(mappings() <= mapped + 2 * 64 + 64, "{} mappings, {mapped} before", mappings());
}

/// A forked process inherits the stack cache and the locks in the state they had at the fork.
fn fork_in_another_thread() {
    const MIN_FORKS: u32 = 11;
    let commands = Commands::new();
    let end = Instant::now() + duration();
    std::thread::scope(|scope| {
        for thread in 0..4u64 {
            let commands = &commands;
            scope.spawn(move || {
                let mut seed = thread;
                while Instant::now() < end {
                    commands.run(seed, seed);
                    seed += 1;
                }
            });
        }
        let mut forks = 0;
        while Instant::now() < end || forks < MIN_FORKS {
            let status = kernel::run_in_fork(|| {
                let all_worked = (0..5).all(|_| {
                    let children = [commands.works.spawn(), commands.works.spawn_nowait()];
                    let mut statuses = children.into_iter().map(|child| child.and_then(|mut child| child.wait()));
                    statuses.all(|status| status.is_ok_and(|status| status.success()))
                        && commands.fails.spawn().is_err()
                });
                i32::from(!all_worked)
            });
            assert_eq!(status, 0);
            forks += 1;
        }
    });
}
