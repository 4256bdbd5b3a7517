//! Recordings that the tests of the analysis and those of its presentation share.

use spawnscope_analyze::explain::advice::{Advice, AdviceList};
use spawnscope_analyze::path::groups::Group;
use spawnscope_analyze::waits::attribution::{AttributedWaits, attributed_waits};
use spawnscope_analyze::{Causes, Forest};
use spawnscope_data::event::{Language, LaunchId, Nanos, ObjectKind, TaskId};
use spawnscope_data::rows::{FrameRow, ObjectRef, ObjectRow, Recording, SliceRow, WakerRow};

use crate::builder::{Builder, ROOT, Spans};
use crate::serial::{CLOCK_NANOSLEEP, READ, Serial, WAIT4, advices, timelines};
use crate::slices::{created, ended, slice};

/// The wall of `emacs`.
pub(crate) const EMACS_WALL: u64 = 10_000_000;
/// The wall of `shell_with`.
pub(crate) const SHELL_WALL: u64 = 2_000_000_000;
/// The number of launches in `advice_on_calls`.
pub(crate) const COUNT: usize = 40;
pub(crate) const DIRNAME: Option<(&str, &[&str])> = Some(("/usr/bin/dirname", &["dirname", "a/b"]));
pub(crate) const MV: Option<(&str, &[&str])> = Some(("/bin/mv", &["mv", "a", "b"]));

pub(crate) fn woken_by(launch: LaunchId) -> Option<WakerRow> {
    Some(WakerRow::Task(TaskId(launch.0)))
}

/// Returns when a launch was created, and when it became a zombie.
pub(crate) fn lifetime(builder: &mut Builder, launch: LaunchId) -> (u64, u64) {
    let row = builder.row(launch);
    (row.created.unwrap().0, row.zombie.unwrap().0)
}

/// Adds an object. Its inode is 4242, or 0 for a permission event.
pub(crate) fn object(builder: &mut Builder, kind: ObjectKind, path: Option<&[u8]>) -> Option<ObjectRef> {
    let row = ObjectRow {
        kind,
        device: 15,
        inode: if kind == ObjectKind::Permission { 0 } else { 4242 },
        path: path.map(|path| builder.text(path)),
    };
    builder.recording.objects.push(row);
    ObjectRef::new(kind, builder.recording.objects.len() - 1)
}

pub(crate) fn emacs() -> Builder {
    Builder::command("/usr/bin/emacs", &["emacs"], EMACS_WALL)
}

/// Builds a recording in which emacs launches git at 1 ms. git's instants in milliseconds are:
/// created 1.12, first run 1.14, exec from 1.18 to 1.48, loaded 1.88, exit 2.08, zombie 2.14,
/// reaped 2.15.
pub(crate) fn with_git() -> (Builder, LaunchId) {
    let mut builder = emacs();
    let git = builder.launch(ROOT, 1_000_000, &Spans::USUAL, Some(("/usr/bin/git", &["git"])));
    (builder, git)
}

/// Returns the call chain of line 14 of `/opt/unpack.sh`, in the function `relocate`.
pub(crate) fn relocate(builder: &mut Builder) -> Vec<FrameRow> {
    vec![
        builder.line(Language::Bash, "/opt/unpack.sh", 14, "relocate"),
        builder.line(Language::Bash, "/opt/unpack.sh", 30, ""),
    ]
}

/// Builds a recording of a script that repeats `$(dirname)` at line 14 and `mv` at line 20. One
/// more launch has an unknown call site.
pub(crate) fn unpacking() -> Recording {
    let mut builder = Builder::command("/bin/bash", &["bash", "unpack.sh"], 100_000_000);
    for number in 0..5 {
        let begin = 1_000_000 + number * 10_000_000;
        let shell = Spans { run: 2_000_000, ..Spans::USUAL };
        let fork = builder.launch(ROOT, begin, &shell, None);
        let child = builder.launch(fork, begin + 200_000, &Spans::USUAL, DIRNAME);
        let chain = relocate(&mut builder);
        builder.set_call_chain(fork, &chain);
        builder.set_call_chain(child, &chain);
        let mv = builder.launch(ROOT, begin + 5_000_000, &Spans::USUAL, MV);
        let line = builder.line(Language::Bash, "/opt/unpack.sh", 20, "");
        builder.set_call_chain(mv, &[line]);
    }
    builder.launch(ROOT, 60_000_000, &Spans::USUAL, MV);
    builder.recording
}

