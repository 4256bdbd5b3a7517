//! Reports what every followed thread is doing when the recording ends, because no later event will
//! show it. The BPF program is in `last.h`.

use std::io::Read;

use libbpf_rs::{Iter, Link, ProgramMut};

use spawnscope_data::event::Missing;

/// The BPF program, an iterator over all threads.
pub(super) const PROGRAM: &str = "on_end";
/// What is unknown without that program.
pub(super) const WITHOUT: &str = "what threads were doing when the recording ended";

/// Attaches the program. `report_threads` runs it.
pub(super) fn attach(program: &ProgramMut<'_>) -> Result<Link, Missing> {
    program.attach().map_err(|error| Missing {
        what: format!("an iterator over all threads ({error})"),
        effect: WITHOUT.to_owned(),
    })
}

/// Reports every followed thread, as one record each in the ring buffer.
pub(super) fn report_threads(link: &Link) -> std::io::Result<()> {
    let mut threads = Iter::new(link).map_err(std::io::Error::other)?;
    // The program writes no data to the iterator's file. The end of the file means that it has
    // visited all threads.
    let mut nothing = [0; 64];
    while threads.read(&mut nothing)? > 0 {}
    Ok(())
}
