//! What only threads need: sleeping, spinning, clocks.

use core::num::NonZeroU32;
#[cfg(not(loom))]
use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering;
use core::time::Duration;
#[cfg(loom)]
use loom::sync::{Condvar, Mutex as QueueLock, atomic::AtomicU32};
use std::sync::PoisonError;
#[cfg(not(loom))]
use std::sync::{Condvar, Mutex as QueueLock};
use std::time::Instant;

/// How many threads each thread wakes that the last notification has woken. The notifier wakes only one: the second would
/// be given the notifier's own core, the other one being taken. So it returns at once, and hundreds are awake as fast as
/// if it had woken them all.
const RELAY: u32 = 2;

/// Where threads sleep until something that they are waiting for may have happened.
///
/// The thing itself is state under another lock. A waiter [listens](Self::listen), checks the state, then
/// [waits](Self::wait) with its ticket; a notifier changes the state, then calls [`notify_one`](Self::notify_one),
/// [`notify_all`](Self::notify_all) or [`notify_last`](Self::notify_last). A notification that falls between the check and
/// the wait makes the ticket stale, and `wait` returns at once: no wake-up is lost.
#[derive(Debug)]
pub(crate) struct WaitQueue {
    /// Counts notifications. Written under the lock only; read without it by `listen` and by spinning waiters.
    notifications: AtomicU32,
    sleepers: QueueLock<Sleepers>,
    condvar: Condvar,
}

/// The number of notifications when a waiter began to listen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ticket(u32);

/// Who sleeps, counted so that no wake-up is sent to nobody: it would cost a system call all the same.
#[derive(Debug)]
struct Sleepers {
    /// From before they sleep until they have the lock again.
    asleep: u32,
    /// How many of them the relay has yet to wake: no fewer than really sleep, as nobody goes to sleep while it runs. Those
    /// that wake by themselves meanwhile stay counted; in the end somebody is woken in vain for each.
    unwoken: u32,
}

impl Sleepers {
    /// The caller's share of the relay, which it must wake.
    fn next(&mut self) -> u32 {
        let share = self.unwoken.min(RELAY);
        self.unwoken -= share;
        share
    }
}

impl WaitQueue {
    pub(crate) fn new() -> Self {
        let sleepers = QueueLock::new(Sleepers { asleep: 0, unwoken: 0 });
        Self { notifications: AtomicU32::new(0), sleepers, condvar: Condvar::new() }
    }

    /// Partner of the notifications: must come before the check of the state, or a change between the check and the
    /// listening would go unseen.
    pub(crate) fn listen(&self) -> Ticket {
        Ticket(self.notifications.load(Ordering::Acquire))
    }

    /// Whether a notification came after `ticket` was drawn.
    pub(crate) fn is_stale(&self, ticket: Ticket) -> bool {
        self.listen() != ticket
    }

    /// Sleeps until a notification comes after `ticket`, or until `deadline`. May also return for no reason.
    pub(crate) fn wait(&self, ticket: Ticket, deadline: Option<Instant>) {
        let mut sleepers = self.sleepers.lock().unwrap_or_else(PoisonError::into_inner);
        if self.is_stale(ticket) {
            return;
        }
        sleepers.asleep += 1;
        let mut sleepers = match deadline {
            None => self.condvar.wait(sleepers).unwrap_or_else(PoisonError::into_inner),
            Some(deadline) => {
                let left = deadline.saturating_duration_since(Instant::now());
                self.condvar.wait_timeout(sleepers, left).unwrap_or_else(PoisonError::into_inner).0
            }
        };
        sleepers.asleep -= 1;
        // Before anything else, and whatever the reason that it woke for: the caller may go on to run for long, it may have
        // got the wake-up at the moment at which its time was up, and the others sleep.
        let share = sleepers.next();
        drop(sleepers);
        self.wake(share);
    }

    /// Wakes one sleeping thread, after making every ticket stale. The state must have been changed before.
    pub(crate) fn notify_one(&self) {
        let share = self.notify(|sleepers| sleepers.asleep.min(1));
        self.wake(share);
    }

    /// Wakes all sleeping threads, after making every ticket stale. The state must have been changed before.
    pub(crate) fn notify_all(&self) {
        if self.notify(|sleepers| sleepers.asleep) > 0 {
            self.condvar.notify_all();
        }
    }

    /// Wakes the first of the sleeping threads, which wakes the others, after making every ticket stale. The state must
    /// have been changed before, so that nobody who sees it goes to sleep any more.
    pub(crate) fn notify_last(&self) {
        let share = self.notify(|sleepers| {
            let share = sleepers.asleep.min(1);
            sleepers.unwoken = sleepers.asleep - share;
            share
        });
        self.wake(share);
    }

