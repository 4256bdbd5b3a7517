//! Maintains the map of executables that are interpreters, and the memory layout of each
//! interpreter. The interpreters that are likely to run are stored before the command is released,
//! any other interpreter once a process runs it.

use std::fs::File;
use std::os::unix::fs::MetadataExt;

use libbpf_rs::{MapCore, MapFlags, MapHandle, Object};
use zerocopy::{Immutable, IntoBytes};

use super::{failed, map_handle};
use crate::callers::{self, Layout};
use crate::inode::{self, kernel_device};
use crate::wire::*;
use crate::{CollectError, Settings};
use spawnscope_data::event::Pid;

/// Returns the interpreters that are likely to run, with their layouts. Does not need the maps.
pub(super) fn likely_interpreters(settings: &Settings) -> Vec<(WireExecutable, Layout)> {
    if !settings.script_lines {
        return Vec::new();
    }
    let mut found: Vec<(WireExecutable, Layout)> = Vec::new();
    for path in callers::likely_interpreters(settings.command.as_deref()) {
        let Some((executable, file)) = File::open(path).ok().and_then(|file| Some((executable(&file)?, file))) else {
            continue;
        };
        if found.iter().all(|(known, _)| *known != executable) {
            found.extend(callers::layout_of(&file, None).map(|layout| (executable, layout)));
        }
    }
    found
}

/// Returns the identity that the kernel uses for an open file. On some file systems, `stat` reports
/// other numbers.
fn executable(file: &File) -> Option<WireExecutable> {
    let found = file.metadata().ok()?;
    found.is_file().then(|| WireExecutable { inode: found.ino(), device: kernel_device(found.dev()), reserved: 0 })
}

/// The maps of executables and layouts.
pub(super) struct Interpreters {
    executables: MapHandle,
    bash: Layouts<WireBash>,
    dash: Layouts<WireDash>,
    python: Layouts<WirePython>,
    perl: Layouts<WirePerl>,
    make: Layouts<WireMake>,
    zsh: Layouts<WireZsh>,
}

impl Interpreters {
    /// Fills the maps with the interpreters that are likely to run.
    pub(super) fn new(object: &Object, likely: Vec<(WireExecutable, Layout)>) -> Result<Interpreters, CollectError> {
        let mut interpreters = Interpreters {
            executables: map_handle(object, "executables")?,
            bash: Layouts::new(object, "bash_layouts")?,
            dash: Layouts::new(object, "dash_layouts")?,
            python: Layouts::new(object, "python_layouts")?,
            perl: Layouts::new(object, "perl_layouts")?,
            make: Layouts::new(object, "make_layouts")?,
            zsh: Layouts::new(object, "zsh_layouts")?,
        };
        for (executable, layout) in likely {
            interpreters.store(&executable, Some(&layout))?;
        }
        Ok(interpreters)
    }

    /// Examines an executable that a process runs, and stores the result.
    pub(super) fn add(&mut self, new: &WireNewExecutable) -> Result<(), CollectError> {
        let pid = i32::try_from(new.pid).ok().filter(|&pid| pid != 0).map(Pid);
        match pid.and_then(|pid| open_executable(pid, &new.executable)) {
            Some(file) => self.store(&new.executable, callers::layout_of(&file, pid).as_ref()),
            // The process is gone, or already runs another program. The next process that runs the
            // executable reports it again.
            None => match self.executables.delete(new.executable.as_bytes()) {
                Err(error) if error.kind() != libbpf_rs::ErrorKind::NotFound => {
                    Err(failed("forget an executable", &error))
                }
                _ => Ok(()),
            },
        }
    }

    fn store(&mut self, executable: &WireExecutable, layout: Option<&Layout>) -> Result<(), CollectError> {
        let found = match layout {
            Some(Layout::Bash(layout)) => self.bash.slot(*layout)?.map(|slot| (INTERPRETER_BASH, slot)),
            Some(Layout::Dash(layout)) => self.dash.slot(*layout)?.map(|slot| (INTERPRETER_DASH, slot)),
            Some(Layout::Python(layout)) => self.python.slot(*layout)?.map(|slot| (INTERPRETER_PYTHON, slot)),
            Some(Layout::Perl(layout)) => self.perl.slot(*layout)?.map(|slot| (INTERPRETER_PERL, slot)),
            Some(Layout::Make(layout)) => self.make.slot(*layout)?.map(|slot| (INTERPRETER_MAKE, slot)),
            Some(Layout::Zsh(layout)) => self.zsh.slot(*layout)?.map(|slot| (INTERPRETER_ZSH, slot)),
            None => None,
        };
        let (kind, layout_index) = found.unwrap_or((INTERPRETER_NONE, 0));
        let interpreter = WireInterpreter { kind, layout_index };
        self.executables
            .update(executable.as_bytes(), interpreter.as_bytes(), MapFlags::ANY)
            .map_err(|error| failed("store an interpreter", &error))
    }
}

/// Opens the file that a process executes, if it is still the reported executable.
fn open_executable(pid: Pid, reported: &WireExecutable) -> Option<File> {
    let file = File::open(format!("/proc/{}/exe", pid.0)).ok()?;
    inode::has_identity(&file, reported.inode, reported.device)?.then_some(file)
}

/// The layouts of one kind of interpreter, each stored once.
struct Layouts<T> {
    map: MapHandle,
    stored: Vec<T>,
}

impl<T: IntoBytes + Immutable + PartialEq> Layouts<T> {
    fn new(object: &Object, name: &str) -> Result<Layouts<T>, CollectError> {
        Ok(Layouts { map: map_handle(object, name)?, stored: Vec::new() })
    }

    /// Returns the slot of a layout, and stores the layout there if it is new; `None` if there is
    /// no free slot.
    fn slot(&mut self, layout: T) -> Result<Option<u32>, CollectError> {
        let known = self.stored.iter().position(|stored| *stored == layout);
        let slot = known.unwrap_or(self.stored.len()) as u32;
        if slot >= LAYOUTS {
            return Ok(None);
        }
        if known.is_none() {
            self.map
                .update(&slot.to_ne_bytes(), layout.as_bytes(), MapFlags::ANY)
                .map_err(|error| failed("store an interpreter's layout", &error))?;
            self.stored.push(layout);
        }
        Ok(Some(slot))
    }
}
