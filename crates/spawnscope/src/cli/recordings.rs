//! The recording that is being written and, with `--keep`, those that follow it. When a recording
//! is full, a border is set (`Cut`), the recording gets the rest of its events, and the next one
//! begins with the processes that ran at the border.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};

use super::cut::{CarriedProcesses, Cut};
use super::ring::Ring;
use crate::clock;
use crate::collect::Collector;
use crate::event::{Calibration, Event, Loss, Nanos};
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

#[cfg(test)]
mod tests {
    use super::*;

    fn loss(kind: &str, events: u64) -> Loss {
        Loss { kind: kind.to_owned(), events }
    }

    #[test]
    fn each_recording_has_the_losses_of_its_time() {
        let before = [loss("ring buffer", 5), loss("call chain", 1)];
        let now = [loss("ring buffer", 7), loss("call chain", 1), loss("malformed record", 2)];
        assert_eq!(lost_since(&now, &before), [loss("ring buffer", 2), loss("malformed record", 2)]);
    }
}
