//! The recording that is being written and, with `--keep`, those that follow it. When a recording
//! is full, a border is set (`Cut`), the recording gets the rest of its events, and the next one
//! begins with the processes that ran at the border, as processes that existed before it, as a
//! recording with `-a` does.
//!
//! Events reach the recorder a little later than they happen, and the last slice of a thread comes
//! after the event of its end. Therefore the earlier recording stays open for a short time after
//! the border. Events of this time that belong to the next recording are held until it begins, so
//! neither recording lacks any.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use nix::errno::Errno;
use nix::sys::signal::kill;
use nix::unistd;

use super::ring::Ring;
use crate::clock;
use crate::collect::Collector;
use crate::event::{Calibration, Event, EventKind, LaunchId, Loss, Nanos, Pid, TaskId};
use crate::owner::act_as;
use crate::record::{Ending, Follower, Header, RecordError, Recorder, Redaction, WriterOptions};

/// Settings that all recordings of a ring share.
pub struct RecordingSettings {
    /// The header of the first recording.
    pub header: Header,
    /// What recording adds to operations, as measured before.
    pub overhead: Vec<Calibration>,
    /// Whether secrets are masked.
    pub redaction: Redaction,
    /// The owner of the files, and the writer's memory.
    pub options: WriterOptions,
    /// Receives the rows as they are written.
    pub follower: Option<Follower>,
}

/// The current recording, and what is needed to begin the next one.
pub struct Recordings {
    pub recorder: Recorder,
    pub file: PathBuf,
    /// When the current recording began.
    pub started: Nanos,
    rotation: Option<Rotation>,
    /// Lost events that are counted in earlier recordings.
    lost_before: Vec<Loss>,
}

struct Rotation {
    ring: Ring,
    settings: RecordingSettings,
    carried: CarriedProcesses,
    /// The end of the current recording, once it is full.
    cut: Option<Cut>,
    /// Number of recordings of the ring before the current one.
    earlier_count: usize,
}

impl Rotation {
    /// Updates the carried processes. Removes the events of the next recording.
    fn hold_later(&mut self, events: &mut Vec<Event>) {
        match &mut self.cut {
            Some(cut) => cut.hold_later(&mut self.carried, events),
            None => events.iter().for_each(|event| self.carried.update(event)),
        }
    }
}

impl Recordings {
    /// Takes over the recording of `recorder`. With a ring, more recordings follow it.
    pub fn new(
        recorder: Recorder,
        file: &Path,
        started: Nanos,
        ring: Option<Ring>,
        settings: RecordingSettings,
    ) -> Recordings {
        Recordings {
            recorder,
            file: file.to_owned(),
            started,
            rotation: ring.map(|ring| Rotation {
                ring,
                settings,
                carried: CarriedProcesses::default(),
                cut: None,
                earlier_count: 0,
            }),
            lost_before: Vec::new(),
        }
    }

    pub fn send(&mut self, mut events: Vec<Event>) {
        if let Some(rotation) = &mut self.rotation {
            rotation.hold_later(&mut events);
        }
        self.recorder.send(events);
    }

    /// Returns why nothing is written any more, once writing has failed.
    pub fn failure(&self) -> Option<Arc<RecordError>> {
        self.recorder.failure()
    }

    /// Sets the end of the recording when it is full. Returns whether it has all its events, so
    /// that the next one can begin.
    pub fn is_complete(&mut self) -> bool {
        let Some(rotation) = &mut self.rotation else { return false };
        let now = Instant::now();
        if rotation.cut.is_none() && rotation.ring.is_due(now) {
            rotation.carried.forget_missing();
            rotation.cut = Some(Cut::new(clock::now(), now));
        }
        rotation.cut.as_ref().is_some_and(|cut| cut.is_over(now))
    }

