//! A line with a JSON object for each launch, in order of creation. Fields are written one by one,
//! because the root of a recording may have a million waits. See `json` for bytes that are not
//! UTF-8. Instants are nanoseconds since the start of the recording.

use std::borrow::Cow;
use std::io::{self, Write};

use serde::Serialize;

use super::json_values::{exit, hex};
use crate::analyze::model::frames::{Frame, Frames};
use crate::analyze::model::launch::{Exec, FailedExec};
use crate::analyze::model::phases::PhaseTimes;
use crate::analyze::model::timeline::{returned_at, woken_at};
use crate::analyze::sites::callers::{CallSite, Callers, Detail};
use crate::analyze::{Forest, SliceRow, Waits, WakerRow};
use crate::event::Nanos;

/// Writes every launch. Processes that existed before the recording are not launches.
pub fn write(out: &mut dyn Write, forest: &Forest<'_>, waits: &Waits) -> io::Result<()> {
    let callers = Callers::find(forest, Detail::Line);
    for index in (0..forest.launches.len()).filter(|index| forest.launches[*index].is_launch()) {
        Object::write(out, |object| write_launch(object, forest, waits, callers.call_site_of(index), index))?;
        out.write_all(b"\n")?;
    }
    Ok(())
}

fn write_launch(
    object: &mut Object<'_>,
    forest: &Forest<'_>,
    waits: &Waits,
    call_site: Option<&CallSite>,
    index: usize,
) -> io::Result<()> {
    let launch = &forest.launches[index];
    object.value("id", launch.id.0)?;
    object.value("parent", launch.parent.get().map(|parent| parent.0))?;
    object.value("pid", launch.pid.get().map(|pid| pid.0))?;
    object.text("command", Some(&launch.command.label()))?;
    object.value("origin", launch.origin.name())?;
    object.time("start_ns", launch.start())?;
    object.time("end_ns", launch.end())?;
    object.value("mechanism", launch.mechanism.map(|mechanism| mechanism.name()))?;
    object.value("parent_rss_bytes", launch.parent_rss_bytes.get())?;
    object.array("execs", launch.execs.iter(), write_exec)?;
    object.array("failed_execs", forest.failed_execs(index), write_failed_exec)?;
    object.object("phases", Some(&launch.phases), write_phases)?;
    object.time("cpu_ns", launch.cpu.get())?;
    object.object("cpu_phases", Some(&launch.cpu_phases), write_phases)?;
    object.value("setup_closes", launch.counts.setup_closes)?;
    object.time("setup_close_ns", launch.counts.setup_close_span.get())?;
    object.array("waits", waits.of_launch(index), |object, wait| write_wait(object, forest, waits, wait))?;
    object.value("exit", exit(launch.outcome))?;
    object.object("caller", launch.best_stack(), |object, stack| {
        // If the call chain of a script is known, `native_stack` is that of its interpreter's
        // machine code.
        let native = launch.native_stack.filter(|_| launch.script_stack.is_some());
        object.value("language", call_site.map(|call_site| call_site.language.name()))?;
        object.text("file", call_site.and_then(|call_site| call_site.file.as_deref()))?;
        object.value("line", call_site.and_then(|call_site| call_site.line))?;
        object.text("function", call_site.and_then(|call_site| call_site.function.as_deref()))?;
        write_stack(object, "stack", forest.frames(Some(stack)))?;
        write_stack(object, "native_stack", forest.frames(native))
    })
}

fn write_exec(object: &mut Object<'_>, exec: &Exec<'_>) -> io::Result<()> {
    object.text("path", Some(exec.path()))?;
    object.value("argv", exec.arguments().map(String::from_utf8_lossy).collect::<Vec<_>>())?;
    if exec.arguments().any(|argument| std::str::from_utf8(argument).is_err()) {
        object.value("argv_hex", exec.arguments().map(hex).collect::<Vec<_>>())?;
    }
    object.value("argv_cut", exec.argv_cut)?;
    object.text("cwd", exec.cwd())?;
    object.text("interpreter", exec.interpreter())?;
    object.time("enter_ns", exec.enter.get())?;
    object.time("return_ns", exec.returned.get())?;
    object.time("load_ns", exec.load_end.get())?;
    object.value("load_opens", exec.load_opens.get())?;
    object.value("load_failed_opens", exec.load_failed_opens.get())?;
    object.value("load_cache", exec.load_cache)
}

fn write_failed_exec(object: &mut Object<'_>, failed: FailedExec<'_>) -> io::Result<()> {
    object.text("path", Some(failed.path))?;
    object.value("errno", failed.errno)?;
    object.value("enter_ns", failed.enter.0)?;
    object.value("return_ns", failed.returned.0)
}

fn write_phases(object: &mut Object<'_>, phases: &PhaseTimes) -> io::Result<()> {
    phases.iter().try_for_each(|(phase, span)| object.time(phase.name(), span))
}

