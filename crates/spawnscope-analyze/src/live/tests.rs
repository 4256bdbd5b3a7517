//! Tests of live launches: applies the rows of a recorder batch by batch, and checks what is known
//! after each batch.

use super::*;
use crate::model::launch::Outcome;
use crate::model::phases::Phase;
use spawnscope_data::event::Nanos;
use spawnscope_data::rows::ExecRow;

const SHELL: LaunchId = LaunchId(1);

fn texts(texts: &[&str]) -> Vec<(TextId, Arc<[u8]>)> {
    (0..).map(TextId).zip(texts.iter().map(|text| text.as_bytes().into())).collect()
}

/// Returns launches after a first batch with these strings and a shell that existed before.
fn with_shell(all: &[&str]) -> LiveLaunches {
    let mut live = LiveLaunches::new(Vec::new());
    let shell = LaunchRow {
        id: SHELL,
        origin: Origin::Existed,
        created: Some(Nanos(0)),
        name: Some(TextId(0)),
        ..LaunchRow::default()
    };
    live.apply(NewRows { texts: texts(all), launches: vec![shell], ..NewRows::default() });
    live
}

/// Returns the row of a launch by `parent` at 1000, whose phases before the exec take 100 each.
fn launch(id: u64, parent: LaunchId) -> LaunchRow {
    LaunchRow {
        id: LaunchId(id),
        parent: Some(parent),
        origin: Origin::Launched,
        create: Some(Nanos(1000)),
        created: Some(Nanos(1100)),
        first_run: Some(Nanos(1200)),
        ..LaunchRow::default()
    }
}

fn existing(id: u64, name: u32) -> LaunchRow {
    LaunchRow { id: LaunchId(id), origin: Origin::Existed, name: Some(TextId(name)), ..LaunchRow::default() }
}

fn one_row(row: &LaunchRow) -> NewRows {
    NewRows { launches: vec![row.clone()], ..NewRows::default() }
}

fn end(row: &mut LaunchRow, status: i32) {
    row.exit = Some(Nanos(2000));
    row.zombie = Some(Nanos(2100));
    row.reaped = Some(Nanos(2300));
    row.wait_status = Some(status);
}

fn exec(launch: u64, enter: u64, path: u32) -> ExecRow {
    ExecRow {
        launch: LaunchId(launch),
        enter: Some(Nanos(enter)),
        returned: Some(Nanos(enter + 50)),
        load_end: Some(Nanos(enter + 90)),
        has_loader: Some(true),
        path: TextId(path),
        ..ExecRow::default()
    }
}

#[test]
fn an_ended_launch_has_the_same_name_and_phases_as_in_reports() {
    let mut live = with_shell(&["bash", "/bin/sed"]);
    let mut row = launch(2, SHELL);
    let running = live.apply(NewRows { launches: vec![row.clone()], ..NewRows::default() });
    assert!(running.is_empty());
    assert_eq!((live.started(), live.running()), (1, 1));
    assert_eq!(live.processes.get(&LaunchId(2)).unwrap().label(), b"(bash)");

    end(&mut row, 0x200);
    let ended = live.apply(NewRows {
        launches: vec![row],
        execs: vec![(1, exec(2, 1300, 1))],
        finished: vec![LaunchId(2)],
        ..NewRows::default()
    });
    let [ended] = ended.as_slice() else { panic!("{ended:?}") };
    assert_eq!(ended.command, b"sed");
    assert_eq!(ended.outcome, Outcome::Code(2));
    assert!(ended.has_failed());
    let phases = ended.phases.as_ref().unwrap();
    let times = Phase::ALL.map(|phase| phases.get(phase).unwrap().0);
    assert_eq!(times, [100, 100, 100, 50, 40, 610, 100, 200]);
    assert_eq!((ended.tax, ended.total), (Some(Nanos(690)), Some(Nanos(1300))));
    assert_eq!((live.started(), live.running()), (1, 0));
}

/// Returns the row of a launch that lives from `birth` until it is reaped.
fn reaped_launch(id: u64, parent: LaunchId, birth: u64, reaped: u64) -> LaunchRow {
    LaunchRow {
        create: Some(Nanos(birth)),
        created: Some(Nanos(birth)),
        exit: Some(Nanos(reaped - 200)),
        zombie: Some(Nanos(reaped - 100)),
        reaped: Some(Nanos(reaped)),
        wait_status: Some(0),
        ..launch(id, parent)
    }
}

/// Applies launches. The program of each is the string whose number is the launch's id. Returns the
/// critical time of each command.
fn critical(live: &mut LiveLaunches, rows: &[LaunchRow], commands: &[&str]) -> Vec<Option<u64>> {
    live.apply(NewRows {
        finished: rows
            .iter()
            .rev()
            .filter(|row| row.reaped.is_some() && row.zombie != row.reaped)
            .map(|row| row.id)
            .collect(),
        execs: rows
            .iter()
            .map(|row| (row.id.0 as i64, exec(row.id.0, row.create.unwrap().0, row.id.0 as u32)))
            .collect(),
        launches: rows.to_vec(),
        ..NewRows::default()
    });
    let times = live.critical_times();
    commands.iter().map(|name| times.get(name.as_bytes()).map(|time| time.0)).collect()
}

