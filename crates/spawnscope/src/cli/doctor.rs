//! `spawnscope doctor`: finds what makes launches slow on this machine.

use std::io;

use anyhow::{Context, Result};

use super::args::DoctorArguments;
#[cfg(feature = "parquet")]
use super::dataset::add_to;
#[cfg(feature = "parquet")]
use super::examinations;
use super::exit::Status;
use super::{exit, identity, output};
use crate::doctor::{Check, Machine, Measured, checks, examine};
use crate::present::doctor;

pub fn run(arguments: &DoctorArguments) -> Result<Status> {
    let width = output::width(&io::stdout());
    if arguments.list {
        let listed = if arguments.json { doctor::list_json(&checks::ALL) } else { doctor::list(&checks::ALL, width) };
        output::print(&listed, "findings")?;
        return Ok(Status::SUCCESS);
    }
    let mut wanted: Vec<&Check> = checks::ALL.iter().collect();
    wanted.retain(|check| arguments.checks.is_empty() || arguments.checks.iter().any(|id| id == check.id));
    wanted.retain(|check| arguments.except.iter().all(|id| id != check.id));
    let machine = Machine::real(identity::decide(identity::Choice::default())?.identity)
        .context("failed to find the working directory")?;
    #[cfg(feature = "parquet")]
    arguments.output.as_deref().map(examinations::check).transpose()?;
    let diagnosis = examine(&machine, &Measured::measure(&machine), &wanted);
    let text = if arguments.json {
        doctor::json(&diagnosis)
    } else {
        output::with_glyphs(doctor::render(&diagnosis, arguments.full, width))
    };
    output::print(&text, "findings")?;
    #[cfg(feature = "parquet")]
    if let Some(root) = &arguments.output {
        add_to(root, |directory| examinations::add(directory, &diagnosis, arguments.host.as_deref()))?;
    }
    Ok(if diagnosis.has_problems() { Status::Code(exit::PROBLEMS) } else { Status::SUCCESS })
}
