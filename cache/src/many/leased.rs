//! Several keys of a store with leases, loaded together.

use crate::fill;
use crate::inner::{Flight, Flown, Inner, Next, Side, Why};
use crate::store::Store;
use std::future::{Future, poll_fn};
use std::hash::Hash;
use std::task::Poll;
use std::time::Duration;

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
        F: Future<Output = Result<Vec<V>, E>>,
    {
        let begin = |(key, why): &'k (K, Why)| Flight::new(self, key, *why, self.begin(key), side(key));
        let mut flights: Vec<_> = keys.iter().map(begin).enumerate().collect();
        let mut flown: Vec<Flown<V, E>> = keys.iter().map(|_| None).collect();
        while !flights.is_empty() {
            let nexts = all(flights.iter_mut().map(|(_, flight)| flight.go_on())).await;
            let (mut to_load, mut waiting, mut uncached) = (Vec::new(), Vec::new(), false);
            for ((index, flight), next) in flights.into_iter().zip(nexts) {
                match next {
                    Next::Load { uncached: is_uncached } => {
                        uncached |= is_uncached;
                        to_load.push((index, flight));
                    }
                    Next::Wait { until } => waiting.push((index, flight, until)),
                    Next::Done(outcome) => flown[index] = flight.landed(outcome),
                }
            }
            if !to_load.is_empty() {
                self.load_together(&mut to_load, uncached, limit, &mut loader).await;
            } else if !waiting.is_empty() {
                wait_for_any(&mut waiting).await;
            }
            flights = to_load;
            flights.extend(waiting.into_iter().map(|(index, flight, _)| (index, flight)));
        }
        flown
    }

    async fn load_together<K, E, F>(
        &self,
        flights: &mut [(usize, Flight<'_, K, V, E, S>)],
        uncached: bool,
        limit: Option<Duration>,
        loader: &mut impl FnMut(Vec<usize>) -> F,
    ) where
        K: Hash,
        V: Clone,
        S: Store<K, V>,
        F: Future<Output = Result<Vec<V>, E>>,
    {
        let begun = flights.iter_mut().map(|(_, flight)| flight.now_loading()).last().expect("there are some");
        let loading = async { Some(loader(flights.iter().map(|(index, _)| *index).collect()).await) };
        let run = async {
            let _permit = match uncached {
                false => None,
                true => match self.permit(None).await {
                    Ok(permit) => Some(permit),
                    Err(error) => return (Some(Err(error)), self.now()),
                },
            };
            self.run(limit, begun, Some(loading)).await
        };
        let renewals = all(flights.iter().filter_map(|(_, flight)| flight.renewals()));
        let (result, ended) = futures_lite::future::or(run, async {
            renewals.await;
            // There was none.
            std::future::pending().await
        })
        .await;
        match result {
            Some(Ok(values)) => {
                let (got, asked) = (values.len(), flights.len());
                assert!(got == asked, "the loader returned {got} values for {asked} keys");
                for ((_, flight), value) in flights.iter_mut().zip(values) {
                    flight.loaded(Some(Ok(value)), ended).await;
                }
            }
            failed => {
                let error = failed.and_then(Result::err);
                for (_, flight) in flights {
                    flight.loaded(error.clone().map(Err), ended).await;
                }
            }
        }
    }
}

/// Until one of them has something to do.
async fn wait_for_any<K, V, E, S>(flights: &mut [(usize, Flight<'_, K, V, E, S>, fill::Time)]) {
    let mut waits: Vec<_> = flights.iter_mut().map(|(_, flight, until)| Box::pin(flight.wait(*until))).collect();
    let (woken, event) = poll_fn(|cx| {
        for (index, wait) in waits.iter_mut().enumerate() {
            if let Poll::Ready(event) = wait.as_mut().poll(cx) {
                return Poll::Ready((index, event));
            }
        }
        Poll::Pending
    })
    .await;
    drop(waits);
    flights[woken].1.step(event);
}

/// All of them at once.
pub(crate) async fn all<F: Future>(futures: impl Iterator<Item = F>) -> Vec<F::Output> {
    let mut futures: Vec<_> = futures.map(|future| (Box::pin(future), None)).collect();
    poll_fn(|cx| {
        let mut is_ready = true;
        for (future, output) in &mut futures {
            if output.is_none() {
                match future.as_mut().poll(cx) {
                    Poll::Ready(value) => *output = Some(value),
                    Poll::Pending => is_ready = false,
                }
            }
        }
        if is_ready { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    futures.into_iter().filter_map(|(_, output)| output).collect()
}
