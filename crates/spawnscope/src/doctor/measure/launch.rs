//! What a launch costs: a process that only exits, a static program, a dynamically linked one; medians of launches that take turns.

use std::time::Duration;

use super::folder::Folder;
use super::image::{Image, write_static};
use super::median;
use super::small::{self, MOST_TIMES, Work};
use crate::collect::now;
use crate::doctor::checks::loader_environment;
use crate::doctor::machine::Machine;
use crate::event::Nanos;

/// No round begins later than this after the first.
const LAST_ROUND: Duration = Duration::from_millis(300);
/// How long all of it may take.
const LIMIT: Duration = Duration::from_millis(1000);
/// Programs that do nothing, whichever is there.
const DYNAMIC: [&str; 3] = ["/bin/true", "/usr/bin/true", "/run/current-system/sw/bin/true"];

/// From the parent's call to the end of its wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LaunchCost {
    /// A process that exits at once.
    pub fork: Option<Nanos>,
    /// A static program of a page that exits at once.
    pub exec_static: Option<Nanos>,
    /// `true`, in the user's environment.
    pub exec_dynamic: Option<Nanos>,
}

pub(super) fn measure(machine: &Machine, folder: Option<&Folder>) -> LaunchCost {
    let tiny = folder.map(|folder| folder.path().join("static"));
    let tiny = tiny.filter(|path| write_static(path).is_ok_and(|written| written));
    let tiny = tiny.and_then(|path| Image::new(&path, machine.environment()));
    let dynamic = dynamic_program(machine);
    let measured = small::measure(LIMIT, |board| {
        let kinds = [
            Some(Work::Exit),
            tiny.as_ref().map(Work::Execute),
            dynamic.as_ref().map(Work::Execute),
        ];
        // Not of the first ones: files are cold then, and may be scanned.
        for work in kinds.into_iter().flatten() {
            small::launch(work);
        }
        let until = now().0.saturating_add(LAST_ROUND.as_nanos() as u64);
        for _ in (0..MOST_TIMES).take_while(|_| now().0 < until) {
            for (work, series) in kinds.into_iter().zip(&board.series) {
                if let Some(time) = work.and_then(small::launch) {
                    series.add(time);
                }
            }
        }
        Some(())
    });
    let Ok(measured) = measured else {
        return LaunchCost::default();
    };
    let [fork, exec_static, exec_dynamic, _] = &measured.board.series;
    LaunchCost {
        fork: median(fork.times()),
        exec_static: median(exec_static.times()),
        exec_dynamic: median(exec_dynamic.times()),
    }
}

/// The same dynamically linked program with the loader left to itself, where the environment asks it for something.
pub(super) fn without_loader_variables(machine: &Machine) -> Option<Nanos> {
    loader_environment::variables(machine).next()?;
    let image = dynamic_program(&machine.clone().without_variables(loader_environment::is_loaders))?;
    let measured = small::measure(LIMIT / 2, |board| {
        small::launch(Work::Execute(&image))?;
        let until = now().0.saturating_add(LAST_ROUND.as_nanos() as u64 / 2);
        for _ in (0..MOST_TIMES).take_while(|_| now().0 < until) {
            board.series[0].add(small::launch(Work::Execute(&image))?);
        }
        Some(())
    });
    median(measured.ok()?.board.series[0].times())
}

fn dynamic_program(machine: &Machine) -> Option<Image> {
    let path = DYNAMIC.into_iter().find(|path| machine.is_executable(path))?;
    Image::new(&machine.path(path), machine.environment())
}