pub(crate) fn find<'g>(groups: &'g [Group], label: &str) -> &'g Group {
    let found = groups.iter().find(|group| group.label == label.as_bytes());
    found.unwrap_or_else(|| panic!("no {label} in {groups:#?}"))
}

/// Builds a recording of a shell that runs `dirname` 30 times from line 14, and then 10 times from
/// line 20.
pub(crate) fn serial_unpacking() -> Serial {
    let mut serial = Serial::with_command("/bin/bash", &["bash", "unpack.sh"]);
    for number in 0..40 {
        let launch = serial.launch_waiting(&Spans::USUAL, DIRNAME, READ);
        let (line, function) = if number < 30 { (14, "relocate") } else { (20, "") };
        let frame = serial.builder.line(Language::Bash, "/opt/unpack.sh", line, function);
        serial.builder.set_call_chain(launch, &[frame]);
    }
    serial
}

/// Builds a recording of a command that launches `true` repeatedly. `costs` returns, for the number
/// of a launch, the phases and the parent's memory in bytes.
pub(crate) fn storm(launches: u64, costs: impl Fn(u64) -> (Spans, u64)) -> Recording {
    storm_of(Some(("/bin/true", &["true"])), launches, costs)
}

/// Like `storm`, for any program, or for forks that never exec.
pub(crate) fn storm_of(
    program: Option<(&str, &[&str])>,
    launches: u64,
    costs: impl Fn(u64) -> (Spans, u64),
) -> Recording {
    let mut builder = Builder::command("/usr/bin/python3", &["python3", "loop.py"], 100_000_000_000);
    let mut start_ns = 1_000_000;
    for number in 0..launches {
        let (spans, rss_bytes) = costs(number);
        let id = builder.launch(ROOT, start_ns, &spans, program);
        builder.row(id).parent_rss_bytes = Some(rss_bytes);
        start_ns += spans.total();
    }
    builder.recording
}

/// Returns a slice that ends at `off` with a wait. The wait is still open at the end of the
/// recording.
pub(crate) fn open_wait(task: u64, on: u64, off: u64, syscall: u16, argument: u64) -> SliceRow {
    SliceRow {
        off_span: None,
        wake_span: None,
        argument: Some(argument),
        ..slice(task, on, off, [0, 0], syscall, None)
    }
}

/// Builds a recording of a shell and this many children, all alive at the end. Each child is
/// created 1 ms after the previous one.
pub(crate) fn shell_with(children: u64) -> Builder {
    let mut builder = Builder::command("/bin/sh", &["sh"], SHELL_WALL);
    builder.leave_running(ROOT);
    builder.recording.info.ended = Some("duration".to_owned());
    for number in 0..children {
        let start = (number + 1) * 1_000_000;
        let child = builder.launch(ROOT, start, &Spans::USUAL, Some(("/bin/sleep", &["sleep", "4"])));
        builder.leave_running(child);
        builder.row(child).parent_task = Some(TaskId(ROOT.0));
    }
    builder
}

/// Returns the slices of a child from `shell_with` that sleeps until the recording ends.
pub(crate) fn sleeping_child(child: u64) -> [SliceRow; 2] {
    let made = (child - 1) * 1_000_000 + Spans::USUAL.create;
    let (on, off) = (made + Spans::USUAL.queue, made + 1_000_000);
    [created(child, made, Spans::USUAL.queue), open_wait(child, on, off, CLOCK_NANOSLEEP, 0)]
}

pub(crate) fn causes(recording: &Recording, slices: &[SliceRow]) -> Causes {
    let forest = Forest::build(recording);
    Causes::find(recording, &forest, &timelines(&forest, slices)).expect("a command")
}

pub(crate) fn attribution(recording: &Recording, slices: &[SliceRow]) -> Vec<AttributedWaits> {
    let forest = Forest::build(recording);
    attributed_waits(recording, &forest, &timelines(&forest, slices))
}

/// Builds a recording of a launch all of whose execs failed: those of these files, with these
/// errors.
pub(crate) fn failing(failed: &[(&str, i32)]) -> Recording {
    let mut builder = Builder::command("/bin/sh", &["sh"], 1_000_000_000);
    let child = builder.launch(ROOT, 0, &Spans::USUAL, None);
    for ((path, errno), step) in failed.iter().zip(0..) {
        builder.failed_exec_at(child, path, *errno, 150_000 + 2_000 * step);
    }
    builder.recording
}

