//! Events and headers for the tests of this crate: a valid life of a process, which tests modify.

use std::sync::Arc;

use spawnscope_data::event::{
    Calibration, Chain, Constant, Event, EventKind, Executed, Exited, Frame, Language, LaunchId, Launched, LeftCpu,
    Loaded, Mechanism, Nanos, Object, ObjectKind, Pid, Sampled, Slice, Syscall, TaskId, Wake, Waker,
};

use crate::ends::{Ending, Header};
use spawnscope_data::rows::{Label, Scope};

/// The instant at time zero of the recording.
pub(super) const ORIGIN: Nanos = Nanos(1_000_000_000);

pub(super) const ROOT: LaunchId = LaunchId(1);

pub(super) fn header() -> Header {
    Header {
        collector: "ebpf".into(),
        scope: Scope::Command,
        command: vec![b"./unpack.sh".to_vec(), b"".to_vec(), b"--password=hunter2".to_vec()],
        cwd: b"/tmp".to_vec(),
        kernel: "6.18.0".into(),
        arch: "x86_64".into(),
        hostname: "here".into(),
        labels: vec![Label { key: "url".into(), value: "https://ci:hunter2@example.org/7".into() }],
        cpus: 2,
        allowed_cpus: Some(1.5),
        started_unix_ns: 1_800_000_000_000_000_000,
        origin: ORIGIN,
        missing: vec![spawnscope_data::event::Missing {
            what: "sched_prepare_exec".into(),
            effect: "exec begins late".into(),
        }],
        calibration: vec![Calibration {
            what: Constant::PageCopy,
            ns: 33_250.5,
            low_ns: Some(30_000.0),
            high_ns: None,
        }],
    }
}

pub(super) fn ending() -> Ending {
    Ending {
        wall: Some(Nanos(5_000)),
        ended: "exited".into(),
        allowed_cpus: None,
        lost: Vec::new(),
        calibration: Vec::new(),
    }
}

/// Returns an event of a process's first thread, `at` nanoseconds into the recording.
pub(super) fn event(at: u64, launch: LaunchId, kind: EventKind) -> Event {
    Event { at: instant(at), launch, task: TaskId(launch.0), kind }
}

/// Returns the instant `at` nanoseconds into the recording, on the clock of events.
pub(super) fn instant(at: u64) -> Nanos {
    Nanos(ORIGIN.0 + at)
}

pub(super) fn released() -> Event {
    event(0, ROOT, EventKind::Released { pid: Pid(100) })
}

pub(super) fn launched(at: u64, parent: LaunchId, child: LaunchId, pid: i32) -> Event {
    let kind = EventKind::Launched(Launched {
        parent,
        parent_task: TaskId(parent.0),
        reaper: Some(parent),
        pid: Pid(pid),
        pid_for_reaper: Pid(pid),
        mechanism: Some(Mechanism::Fork),
        create: Some(instant(at.saturating_sub(50))),
        prepare: Some(instant(at.saturating_sub(60))),
        parent_tidied: Some(instant(at.saturating_sub(80))),
        parent_faults: Some(5),
        parent_rss_bytes: Some(4_000_000),
        parent_table_bytes: Some(80_000),
    });
    event(at, child, kind)
}

pub(super) fn executed(at: u64, launch: LaunchId, argv: &str) -> Event {
    let argv: Vec<u8> = argv.split(' ').flat_map(|argument| [argument.as_bytes(), b"\0"].concat()).collect();
    let kind = EventKind::Executed(Executed {
        first_run: Some(instant(at - 20)),
        enter: Some(instant(at - 10)),
        enter_cpu: Some(Nanos(10)),
        path: b"/usr/bin/dirname".to_vec(),
        argv_bytes: argv.len() as u64,
        argv,
        cwd: Some(b"/work".to_vec()),
        variables: b"CARGO_PKG_NAME=serde\0".to_vec(),
        setup_closes: Some(3),
        setup_close_span: Some(Nanos(4)),
        ..Executed::default()
    });
    event(at, launch, kind)
}

pub(super) fn loaded(at: u64, launch: LaunchId) -> Event {
    let kind = EventKind::Loaded(Loaded {
        returned: instant(at - 5),
        return_cpu: Some(Nanos(20)),
        has_loader: true,
        load_end: Some(instant(at)),
        load_cpu: Some(Nanos(40)),
        load_opens: Some(2),
        load_failed_opens: Some(1),
        load_cache: Some(true),
    });
    event(at, launch, kind)
}

pub(super) fn exited(at: u64, launch: LaunchId) -> Event {
    let kind = EventKind::Exited(Exited {
        exit_group_entered: Some(instant(at - 5)),
        last_thread: true,
        wait_status: Some(0),
        cpu: Some(Nanos(90)),
        exit_faults: Some(7),
        exit_rss_bytes: Some(8_192),
        ..Exited::default()
    });
    event(at, launch, kind)
}

pub(super) fn gone(at: u64, launch: LaunchId) -> Event {
    event(at, launch, EventKind::Gone { zombie: Some(instant(at - 5)), auto_reaped: false, cpu: Some(Nanos(100)) })
}

pub(super) fn reaped(at: u64, parent: LaunchId, pid: i32) -> Event {
    event(at, parent, EventKind::Reaped { pid: Pid(pid) })
}