#[test]
fn critical_time_starts_at_the_previous_reaping_and_is_counted_once() {
    let names = ["bash", "-", "first", "second", "below", "left"];
    let mut live = with_shell(&names);
    // Two launches run concurrently. Half of the lifetime of the second follows the reaping of the
    // first, so half of what the second waited for is critical. Another launch ends without being
    // reaped.
    let mut unreaped = reaped_launch(5, SHELL, 6_000, 7_000);
    unreaped.zombie = unreaped.reaped;
    let rows = [
        reaped_launch(2, SHELL, 1_000, 3_000),
        reaped_launch(3, SHELL, 1_000, 5_000),
        reaped_launch(4, LaunchId(3), 2_000, 4_500),
        unreaped,
    ];
    let known = critical(&mut live, &rows, &names[2..]);
    assert_eq!(known, [Some(2_000), Some(750), Some(1_250), None]);
}

#[test]
fn launches_of_a_running_process_have_critical_time() {
    let names = ["bash", "-", "make", "cc"];
    let mut live = with_shell(&names);
    let running = LaunchRow {
        exit: None,
        zombie: None,
        reaped: None,
        wait_status: None,
        ..reaped_launch(2, SHELL, 1_000, 9_000)
    };
    let rows = [running, reaped_launch(3, LaunchId(2), 2_000, 5_000)];
    assert_eq!(critical(&mut live, &rows, &names[2..]), [None, Some(3_000)]);
    let ended = critical(&mut live, &[reaped_launch(2, SHELL, 1_000, 9_000)], &names[2..]);
    assert_eq!(ended, [Some(5_000), Some(3_000)]);
}

#[test]
fn a_fork_has_the_name_of_the_program_that_its_parent_ran_at_the_fork() {
    let mut live = with_shell(&["bash", "/usr/bin/python3", "/bin/dash"]);
    let mut parent = launch(2, SHELL);
    let mut fork = launch(3, LaunchId(2));
    fork.create = Some(Nanos(1500));
    end(&mut parent, 0);
    end(&mut fork, 9);
    // Parent and child end in the same batch, and the parent has executed another program since.
    let ended = live.apply(NewRows {
        launches: vec![fork, parent],
        execs: vec![(1, exec(2, 1300, 1)), (2, exec(2, 1800, 2))],
        finished: vec![LaunchId(3), LaunchId(2)],
        ..NewRows::default()
    });
    let names: Vec<&[u8]> = ended.iter().map(|ended| &*ended.command).collect();
    assert_eq!(names, [b"(python3)".as_slice(), b"dash"]);
    let [fork, _] = ended.as_slice() else { panic!() };
    assert!(fork.has_failed());
    assert!(!fork.phases.as_ref().unwrap().has(Phase::Exec));
}

/// In `(sed; sed)`, for example, the subshell executes the second sed itself.
#[test]
fn time_in_which_a_fork_launches_others_before_its_exec_counts_as_run() {
    let mut live = with_shell(&["bash", "/bin/sed"]);
    let (mut fork, mut child) = (launch(2, SHELL), launch(3, LaunchId(2)));
    (child.create, child.created) = (Some(Nanos(1250)), Some(Nanos(1300)));
    (child.zombie, child.reaped) = (Some(Nanos(1400)), Some(Nanos(1450)));
    end(&mut fork, 0);
    live.apply(NewRows {
        launches: vec![fork.clone(), child.clone()],
        execs: vec![(1, exec(2, 1500, 1))],
        finished: vec![LaunchId(3)],
        ..NewRows::default()
    });
    let ended = live.apply(NewRows { finished: vec![LaunchId(2)], ..NewRows::default() });
    let phases = ended[0].phases.as_ref().unwrap();
    assert_eq!(phases.get(Phase::Setup), Some(Nanos(50)));
    assert_eq!(phases.get(Phase::Run), Some(Nanos(250 + 2000 - 1590)));
}

#[test]
fn a_launch_whose_end_was_lost_has_no_phases() {
    let mut live = with_shell(&["bash"]);
    let ended =
        live.apply(NewRows { launches: vec![launch(2, SHELL)], finished: vec![LaunchId(2)], ..NewRows::default() });
    let [ended] = ended.as_slice() else { panic!("{ended:?}") };
    assert_eq!((ended.outcome, ended.has_failed()), (Outcome::Unknown, false));
    assert!(ended.phases.is_none() && ended.tax.is_none() && ended.total.is_none());
}

#[test]
fn the_command_ends_once_without_being_reaped() {
    let mut live = LiveLaunches::new(Vec::new());
    let mut row = LaunchRow {
        id: SHELL,
        origin: Origin::Command,
        created: Some(Nanos(10)),
        exit: Some(Nanos(900)),
        ..LaunchRow::default()
    };
    assert!(live.apply(one_row(&row)).is_empty());
    row.zombie = Some(Nanos(1000));
    row.wait_status = Some(0);
    assert_eq!(live.apply(one_row(&row)).len(), 1);
    assert!(live.apply(one_row(&row)).is_empty(), "a late event");
    assert_eq!((live.started(), live.running()), (1, 0));
}

