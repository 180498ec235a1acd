//! Batches: which keys of a call with several are to be loaded, and which are in flight already.

use super::leads::{Aftermath, Leads};
use super::{Entered, Entrant, Group, Newcomer, Shared, Slot, own};
use crate::call::Defaults;
use crate::error::CallError;
use crate::flight::Seat;
use crate::primitive::{Arc, GoingBy, ThreadNumber, for_all};
use crate::table::FlightId;
use alloc::borrow::ToOwned;
use alloc::vec::Vec;
use core::hash::{BuildHasher, Hash};
use hashbrown::{Equivalent, HashTable};

/// The distinct keys of a batch, each led or waited for by a `W`.
pub(crate) struct Batch<'g, 'q, Q: ?Sized, K, V, S, W> {
    /// Which of the distinct keys each key of the caller's is.
    pub(crate) order: Vec<usize>,
    pub(crate) keys: Vec<&'q Q>,
    /// Before the places of those who wait: if the batch comes to nothing, these are left first.
    pub(crate) leads: Leads<'g, K, V, S>,
    pub(crate) waits: Vec<(usize, W)>,
}

impl<K, V, S: BuildHasher> Group<K, V, S> {
    /// Enters the table with every distinct key, as `me`. `wait` makes a waiter of a seat, in two steps: under the locks and
    /// outside.
    pub(crate) fn enter_many<'g, 'q, Q, T, W>(
        &'g self,
        me: Option<ThreadNumber>,
        keys: impl IntoIterator<Item = &'q Q>,
        mut sit: impl FnMut(&Arc<Slot<V>>, &mut Shared<V>, Seat) -> T,
        mut wait: impl FnMut(&'g Self, FlightId, T) -> W,
    ) -> Result<Batch<'g, 'q, Q, K, V, S, W>, CallError>
    where
        Q: Hash + Eq + Equivalent<K> + ToOwned<Owned = K> + ?Sized + 'q,
    {
        let mut batch = Batch { order: Vec::new(), keys: Vec::new(), leads: Leads::none(), waits: Vec::new() };
        let (mut hashes, mut known) = (Vec::new(), HashTable::new());
        for key in keys {
            let hash = self.table.hash(key);
            let found = known.find(hash.bits(), |&index| batch.keys[index] == key).copied();
            batch.order.push(found.unwrap_or(batch.keys.len()));
            if found.is_none() {
                hashes.push(hash);
                known.insert_unique(hash.bits(), batch.keys.len(), |&index| hashes[index].bits());
                batch.keys.push(key);
            }
        }
        let Defaults { on_abandon, max_attempts, .. } = self.defaults;
        let newcomer = Newcomer { on_abandon, max_attempts };
        // Younger than the leads, so ended before they are dropped: that wakes followers, and none of them runs inside here.
        let _polling = Polling::begin(me);
        for (index, (&key, hash)) in batch.keys.iter().zip(hashes).enumerate() {
            match self.enter_as(Entrant { me, hash }, key, || key.to_owned(), newcomer, &mut sit, &mut wait) {
                Entered::Lead(leading) => _ = batch.leads.push(index, leading),
                Entered::Wait(waiter) => batch.waits.push((index, waiter)),
                Entered::Reentrant => return Err(CallError::Reentrant),
            }
        }
        Ok(batch)
    }
}

/// Until it is dropped, this thread is inside a work that has a number of its own, or that is run by the thread's.
#[must_use = "it ends when this is dropped"]
pub(crate) struct Polling {
    _going_by: GoingBy,
    #[cfg(all(feature = "deadlock-detection", not(loom)))]
    _noted: crate::deadlock::Polled,
}

impl Polling {
    /// `me`: the number under which the work leads its key, or its keys.
    pub(crate) fn begin(me: Option<ThreadNumber>) -> Self {
        Self {
            _going_by: ThreadNumber::go_by(me),
            #[cfg(all(feature = "deadlock-detection", not(loom)))]
            _noted: crate::deadlock::begin_poll(me),
        }
    }
}

/// The keys that a batch leads.
pub(crate) fn missing<'q, Q: ?Sized, K, V, S>(keys: &[&'q Q], leads: &Leads<'_, K, V, S>) -> Vec<&'q Q> {
    leads.indices().map(|index| keys[index]).collect()
}

/// Lands each lead of `me` with its value; the values stay with the batch. A `Vec` of the wrong length abandons them all. If
/// code of a value, a key or a waiter panics, that concerns no other key: the panic goes on when all have landed.
///
/// Of the user's, only the predicate and wakers run before that: whatever is cloned or dropped may call any of the keys.
#[track_caller]
pub(crate) fn land_all<K, V: Clone, S>(
    group: &Group<K, V, S>,
    me: Option<ThreadNumber>,
    leads: Leads<'_, K, V, S>,
    loaded: Vec<V>,
    values: &mut [Option<V>],
) {
    let (asked, got) = (leads.len(), loaded.len());
    if asked != got {
        drop(leads);
        refuse_length(asked, got);
    }
    let shares = |value: &V| {
        // It belongs to the work; who is woken does not.
        let _polling = group.defaults.share_if.is_some().then(|| Polling::begin(me));
        group.defaults.shares(value)
    };
    leads.indices().zip(loaded).for_each(|(index, value)| values[index] = Some(value));
    let mut shared = Vec::new();
    let mut aftermath = Aftermath::nothing();
    for_all(leads.into_each(), |(index, leading)| {
        if let Some((value, landed)) = leading.finish_into(&mut values[index], shares, &mut aftermath) {
            shared.push((index, value));
            // At once: who calls the next key from where it is woken shares its value as well.
            landed.send();
        }
    });
    drop(aftermath);
    for_all(shared.into_iter(), |(index, value)| values[index] = Some(own(value)));
}

#[track_caller]
pub(crate) fn refuse_length(asked: usize, got: usize) -> ! {
    panic!(
        "oneflight: the work of do_many was asked for {asked} keys and returned {got} values: it must return one for each"
    );
}

/// The values in the order of the caller's keys: moved where a key stands for the last time, cloned before.
pub(crate) fn in_order<V: Clone>(order: &[usize], mut values: Vec<Option<V>>) -> Vec<V> {
    let mut uses = alloc::vec![0_usize; values.len()];
    order.iter().for_each(|&index| uses[index] += 1);
    let value = |&index: &usize| {
        uses[index] -= 1;
        let value = if uses[index] == 0 { values[index].take() } else { values[index].clone() };
        value.expect("every key of a batch has its value")
    };
    order.iter().map(value).collect()
}
