//! Time that goes on when a test says so.

use crate::time::{BoxFuture, Clock, Time, Timer};
use parking_lot::Mutex;
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::Duration;

/// A clock, and a timer, that stand still until they are told to go on. A clone shows the same time.
///
/// # Examples
///
/// ```
/// use oneflight_cache::test_util::ManualClock;
/// use oneflight_cache::{Cache, Source};
/// use std::time::Duration;
///
/// # smol::block_on(async {
/// let clock = ManualClock::new();
/// let builder = Cache::builder().ttl(Duration::from_secs(60)).ttl_jitter(0.0);
/// let users: Cache<u64, String> = builder.clock(clock.clone()).timer(clock.clone()).build();
/// users.put(&7, "Ada".to_owned()).await?;
/// clock.advance(Duration::from_secs(61));
/// let name = users.get_or_load(&7, || async { Ok("Grace".to_owned()) }).await?;
/// assert_eq!((name.as_str(), name.source), ("Grace", Source::Loaded));
/// # Ok::<(), oneflight_cache::Error<oneflight_cache::BoxError>>(())
/// # }).unwrap();
/// ```
#[derive(Clone, Debug, Default)]
pub struct ManualClock(Arc<Mutex<Manual>>);

#[derive(Debug, Default)]
struct Manual {
    now: Time,
    sleepers: Vec<(Time, Waker)>,
}

impl ManualClock {
    /// A clock that has just begun.
    ///
    /// # Examples
    ///
    /// ```
    /// use oneflight_cache::{Clock, Time, test_util::ManualClock};
    ///
    /// assert_eq!(ManualClock::new().now(), Time::START);
    /// ```
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Goes on by `duration`, and wakes those whose time has come.
    ///
    /// # Examples
    ///
    /// ```
    /// use oneflight_cache::{Clock, Time, test_util::ManualClock};
    /// use std::time::Duration;
    ///
    /// let clock = ManualClock::new();
    /// clock.advance(Duration::from_secs(2));
    /// assert_eq!(clock.now(), Time::from_start(Duration::from_secs(2)));
    /// ```
    pub fn advance(&self, duration: Duration) {
        let mut manual = self.0.lock();
        let now = manual.now.after(duration);
        manual.now = now;
        let (due, later) = std::mem::take(&mut manual.sleepers).into_iter().partition(|(until, _)| *until <= now);
        manual.sleepers = later;
        drop(manual);
        let due: Vec<(Time, Waker)> = due;
        due.into_iter().for_each(|(_, waker)| waker.wake());
    }

    /// How many tasks sleep.
    ///
    /// # Examples
    ///
    /// ```
    /// assert_eq!(oneflight_cache::test_util::ManualClock::new().sleepers(), 0);
    /// ```
    #[must_use]
    pub fn sleepers(&self) -> usize {
        self.0.lock().sleepers.len()
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Time {
        self.0.lock().now
    }
}

impl Timer for ManualClock {
    fn sleep(&self, duration: Duration) -> BoxFuture {
        let clock = self.clone();
        let until = clock.now().after(duration);
        Box::pin(std::future::poll_fn(move |cx| {
            let waker = cx.waker().clone();
            let mut manual = clock.0.lock();
            if manual.now >= until {
                return Poll::Ready(());
            }
            // More than one for a task that is polled often, which only wakes it once too often.
            manual.sleepers.push((until, waker));
            Poll::Pending
        }))
    }
}
