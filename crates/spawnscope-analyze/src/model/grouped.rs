//! Items grouped by key and, in one allocation, by owner. A separate list for each launch would
//! cost more memory than its items, since most lists are short.

use std::collections::BTreeMap;

/// Returns the values of each key, in their order.
pub(crate) fn grouped<K: Ord, V>(items: impl IntoIterator<Item = (K, V)>) -> BTreeMap<K, Vec<V>> {
    let mut groups: BTreeMap<K, Vec<V>> = BTreeMap::new();
    items.into_iter().for_each(|(key, value)| groups.entry(key).or_default().push(value));
    groups
}

/// Items of many owners, sorted by owner.
#[derive(Clone, Debug, Default)]
pub(crate) struct GroupedItems<T> {
    items: Vec<T>,
    /// The start of each owner's items, and the end of the last owner's. Empty without items.
    starts: Vec<u32>,
}

impl<T> GroupedItems<T> {
    /// Groups items by owner, a number below `owners`. Items of one owner keep their order.
    pub(crate) fn new(owners: usize, mut owned: Vec<(u32, T)>) -> GroupedItems<T> {
        if !owned.is_sorted_by_key(|(owner, _)| *owner) {
            owned.sort_by_key(|(owner, _)| *owner);
        }
        if owned.is_empty() {
            return GroupedItems { items: Vec::new(), starts: Vec::new() };
        }
        let mut starts = vec![0; owners + 1];
        for (owner, _) in &owned {
            starts[*owner as usize + 1] += 1;
        }
        for owner in 0..owners {
            starts[owner + 1] += starts[owner];
        }
        let mut items: Vec<T> = owned.into_iter().map(|(_, item)| item).collect();
        // The items take over the memory of the owned ones.
        items.shrink_to_fit();
        GroupedItems { items, starts }
    }

    /// Returns the items of one owner. Empty for an unknown owner.
    pub(crate) fn items_of(&self, owner: usize) -> &[T] {
        match (self.starts.get(owner), self.starts.get(owner + 1)) {
            (Some(start), Some(end)) => &self.items[*start as usize..*end as usize],
            _ => &[],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_of_one_owner_keep_their_order() {
        let grouped = GroupedItems::new(3, vec![(2, 'a'), (0, 'b'), (2, 'c'), (0, 'd')]);
        assert_eq!([0, 1, 2, 3].map(|owner| grouped.items_of(owner).iter().collect::<String>()), ["bd", "", "ac", ""]);
    }
}