    /// Begins the next recording, finishes the current one, and deletes the oldest. `lost` are the
    /// events lost so far in all recordings.
    pub fn rotate(&mut self, lost: &[Loss], collector: &dyn Collector) -> Result<()> {
        let Some((rotation, cut)) =
            self.rotation.as_mut().and_then(|rotation| rotation.cut.take().map(|cut| (rotation, cut)))
        else {
            return Ok(());
        };
        rotation.ring.advance(Instant::now());
        let file = rotation.ring.current();
        let next = rotation.settings.create(&file, cut.at)?;
        let ended = std::mem::replace(&mut self.recorder, next);
        ended.send(cut.of_young_processes(&rotation.carried));
        let ending = Ending {
            wall: Some(cut.at.since(self.started)),
            ended: "rotated".to_owned(),
            allowed_cpus: None,
            lost: lost_since(lost, &self.lost_before),
            calibration: as_in_command(&rotation.settings.overhead, collector),
        };
        // The rows of the next recording must reach a follower after those of this one.
        ended.finish(ending).with_context(|| format!("failed to finish {}", self.file.display()))?;
        if let Some(follower) = &mut rotation.settings.follower {
            *follower = follower.for_next_recording();
            self.recorder.follow(follower.clone());
        }
        (self.file, self.started, self.lost_before) = (file, cut.at, lost.to_vec());
        let mut first = rotation.carried.adoptions(cut.at);
        let later = cut.into_later();
        later.iter().for_each(|event| rotation.carried.update(event));
        first.extend(later);
        self.recorder.send(first);
        let _owner_guard = act_as(rotation.settings.options.owner.as_ref())
            .context("failed to switch to the ids of the recordings' owner")?;
        rotation.earlier_count = rotation.ring.trim()?;
        Ok(())
    }

    /// Sends all events to the last recording, and returns how many earlier ones of the ring there
    /// are. The follower gets no more rows once the last recording is finished.
    pub fn complete(&mut self) -> usize {
        let Some(rotation) = self.rotation.take() else { return 0 };
        self.recorder.send(rotation.cut.map_or_else(Vec::new, Cut::into_later));
        rotation.earlier_count
    }

    /// Returns the events lost since this recording began. `lost` are those lost in all recordings.
    pub fn lost(&self, lost: &[Loss]) -> Vec<Loss> {
        lost_since(lost, &self.lost_before)
    }
}

impl RecordingSettings {
    fn create(&self, file: &Path, origin: Nanos) -> Result<Recorder> {
        let since_origin = i64::try_from(clock::now().since(origin).0).unwrap_or_default();
        let header = Header { origin, started_unix_ns: unix_ns_now()? - since_origin, ..self.header.clone() };
        let recorder = Recorder::create(file, &header, self.redaction, &self.options);
        recorder.context("failed to create the next recording")
    }
}

/// Returns the nanoseconds since 1970.
pub fn unix_ns_now() -> Result<i64> {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH);
    let nanoseconds = since_1970.context("the clock is before 1970")?.as_nanos();
    Ok(i64::try_from(nanoseconds).unwrap_or(i64::MAX))
}

/// Returns the events lost since the counts in `before`, by kind.
fn lost_since(lost: &[Loss], before: &[Loss]) -> Vec<Loss> {
    let mut lost = lost.to_vec();
    for loss in &mut lost {
        let earlier = before.iter().filter(|earlier| earlier.kind == loss.kind).map(|earlier| earlier.events).sum();
        loss.events = loss.events.saturating_sub(earlier);
    }
    lost.retain(|loss| loss.events > 0);
    lost
}

/// Returns what recording has added to each operation so far. In the command, it is more or less
/// than what was measured before.
pub fn as_in_command(overhead: &[Calibration], collector: &dyn Collector) -> Vec<Calibration> {
    let surplus = collector.cost_beyond_calibration();
    let more = |what| surplus.iter().find(|(other, _)| *other == what).map_or(0.0, |(_, more)| *more);
    overhead.iter().map(|row| row.increased(more(row.what))).collect()
}

/// For this long, the earlier recording still gets its events. This is also the age up to which a
/// process is young: its launch is completed in the recording in which it began.
const BORDER_TIME: Duration = Duration::from_millis(500);

/// The border, until the next recording begins.
#[derive(Debug)]
struct Cut {
    /// The time zero of the next recording.
    at: Nanos,
    until: Instant,
    /// The threads that have started since then.
    started: HashSet<TaskId>,
    /// The events that the next recording contains.
    held: Vec<Event>,
}

impl Cut {
    /// Makes a border between what has happened until `at`, which is now, and what follows.
    fn new(at: Nanos, now: Instant) -> Cut {
        Cut { at, until: now + BORDER_TIME, started: HashSet::new(), held: Vec::new() }
    }

    /// Whether all events of the earlier recording have arrived.
    fn is_over(&self, now: Instant) -> bool {
        now >= self.until
    }

