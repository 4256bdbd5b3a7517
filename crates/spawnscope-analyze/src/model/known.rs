//! A number that may be unknown.

use std::fmt;

use spawnscope_data::event::{LaunchId, Nanos, Pid, TaskId};
use spawnscope_data::rows::TextId;

/// An instant, a duration, a count or an id that may be unknown. It takes half the memory of an
/// `Option`, which matters because every launch has more than a dozen of them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct MaybeKnown<T: Number = Nanos>(T);

/// A number whose largest value means "unknown". No recorder writes that value.
pub trait Number: Copy + Eq {
    const UNKNOWN: Self;
}

impl<T: Number> MaybeKnown<T> {
    pub fn get(self) -> Option<T> {
        (self.0 != T::UNKNOWN).then_some(self.0)
    }
}

impl<T: Number> Default for MaybeKnown<T> {
    fn default() -> MaybeKnown<T> {
        MaybeKnown(T::UNKNOWN)
    }
}

impl<T: Number> From<Option<T>> for MaybeKnown<T> {
    fn from(known: Option<T>) -> MaybeKnown<T> {
        MaybeKnown(known.unwrap_or(T::UNKNOWN))
    }
}

impl<T: Number + fmt::Debug> fmt::Debug for MaybeKnown<T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get().fmt(out)
    }
}

macro_rules! numbers {
    ($($type:ty = $largest:expr),*) => {
        $(impl Number for $type {
            const UNKNOWN: $type = $largest;
        })*
    };
}

numbers!(u32 = u32::MAX, u64 = u64::MAX, Nanos = Nanos(u64::MAX), Pid = Pid(i32::MAX));
numbers!(TextId = TextId(u32::MAX), LaunchId = LaunchId(u64::MAX), TaskId = TaskId(u64::MAX));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_known_value_is_returned_and_needs_no_more_memory_than_its_number() {
        for known in [None, Some(Nanos(0)), Some(Nanos(u64::MAX - 1))] {
            assert_eq!(MaybeKnown::from(known).get(), known);
        }
        assert_eq!(MaybeKnown::<LaunchId>::default().get(), None);
        assert_eq!((size_of::<MaybeKnown<TaskId>>(), size_of::<MaybeKnown<u32>>()), (8, 4));
    }
}
