//! Calls with several keys.

use super::AsyncGroup;
use super::mapped::Mapped;
use super::place::{Arrival, Place};
use crate::error::{CallError, one_error_for_all};
use crate::group::{
    Aftermath, Batch, Entered, Entrant, Group, Leading, Leads, Newcomer, Polling, in_order, land_all, missing, own,
    refuse_length,
};
use crate::primitive::{ThreadNumber, catch_panic, resume_panic};
use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::future::{Future, poll_fn};
use core::hash::{BuildHasher, Hash};
use core::mem;
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use hashbrown::Equivalent;

impl<K, V, S: BuildHasher> AsyncGroup<K, V, S> {
    /// A call with several keys: `work` gets those that are not in flight and makes a future of their values, in the same
    /// order. The others are awaited. Returns a value for each key, in the order of `keys`; keys may stand there more than
    /// once.
    ///
    /// Each key has a flight of its own, so that single calls and overlapping batches share it. This caller's own keys land
    /// as soon as its work has ended, whatever it still waits for, so batches that overlap, in whatever order, never wait for
    /// each other in a circle. If the leader of a key leaves without a value, `work` is called again with the keys that this
    /// caller takes over.
    ///
    /// The work runs inside the caller's own future, with the hazard of [`do_call_inline`](Self::do_call_inline). The group's
    /// defaults apply to each key, except `detach`. Nothing happens before the first poll. Each poll looks at all keys that are
    /// still waited for, so thousands of keys that others lead, and that land one by one, cost the square of their number.
    ///
    /// # Cancel safety
    ///
    /// It may be dropped at any time. The keys that it led are taken over by their followers, with their own work.
    ///
    /// # Panics
    ///
    /// If `work` or its future panics, with that panic, or returns another number of values than it was given keys: its keys
    /// are free then, and followers take over. If it is awaited inside the work of one of the keys (with `std`). If code of
    /// a key or a value panics.
    ///
    /// # Memory
    ///
    /// What a work wrote before it ended is visible to every caller that gets its value.
    ///
    /// # Examples
    ///
    /// ```
    /// # smol::block_on(async {
    /// let group: oneflight::AsyncGroup<u32, String> = oneflight::AsyncGroup::new();
    /// let load = async |ids: Vec<&u32>| -> Vec<String> { ids.iter().map(|id| format!("user {id}")).collect() };
    /// let names = group.do_many(&[3, 1, 3], |missing| load(missing)).await;
    /// assert_eq!(names, ["user 3", "user 1", "user 3"]);
    /// # });
    /// ```
    pub async fn do_many<'q, Q, W, F>(&self, keys: impl IntoIterator<Item = &'q Q>, work: W) -> Vec<V>
    where
        Q: Hash + Eq + Equivalent<K> + ToOwned<Owned = K> + ?Sized + 'q,
        V: Clone,
        W: FnMut(Vec<&'q Q>) -> F,
        F: Future<Output = Vec<V>>,
    {
        self.run_many(keys, work).await.unwrap_or_else(|error| error.refuse())
    }

    /// [`do_many`](Self::do_many) with an error in place of a panic if it is awaited inside the work of one of the keys.
    ///
    /// # Cancel safety
    ///
    /// As `do_many`.
    ///
    /// # Errors
    ///
    /// [`CallError::Reentrant`]: it was awaited inside the work of one of the keys (with `std`). The keys that it led are taken
    /// over by their followers.
    ///
    /// # Panics
    ///
    /// If `work` or its future panics, or returns another number of values than it was given keys, as with `do_many`. If code
    /// of a key or a value panics.
    ///
    /// # Memory
    ///
    /// What a work wrote before it ended is visible to every caller that gets its value.
    ///
    /// # Examples
    ///
    /// ```
    /// use oneflight::{AsyncGroup, CallError};
    /// use std::sync::Arc;
    ///
    /// # smol::block_on(async {
    /// let group = Arc::new(AsyncGroup::<u32, bool>::new());
    /// let inner = Arc::clone(&group);
    /// let is_refused = group.do_call(&1, || async move {
    ///     let inside = inner.run_many(&[1, 2], |missing| async move { vec![true; missing.len()] });
    ///     inside.await == Err(CallError::Reentrant)
    /// });
    /// assert!(is_refused.await);
    /// # });
    /// ```
    pub async fn run_many<'q, Q, W, F>(
        &self,
        keys: impl IntoIterator<Item = &'q Q>,
        mut work: W,
    ) -> Result<Vec<V>, CallError>
    where
        Q: Hash + Eq + Equivalent<K> + ToOwned<Owned = K> + ?Sized + 'q,
        V: Clone,
        W: FnMut(Vec<&'q Q>) -> F,
        F: Future<Output = Vec<V>>,
    {
        let group = &*self.group;
        let on_abandon = group.defaults.on_abandon;
        let next = ThreadNumber::of_work();
        let entered = group.enter_many(
            next,
            keys,
            |slot, shared, seat| shared.tasks.insert(slot, on_abandon, seat),
            |group, id, task| Place::waiting(group, id, task, on_abandon),
        );
        let Batch { order, keys, leads, waits } = entered?;
        let values = keys.iter().map(|_| None).collect();
        let mut batch = Running { group, keys, next, led: leads, waits, running: Vec::new(), values, failed: None };
        poll_fn(|cx| batch.poll(cx, &mut work)).await;
        let (failed, values) = (batch.failed.take(), mem::take(&mut batch.values));
        // If it has failed, it may still lead keys, which the destructor of the work may call.
        drop(batch);
        // Before there is a result, which would leak if the destructor panicked at the end of this function.
        drop(work);
        match failed {
            None => Ok(in_order(&order, values)),
            Some(error) => Err(error),
        }
    }
}

