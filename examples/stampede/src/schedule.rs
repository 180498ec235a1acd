//! When which page is asked for: drawn from the seed before anything runs, so that every way gets the same traffic.

use core::cmp::Reverse;
use core::time::Duration;
use std::collections::HashMap;

use rand::SeedableRng as _;
use rand::rngs::StdRng;
use rand::seq::index;
use rand_distr::{Distribution as _, Exp, Zipf};

use crate::catalogue::PRODUCTS;

/// Zipf's exponent. With 1, the product of rank n is asked for n times less often than the first.
const SKEW: f64 = 1.0;

/// One request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Arrival {
    /// When it comes, from the start of the run.
    pub(crate) at: Duration,
    /// The page that it wants.
    pub(crate) product: u32,
}

/// All requests of a run.
#[derive(Debug)]
pub(crate) struct Schedule {
    /// In order of time.
    pub(crate) arrivals: Vec<Arrival>,
    /// The products that are asked for, the most popular first.
    pub(crate) ranking: Vec<u32>,
    /// The hot products: the fewest that together get at least half of the requests.
    pub(crate) hot: Vec<u32>,
}

impl Schedule {
    /// Visitors who come independently of each other (a Poisson process of `rate` a second), for `length`, to `keys`
    /// products, the popularity of which follows Zipf's law.
    pub(crate) fn new(seed: u64, rate: u32, length: Duration, keys: u32) -> Self {
        let mut random = StdRng::seed_from_u64(seed);
        // Which product is the most popular, the second, and so on.
        let popularity = index::sample(&mut random, PRODUCTS as usize, keys as usize).into_vec();
        let gaps = Exp::new(f64::from(rate)).expect("the rate is positive");
        let ranks = Zipf::new(f64::from(keys), SKEW).expect("there is at least one key");

        let mut arrivals = Vec::new();
        let mut at = Duration::ZERO;
        loop {
            at += Duration::from_secs_f64(gaps.sample(&mut random));
            if at >= length {
                break;
            }
            let rank = ranks.sample(&mut random) as usize;
            let product = popularity[rank - 1] as u32 + 1;
            arrivals.push(Arrival { at, product });
        }
        let (ranking, hot) = rank(&arrivals);
        Self { arrivals, ranking, hot }
    }
}

/// The products by the number of their requests, and the hot ones among them.
fn rank(arrivals: &[Arrival]) -> (Vec<u32>, Vec<u32>) {
    let mut requests: HashMap<u32, usize> = HashMap::new();
    for arrival in arrivals {
        *requests.entry(arrival.product).or_default() += 1;
    }
    let mut ranking: Vec<u32> = requests.keys().copied().collect();
    // By product where the numbers are equal, so that the order hangs on the seed alone.
    ranking.sort_unstable_by_key(|product| (Reverse(requests[product]), *product));

    let mut covered = 0;
    let mut hot = Vec::new();
    for product in &ranking {
        if 2 * covered >= arrivals.len() {
            break;
        }
        covered += requests[product];
        hot.push(*product);
    }
    (ranking, hot)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LENGTH: Duration = Duration::from_secs(10);

    #[test]
    fn the_same_seed_gives_the_same_traffic_and_another_seed_other_traffic() {
        let schedule = |seed| Schedule::new(seed, 500, LENGTH, 100).arrivals;
        assert_eq!(schedule(3), schedule(3));
        assert_ne!(schedule(3), schedule(4));
    }

    #[test]
    fn requests_come_in_order_at_the_rate_and_within_the_length() {
        let arrivals = Schedule::new(1, 1_000, LENGTH, 100).arrivals;
        assert!(arrivals.is_sorted_by_key(|arrival| arrival.at));
        assert!(arrivals.last().is_some_and(|last| last.at < LENGTH));
        // 10,000 on average with a standard deviation of 100; the seed is fixed.
        assert!((9_500..=10_500).contains(&arrivals.len()), "{}", arrivals.len());
    }

    #[test]
    fn popularity_follows_zipfs_law() {
        let arrivals = Schedule::new(1, 10_000, LENGTH, 100).arrivals;
        let mut counts: HashMap<u32, f64> = HashMap::new();
        for arrival in &arrivals {
            assert!((1..=PRODUCTS).contains(&arrival.product));
            *counts.entry(arrival.product).or_default() += 1.0;
        }
        let mut counts: Vec<f64> = counts.into_values().collect();
        counts.sort_by(|a, b| b.total_cmp(a));
        assert_eq!(counts.len(), 100);
        for rank in [2, 4, 10] {
            let expected = f64::from(rank).powf(SKEW);
            let found = counts[0] / counts[rank as usize - 1];
            assert!((0.9..1.1).contains(&(found / expected)), "rank {rank}: {found} for {expected}");
        }
    }

    #[test]
    fn all_products_can_be_asked_for_and_a_single_one_too() {
        let one = Schedule::new(1, 100, LENGTH, 1);
        assert_eq!(one.hot.len(), 1);
        assert!(one.arrivals.iter().all(|arrival| one.hot.contains(&arrival.product)));
        assert!(!Schedule::new(1, 100, LENGTH, PRODUCTS).arrivals.is_empty());
    }

    #[test]
    fn the_hot_products_are_the_fewest_that_get_half_of_the_requests() {
        let arrivals = |products: &[u32]| -> Vec<Arrival> {
            let at = Duration::ZERO;
            products.iter().map(|&product| Arrival { at, product }).collect()
        };
        let ranked = |products: &[u32]| rank(&arrivals(products));
        assert_eq!(ranked(&[5, 6, 5, 7, 6, 5]), (vec![5, 6, 7], vec![5]));
        assert_eq!(ranked(&[5, 6, 5, 7, 6, 5, 8]), (vec![5, 6, 7, 8], vec![5, 6]));
        assert_eq!(ranked(&[9, 8, 7, 6]), (vec![6, 7, 8, 9], vec![6, 7]));
        assert_eq!(ranked(&[]), (vec![], vec![]));
    }
}
