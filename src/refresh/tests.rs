//! The closed forms against what happens, in 20,000 lives of each policy.

use super::{Freshness, Policy, Prediction, Traffic};
use alloc::vec::Vec;
use core::time::Duration;
use fastrand::Rng;

const CYCLES: usize = 20_000;
/// How many standard deviations a mean of these may be off: once in 16,000 times by chance, and the seeds are fixed.
const SIGMAS: f64 = 4.0;
const LIFE: Duration = Duration::from_secs(60);

fn seconds(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds)
}

/// What `left` seconds before the end of a life of 60 looks like.
fn at(left: f64, cost: f64) -> Freshness {
    Freshness { age: LIFE - seconds(left), left: seconds(left), cost: seconds(cost) }
}

fn traffic(reads_per_second: f64, load: f64) -> Traffic {
    Traffic { reads_per_second, load: seconds(load), cost: seconds(0.5), life: LIFE }
}

/// The lives of a value, as they come out: by how much the first refresh was early, and how many there were.
struct Lives {
    leads: Vec<f64>,
    refreshes: Vec<f64>,
}

/// Reads come one by one, each some random time after the last; the first refresh has its value after the time of a load.
fn live(policy: Policy, traffic: Traffic, seed: u64) -> Lives {
    live_in(None, policy, traffic, seed)
}

/// The same in so many processes, each of which refreshes once at most: after that it is in flight.
fn live_in(processes: Option<usize>, policy: Policy, traffic: Traffic, seed: u64) -> Lives {
    let mut random = Rng::with_seed(seed);
    let mut lives = Lives { leads: Vec::new(), refreshes: Vec::new() };
    let cost = traffic.cost.as_secs_f64();
    // Nothing happens before, or once in some thousand lives.
    let begin = match policy {
        Policy::XFetch { beta, .. } => beta * cost * ((traffic.reads_per_second * beta * cost).max(1.0).ln() + 8.0),
        _ => f64::INFINITY,
    };
    let begin = policy.cutoff(at(LIFE.as_secs_f64(), cost)).as_secs_f64().min(begin);
    for _ in 0..CYCLES {
        let (mut left, mut first, mut refreshes) = (begin, None, 0.0);
        let mut in_flight = alloc::vec![false; processes.unwrap_or(0)];
        loop {
            left -= -(1.0 - random.f64()).ln() / traffic.reads_per_second;
            let over = first.map_or(0.0, |first: f64| (first - traffic.load.as_secs_f64()).max(0.0));
            if left <= over {
                break;
            }
            let process = processes.map(|processes| random.usize(..processes));
            let is_in_flight = process.is_some_and(|process| in_flight[process]);
            if policy.fires(at(left, cost), random.f64()) && !is_in_flight {
                if let Some(process) = process {
                    in_flight[process] = true;
                }
                first.get_or_insert(left);
                refreshes += 1.0;
            }
        }
        lives.leads.extend(first);
        if first.is_some() {
            lives.refreshes.push(refreshes);
        }
    }
    lives
}

fn mean_and_deviation(numbers: &[f64]) -> (f64, f64) {
    let count = numbers.len() as f64;
    let mean = numbers.iter().sum::<f64>() / count;
    let variance = numbers.iter().map(|number| (number - mean).powi(2)).sum::<f64>() / count;
    (mean, (variance / count).sqrt())
}

#[track_caller]
fn assert_mean(what: &str, numbers: &[f64], predicted: f64) {
    let (mean, deviation) = mean_and_deviation(numbers);
    assert!((mean - predicted).abs() <= SIGMAS * deviation + 1e-9, "{what}: {mean}, predicted {predicted}");
}

