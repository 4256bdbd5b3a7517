//! Decodes hand-made records.

use zerocopy::{FromZeros, IntoBytes};

use spawnscope_system::arch::FORK_NUMBERS;

use super::*;
use crate::clone_call::{CLONE_VFORK, CLONE_VM};
use spawnscope_data::event::{Language, Waker};

fn header(kind: u32) -> WireHeader {
    WireHeader { at: 1000, launch: 7, task: 8, kind, reserved: 0 }
}

fn decoded(bytes: &[u8]) -> Option<Vec<EventKind>> {
    let mut events = Vec::new();
    decode(bytes, 4096, &mut Chains::default(), &mut events)?;
    assert!(events.iter().all(|event| (event.at, event.launch, event.task) == (Nanos(1000), LaunchId(7), TaskId(8))));
    Some(events.into_iter().map(|event| event.kind).collect())
}

fn launch(syscall: i32, flags: u64) -> Option<Mechanism> {
    let mut record = WireLaunch::new_zeroed();
    (record.header, record.syscall, record.flags) = (header(KIND_LAUNCH), syscall, flags);
    let events = decoded(record.as_bytes()).unwrap();
    let [EventKind::Launched(launched)] = events.as_slice() else { panic!("{events:?}") };
    assert_eq!(
        (launched.create, launched.parent_rss_bytes, launched.parent_table_bytes),
        (None, None, None),
        "0 means unknown"
    );
    launched.mechanism
}

#[test]
fn the_system_call_and_its_flags_determine_the_mechanism() {
    let child_tid = 0x0120_0011; // CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID | SIGCHLD: glibc's fork
    let clone = libc::SYS_clone as i32;
    let as_vfork = launch(clone, CLONE_VM | CLONE_VFORK | CLONE_ON_OWN_STACK | 17);
    match FORK_NUMBERS {
        Some([fork, vfork]) => {
            assert_eq!(launch(fork as i32, 0), Some(Mechanism::Fork));
            assert_eq!(launch(vfork as i32, 0), Some(Mechanism::Vfork));
            assert_eq!(as_vfork, Some(Mechanism::PosixSpawn));
        }
        None => assert_eq!(as_vfork, Some(Mechanism::Vfork)),
    }
    assert_eq!(launch(clone, child_tid | CLONE_ON_OWN_STACK), Some(Mechanism::Fork));
    assert_eq!(launch(clone, CLONE_VM | CLONE_VFORK | 17), Some(Mechanism::PosixSpawn));
    assert_eq!(launch(435, CLONE_VM | CLONE_VFORK), Some(Mechanism::PosixSpawn));
    assert_eq!(launch(clone, CLONE_VM | 17), Some(Mechanism::Clone));
    assert_eq!(launch(clone, 0x2000_0000 | 17), Some(Mechanism::Clone), "CLONE_NEWPID");
    assert_eq!(launch(435, 0), Some(Mechanism::Clone3));
    assert_eq!(launch(-1, 0), None, "a 32-bit system call");
}

fn executed(texts: [&[u8]; 4], complete: bool) -> Vec<u8> {
    let mut record = WireExecuted::new_zeroed();
    record.header = header(KIND_EXECUTED);
    [record.path_bytes, record.interpreter_bytes, record.copied_argv_bytes, record.cwd_bytes] =
        texts.map(|text| text.len() as u32);
    record.argv_bytes = 99;
    record.cwd_complete = u32::from(complete);
    [record.as_bytes(), &texts.concat()].concat()
}

#[test]
fn the_strings_of_an_exec_are_decoded_byte_for_byte() {
    let bytes = executed([b"/bin/x\0", b"", b"a\0\xff\x1b[m\0", b"c d\0b\0"], true);
    let events = decoded(&bytes).unwrap();
    let [EventKind::Executed(executed)] = events.as_slice() else { panic!("{events:?}") };
    assert_eq!(executed.path, b"/bin/x");
    assert_eq!(executed.interpreter, None);
    assert_eq!(executed.argv, b"a\0\xff\x1b[m\0");
    assert_eq!(executed.argv_bytes, 99);
    assert_eq!(executed.cwd.as_deref(), Some(&b"/b/c d"[..]));
}

