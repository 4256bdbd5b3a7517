//! Tests that each reaping is assigned to the right launch, even if pids are reused or parents have
//! ended.

use super::*;

#[test]
fn a_wait_for_a_stopped_child_is_not_a_reaping() {
    let alive = [released(), launched(10, ROOT, CHILD, 200), reaped(100, ROOT, 200)];
    assert_eq!(launches(&alive)[&CHILD].reaped, None);
    let mut dead = alive.to_vec();
    dead.extend([exited(200, CHILD), reaped(300, ROOT, 200), gone(310, CHILD)]);
    assert_eq!(launches(&dead)[&CHILD].reaped, Some(Nanos(300)));
}

#[test]
fn an_auto_reaped_child_is_reaped_when_it_becomes_a_zombie_unless_a_wait_reaps_it() {
    let auto =
        event(300, CHILD, EventKind::Gone { zombie: Some(instant(290)), auto_reaped: true, cpu: Some(Nanos(100)) });
    let mut events = vec![released(), launched(10, ROOT, CHILD, 200), exited(200, CHILD), auto];
    assert_eq!(launches(&events)[&CHILD].reaped, Some(Nanos(290)));
    let mut waited = assembler();
    events.iter().for_each(|event| waited.apply(event));
    waited.take_batch();
    waited.apply(&reaped(400, ROOT, 200));
    let late = waited.take_batch().launches.into_iter().find(|row| row.id == CHILD).unwrap();
    assert_eq!(late.reaped, Some(Nanos(400)), "even after the launch was finished");

    events.insert(3, reaped(250, ROOT, 200));
    assert_eq!(
        launches(&events)[&CHILD].reaped,
        Some(Nanos(250)),
        "the wait may return before the last event of the child"
    );
}

#[test]
fn a_child_whose_parent_has_ended_is_reaped_by_the_subreaper() {
    let grandchild = LaunchId(3);
    let mut events = vec![released(), launched(10, ROOT, CHILD, 200), launched(20, CHILD, grandchild, 300)];
    events.extend([exited(100, grandchild), gone(110, grandchild), reaped(150, ROOT, 300)]);
    assert_eq!(
        launches(&events)[&grandchild].reaped,
        None,
        "this wait is a tracer's, because the parent lives and will reap the child"
    );
    events.extend([exited(200, CHILD), reaped(250, ROOT, 300)]);
    assert_eq!(launches(&events)[&grandchild].reaped, Some(Nanos(250)));
}

#[test]
fn a_reused_pid_belongs_to_the_new_launch() {
    let second = LaunchId(3);
    let events = [
        released(),
        launched(10, ROOT, CHILD, 200),
        exited(100, CHILD),
        gone(110, CHILD),
        launched(200, ROOT, second, 200),
        exited(300, second),
        gone(310, second),
        reaped(400, ROOT, 200),
    ];
    let rows = launches(&events);
    assert_eq!(rows[&second].reaped, Some(Nanos(400)));
    assert_eq!(rows[&CHILD].reaped, None, "the event of its reaping was lost");
}

#[test]
fn finished_launches_are_forgotten() {
    let mut assembler = assembler();
    assembler.apply(&released());
    for number in 0..100 {
        whole_life(number * 2_000, LaunchId(2 + number), 200).iter().for_each(|event| assembler.apply(event));
        assembler.take_batch();
    }
    assert_eq!(assembler.unfinished.keys().collect::<Vec<_>>(), [&ROOT]);
    assert_eq!(assembler.by_pid.len(), 1);
    assert!(assembler.unfinished[&ROOT].unreaped.is_empty());
}
