//! Advice about a permission scanner that execs wait for.

use spawnscope_data::event::{LaunchId, LeftCpu, Nanos, ObjectKind, Pid, TaskId};
use spawnscope_data::rows::{ObjectRef, ObjectRow, Recording, SliceRow, WakerRow};

use crate::builder::Spans;
use crate::serial::{CLOCK_NANOSLEEP, Serial, advices, is_silent, only};
use crate::slices::{created, ended, slice};

const EXECVE: u16 = 59;
const FIRST: u64 = 4_000_000;
const LATER: u64 = 2_000_000;
const COUNT: u64 = 10;
/// The delay from the end of a wait to the return of the process to its CPU, which is idle.
const AWAKE: u64 = 50_000;

/// Builds a recording of launches of one file. The exec of each waits for `daemon`: `FIRST` for the
/// first launch, `LATER` for the others.
fn scanned(daemon: &[u8], reason: LeftCpu, kind: ObjectKind) -> (Recording, Vec<SliceRow>) {
    let mut serial = Serial::new();
    serial.builder.recording.objects.push(ObjectRow { kind, device: 0, inode: 0, path: None });
    let object = ObjectRef::new(kind, 0);
    let name = serial.builder.text(daemon);
    for number in 0..COUNT {
        let wait = if number == 0 { FIRST } else { LATER };
        let spans = Spans { exec: Spans::USUAL.exec + wait + AWAKE, ..Spans::USUAL };
        let launch = serial.launch(&spans, Some(("/opt/tool", &["tool"])));
        let row = serial.builder.row(launch);
        let (first_run, zombie) = (row.first_run.unwrap().0, row.zombie.unwrap().0);
        let off = first_run + spans.setup + 100_000;
        // The wait divides the slice from the first run to the end into two.
        let end = serial.slices.iter().position(|slice| slice.task.0 == launch.0 && slice.reason == LeftCpu::Ended);
        let end = &mut serial.slices[end.unwrap()];
        end.on_span = Some(Nanos(zombie - off - wait - AWAKE));
        serial.slices.push(SliceRow {
            object,
            reason,
            ..slice(launch.0, first_run, off, [wait, AWAKE], EXECVE, Some(WakerRow::Other(Pid(7), Some(name))))
        });
    }
    // Launches of files that are not scanned do not count.
    for other in ["/usr/bin/cp", "/usr/bin/mv", "/usr/bin/ls"] {
        serial.launch(&Spans::USUAL, Some((other, &["other"])));
        serial.launch(&Spans::USUAL, Some((other, &["other"])));
    }
    serial.finish()
}

#[test]
fn a_scanner_is_named_with_what_waiting_for_it_took() {
    let recorded = scanned(b"fapolicyd", LeftCpu::Uninterruptible, ObjectKind::Permission);
    let advice = only(&advices(&recorded), "scanner");
    assert_eq!(advice.finding.launches.len() as u64, COUNT);
    // A thread that does not have to wait saves the wake-up delay as well.
    assert_eq!(advice.saving[0], Nanos(FIRST + (COUNT - 1) * LATER + COUNT * AWAKE));
    assert!(advice.finding.title.contains("fapolicyd"), "{advice:?}");
    let evidence = &advice.finding.evidence;
    assert!(evidence[0].starts_with("10 waits by 10 processes: a median of 2.00 ms, 22.0 ms in all"), "{evidence:?}");
    assert!(evidence[1].contains("waited a median of 4.00 ms, later execs 2.00 ms"), "{evidence:?}");
    let fix = advice.finding.fix.concat();
    assert!(fix.starts_with("leave protection on"), "{fix}");
    assert!(fix.contains("fapolicyd-cli --file add") && fix.contains("responsible"), "{fix}");
    assert!(!fix.contains("mdatp"), "{fix}");
}

#[test]
fn a_wait_that_other_answers_interrupt_is_one_wait() {
    let (recording, mut slices) = scanned(b"clamd", LeftCpu::Uninterruptible, ObjectKind::Permission);
    let whole = advices(&(recording.clone(), slices.clone()));
    // The scanner's answer to another thread wakes each waiter after a third of its wait, and the
    // waiter continues to wait.
    let parts: Vec<SliceRow> = slices.iter().filter(|slice| slice.syscall == Some(EXECVE)).copied().collect();
    slices.retain(|slice| slice.syscall != Some(EXECVE));
    for part in parts {
        let waited = part.wake_span.unwrap().0;
        let awake = 2_000;
        slices.push(SliceRow { wake_span: Some(Nanos(waited / 3)), off_span: Some(Nanos(waited / 3)), ..part });
        let off = part.off.0 + waited / 3 + awake;
        slices.push(SliceRow {
            off: Nanos(off),
            on_span: Some(Nanos(awake)),
            wake_span: Some(Nanos(part.off.0 + waited - off)),
            off_span: Some(Nanos(part.off.0 + part.off_span.unwrap().0 - off)),
            ..part
        });
    }
    let [whole, in_parts] =
        [whole, advices(&(recording, slices))].map(|found| only(&found, "scanner").finding.evidence);
    assert!(whole[0].starts_with("10 waits by 10 processes:"), "{whole:?}");
    assert!(in_parts[0].starts_with("10 waits by 10 processes:"), "{in_parts:?}");
    let files = in_parts.iter().find(|sentence| sentence.contains("waited longest")).unwrap();
    assert!(files.contains("/opt/tool (22.0 ms in 10 waits)"), "{files}");
    assert!(!files.contains("/usr/bin/cp"), "{files}");
}

#[test]
fn a_wait_for_another_process_is_not_a_scan() {
    let recorded = scanned(b"server", LeftCpu::Interruptible, ObjectKind::Socket);
    assert!(is_silent(&advices(&recorded), "scanner"));
}

#[test]
fn a_scanner_that_the_command_itself_started_is_a_scanner() {
    let (mut recording, slices) = scanned(b"fand", LeftCpu::Uninterruptible, ObjectKind::Permission);
    let outside = only(&advices(&(recording.clone(), slices.clone())), "scanner").saving[0];
    // The scanner is a child of the shell. It sleeps, answers, and ends after the shell.
    const SCANNER: u64 = 900;
    let wall = recording.info.wall.unwrap().0;
    let mut row = recording.launches[1].clone();
    row.id = LaunchId(SCANNER);
    (row.created, row.first_run) = (Some(Nanos(1_000_000)), Some(Nanos(1_000_000)));
    (row.exit, row.zombie, row.reaped) = (None, None, None);
    recording.launches.push(row);
    let answered: Vec<u64> = slices
        .iter()
        .filter(|slice| slice.syscall == Some(EXECVE))
        .map(|slice| slice.off.0 + slice.wake_span.unwrap().0)
        .collect();
    let mut slices: Vec<SliceRow> = slices;
    for slice in slices.iter_mut().filter(|slice| slice.syscall == Some(EXECVE)) {
        slice.waker = Some(WakerRow::Task(TaskId(SCANNER)));
    }
    slices.push(created(SCANNER, 1_000_000, 0));
    let mut on = 1_000_000;
    for answered in answered {
        let off = on + 1_000;
        slices.push(slice(SCANNER, on, off, [answered - 1_000 - off, 0], CLOCK_NANOSLEEP, None));
        on = answered - 1_000;
    }
    slices.push(ended(SCANNER, on, wall));
    let inside = only(&advices(&(recording, slices)), "scanner").saving[0];
    assert!(inside.0.abs_diff(outside.0) < outside.0 / 20, "{inside:?} instead of {outside:?}");
}