#[test]
fn leads_and_numbers_of_refreshes_are_as_predicted() {
    let policies = [
        (Policy::XFetch { beta: 1.0, max_window: 0.5 }, traffic(40.0, 0.25)),
        (Policy::XFetch { beta: 2.0, max_window: 0.5 }, traffic(20.0, 0.5)),
        (Policy::Linear { window: 0.1 }, traffic(8.0, 0.5)),
        (Policy::Linear { window: 0.05 }, traffic(40.0, 0.5)),
        (Policy::Eager { window: 0.05 }, traffic(20.0, 0.5)),
        (Policy::Jittered { min: 0.05, max: 0.1 }, traffic(20.0, 0.5)),
    ];
    for (seed, (policy, traffic)) in policies.into_iter().enumerate() {
        let lives = live(policy, traffic, seed as u64);
        let Prediction { lead, refreshes, miss } = policy.predict(traffic);
        assert!(miss < 1e-6, "{policy:?}: {miss}");
        assert!(lives.leads.len() == CYCLES, "{policy:?}: somebody is early");
        assert_mean("lead", &lives.leads, lead);
        assert_mean("refreshes", &lives.refreshes, refreshes);
    }
}

#[test]
fn processes_with_flights_of_their_own_refresh_as_often_as_predicted() {
    let cases = [
        (Policy::default(), traffic(40.0, 0.5), 8),
        (Policy::default(), traffic(40.0, 0.25), 2),
        (Policy::XFetch { beta: 2.0, max_window: 0.5 }, traffic(40.0, 0.5), 3),
        (Policy::Linear { window: 0.1 }, traffic(8.0, 0.5), 4),
        (Policy::Linear { window: 0.05 }, traffic(40.0, 0.5), 8),
        (Policy::Eager { window: 0.05 }, traffic(20.0, 0.5), 8),
        (Policy::Jittered { min: 0.05, max: 0.1 }, traffic(20.0, 0.5), 8),
    ];
    for (seed, (policy, traffic, processes)) in cases.into_iter().enumerate() {
        let lives = live_in(Some(processes as usize), policy, traffic, 200 + seed as u64);
        let with_flights = policy.predict_with_flights(traffic, processes);
        assert!(lives.leads.len() == CYCLES, "{policy:?}: somebody is early");
        assert_mean("refreshes", &lives.refreshes, with_flights.refreshes);
        // One process has one, and with very many it is as if there were none.
        let without = policy.predict(traffic);
        assert_eq!((with_flights.lead, with_flights.miss), (without.lead, without.miss));
        for alone in [0, 1] {
            assert_eq!(policy.predict_with_flights(traffic, alone).refreshes, 1.0, "{policy:?}");
        }
        let many = policy.predict_with_flights(traffic, 1_000_000_000).refreshes;
        assert!((many - without.refreshes).abs() < 1e-6, "{policy:?}: {many}");
    }
    let eight = Policy::default().predict_with_flights(traffic(1200.0, 0.5), 8).refreshes;
    assert!((eight - 2.238).abs() < 1e-3, "{eight}");
    // A load that takes for ever.
    let endless = Policy::default().predict_with_flights(traffic(40.0, 1e6), 8).refreshes;
    assert_eq!((endless, Policy::default().predict_with_flights(traffic(0.0, 0.5), 8).refreshes), (8.0, 1.0));
}

#[test]
fn values_that_are_seldom_read_expire_as_often_as_predicted() {
    let policies = [
        Policy::XFetch { beta: 1.0, max_window: 0.5 },
        // Its window cuts it short.
        Policy::XFetch { beta: 4.0, max_window: 0.02 },
        Policy::Linear { window: 0.1 },
        Policy::Eager { window: 0.02 },
        Policy::Jittered { min: 0.01, max: 0.02 },
    ];
    for (seed, policy) in policies.into_iter().enumerate() {
        let traffic = traffic(1.0, 0.1);
        let missed = (CYCLES - live(policy, traffic, 100 + seed as u64).leads.len()) as f64 / CYCLES as f64;
        let miss = policy.predict(traffic).miss;
        let deviation = (miss * (1.0 - miss) / CYCLES as f64).sqrt();
        assert!((missed - miss).abs() <= SIGMAS * deviation, "{policy:?}: {missed}, predicted {miss}");
    }
    let never = live(Policy::Never, traffic(100.0, 0.1), 1);
    assert!(never.leads.is_empty() && Policy::Never.predict(traffic(100.0, 0.1)).miss == 1.0);
}

