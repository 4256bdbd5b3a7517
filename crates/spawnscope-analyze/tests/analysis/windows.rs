//! Windows: what one process did in a span of time, explained as a recording of its own.

use proptest::prelude::*;
use spawnscope_analyze::SliceCollection;
use spawnscope_analyze::model::slices::Slices;
use spawnscope_analyze::model::window::{Part, WindowError, choose, episodes};
use spawnscope_data::rows::{Origin, Scope};

use crate::prelude::*;

const GIT: (&str, &[&str]) = ("/usr/bin/git", &["git", "status"]);
/// The pause of a user between two commands, in nanoseconds.
const PAUSE: u64 = 2_000_000_000;
/// The number of launches in each burst.
const LAUNCHES: u64 = 20;

/// Builds a recording of the machine with a shell that existed before it, and that launches two
/// bursts. The second burst takes longer.
fn machine() -> (Recording, Vec<SliceRow>) {
    let mut serial = Serial::new();
    for _ in 0..LAUNCHES {
        serial.launch(&Spans::USUAL, Some(GIT));
    }
    let from = serial.now();
    serial.slices.push(slice(1, from, from, [PAUSE, 0], CLOCK_NANOSLEEP, None));
    serial.resume_shell_at(from + PAUSE);
    let slow = Spans { exec: 2_000_000, ..Spans::USUAL };
    for _ in 0..LAUNCHES {
        serial.launch(&slow, Some(GIT));
    }
    let (mut recording, slices) = serial.finish();
    recording.info.scope = Scope::System;
    recording.info.root = None;
    recording.info.command.clear();
    let name = recording.texts.push(b"bash");
    let shell = recording.launches.iter_mut().find(|row| row.id == ROOT).unwrap();
    (shell.origin, shell.exit, shell.zombie, shell.wait_status) = (Origin::Existed, None, None, None);
    shell.name = Some(name);
    recording.execs.retain(|row| row.launch != ROOT);
    (recording, slices)
}

/// Cuts a part out of a recording, and explains it.
fn explain(
    (recording, slices): &(Recording, Vec<SliceRow>),
    part: Part,
) -> Result<(Recording, Option<Causes>), WindowError> {
    let mut recording = recording.clone();
    let mut all = Slices::default();
    slices.iter().for_each(|row| all.push(*row));
    if let Some(window) = choose(&recording, &Forest::build(&recording), &[], part)? {
        window.cut(&mut recording);
        all = window.cut_slices(&all);
    }
    let forest = Forest::build(&recording);
    let timelines = SliceCollection::new(&forest, &[]).finish(all);
    let causes = Causes::find(&recording, &forest, &timelines);
    Ok((recording, causes))
}

fn launched(recording: &Recording) -> usize {
    recording.launches.iter().filter(|row| row.origin == Origin::Launched).count()
}

#[test]
fn a_pause_separates_episodes_and_the_busiest_comes_first() {
    let (recording, _) = machine();
    let found = episodes(&Forest::build(&recording));
    assert_eq!(found.len(), 2);
    assert!(found.iter().all(|episode| episode.launches == LAUNCHES && episode.span.owner == ROOT));
    assert!(found[0].tax > found[1].tax && found[0].span.from > found[1].span.to);
    assert_eq!(found[0].label, b"bash");
}

#[test]
fn an_episode_is_explained_like_a_command() {
    let machine = machine();
    let busiest = episodes(&Forest::build(&machine.0))[0].span;
    let (cut, causes) = explain(&machine, Part::Main).unwrap();
    let causes = causes.unwrap();
    assert_eq!(cut.info.wall, Some(busiest.to.since(busiest.from)));
    assert_eq!(launched(&cut), LAUNCHES as usize);
    assert_eq!(causes.path.sum(), cut.info.wall.unwrap());
    assert!(causes.replay_error.abs() < 0.001, "{}", causes.replay_error);
    let share = causes.path.tax().0 as f64 / cut.info.wall.unwrap().0 as f64;
    assert!(share > 0.8, "an episode without its pauses is mostly launching: {share}");
}

#[test]
fn the_whole_machine_has_no_critical_path() {
    let (_, causes) = explain(&machine(), Part::Whole).unwrap();
    assert!(causes.is_none());
}

#[test]
fn a_span_cuts_launches_at_its_ends() {
    let machine = machine();
    // The span begins within the third launch and ends within the fifth.
    let [from, to] = [4, 6].map(|id| machine.0.launches.iter().find(|row| row.id == LaunchId(id)).unwrap().first_run);
    let part = Part::Span { from, to, pid: None };
    let (cut, causes) = explain(&machine, part).unwrap();
    let causes = causes.unwrap();
    assert_eq!(launched(&cut), 2, "the one that ran before is not a launch");
    let before = cut.launches.iter().find(|row| row.id == LaunchId(4)).unwrap();
    assert_eq!((before.origin, before.created), (Origin::Existed, from));
    let last = cut.launches.last().unwrap();
    assert_eq!((last.id, last.zombie, last.wait_status), (LaunchId(6), None, None));
    assert_eq!(causes.path.sum(), to.unwrap().since(from.unwrap()));
    assert!(causes.replay_error.abs() < 0.01, "{}", causes.replay_error);
}

#[test]
fn parts_that_do_not_exist_are_errors() {
    let machine = machine();
    let end = machine.0.info.last_event;
    let (zero, nine) = (Some(Nanos(0)), Some(Nanos(9)));
    for (part, expected) in [
        (Part::Episode(3), WindowError::NoEpisode { number: 3, count: 2 }),
        (Part::Episode(0), WindowError::NoEpisode { number: 0, count: 2 }),
        (Part::Span { from: zero, to: nine, pid: Some(Pid(77)) }, WindowError::NoProcess(Pid(77))),
        (Part::Span { from: zero, to: nine, pid: None }, WindowError::NoLaunches),
    ] {
        assert_eq!(explain(&machine, part).map(|_| ()), Err(expected));
    }
    let after_end = Part::Span { from: Some(end), to: Some(Nanos(end.0 + 5)), pid: None };
    assert!(matches!(explain(&machine, after_end), Err(WindowError::EmptySpan { .. })));
}

proptest! {
    #[test]
    fn the_path_of_any_span_sums_to_its_length(from in 0u64..2_200_000_000, length in 1u64..500_000_000) {
        let machine = machine();
        let to = (from + length).min(machine.0.info.last_event.0);
        prop_assume!(from < to);
        let part = Part::Span { from: Some(Nanos(from)), to: Some(Nanos(to)), pid: machine.0.launches[0].pid };
        let (_, causes) = explain(&machine, part).unwrap();
        let causes = causes.unwrap();
        prop_assert_eq!(causes.path.sum(), Nanos(to - from));
        // A span may begin and end inside a launch. The error from cutting a launch is at most 300
        // us, however short the span is.
        let error = causes.replay_error.abs() * (to - from) as f64;
        prop_assert!(error < 0.02 * (to - from) as f64 + 300e3, "{error} ns of {}", to - from);
    }
}
