//! The recording that is being written and, with `--keep`, those that follow it. When a recording is full, it is finished, and the next one
//! begins with the processes that are running. Events that arrive meanwhile stay in the kernel's buffer.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};

use super::carried_processes::CarriedProcesses;
use super::ring::Ring;
use crate::clock;
use crate::event::{Event, Loss, Nanos};
use crate::owner::act_as;
use crate::record::{Ending, Follower, Header, RecordError, Recorder, Redaction, WriterOptions};

/// For this long after the beginning of a recording, events of the previous recording may still arrive.
const LATE_EVENTS_TIME: Duration = Duration::from_secs(1);

/// Settings that all recordings of a ring share.
pub struct RecordingSettings {
    /// The header of the first recording.
    pub header: Header,
    /// Whether secrets are masked.
    pub redaction: Redaction,
    /// The owner of the files, and the writer's memory.
    pub options: WriterOptions,
    /// Receives the rows as they are written.
    pub follower: Option<Follower>,
}

/// The current recording, and what is needed to begin the next one.
pub struct Recordings {
    recorder: Recorder,
    file: PathBuf,
    /// When the current recording began.
    started: Nanos,
    rotation: Option<Rotation>,
    /// Number of launches in earlier recordings.
    launches_before: u64,
    /// Lost events that are counted in earlier recordings.
    lost_before: Vec<Loss>,
}

struct Rotation {
    ring: Ring,
    settings: RecordingSettings,
    carried: CarriedProcesses,
    /// When the current recording began, if it is not the first.
    rotated_at: Option<Instant>,
    /// Number of recordings of the ring before the current one.
    earlier_count: usize,
    /// Number of events that the current recording does not contain because they belong to the previous one.
    late: u64,
}

impl Rotation {
    /// Updates the carried processes. Drops events that belong to the previous recording: the last slice of a thread may arrive after the event
    /// of the thread's end.
    fn drop_late(&mut self, events: &mut Vec<Event>) {
        let is_new = self.rotated_at.is_some_and(|rotated_at| rotated_at.elapsed() < LATE_EVENTS_TIME);
        events.retain(|event| {
            let is_late = is_new && self.carried.is_late(event);
            self.late += u64::from(is_late);
            self.carried.update(event);
            !is_late
        });
    }
}

/// The last recording, after the session has ended.
pub struct LastRecording {
    /// Its recorder.
    pub recorder: Recorder,
    /// Its file.
    pub file: PathBuf,
    /// When it began.
    pub started: Nanos,
    /// How many earlier recordings of the ring there are.
    pub earlier_count: usize,
    lost_before: Vec<Loss>,
    late: u64,
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
                rotated_at: None,
                earlier_count: 0,
                late: 0,
            }),
            launches_before: 0,
            lost_before: Vec::new(),
        }
    }

    /// Passes events to the recorder.
    pub fn send(&mut self, mut events: Vec<Event>) {
        if let Some(rotation) = &mut self.rotation {
            rotation.drop_late(&mut events);
        }
        self.recorder.send(events);
    }

    /// Returns the number of launches so far in all recordings.
    pub fn launches_so_far(&self) -> u64 {
        self.launches_before + self.recorder.launches_so_far()
    }

    /// Returns why nothing is written any more, once writing has failed.
    pub fn failure(&self) -> Option<Arc<RecordError>> {
        self.recorder.failure()
    }

    /// Whether the recording is full.
    pub fn is_full(&mut self) -> bool {
        let rotation = self.rotation.as_mut();
        rotation.is_some_and(|rotation| rotation.ring.is_due(Instant::now()))
    }

    /// Begins the next recording, finishes the current one, and deletes the oldest. `lost` are the events lost so far in all
    /// recordings.
    ///
    /// # Errors
    /// When one of these steps fails. Recording cannot continue then.
    pub fn rotate(&mut self, lost: &[Loss]) -> Result<()> {
        let Some(rotation) = &mut self.rotation else {
            return Ok(());
        };
        rotation.ring.advance(Instant::now());
        let file = rotation.ring.current();
        let now = clock::now();
        let (next, started_unix_ns) = rotation.settings.create(&file, now)?;
        let ended = std::mem::replace(&mut self.recorder, next);
        self.launches_before += ended.launches_so_far();
        let ending = Ending {
            wall: Some(now.since(self.started)),
            ended: "rotated".to_owned(),
            allowed_cpus: None,
            lost: add_late(lost_since(lost, &self.lost_before), std::mem::take(&mut rotation.late)),
            calibration: Vec::new(),
        };
        // The rows of the next recording must reach a follower after those of this one.
        ended.finish(ending).with_context(|| format!("failed to finish {}", self.file.display()))?;
        if let Some(follower) = &mut rotation.settings.follower {
            *follower = follower.for_next_recording(started_unix_ns);
            self.recorder.follow(follower.clone());
        }
        self.recorder.send(rotation.carried.adoptions(now));
        (self.file, self.started, self.lost_before) = (file, now, lost.to_vec());
        let _owner_guard = act_as(rotation.settings.options.owner.as_ref())
            .context("failed to switch to the ids of the recordings' owner")?;
        rotation.rotated_at = Some(Instant::now());
        rotation.earlier_count = rotation.ring.trim()?;
        Ok(())
    }

    /// Returns the last recording. Its follower gets no more rows once it is finished.
    pub fn into_last(self) -> LastRecording {
        LastRecording {
            recorder: self.recorder,
            file: self.file,
            started: self.started,
            earlier_count: self.rotation.as_ref().map_or(0, |rotation| rotation.earlier_count),
            late: self.rotation.map_or(0, |rotation| rotation.late),
            lost_before: self.lost_before,
        }
    }
}

impl LastRecording {
    /// Returns the events lost since this recording began. `lost` are those lost in all recordings.
    pub fn lost(&self, lost: &[Loss]) -> Vec<Loss> {
        add_late(lost_since(lost, &self.lost_before), self.late)
    }
}

impl RecordingSettings {
    /// Creates the next recording. Also returns its start time, in nanoseconds since 1970.
    fn create(&self, file: &Path, origin: Nanos) -> Result<(Recorder, i64)> {
        let header = Header { origin, started_unix_ns: unix_ns_now()?, ..self.header.clone() };
        let recorder = Recorder::create(file, &header, self.redaction, &self.options);
        let recorder = recorder.context("failed to create the next recording")?;
        Ok((recorder, header.started_unix_ns))
    }
}

/// Returns the nanoseconds since 1970.
///
/// # Errors
/// When the clock is before 1970.
pub fn unix_ns_now() -> Result<i64> {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH);
    let nanoseconds = since_1970.context("the clock is before 1970")?.as_nanos();
    Ok(i64::try_from(nanoseconds).unwrap_or(i64::MAX))
}

/// Adds the late events, which no recording contains, to the lost events.
fn add_late(mut lost: Vec<Loss>, late: u64) -> Vec<Loss> {
    if late > 0 {
        lost.push(Loss { kind: "late event at a rotation".to_owned(), events: late });
    }
    lost
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