/// The number of refreshes of XFetch is geometric, with a mean of exp(L/a), whatever the reads.
#[test]
fn the_number_of_refreshes_of_xfetch_has_the_law_that_it_should() {
    const CLASSES: usize = 8;
    let lives = live(Policy::default(), traffic(40.0, 0.25), 7);
    let again = 1.0 - libm::exp(-0.5);
    let mut observed = [0.0; CLASSES];
    for refreshes in &lives.refreshes {
        observed[(*refreshes as usize).min(CLASSES) - 1] += 1.0;
    }
    let chi_square: f64 = (0..CLASSES)
        .map(|class| {
            let tail = again.powi(class as i32);
            let expected = CYCLES as f64 * if class + 1 < CLASSES { tail * (1.0 - again) } else { tail };
            (observed[class] - expected).powi(2) / expected
        })
        .sum();
    // The 99.99th percentile of the chi-square distribution with 7 degrees of freedom.
    assert!(chi_square < 29.9, "chi-square {chi_square}, {observed:?}");
}

#[test]
fn probabilities_are_what_the_table_says() {
    let close = |policy: Policy, left: f64, probability: f64| {
        let found = policy.probability(at(left, 0.5));
        assert!((found - probability).abs() < 1e-12, "{policy:?} with {left} s left: {found}");
    };
    let xfetch = |beta| Policy::XFetch { beta, max_window: 0.5 };
    close(xfetch(1.0), 0.5, 0.367_879_441_171_442_3);
    close(xfetch(1.0), 2.0, 0.018_315_638_888_734_18);
    close(xfetch(2.0), 2.0, 0.135_335_283_236_612_7);
    close(xfetch(1.0), 30.0, 0.0);
    close(Policy::XFetch { beta: 10.0, max_window: 0.01 }, 0.7, 0.0);
    close(Policy::Linear { window: 0.1 }, 1.5, 0.75);
    close(Policy::Linear { window: 0.1 }, 6.0, 0.0);
    close(Policy::Eager { window: 0.1 }, 5.999, 1.0);
    close(Policy::Eager { window: 0.1 }, 6.0, 0.0);
    close(Policy::Jittered { min: 0.1, max: 0.2 }, 6.0, 1.0);
    close(Policy::Jittered { min: 0.1, max: 0.2 }, 9.0, 0.5);
    close(Policy::Jittered { min: 0.1, max: 0.2 }, 12.0, 0.0);
    close(Policy::Never, 0.0, 0.0);
}

#[test]
fn a_read_refreshes_as_often_as_its_probability_says() {
    let mut random = Rng::with_seed(3);
    for policy in [Policy::default(), Policy::Linear { window: 0.05 }, Policy::Jittered { min: 0.01, max: 0.03 }] {
        for left in [0.01, 0.4, 0.9, 1.7, 2.9, 3.5] {
            let probability = policy.probability(at(left, 0.5));
            let fired =
                (0..CYCLES).filter(|_| policy.fires(at(left, 0.5), random.f64())).count() as f64 / CYCLES as f64;
            let deviation = (probability * (1.0 - probability) / CYCLES as f64).sqrt();
            assert!((fired - probability).abs() <= SIGMAS * deviation, "{policy:?}, {left} s left: {fired}");
        }
    }
}

#[test]
fn beyond_the_cutoff_no_random_number_fires_and_what_has_expired_always_does() {
    let policies = [
        Policy::default(),
        Policy::XFetch { beta: 1e-3, max_window: 1.0 },
        Policy::Linear { window: 0.2 },
        Policy::Eager { window: 0.2 },
        Policy::Jittered { min: 0.1, max: 0.2 },
    ];
    for policy in policies {
        let cutoff = policy.cutoff(at(10.0, 0.5));
        let freshness = |left| Freshness { age: LIFE - left, left, cost: seconds(0.5) };
        for random in [0.0, 0.5, 1.0, -1.0, 7.0, f64::NAN] {
            assert!(!policy.fires(freshness(cutoff), random), "{policy:?}");
            assert!(policy.fires(freshness(Duration::ZERO), random), "{policy:?}");
        }
        assert!(policy.fires(freshness(cutoff - Duration::from_nanos(1_000)), 0.0), "{policy:?}");
        assert_eq!(policy.probability(freshness(Duration::ZERO)), 1.0);
    }
    assert!(!Policy::Never.fires(at(0.0, 0.5), 0.0));
    assert_eq!(Policy::Never.cutoff(at(0.0, 0.5)), Duration::ZERO);
}

