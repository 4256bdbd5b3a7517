//! A program of the lab, which is compiled while it measures: see `mod.rs`.

use std::io::{self, BufRead, Write};
use std::process::Command;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let ballast = vec![1u8; arguments[1].parse().unwrap()];
    let status = arguments[3].parse().ok();
    writeln!(io::stdout(), "{}", ballast.len()).unwrap();
    for line in io::stdin().lock().lines() {
        let count: u32 = line.unwrap().parse().unwrap();
        let launch = |_: &u32| Command::new(&arguments[2]).status().unwrap().code() == status;
        writeln!(io::stdout(), "{}", (0..count).filter(launch).count()).unwrap();
    }
    std::hint::black_box(&ballast);
}
