//! Compares every output format of one recording, which has a bit of everything, with golden files.

use spawnscope::analyze::{Origin, Waits};
use spawnscope::event::{LeftCpu, Loss, Mechanism, Missing, ObjectKind, TaskId};
use spawnscope::present::ndjson;
use spawnscope::record::reader::{LaunchRow, ObjectRef, ObjectRow, WakerRow};

use crate::golden_files::assert_golden;
use crate::prelude::*;

/// Returns the recording of a shell script that unpacks files: launches in a loop, a PATH search, a
/// chain of execs, forks, failures, lost events.
pub(crate) fn unpacking() -> Recording {
    let mut builder = Builder::command("/usr/bin/bash", &["bash", "unpack.sh", "a list.txt"], 2_000_000_000);
    for number in 0..24u64 {
        let spans = Spans { create: 120_000 + number * 60_000, ..Spans::USUAL };
        let path = format!("usr/share/doc/{number}/readme");
        let at = 2_000_000 + number * 20_000_000;
        let fork = builder.launch(ROOT, at, &spans, None);
        let dirname = Some(("/usr/bin/dirname", &["dirname", &path][..]));
        let child = builder.launch(fork, at + 1_000_000, &Spans::USUAL, dirname);
        let chain = [("relocate", 14), ("", 30)]
            .map(|(function, line)| builder.line(Language::Bash, "./unpack.sh", line, function));
        builder.set_call_chain(fork, &chain);
        builder.set_call_chain(child, &chain);
        builder.row(fork).parent_rss_bytes = Some(8_000_000 + number * 1_000_000);
        builder.failed_exec_at(child, "/usr/local/bin/dirname", libc::ENOENT, at + 1_150_000);
    }
    add_unusual_ends(&mut builder);
    let rows = builder.recording.launches.iter_mut();
    for row in rows.filter(|row| row.parent == Some(ROOT)) {
        row.parent_rss_bytes.get_or_insert(32_000_000);
    }
    let info = &mut builder.recording.info;
    info.lost = vec![Loss { kind: "slice".to_owned(), events: 17 }];
    let (what, effect) = ("sched_prepare_exec".to_owned(), "the files of failed execs".to_owned());
    info.missing = vec![Missing { what, effect }];
    builder.recording
}

fn add_unusual_ends(builder: &mut Builder) {
    let usual = Spans { create: 1_600_000, ..Spans::USUAL };
    let env = Some(("/usr/bin/env", &["env", "tool"][..]));
    let python = builder.launch(ROOT, 900_000_000, &Spans { run: 90_000_000, ..usual }, env);
    let argv: [&[u8]; 4] = [b"python3", b"/opt/tool", b"--name", b"it's\n\x1b[31m\xff"];
    builder.exec_at(python, b"/opt/tool", &argv, [903_000_000, 905_000_000, 930_000_000]);
    let row = builder.row(python);
    (row.wait_status, row.mechanism) = (Some(3 << 8), Some(Mechanism::PosixSpawn));
    let line = builder.line(Language::Bash, "./unpack.sh", 20, "");
    builder.set_call_chain(python, &[line]);
    let sleep = Some(("/bin/sleep", &["sleep", "60"][..]));
    let killed = builder.launch(ROOT, 1_000_000_000, &Spans { run: 500_000_000, ..usual }, sleep);
    builder.row(killed).wait_status = Some(libc::SIGKILL);
    let missing = builder.launch(ROOT, 1_600_000_000, &usual, None);
    builder.failed_exec_at(missing, "/usr/local/bin/gsed", libc::ENOENT, 1_602_150_000);
    builder.failed_exec_at(missing, "/usr/bin/gsed", libc::ENOENT, 1_602_152_000);
    builder.failed_exec_at(missing, "./notes.txt", libc::EACCES, 1_602_154_000);
    builder.row(missing).wait_status = Some(127 << 8);
    let daemon = builder.launch(ROOT, 1_700_000_000, &usual, Some(("/usr/sbin/daemon", &["daemon"])));
    builder.leave_running(daemon);
    let orphan = LaunchId(1000);
    let ended = (Some(Nanos(1_800_000_000)), Some(Nanos(1_800_100_000)));
    let row = LaunchRow { exit: ended.0, zombie: ended.1, wait_status: Some(0), ..blank(orphan, None, Origin::Orphan) };
    builder.recording.launches.push(row);
    let at = [1_790_000_000, 1_791_000_000, 1_792_000_000];
    builder.exec_at(orphan, b"/usr/bin/lost", &[b"lost"], at);
    let name = Some(builder.text(b"systemd"));
    let existed = LaunchRow { name, created: Some(Nanos(0)), ..blank(LaunchId(1001), None, Origin::Existed) };
    builder.recording.launches.push(existed);
}

#[test]
fn report_for_the_terminal() {
    let text = table_of(&by_command(&unpacking()));
    assert_golden(&text, "report.txt");
    let widest = text.lines().map(spawnscope::present::text::width).max();
    assert_eq!(widest, Some(80), "fits 80 columns, and uses them");
}

#[test]
fn report_by_parent() {
    let options = table::Options { width: 100, top: Some(2), ..table::Options::default() };
    let text = plain(&table::render(&report(&unpacking(), GroupBy::Parent), &options));
    assert_golden(&text, "report_by_parent.txt");
}

#[test]
fn report_by_line() {
    let text = table_of(&report(&unpacking(), GroupBy::Line));
    assert_golden(&text, "report_by_line.txt");
}

#[test]
fn report_as_json() {
    let text = json::render(&by_command(&unpacking()));
    assert_golden(&text, "report.json");
}

fn tree_of(width: Option<usize>) -> String {
    plain(&styled_tree(&unpacking(), width))
}

#[test]
fn tree_for_the_terminal() {
    assert_golden(&tree_of(Some(80)), "tree.txt");
}

#[test]
fn tree_for_a_file() {
    assert_golden(&tree_of(None), "tree_uncut.txt");
}

#[test]
fn launches_as_ndjson() {
    let mut recording = unpacking();
    recording.launches.retain(|row| row.id.0 <= 3 || row.id.0 >= 50);
    let path = recording.texts.push(b"/tmp/a \xfffifo");
    recording.objects.push(ObjectRow { kind: ObjectKind::Fifo, device: 8 << 20 | 1, inode: 4242, path: Some(path) });
    let forest = Forest::build(&recording);
    let waited = SliceRow {
        task: TaskId(ROOT.0),
        off: Nanos(2_200_000),
        on_span: Some(Nanos(80_000)),
        off_span: Some(Nanos(900_000)),
        wake_span: Some(Nanos(890_000)),
        reason: LeftCpu::Interruptible,
        syscall: Some(61),
        argument: Some(u64::MAX),
        waker: Some(WakerRow::Task(TaskId(2))),
        is_waker_certain: Some(true),
        object: None,
        calls: Some(1),
    };
    let external_wait = SliceRow {
        off: Nanos(5_000_000),
        syscall: Some(0),
        argument: Some(3),
        object: ObjectRef::new(ObjectKind::Fifo, 0),
        waker: Some(WakerRow::Other(Pid(7), None)),
        is_waker_certain: Some(false),
        ..waited
    };
    let mut waits = Waits::new(&forest, &[]);
    waits.push(waited);
    waits.push(external_wait);
    waits.sort();
    let mut lines = Vec::new();
    ndjson::write(&mut lines, &forest, &waits).unwrap();
    let lines = std::str::from_utf8(&lines).unwrap();
    assert_golden(lines, "launches.ndjson");
}
