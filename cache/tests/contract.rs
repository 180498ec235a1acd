//! The behaviour of the cache: one suite for the cache of threads and the cache of tasks.
//!
//! A case is a function that is generic over the [`Way`](support::way::Way): which cache, and where its callers run. The list
//! below makes each a test of each way, named for example `threads::i2_a_put_during_a_load_wins`. What concerns one cache only
//! stands in the modules `only_tasks`, `only_threads` and `call_many`. Time is that of a clock that the tests move, but where a thread's own
//! time limit is the subject.
//!
//! Letters and numbers are those of the cases in the project's list of faults that real users met.

mod support;

#[path = "contract/bounds.rs"]
mod bounds;
#[path = "contract/call_many.rs"]
mod call_many;
#[path = "contract/crowd.rs"]
mod crowd;
#[path = "contract/early.rs"]
mod early;
#[path = "contract/hanging.rs"]
mod hanging;
#[path = "contract/keeping.rs"]
mod keeping;
#[path = "contract/late.rs"]
mod late;
#[path = "contract/lease_failures.rs"]
mod lease_failures;
#[path = "contract/leases.rs"]
mod leases;
#[path = "contract/loads.rs"]
mod loads;
#[path = "contract/many.rs"]
mod many;
#[path = "contract/near.rs"]
mod near;
#[path = "contract/negatives.rs"]
mod negatives;
#[path = "contract/nested.rs"]
mod nested;
#[path = "contract/not_kept.rs"]
mod not_kept;
#[path = "contract/odd.rs"]
mod odd;
#[path = "contract/only_tasks.rs"]
mod only_tasks;
#[path = "contract/only_threads.rs"]
mod only_threads;
#[path = "contract/panics.rs"]
mod panics;
#[path = "contract/requests.rs"]
mod requests;
#[path = "contract/stale.rs"]
mod stale;
#[path = "contract/tiers.rs"]
mod tiers;
#[path = "contract/ttl.rs"]
mod ttl;
#[path = "contract/weights.rs"]
mod weights;
#[path = "contract/writes.rs"]
mod writes;

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
                    Executor::$executor.choose();
                    crate::$module::$case::<Tasks>();
                });
            })+
        }
    };
}

