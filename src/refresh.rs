//! Early refresh: whether a read should refresh a value that is still fresh, so that nobody finds it expired.
//!
//! Pure arithmetic, without a clock and without a source of randomness: time and random numbers are passed in. It needs
//! neither threads nor a group, and works on a microcontroller.
//!
//! A value lives for a while; each read of it asks a [`Policy`] whether to refresh it. The closer the end of its life,
//! the more likely the answer is yes, so that of many readers one is early rather than all of them late.
//!
//! | policy | probability of a refresh with `s` left | probability that nobody was early | mean lead | refreshes a cycle |
//! |---|---|---|---|---|
//! | [`XFetch`](Policy::XFetch), `a` = `beta` x cost | exp(-s/a) | exp(-ra) | a (ln(ra) + 0.5772) | exp(L/a) |
//! | [`Linear`](Policy::Linear), window `W` | 1 - s/W | exp(-rW/2) | W - sqrt(πW/2r) | 1 + L sqrt(πr/2W) + rL²/2W |
//! | [`Eager`](Policy::Eager), window `W` | 1 | exp(-rW) | W - 1/r | 1 + rL |
//! | [`Jittered`](Policy::Jittered), from `min` to `max`, `D` = `max` - `min` | (max - s)/D, 1 below `min` | exp(-rD/2 - r min) | max - sqrt(πD/2r) | 1 + L sqrt(πr/2D) + rL²/2D |
//!
//! with `r` reads per second, each independent of the others (a Poisson process), and `L` seconds for a load. The last
//! column is without coalescing: a group makes it one where one process reads, a lease wherever. [`Policy::predict`] computes
//! the table, and says where it holds.
//!
//! If `m` processes share the reads evenly, each with a group and without a lease, each refreshes once at most while the first
//! one loads: [`Policy::predict_with_flights`].
//!
//! | policy | refreshes a cycle, `m` processes |
//! |---|---|
//! | `XFetch` | 1 + (m - 1) c / (m + c), with c = exp(L/a) - 1 |
//! | `Linear`; `Jittered` with `D` for `W` | 1 + (m - 1) (1 - exp(-mt²/2) + t sqrt(π/2) exp(-(m - 1)t²/2) erfc(t/sqrt(2))), with t = L/m sqrt(r/W) |
//! | `Eager` | 1 + (m - 1) (1 - exp(-rL/m)) |
//!
//! Where it comes from: the refreshes that are to be expected before the first one are exponential with a mean of 1, whatever the
//! policy; call them x. With XFetch, c x more are to be expected during its load, so that one of the m - 1 others has none of
//! its part of them with the probability E(exp(-x c/m)) = m / (m + c).
//!
//! XFetch is from A. Vattani, F. Chierichetti, K. Lowenstein: "Optimal Probabilistic Cache Stampede Prevention", PVLDB 8(8),
//! 2015.
//!
//! # Examples
//!
//! ```
//! use oneflight::refresh::{Freshness, Policy};
//! use std::time::Duration;
//!
//! let policy = Policy::default();
//! let mut freshness = Freshness {
//!     age: Duration::from_secs(30),
//!     left: Duration::from_secs(30),
//!     cost: Duration::from_millis(200),
//! };
//! // Half a minute before the end nobody is early; a tenth of a second before, most are.
//! assert!(!policy.fires(freshness, 0.3));
//! freshness.left = Duration::from_millis(100);
//! assert!(policy.fires(freshness, 0.3));
//! assert!((policy.probability(freshness) - 0.6065).abs() < 1e-4);
//! ```

use core::time::Duration;

#[cfg(test)]
mod tests;

/// When to refresh a value that is still fresh.
///
/// Windows are fractions of the value's life, which is its age and what is left of it: `0.1` is the last tenth. A number that
/// makes no sense counts as the nearest that does: a fraction below 0 or NaN as 0, above 1 as 1; a negative or NaN `beta` as 0.
/// Whatever the policy, a value that has expired is to be refreshed, except by [`Never`](Self::Never).
///
/// # Examples
///
/// ```
/// use oneflight::refresh::{Freshness, Policy};
/// use std::time::Duration;
///
/// let (age, left) = (Duration::from_secs(59), Duration::from_secs(1));
/// let freshness = Freshness { age, left, cost: Duration::from_secs(1) };
/// assert!(!Policy::Never.fires(freshness, 0.0));
/// assert!(Policy::Eager { window: 0.1 }.fires(freshness, 0.99));
/// assert!(Policy::XFetch { beta: 1.0, max_window: 0.5 }.fires(freshness, 0.3));
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Policy {
    /// No read refreshes; the value expires.
    Never,
    /// With a probability that rises exponentially towards the end, by the time that the last load took: what is dear to load
    /// is refreshed earlier. The default, with a `beta` of 1 and a `max_window` of half the life.
    XFetch {
        /// How eager: 1 is right for most, more refreshes earlier.
        beta: f64,
        /// The part of the life in which refreshes happen at all, however long a load takes.
        max_window: f64,
    },
    /// With a probability that rises from 0 to 1 over the window.
    Linear {
        /// The part of the life.
        window: f64,
    },
    /// Always, within the window.
    Eager {
        /// The part of the life.
        window: f64,
    },
    /// Always, within a window that each read draws anew between two bounds.
    Jittered {
        /// The shortest window, a part of the life.
        min: f64,
        /// The longest.
        max: f64,
    },
}

