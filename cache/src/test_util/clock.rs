//! Time that goes on when a test says so.

use crate::time::{BoxFuture, Clock, Time, Timer};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
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
    /// By when, and a number of their own.
    sleepers: BTreeMap<(Time, u64), Waker>,
    next: u64,
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
        let later = manual.sleepers.split_off(&(now, u64::MAX));
        let due = std::mem::replace(&mut manual.sleepers, later);
        drop(manual);
        due.into_values().for_each(Waker::wake);
    }

    /// How many sleeps are on: polled, not over and not dropped.
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
        let until = self.now().after(duration);
        Box::pin(Sleep { clock: self.clone(), until, number: None })
    }
}

/// Is in the list of those who sleep from its first poll until its time has come, or it is dropped.
struct Sleep {
    clock: ManualClock,
    until: Time,
    number: Option<u64>,
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let waker = cx.waker().clone();
        let clock = self.clock.clone();
        let mut manual = clock.0.lock();
        if manual.now >= self.until {
            return Poll::Ready(());
        }
        let number = *self.number.get_or_insert_with(|| {
            manual.next += 1;
            manual.next
        });
        let before = manual.sleepers.insert((self.until, number), waker);
        // Wakers are the user's code.
        drop(manual);
        drop(before);
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        let Some(number) = self.number else { return };
        let waker = self.clock.0.lock().sleepers.remove(&(self.until, number));
        drop(waker);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_lite::future::{block_on, poll_once};

    #[test]
    fn a_sleep_counts_once_and_until_it_is_over_or_dropped() {
        let clock = ManualClock::new();
        let seconds = |seconds| clock.sleep(Duration::from_secs(seconds));
        block_on(async {
            let (mut first, mut second, mut third) = (seconds(1), seconds(2), seconds(2));
            for sleep in [&mut first, &mut second, &mut third] {
                assert!(poll_once(&mut *sleep).await.is_none());
                assert!(poll_once(sleep).await.is_none());
            }
            assert_eq!(clock.sleepers(), 3);
            drop(third);
            assert_eq!(clock.sleepers(), 2);
            clock.advance(Duration::from_secs(1));
            assert_eq!(clock.sleepers(), 1);
            first.await;
            assert!(poll_once(&mut second).await.is_none());
            clock.advance(Duration::from_secs(1));
            assert_eq!(clock.sleepers(), 0);
            second.await;
        });
    }
}