fn write_wait(object: &mut Object<'_>, forest: &Forest<'_>, waits: &Waits, wait: &SliceRow) -> io::Result<()> {
    object.value("task", wait.task.0)?;
    object.value("start_ns", wait.off.0)?;
    object.time("end_ns", returned_at(wait))?;
    object.time("woken_ns", woken_at(wait))?;
    object.value("reason", wait.reason.name())?;
    object.value("syscall", wait.syscall)?;
    // Signed, as in the schema: `wait4(-1)` reads as -1, and JSON readers do not round it.
    object.value("argument", wait.argument.map(u64::cast_signed))?;
    let waited_for = wait.object.and_then(|object| forest.recording().objects.get(object.index()));
    object.object("object", waited_for, |object, waited| {
        object.value("kind", waited.kind.name())?;
        object.value("device", waited.device)?;
        object.value("inode", waited.inode)?;
        object.text("path", waited.path.map(|path| forest.recording().texts.get(path)))
    })?;
    object.object("waker", wait.waker, |object, waker| write_waker(object, forest, waits, waker))?;
    // Present only if an interrupt may have woken the thread instead of this waker.
    object.known("waker_in_doubt", (wait.is_waker_certain == Some(false)).then_some(true))
}

fn write_waker(object: &mut Object<'_>, forest: &Forest<'_>, waits: &Waits, waker: WakerRow) -> io::Result<()> {
    match waker {
        WakerRow::Task(task) => {
            object.value("kind", "task")?;
            object.value("task", task.0)?;
            object.value("launch", waits.launch_of(task).map(|index| forest.launches[index].id.0))
        }
        WakerRow::Other(pid, name) => {
            object.value("kind", "other")?;
            object.value("pid", pid.0)?;
            object.text("name", name.map(|name| forest.recording().texts.get(name)))
        }
        WakerRow::Interrupt => object.value("kind", "interrupt"),
    }
}

/// Writes a call chain, from the innermost frame outwards.
fn write_stack(object: &mut Object<'_>, name: &str, mut frames: Frames<'_>) -> io::Result<()> {
    object.array(name, frames.by_ref(), write_frame)?;
    object.value(&format!("{name}_truncated"), frames.is_truncated())
}

fn write_frame(object: &mut Object<'_>, frame: Frame<'_>) -> io::Result<()> {
    object.value("language", frame.language.name())?;
    object.text("function", frame.function)?;
    object.text("file", frame.file)?;
    object.value("line", frame.line)?;
    // Only frames of machine code have an ELF file and an address.
    object.known("module", frame.module.map(String::from_utf8_lossy))?;
    object.known("address", frame.address)?;
    object.known("is_inlined", frame.is_inlined.then_some(true))
}

struct Object<'o> {
    out: &'o mut dyn Write,
    is_empty: bool,
}

impl Object<'_> {
    fn write(out: &mut dyn Write, write_fields: impl FnOnce(&mut Object<'_>) -> io::Result<()>) -> io::Result<()> {
        out.write_all(b"{")?;
        write_fields(&mut Object { out: &mut *out, is_empty: true })?;
        out.write_all(b"}")
    }

    fn name(&mut self, name: &str) -> io::Result<()> {
        let comma = if std::mem::take(&mut self.is_empty) { "" } else { "," };
        write!(self.out, "{comma}\"{name}\":")
    }

    fn value(&mut self, name: &str, value: impl Serialize) -> io::Result<()> {
        self.name(name)?;
        Ok(serde_json::to_writer(&mut *self.out, &value)?)
    }

    fn known(&mut self, name: &str, value: Option<impl Serialize>) -> io::Result<()> {
        value.map_or(Ok(()), |value| self.value(name, value))
    }

    fn time(&mut self, name: &str, time: Option<Nanos>) -> io::Result<()> {
        self.value(name, time.map(|time| time.0))
    }

    /// Writes a string, and its bytes if they are not UTF-8.
    fn text(&mut self, name: &str, bytes: Option<&[u8]>) -> io::Result<()> {
        let text = bytes.map(String::from_utf8_lossy);
        self.value(name, &text)?;
        match (text, bytes) {
            (Some(Cow::Owned(_)), Some(bytes)) => self.value(&format!("{name}_hex"), hex(bytes)),
            _ => Ok(()),
        }
    }

    /// Writes an object, or `null` if `source` is unknown.
    fn object<T>(
        &mut self,
        name: &str,
        source: Option<T>,
        write_fields: impl FnOnce(&mut Object<'_>, T) -> io::Result<()>,
    ) -> io::Result<()> {
        match source {
            Some(source) => {
                self.name(name)?;
                Object::write(self.out, |object| write_fields(object, source))
            }
            None => self.value(name, ()),
        }
    }

    fn array<T>(
        &mut self,
        name: &str,
        items: impl Iterator<Item = T>,
        mut write_fields: impl FnMut(&mut Object<'_>, T) -> io::Result<()>,
    ) -> io::Result<()> {
        self.name(name)?;
        self.out.write_all(b"[")?;
        for (position, item) in items.enumerate() {
            if position > 0 {
                self.out.write_all(b",")?;
            }
            Object::write(self.out, |object| write_fields(object, item))?;
        }
        self.out.write_all(b"]")
    }
}
