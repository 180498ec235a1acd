//! For threads: a few connections that are used by turns.

mod pool;

pub(super) use pool::Pool;

use super::subscriber::Subscriber;
use super::{Limits, Link};
use crate::redis::error::Error;
use crate::redis::push::Pushes;
use redis::{Client, Pipeline, Value};
use std::fmt;
use std::sync::Arc;

/// A pool of connections, one for each thread that sends at the same time, up to a limit; and one more for what is pushed.
///
/// A connection goes back into the pool only when all replies of an exchange have been read. After any error it is dropped: so
/// no reply is ever left for the next. That includes a read that a signal has interrupted, as happens when the process is
/// stopped and goes on: whether the reply would still come is not known, so it is as if the time were up.
pub(crate) struct BlockingLink {
    pool: Arc<Pool>,
    subscriber: Arc<Subscriber>,
    pushes: Arc<Pushes>,
}

impl BlockingLink {
    /// Connects when the first command is sent, so it works with a server that is away at first.
    pub(crate) fn new(client: Client, limits: Limits, own: u64) -> Self {
        let pool = Arc::new(Pool::new(client, limits.positive()));
        let pushes = Pushes::new(own);
        let subscriber = Arc::new(Subscriber::new(Arc::clone(&pool)));
        let (asked, weak) = (Arc::clone(&subscriber), Arc::downgrade(&pushes));
        pushes.on_wanted(move || asked.wake(&weak));
        Self { pool, subscriber, pushes }
    }

    #[cfg(test)]
    pub(super) fn open(url: &str, limits: Limits, own: u64) -> Result<Self, Error> {
        Ok(Self::new(Client::open(url)?, limits, own))
    }
}

impl Link for BlockingLink {
    async fn send(&self, commands: Pipeline) -> Result<Vec<Value>, Error> {
        self.pool.exchange(&commands)
    }

    /// At once. No server that is reached like this needs hints apart.
    fn hint(&self, commands: Pipeline) {
        let _ = self.pool.exchange(&commands);
    }

    fn pushes(&self) -> &Arc<Pushes> {
        &self.pushes
    }
}

impl Drop for BlockingLink {
    /// Does not wait for the thread of the pushes, which ends within a second or two.
    fn drop(&mut self) {
        self.subscriber.end();
    }
}

impl fmt::Debug for BlockingLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BlockingLink")
            .field("address", self.pool.client.get_connection_info().addr())
            .field("limits", &self.pool.limits)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
impl BlockingLink {
    /// As if the idle connections had been idle for so much longer.
    pub(super) fn age(&self, by: std::time::Duration) {
        self.pool.age(by);
    }

    /// What its thread holds on to.
    pub(super) fn thread(&self) -> std::sync::Weak<Subscriber> {
        Arc::downgrade(&self.subscriber)
    }
}
