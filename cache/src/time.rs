//! Time: what the clock says, and what wakes tasks later.

use pin_project_lite::pin_project;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// A moment on a cache's own clock, to the nanosecond. It means nothing on another clock, and nothing in another process.
///
/// # Examples
///
/// ```
/// use oneflight_cache::Time;
/// use std::time::Duration;
///
/// let begun = Time::from_start(Duration::from_secs(1));
/// assert!(Time::START < begun && begun < Time::NEVER);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(u64);

impl Time {
    /// The moment at which the clock began.
    pub const START: Self = Self(0);
    /// Later than all others: what ends then does not end.
    pub const NEVER: Self = Self(u64::MAX);

    /// The moment so long after [`START`](Self::START); [`NEVER`](Self::NEVER) if that is more than 584 years.
    ///
    /// # Examples
    ///
    /// ```
    /// use oneflight_cache::Time;
    /// use std::time::Duration;
    ///
    /// assert_eq!(Time::from_start(Duration::ZERO), Time::START);
    /// assert_eq!(Time::from_start(Duration::MAX), Time::NEVER);
    /// ```
    #[must_use]
    pub fn from_start(since: Duration) -> Self {
        Self(nanos(since))
    }

    /// The moment so much later; [`NEVER`](Self::NEVER) if there is no such moment.
    ///
    /// # Examples
    ///
    /// ```
    /// use oneflight_cache::Time;
    /// use std::time::Duration;
    ///
    /// let time = Time::START.after(Duration::from_secs(2));
    /// assert_eq!(time.since(Time::START), Duration::from_secs(2));
    /// assert_eq!(time.after(Duration::MAX), Time::NEVER);
    /// ```
    #[must_use]
    pub fn after(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(Self::from_start(duration).0))
    }

    /// How much later this is than `earlier`: zero if it is not, [`Duration::MAX`] if this is [`NEVER`](Self::NEVER).
    ///
    /// # Examples
    ///
    /// ```
    /// use oneflight_cache::Time;
    /// use std::time::Duration;
    ///
    /// let later = Time::START.after(Duration::from_secs(2));
    /// assert_eq!(later.since(Time::START), Duration::from_secs(2));
    /// assert_eq!(Time::START.since(later), Duration::ZERO);
    /// ```
    #[must_use]
    #[inline]
    pub fn since(self, earlier: Self) -> Duration {
        match self {
            Self::NEVER => Duration::MAX,
            Self(time) => Duration::from_nanos(time.saturating_sub(earlier.0)),
        }
    }

    /// The moment so much earlier, but not before [`START`](Self::START); [`NEVER`](Self::NEVER) stays. The system's clock
    /// begins a century after that, so that a store can tell when it was that others stored what it finds.
    ///
    /// # Examples
    ///
    /// ```
    /// use oneflight_cache::Time;
    /// use std::time::Duration;
    ///
    /// let second = Duration::from_secs(1);
    /// assert_eq!(Time::from_start(second * 3).before(second), Time::from_start(second * 2));
    /// assert_eq!(Time::START.before(second), Time::START);
    /// assert_eq!(Time::NEVER.before(second), Time::NEVER);
    /// ```
    #[must_use]
    pub fn before(self, duration: Duration) -> Self {
        match self {
            Self::NEVER => Self::NEVER,
            Self(time) => Self(time.saturating_sub(Self::from_start(duration).0)),
        }
    }

    #[inline]
    pub(crate) fn after_nanos(self, nanos: u64) -> Self {
        Self(self.0.saturating_add(nanos))
    }

    #[inline]
    pub(crate) fn after_millis(self, millis: u32) -> Self {
        Self(self.0.saturating_add(u64::from(millis) * 1_000_000))
    }

    /// See [`before`](Self::before).
    #[inline]
    pub(crate) fn before_millis(self, millis: u32) -> Self {
        match self {
            Self::NEVER => Self::NEVER,
            Self(time) => Self(time.saturating_sub(u64::from(millis) * 1_000_000)),
        }
    }
}

