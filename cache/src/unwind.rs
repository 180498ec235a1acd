//! What may be used after a panic was caught.

use crate::{Cache, Collector, blocking};
use std::panic::{RefUnwindSafe, UnwindSafe};

// What runs of the user's while a cache's own data is being changed, a store among it, runs between two changes that stand by
// themselves, and locks are not poisoned: a panic cannot leave a cache half changed. A store keeps itself whole, as it is shared.
impl<K, V, E, S> UnwindSafe for Cache<K, V, E, S> {}
impl<K, V, E, S> RefUnwindSafe for Cache<K, V, E, S> {}
impl<K, V, E, S> UnwindSafe for Collector<K, V, E, S> {}
impl<K, V, E, S> RefUnwindSafe for Collector<K, V, E, S> {}
impl<K, V, E, S> UnwindSafe for blocking::Cache<K, V, E, S> {}
impl<K, V, E, S> RefUnwindSafe for blocking::Cache<K, V, E, S> {}
impl<K, V, E, S> UnwindSafe for blocking::Collector<K, V, E, S> {}
impl<K, V, E, S> RefUnwindSafe for blocking::Collector<K, V, E, S> {}
