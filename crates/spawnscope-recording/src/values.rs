//! Encodes rows as SQLite values, in the column order of `tables`. The writer binds these values, and checksums are computed from them. No
//! SQL here.

use rusqlite::types::ValueRef;

use spawnscope_data::event::{Calibration, Language, LeftCpu, Mechanism, Missing, Nanos, ObjectKind};

use super::intern::{NewObject, NewText};
use spawnscope_data::rows::{
    ExecRow, FailedExecRow, FrameId, FrameRow, LaunchRow, ObjectRef, Origin, SampleRow, SliceRow, StackId, StackRow,
    TextId, ThreadRow, WakerRow,
};

pub(super) fn of_missing(missing: &Missing) -> [ValueRef<'_>; 2] {
    [word(&missing.what), word(&missing.effect)]
}

pub(super) fn of_calibration(constant: &Calibration) -> [ValueRef<'_>; 4] {
    let real = |value: Option<f64>| value.map_or(ValueRef::Null, ValueRef::Real);
    [
        word(constant.what.name()),
        ValueRef::Real(constant.ns),
        real(constant.low_ns),
        real(constant.high_ns),
    ]
}

pub(super) fn of_loss(kind: &str, events: u64) -> [ValueRef<'_>; 2] {
    [word(kind), unsigned(events)]
}

pub(super) fn of_text(new: &NewText) -> [ValueRef<'_>; 2] {
    [text(new.id), ValueRef::Blob(&new.bytes)]
}

pub(super) fn of_launch(row: &LaunchRow) -> [ValueRef<'static>; 25] {
    [
        unsigned(row.id.0),
        optional(row.parent, |parent| unsigned(parent.0)),
        optional(row.parent_task, |task| unsigned(task.0)),
        optional(row.pid, |pid| integer(pid.0)),
        number(&Origin::ALL, row.origin),
        optional(row.mechanism, |mechanism| number(&Mechanism::ALL, mechanism)),
        nanos(row.create),
        nanos(row.created),
        nanos(row.first_run),
        nanos(row.exit),
        nanos(row.zombie),
        nanos(row.reaped),
        optional(row.wait_status, integer),
        optional(row.parent_rss_bytes, unsigned),
        optional(row.parent_table_bytes, unsigned),
        nanos(row.exit_cpu),
        nanos(row.cpu),
        optional(row.name, text),
        optional(row.setup_closes, integer),
        nanos(row.setup_close_span),
        nanos(row.prepare),
        nanos(row.parent_tidied),
        optional(row.parent_faults, integer),
        optional(row.script_stack, stack),
        optional(row.native_stack, stack),
    ]
}

pub(super) fn of_exec(row: &ExecRow) -> [ValueRef<'static>; 16] {
    [
        unsigned(row.launch.0),
        nanos(row.enter),
        nanos(row.returned),
        nanos(row.load_end),
        optional(row.has_loader, integer),
        nanos(row.enter_cpu),
        nanos(row.return_cpu),
        nanos(row.load_cpu),
        text(row.path),
        optional(row.interpreter, text),
        text(row.argv),
        unsigned(row.argv_bytes),
        optional(row.cwd, text),
        optional(row.load_opens, integer),
        optional(row.load_failed_opens, integer),
        optional(row.load_cache, integer),
    ]
}

pub(super) fn of_failed_exec(row: &FailedExecRow) -> [ValueRef<'static>; 5] {
    [
        unsigned(row.launch.0),
        unsigned(row.enter.0),
        unsigned(row.returned.0),
        text(row.path),
        integer(row.errno),
    ]
}

pub(super) fn of_thread(row: &ThreadRow) -> [ValueRef<'static>; 7] {
    [
        unsigned(row.task.0),
        unsigned(row.launch.0),
        optional(row.creator, |creator| unsigned(creator.0)),
        integer(row.tid.0),
        unsigned(row.created.0),
        nanos(row.ended),
        nanos(row.cpu),
    ]
}