    fn notify(&self, choose: impl FnOnce(&mut Sleepers) -> u32) -> u32 {
        // Under the lock, or a waiter between its check of the ticket and its sleep would miss the wake-up.
        let mut sleepers = self.sleepers.lock().unwrap_or_else(PoisonError::into_inner);
        self.notifications.fetch_add(1, Ordering::Release);
        choose(&mut sleepers)
    }

    fn wake(&self, count: u32) {
        (0..count).for_each(|_| self.condvar.notify_one());
    }
}

/// Spins for a moment, some microseconds, until `done`. Does nothing on a machine with one core.
pub(crate) fn spin_until(done: impl Fn() -> bool) {
    const SPINS: u32 = 128;
    const YIELDS: u32 = 4;
    if !spinning_helps() {
        return;
    }
    for turn in 0..SPINS + YIELDS {
        if done() {
            return;
        }
        if turn < SPINS { core::hint::spin_loop() } else { std::thread::yield_now() }
    }
}

/// Whether a thread that spins can see another one run.
#[cfg(not(loom))]
static MANY_CORES: core::sync::atomic::AtomicBool = core::sync::atomic::AtomicBool::new(false);

/// Finds out whether there are several cores: to be called before anybody may want to spin.
///
/// A thread that is pinned to a core is told that there is one. So whoever builds a group asks, which is seldom a pinned
/// thread, rather than whoever waits; and it asks again as long as nobody has heard of more than one.
#[cfg(not(loom))]
pub(crate) fn count_cores() {
    if !spinning_helps() && std::thread::available_parallelism().is_ok_and(|cores| cores.get() > 1) {
        MANY_CORES.store(true, Ordering::Relaxed);
    }
}

#[cfg(not(loom))]
fn spinning_helps() -> bool {
    MANY_CORES.load(Ordering::Relaxed)
}

#[cfg(loom)]
pub(crate) fn count_cores() {}

#[cfg(loom)]
fn spinning_helps() -> bool {
    false
}

/// Tells which flights are too old to be joined. Counts time since it was made, in ticks of a 64th of that age, or a
/// microsecond if that is more.
#[derive(Debug)]
pub(crate) struct AgeClock {
    origin: Instant,
    nanos_per_tick: u64,
    limit: u32,
}

impl AgeClock {
    const TICKS: u128 = 64;
    const SHORTEST_TICK: u64 = 1_000;

    pub(crate) fn new(max_age: Duration) -> Self {
        let nanos = max_age.as_nanos();
        let nanos_per_tick = u64::try_from(nanos / Self::TICKS).unwrap_or(u64::MAX).max(Self::SHORTEST_TICK);
        // More than any flight lives where the age is past what the clock can tell.
        let limit = u32::try_from(nanos / u128::from(nanos_per_tick)).unwrap_or(u32::MAX);
        Self { origin: Instant::now(), nanos_per_tick, limit }
    }

    /// The age, in ticks, from which on a flight takes no newcomer.
    pub(crate) fn limit(&self) -> u32 {
        self.limit
    }

    /// Ticks since the origin, from 1 to 2^32 - 1 and round again.
    pub(crate) fn now(&self) -> NonZeroU32 {
        let nanos = u64::try_from(self.origin.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let tick = (nanos / self.nanos_per_tick) % u64::from(u32::MAX);
        NonZeroU32::MIN.saturating_add(tick as u32)
    }

    pub(crate) fn duration_of(&self, ticks: u32) -> Duration {
        Duration::from_nanos(self.nanos_per_tick.saturating_mul(u64::from(ticks)))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn any_age_can_be_asked_for() {
        let limit = |age| AgeClock::new(age).limit();
        assert_eq!(limit(Duration::ZERO), 0);
        assert_eq!(limit(Duration::from_nanos(999)), 0);
        assert_eq!(limit(Duration::from_micros(9)), 9);
        for age in [Duration::from_millis(1), Duration::from_secs(30), Duration::MAX] {
            assert!(limit(age) >= 64, "{age:?}");
        }
    }

    #[test]
    fn the_age_clock_measures_in_parts_of_the_age() {
        let clock = AgeClock::new(Duration::from_micros(64));
        assert_eq!(clock.duration_of(clock.limit()), Duration::from_micros(64));
        let before = clock.origin.elapsed();
        let now = clock.duration_of(clock.now().get() - 1);
        assert!(now <= clock.origin.elapsed());
        assert!(now + Duration::from_nanos(1_000) > before);
    }

    #[test]
    fn a_notification_between_listening_and_waiting_is_not_lost() {
        let queue = WaitQueue::new();
        let ticket = queue.listen();
        assert!(!queue.is_stale(ticket));
        queue.notify_one();
        assert!(queue.is_stale(ticket));
        queue.wait(ticket, None);
        let deadline = Instant::now() + Duration::from_millis(2);
        while Instant::now() < deadline {
            queue.wait(queue.listen(), Some(deadline));
        }
    }
}