impl<K, T, E, S: BuildHasher> AsyncGroup<K, Result<T, Arc<E>>, S> {
    /// [`do_many`](Self::do_many) for work that may fail: its error is that of each key that it was given, in one `Arc`, so
    /// that it need not be `Clone`. Keys that others lead have what those came to. Named for `Result`; it does wait.
    ///
    /// # Cancel safety
    ///
    /// As `do_many`.
    ///
    /// # Errors
    ///
    /// For each key, the error of the work that had it, whoever's it was.
    ///
    /// # Panics
    ///
    /// As [`do_many`](Self::do_many).
    ///
    /// # Memory
    ///
    /// What a work wrote before it ended is visible to every caller that gets its value or its error.
    ///
    /// # Examples
    ///
    /// ```
    /// use oneflight::AsyncGroup;
    /// use std::sync::Arc;
    ///
    /// # smol::block_on(async {
    /// let group: AsyncGroup<u32, Result<u32, Arc<String>>> = AsyncGroup::new();
    /// let load = async |ids: Vec<&u32>| Ok(ids.into_iter().map(|id| id * id).collect());
    /// assert_eq!(group.try_do_many(&[2, 3], |missing| load(missing)).await, [Ok(4), Ok(9)]);
    /// let failed = group.try_do_many(&[2, 3], |_| async { Err("the database is away".to_owned()) }).await;
    /// assert!(failed.iter().all(Result::is_err));
    /// # });
    /// ```
    pub async fn try_do_many<'q, Q, W, F>(
        &self,
        keys: impl IntoIterator<Item = &'q Q>,
        mut work: W,
    ) -> Vec<Result<T, Arc<E>>>
    where
        Q: Hash + Eq + Equivalent<K> + ToOwned<Owned = K> + ?Sized + 'q,
        T: Clone,
        W: FnMut(Vec<&'q Q>) -> F,
        F: Future<Output = Result<Vec<T>, E>>,
    {
        let load = move |missing: Vec<&'q Q>| {
            let count = missing.len();
            let loaded = work(missing);
            Mapped::new(loaded, move |loaded| one_error_for_all(loaded, count))
        };
        self.do_many(keys, load).await
    }
}

