//! The model of a server, as threads and as tasks ask it.

use crate::bench::{Bench, KEY, Steps};
use crate::model::{ModelError, ModelStore};
use crate::tasks::Tasks;
use oneflight_cache::fill::Token;
use oneflight_cache::lease::{BlockingLease, Lease};
use oneflight_cache::test_util::ManualClock;
use oneflight_cache::{Clock, Time};
use std::time::Duration;

/// The model, and the clock of the server and of all who use it.
struct Hands {
    clock: ManualClock,
    store: ModelStore<Vec<u8>>,
}

impl Hands {
    fn new() -> Self {
        let clock = ManualClock::new();
        clock.advance(Duration::from_secs(1_000_000));
        Self { store: ModelStore::new(clock.clone()), clock }
    }
}

pub(crate) struct Threads(Hands);
pub(crate) struct OfTasks(Hands);

macro_rules! bench {
    ($bench:ident: $store:ty, $wrap:expr, $abandon:expr) => {
        impl Bench for $bench {
            type Store = $store;

            fn new() -> Self {
                Self(Hands::new())
            }
            fn store(&self) -> $store {
                $wrap(self.0.store.another_process())
            }
            fn now(&self) -> Time {
                self.0.clock.now()
            }
            fn pass(&self, time: Duration) {
                self.0.clock.advance(time);
            }
            fn flush(&self) {
                self.0.store.flush();
            }
            fn lose_epoch(&self) {
                self.0.store.lose_epoch(KEY);
            }
            fn set_unreadable(&self) {
                self.0.store.flush();
                self.0.store.set_unreadable(KEY, 77);
            }
            fn set_foreign(&self) {
                self.0.store.flush();
                self.0.store.set_foreign(KEY);
            }
            fn is_foreign(&self) -> bool {
                self.0.store.is_foreign(KEY)
            }
            fn set_full(&self, is_full: bool) {
                self.0.store.set_full(is_full);
            }
            fn is_wrong_type(error: &<Self::Store as Steps>::Failure) -> bool {
                *error == ModelError::WrongType
            }
            fn abandon(&self, store: &$store, token: Token) {
                $abandon(store, token);
            }
        }
    };
}

bench! {
    Threads: ModelStore<Vec<u8>>,
    std::convert::identity,
    |store, token| BlockingLease::<str, Vec<u8>>::release(store, KEY, token).unwrap()
}
bench! {
    OfTasks: Tasks<ModelStore<Vec<u8>>>,
    Tasks,
    |store: &Tasks<ModelStore<Vec<u8>>>, token| Lease::<str, Vec<u8>>::abandon(&store.0, KEY, token)
}
