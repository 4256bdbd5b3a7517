//! The look at all followed threads when the recording ends: what each was doing then, which nothing tells afterwards. The
//! program that looks is `last.h`.

use std::io::Read;

use libbpf_rs::{Iter, Link, ProgramMut};

use crate::event::Missing;

/// The program, an iterator over all threads.
pub(super) const PROGRAM: &str = "on_end";
/// What is unknown without it.
pub(super) const WITHOUT: &str = "what threads were doing when the recording ended";

/// Makes the look possible; it is taken when it is asked for.
pub(super) fn attach(program: &ProgramMut<'_>) -> Result<Link, Missing> {
    program.attach().map_err(|error| Missing {
        what: format!("an iterator over all threads ({error})"),
        effect: WITHOUT.to_owned(),
    })
}

/// Has every followed thread told, as one record each in the ring buffer.
pub(super) fn look(link: &Link) -> std::io::Result<()> {
    let mut threads = Iter::new(link).map_err(std::io::Error::other)?;
    // The program writes nothing here: the end comes when it has gone over all of them.
    let mut nothing = [0; 64];
    while threads.read(&mut nothing)? > 0 {}
    Ok(())
}
