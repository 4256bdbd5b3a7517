//! A compact array of numbers that are usually small.

/// `N` numbers, in half the memory while all are below 2^32. Each launch has dozens of durations,
/// and few exceed 4.3 s.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CompactNumbers<const N: usize> {
    Short([u32; N]),
    Long(Box<[u64; N]>),
}

impl<const N: usize> Default for CompactNumbers<N> {
    fn default() -> Self {
        CompactNumbers::Short([0; N])
    }
}

impl<const N: usize> CompactNumbers<N> {
    pub(crate) fn get(&self, index: usize) -> u64 {
        match self {
            CompactNumbers::Short(numbers) => numbers[index].into(),
            CompactNumbers::Long(numbers) => numbers[index],
        }
    }

    pub(crate) fn set(&mut self, index: usize, number: u64) {
        match (&mut *self, u32::try_from(number)) {
            (CompactNumbers::Short(numbers), Ok(short)) => numbers[index] = short,
            (CompactNumbers::Long(numbers), _) => numbers[index] = number,
            (CompactNumbers::Short(numbers), Err(_)) => {
                let mut numbers = Box::new(numbers.map(u64::from));
                numbers[index] = number;
                *self = CompactNumbers::Long(numbers);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_any_size_are_stored_unchanged() {
        let all = [7, u64::from(u32::MAX), 1 << 32, u64::MAX, 0];
        let mut numbers = CompactNumbers::<5>::default();
        for (index, number) in all.into_iter().enumerate() {
            numbers.set(index, number);
            assert_eq!(matches!(numbers, CompactNumbers::Short(_)), index < 2);
        }
        assert_eq!([0, 1, 2, 3, 4].map(|index| numbers.get(index)), all);
        assert_eq!((size_of::<CompactNumbers<8>>(), size_of::<CompactNumbers<9>>()), (40, 40));
    }
}
