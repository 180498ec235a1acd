//! Keys that callers ask for one by one, loaded together: one suite for threads and for tasks, as in `contract.rs`.
//!
//! | file | is about |
//! |---|---|
//! | `batches.rs` | which keys are loaded together, and when |
//! | `joins.rs` | what keys have to do with other loads: in this process, in others, before and after writes |
//! | `failures.rs` | errors, panics, closed caches: whom they reach |
//! | `only_tasks.rs` | callers that are dropped or not polled any more |
//! | `only_threads.rs` | what only threads have |

#[allow(dead_code, reason = "the contract suite uses the rest")]
mod support;

#[path = "collector/batches.rs"]
mod batches;
#[path = "collector/bench.rs"]
mod bench;
#[path = "collector/failures.rs"]
mod failures;
#[path = "collector/joins.rs"]
mod joins;
#[path = "collector/only_tasks.rs"]
mod only_tasks;
#[path = "collector/only_threads.rs"]
mod only_threads;

macro_rules! cases {
    ($($module:ident::$case:ident;)+) => {
        mod threads {
            $(#[test]
            fn $case() {
                crate::support::limits::within_limit(crate::$module::$case::<crate::support::thread_way::Threads>);
            })+
        }
        cases! { @executor smol: Smol, $($module::$case;)+ }
        cases! { @executor tokio: Tokio, $($module::$case;)+ }
        cases! { @executor block_on: BlockOn, $($module::$case;)+ }
    };
    (@executor $name:ident: $executor:ident, $($module:ident::$case:ident;)+) => {
        mod $name {
            $(#[test]
            fn $case() {
                use crate::support::task_ways::{Executor, Tasks};
                crate::support::limits::within_limit(|| {
                    crate::bench::choose(Executor::$executor);
                    crate::$module::$case::<Tasks>();
                });
            })+
        }
    };
}

cases! {
    batches::callers_of_one_window_are_one_call_of_the_loader;
    batches::a_full_batch_is_loaded_before_its_window_ends;
    batches::several_keys_and_single_ones_are_loaded_together;
    batches::more_keys_than_a_batch_has_are_several_batches;
    batches::a_key_that_is_asked_for_twice_is_one_key_of_its_batch;
    batches::nothing_is_asked_for_nothing_is_loaded;
    batches::without_a_window_a_key_is_loaded_at_once;
    batches::without_coalescing_a_key_is_one_key_of_its_batch_all_the_same;
    batches::of_10_000_keys_each_is_loaded_once_and_has_its_value;
    batches::many_callers_of_few_keys_load_each_once_and_leave_nothing;

    joins::a_hit_is_not_gathered;
    joins::a_key_that_is_being_loaded_is_not_gathered_and_keeps_nobody_else_waiting;
    joins::several_keys_wait_for_what_is_on_and_load_the_rest_meanwhile;
    joins::a_single_load_joins_a_key_that_is_gathered;
    joins::batches_in_opposite_orders_do_not_wait_for_each_other_in_a_circle;
    joins::a_value_that_is_not_stored_disturbs_no_other_key;
    joins::a_stale_value_is_served_at_once_and_its_refresh_is_gathered;
    joins::what_is_written_while_it_is_gathered_is_loaded_anew_for_those_who_come_later;
    joins::what_another_process_loads_is_waited_for_by_its_own_callers_only;
    joins::two_collectors_of_a_cache_join_each_others_loads;

    failures::an_error_reaches_the_callers_of_its_batch_and_no_others;
    failures::an_error_of_one_key_reaches_its_own_callers_and_no_others;
    failures::an_error_of_one_key_holds_up_no_refresh_of_another;
    failures::an_old_value_is_served_in_place_of_an_error;
    failures::a_panic_reaches_one_caller_and_the_others_go_on;
    failures::a_wrong_number_of_values_is_an_error_of_all_who_asked;
    failures::a_closed_cache_gathers_nothing_more_and_loads_what_was_gathered;
    failures::a_store_that_fails_costs_no_caller_its_value;
}
