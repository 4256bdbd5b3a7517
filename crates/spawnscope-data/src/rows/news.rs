//! What a recorder has just written: the rows that live views and metrics are computed from. They are the rows of the recording, so that
//! live figures and later reports agree.

use std::sync::Arc;

use super::{ExecRow, LaunchRow, TextId};
use crate::event::{LaunchId, Nanos};

/// The rows of one transaction, without slices, samples and call chains.
#[derive(Clone, Debug, Default)]
pub struct NewRows {
    /// Which of several consecutive recordings they belong to. Each numbers its strings and execs anew.
    pub recording: u32,
    /// The wall-clock time that is its time zero, in nanoseconds since 1970-01-01 UTC.
    pub started_unix_ns: i64,
    /// Strings that these and later rows refer to.
    pub texts: Vec<(TextId, Arc<[u8]>)>,
    /// Later rows refer to no string before this one.
    pub oldest_text: TextId,
    /// New and changed launches.
    pub launches: Vec<LaunchRow>,
    /// New and changed execs, each with its position among all execs.
    pub execs: Vec<(i64, ExecRow)>,
    /// Launches of which no more events are expected.
    pub finished: Vec<LaunchId>,
    /// The time of the latest event of the recording so far.
    pub last: Nanos,
}