#[test]
fn a_launch_that_outlives_its_recording_is_counted_once_without_phases() {
    let mut live = with_shell(&["bash", "/bin/sleep"]);
    let mut zombie = launch(3, SHELL);
    end(&mut zombie, 0);
    zombie.reaped = None;
    let first = live.apply(NewRows {
        launches: vec![launch(2, SHELL), zombie],
        execs: vec![(1, exec(2, 1300, 1))],
        ..NewRows::default()
    });
    assert!(first.is_empty(), "neither was reaped");
    // The next recording has different string numbers, and does not know when the process was
    // launched.
    let mut row = LaunchRow {
        id: LaunchId(2),
        origin: Origin::Existed,
        created: Some(Nanos(0)),
        name: Some(TextId(0)),
        ..LaunchRow::default()
    };
    let gone = live.apply(NewRows { recording: 1, texts: texts(&["sleep"]), ..one_row(&row) });
    assert_eq!(gone.iter().map(|gone| gone.id).collect::<Vec<_>>(), [LaunchId(3)], "launch 3 no longer exists");
    end(&mut row, 9);
    row.reaped = None;
    let ended = live.apply(NewRows { recording: 1, ..one_row(&row) });
    let [ended] = ended.as_slice() else { panic!("{ended:?}") };
    assert_eq!(ended.command, b"sleep");
    assert!(ended.has_failed() && ended.phases.is_none() && ended.total.is_none());
    assert!(live.apply(NewRows { recording: 1, ..one_row(&row) }).is_empty(), "a late event");
    assert_eq!((live.started(), live.running()), (2, 0));
}

#[test]
fn late_events_and_processes_that_existed_are_not_launches() {
    let mut live = with_shell(&["bash"]);
    let late = LaunchRow { id: LaunchId(7), ..LaunchRow::default() };
    let ended = live.apply(NewRows { launches: vec![late], finished: vec![SHELL, LaunchId(7)], ..NewRows::default() });
    assert!(ended.is_empty());
    assert_eq!((live.started(), live.processes.len()), (0, 0));
}

#[test]
fn memory_is_bounded_despite_endless_strings_and_execs() {
    let mut live = with_shell(&["bash"]);
    live.apply(NewRows { launches: vec![launch(2, SHELL)], ..NewRows::default() });
    for number in 1..1000_u32 {
        live.apply(NewRows {
            texts: vec![(TextId(number), number.to_string().as_bytes().into())],
            oldest_text: TextId(number.saturating_sub(10)),
            execs: vec![(i64::from(number), exec(2, u64::from(number) * 1000, number))],
            ..NewRows::default()
        });
    }
    assert!(live.texts.len() <= 11, "{}", live.texts.len());
    let process = live.processes.get(&LaunchId(2)).unwrap();
    assert!(process.execs.len() <= 64 && process.is_incomplete);
    assert_eq!(process.label(), b"999");
}

#[test]
fn the_first_commands_have_rows_and_all_others_share_one() {
    let mut live = with_shell(&["bash"]);
    let mut row = launch(2, SHELL);
    end(&mut row, 0);
    let ended = live.apply(NewRows { launches: vec![row], finished: vec![LaunchId(2)], ..NewRows::default() });
    let mut metrics = LaunchMetrics::new(2);
    for name in ["a", OTHER, "b", "c", "a", "d"] {
        metrics.add(name.to_owned(), &ended[0]);
    }
    let counts: Vec<_> = metrics.commands().map(|(name, row)| (name, row.launches)).collect();
    assert_eq!(counts, [("a", 2), ("b", 1), (OTHER, 3)]);
}

#[test]
fn a_board_lists_commands_and_the_tree_of_processes() {
    let mut board = LiveBoard::new(Vec::new());
    let mut ended = launch(5, LaunchId(4));
    end(&mut ended, 0x100);
    board.apply(NewRows {
        texts: texts(&["bash", "init", "/bin/make"]),
        launches: vec![existing(1, 0), existing(2, 1), launch(4, SHELL), ended, launch(3, SHELL)],
        execs: vec![(1, exec(4, 1300, 2))],
        finished: vec![LaunchId(5)],
        ..NewRows::default()
    });
    let snapshot = board.snapshot();
    assert_eq!((snapshot.started, snapshot.running), (3, 2));
    let tree: Vec<_> = snapshot.processes.iter().map(|row| (row.id.0, row.depth, row.launched)).collect();
    assert_eq!(tree, [(1, 0, 2), (3, 1, 0), (4, 1, 1)], "init has launched nothing");
    let mut commands: Vec<_> = snapshot.commands.iter().map(|row| (&*row.command, row.count, row.running)).collect();
    commands.sort_unstable();
    // The fork was created before its parent executed make.
    assert_eq!(commands, [(b"(bash)".as_slice(), 1, 1), (b"make", 0, 1)]);
    let fork = snapshot.commands.iter().find(|row| row.count == 1).unwrap();
    assert_eq!((fork.failures, fork.tax, fork.recent.len()), (1, Some(Nanos(500)), 1));
}
