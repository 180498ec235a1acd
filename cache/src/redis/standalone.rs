//! Leases without a cache: one way for threads and tasks.

use super::codec::{Bytes, Codec};
use super::error::Error;
use super::header::{Header, Keep, LENGTH};
use super::key::CacheKey;
use super::link::Link;
use super::name::Name;
use super::reply::Taken;
use super::steps::{Seen, Steps};
use crate::entry::Entry;
use crate::fill::{Epoch, Token};
use crate::lease::Publication;
use crate::nonce::nonce;
use crate::time::Time;
use crate::time_limit::{deadline, is_past, time_left};
use futures_lite::future::or;
use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Leases under one prefix.
pub(crate) struct Leases<L> {
    steps: Arc<Steps<L>>,
}

// Not derived, as that would ask it of the link.
impl<L> Clone for Leases<L> {
    fn clone(&self) -> Self {
        Self { steps: Arc::clone(&self.steps) }
    }
}

/// A lease that is held, or may be.
pub(crate) struct Held<L> {
    pub(crate) steps: Arc<Steps<L>>,
    pub(crate) name: Name,
    pub(crate) token: Token,
    epoch: Epoch,
    /// From then on another may have it.
    until: Option<Instant>,
    /// It has been given up, or lost for sure.
    pub(crate) is_over: bool,
}

/// So much longer than a lease its epoch is kept: who is late by less may still store what it has.
const GRACE: Duration = Duration::from_secs(60);

fn codec() -> u8 {
    Codec::<Vec<u8>>::id(&Bytes)
}

impl<L: Link> Leases<L> {
    pub(crate) fn new(steps: Steps<L>) -> Self {
        Self { steps: Arc::new(steps) }
    }

    pub(crate) fn link(&self) -> &L {
        self.steps.link()
    }

    /// One to be acquired.
    pub(crate) fn claim(&self, key: &(impl CacheKey + ?Sized)) -> Held<L> {
        let (steps, name) = (Arc::clone(&self.steps), self.steps.name(key));
        Held { steps, name, token: nonce(), epoch: 0, until: None, is_over: false }
    }

    /// What was stored last.
    pub(crate) async fn get(&self, key: &(impl CacheKey + ?Sized)) -> Result<Option<Vec<u8>>, Error> {
        let raw = self.steps.read(&mut self.steps.name(key)).await?;
        Ok(raw.and_then(|raw| Header::parse(codec(), &raw.bytes).map(|(_, value)| value.to_vec())))
    }
}

impl<L: Link> Held<L> {
    /// Whether it is held now. If not, and nothing failed, nothing has to be given up.
    pub(crate) async fn acquire(&mut self, ttl: Duration) -> Result<bool, Error> {
        // What counts is when it was asked for: when it was given cannot be known.
        let asked = Instant::now();
        let life = ttl.saturating_add(GRACE);
        let taken = self.steps.acquire(&mut self.name, self.token, ttl, life, Seen::Whatever).await;
        match taken {
            Ok(Taken::Leader(epoch)) => {
                self.epoch = epoch;
                self.until = asked.checked_add(ttl);
                Ok(true)
            }
            Ok(Taken::Held { .. }) => {
                self.is_over = true;
                Ok(false)
            }
            Ok(Taken::Filled(_) | Taken::Gone) => Err(Error::odd("a lease depends on a value")),
            Err(error) => {
                // It may be held all the same, and then is given up as if it were.
                self.is_over = !error.is_ambiguous();
                Err(error)
            }
        }
    }

    pub(crate) async fn renew(&mut self, ttl: Duration) -> Result<bool, Error> {
        let renewed_until = deadline(ttl);
        let life = ttl.saturating_add(GRACE);
        // If no answer comes, or nobody waits for it, it may end sooner than it did.
        let before = self.until;
        self.until = before.into_iter().chain(renewed_until).min();
        if self.steps.renew(&mut self.name, self.token, ttl, Some(life)).await? {
            self.until = renewed_until;
            Ok(true)
        } else {
            self.is_over = true;
            Ok(false)
        }
    }

    /// Renews it at once and then each third of `ttl`, until it is lost or `pause` says that it is enough.
    pub(crate) async fn keep<P: Future<Output = bool>>(&mut self, ttl: Duration, mut pause: impl FnMut(Duration) -> P) {
        let left = |until| time_left(until).unwrap_or(ttl);
        loop {
            // An answer is waited for no longer than it lasts. Without one it is asked for again, while there is time.
            let limit = left(self.until);
            let renewal = async { drop(self.renew(ttl).await) };
            or(renewal, async { _ = pause(limit).await }).await;
            let time = (ttl / 3).max(Duration::from_millis(1)).min(left(self.until));
            if self.is_lost() || !pause(time).await || self.is_lost() {
                return;
            }
        }
    }

    pub(crate) fn is_lost(&self) -> bool {
        self.is_over || is_past(self.until)
    }

    pub(crate) async fn store(&mut self, value: &[u8], life: Duration) -> Result<Publication, Error> {
        let (now, end) = (Time::START, Time::START.after(life));
        let (header, keep) = Header::of(&Entry::new((), fastrand::u32(..), now, end, end, Duration::ZERO), now);
        let mut bytes = Vec::with_capacity(LENGTH + value.len());
        if keep != Keep::Not {
            header.write(codec(), &mut bytes);
            bytes.extend_from_slice(value);
        }
        let done = self.steps.publish(&mut self.name, self.token, self.epoch, &bytes, keep).await;
        match &done {
            Ok(Publication::Stored) => self.is_over = true,
            Err(error) if error.is_ambiguous() => {}
            // The lease may be there still: of a key that was written since, whose epoch was lost, or that there is no room for. If
            // this fails, it expires.
            _ => drop(self.release().await),
        }
        done
    }

    pub(crate) async fn release(&mut self) -> Result<bool, Error> {
        let released = self.steps.release(&mut self.name, self.token).await?;
        self.is_over = true;
        Ok(released)
    }
}
