//! Compares mechanisms to start a process. Each round starts one child with each mechanism, so that
//! disturbances of the machine affect all mechanisms equally. Prints one JSON object, which
//! `benchmarks/spawn.py` reads.
//!
//! `spawn --child PATH [--rounds N] [--parent-mb N] [--open-files N] [--in-flight N] [--only LIST]`

#![expect(clippy::unwrap_used, reason = "a benchmark stops at anything unexpected")]

// The library does not export this module, so its file is included here.
#[path = "../../src/arch/mod.rs"]
#[allow(unused_imports, dead_code, reason = "the benchmark uses only a part of the module")]
mod arch;
mod mechanisms;
mod raw;

use std::cell::Cell;
use std::collections::VecDeque;
use std::fs::File;
use std::time::{Duration, Instant};

use mechanisms::{Fixture, MECHANISMS, Mechanism};
use raw::Raw;

struct Options {
    child: String,
    rounds: usize,
    parent_mb: usize,
    open_files: usize,
    in_flight: usize,
    only: Option<Vec<String>>,
}

fn parse_options() -> Options {
    let mut options =
        Options { child: String::new(), rounds: 100, parent_mb: 0, open_files: 0, in_flight: 0, only: None };
    let mut args = std::env::args().skip(1);
    while let Some(flag) = args.next() {
        if flag == "--bench" {
            continue; // cargo bench adds it
        }
        let value = args.next().unwrap_or_else(|| panic!("{flag} needs a value"));
        match flag.as_str() {
            "--child" => options.child = value,
            "--rounds" => options.rounds = value.parse().unwrap(),
            "--parent-mb" => options.parent_mb = value.parse().unwrap(),
            "--open-files" => options.open_files = value.parse().unwrap(),
            "--in-flight" => options.in_flight = value.parse().unwrap(),
            "--only" => options.only = Some(value.split(',').map(str::to_owned).collect()),
            _ => panic!("unknown option {flag}"),
        }
    }
    assert!(!options.child.is_empty(), "--child PATH is required: a program that exits immediately");
    options
}

fn main() {
    let options = parse_options();
    // `vec![1; _]` writes every page, so that all of this memory is resident and has page tables.
    let ballast: Vec<u8> = vec![1; options.parent_mb << 20];
    let files: Vec<File> = (0..options.open_files).map(|_| File::open("/dev/null").unwrap()).collect();
    let mut fixture = Fixture::new(&options.child);
    if options.in_flight > 0 {
        measure_in_flight(&mut fixture, &options);
    } else {
        measure_interleaved(&mut fixture, &options);
    }
    assert_eq!((ballast.len(), files.len()), (options.parent_mb << 20, options.open_files));
}

/// The times of one mechanism.
#[derive(Default)]
struct Samples {
    /// Nanoseconds from the start to the end of the wait, for each child.
    total: Vec<u64>,
    /// Nanoseconds in the starting call, for each child.
    call: Vec<u64>,
    /// CPU time in user space and in the kernel, of this process and of all children.
    user: Duration,
    system: Duration,
}

fn measure_interleaved(fixture: &mut Fixture, options: &Options) {
    let mut selected: Vec<(&str, Mechanism)> = MECHANISMS.to_vec();
    if let Some(only) = &options.only {
        selected.retain(|(name, _)| only.iter().any(|other| other == name));
    }
    let mut samples: Vec<Samples> = selected.iter().map(|_| Samples::default()).collect();
    for _ in 0..3 {
        for (_, mechanism) in &selected {
            mechanism(fixture);
        }
    }
    let mut order: Vec<usize> = (0..selected.len()).collect();
    let mut random = Random(1);
    for _ in 0..options.rounds {
        // A start that follows a slow one finds cold caches, so each round has a new order.
        random.shuffle(&mut order);
        for &index in &order {
            let cpu = cpu_time();
            let begin = Instant::now();
            let call = selected[index].1(fixture);
            let total = begin.elapsed();
            let (user, system) = cpu_time();
            let samples = &mut samples[index];
            samples.total.push(total.as_nanos() as u64);
            samples.call.push(call.as_nanos() as u64);
            samples.user += user - cpu.0;
            samples.system += system - cpu.1;
        }
    }
    let rows: Vec<String> = selected.iter().zip(&samples).map(|((name, _), samples)| samples.json(name)).collect();
    println!("{{{}}}", rows.join(","));
}