/// Where a value is in its life.
///
/// # Examples
///
/// ```
/// use oneflight::refresh::{Freshness, Policy};
/// use std::time::Duration;
///
/// let (age, left) = (Duration::from_secs(60), Duration::ZERO);
/// let expired = Freshness { age, left, cost: Duration::from_millis(200) };
/// assert_eq!(Policy::default().probability(expired), 1.0);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Freshness {
    /// How long ago it was loaded.
    pub age: Duration,
    /// How long it is still fresh; zero once it has expired.
    pub left: Duration,
    /// How long its load took. Better the larger one of the last load's and a moving average: a load that takes three times
    /// what is written here gives 20 refreshes instead of one, where nothing coalesces them.
    pub cost: Duration,
}

/// How a value is read and loaded, for [`Policy::predict`].
///
/// # Examples
///
/// ```
/// use oneflight::refresh::{Policy, Traffic};
/// use std::time::Duration;
///
/// let load = Duration::from_millis(500);
/// let traffic = Traffic { reads_per_second: 100.0, load, cost: load, life: Duration::from_secs(60) };
/// assert!(Policy::default().predict(traffic).miss < 1e-9);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Traffic {
    /// Reads of this value per second, each independent of the others.
    pub reads_per_second: f64,
    /// How long a load takes.
    pub load: Duration,
    /// How long a load is believed to take: [`Freshness::cost`].
    pub cost: Duration,
    /// How long a value is fresh after its load.
    pub life: Duration,
}

/// What comes of a [`Policy`].
///
/// # Examples
///
/// ```
/// use oneflight::refresh::{Policy, Traffic};
/// use std::time::Duration;
///
/// let load = Duration::from_millis(500);
/// let traffic = Traffic { reads_per_second: 100.0, load, cost: load, life: Duration::from_secs(60) };
/// let prediction = Policy::Never.predict(traffic);
/// assert_eq!((prediction.miss, prediction.lead), (1.0, 0.0));
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Prediction {
    /// The probability that a value expires before anybody was early.
    pub miss: f64,
    /// By how much the first refresh comes early, on average, in seconds. Zero if none is to be expected.
    pub lead: f64,
    /// How many reads refresh in one life, if nothing coalesces them (but
    /// [`predict_with_flights`](Policy::predict_with_flights)) and none learns of another's refresh before its value is there;
    /// given that one does.
    pub refreshes: f64,
}

impl Default for Policy {
    fn default() -> Self {
        Self::XFetch { beta: 1.0, max_window: 0.5 }
    }
}

impl Policy {
    /// Whether this read is to refresh the value. `random` is uniform in `0.0..1.0`, drawn anew for each read; what is outside
    /// counts as the nearest that is inside.
    ///
    /// Far from the end it is one comparison with the [`cutoff`](Self::cutoff).
    ///
    /// # Examples
    ///
    /// ```
    /// # use oneflight::refresh::{Freshness, Policy, Traffic};
    /// # use std::time::Duration;
    /// let (age, left) = (Duration::from_secs(57), Duration::from_secs(3));
    /// let freshness = Freshness { age, left, cost: Duration::from_millis(200) };
    /// // Half of the last tenth of the life has passed: every second read refreshes.
    /// assert!(Policy::Linear { window: 0.1 }.fires(freshness, 0.49));
    /// assert!(!Policy::Linear { window: 0.1 }.fires(freshness, 0.51));
    /// ```
    #[must_use]
    pub fn fires(&self, freshness: Freshness, random: f64) -> bool {
        let probability = self.probability(freshness);
        // The largest number below 1: the nearest to whatever is not a number, too.
        probability > 0.0 && random.min(1.0 - f64::EPSILON / 2.0) < probability
    }