/// Whatever lies between two nanoseconds, and whenever the cutoff was asked for.
#[test]
fn with_exactly_the_cutoff_left_no_read_refreshes_and_with_little_less_one_does() {
    let mut random = Rng::with_seed(13);
    let mut lives: Vec<_> = (0..10_000).map(|_| Duration::from_nanos(random.u64(1_000..100_000_000_000_000))).collect();
    lives.push(LIFE + Duration::from_nanos(4));
    for life in lives {
        let freshness = |left| Freshness { age: life - left, left, cost: seconds(0.5) };
        for policy in [Policy::Eager { window: 0.1 }, Policy::Eager { window: 1.0 / 3.0 }] {
            let cutoff = policy.cutoff(freshness(life.mul_f64(random.f64())));
            assert_eq!(policy.probability(freshness(cutoff)), 0.0, "{policy:?} {life:?}");
            assert_eq!(policy.probability(freshness(cutoff - Duration::from_nanos(1))), 1.0, "{policy:?} {life:?}");
        }
    }
}

#[test]
fn numbers_that_make_no_sense_count_as_the_nearest_that_do() {
    for nonsense in [f64::NAN, -1.0, f64::NEG_INFINITY] {
        for policy in [
            Policy::XFetch { beta: nonsense, max_window: 0.5 },
            Policy::XFetch { beta: 1.0, max_window: nonsense },
            Policy::Linear { window: nonsense },
            Policy::Eager { window: nonsense },
            Policy::Jittered { min: nonsense, max: nonsense },
        ] {
            assert!(!policy.fires(at(1e-6, 0.5), 0.0) && policy.fires(at(0.0, 0.5), 0.9), "{policy:?}");
        }
    }
    assert!(Policy::Linear { window: 7.0 }.fires(at(59.0, 0.5), 0.01));
    let always = Policy::XFetch { beta: f64::INFINITY, max_window: 0.5 };
    let sure = [always, Policy::Eager { window: 0.5 }, Policy::Jittered { min: 0.5, max: 0.6 }];
    for random in [0.0, 0.999, 1.0, 7.0, f64::NAN] {
        assert!(sure.iter().all(|policy| policy.fires(at(29.0, 0.5), random)), "{random}");
    }
    assert_eq!(always.predict(traffic(1.0, 0.1)), Policy::Eager { window: 0.5 }.predict(traffic(1.0, 0.1)));
    let free = Freshness { cost: Duration::ZERO, ..at(1.0, 0.5) };
    assert_eq!((always.probability(free), always.fires(free, 0.0)), (0.0, false));
    assert!(!Policy::default().fires(Freshness { age: LIFE, left: LIFE, cost: Duration::ZERO }, 0.0));
    assert!(!Policy::default().fires(Freshness { age: Duration::ZERO, left: Duration::MAX, cost: LIFE }, 0.5));
    let unread = traffic(0.0, 0.5);
    for policy in [Policy::default(), Policy::Linear { window: 0.1 }, Policy::Eager { window: 0.1 }] {
        assert_eq!(policy.predict(unread), Prediction { miss: 1.0, lead: 0.0, refreshes: 1.0 }, "{policy:?}");
        assert_eq!(policy.predict(Traffic { reads_per_second: f64::NAN, ..unread }), policy.predict(unread));
    }
}

/// The arithmetic that core lacks, against the platform's.
#[test]
fn exponentials_and_logarithms_are_exact_to_an_ulp_or_two() {
    let mut random = Rng::with_seed(11);
    for _ in 0..100_000 {
        let exponent = -40.0 * random.f64();
        assert!((libm::exp(exponent) / exponent.exp() - 1.0).abs() < 4.5e-16, "{exponent}");
        let number = 1e6 * (1.0 - random.f64());
        assert!((libm::log(number) - number.ln()).abs() <= 4.5e-16 * number.ln().abs(), "{number}");
    }
}
