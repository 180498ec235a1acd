//! Fan-out: one thread leads, hundreds sleep until it lands. When is the leader back, and when is the last one awake?

use crate::contender::Blocking;
use crate::machine::ThreadName;
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::borrow::Borrow;
use core::cell::Cell;
use core::fmt;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use core::time::Duration;
use crossbeam_utils::CachePadded;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread::{JoinHandle, Thread};
use std::time::Instant;

/// One flight of a contender: what its leader calls, and what its followers call.
pub struct Flight {
    lead: Box<Lead>,
    follow: Box<Follow>,
}

type Lead = dyn Fn(&dyn Fn() -> u64) -> u64 + Send + Sync;
type Follow = dyn Fn() -> u64 + Send + Sync;

impl Flight {
    /// A flight of `key` through `contender`.
    pub fn of<Q, K, C>(contender: &Arc<C>, key: K) -> Arc<Self>
    where
        Q: ?Sized,
        K: Borrow<Q> + Clone + Send + Sync + 'static,
        C: Blocking<Q, u64> + Send + 'static,
    {
        let (leader, follower) = (Arc::clone(contender), Arc::clone(contender));
        let key_again = key.clone();
        Arc::new(Self {
            lead: Box::new(move |work| leader.call(key.borrow(), work)),
            // Work of its own, which it has to run only if the contender fails to coalesce.
            follow: Box::new(move || follower.call(key_again.borrow(), || 0)),
        })
    }

    /// The floor: a bare [`OnceLock`], which can be used once.
    #[must_use]
    pub fn of_once_lock() -> Arc<Self> {
        let value = Arc::new(OnceLock::new());
        let awaited = Arc::clone(&value);
        Arc::new(Self {
            lead: Box::new(move |work| {
                let result = work();
                value.set(result).expect("a flight has one leader");
                result
            }),
            follow: Box::new(move || *awaited.wait()),
        })
    }
}

impl fmt::Debug for Flight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Flight").finish_non_exhaustive()
    }
}

/// How long a flight took after the leader's work had ended, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct Landing {
    /// Until the leader's call returned.
    pub leader_back: f64,
    /// Until the last follower's call returned.
    pub last_awake: f64,
}

/// Threads that follow. They live as long as the crowd, so that no start and no end of a thread is measured.
#[derive(Debug)]
pub struct Crowd {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    origin: Instant,
    members: Vec<CachePadded<Member>>,
    /// Followers that are about to call.
    entered: AtomicUsize,
    /// Followers that are not back yet.
    away: AtomicUsize,
}

#[derive(Debug, Default)]
struct Member {
    name: OnceLock<Option<ThreadName>>,
    order: Mutex<Option<Order>>,
    /// Nanoseconds after the origin.
    awake: AtomicU64,
}

#[derive(Debug)]
enum Order {
    /// Join the flight; unpark this leader when the last one is back.
    Follow(Arc<Flight>, Thread),
    Leave,
}

impl Crowd {
    /// Starts `size` threads. They are not pinned: the kernel's choice of a core for a thread that wakes is part of what a
    /// user gets, and pinned to the leader's core they would take it from the leader. To be called on a thread that is not
    /// pinned.
    #[must_use]
    pub fn new(size: usize) -> Self {
        let shared = Arc::new(Shared {
            origin: Instant::now(),
            members: (0..size).map(|_| CachePadded::default()).collect(),
            entered: AtomicUsize::new(0),
            away: AtomicUsize::new(0),
        });
        let member = |number: usize| {
            let shared = Arc::clone(&shared);
            std::thread::spawn(move || shared.serve(number))
        };
        let threads = (0..size).map(member).collect();
        Self { shared, threads }
    }

    /// Leads `flight` on this thread, lands when all the others are asleep in it, and waits until all of them are back.
    #[must_use]
    pub fn fan_out(&self, flight: &Arc<Flight>) -> Landing {
        let shared = &*self.shared;
        shared.entered.store(0, Ordering::SeqCst);
        shared.away.store(self.threads.len(), Ordering::SeqCst);
        let landed = Cell::new(0);
        let work = || {
            // The others are sent only now, since the first one to call would lead.
            for (member, thread) in shared.members.iter().zip(&self.threads) {
                member.post(Order::Follow(Arc::clone(flight), std::thread::current()));
                thread.thread().unpark();
            }
            shared.wait_until_all_sleep();
            landed.set(shared.now());
            1
        };
        (flight.lead)(&work);
        let back = shared.now();
        while shared.away.load(Ordering::SeqCst) > 0 {
            std::thread::park();
        }
        let last = shared.members.iter().map(|member| member.awake.load(Ordering::SeqCst)).max().unwrap_or(back);
        let since_landing = |at: u64| at.saturating_sub(landed.get()) as f64;
        Landing { leader_back: since_landing(back), last_awake: since_landing(last) }
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        for (member, thread) in self.shared.members.iter().zip(self.threads.drain(..)) {
            member.post(Order::Leave);
            thread.thread().unpark();
            if thread.join().is_err() && !std::thread::panicking() {
                panic!("a follower panicked");
            }
        }
    }
}

impl Shared {
    fn now(&self) -> u64 {
        u64::try_from(self.origin.elapsed().as_nanos()).expect("a bench ends within centuries")
    }

    fn serve(&self, number: usize) {
        let me = &*self.members[number];
        let _ = me.name.set(ThreadName::current());
        loop {
            match me.take() {
                None => std::thread::park(),
                Some(Order::Leave) => return,
                Some(Order::Follow(flight, leader)) => {
                    self.entered.fetch_add(1, Ordering::SeqCst);
                    core::hint::black_box((flight.follow)());
                    me.awake.store(self.now(), Ordering::SeqCst);
                    if self.away.fetch_sub(1, Ordering::SeqCst) == 1 {
                        leader.unpark();
                    }
                }
            }
        }
    }

    /// Nobody who sleeps holds a lock for ever, so when all of them sleep, all of them sleep in the flight.
    fn wait_until_all_sleep(&self) {
        while self.entered.load(Ordering::SeqCst) < self.members.len() {
            std::thread::sleep(Duration::from_micros(200));
        }
        let all_sleep = || self.members.iter().all(|member| member.is_asleep());
        while !(all_sleep() && all_sleep()) {
            std::thread::sleep(Duration::from_micros(200));
        }
        // Their last steps into sleep, which `/proc` does not show. Busy, so that this core is awake for the landing.
        let start = Instant::now();
        while start.elapsed() < Duration::from_micros(500) {
            core::hint::spin_loop();
        }
    }
}

impl Member {
    fn post(&self, order: Order) {
        *self.order.lock().unwrap_or_else(PoisonError::into_inner) = Some(order);
    }

    fn take(&self) -> Option<Order> {
        self.order.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn is_asleep(&self) -> bool {
        match self.name.get() {
            Some(Some(name)) => name.is_asleep(),
            Some(None) | None => {
                std::thread::sleep(Duration::from_micros(50));
                true
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use oneflight::SyncGroup;

    #[test]
    fn the_whole_crowd_follows_and_none_of_it_works() {
        let group: Arc<SyncGroup<u64, u64>> = Arc::new(SyncGroup::new());
        let crowd = Crowd::new(20);
        for round in 1..=3 {
            let landing = crowd.fan_out(&Flight::of(&group, 7));
            assert!(landing.leader_back > 0.0 && landing.last_awake > 0.0);
            assert_eq!((group.stats().flights, group.stats().joins), (round, round * 20));
        }
        assert!(crowd.fan_out(&Flight::of_once_lock()).last_awake > 0.0);
    }
}
