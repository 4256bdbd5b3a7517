//! Tests of the messages of eslogger: the events that they become.

use super::*;

#[test]
fn times_are_converted() {
    for (text, seconds) in [
        ("1970-01-01T00:00:00Z", Some(0)),
        ("2000-02-29T12:00:01Z", Some(951_825_601)),
        ("2026-11-28T08:00:00.000000000Z", Some(1_795_852_800)),
        ("2026-13-28T08:00:00Z", None),
        ("2026-11-28 08:00:00", None),
    ] {
        assert_eq!(instant(text).map(|at| at.0 / 1_000_000_000), seconds, "{text}");
    }
}

fn read(text: &str) -> Log {
    let mut log = Log::of_one(Lines::of_text(text.as_bytes()), None).unwrap();
    while log.read().unwrap() {}
    log
}

fn line(number: u64, token: &str, event: &str) -> String {
    let time = format!("2026-11-28T08:00:0{number}.5Z");
    format!(r#"{{"time":"{time}","global_seq_num":{number},"process":{{"audit_token":{token}}},"event":{event}}}"#)
        + "\n"
}

#[test]
fn both_shapes_of_tokens_are_read_and_gaps_are_counted() {
    let object = |pid: i32, version: i32| format!(r#"{{"pid":{pid},"pidversion":{version},"euid":0}}"#);
    let array = |pid: i32, version: i32| format!("[501,501,20,501,20,{pid},100,{version}]");
    for token in [&object as &dyn Fn(i32, i32) -> String, &array] {
        let fork = format!(r#"{{"fork":{{"child":{{"audit_token":{}}}}}}}"#, token(8, 80));
        let exec = format!(
            r#"{{"exec":{{"target":{{"audit_token":{},"executable":{{"path":"/bin/a"}}}},"args":["a","b c"],"env":["KEY=secret"]}}}}"#,
            token(8, 81)
        );
        let log = read(
            &[
                line(1, &token(7, 70), &fork),
                line(2, &token(8, 80), &exec),
                line(5, &token(8, 81), r#"{"exit":{"stat":256}}"#),
                line(6, &token(9, 90), r#"{"exit":{"stat":0}}"#),
                "{\"time\":1}\n".to_owned(),
            ]
            .concat(),
        );
        let kinds: Vec<_> = log.events.iter().map(|event| (event.launch.0, &event.kind)).collect();
        assert!(matches!(kinds[0], (1, EventKind::Adopted { pid: Pid(7), .. })), "{kinds:?}");
        assert!(matches!(kinds[1], (2, EventKind::Launched(launched)) if launched.parent.0 == 1), "{kinds:?}");
        assert!(matches!(kinds[2], (2, EventKind::Executed(executed)) if executed.argv == b"a\0b c\0"), "{kinds:?}");
        assert!(matches!(kinds[4], (2, EventKind::Exited(exited)) if exited.wait_status == Some(256)), "{kinds:?}");
        assert_eq!((kinds.len(), log.lost, log.count.refused.as_ref().unwrap().count), (6, 2, 1));
        assert!(!format!("{:?}", log.events).contains("secret"));
    }
}

#[test]
fn a_process_that_begins_with_an_exec_was_spawned_or_is_older_than_the_log() {
    let exec = |start: &str| {
        format!(
            r#"{{"exec":{{"target":{{"audit_token":[0,0,0,0,0,8,0,81],"parent_audit_token":[0,0,0,0,0,7,0,70],"start_time":"{start}"}}}}}}"#
        )
    };
    let spawned = read(&line(1, "[0,0,0,0,0,8,0,80]", &exec("2026-11-28T08:00:01.6Z")));
    assert!(matches!(
        &spawned.events[1].kind,
        EventKind::Launched(Launched { mechanism: Some(Mechanism::PosixSpawn), .. })
    ));
    let older = read(&line(1, "[0,0,0,0,0,8,0,80]", &exec("2026-11-28T07:00:00.5Z")));
    assert!(matches!(&older.events[0].kind, EventKind::Adopted { pid: Pid(8), .. }), "{:?}", older.events);
}

#[test]
fn a_process_that_acts_when_its_child_has_ended_is_assumed_to_have_waited() {
    let fork = |pid: i32| format!(r#"{{"fork":{{"child":{{"audit_token":[0,0,0,0,0,{pid},0,1]}}}}}}"#);
    let (parent, child) = ("[0,0,0,0,0,7,0,1]", "[0,0,0,0,0,8,0,1]");
    let waited = |end: u64| {
        let exit = r#"{"exit":{"stat":0}}"#;
        let text = [line(1, parent, &fork(8)), line(end, child, exit), line(9, parent, &fork(9))].concat();
        let log = read(&text);
        let waits = log.events.iter().filter(|event| matches!(event.kind, EventKind::Slice(_)));
        waits.map(|event| (event.launch.0, event.at.since(log.origin).0 / 1_000_000_000)).collect::<Vec<_>>()
    };
    assert_eq!(waited(8), [(1, 7)]);
    assert_eq!(waited(4), [], "the parent did something else for longer");
}

#[test]
fn a_process_that_lives_on_waits_for_the_last_of_the_children_that_it_spawned_together() {
    let parent = "[0,0,0,0,0,7,0,1]";
    let exec = |second: u64, pid: i32| {
        let target = format!(
            r#"{{"audit_token":[0,0,0,0,0,{pid},0,2],"parent_audit_token":{parent},"start_time":"2026-11-28T08:00:02.{pid}Z"}}"#
        );
        line(second, &format!("[0,0,0,0,0,{pid},0,1]"), &format!(r#"{{"exec":{{"target":{target}}}}}"#))
    };
    let exit = |second: u64, pid: i32| line(second, &format!("[0,0,0,0,0,{pid},0,2]"), r#"{"exit":{"stat":0}}"#);
    // The second one was spawned before the first one ended, but macOS was slow to execute it.
    let text = [line(1, parent, r#"{"exit":null}"#), exec(3, 5), exit(4, 5), exec(5, 6), exit(7, 6)].concat();
    let mut log = read(&text);
    log.finish();
    let tenths = |at: Nanos| at.since(log.origin).0 / 100_000_000;
    let waits = log.events.iter().filter_map(|event| match &event.kind {
        EventKind::Slice(slice) | EventKind::LastSeen(slice) => Some((tenths(slice.off), tenths(event.at))),
        _ => None,
    });
    assert_eq!(waits.collect::<Vec<_>>(), [(11, 60), (60, 60)]);
}
