//! Tests of the rows for the whole life of a launch and for its execs.

use super::*;
use crate::reader::StackId;
use spawnscope_data::event::Mechanism;

#[test]
fn a_whole_life_becomes_one_row_with_every_instant() {
    let mut events = vec![released()];
    events.extend(whole_life(1_000, CHILD, 200));
    let row = &launches(&events)[&CHILD];
    let expected = LaunchRow {
        id: CHILD,
        parent: Some(ROOT),
        parent_task: Some(TaskId(1)),
        pid: Some(Pid(200)),
        origin: Origin::Launched,
        mechanism: Some(Mechanism::Fork),
        create: Some(Nanos(1_050)),
        created: Some(Nanos(1_100)),
        first_run: Some(Nanos(1_200)),
        exit: Some(Nanos(2_195)),
        zombie: Some(Nanos(2_295)),
        reaped: Some(Nanos(2_400)),
        wait_status: Some(0),
        parent_rss_bytes: Some(4_000_000),
        parent_table_bytes: Some(80_000),
        exit_cpu: Some(Nanos(90)),
        cpu: Some(Nanos(100)),
        setup_closes: Some(3),
        setup_close_span: Some(Nanos(4)),
        prepare: Some(Nanos(1_040)),
        parent_tidied: Some(Nanos(1_020)),
        parent_faults: Some(5),
        script_stack: Some(StackId::from_index(1)),
        exit_faults: Some(7),
        exit_rss_bytes: Some(8_192),
        ..LaunchRow::default()
    };
    assert_eq!(*row, expected);
}

#[test]
fn each_exec_of_a_process_has_a_row_with_its_loader() {
    let mut assembler = assembler();
    for event in
        [released(), launched(10, ROOT, CHILD, 200), executed(100, CHILD, "env bash"), executed(200, CHILD, "bash")]
    {
        assembler.apply(&event);
    }
    let first = assembler.take_batch();
    assembler.apply(&loaded(300, CHILD));
    let second = assembler.take_batch();

    let ordinals = [&first, &second].map(|batch| batch.execs.iter().map(|(rowid, _)| *rowid).collect::<Vec<_>>());
    assert_eq!(ordinals, [vec![1, 2], vec![2]], "the exec that was loaded is written again");
    let (_, row) = &second.execs[0];
    assert_eq!((row.enter, row.returned, row.load_end), (Some(Nanos(190)), Some(Nanos(295)), Some(Nanos(300))));
    assert_eq!(row.has_loader, Some(true));
    assert_eq!((row.load_opens, row.load_failed_opens, row.load_cache), (Some(2), Some(1), Some(true)));
    assert_eq!(first.execs[1].1.load_opens, None, "the loader's end is not known yet");
    assert_eq!((row.enter_cpu, row.return_cpu, row.load_cpu), (Some(Nanos(10)), Some(Nanos(20)), Some(Nanos(40))));
    assert_eq!(first.execs[0].1.has_loader, None, "unknown, because the process executed another program before");
}

#[test]
fn a_static_image_has_no_loader_and_a_loader_may_have_an_unknown_end() {
    for has_loader in [false, true] {
        let mut assembler = assembler();
        assembler.apply(&executed(100, CHILD, "x"));
        assembler.apply(&with_kind(loaded(200, CHILD), |kind| {
            if let EventKind::Loaded(loaded) = kind {
                (loaded.has_loader, loaded.load_end) = (has_loader, None);
            }
        }));
        let (_, row) = assembler.take_batch().execs.remove(0);
        assert_eq!((row.has_loader, row.load_end), (Some(has_loader), None));
    }
}

#[test]
fn masking_a_secret_does_not_make_an_argv_look_truncated() {
    let mut assembler = assembler();
    assembler.apply(&executed(100, CHILD, "x --password hunter2hunter2"));
    assembler.apply(&with_kind(executed(200, CHILD, "x --password hunter2"), |kind| {
        if let EventKind::Executed(executed) = kind {
            executed.argv_bytes += 1_000;
        }
    }));
    let batch = assembler.take_batch();
    let stored = b"x\0--password\0***\0".len() as u64;
    let argv_bytes: Vec<u64> = batch.execs.iter().map(|(_, row)| row.argv_bytes).collect();
    assert_eq!(argv_bytes, [stored, stored + 1_000]);
    assert!(!batch.texts.iter().any(|text| text.bytes.windows(7).any(|part| part == b"hunter2")));
}

#[test]
fn the_first_run_of_the_command_is_not_before_its_release() {
    let late = Event { at: instant(500), ..released() };
    let rows = launches(&[late, executed(600, ROOT, "x"), with_kind(exited(900, ROOT), |_| {})]);
    assert_eq!(rows[&ROOT].origin, Origin::Command);
    assert_eq!((rows[&ROOT].created, rows[&ROOT].create, rows[&ROOT].mechanism), (Some(Nanos(500)), None, None));
    assert_eq!(rows[&ROOT].first_run, Some(Nanos(580)));
    let early = launches(&[Event { at: instant(590), ..released() }, executed(600, ROOT, "x")]);
    assert_eq!(early[&ROOT].first_run, Some(Nanos(590)));
}

#[test]
fn a_process_that_existed_before_is_not_a_launch() {
    let adopted = event(0, ROOT, EventKind::Adopted { pid: Pid(100), name: b"make".to_vec() });
    let row = &launches(&[adopted])[&ROOT];
    assert_eq!((row.origin, row.pid, row.parent, row.created), (Origin::Existed, Some(Pid(100)), None, Some(Nanos(0))));
    assert!(row.name.is_some());
}

#[test]
fn a_launch_that_is_killed_before_it_runs_has_no_first_run() {
    let killed = with_kind(exited(100, CHILD), |kind| {
        if let EventKind::Exited(exited) = kind {
            (exited.exit_group_entered, exited.wait_status) = (None, Some(9));
        }
    });
    let row = &launches(&[released(), launched(10, ROOT, CHILD, 200), killed, gone(150, CHILD)])[&CHILD];
    assert_eq!((row.first_run, row.exit, row.wait_status), (None, Some(Nanos(100)), Some(9)));
    assert_eq!((row.zombie, row.reaped), (Some(Nanos(145)), None));
}

#[test]
fn the_parents_memory_may_be_unknown() {
    let without_memory = with_kind(launched(10, ROOT, CHILD, 200), |kind| {
        if let EventKind::Launched(launched) = kind {
            (launched.parent_rss_bytes, launched.parent_table_bytes, launched.create) = (None, None, None);
        }
    });
    let row = &launches(&[released(), without_memory])[&CHILD];
    assert_eq!((row.parent_rss_bytes, row.parent_table_bytes, row.create), (None, None, None));
}