pub(super) fn slice(at: u64, launch: LaunchId, reason: LeftCpu) -> Event {
    let kind = EventKind::Slice(Slice {
        on: (reason != LeftCpu::Created).then(|| instant(at - 30)),
        off: instant(at - 10),
        reason,
        syscall: Some(Syscall { number: 61, argument: u64::MAX }),
        calls: Some(7),
        object: Some(Object { kind: ObjectKind::Fifo, device: 42, inode: 4_242 }),
        wake: Some(Wake { at: instant(at - 3), by: Waker::Task(TaskId(ROOT.0)), is_certain: true }),
    });
    event(at, launch, kind)
}

/// Returns the event that names the FIFO that `slice` waits for.
pub(super) fn fifo_named(at: u64, launch: LaunchId) -> Event {
    let kind = EventKind::FileNamed { device: 42, inode: 4_242, path: b"/tmp/fifo".to_vec() };
    event(at, launch, kind)
}

/// Returns the event that names the process at the other end of a socket.
pub(super) fn peer_found(at: u64) -> Event {
    let kind = EventKind::PeerFound { device: 8, inode: 4_711, pid: Pid(77), name: b"sccache".to_vec() };
    event(at, ROOT, kind)
}

/// Returns the call chain of a launch that was requested by a function of a script.
pub(super) fn called(at: u64, launch: LaunchId) -> Event {
    let frames = [(14, Some(b"relocate".to_vec())), (30, None)].map(|(line, function)| Frame {
        function,
        file: Some(b"./unpack.sh".to_vec()),
        line: Some(line),
        ..Frame::unknown(Language::Bash)
    });
    let chain = Chain { frames: frames.into(), is_truncated: false };
    event(at, launch, EventKind::Called(Arc::new(chain)))
}

/// Returns a sample of the root's first thread in a kernel function.
pub(super) fn sampled(at: u64, span: u64, is_waiting: bool, function: &str) -> Event {
    let frames = [(Language::Kernel, function), (Language::Native, "main")]
        .map(|(language, name)| Frame { function: Some(name.as_bytes().to_vec()), ..Frame::unknown(language) });
    let chain = Chain { frames: frames.into(), is_truncated: false };
    let sampled = Sampled { span: Nanos(span), is_waiting, chain: Arc::new(chain) };
    event(at, ROOT, EventKind::Sampled(sampled))
}

fn exec_failed(at: u64, launch: LaunchId, path: &str) -> Event {
    let kind = EventKind::ExecFailed { enter: instant(at - 5), path: path.as_bytes().to_vec(), errno: 2 };
    event(at, launch, kind)
}

/// Returns the events of a typical child of the root, within 1.4 µs: fork, two failed execs, exec,
/// exit, reaping, eight slices.
pub(super) fn whole_life(start: u64, id: LaunchId, pid: i32) -> Vec<Event> {
    let mut life = vec![
        launched(start + 100, ROOT, id, pid),
        called(start + 100, id),
        fifo_named(start + 150, id),
        slice(start + 200, id, LeftCpu::Created),
        exec_failed(start + 250, id, "/usr/local/sbin/dirname"),
        exec_failed(start + 260, id, "/usr/local/bin/dirname"),
        executed(start + 300, id, &format!("dirname --zero ./usr/share/doc/{start:012}")),
        loaded(start + 400, id),
    ];
    life.extend((0..6).map(|step| slice(start + 500 + step * 100, id, LeftCpu::Interruptible)));
    life.extend([
        exited(start + 1_200, id),
        gone(start + 1_300, id),
        slice(start + 1_300, id, LeftCpu::Ended),
        reaped(start + 1_400, ROOT, pid),
    ]);
    life
}

/// Returns the event with all times multiplied by a thousand. Real processes take microseconds
/// where these events take nanoseconds, and larger numbers need more space in a file.
pub(super) fn at_real_pace(mut event: Event) -> Event {
    stretch(&mut event.at);
    match &mut event.kind {
        EventKind::Launched(launched) => launched.create.iter_mut().for_each(stretch),
        EventKind::ExecFailed { enter, .. } => stretch(enter),
        EventKind::Stopped { since } => stretch(since),
        EventKind::Executed(executed) => {
            executed.first_run.iter_mut().chain(&mut executed.enter).for_each(stretch);
            executed.enter_cpu.iter_mut().for_each(stretch_span);
            executed.setup_close_span.iter_mut().for_each(stretch_span);
        }
        EventKind::Loaded(loaded) => {
            [&mut loaded.returned].into_iter().chain(&mut loaded.load_end).for_each(stretch);
            loaded.return_cpu.iter_mut().chain(&mut loaded.load_cpu).for_each(stretch_span);
        }
        EventKind::Exited(exited) => {
            exited.first_run.iter_mut().chain(&mut exited.exit_group_entered).for_each(stretch);
            exited.cpu.iter_mut().for_each(stretch_span);
        }
        EventKind::Gone { zombie, .. } => zombie.iter_mut().for_each(stretch),
        EventKind::Slice(slice) | EventKind::LastSeen(slice) => {
            slice.on.iter_mut().chain([&mut slice.off]).for_each(stretch);
            slice.wake.iter_mut().for_each(|wake| stretch(&mut wake.at));
        }
        EventKind::Adopted { .. }
        | EventKind::Released { .. }
        | EventKind::ThreadStarted { .. }
        | EventKind::Reaped { .. }
        | EventKind::FileNamed { .. }
        | EventKind::PeerFound { .. }
        | EventKind::Called(_) => {}
        EventKind::Sampled(sampled) => stretch_span(&mut sampled.span),
    }
    event
}

fn stretch(time: &mut Nanos) {
    *time = instant(time.since(ORIGIN).0 * 1_000);
}

fn stretch_span(span: &mut Nanos) {
    span.0 *= 1_000;
}
