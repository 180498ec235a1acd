//! No protection: whoever finds no value loads it and stores it.

use alloc::sync::Arc;

use oneflight_cache::BoxError;

use super::{Caller, Plain, Way};
use crate::processes::loader::Loader;
use crate::processes::protocol::Moment;

/// A cache that many callers may find empty at once.
pub(crate) struct Unprotected {
    plain: Plain,
    loader: Arc<Loader>,
}

struct Visitor {
    plain: Plain,
    connection: redis::Connection,
    loader: Arc<Loader>,
}

impl Unprotected {
    pub(super) fn new(plain: Plain, loader: Arc<Loader>) -> Self {
        Self { plain, loader }
    }
}

impl Way for Unprotected {
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
        let looked = Moment::now();
        if let Some(value) = self.plain.read(&mut self.connection)? {
            return Ok(value);
        }
        let value = self.loader.load(looked);
        self.plain.store(&mut self.connection, &value)?;
        Ok(value)
    }
}
