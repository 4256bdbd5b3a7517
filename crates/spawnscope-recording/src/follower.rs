//! Passes written rows to a follower, such as a live view, while a recording is made. The writer
//! never waits for the follower: if the follower is too slow, rows are skipped, and the skipped
//! launches are counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::time::Duration;

use spawnscope_data::rows::NewRows;

/// Maximum number of batches that wait for the follower. The writer makes about three per second.
const MAX_WAITING_BATCHES: usize = 32;

/// The writer's side of the connection. Clones send to the same follower.
#[derive(Clone, Debug)]
pub struct Follower {
    recording: u32,
    sender: SyncSender<NewRows>,
    skipped: Arc<AtomicU64>,
}

/// The follower's side of the connection.
#[derive(Debug)]
pub struct RowReceiver {
    receiver: Receiver<NewRows>,
    skipped: Arc<AtomicU64>,
}

pub fn follow() -> (Follower, RowReceiver) {
    let (sender, receiver) = sync_channel(MAX_WAITING_BATCHES);
    let skipped = Arc::<AtomicU64>::default();
    let follower = Follower { recording: 0, sender, skipped: Arc::clone(&skipped) };
    (follower, RowReceiver { receiver, skipped })
}

impl Follower {
    /// Returns the side for the writer of the next recording. That writer may send rows only after
    /// the earlier recording is finished.
    pub fn for_next_recording(&self) -> Follower {
        Follower { recording: self.recording + 1, ..self.clone() }
    }

    pub(super) fn send(&self, rows: NewRows) {
        let rows = NewRows { recording: self.recording, ..rows };
        if let Err(TrySendError::Full(rows)) = self.sender.try_send(rows) {
            let finished = rows.finished.len() as u64;
            self.skipped.fetch_add(finished, Ordering::Relaxed);
        }
    }
}

impl RowReceiver {
    /// Waits for the rows of the next batch.
    ///
    /// # Errors
    /// `Timeout` if there is no batch within `timeout`, `Disconnected` once the recording is
    /// finished and all batches were received.
    pub fn next(&self, timeout: Duration) -> Result<NewRows, RecvTimeoutError> {
        self.receiver.recv_timeout(timeout)
    }

    /// Returns the number of launches whose end was skipped because the follower was too slow.
    pub fn skipped(&self) -> u64 {
        self.skipped.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use spawnscope_data::event::LaunchId;

    #[test]
    fn a_slow_follower_does_not_delay_the_writer_and_skipped_launches_are_counted() {
        let (follower, receiver) = follow();
        for number in 0..MAX_WAITING_BATCHES as u64 + 5 {
            follower.send(NewRows { finished: vec![LaunchId(number), LaunchId(1000 + number)], ..NewRows::default() });
        }
        assert_eq!(receiver.skipped(), 10);
        drop(follower);
        let received = std::iter::from_fn(|| receiver.next(Duration::ZERO).ok());
        assert_eq!(received.count(), MAX_WAITING_BATCHES);
        assert_eq!(receiver.next(Duration::ZERO).unwrap_err(), RecvTimeoutError::Disconnected);
    }
}
