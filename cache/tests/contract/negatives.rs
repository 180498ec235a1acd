//! I4, with another process: that there is nothing is kept, until it stores something.

use crate::support::model::ModelStore;
use crate::support::run::{told, uncalled};
use crate::support::way::{AnyCache, AnyStore, Refreshes, SECOND, Way, builder};
use oneflight_cache::test_util::ManualClock;
use oneflight_cache::{Source, Tiered};

type Server = ModelStore<Option<u32>>;

/// Two processes, each with what `store` makes of its way to the server.
fn two_processes<W: Way, S: AnyStore<Option<u32>>>(
    store: impl Fn(Server) -> S,
) -> [<W as Way>::Cache<Option<u32>, S>; 2] {
    let clock = ManualClock::new();
    let server = Server::new(clock.clone());
    [(); 2].map(|()| {
        let builder = builder(&clock).negative_ttl(SECOND * 5).store(store(server.another_process()));
        AnyCache::with(builder, Refreshes::Beside)
    })
}

fn a_put_elsewhere_ends_it<S: AnyStore<Option<u32>>>(
    a: &impl AnyCache<Option<u32>, S>,
    b: &impl AnyCache<Option<u32>, S>,
) {
    assert_eq!(told(a.get_or_load("k", || Ok(None))), (None, Source::Loaded));
    assert_eq!(told(a.get_or_load("k", uncalled())), (None, Source::Hit));
    assert_eq!(told(b.get_or_load("k", uncalled())), (None, Source::Hit));
    b.put("k", Some(1)).unwrap();
    assert_eq!(told(a.get_or_load("k", uncalled())), (Some(1), Source::Hit));
    assert_eq!(told(b.get_or_load("k", uncalled())), (Some(1), Source::Hit));
}

pub(crate) fn i4_that_there_is_nothing_is_kept_until_another_process_puts_something<W: Way>() {
    let [a, b] = two_processes::<W, _>(|server| server);
    a_put_elsewhere_ends_it(&a, &b);
}

pub(crate) fn i4_that_there_is_nothing_is_near_until_another_process_puts_something<W: Way>() {
    let [a, b] = two_processes::<W, _>(|server| Tiered::new(1_000, SECOND * 60, server));
    a_put_elsewhere_ends_it(&a, &b);
}
