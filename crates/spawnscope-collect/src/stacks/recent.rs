//! A map of bounded size, which drops entries that were not used recently.

use std::collections::HashMap;
use std::hash::Hash;

/// Keeps at least the `capacity` most recently used entries, and at most twice as many.
#[derive(Debug)]
pub(super) struct RecentMap<K, V> {
    capacity: usize,
    used: HashMap<K, V>,
    /// Entries that have not been used since `used` was last emptied.
    older: HashMap<K, V>,
}

impl<K: Hash + Eq, V> RecentMap<K, V> {
    pub(super) fn new(capacity: usize) -> RecentMap<K, V> {
        RecentMap { capacity, used: HashMap::new(), older: HashMap::new() }
    }

    pub(super) fn get(&mut self, key: &K) -> Option<&mut V> {
        if !self.used.contains_key(key) {
            let (key, value) = self.older.remove_entry(key)?;
            self.insert(key, value);
        }
        self.used.get_mut(key)
    }

    pub(super) fn remove(&mut self, key: &K) {
        self.used.remove(key);
        self.older.remove(key);
    }

    pub(super) fn insert(&mut self, key: K, value: V) {
        if self.used.len() >= self.capacity {
            self.older = std::mem::take(&mut self.used);
        }
        self.older.remove(&key);
        self.used.insert(key, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recently_used_entries_are_kept_and_all_others_dropped() {
        let mut recent = RecentMap::new(2);
        recent.insert(0, "kept");
        for other in 1..100 {
            recent.insert(other, "other");
            assert_eq!(recent.get(&0), Some(&mut "kept"));
        }
        assert_eq!(recent.get(&1), None);
        assert!(recent.used.len() + recent.older.len() <= 4);
    }
}