/// A xorshift generator with a fixed seed, so that every run uses the same orders.
struct Random(u64);

impl Random {
    fn shuffle(&mut self, order: &mut [usize]) {
        for last in (1..order.len()).rev() {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            order.swap(last, (self.0 % (last as u64 + 1)) as usize);
        }
    }
}

impl Samples {
    fn json(&self, name: &str) -> String {
        let (user, system) = (self.user.as_secs_f64(), self.system.as_secs_f64());
        let (total, call) = (&self.total, &self.call);
        format!(r#""{name}":{{"total_ns":{total:?},"call_ns":{call:?},"user_s":{user},"system_s":{system}}}"#)
    }
}

/// Returns the user and system time of this process and of its reaped children.
fn cpu_time() -> (Duration, Duration) {
    let mut sum = (Duration::ZERO, Duration::ZERO);
    for who in [libc::RUSAGE_SELF, libc::RUSAGE_CHILDREN] {
        // SAFETY: a `rusage` of zeros is valid, and the kernel fills it.
        let usage = unsafe {
            let mut usage: libc::rusage = std::mem::zeroed();
            libc::getrusage(who, &raw mut usage);
            usage
        };
        sum.0 += duration(usage.ru_utime);
        sum.1 += duration(usage.ru_stime);
    }
    sum
}

fn duration(time: libc::timeval) -> Duration {
    Duration::new(time.tv_sec as u64, time.tv_usec as u32 * 1000)
}

/// Measures how many children per second one thread starts while it keeps `options.in_flight` of
/// them running. Blocks of the three mechanisms alternate.
fn measure_in_flight(fixture: &mut Fixture, options: &Options) {
    const BLOCKS: usize = 20;
    let mut rates: [Vec<f64>; 3] = [Vec::new(), Vec::new(), Vec::new()];
    let (count, width) = (options.rounds / BLOCKS, options.in_flight);
    let raws: Vec<Raw> = (0..=width).map(|_| Raw::new(&options.child)).collect();
    let turn = Cell::new(0);
    let next_raw = || {
        turn.set((turn.get() + 1) % raws.len());
        raws[turn.get()].clone_nowait()
    };
    for _ in 0..BLOCKS {
        rates[0].push(rate(count, width, || fixture.raw.clone(), raw::wait_pid));
        rates[1].push(rate(count, width, next_raw, raw::wait_pid));
        rates[2].push(rate(
            count,
            width,
            || fixture.prepared.spawn_nowait().unwrap(),
            |mut child| assert!(child.wait().unwrap().success()),
        ));
    }
    let [raw_clone, raw_clone_nowait, vspawn_nowait] = rates;
    println!(
        r#"{{"raw_clone":{raw_clone:?},"raw_clone_nowait":{raw_clone_nowait:?},"vspawn_nowait":{vspawn_nowait:?}}}"#
    );
}

/// Starts `count` children, at most `in_flight` at a time, and returns the starts per second.
fn rate<T>(count: usize, in_flight: usize, start: impl Fn() -> T, wait: impl Fn(T)) -> f64 {
    let begin = Instant::now();
    let mut running = VecDeque::with_capacity(in_flight);
    for _ in 0..count {
        if running.len() == in_flight {
            wait(running.pop_front().unwrap());
        }
        running.push_back(start());
    }
    running.into_iter().for_each(wait);
    count as f64 / begin.elapsed().as_secs_f64()
}
