//! The rows that a recorder has just written. Live views and metrics are computed from the rows of the recording, so that they agree with
//! later reports.

use std::sync::Arc;

use super::{ExecRow, LaunchRow, TextId};
use crate::event::{LaunchId, Nanos};

/// The rows of one transaction, without slices, samples and call chains.
#[derive(Clone, Debug, Default)]
pub struct NewRows {
    /// The number of the recording, if a recorder writes several consecutive ones. Ids of strings and of execs start anew in each.
    pub recording: u32,
    /// The wall-clock time at time zero of the recording, in nanoseconds since 1970-01-01 UTC.
    pub started_unix_ns: i64,
    /// New strings, which these and later rows refer to.
    pub texts: Vec<(TextId, Arc<[u8]>)>,
    /// The oldest string that later rows may refer to.
    pub oldest_text: TextId,
    /// New and changed launches.
    pub launches: Vec<LaunchRow>,
    /// New and changed execs, each with its rowid in the table of execs.
    pub execs: Vec<(i64, ExecRow)>,
    /// Launches for which no more events are expected.
    pub finished: Vec<LaunchId>,
    /// The time of the latest event of the recording so far.
    pub last_event: Nanos,
}