    /// The probability that [`fires`](Self::fires) says yes.
    ///
    /// # Examples
    ///
    /// ```
    /// # use oneflight::refresh::{Freshness, Policy, Traffic};
    /// # use std::time::Duration;
    /// let (age, left) = (Duration::from_secs(57), Duration::from_secs(3));
    /// let freshness = Freshness { age, left, cost: Duration::from_millis(200) };
    /// assert_eq!(Policy::Linear { window: 0.1 }.probability(freshness), 0.5);
    /// assert_eq!(Policy::Eager { window: 0.1 }.probability(freshness), 1.0);
    /// ```
    #[must_use]
    pub fn probability(&self, freshness: Freshness) -> f64 {
        let left = freshness.left.as_secs_f64();
        if *self == Self::Never {
            0.0
        } else if left == 0.0 {
            1.0
        } else if left >= self.cutoff_seconds(freshness) {
            0.0
        } else {
            self.probability_at(left, freshness)
        }
    }

    /// How much must be left at least for no read to refresh, whatever its random number. To be stored beside a value: until
    /// then neither the policy nor a random number is needed.
    ///
    /// # Examples
    ///
    /// ```
    /// # use oneflight::refresh::{Freshness, Policy, Traffic};
    /// # use std::time::Duration;
    /// let (age, left) = (Duration::from_secs(57), Duration::from_secs(3));
    /// let freshness = Freshness { age, left, cost: Duration::from_millis(200) };
    /// assert_eq!(Policy::Eager { window: 0.1 }.cutoff(freshness), Duration::from_secs(6));
    /// ```
    #[must_use]
    pub fn cutoff(&self, freshness: Freshness) -> Duration {
        let seconds = self.cutoff_seconds(freshness);
        // It is at most the value's life, which is a duration.
        let nearest = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
        let is_short = nearest.as_secs_f64() < seconds;
        nearest.saturating_add(Duration::from_nanos(is_short.into()))
    }

    /// What comes of this policy, by the closed forms in [the module's table](self).
    ///
    /// They hold where the first refresh is all but certain to come within the window: for a dozen reads and more within it.
    /// `lead` and `refreshes` of [`XFetch`](Self::XFetch) leave its `max_window` aside, which should be a, that
    /// is `beta` x cost, times 7 + ln(ra) or more; `refreshes` of the others take it that the load ends within the window. For
    /// [`Never`](Self::Never) every life ends in a miss.
    ///
    /// # Examples
    ///
    /// ```
    /// # use oneflight::refresh::{Freshness, Policy, Traffic};
    /// # use std::time::Duration;
    /// let load = Duration::from_millis(500);
    /// let traffic = Traffic { reads_per_second: 1.0, load, cost: load, life: Duration::from_secs(60) };
    /// // A page that is read once a second: XFetch finds it expired in three lives of five, a linear window in one of twenty.
    /// assert!((Policy::default().predict(traffic).miss - 0.61).abs() < 0.01);
    /// assert!((Policy::Linear { window: 0.1 }.predict(traffic).miss - 0.05).abs() < 0.01);
    /// ```
    #[must_use]
    pub fn predict(&self, traffic: Traffic) -> Prediction {
        self.predict_for(traffic, None)
    }

    /// The same for so many `processes` (0 counts as 1), of which each has a flight for its own refresh, and none learns of
    /// another's before its value is there: [`refreshes`](Prediction::refreshes) are the loads of all of them. `traffic` is that of
    /// all of them, too, in equal parts.
    ///
    /// # Examples
    ///
    /// ```
    /// # use oneflight::refresh::{Policy, Traffic};
    /// # use std::time::Duration;
    /// let load = Duration::from_millis(500);
    /// let traffic = Traffic { reads_per_second: 1200.0, load, cost: load, life: Duration::from_secs(60) };
    /// let loads = |policy: Policy| policy.predict_with_flights(traffic, 8).refreshes;
    /// assert!((loads(Policy::default()) - 2.238).abs() < 1e-3);
    /// assert!((loads(Policy::Linear { window: 0.1 }) - 7.88).abs() < 0.01);
    /// ```
    #[must_use]
    pub fn predict_with_flights(&self, traffic: Traffic, processes: u32) -> Prediction {
        self.predict_for(traffic, Some(f64::from(processes.max(1))))
    }

