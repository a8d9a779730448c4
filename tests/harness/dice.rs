//! Random numbers for comparisons, which a seed repeats.

/// A sequence of random numbers (xorshift).
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    /// Returns the sequence for one of the cases of a seed.
    #[must_use]
    pub fn new(seed: u64, index: u64) -> Self {
        let mut dice = Self((seed ^ index.wrapping_mul(0x9e37_79b9_7f4a_7c15)).max(1));
        for _ in 0..8 {
            dice.next();
        }
        dice
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// Returns a number below `count`.
    pub fn below(&mut self, count: usize) -> usize {
        usize::try_from(self.next() % count as u64).expect("it is small")
    }

    /// Returns true in one of `count` cases.
    pub fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }

    /// Returns one of these values.
    pub fn pick<T: Clone>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())].clone()
    }
}
