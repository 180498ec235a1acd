//! Flights of keys in a store that several processes share, and what they have at hand.

use super::{Begun, Flight, Flown, Inner, Next, Why};
use crate::error::Error;
use crate::fill::{self, Event, Fill, Outcome, Renewal, Token};
use crate::lease::Lease;
use crate::sharing::IfOpen;
use crate::stats::Count;
use crate::store::Store;
use crate::time::{Time, within};
use crate::time_limit::time_left;
use std::convert::Infallible;
use std::future::Future;
use std::hash::Hash;
use std::pin::Pin;
use std::time::{Duration, Instant};

/// What is different for threads and tasks about a flight with a lease.
pub(crate) trait Side: Send + Sync {
    /// Renews the lease of this fill, first after so long, until it is dropped.
    fn renew(&self, fill: Fill, first: Duration) -> Renewals<'_>;

    /// Gives the lease up, and waits for nothing.
    fn abandon(&self, token: Token);

    /// Lets nobody join the flight any more, whenever it is called.
    fn forgets(&self) -> Box<dyn Fn() + Send + Sync>;

    /// Until when the caller waits, if it cannot simply be dropped.
    fn deadline(&self) -> Option<Instant> {
        None
    }
}

/// Goes on until it is dropped.
pub(crate) type Renewals<'r> = Pin<Box<dyn Future<Output = Infallible> + Send + 'r>>;

pub(crate) fn fill_time(time: Time) -> fill::Time {
    time.since(Time::START)
}

impl<V, S> Inner<V, S> {
    /// As [`begin`](Self::begin), for keys of a batch, which begin at the same time.
    pub(crate) fn begin_at<Q: Hash + ?Sized>(&self, key: &Q, at: Time) -> Begun {
        Begun { load: self.loads.begin(self.loads.hash(key)), at }
    }

    /// As [`fly`](Self::fly), for a store that has leases. `None` also if the caller's time is up.
    pub(crate) async fn fly_leased<K, E, F>(
        &self,
        key: &K,
        why: Why,
        limit: Option<Duration>,
        begun: Begun,
        loader: F,
        side: Box<dyn Side + '_>,
    ) -> Flown<V, E>
    where
        K: Hash,
        V: Clone,
        S: Store<K, V>,
        F: Future<Output = Option<Result<V, Error<E>>>>,
    {
        let mut flight = Flight::new(self, key, why, begun, side);
        let mut loader = Some(loader);
        loop {
            match flight.go_on().await {
                // A loader is not interrupted, so it does not begin.
                Next::Load { .. } if flight.is_too_late() => return flight.ends_late(),
                Next::Load { uncached } => {
                    let _permit = if uncached {
                        if let Some(landed) = flight.find_near() {
                            return Some(Ok(landed));
                        }
                        match self.permit(flight.deadline()).await {
                            Ok(permit) => Some(permit),
                            Err(_) if flight.is_too_late() => return None,
                            Err(error) => return Some(Err(error)),
                        }
                    } else {
                        None
                    };
                    let loader = loader.take().expect("a fill loads once");
                    let begun = self.now();
                    flight.about_to_load();
                    flight.loads_from(begun);
                    let run = self.run(limit, begun, !flight.is_refresh(), loader, || flight.panics());
                    let (result, ended) = flight.renewing(run).await;
                    if !matches!(result, Some(Ok(_))) {
                        self.count_failed(result.as_ref().and_then(|result| result.as_ref().err()));
                    }
                    flight.loaded(result, ended).await;
                }
                Next::Wait { until } => {
                    let event = flight.wait(until).await;
                    if event == Event::Tick && flight.is_too_late() {
                        return None;
                    }
                    flight.step(event);
                }
                // The store has not failed: it was given no time.
                Next::Done(Outcome::StoreFailed | Outcome::Stale { .. }) if flight.is_too_late() => {
                    return flight.ends_late();
                }
                Next::Done(outcome) => return flight.landed(outcome),
            }
        }
    }

    /// Waits until it may load past the store, but no longer than for another process: a loader that loads another key may
    /// wait for its own turn to end.
    pub(crate) async fn permit<E>(
        &self,
        deadline: Option<Instant>,
    ) -> Result<async_lock::SemaphoreGuard<'_>, Error<E>> {
        self.counters.add(Count::Fallbacks);
        let limit = time_left(deadline).into_iter().chain([self.config.sharing.fill.wait]).min();
        let turn = self.sharing.as_ref().expect("there are leases").uncached.acquire();
        let permit = within(limit, &self.config.timer, turn).await;
        permit.ok_or_else(|| {
            self.counters.add(Count::Overloaded);
            Error::Overloaded
        })
    }

    /// Renews a lease once. How long it is until the next time, if there is one. If it was lost, the key may have been written and
    /// the push been lost too: then nobody is to join the load any more.
    pub(crate) async fn renew<K>(
        &self,
        key: &K,
        fill: &mut Fill,
        is_over: impl Fn() -> bool,
        forget: impl Fn(),
    ) -> Option<Duration>
    where
        S: Store<K, V>,
    {
        let lease = self.store.lease()?;
        let asked = self.now();
        let request = || lease.renew(key, fill.token(), self.config.sharing.fill.lease);
        let renewal = match self.ask_with::<K, _, _>(IfOpen::Ask, request).await {
            Ok(true) => Renewal::Renewed,
            Ok(false) => Renewal::Lost,
            Err(_) => Renewal::Failed,
        };
        if is_over() {
            return None;
        }
        if renewal == Renewal::Lost {
            forget();
            self.counters.add(Count::Lost);
        }
        fill.renewed(renewal, fill_time(asked));
        fill.renewal().map(|at| at.saturating_sub(fill_time(self.now())))
    }
}