    fn predict_for(&self, traffic: Traffic, processes: Option<f64>) -> Prediction {
        let Traffic { reads_per_second, load, cost, life } = traffic;
        // Not if it is NaN either.
        let is_read = reads_per_second > 0.0;
        let (load, life) = (load.as_secs_f64(), life.as_secs_f64());
        // Far more than anything is read, and little enough for its products to be finite.
        let rate = reads_per_second.min(1e100);
        let (min, max) = match *self {
            Self::Never => return Prediction { miss: 1.0, lead: 0.0, refreshes: 0.0 },
            _ if !is_read => return Prediction { miss: 1.0, lead: 0.0, refreshes: 1.0 },
            Self::XFetch { beta, max_window } => {
                let (scale, window) = (scale(beta, cost), fraction(max_window) * life);
                if scale.is_finite() {
                    return xfetch(rate, load, scale, window, processes);
                }
                (window, window)
            }
            Self::Linear { window } => (0.0, fraction(window) * life),
            Self::Eager { window } => (fraction(window) * life, fraction(window) * life),
            Self::Jittered { min, max } => (fraction(min).min(fraction(max)) * life, fraction(max) * life),
        };
        let rising = max - min;
        let miss = libm::exp(-rate * (rising / 2.0 + min));
        if rising > 0.0 {
            let slope = rate / rising;
            let until_first = libm::sqrt(core::f64::consts::FRAC_PI_2 / slope);
            let again = match processes {
                None => load * slope * until_first + slope * load * load / 2.0,
                Some(processes) => {
                    let t = load * libm::sqrt(slope) / processes;
                    let half = t * t / 2.0;
                    let tail = libm::exp(-(processes - 1.0) * half) * libm::erfc(libm::sqrt(half));
                    let one = -libm::expm1(-processes * half) + t * libm::sqrt(core::f64::consts::FRAC_PI_2) * tail;
                    (processes - 1.0) * one
                }
            };
            Prediction { miss, lead: (max - until_first).max(0.0), refreshes: 1.0 + again }
        } else {
            let again = rate * load;
            let again = processes.map_or(again, |processes| (processes - 1.0) * -libm::expm1(-again / processes));
            Prediction { miss, lead: (max - 1.0 / rate).max(0.0), refreshes: 1.0 + again }
        }
    }

    /// For a policy other than `Never`, and something left, less than the cutoff.
    fn probability_at(&self, left: f64, freshness: Freshness) -> f64 {
        match *self {
            Self::Never => 0.0,
            Self::Eager { .. } => 1.0,
            Self::XFetch { beta, .. } => libm::exp(-left / scale(beta, freshness.cost)),
            Self::Linear { window } => 1.0 - left / (fraction(window) * freshness.life()),
            Self::Jittered { min, max } => {
                let (min, max) = (fraction(min) * freshness.life(), fraction(max) * freshness.life());
                if left <= min { 1.0 } else { (max - left) / (max - min) }
            }
        }
    }

    fn cutoff_seconds(&self, freshness: Freshness) -> f64 {
        /// A random number of a double's precision is at least 2^-53 if it is not zero: -ln of that.
        const MOST: f64 = 53.0 * core::f64::consts::LN_2;
        match *self {
            Self::Never => 0.0,
            Self::XFetch { beta, max_window } => {
                let reach = MOST * scale(beta, freshness.cost);
                reach.min(fraction(max_window) * freshness.life())
            }
            Self::Linear { window } | Self::Eager { window } | Self::Jittered { max: window, .. } => {
                fraction(window) * freshness.life()
            }
        }
    }
}

impl Freshness {
    /// Added up without rounding: it is the same at any age.
    fn life(&self) -> f64 {
        self.age.saturating_add(self.left).as_secs_f64()
    }
}

fn xfetch(rate: f64, load: f64, scale: f64, window: f64, processes: Option<f64>) -> Prediction {
    const EULER_GAMMA: f64 = 0.577_215_664_901_532_9;
    let reads = rate * scale;
    // What the window cuts off the integral of exp(-s/scale).
    let within = if scale > 0.0 { -libm::expm1(-window / scale) } else { 0.0 };
    let lead = if reads > 0.0 { scale * (libm::log(reads) + EULER_GAMMA) } else { 0.0 };
    let again = if scale > 0.0 { libm::expm1(load / scale) } else { 0.0 };
    // `again` may be infinite.
    let again = processes.map_or(again, |processes| (processes - 1.0) / (processes / again + 1.0));
    Prediction { miss: libm::exp(-reads * within), lead: lead.clamp(0.0, window), refreshes: 1.0 + again }
}

/// A part of the whole.
fn fraction(number: f64) -> f64 {
    sane(number).min(1.0)
}

fn sane(number: f64) -> f64 {
    number.max(0.0)
}

/// XFetch's measure of time, in seconds. What costs nothing is refreshed by nobody, however eager.
fn scale(beta: f64, cost: Duration) -> f64 {
    if cost.is_zero() { 0.0 } else { sane(beta) * cost.as_secs_f64() }
}