    /// Removes the events that belong to the next recording. `carried` are the processes that run
    /// at the border, as far as the events have arrived.
    fn hold_later(&mut self, carried: &mut CarriedProcesses, events: &mut Vec<Event>) {
        events.retain(|event| {
            if event.at < self.at {
                carried.update(event);
                return true;
            }
            if matches!(
                event.kind,
                EventKind::Launched(_) | EventKind::Adopted { .. } | EventKind::ThreadStarted { .. }
            ) {
                self.started.insert(event.task);
            }
            let is_later = self.started.contains(&event.task) || carried.contains(event);
            if is_later {
                self.held.push(event.clone());
            }
            !is_later
        });
    }

    /// Returns the events that belong to the earlier recording as well: those of young processes.
    fn of_young_processes(&self, carried: &CarriedProcesses) -> Vec<Event> {
        let oldest = Nanos(self.at.0.saturating_sub(BORDER_TIME.as_nanos() as u64));
        self.held.iter().filter(|event| carried.is_launched_since(event.launch, oldest)).cloned().collect()
    }

    /// Returns the events that the next recording contains.
    fn into_later(self) -> Vec<Event> {
        self.held
    }
}

/// The processes that are running according to the events so far, by their launches.
#[derive(Debug, Default)]
struct CarriedProcesses(HashMap<LaunchId, CarriedProcess>);

#[derive(Debug)]
struct CarriedProcess {
    pid: Pid,
    name: Vec<u8>,
    /// When it was launched; `None` if it existed before.
    launched: Option<Nanos>,
    /// All threads but the main thread: the thread id and the creator of each.
    threads: HashMap<TaskId, (Pid, TaskId)>,
}

impl CarriedProcesses {
    fn update(&mut self, event: &Event) {
        let id = event.launch;
        match &event.kind {
            EventKind::Adopted { pid, name } => self.insert(id, *pid, name.clone(), None),
            EventKind::Launched(launched) => {
                let parent = self.0.get(&launched.parent);
                let name = parent.map_or_else(|| b"?".to_vec(), |parent| parent.name.clone());
                self.insert(id, launched.pid, name, Some(event.at));
            }
            EventKind::Executed(executed) => {
                if let Some(process) = self.0.get_mut(&id) {
                    let base = executed.path.rsplit(|byte| *byte == b'/').next();
                    process.name = base.unwrap_or_default().to_vec();
                }
            }
            EventKind::ThreadStarted { tid, creator } => {
                if let Some(process) = self.0.get_mut(&id) {
                    process.threads.insert(event.task, (*tid, *creator));
                }
            }
            EventKind::Gone { zombie: Some(_), .. } => drop(self.0.remove(&id)),
            EventKind::Gone { zombie: None, .. } => {
                if let Some(process) = self.0.get_mut(&id) {
                    process.threads.remove(&event.task);
                }
            }
            _ => {}
        }
    }

    fn contains(&self, event: &Event) -> bool {
        let is_main_thread = event.task.0 == event.launch.0;
        let process = self.0.get(&event.launch);
        process.is_some_and(|process| is_main_thread || process.threads.contains_key(&event.task))
    }

    /// Whether a process is running that was launched at this instant or later.
    fn is_launched_since(&self, launch: LaunchId, oldest: Nanos) -> bool {
        self.0.get(&launch).and_then(|process| process.launched).is_some_and(|launched| launched >= oldest)
    }

    /// Forgets processes that do not exist: the event of their end was lost.
    fn forget_missing(&mut self) {
        self.0.retain(|_, process| may_exist(process.pid));
    }

    /// Returns the events with which a recording that starts at `at` must begin.
    fn adoptions(&self, at: Nanos) -> Vec<Event> {
        let mut processes: Vec<_> = self.0.iter().collect();
        processes.sort_unstable_by_key(|(id, _)| **id);
        processes.iter().flat_map(|(id, process)| process.adoption(**id, at)).collect()
    }

    fn insert(&mut self, id: LaunchId, pid: Pid, name: Vec<u8>, launched: Option<Nanos>) {
        let threads = HashMap::new();
        self.0.insert(id, CarriedProcess { pid, name, launched, threads });
    }
}

impl CarriedProcess {
    fn adoption(&self, launch: LaunchId, at: Nanos) -> Vec<Event> {
        let kind = EventKind::Adopted { pid: self.pid, name: self.name.clone() };
        let mut events = vec![Event { at, launch, task: TaskId(launch.0), kind }];
        for (&task, &(tid, creator)) in &self.threads {
            events.push(Event { at, launch, task, kind: EventKind::ThreadStarted { tid, creator } });
        }
        events
    }
}

