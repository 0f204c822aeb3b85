//! A set of small numbers that takes little room however many there are.

#[derive(Clone, Debug, Default)]
pub(crate) struct Bits(Vec<u64>);

impl Bits {
    /// Adds a number; false if it was there.
    pub(crate) fn insert(&mut self, number: u64) -> bool {
        let place = usize::try_from(number / 64).unwrap_or(usize::MAX);
        if place >= self.0.len() {
            self.0.resize(place + 1, 0);
        }
        let bit = 1 << (number % 64);
        let word = &mut self.0[place];
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
    }

    /// How many are here that are not in the other set.
    pub(crate) fn not_in(&self, other: &Self) -> u32 {
        let others = other.0.iter().copied().chain(std::iter::repeat(0));
        let pairs = self.0.iter().zip(others);
        pairs.map(|(own, other)| (own & !other).count_ones()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::Bits;

    #[test]
    fn a_number_is_new_once() {
        let mut bits = Bits::default();
        assert!(bits.insert(0) && bits.insert(63) && bits.insert(64) && bits.insert(1_000));
        assert!(!bits.insert(64));
        let mut other = Bits::default();
        other.insert(63);
        assert_eq!((bits.not_in(&other), other.not_in(&bits)), (3, 0));
    }
}
