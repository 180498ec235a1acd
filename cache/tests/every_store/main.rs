//! Several keys in one call, by every store and both caches: the same values, sources and calls of the loader, whatever is behind.
//!
//! A case is a function of a [`Bench`](bench::Bench), and called for `get_or_load_many` and for `load_many` of a collector. The
//! list below makes each a test of each store, named for example `redis_smol::stored_stale_absent_and_loading_keys_in_one_call`.
//! Time is the machine's: nothing here has to be fast.

mod bench;
#[cfg(feature = "redis")]
#[path = "../redis_support/mod.rs"]
mod redis_support;
#[cfg(feature = "redis")]
mod servers;
mod suite;
#[allow(dead_code, reason = "the contract suite uses the rest")]
#[path = "../support/mod.rs"]
mod support;

macro_rules! cases {
    (@bench $name:ident: $bench:expr, $($case:ident)+) => {
        mod $name {
            $(#[test]
            fn $case() {
                crate::support::limits::within_limit(|| {
                    for through in [crate::bench::Through::Cache, crate::bench::Through::Collector] {
                        crate::suite::$case(&$bench, through);
                    }
                });
            })+
        }
    };
    (alone { $($alone:ident)+ } shared { $($shared:ident)+ }) => {
        cases! { @bench memory_threads: crate::bench::memory_threads(), $($alone)+ }
        cases! { @bench memory_tasks: crate::bench::memory_tasks(), $($alone)+ }
        cases! { @bench pending_tasks: crate::bench::pending_tasks(), $($alone)+ }
        cases! { @bench model_threads: crate::bench::model_threads(), $($alone)+ $($shared)+ }
        cases! { @bench model_tasks: crate::bench::model_tasks(), $($alone)+ $($shared)+ }
        cases! { @bench tiered_threads: crate::bench::tiered_threads(), $($alone)+ $($shared)+ }
        cases! { @bench tiered_tasks: crate::bench::tiered_tasks(), $($alone)+ $($shared)+ }
        #[cfg(feature = "redis")]
        cases! { @bench redis_threads: crate::servers::threads(), $($alone)+ $($shared)+ }
        #[cfg(feature = "redis-smol")]
        cases! { @bench redis_smol: crate::servers::smol(), $($alone)+ $($shared)+ }
        #[cfg(feature = "redis-tokio")]
        cases! { @bench redis_tokio: crate::servers::tokio(), $($alone)+ $($shared)+ }
        #[cfg(feature = "redis-smol")]
        cases! { @bench redis_tiered: crate::servers::tiered(), $($alone)+ $($shared)+ }
    };
}

cases! {
    alone {
        stored_stale_absent_and_loading_keys_in_one_call
        no_keys_ask_for_nothing
        very_many_keys_come_in_their_order_by_one_call
        one_key_that_fails_fails_the_call_and_is_free
        batches_in_opposite_orders_load_each_key_once
        a_write_during_a_batch_wins
        a_value_lives_as_long_as_its_put_says
    }
    shared {
        what_another_process_loads_is_waited_for_and_the_rest_is_stored_meanwhile
    }
}
