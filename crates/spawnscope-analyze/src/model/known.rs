//! A number that may be unknown.

use std::fmt;

use spawnscope_data::event::{LaunchId, Nanos, TaskId};
use spawnscope_data::rows::TextId;

/// An instant, a duration, a count or an id that may be unknown. It takes half the memory of an
/// `Option`, which matters because every launch has more than a dozen of them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct MaybeKnown<T: Number = Nanos>(T::Bits);

/// A number whose largest value means "unknown". No recorder writes that value.
pub trait Number: Sized {
    /// The stored representation.
    type Bits: Copy + Eq;
    const UNKNOWN: Self::Bits;
    fn from_bits(bits: Self::Bits) -> Self;
    fn to_bits(self) -> Self::Bits;
}

impl<T: Number> MaybeKnown<T> {
    /// Returns the number. `None` when unknown.
    pub fn get(self) -> Option<T> {
        (self.0 != T::UNKNOWN).then(|| T::from_bits(self.0))
    }
}

impl<T: Number> Default for MaybeKnown<T> {
    fn default() -> MaybeKnown<T> {
        MaybeKnown(T::UNKNOWN)
    }
}

impl<T: Number> From<Option<T>> for MaybeKnown<T> {
    fn from(known: Option<T>) -> MaybeKnown<T> {
        MaybeKnown(known.map_or(T::UNKNOWN, T::to_bits))
    }
}

impl<T: Number + Copy + fmt::Debug> fmt::Debug for MaybeKnown<T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get().fmt(out)
    }
}

macro_rules! plain_numbers {
    ($($type:ident),*) => {$(
        impl Number for $type {
            type Bits = $type;
            const UNKNOWN: $type = $type::MAX;

            fn from_bits(bits: $type) -> $type {
                bits
            }

            fn to_bits(self) -> $type {
                self
            }
        }
    )*};
}

macro_rules! wrapped_numbers {
    ($bits:ident: $($type:ident),*) => {$(
        impl Number for $type {
            type Bits = $bits;
            const UNKNOWN: $bits = $bits::MAX;

            fn from_bits(bits: $bits) -> $type {
                $type(bits)
            }

            fn to_bits(self) -> $bits {
                self.0
            }
        }
    )*};
}

plain_numbers!(u32, u64);
wrapped_numbers!(u32: TextId);
wrapped_numbers!(u64: LaunchId, Nanos, TaskId);

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