/// In nanoseconds: the most that there can be if it is longer than 584 years.
#[inline]
pub(crate) fn nanos(duration: Duration) -> u64 {
    duration.as_secs().saturating_mul(SECOND).saturating_add(duration.subsec_nanos().into())
}

/// In milliseconds, rounded up.
pub(crate) fn millis(duration: Duration) -> u64 {
    duration.as_secs().saturating_mul(1_000).saturating_add(duration.subsec_nanos().div_ceil(1_000_000).into())
}

/// Where a cache has its time from. It must never go backwards. Any function that tells the time is one.
///
/// # Examples
///
/// ```
/// use oneflight_cache::{Cache, Clock, Time};
/// use std::time::Instant;
///
/// /// Begins when the program does.
/// struct Uptime(Instant);
///
/// impl Clock for Uptime {
///     fn now(&self) -> Time {
///         Time::from_start(self.0.elapsed())
///     }
/// }
///
/// let cache: Cache<String, String> = Cache::builder().clock(Uptime(Instant::now())).build();
/// # let _ = cache;
/// let start = Instant::now();
/// let same: Cache<String, String> = Cache::builder().clock(move || Time::from_start(start.elapsed())).build();
/// # let _ = same;
/// ```
pub trait Clock: Send + Sync + 'static {
    /// The time.
    fn now(&self) -> Time;
}

impl<F> Clock for F
where
    F: Fn() -> Time + Send + Sync + 'static,
{
    fn now(&self) -> Time {
        self()
    }
}

/// The clock of a cache: without indirection unless somebody has asked for another.
#[derive(Clone)]
pub(crate) enum AnyClock {
    System(SystemClock),
    Other(Arc<dyn Clock>),
}

impl AnyClock {
    pub(crate) fn system() -> Self {
        Self::System(SystemClock::new())
    }

    #[inline]
    pub(crate) fn now(&self) -> Time {
        match self {
            Self::System(clock) => clock.now(),
            Self::Other(clock) => clock.now(),
        }
    }
}

/// In nanoseconds.
const SECOND: u64 = 1_000_000_000;
const CENTURY: u64 = 100 * 365 * 24 * 3_600 * SECOND;

/// The clock that `Instant` reads. On Linux it is read here, as the difference of two `Instant`s takes a tenth of a hit.
#[cfg(target_os = "linux")]
#[derive(Clone, Copy)]
pub(crate) struct SystemClock {
    /// What it shows, and this, is the time.
    offset: u64,
}

#[cfg(target_os = "linux")]
impl SystemClock {
    fn new() -> Self {
        Self { offset: CENTURY.wrapping_sub(Self::shows()) }
    }

    #[inline]
    fn now(self) -> Time {
        Time(Self::shows().wrapping_add(self.offset))
    }

    #[inline]
    fn shows() -> u64 {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        (now.tv_sec as u64).wrapping_mul(SECOND).wrapping_add(now.tv_nsec as u64)
    }
}

#[cfg(not(target_os = "linux"))]
#[derive(Clone, Copy)]
pub(crate) struct SystemClock {
    start: std::time::Instant,
}

#[cfg(not(target_os = "linux"))]
impl SystemClock {
    fn new() -> Self {
        Self { start: std::time::Instant::now() }
    }

    #[inline]
    fn now(self) -> Time {
        let since = self.start.elapsed();
        let nanos = since.as_secs().wrapping_mul(SECOND).wrapping_add(u64::from(since.subsec_nanos()));
        Time(nanos.wrapping_add(CENTURY))
    }
}

/// A boxed future, as timers and spawners deal in them.
pub type BoxFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