pub(super) fn of_frame(id: FrameId, row: &FrameRow) -> [ValueRef<'static>; 8] {
    [
        frame(id),
        number(&Language::ALL, row.language),
        optional(row.function, text),
        optional(row.file, text),
        optional(row.line, integer),
        optional(row.module, text),
        optional(row.address, |address| integer(address.cast_signed())),
        integer(row.is_inlined),
    ]
}

pub(super) fn of_stack(id: StackId, row: &StackRow) -> [ValueRef<'static>; 4] {
    [
        stack(id),
        frame(row.frame),
        optional(row.caller, stack),
        integer(row.is_truncated),
    ]
}

pub(super) fn of_object(new: &NewObject) -> [ValueRef<'static>; 5] {
    let NewObject { reference, row } = new;
    [
        object(*reference),
        number(&ObjectKind::ALL, row.kind),
        integer(row.device),
        integer(row.inode.cast_signed()),
        optional(row.path, text),
    ]
}

pub(super) fn of_slice(row: &SliceRow) -> [ValueRef<'static>; 13] {
    let (waker, waker_text) = match row.waker {
        None => (ValueRef::Null, ValueRef::Null),
        Some(WakerRow::Task(task)) => (unsigned(task.0), ValueRef::Null),
        Some(WakerRow::Interrupt) => (integer(0), ValueRef::Null),
        Some(WakerRow::Other(pid, name)) => {
            let seen = (pid.0 != 0).then(|| -i64::from(pid.0));
            (optional(seen, integer), optional(name, text))
        }
    };
    [
        unsigned(row.task.0),
        unsigned(row.off.0),
        nanos(row.on_span),
        nanos(row.off_span),
        nanos(row.wake_span),
        number(&LeftCpu::ALL, row.reason),
        optional(row.syscall, integer),
        optional(row.argument, |argument| integer(argument.cast_signed())),
        waker,
        waker_text,
        optional(row.object, object),
        integer(row.calls),
        optional(row.waker, |_| integer(row.is_waker_certain)),
    ]
}

pub(super) fn of_sample(row: &SampleRow) -> [ValueRef<'static>; 5] {
    [
        unsigned(row.task.0),
        unsigned(row.at.0),
        unsigned(row.span.0),
        integer(row.is_waiting),
        stack(row.stack),
    ]
}

/// SQLite's integers are signed. No recorded value comes near their limit (292 years, 8 EiB).
pub(super) fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

fn unsigned(value: u64) -> ValueRef<'static> {
    ValueRef::Integer(signed(value))
}

fn integer(value: impl Into<i64>) -> ValueRef<'static> {
    ValueRef::Integer(value.into())
}

fn optional<T>(value: Option<T>, known: impl FnOnce(T) -> ValueRef<'static>) -> ValueRef<'static> {
    value.map_or(ValueRef::Null, known)
}

fn nanos(instant: Option<Nanos>) -> ValueRef<'static> {
    optional(instant, |instant| unsigned(instant.0))
}

fn word(word: &str) -> ValueRef<'_> {
    ValueRef::Text(word.as_bytes())
}

/// Returns the number of an enum value: its index among all values.
fn number<T: Copy + PartialEq>(all: &[T], value: T) -> ValueRef<'static> {
    let place = all.iter().position(|other| *other == value);
    optional(place, |place| unsigned(place as u64))
}

/// `text.id` counts from 1, as do the ids of the three functions below.
fn text(id: TextId) -> ValueRef<'static> {
    integer(i64::from(id.0) + 1)
}

fn frame(id: FrameId) -> ValueRef<'static> {
    integer(i64::from(id.0) + 1)
}

fn stack(id: StackId) -> ValueRef<'static> {
    integer(i64::from(id.place()) + 1)
}

fn object(reference: ObjectRef) -> ValueRef<'static> {
    unsigned(reference.place() as u64 + 1)
}