/// A batch under way. When it is dropped, or its work panics, all its flights are left before anything of the user's is dropped, which
/// may call any of its keys.
struct Running<'g, 'q, Q: ?Sized, K, V, S, F> {
    group: &'g Group<K, V, S>,
    keys: Vec<&'q Q>,
    /// The number under which the next run of the work leads its keys, if it has one yet.
    next: Option<ThreadNumber>,
    /// The keys of the next run, whose work is still to be made.
    led: Leads<'g, K, V, S>,
    waits: Vec<(usize, Place<&'g Group<K, V, S>, K, V, S>)>,
    /// Polled where it is: if a run panics, the leads of the others are dropped before it is.
    running: Vec<Load<'g, K, V, S, F>>,
    values: Vec<Option<V>>,
    failed: Option<CallError>,
}

/// One run of the work.
struct Load<'g, K, V, S, F> {
    leads: Leads<'g, K, V, S>,
    /// Stands with each of its keys, for good. A call of one of them from inside the work is told by it, on whichever thread;
    /// a call from elsewhere, be it from another run of the same batch, just waits.
    number: Option<ThreadNumber>,
    future: Pin<Box<F>>,
}

impl<'g, 'q, Q, K, V, S, F> Running<'g, 'q, Q, K, V, S, F>
where
    Q: Hash + Eq + Equivalent<K> + ToOwned<Owned = K> + ?Sized,
    V: Clone,
    S: BuildHasher,
    F: Future<Output = Vec<V>>,
{
    fn poll(&mut self, cx: &mut Context<'_>, work: &mut impl FnMut(Vec<&'q Q>) -> F) -> Poll<()> {
        self.make_load(work);
        let mut index = 0;
        while index < self.running.len() {
            index += usize::from(self.poll_load(index, cx).is_pending());
        }
        self.poll_places(cx);
        if self.failed.is_some() {
            return Poll::Ready(());
        }
        // That of the keys that were taken over just now. All the rest has been polled, and is not polled twice.
        if self.make_load(work) {
            let _ = self.poll_load(self.running.len() - 1, cx);
        }
        if self.running.is_empty() && self.waits.is_empty() { Poll::Ready(()) } else { Poll::Pending }
    }

    /// Makes the work of the keys of the next run, if there are any.
    fn make_load(&mut self, work: &mut impl FnMut(Vec<&'q Q>) -> F) -> bool {
        if self.led.is_empty() {
            return false;
        }
        let number = self.next.take();
        let polling = Polling::begin(number);
        let future = Box::pin(work(missing(&self.keys, &self.led)));
        drop(polling);
        let leads = mem::replace(&mut self.led, Leads::none());
        self.running.push(Load { leads, number, future });
        true
    }

    /// Lands the keys of a run that has ended, and takes it out.
    fn poll_load(&mut self, index: usize, cx: &mut Context<'_>) -> Poll<()> {
        let load = &mut self.running[index];
        let polling = Polling::begin(load.number);
        let polled = load.future.as_mut().poll(cx);
        // Landing wakes followers, and none of them runs inside the work.
        drop(polling);
        let loaded = ready!(polled);
        let (asked, got) = (load.leads.len(), loaded.len());
        if asked != got {
            self.leave_all();
            refuse_length(asked, got);
        }
        let leads = mem::replace(&mut load.leads, Leads::none());
        land_all(self.group, load.number, leads, loaded, &mut self.values);
        drop(self.running.remove(index));
        Poll::Ready(())
    }

    /// Every place is polled each time: one that is not could be the one that its flight counts on.
    fn poll_places(&mut self, cx: &mut Context<'_>) {
        let Self { group, next, led, waits, values, failed, .. } = self;
        let mut left = Vec::new();
        // Where they are: if one panics, the others are left with all the rest.
        waits.retain_mut(|(index, place)| {
            let index = *index;
            let Poll::Ready(arrival) = place.poll(cx) else { return true };
            match arrival {
                Arrival::Landed(value, _) => values[index] = Some(own(value)),
                Arrival::Own(value, _) => values[index] = Some(value),
                Arrival::TookOver { attempt, waker } => {
                    let leading = Leading::new(group, place.id(), attempt, group.defaults.max_attempts);
                    let leading = led.push(index, leading);
                    drop(waker);
                    // Other places are polled before its work is: what they run is not inside that work.
                    leading.note_leader(number_of_next(next));
                }
                Arrival::Failed(CallError::Abandoned) => left.push(index),
                Arrival::Failed(error) => *failed = Some(error),
                Arrival::Panicked(payload) => resume_panic(payload),
            }
            false
        });
        left.into_iter().for_each(|index| self.enter_again(index, cx));
    }

    fn enter_again(&mut self, index: usize, cx: &mut Context<'_>) {
        let key = self.keys[index];
        let on_abandon = self.group.defaults.on_abandon;
        let max_attempts = self.group.defaults.max_attempts;
        let newcomer = Newcomer { on_abandon, max_attempts };
        let me = number_of_next(&mut self.next);
        let polling = Polling::begin(me);
        let entered = self.group.enter_as(
            Entrant { me, hash: self.group.table.hash(key) },
            key,
            || key.to_owned(),
            newcomer,
            |slot, shared, seat| shared.tasks.insert(slot, on_abandon, seat),
            |group, id, task| Place::waiting(group, id, task, on_abandon),
        );
        drop(polling);
        match entered {
            Entered::Lead(leading) => _ = self.led.push(index, leading),
            Entered::Wait(place) => {
                self.waits.push((index, place));
                // It has not left its waker there yet.
                cx.waker().wake_by_ref();
            }
            Entered::Reentrant => self.failed = Some(CallError::Reentrant),
        }
    }
}

