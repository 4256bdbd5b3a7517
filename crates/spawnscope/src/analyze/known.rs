//! A number that may not be known.

use std::fmt;
use std::marker::PhantomData;

use crate::event::{LaunchId, Nanos, TaskId};

/// An instant, a span, bytes or an id that may not be known, in half the memory of an `Option`: every launch has more than a dozen of these.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Known<T = Nanos>(u64, PhantomData<T>);

/// What is a number below `u64::MAX`, as all are that a recording can hold.
pub trait Number {
    /// What stands for this number.
    fn of(number: u64) -> Self;
    /// The number that stands for this.
    fn number(self) -> u64;
}

impl<T: Number> Known<T> {
    /// What is known; `None` when nothing is.
    #[must_use]
    pub fn get(self) -> Option<T> {
        (self.0 != u64::MAX).then(|| T::of(self.0))
    }
}

impl<T> Default for Known<T> {
    fn default() -> Known<T> {
        Known(u64::MAX, PhantomData)
    }
}

impl<T: Number> From<Option<T>> for Known<T> {
    fn from(known: Option<T>) -> Known<T> {
        known.map_or(Known::default(), |known| Known(known.number(), PhantomData))
    }
}

impl<T: Number + Copy + fmt::Debug> fmt::Debug for Known<T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get().fmt(out)
    }
}

impl Number for u64 {
    fn of(number: u64) -> u64 {
        number
    }

    fn number(self) -> u64 {
        self
    }
}

macro_rules! numbers {
    ($($type:ident),*) => {$(
        impl Number for $type {
            fn of(number: u64) -> $type {
                $type(number)
            }

            fn number(self) -> u64 {
                self.0
            }
        }
    )*};
}

numbers!(LaunchId, Nanos, TaskId);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_comes_back_and_takes_no_more_than_a_number() {
        for known in [None, Some(Nanos(0)), Some(Nanos(u64::MAX - 1))] {
            assert_eq!(Known::from(known).get(), known);
        }
        assert_eq!(Known::<LaunchId>::default().get(), None);
        assert_eq!(size_of::<Known<TaskId>>(), 8);
    }
}