/// Whether a process exists, or is outside the recorder's pid namespace and therefore has pid 0.
pub fn may_exist(pid: Pid) -> bool {
    pid.0 == 0 || kill(unistd::Pid::from_raw(pid.0), None) != Err(Errno::ESRCH)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{LaunchId, Launched, Pid};

    fn loss(kind: &str, events: u64) -> Loss {
        Loss { kind: kind.to_owned(), events }
    }

    #[test]
    fn each_recording_has_the_losses_of_its_time() {
        let before = [loss("ring buffer", 5), loss("call chain", 1)];
        let now = [loss("ring buffer", 7), loss("call chain", 1), loss("malformed record", 2)];
        assert_eq!(lost_since(&now, &before), [loss("ring buffer", 2), loss("malformed record", 2)]);
    }

    fn event(at: u64, task: u64, launch: u64, kind: EventKind) -> Event {
        Event { at: Nanos(at), launch: LaunchId(launch), task: TaskId(task), kind }
    }

    fn launched(at: u64, launch: u64) -> Event {
        let pid = Pid(std::process::id().cast_signed());
        event(at, launch, launch, EventKind::Launched(Launched { pid, ..Launched::default() }))
    }

    fn gone(at: u64, task: u64, launch: u64) -> Event {
        event(at, task, launch, EventKind::Gone { zombie: Some(Nanos(at)), auto_reaped: false, cpu: None })
    }

    #[test]
    fn each_event_is_on_the_side_of_its_process() {
        let border = 5_000_000_000;
        let mut carried = CarriedProcesses::default();
        let old = [launched(10, 1), launched(20, 2), gone(30, 2, 2), launched(border - 9, 3)];
        old.iter().for_each(|event| carried.update(event));
        let mut cut = Cut::new(Nanos(border), Instant::now());
        let arriving = [
            launched(border - 1, 4),
            gone(border + 1, 2, 2),
            gone(border + 2, 1, 1),
            gone(border + 3, 3, 3),
            launched(border + 4, 5),
            gone(border + 5, 4, 4),
            gone(border + 6, 5, 5),
            gone(border + 7, 5, 5),
        ];
        let mut earlier = arriving.to_vec();
        cut.hold_later(&mut carried, &mut earlier);
        assert_eq!(
            earlier,
            [arriving[0].clone(), arriving[1].clone()],
            "an event from before, and one of an ended process"
        );
        let young = cut.of_young_processes(&carried);
        assert_eq!(young, [arriving[3].clone(), arriving[5].clone()], "their launches are completed");
        let adopted: Vec<u64> = carried.adoptions(Nanos(border)).iter().map(|event| event.launch.0).collect();
        assert_eq!(adopted, [1, 3, 4]);
        assert_eq!(cut.into_later(), arriving[2..]);
    }

    fn adopted(name: &str) -> EventKind {
        // Our own process: it exists.
        let pid = Pid(std::process::id().cast_signed());
        let name = name.as_bytes().to_vec();
        EventKind::Adopted { pid, name }
    }

    fn ended(is_last_thread: bool) -> EventKind {
        EventKind::Gone { zombie: is_last_thread.then_some(Nanos(4)), auto_reaped: false, cpu: None }
    }

    #[test]
    fn the_next_recording_begins_with_the_running_processes_and_threads() {
        let event = |launch, task, kind| event(5, task, launch, kind);
        let mut carried = CarriedProcesses::default();
        let started = EventKind::ThreadStarted { tid: Pid(0), creator: TaskId(1) };
        carried.update(&event(1, 1, adopted("server")));
        carried.update(&event(1, 7, started.clone()));
        carried.update(&event(1, 8, started.clone()));
        carried.update(&event(2, 2, adopted("shell")));
        carried.update(&event(1, 7, ended(false)));
        carried.update(&event(2, 2, ended(true)));
        let at = Nanos(99);
        let wanted = [event(1, 1, adopted("server")), event(1, 8, started)];
        let wanted = wanted.map(|event| Event { at, ..event });
        assert_eq!(carried.adoptions(at), wanted);
        let running =
            [(1, 1), (1, 8), (1, 7), (2, 2)].map(|(launch, task)| carried.contains(&event(launch, task, ended(false))));
        assert_eq!(running, [true, true, false, false]);
    }
}
