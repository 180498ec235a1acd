//! What contenders are loaded with: keys, and work of a known length.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::hint::black_box;
use core::time::Duration;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use rand_distr::{Distribution as _, Zipf};
use std::time::Instant;

/// This many different random keys.
#[must_use]
pub fn numbers(count: usize, seed: u64) -> Vec<u64> {
    let mut random = StdRng::seed_from_u64(seed);
    (0..count).map(|_| random.random()).collect()
}

/// This many different random keys of 16 bytes.
#[must_use]
pub fn strings(count: usize, seed: u64) -> Vec<String> {
    numbers(count, seed).into_iter().map(|number| format!("{number:016x}")).collect()
}

/// Which of `keys` is asked for, `count` times: the second half as often as the first, and so on, as far as `exponent` is 1.
///
/// # Panics
///
/// If there are no keys, or the exponent is negative.
#[must_use]
pub fn zipf(keys: &[u64], exponent: f64, count: usize, seed: u64) -> Vec<u64> {
    zipf_ranks(keys.len(), exponent, count, seed).into_iter().map(|rank| keys[rank]).collect()
}

/// The same, as places among so many keys.
///
/// # Panics
///
/// If there are no keys, or the exponent is negative.
#[must_use]
pub fn zipf_ranks(keys: usize, exponent: f64, count: usize, seed: u64) -> Vec<usize> {
    let mut random = StdRng::seed_from_u64(seed);
    let ranks = Zipf::new(keys as f64, exponent).expect("some keys, and an exponent that is not negative");
    (0..count).map(|_| ranks.sample(&mut random) as usize - 1).collect()
}

/// Work that keeps a core busy: a chain of steps that must follow one another.
#[derive(Clone, Copy, Debug)]
pub struct Work {
    steps: u32,
}

impl Work {
    /// Next to none.
    pub const TRIVIAL: Self = Self { steps: 0 };

    /// About as long as `duration`, at the best speed that this machine shows now.
    #[must_use]
    pub fn lasting(duration: Duration) -> Self {
        const STEPS: u32 = 20_000;
        let seconds = || {
            let start = Instant::now();
            black_box(Self { steps: STEPS }.run(black_box(1)));
            start.elapsed().as_secs_f64()
        };
        let best = (0..500).map(|_| seconds()).fold(f64::INFINITY, f64::min);
        Self { steps: (duration.as_secs_f64() / best * f64::from(STEPS)).round() as u32 }
    }

    /// Does it.
    #[inline]
    #[must_use]
    pub fn run(self, seed: u64) -> u64 {
        // xorshift: no two steps can be made one, and none can be left out.
        (0..self.steps).fold(seed | 1, |mut x, _| {
            x ^= x << 13;
            x ^= x >> 7;
            x ^ (x << 17)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_key_is_asked_for_about_twice_as_often_as_the_second() {
        let asked = zipf(&[10, 20, 30, 40], 1.0, 40_000, 1);
        let count = |key| asked.iter().filter(|&&asked| asked == key).count() as f64;
        let ratio = count(10) / count(20);
        assert!((1.8..2.2).contains(&ratio), "{ratio}");
    }

    #[test]
    fn string_keys_have_sixteen_bytes() {
        assert!(strings(100, 1).iter().all(|key| key.len() == 16));
    }

    #[test]
    fn longer_work_takes_more_steps() {
        let (short, long) = (Work::lasting(Duration::from_micros(1)), Work::lasting(Duration::from_micros(100)));
        assert!(short.steps > 0 && long.steps > 10 * short.steps, "{short:?} {long:?}");
    }
}