cases! {
    loads::every_source_is_told_and_the_age_of_its_value;
    loads::of_100_callers_of_a_key_one_loads;
    loads::i5_a_loaders_error_reaches_the_callers_of_its_flight_and_is_not_kept;
    loads::i5_without_an_old_value_each_call_tries_again;
    loads::a_load_that_was_stored_between_the_miss_and_the_lead_is_found;
    loads::what_is_looked_for_in_vain_is_a_miss;
    loads::i9_20_000_keys_and_16_threads_one_load_a_key_and_nothing_left;
    loads::without_coalescing_each_caller_loads;
    loads::without_coalescing_an_older_load_does_not_replace_a_newer_value;
    loads::without_coalescing_an_older_load_does_not_outlive_a_newer_value_that_is_not_kept;
    loads::a_bypass_reads_joins_and_stores_nothing;
    loads::a_bypass_is_counted_as_other_loads_are;
    loads::a_refresh_on_demand_loads_whatever_is_there;

    ttl::a_value_expires_when_its_time_has_come_and_not_before;
    ttl::i3_a_ttl_of_zero_coalesces_and_stores_nothing;
    ttl::i3_a_put_that_is_not_to_be_stored_removes_what_is_there;
    ttl::i3_less_than_a_millisecond_is_one;
    ttl::i3_a_ttl_that_is_too_long_for_the_clock_does_not_end;
    ttl::the_value_may_say_how_long_it_lives;
    ttl::a_put_may_say_how_long_its_value_lives;
    ttl::a_ttl_of_a_put_is_jittered_and_rounded_as_others_are;
    ttl::i3_a_put_with_a_ttl_of_zero_removes_what_is_there;
    ttl::jitter_shortens_by_the_fraction_times_the_random_number;
    ttl::i4_that_there_is_nothing_is_kept_for_its_own_time_or_until_something_is_put;
    ttl::i4_a_negative_ttl_of_zero_keeps_no_nothing;
    ttl::i8_odd_keys_are_all_distinct;
    ttl::i10_values_that_look_like_nothing_are_hits;

    negatives::i4_that_there_is_nothing_is_kept_until_another_process_puts_something;
    negatives::i4_that_there_is_nothing_is_near_until_another_process_puts_something;

    weights::a_weigher_that_panics_costs_its_own_caller_the_value_and_nobody_else;
    weights::weights_are_right_whatever_panics;
    weights::a_weigher_may_call_the_cache_and_runs_once_a_put;
    weights::a_weight_does_not_change;

    writes::i1_after_an_invalidate_a_call_starts_its_own_load_at_once;
    writes::i1_an_invalidated_load_that_ends_last_overwrites_nothing;
    writes::i1_several_keys_are_invalidated_in_one_call_as_each_would_be;
    writes::i2_a_put_during_a_load_wins;
    writes::a_write_of_one_key_leaves_the_loads_of_others_alone;
    writes::a_write_wins_over_a_refresh_on_demand;
    writes::j5_a_write_wins_over_a_refresh_that_a_read_has_started;
    writes::j5_after_a_write_another_refresh_may_start_at_once;
    writes::a_flight_that_begins_while_a_value_is_removed_serves_nobody_later;
    writes::a_load_that_begins_while_a_value_is_put_is_not_stored_after_it;
    writes::a_write_that_comes_while_a_load_is_stored_waits_and_wins;
    writes::a_put_ends_the_wait_after_a_refresh_that_failed;

    early::j1_extreme_numbers_do_not_panic;
    early::j1_reads_refresh_as_often_as_the_closed_form_says;
    early::what_is_put_is_refreshed_as_early_as_the_loads_of_late_ask_for;
    early::j2_of_1_000_hits_in_the_window_one_starts_a_refresh_and_none_waits;
    early::j2_inline_the_one_that_draws_refreshes_and_none_waits;
    early::j2_a_refresh_of_a_value_that_was_refreshed_meanwhile_is_ducked;
    early::j3_failing_refreshes_back_off_and_the_first_success_resets;
    early::j4_a_refresh_that_panics_is_caught_and_a_later_one_may_start;
    early::early_refresh_can_be_switched_off_and_on;
    early::a_get_starts_no_refresh;
    early::no_more_refreshes_at_once_than_allowed;
    early::a_drawn_refresh_leaves_it_to_the_one_that_was_asked_for;
    early::i11_what_does_not_end_is_not_refreshed_early;

    stale::a_stale_value_is_served_at_once_while_one_refresh_is_on;
    stale::inline_the_caller_that_draws_a_stale_value_gets_the_new_one;
    stale::an_old_value_that_was_waited_for_has_become_older;
    stale::past_the_stale_window_a_value_is_gone;
    stale::a_miss_joins_the_refresh_that_is_on_and_goes_on_alone_if_that_panics;
    stale::i5_an_old_value_is_served_if_the_load_fails_and_retries_back_off;
    stale::a_load_on_demand_that_fails_backs_off_as_well;
    stale::i5_all_who_wait_for_the_load_that_fails_get_the_old_value;
    stale::i5_past_its_window_the_error_is_told;
    stale::a_put_ends_the_back_off;
    stale::both_windows_work_together;

    bounds::no_more_loads_at_once_than_allowed;
    bounds::no_more_callers_of_a_key_than_allowed;
    bounds::a_key_of_a_batch_that_has_too_many_callers_costs_the_others_nothing;
    bounds::a_key_that_a_batch_has_twice_counts_once;
    bounds::a_closed_cache_serves_what_it_has_and_loads_nothing;
    bounds::closing_waits_for_a_refresh_that_is_on;
    bounds::who_waits_for_a_load_that_fails_has_joined_it_too;
    bounds::the_numbers_tell_what_has_happened;
    bounds::a_refresh_that_never_ends_holds_only_its_own_key;

    many::values_come_in_the_order_of_the_keys_and_each_is_loaded_once;
    many::a_batch_joins_what_is_on_and_loads_the_rest_meanwhile;
    many::a_single_call_joins_a_batch;
    many::batches_in_opposite_orders_do_not_wait_for_each_other_in_a_circle;
    many::the_error_of_a_batch_is_its_own_and_is_not_kept;
    many::a_batch_that_fails_is_one_load_that_failed;
    many::what_a_batch_that_fails_counts_does_not_depend_on_the_order_of_its_keys;
    many::a_wrong_number_of_values_is_a_panic_that_says_so;
    many::a_batch_refreshes_what_is_early_and_what_is_stale_in_one_load;
    many::a_batch_whose_load_fails_serves_the_old_values_that_there_are;
    many::writes_during_a_batch_win_for_their_keys;
    many::without_coalescing_a_batch_loads_all_that_it_lacks;

    requests::what_there_is_of_several_keys_is_asked_for_once;
    requests::a_batch_asks_a_store_twice_however_many_its_keys;
    requests::a_batch_whose_second_look_fails_hands_its_values_out_and_stores_none;

    keeping::a_full_memory_gives_up_entries_and_counts_them;
    keeping::i7_what_is_too_large_is_served_and_not_kept_and_nothing_older_is_either;
    keeping::i7_a_store_that_fails_on_writes_costs_no_caller_its_value;
    keeping::i7_what_the_store_refuses_leaves_nothing_older;
    keeping::a_refresh_on_demand_that_joins_a_call_that_finds_a_value_loads;
    keeping::a_refresh_that_the_store_refuses_backs_off;
    keeping::a_refresh_of_a_batch_that_the_store_refuses_backs_off;
    keeping::a_write_that_fails_lets_nobody_join_what_is_on;
    keeping::a_store_that_fails_on_reads_is_as_good_as_empty_to_those_who_load;
    keeping::a_store_of_ones_own_works_as_well;

    odd::a_new_value_that_is_not_to_be_stored_removes_the_old_one;
    odd::no_loader_begins_once_it_is_closed;
    odd::a_random_number_that_is_none_does_no_harm;
    odd::a_panic_outside_the_loader_of_a_refresh_backs_off_like_one_inside;
    odd::the_back_off_of_a_key_grows_however_many_others_fail;
    odd::a_batch_that_has_values_is_not_refused;
    odd::a_batch_that_may_not_load_serves_old_values_as_a_single_call_does;
    odd::without_coalescing_a_batch_loads_a_key_that_it_has_twice_once;
    odd::entries_that_weigh_much_fit_into_a_small_memory;
    odd::a_callers_own_panic_is_counted;

    leases::of_two_processes_one_loads_and_the_other_gets_its_value;
    leases::k4_the_lease_of_a_holder_that_died_is_taken_over_when_it_ends;
    leases::k3_a_lease_is_renewed_for_as_long_as_the_load_takes;
    leases::k3_the_leases_of_a_batch_are_renewed_for_as_long_as_its_load_takes;
    leases::a_value_is_as_old_as_its_load_and_each_process_counts_its_own;
    leases::what_another_process_has_stored_meanwhile_and_is_out_of_date_is_loaded_anew;
    leases::k2_a_leader_that_lost_its_lease_overwrites_nothing_newer;
    leases::a_leader_that_lost_its_lease_stores_late_if_there_is_nothing;
    leases::i1_an_invalidation_in_another_process_wins_over_a_load;
    leases::i2_a_put_in_another_process_wins_over_a_load;
    leases::an_invalidation_of_all_keys_in_another_process_wins_over_a_load;
    leases::i1_after_an_invalidation_in_another_process_no_call_joins_the_load;
    leases::i1_after_a_write_that_was_not_pushed_no_call_joins_a_load_longer_than_until_its_next_renewal;
    leases::without_pushes_those_who_wait_look_for_themselves;
    leases::j2_of_the_refreshes_of_two_processes_one_loads_and_the_other_ducks;
    leases::a_stale_value_is_refreshed_by_one_process;
    leases::a_failed_load_gives_the_lease_up_at_once;
    leases::a_panic_gives_the_lease_up;
    leases::a_refresh_on_demand_takes_the_lease_whatever_is_there;
    leases::i3_a_ttl_of_zero_stores_nothing_and_keeps_no_lease;
    leases::a_batch_stores_its_own_keys_before_it_waits_for_another_process;
    leases::a_batch_takes_over_the_keys_whose_holder_failed;
    leases::the_keys_of_a_batch_whose_holder_died_are_loaded_by_one_call;
    leases::a_batch_waits_for_another_process_no_longer_than_a_single_call;
    leases::batches_in_opposite_orders_in_two_processes_do_not_wait_in_a_circle;
    leases::i6_what_cannot_be_read_is_overwritten;

    not_kept::what_is_not_kept_takes_along_what_it_replaces;
    not_kept::what_is_not_kept_takes_that_along_though_its_lease_has_run_out;
    not_kept::j5_what_another_process_has_put_stays_if_a_refresh_brings_what_is_not_kept;
    not_kept::k1_what_is_not_kept_leaves_the_next_holder_its_lease;
    not_kept::k1_what_is_loaded_past_a_holder_and_not_kept_leaves_it_its_lease;
    not_kept::k2_what_is_older_is_not_stored_after_what_is_not_kept;
    not_kept::k1_what_there_is_no_room_for_leaves_the_next_holder_its_lease;

    lease_failures::a_holder_that_takes_too_long_is_not_waited_for;
    lease_failures::a_caller_may_ask_for_an_error_in_place_of_a_long_wait;
    lease_failures::a_caller_may_ask_for_the_old_value_in_place_of_a_long_wait;
    lease_failures::a_refresh_on_demand_does_not_come_to_the_old_value_in_place_of_a_long_wait;
    lease_failures::k5_a_server_that_is_away_costs_nobody_its_value;
    lease_failures::a_caller_may_ask_for_an_error_in_place_of_a_load_past_the_store;
    lease_failures::a_server_that_does_not_answer_is_left_alone_for_a_while;
    lease_failures::a_server_that_refuses_is_asked_again;
    lease_failures::a_lease_whose_answer_was_lost_is_given_up;
    lease_failures::a_server_that_says_of_nothing_that_it_is_gone_has_failed;
    lease_failures::k3_a_load_whose_renewals_fail_brings_its_value;
    lease_failures::a_value_that_the_server_refuses_reaches_its_callers_and_frees_the_lease;
    lease_failures::no_more_loads_past_the_store_at_once_than_allowed;
    lease_failures::a_refresh_without_a_server_leaves_the_old_value_and_backs_off;
    lease_failures::a_refresh_whose_value_is_refused_backs_off;
    lease_failures::i7_what_the_server_refuses_leaves_nothing_older;
    lease_failures::i7_a_refresh_on_demand_that_the_server_has_no_room_for_leaves_nothing_older;
    lease_failures::a_server_that_is_left_alone_is_not_asked_to_give_up_a_lease;
    lease_failures::nested_loads_past_the_store_do_not_wait_for_each_other_for_ever;
    lease_failures::a_key_that_fails_costs_the_others_of_its_batch_nothing;
    lease_failures::a_key_that_may_not_load_costs_those_who_wait_for_the_others_nothing;
    lease_failures::what_is_no_value_is_left_alone;

    tiers::what_was_read_is_read_near_for_a_short_life;
    tiers::a_batch_reads_near_what_is_near_and_the_rest_from_the_server;
    tiers::what_was_loaded_is_near_at_once_and_in_other_processes_when_they_have_waited;
    tiers::what_another_process_writes_is_not_served_any_more;
    tiers::a_lost_push_costs_the_near_life_and_no_more;
    tiers::what_a_process_writes_itself_it_never_serves_old;
    tiers::a_near_value_ends_with_its_own_life_and_is_refreshed_early;
    tiers::a_refresh_on_demand_loads_though_what_is_near_is_old;
    tiers::a_take_over_works_through_both_tiers;
    tiers::what_is_near_is_served_while_the_server_is_left_alone;
    tiers::a_put_that_the_server_refuses_is_told_from_one_that_is_not_answered;
    tiers::a_refresh_of_what_is_near_and_not_on_the_server_any_more_takes_the_lease;
    tiers::a_refresh_on_demand_without_a_server_does_not_come_to_what_is_near;
    tiers::what_is_near_does_not_count_as_an_answer_of_the_server;
    tiers::what_is_near_weighs_no_more_than_there_is_room_for_whatever_panics;
    tiers::what_is_loaded_past_the_server_is_near_for_a_short_life;
    tiers::a_write_wins_over_what_is_loaded_past_the_server;
    tiers::what_a_refresh_does_not_keep_is_not_left_near_either;
    tiers::what_is_not_kept_leaves_nothing_near_though_the_server_fails_when_it_is_told;
    tiers::what_is_not_kept_takes_no_room_near;
    tiers::of_a_batch_what_is_near_is_not_loaded_though_the_server_fails;

    near::what_is_near_and_out_of_date_is_no_answer;
    near::what_is_near_and_out_of_date_is_served_by_those_who_load_if_the_server_fails;
    near::what_cannot_be_kept_near_leaves_nothing_older_there;

    hanging::whoever_leads_past_a_server_that_hangs_looks_near_again;
    hanging::a_write_whose_answer_hangs_has_left_nothing_old_near;

    panics::a_panic_reaches_its_own_caller_and_one_that_waits_takes_over;
    panics::a_panic_leaves_the_key_free;
    panics::another_panic_is_no_error_of_a_load;
    panics::a_value_whose_first_clone_panics_is_not_lost;
    panics::whichever_clone_panics_the_value_is_not_lost;
    panics::what_cannot_be_copied_to_be_near_is_read_all_the_same;
    panics::j4_a_batch_of_refreshes_that_panics_backs_off;
    panics::i5_after_a_panic_the_old_value_is_served_until_the_back_off_is_over;
    panics::if_a_batch_panics_those_who_wait_for_its_keys_take_over;
}
