//! Finds rows by their ids. A recorder numbers rows, but skips ids: those of the processes with
//! which it measures the machine, and in one table those of another that shares the numbers. So ids
//! are kept as runs without gaps, of which there are few.

/// The ids of the rows of one table.
#[derive(Clone, Debug, Default)]
pub struct Ids {
    /// For each run of consecutive ids, the first one and the index of its row.
    runs: Vec<(i64, usize)>,
    len: usize,
}

impl Ids {
    /// Indexes ids, which must ascend.
    pub fn new(ids: impl IntoIterator<Item = i64>) -> Ids {
        let mut all = Ids::default();
        for id in ids {
            let next = all.runs.last().and_then(|(first, index)| first.checked_add((all.len - index) as i64));
            if next != Some(id) {
                all.runs.push((id, all.len));
            }
            all.len += 1;
        }
        all
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub fn index_of(&self, id: i64) -> Option<usize> {
        let after = self.runs.partition_point(|(first, _)| *first <= id);
        let (first, index) = self.runs.get(after.checked_sub(1)?)?;
        let end = self.runs.get(after).map_or(self.len, |(_, index)| *index);
        let distance = usize::try_from(id.abs_diff(*first)).ok()?;
        (distance < end - index).then_some(index + distance)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_found_despite_gaps() {
        for all in [vec![], vec![1, 2, 3], vec![1, 112, 113, 114, 200], vec![i64::MIN, -1, 0, i64::MAX - 1, i64::MAX]] {
            let ids = Ids::new(all.iter().copied());
            assert_eq!(ids.len(), all.len());
            for id in all.iter().flat_map(|id| [id.wrapping_sub(1), *id, id.wrapping_add(1)]) {
                assert_eq!(ids.index_of(id), all.binary_search(&id).ok(), "{id} in {all:?}");
            }
        }
    }
}