#[test]
fn only_the_allowed_variables_of_an_environment_are_decoded() {
    let mut bytes = executed([b"/bin/x\0", b"", b"a\0", b"b\0"], true);
    let mut record = WireExecuted::read_from_prefix(&bytes).unwrap().0;
    let beginning = b"TOKEN=s3cret\0CARGO_PKG_NAME=serde\0npm_package_";
    let end = b"name=t\0SECRET=1\0";
    (record.environment_bytes, record.environment_end_bytes) = (beginning.len() as u32, end.len() as u32);
    bytes[..size_of::<WireExecuted>()].copy_from_slice(record.as_bytes());
    bytes.extend([beginning.as_slice(), end].concat());
    match &decoded(&bytes).unwrap()[0] {
        EventKind::Executed(executed) => assert_eq!(executed.variables, b"CARGO_PKG_NAME=serde\0npm_package_name=t\0"),
        other => panic!("{other:?}"),
    }
    bytes.pop();
    assert!(decoded(&bytes).is_none_or(|events| events.is_empty()), "a record that is too short");
}

#[test]
fn a_working_directory_without_components_is_the_root_and_an_incomplete_one_is_unknown() {
    for (components, is_complete, cwd) in [(&b""[..], true, Some(b"/".to_vec())), (b"a\0", false, None)] {
        match &decoded(&executed([b"x\0", b"/bin/sh\0", b"", components], is_complete)).unwrap()[0] {
            EventKind::Executed(executed) => assert_eq!(executed.cwd, cwd),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn zero_closes_differ_from_an_unknown_number_of_closes() {
    for (closes, span, expected) in
        [(0, 0, Some((0, Nanos(0)))), (3, 70, Some((3, Nanos(70)))), (UNKNOWN_COUNT, 0, None)]
    {
        let mut record = WireExecuted::new_zeroed();
        (record.header, record.setup_closes, record.setup_close_span) = (header(KIND_EXECUTED), closes, span);
        let found = match decoded(record.as_bytes()).unwrap().remove(0) {
            EventKind::Executed(executed) => executed.setup_closes.zip(executed.setup_close_span),
            other => panic!("{other:?}"),
        };
        assert_eq!(found, expected);
    }
}

#[test]
fn a_cache_that_the_loader_did_not_open_is_neither_present_nor_missing() {
    for (cache, expected) in [(CACHE_OPENED, Some(true)), (CACHE_FAILED, Some(false)), (CACHE_NOT_TRIED, None)] {
        let mut record = WireLoaded::new_zeroed();
        (record.header, record.loader, record.load_cache) = (header(KIND_LOADED), LOADER_DONE, cache);
        (record.load_opens, record.load_failed_opens) = (4, 9);
        match decoded(record.as_bytes()).unwrap().remove(0) {
            EventKind::Loaded(loaded) => {
                let found = (loaded.load_opens, loaded.load_failed_opens, loaded.load_cache);
                assert_eq!(found, (Some(4), Some(9), expected));
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_truncated_record_or_one_of_an_unknown_kind_is_refused() {
    let bytes = executed([b"/bin/x\0", b"", b"a\0", b"b\0"], true);
    for length in 0..bytes.len() {
        assert_eq!(decoded(&bytes[..length]), None, "{length}");
    }
    assert_eq!(decoded(header(KIND_END).as_bytes()), None);
    assert_eq!(decoded(header(0).as_bytes()), None);
}

#[test]
fn the_record_of_a_threads_end_becomes_its_last_slice_and_an_event() {
    let mut record = WireGone::new_zeroed();
    (record.header, record.on, record.zombie, record.cpu) = (header(KIND_GONE), 900, 990, 70);
    record.calls = 5;
    let last = Slice { on: Some(Nanos(900)), calls: Some(5), ..Slice::new(Nanos(1000), LeftCpu::Ended) };
    let gone = EventKind::Gone { zombie: Some(Nanos(990)), auto_reaped: false, cpu: Some(Nanos(70)) };
    assert_eq!(decoded(record.as_bytes()), Some(vec![EventKind::Slice(last), gone]));
}

#[test]
fn what_a_thread_does_at_the_end_of_the_recording_is_an_unfinished_slice() {
    let mut record = WireSlice::new_zeroed();
    (record.header, record.reason) = (header(KIND_LAST_SEEN), LEFT_INTERRUPTIBLE);
    (record.on, record.off, record.syscall) = (900, 950, 230);
    let [EventKind::LastSeen(slice)] = &decoded(record.as_bytes()).unwrap()[..] else {
        panic!("{:?}", decoded(record.as_bytes()))
    };
    assert_eq!((slice.on, slice.off, &slice.wake), (Some(Nanos(900)), Nanos(950), &None));
}

fn waited_for(kind: u32, inode: u64) -> Option<Object> {
    let mut record = WireSlice::new_zeroed();
    (record.header, record.reason) = (header(KIND_SLICE), LEFT_INTERRUPTIBLE);
    (record.object_kind, record.object_device, record.object_inode) = (kind, 5, inode);
    match decoded(record.as_bytes()).unwrap().remove(0) {
        EventKind::Slice(slice) => slice.object,
        other => panic!("{other:?}"),
    }
}

#[test]
fn wait_objects_are_identified_by_inode_or_by_name() {
    for (number, kind) in [
        (OBJECT_PIPE, ObjectKind::Pipe),
        (OBJECT_DIRECTORY, ObjectKind::Directory),
        (OBJECT_PIDFD, ObjectKind::Pidfd),
        (OBJECT_PERMISSION, ObjectKind::Permission),
    ] {
        assert_eq!(waited_for(number, 7), Some(Object { kind, device: 5, inode: 7 }));
    }
    for (name, kind) in
        [(b"[eventpo", ObjectKind::Epoll), (b"[timerfd", ObjectKind::Timerfd), (b"inotify\0", ObjectKind::Anonymous)]
    {
        let found = waited_for(OBJECT_ANONYMOUS, u64::from_ne_bytes(*name));
        assert_eq!(found, Some(Object { kind, device: 5, inode: 0 }));
    }
    assert_eq!((waited_for(OBJECT_UNKNOWN, 7), waited_for(99, 7)), (None, None));
}

#[test]
fn a_file_that_a_thread_waits_for_gets_its_path() {
    let components = b"fifo\0tmp\0".as_slice();
    for (complete, path) in [(1, "/tmp/fifo"), (0, ".../tmp/fifo")] {
        let mut record = WireFileNamed::new_zeroed();
        (record.header, record.inode, record.device) = (header(KIND_FILE_NAMED), 9, 5);
        (record.path_bytes, record.complete) = (components.len() as u32, complete);
        let named = decoded(&[record.as_bytes(), components].concat()).unwrap().remove(0);
        assert_eq!(named, EventKind::FileNamed { device: 5, inode: 9, path: path.into() });
    }
}

fn waker(kind: u32, woken: u64) -> Option<Waker> {
    let mut record = WireSlice::new_zeroed();
    (record.header, record.reason, record.syscall) = (header(KIND_SLICE), LEFT_INTERRUPTIBLE, -1);
    (record.waker.kind, record.waker.woken, record.waker.task, record.waker.pid) = (kind, woken, 5, 42);
    record.waker.comm[..4].copy_from_slice(b"cron");
    match decoded(record.as_bytes()).unwrap().remove(0) {
        EventKind::Slice(slice) => slice.wake.map(|wake| wake.by),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_waker_is_a_followed_thread_another_thread_or_an_interrupt() {
    assert_eq!(waker(WAKER_TASK, 1), Some(Waker::Task(TaskId(5))));
    assert_eq!(waker(WAKER_OTHER, 1), Some(Waker::Other { pid: Pid(42), name: b"cron".to_vec() }));
    assert_eq!(waker(WAKER_INTERRUPT, 1), Some(Waker::Interrupt));
    assert_eq!(waker(WAKER_UNKNOWN, 1), None);
    assert_eq!(waker(WAKER_TASK, 0), None);
}

/// Returns a frame as the BPF programs write it. Its table advances one line per code unit,
/// starting at the second line of the function.
fn python_frame(file: &[u8], width: u32, function: &[u8], code_offset: u32) -> Vec<u8> {
    let table = [0xd8, 0x00, 0x00, 0xd8, 0x00, 0x00];
    let head = WirePythonFrame {
        first_line: 40,
        code_offset,
        file_bytes: file.len() as u32,
        file_width: width,
        function_bytes: function.len() as u32,
        function_width: 1,
        table_bytes: table.len() as u32,
        line_format: u32::from(PYTHON_LINES_LOCATIONS),
    };
    let mut bytes = [head.as_bytes(), file, function, &table].concat();
    bytes.resize(bytes.len().next_multiple_of(8), 0xee);
    bytes
}

fn python_chain(frames: &[Vec<u8>], is_truncated: u32) -> Option<Arc<Chain>> {
    let frames = frames.concat();
    let called = WirePythonCalled { header: header(KIND_PYTHON_CALLED), bytes: frames.len() as u32, is_truncated };
    match decoded(&[called.as_bytes(), &frames].concat())?.as_slice() {
        [EventKind::Called(chain)] => Some(Arc::clone(chain)),
        events => panic!("{events:?}"),
    }
}

#[test]
fn the_frames_of_a_python_program_become_a_chain() {
    let frames = [
        python_frame(b"/opt/run.py", 1, b"Build.run", 2),
        python_frame(b"r\0\x16\x04", 2, b"<module>", 0),
        python_frame(b"", 1, b"", UNKNOWN_COUNT),
    ];
    let chain = python_chain(&frames, 1).unwrap();
    assert!(chain.is_truncated);
    let positions: Vec<_> =
        chain.frames.iter().map(|frame| (frame.function.as_deref(), frame.file.as_deref(), frame.line)).collect();
    let expected = [
        (Some(&b"Build.run"[..]), Some(&b"/opt/run.py"[..]), Some(42)),
        (None, Some("rЖ".as_bytes()), Some(41)),
        (None, None, None),
    ];
    assert_eq!(positions, expected);
    assert!(chain.frames.iter().all(|frame| frame.language == Language::Python));
}

#[test]
fn a_truncated_python_chain_is_malformed() {
    let frame = python_frame(b"/opt/run.py", 1, b"run", 2);
    for length in [1, 31, 40, 50] {
        assert_eq!(python_chain(&[frame[..length].to_vec()], 0), None, "{length}");
    }
}

fn events_of(record: &[u8], chains: &mut Chains) -> Vec<Event> {
    let mut events = Vec::new();
    decode(record, 4096, chains, &mut events).unwrap();
    events
}

fn launch_by(parent_task: u64) -> WireLaunch {
    let mut launch = WireLaunch::new_zeroed();
    (launch.header, launch.parent_task) = (header(KIND_LAUNCH), parent_task);
    launch
}

#[test]
fn a_call_site_that_a_node_thread_announces_is_that_of_its_next_launch() {
    let mut call_site = WireNodeCallSite::new_zeroed();
    let name = [NODE_PREFIX.as_slice(), b"5\n/a.js\nrun\n\0"].concat();
    (call_site.header, call_site.bytes) = (header(KIND_NODE_CALL_SITE), name.len() as u32);
    let call_site = [call_site.as_bytes(), &name].concat();
    let mut chains = Chains::default();
    assert!(events_of(&call_site, &mut chains).is_empty());
    assert_eq!(events_of(launch_by(9).as_bytes(), &mut chains).len(), 1, "a launch of another thread");
    let [_, called] = &events_of(launch_by(8).as_bytes(), &mut chains)[..] else { panic!("no call site") };
    let EventKind::Called(chain) = &called.kind else { panic!("{called:?}") };
    assert_eq!((called.launch, chain.frames[0].line), (LaunchId(7), Some(5)));
    assert_eq!(events_of(launch_by(8).as_bytes(), &mut chains).len(), 1, "the call site was announced for one launch");
}
