//! Tests that the edges of ninja are found in its log and stored.

use super::*;
use spawnscope_data::event::Executed;

const NINJA: LaunchId = LaunchId(2);

fn executes(launch: LaunchId, path: &str, arguments: &[&str], directory: &Path) -> Event {
    let mut event = executed(2_000, launch, "x");
    let EventKind::Executed(exec) = &mut event.kind else { unreachable!("the event is an exec") };
    let argv: Vec<u8> = arguments.iter().flat_map(|text| [text.as_bytes(), b"\0"].concat()).collect();
    *exec = Executed {
        path: path.as_bytes().to_vec(),
        argv_bytes: argv.len() as u64,
        argv,
        cwd: Some(directory.as_os_str().as_encoded_bytes().to_vec()),
        ..exec.clone()
    };
    event
}

/// Returns the events of a ninja that works in a directory and launches two commands.
fn build(directory: &Path) -> Vec<Event> {
    vec![
        launched(1_000, ROOT, NINJA, 101),
        executes(NINJA, "/usr/bin/ninja", &["ninja"], directory),
        launched(2_000, NINJA, LaunchId(3), 102),
        // The secret is masked in the recording, but it is part of the hash.
        executes(LaunchId(3), "/bin/sh", &["/bin/sh", "-c", "make-it --password=hunter2"], directory),
        launched(2_000, NINJA, LaunchId(4), 103),
        executes(LaunchId(4), "/bin/sh", &["/bin/sh", "-c", "fail"], directory),
    ]
}

fn edges(directory: &Directory, events: &[&[Event]]) -> Vec<(LaunchId, String)> {
    let recorder = Recorder::create(&directory.path(), &header(), Redaction::Mask, &WriterOptions::default()).unwrap();
    events.iter().for_each(|events| recorder.send(events.to_vec()));
    recorder.finish(ending()).unwrap();
    let Recording { edges, texts, .. } = read(&directory.path());
    edges.iter().map(|edge| (edge.launch, String::from_utf8(texts.get(edge.output).to_vec()).unwrap())).collect()
}

/// Writes a log of `make-it` to the directory, as ninja 1.11 would write it.
fn write_log(directory: &Directory) {
    let log = "# ninja log v5\n0\t5\t1700\tb\tHASH\n0\t5\t1700\ta\tHASH\n".replace("HASH", "a72213ac9e74717e");
    fs::write(directory.0.path().join(".ninja_log"), log).unwrap();
}

#[test]
fn edges_are_stored_when_ninja_ends() {
    let directory = Directory::new();
    write_log(&directory);
    let found = edges(&directory, &[&build(directory.0.path()), &[exited(5_000, NINJA)]]);
    assert_eq!(found, [(LaunchId(3), "a".into()), (LaunchId(3), "b".into())]);
}

#[test]
fn edges_are_stored_when_the_recording_ends_before_ninja() {
    let directory = Directory::new();
    write_log(&directory);
    assert_eq!(edges(&directory, &[&build(directory.0.path())]).len(), 2);
}

#[test]
fn without_a_log_there_are_no_edges() {
    let directory = Directory::new();
    assert_eq!(edges(&directory, &[&build(directory.0.path()), &[exited(5_000, NINJA)]]), []);
}