/// Builds a recording of a shell that runs `x=$(echo "$y" | sed ...)` `count` times: each is a
/// subshell, its fork for echo, and sed. A program can be in the place of echo.
pub(crate) fn substitution_recording(
    shell: &str,
    count: u64,
    feeder: Option<&[&str]>,
    argv: &[&str],
) -> (Recording, Vec<SliceRow>) {
    const LIFE: u64 = 3_000_000;
    let mut serial = Serial::with_command(shell, &[shell, "script.sh"]);
    let mut on = 0;
    for number in 0..count {
        let begin = 2_000_000 + number * 4_000_000;
        let subshell_spans = Spans { run: LIFE, ..Spans::USUAL };
        let subshell = serial.builder.launch(ROOT, begin, &subshell_spans, None);
        let fork = Spans { run: 200_000, ..Spans::USUAL };
        let echo = serial.builder.launch(subshell, begin + 200_000, &fork, feeder.map(|argv| (argv[0], argv)));
        // A filter of what a program prints waits for it.
        let waits = if feeder.is_some() { 1_300_000 } else { 0 };
        let spans = Spans { run: Spans::USUAL.run + waits, ..Spans::USUAL };
        let sed = serial.builder.launch(subshell, begin + 400_000, &spans, Some((argv[0], argv)));
        serial.builder.row(sed).exit_cpu.as_mut().unwrap().0 -= waits;

        let (born, gone) = lifetime(&mut serial.builder, subshell);
        let (_, sed_gone) = lifetime(&mut serial.builder, sed);
        for (child, parent) in [(subshell, ROOT), (echo, subshell), (sed, subshell)] {
            let (created_at, zombie) = lifetime(&mut serial.builder, child);
            serial.builder.row(child).parent_task = Some(TaskId(parent.0));
            let line = serial.builder.line(Language::Bash, "/src/script.sh", 3, "");
            serial.builder.set_call_chain(child, &[line]);
            serial.slices.push(created(child.0, created_at, 20_000));
            if child == subshell {
                let waker = woken_by(sed);
                let forked = begin + 520_000;
                serial.slices.push(slice(child.0, created_at + 20_000, forked, [sed_gone - forked, 0], WAIT4, waker));
                serial.slices.push(ended(child.0, sed_gone, zombie));
            } else if child == sed && feeder.is_some() {
                let (_, echo_gone) = lifetime(&mut serial.builder, echo);
                let off = echo_gone - 200_000;
                serial.slices.push(slice(child.0, created_at + 20_000, off, [200_000, 0], READ, woken_by(echo)));
                serial.slices.push(ended(child.0, echo_gone, zombie));
            } else {
                serial.slices.push(ended(child.0, created_at + 20_000, zombie));
            }
        }
        let waker = woken_by(subshell);
        serial.slices.push(slice(1, on, born, [gone - born, 10_000], READ, waker));
        on = gone + 10_000;
        serial.builder.row(subshell).reaped = Some(Nanos(on));
    }
    serial.resume_shell_at(on);
    serial.finish()
}

/// Returns the advice on a shell that launches one program `COUNT` times, and waits for each launch
/// in the system call `wait`.
pub(crate) fn advice_on_calls((shell, script): (&str, &str), path: &str, argv: &[&str], wait: u16) -> AdviceList {
    let mut serial = Serial::with_command(shell, &[shell, script]);
    for _ in 0..COUNT {
        serial.launch_waiting(&Spans::USUAL, Some((path, argv)), wait);
    }
    advices(&serial.finish())
}

/// Returns the advice on a shell that launches one program `COUNT` times, and reads its output.
pub(crate) fn advice_on_captured_output(shell: &str, argv: &[&str]) -> AdviceList {
    advice_on_calls((shell, "script"), argv[0], argv, READ)
}

pub(crate) fn fix_of(advice: &Advice) -> String {
    advice.finding.fix.join("\n")
}

pub(crate) fn advice_on_substitutions(shell: &str, count: u64, argv: &[&str]) -> AdviceList {
    advices(&substitution_recording(shell, count, None, argv))
}
