//! Counts rows of a recording that cannot all be true. The reader finds them, and reports print
//! them.

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contradiction {
    /// Describes the rows, for example `launches that end before they begin`.
    pub what: &'static str,
    pub rows: u64,
    /// The launch id or task id of the first such row.
    pub first_id: u64,
}

/// The contradictions found so far, one entry per kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Contradictions(pub Vec<Contradiction>);

impl Contradictions {
    /// Adds the contradictions found in another part of the recording.
    pub fn extend(&mut self, others: Contradictions) {
        self.0.extend(others.0);
    }

    /// Counts a row of the launch or task `first_id` as a contradiction of the kind `what`.
    pub fn count_row(&mut self, what: &'static str, first_id: u64) {
        match self.0.iter_mut().find(|kind| kind.what == what) {
            Some(kind) => kind.rows += 1,
            None => self.0.push(Contradiction { what, rows: 1, first_id }),
        }
    }

    pub fn count_row_if(&mut self, is_contradiction: bool, what: &'static str, first_id: u64) {
        if is_contradiction {
            self.count_row(what, first_id);
        }
    }
}
