//! Several keys of a store with leases, loaded together.

use super::fly::counted;
use super::together::{all, together};
use crate::error::OfEach;
use crate::fill::{self, Event, Outcome};
use crate::inner::{Flight, Flown, Inner, Next, Side, Why, fill_time};
use crate::store::Store;
use crate::time_limit::time_left;
use futures_lite::future::or;
use hashbrown::HashSet;
use std::future::{Future, pending, poll_fn};
use std::hash::Hash;
use std::task::Poll;
use std::time::Duration;

/// So many requests of a batch are on at once, at most. All at once, those of ten thousand keys would take longer than a store
/// waits for an answer.
pub(super) const REQUESTS: usize = 128;

/// A flight that sleeps until then, with the index of its key.
type Waiting<'f, K, V, E, S> = (usize, Flight<'f, K, V, E, S>, fill::Time);

impl<V, S> Inner<V, S> {
    /// As [`fly_leased`](Self::fly_leased), for keys that are loaded together. What it has the leases of it loads and publishes
    /// before it waits for other processes, so two of these never wait for each other.
    pub(super) async fn fly_many_leased<'k, K, E, F>(
        &'k self,
        keys: &'k [(K, Why)],
        limit: Option<Duration>,
        mut loader: impl FnMut(Vec<usize>) -> F,
        side: impl Fn(&'k K) -> Box<dyn Side + 'k>,
    ) -> Vec<Flown<V, E>>
    where
        K: Hash,
        V: Clone,
        S: Store<K, V>,
        F: Future<Output = OfEach<V, E>>,
    {
        // Their time for waiting ends together too, so those that are loaded then are loaded together.
        let now = self.now();
        let begin = |(key, why): &'k (K, Why)| Flight::new(self, key, *why, self.begin_at(key, now), side(key));
        let mut active: Vec<_> = keys.iter().map(begin).enumerate().collect();
        let mut waiting = Vec::new();
        let mut flown: Vec<Flown<V, E>> = keys.iter().map(|_| None).collect();
        while !active.is_empty() {
            let nexts = together(REQUESTS, active.iter_mut().map(|(_, flight)| flight.go_on()).collect()).await;
            let (mut to_load, mut uncached) = (Vec::new(), HashSet::new());
            for ((index, flight), next) in active.into_iter().zip(nexts) {
                match next {
                    // The caller's time is up, as with single calls.
                    Next::Load { .. } | Next::Done(Outcome::StoreFailed | Outcome::Stale { .. })
                        if flight.is_too_late() =>
                    {
                        flown[index] = flight.ends_late();
                    }
                    Next::Load { uncached: is_uncached } => {
                        if is_uncached && let Some(landed) = flight.find_near() {
                            flown[index] = Some(Ok(landed));
                            continue;
                        }
                        uncached.extend(is_uncached.then_some(index));
                        to_load.push((index, flight));
                    }
                    Next::Wait { until } => waiting.push((index, flight, until)),
                    Next::Done(outcome) => flown[index] = flight.landed(outcome),
                }
            }
            if !to_load.is_empty() {
                self.load_together(&mut to_load, &uncached, limit, &mut loader).await;
            } else if !waiting.is_empty() {
                to_load = self.wait_for_some(&mut waiting).await;
            }
            active = to_load;
        }
        flown
    }

    /// Waits until something is pushed about some of them, or until the first is to look again: then all look. Each by itself,
    /// they would find one after another that a process has died which had the leases of all, and load key by key.
    async fn wait_for_some<'f, K, E>(
        &self,
        waiting: &mut Vec<Waiting<'f, K, V, E, S>>,
    ) -> Vec<(usize, Flight<'f, K, V, E, S>)> {
        let until = waiting.iter().map(|(_, _, until)| *until).min().expect("some wait");
        let left = time_left(waiting[0].1.deadline());
        let sleep = until.saturating_sub(fill_time(self.now()));
        let mut sleep = self.config.timer.sleep(left.map_or(sleep, |left| left.min(sleep)));
        let (is_due, pushed) = poll_fn(|cx| {
            let is_due = sleep.as_mut().poll(cx).is_ready();
            let pushed: Vec<bool> = waiting.iter_mut().map(|(_, flight, _)| flight.poll_pushed(cx)).collect();
            if is_due || pushed.contains(&true) { Poll::Ready((is_due, pushed)) } else { Poll::Pending }
        })
        .await;
        let mut active = Vec::new();
        for ((index, mut flight, until), is_pushed) in std::mem::take(waiting).into_iter().zip(pushed) {
            if is_due && !is_pushed && flight.is_too_late() {
                // It gives up waiting.
                continue;
            }
            if is_due || is_pushed {
                flight.step(if is_pushed { Event::Woken } else { Event::Tick });
                active.push((index, flight));
            } else {
                waiting.push((index, flight, until));
            }
        }
        active
    }

    /// Those that are `uncached` load only if there is a turn for that, which fails none of the others.
    async fn load_together<K, E, F>(
        &self,
        flights: &mut Vec<(usize, Flight<'_, K, V, E, S>)>,
        uncached: &HashSet<usize>,
        limit: Option<Duration>,
        loader: &mut impl FnMut(Vec<usize>) -> F,
    ) where
        K: Hash,
        V: Clone,
        S: Store<K, V>,
        F: Future<Output = OfEach<V, E>>,
    {
        flights.iter_mut().for_each(|(_, flight)| flight.about_to_load());
        let run = async {
            let deadline = flights.first().and_then(|(_, flight)| flight.deadline());
            let turn = if uncached.is_empty() { Ok(None) } else { self.permit(deadline).await.map(Some) };
            let (_turn, refused) = match turn {
                Ok(turn) => (turn, None),
                Err(error) => (None, Some(error)),
            };
            let is_late = refused.is_some() && flights.iter().any(|(_, flight)| flight.is_too_late());
            let may_load = |index: &usize| refused.is_none() || !(is_late || uncached.contains(index));
            let keys: Vec<usize> = flights.iter().map(|(index, _)| *index).filter(may_load).collect();
            let (asked, begun) = (keys.len(), self.now());
            if asked == 0 {
                return (refused, begun, Vec::new(), begun, is_late);
            }
            let loading = async { Some(counted(loader(keys).await, asked)) };
            let load = flights.iter().filter(|(index, _)| may_load(index));
            let panics = || load.clone().for_each(|(_, flight)| flight.panics());
            let (loaded, ended) = self.run(limit, begun, true, loading, panics).await;
            (refused, begun, self.apart(loaded, asked), ended, is_late)
        };
        // Made before the loader runs, which for threads ends in its first poll.
        let renewals = all(flights.iter().filter_map(|(_, flight)| flight.renewals()));
        let (refused, begun, results, ended, is_late) = or(run, async {
            renewals.await;
            // There was none.
            pending().await
        })
        .await;
        // Whoever has no time left begins no load.
        if is_late {
            flights.drain(..).for_each(|(_, flight)| _ = flight.ends_late());
        }
        let mut results = results.into_iter();
        for (index, flight) in flights {
            let result = match &refused {
                Some(error) if uncached.contains(index) => Err(error.clone()),
                _ => results.next().expect("one for each that has loaded"),
            };
            flight.loads_from(begun);
            flight.loaded(Some(result), ended).await;
        }
    }
}