/// How a cache waits for time to pass. Any function that makes such a future is one: with tokio's clock,
/// `builder.timer(tokio::time::sleep)`.
///
/// # Examples
///
/// ```
/// use oneflight_cache::Timer;
/// use std::time::Duration;
///
/// let timer = |duration: Duration| async move {
///     smol::Timer::after(duration).await;
/// };
/// smol::block_on(timer.sleep(Duration::from_millis(1)));
/// ```
pub trait Timer: Send + Sync + 'static {
    /// A future that is ready after `duration`, counted from this call.
    fn sleep(&self, duration: Duration) -> BoxFuture;
}

impl<T, F> Timer for T
where
    T: Fn(Duration) -> F + Send + Sync + 'static,
    F: Future<Output = ()> + Send + 'static,
{
    fn sleep(&self, duration: Duration) -> BoxFuture {
        Box::pin(self(duration))
    }
}

/// `future`, for as long as it takes but not longer than `limit`. The timer is asked only once the future has to wait, and never
/// for longer than a [`Time`] can be: not every timer can add that to what its clock shows. That is so too of what is left of the
/// longest of all limits.
pub(crate) fn within<F: Future>(limit: Option<Duration>, timer: &Arc<dyn Timer>, future: F) -> Within<'_, F> {
    Within { limit: limit.filter(|limit| nanos(*limit) < u64::MAX), timer, sleep: None, future }
}

pin_project! {
    /// Not an `async fn`, whose future would have room for two of `future`: where it comes from, and where it is polled.
    pub(crate) struct Within<'t, F> {
        limit: Option<Duration>,
        timer: &'t Arc<dyn Timer>,
        sleep: Option<BoxFuture>,
        #[pin]
        future: F,
    }
}

impl<F: Future> Future for Within<'_, F> {
    type Output = Option<F::Output>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        if let Poll::Ready(value) = this.future.poll(cx) {
            return Poll::Ready(Some(value));
        }
        let Some(limit) = *this.limit else { return Poll::Pending };
        this.sleep.get_or_insert_with(|| this.timer.sleep(limit)).as_mut().poll(cx).map(|()| None)
    }
}

/// Drives a future on this thread. Most are ready at once here, and need nothing to be woken by.
pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    block_on_pinned(pin!(future))
}

/// That, for one that need not be moved.
#[inline]
pub(crate) fn block_on_pinned<T>(mut future: Pin<&mut impl Future<Output = T>>) -> T {
    match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => futures_lite::future::block_on(future),
    }
}

/// The output of a future that has no need to wait.
pub(crate) fn at_once<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("a store that is said to be immediate waits for something"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_goes_as_fast_as_the_systems_and_never_back() {
        const LONG: Duration = Duration::from_millis(20);
        let (clock, before) = (SystemClock::new(), std::time::Instant::now());
        let first = clock.now();
        let after = std::time::Instant::now();
        assert!(first >= Time(CENTURY), "it begins a century after the start");
        let mut last = first;
        while after.elapsed() < LONG {
            let now = clock.now();
            assert!(now >= last);
            last = now;
        }
        let passed = clock.now().since(first);
        assert!(passed >= LONG && passed <= before.elapsed(), "{passed:?}");
    }

    #[test]
    #[should_panic(expected = "said to be immediate")]
    fn a_store_that_is_said_to_be_immediate_must_not_wait() {
        at_once(std::future::pending::<()>());
    }

    #[test]
    fn no_timer_is_asked_for_what_is_longer_than_time() {
        let timer: Arc<dyn Timer> = Arc::new(|duration| async move { panic!("asked for {duration:?}") });
        let waits_once = || {
            let mut has_waited = false;
            std::future::poll_fn(move |cx| {
                cx.waker().wake_by_ref();
                if std::mem::replace(&mut has_waited, true) { Poll::Ready(7) } else { Poll::Pending }
            })
        };
        for long in
            [Duration::MAX, Duration::MAX.saturating_sub(Duration::from_secs(3_600)), Duration::from_nanos(u64::MAX)]
        {
            assert_eq!(block_on(within(Some(long), &timer, waits_once())), Some(7));
        }
        assert_eq!(block_on(within(None, &timer, waits_once())), Some(7));
    }
}
