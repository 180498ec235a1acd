//! What a read does with what it has found, and what it makes of what comes of that: the same for tasks, threads and batches.

use crate::config::Verdict;
use crate::entry::{Entry, Fetched, Source};
use crate::error::Error;
use crate::inner::{Flown, Inner, Landed, Leave, Seen, Why};
use crate::loads::{Calling, KeyHash};
use crate::stats::Count;
use crate::time::Time;
use oneflight::Role;

pub(crate) enum Plan<V> {
    /// It has its value.
    Serve(Fetched<V>),
    /// It is to refresh the entry, which is served as `source` meanwhile, and if that comes to nothing.
    Refresh { entry: Entry<V>, source: Source, leave: Leave },
    /// It loads, or joins. There may be a value that is too old, which may be served `instead` if that fails.
    Load { seen: Option<Seen>, instead: Option<Entry<V>> },
}

impl<V, S> Inner<V, S> {
    pub(crate) fn plan(&self, found: Option<Entry<V>>, now: Time, hash: impl Fn() -> KeyHash) -> Plan<V> {
        let Some(entry) = found else { return self.missed(None, None) };
        let verdict = self.config.judge(&entry, now);
        let (plain, refreshed) = match verdict {
            Verdict::Calm | Verdict::Fresh => (Source::Hit, Source::Early),
            Verdict::Stale => (Source::Stale, Source::Stale),
            Verdict::IfError if self.loads.may_try(hash(), now) => {
                let seen = Seen { version: entry.version(), is_usable: true };
                return self.missed(Some(seen), Some(entry));
            }
            Verdict::IfError => return Plan::Serve(self.fetched(entry, Source::Stale, now)),
            Verdict::Gone => {
                let seen = Seen { version: entry.version(), is_usable: false };
                return self.missed(Some(seen), None);
            }
        };
        match self.leave_to_refresh(&entry, verdict, now, hash) {
            None => Plan::Serve(self.fetched(entry, plain, now)),
            Some(leave) => Plan::Refresh { entry, source: refreshed, leave },
        }
    }

    /// A caller has found nothing, and has no more time.
    pub(crate) fn missed_in_time(&self) {
        self.counters.add(Count::Misses);
    }

    fn missed(&self, seen: Option<Seen>, instead: Option<Entry<V>>) -> Plan<V> {
        self.counters.add(Count::Misses);
        Plan::Load { seen, instead }
    }

    /// The value of an entry, for a caller that only looks, if it may be served.
    #[inline]
    pub(crate) fn served(&self, found: Option<Entry<V>>, now: Time) -> Option<Fetched<V>> {
        let served = found.and_then(|entry| match self.config.judge(&entry, now) {
            Verdict::Calm | Verdict::Fresh => Some(self.fetched(entry, Source::Hit, now)),
            Verdict::Stale => Some(self.fetched(entry, Source::Stale, now)),
            Verdict::IfError | Verdict::Gone => None,
        });
        if served.is_none() {
            self.counters.add(Count::Misses);
        }
        served
    }

    /// The value of an entry, for a caller.
    #[inline]
    pub(crate) fn fetched(&self, entry: Entry<V>, source: Source, now: Time) -> Fetched<V> {
        self.count(source);
        let age = now.since(entry.loaded_at());
        Fetched { value: entry.value, source, age }
    }

    /// What a flight has come to, for a caller that had this role in it. `None`: nothing that it called for, so it goes on.
    pub(crate) fn outcome<E>(&self, flown: Flown<V, E>, why: Why, role: Role) -> Option<Result<Fetched<V>, Error<E>>> {
        match flown? {
            Err(error) => {
                if role == Role::Followed {
                    self.counters.add(Count::Joins);
                }
                Some(Err(error))
            }
            // It wanted one that is loaded, and has joined a flight that looked first.
            Ok(landed) if why == Why::Asked && role == Role::Followed && landed.source == Source::Hit => None,
            Ok(landed) => Some(Ok(self.landed(landed, role))),
        }
    }

    /// The value of a flight, for a caller that had this role in it. If the load was its own, it goes on with the panic of the
    /// value's `Clone`.
    pub(crate) fn landed(&self, landed: Landed<V>, role: Role) -> Fetched<V> {
        if role == Role::Followed {
            return self.arrived(landed, Source::Joined);
        }
        if let Some(panicked) = &landed.panicked {
            panicked.resume();
        }
        let source = landed.source;
        self.arrived(landed, source)
    }

    fn arrived(&self, landed: Landed<V>, source: Source) -> Fetched<V> {
        // A value that was there in the end has been missed before.
        if source != Source::Hit {
            self.count(source);
        }
        Fetched { value: landed.value, source, age: landed.age }
    }

    /// The value of a refresh, for the caller that did it; the old one if it came to nothing.
    pub(crate) fn refreshed(&self, landed: Option<Landed<V>>, entry: Entry<V>, source: Source) -> Fetched<V> {
        match landed {
            Some(landed) => self.arrived(landed, source),
            // It has become older meanwhile.
            None => self.fetched(entry, source, self.now()),
        }
    }

    /// What a caller gets whose load or wait has ended so.
    pub(crate) fn ended<E>(
        &self,
        loaded: Result<Fetched<V>, Error<E>>,
        instead: Option<Entry<V>>,
    ) -> Result<Fetched<V>, Error<E>> {
        match (loaded, instead) {
            // A mistake of the program, which an old value would hide.
            (Err(Error::Reentrant), _) => Err(Error::Reentrant),
            // It has become older meanwhile.
            (Err(_), Some(entry)) => Ok(self.fetched(entry, Source::Stale, self.now())),
            (loaded, _) => loaded,
        }
    }

    #[inline]
    fn count(&self, source: Source) {
        match source {
            Source::Hit => self.counters.add(Count::Hits),
            Source::Early => self.counters.add(Count::Early),
            Source::Stale => self.counters.add(Count::Stale),
            Source::Joined => self.counters.add(Count::Joins),
            // Counted when it began.
            Source::Loaded => {}
        }
    }

    /// One more caller waits for the key, or loads it, unless there are too many.
    pub(crate) fn call<E>(&self, hash: impl FnOnce() -> KeyHash) -> Result<Option<Calling<'_>>, Error<E>> {
        let Some(max) = self.config.max_waiters else { return Ok(None) };
        let calling = self.loads.call(hash(), max);
        if calling.is_none() {
            self.counters.add(Count::Overloaded);
            return Err(Error::Overloaded);
        }
        Ok(calling)
    }
}