fn number_of_next(next: &mut Option<ThreadNumber>) -> Option<ThreadNumber> {
    *next = next.or_else(ThreadNumber::of_work);
    *next
}

impl<Q: ?Sized, K, V, S, F> Running<'_, '_, Q, K, V, S, F> {
    fn leave_all(&mut self) {
        let mut aftermath = Aftermath::nothing();
        self.led.abandon_into(&mut aftermath);
        self.running.iter_mut().for_each(|load| load.leads.abandon_into(&mut aftermath));
        let waits = self.waits.iter_mut().map(|(_, place)| place);
        let detached: Vec<_> = waits.filter_map(|place| Some((place.leave_into(&mut aftermath)?, &*place))).collect();
        // Before the spawners, one of which may run all the work where it is.
        let woken = catch_panic(|| aftermath.send_wakes());
        detached.into_iter().for_each(|(detach, place)| place.go_on_detached(detach));
        if let Err(payload) = woken {
            resume_panic(payload);
        }
    }
}

impl<Q: ?Sized, K, V, S, F> Drop for Running<'_, '_, Q, K, V, S, F> {
    fn drop(&mut self) {
        self.leave_all();
    }
}

#[cfg(all(test, feature = "std", not(loom)))]
mod tests {
    use crate::AsyncGroup;
    use alloc::vec::Vec;
    use core::cell::RefCell;
    use core::future::{Future, poll_fn};
    use core::pin::pin;
    use core::task::{Context, Poll, Waker};

    /// What a poll costs does not depend on how many keys the batch leads.
    #[test]
    fn who_leads_a_key_is_written_down_once_however_often_its_batch_is_polled() {
        let group: AsyncGroup<u32, u32> = AsyncGroup::new();
        let noted = RefCell::new(Vec::new());
        let note = || {
            let leader = |key: u32| group.group.table.peek(&key, |entry, _| entry.and_then(|entry| entry.leader));
            noted.borrow_mut().extend([1, 2].map(leader));
        };
        let work = |_| {
            let mut polls = 0;
            poll_fn(move |_| {
                note();
                polls += 1;
                if polls < 3 { Poll::Pending } else { Poll::Ready(Vec::from([1, 2])) }
            })
        };
        let mut batch = pin!(group.run_many(&[1, 2], work));
        let mut poll = || batch.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        while poll().is_pending() {
            note();
        }
        let noted = noted.borrow();
        assert_eq!(noted.len(), 2 * (3 + 2));
        assert!(noted[0].is_some() && noted.iter().all(|leader| *leader == noted[0]), "{noted:?}");
    }
}
