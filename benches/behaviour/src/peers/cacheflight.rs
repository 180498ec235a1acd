//! cacheflight: text keys, values in bytes, and works that may be called again, which none is.

use super::{Call, OnTasks, Peer};
use crate::clock::Work;
use crate::values::Got;
use cacheflight::{CacheFlight, Error, HasFlatExpiry, HasXfetch, MemoryCache, NoXfetch};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Without or with early refresh.
pub(super) type Tasks<X = NoXfetch> = CacheFlight<MemoryCache, HasFlatExpiry, X>;

pub(super) fn tasks() -> Tasks {
    // Longer than any case takes.
    CacheFlight::new(MemoryCache::new()).ttl(Duration::from_secs(3_600))
}

/// The paper's formula, as good as always.
fn eager() -> Tasks<HasXfetch> {
    tasks().probabilistic_expiry(1e12)
}

impl<X: Send + Sync + 'static> Peer<OnTasks> for Tasks<X> {
    fn call(&'static self, key: u64, work: Work) -> Call {
        let work = Arc::new(Mutex::new(Some(work)));
        let run = move || {
            let work = work.lock().ok().and_then(|mut work| work.take()).expect("called once");
            let answer = work();
            async move { Ok(answer.await.map_err(Error::operation)?.0.to_le_bytes().to_vec()) }
        };
        Box::pin(async move {
            match self.run(key.to_string(), run).await {
                Ok(found) => {
                    found.into_value().try_into().map_or(Got::Refused, |bytes| Got::Value(u64::from_le_bytes(bytes)))
                }
                Err(error) => Got::error(&error),
            }
        })
    }

    fn invalidate(&'static self, key: u64) -> Option<Call> {
        Some(Box::pin(async move {
            CacheFlight::invalidate(self, &key.to_string()).await.map_or(Got::Refused, |()| Got::Value(0))
        }))
    }

    fn always_refreshing(&'static self) -> Option<&'static dyn Peer<OnTasks>> {
        Some(Box::leak(Box::new(eager())))
    }

    fn counts_keys(&self) -> bool {
        false
    }

    fn counts_values(&self) -> bool {
        false
    }

    fn stores(&self) -> bool {
        true
    }
}
