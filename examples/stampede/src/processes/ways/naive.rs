//! The lock that most texts show: `SET NX EX`, poll, load, `SET`, `DEL`.
//!
//! The lock has no owner, and is not looked at before the value is stored. So a holder that comes late stores an old value
//! over a newer one and deletes another's lock. And if the holder dies, all wait until the lock ends by itself.

use alloc::sync::Arc;
use core::time::Duration;
use std::thread;

use oneflight_cache::BoxError;

use super::{Caller, Plain, Way};
use crate::processes::loader::Loader;
use crate::processes::protocol::Moment;

/// The time between two looks of one who waits.
const POLL: Duration = Duration::from_millis(50);

/// A cache with a lock beside it.
pub(crate) struct Locked {
    plain: Plain,
    loader: Arc<Loader>,
}

struct Visitor {
    plain: Plain,
    connection: redis::Connection,
    loader: Arc<Loader>,
}

impl Locked {
    pub(super) fn new(plain: Plain, loader: Arc<Loader>) -> Self {
        Self { plain, loader }
    }
}

impl Way for Locked {
    fn caller(&self) -> Result<Box<dyn Caller>, BoxError> {
        let (plain, loader) = (self.plain.clone(), Arc::clone(&self.loader));
        Ok(Box::new(Visitor { connection: plain.connect()?, plain, loader }))
    }

    fn stored(&self) -> Result<Option<String>, BoxError> {
        self.plain.read(&mut self.plain.connect()?)
    }
}

impl Caller for Visitor {
    fn get(&mut self) -> Result<String, BoxError> {
        loop {
            let looked = Moment::now();
            if let Some(value) = self.plain.read(&mut self.connection)? {
                return Ok(value);
            }
            let (lock, seconds) = (&self.plain.lock, self.plain.terms.lock_seconds);
            let locked: Option<String> =
                redis::cmd("SET").arg(lock).arg(1).arg("NX").arg("EX").arg(seconds).query(&mut self.connection)?;
            if locked.is_some() {
                let value = self.loader.load(looked);
                self.plain.store(&mut self.connection, &value)?;
                redis::cmd("DEL").arg(lock).query::<()>(&mut self.connection)?;
                return Ok(value);
            }
            thread::sleep(POLL);
        }
    }
}
