//! The contract of a group: one suite, run through every way to call.
//!
//! A case is a function that is generic over the [`Way`](support::way::Way) to call. The table below is the matrix of cases and
//! ways of a `SyncGroup`, and makes each `x` a test, named for example
//! `do_call::c5_a_panic_in_clone_for_one_follower_is_that_followers_alone`. That of an `AsyncGroup`, on several executors, is in
//! `contract/tasks.rs`. A `-` says that the case does not concern the way:
//!
//! - `do_call` and `try_do_call` have no options, so cases that need one of a single call are not theirs; where other ways
//!   return `Abandoned` they go on in a fresh flight, which has cases of its own;
//! - `do_call_wait_timeout` has its time limit for an option, and passes no other;
//! - a guard from `try_lead` asks no predicate and belongs to no thread, so re-entrancy and circles are not reported; its
//!   followers come by `call`, with all options;
//! - `do_many` has no options and `run_many` a time limit only, and both go on in a fresh flight where other ways return
//!   `Abandoned`. They are called with one key here; what only several keys can meet is in `contract/batches.rs` and
//!   `contract/c_batches.rs`.
//!
//! Letters and numbers are those of the cases in the project's list of faults that real users met; rules are those of its
//! design. Tests that are about one entry point only stand beside the generic ones, in the module of their subject.

#![cfg(feature = "std")]

mod support;

#[path = "contract/a_left_behind.rs"]
mod a_left_behind;
#[path = "contract/batches.rs"]
mod batches;
#[path = "contract/c_batches.rs"]
mod c_batches;
#[path = "contract/c_destructors.rs"]
mod c_destructors;
#[path = "contract/c_panics.rs"]
mod c_panics;
#[path = "contract/c_values.rs"]
mod c_values;
#[path = "contract/d_forget.rs"]
mod d_forget;
#[cfg(feature = "deadlock-detection")]
#[path = "contract/e_circles.rs"]
mod e_circles;
#[path = "contract/e_recursion.rs"]
mod e_recursion;
#[path = "contract/executors.rs"]
mod executors;
#[path = "contract/f_wake_ups.rs"]
mod f_wake_ups;
#[path = "contract/g_values.rs"]
mod g_values;
#[path = "contract/guards.rs"]
mod guards;
#[path = "contract/h_deadlines.rs"]
mod h_deadlines;
#[path = "contract/options.rs"]
mod options;
#[path = "contract/reports.rs"]
mod reports;
#[path = "contract/tasks.rs"]
mod tasks;

/// Makes the tests of one way: those of the rows that have an `x` in its column.
macro_rules! test_if {
    (x $way:ident $module:ident::$case:ident) => {
        #[test]
        fn $case() {
            crate::support::limits::within_limit(crate::$module::$case::<crate::support::sync_ways::$way>);
        }
    };
    (- $way:ident $module:ident::$case:ident) => {};
}

macro_rules! matrix {
    ($($do_call:tt $call:tt $call_with:tt $timeout:tt $try_do_call:tt $try_lead:tt $do_many:tt $run_many:tt
        $module:ident::$case:ident;)+) => {
        mod do_call { $(test_if! { $do_call DoCall $module::$case })+ }
        mod call { $(test_if! { $call CallRun $module::$case })+ }
        mod call_with { $(test_if! { $call_with CallWithRun $module::$case })+ }
        mod do_call_wait_timeout { $(test_if! { $timeout DoCallWaitTimeout $module::$case })+ }
        mod try_do_call { $(test_if! { $try_do_call TryDoCall $module::$case })+ }
        mod try_lead { $(test_if! { $try_lead TryLead $module::$case })+ }
        mod do_many { $(test_if! { $do_many DoMany $module::$case })+ }
        mod run_many { $(test_if! { $run_many RunMany $module::$case })+ }
    };
}

matrix! {
//  do_call
//  | call
//  | | call_with
//  | | | do_call_wait_timeout
//  | | | | try_do_call
//  | | | | | try_lead
//  | | | | | | do_many
//  | | | | | | | run_many
    x x x x x x x x a_left_behind::a6_of_1_000_lone_leaders_none_leaves_anything_behind_however_it_ends;
    x x x x x x x x a_left_behind::a6_of_1_000_leaders_in_company_none_leaves_anything_behind_however_it_ends;
    x x x x x x x x a_left_behind::a9_the_next_call_after_a_landing_runs_afresh;
    - x x x - x - x a_left_behind::b1_a_follower_that_leaves_changes_nothing_but_the_count_of_waiters;
    - x x - - x - - a_left_behind::b4_a_follower_that_is_told_to_take_over_and_leaves_passes_it_on;

    x x x x x x x x c_panics::c1_a_leaders_panic_reaches_its_caller_alone_and_one_follower_takes_over;
    x x x x x x x x c_panics::c1_a_lone_leaders_panic_frees_the_key;
    - x x x - x - - c_panics::c2_followers_that_do_not_take_over_get_a_typed_error;
    x - - - x - x x c_panics::c2_where_there_is_no_result_they_go_on_in_a_fresh_flight;
    x x x x x x x x c_panics::c3_a_panic_in_the_making_of_the_owned_key_reaches_that_caller_and_leaves_the_key_free;
    - x x - - - - - c_panics::c3_a_panic_in_share_if_reaches_that_caller_and_a_follower_takes_over;
    - x x x - x - - c_panics::c4_work_that_always_panics_is_run_as_often_as_allowed_and_the_rest_get_a_typed_error;
    x - - - x - x x c_panics::c4_where_there_is_no_result_they_go_on_in_a_fresh_flight_after_the_last_attempt;
    x x x x x x x x c_panics::c5_a_panic_in_clone_for_one_follower_is_that_followers_alone;
    x x x x x x x x c_panics::c6_a_panic_in_hash_or_eq_is_that_calls_alone_and_flights_in_progress_finish;
    x x x x x x x x c_panics::c6_a_key_in_flight_whose_eq_panics_still_lands_and_goes;
    x x x x x x x x c_destructors::c7_a_call_from_a_destructor_while_the_thread_panics_leads;
    x x x x x x x x c_destructors::c7_a_call_from_a_destructor_while_the_thread_panics_follows_and_takes_over;
    x x x x x x x x c_destructors::c7_a_call_from_a_thread_locals_destructor_leads_and_follows;
    x x x x x x x x c_destructors::c8_destructors_of_keys_values_and_closures_may_call_the_same_key_and_another;

    x x x x x x x x d_forget::d1_an_old_flight_that_ends_does_not_take_the_newer_one_away;
    x x x x x x x x d_forget::d1_newcomers_join_the_newest_flight_in_whatever_order_three_end;
    x x x x x x x x d_forget::d2_a_work_may_forget_its_own_key;
    x x x x x x x x d_forget::d2_a_forgotten_flight_that_is_abandoned_is_taken_over_inside_and_touches_no_other;
    x x x x x - x x d_forget::d2_a_work_that_forgot_its_own_key_may_call_it;
    x x x x x x x x d_forget::d_forget_answers_whether_there_was_a_flight_and_forget_unshared_whether_nobody_shares_it;
    x x x x x x x x d_forget::d_forget_all_closes_every_flight_to_newcomers;
    x x x x x x x x d_forget::d3_forget_unshared_racing_a_join_never_leaves_a_follower_in_what_nobody_shares;

    x x x x x - x x e_recursion::e1_a_call_of_its_own_key_inside_the_work_is_refused_at_once;
    x - - - x - x - e_recursion::e1_where_there_is_no_result_the_refusal_is_a_panic_of_the_work;
    - x x - - - - - e_recursion::e1_a_call_of_its_own_key_inside_share_if_is_refused;
    x x x x x - x x e_recursion::e1_a_call_of_its_own_key_is_refused_however_many_other_keys_lie_between;
    x x x x x - x x e_recursion::e1_a_call_from_another_thread_during_the_work_just_waits;
    x x x x x - x x e_recursion::e1_a_caller_that_took_over_is_refused_and_the_one_that_panicked_just_waits;
    x x x x x - x x e_recursion::e1_a_thread_that_runs_other_jobs_while_it_leads_is_refused_its_own_keys_only;
    x x x x x x x x e_recursion::e4_keys_that_all_have_one_hash_neither_wait_for_each_other_nor_mix;
    x x x x x x x x e_recursion::e4_nested_calls_of_keys_that_all_have_one_hash_work;

    x x x x x x x x f_wake_ups::all_of_500_waiters_are_served;
    x x x x x x x x f_wake_ups::all_of_100_waiters_are_served_though_20_leaders_panic_before;
    - x x x - x - x f_wake_ups::f_time_limits_that_race_with_a_landing_end_in_a_value_or_in_timed_out;
    - x x x - x - x f_wake_ups::f_time_limits_that_race_with_a_panic_end_in_a_value_or_in_timed_out;
    x x x x x x x x f_wake_ups::rule_1_no_two_leaders_of_one_key_run_at_once;
    x x x x x x x x f_wake_ups::rule_6_what_the_leader_wrote_is_visible_to_every_follower;

    x x x x x x x x g_values::g1_a_lone_callers_value_is_moved_out;
    - x x x - x - x g_values::g1_the_value_is_moved_out_too_when_all_followers_have_left;
    x x x x x x x x g_values::g1_four_callers_cost_three_clones;
    - x x - - - - - g_values::g1_a_value_that_is_not_shared_is_moved_out;
    x x x x x - x x g_values::a_groups_share_if_decides_for_every_way_to_call;
    x x x x x x x x g_values::a_value_made_after_a_take_over_is_shared_with_those_who_are_left;

    x x x x x x x x g_values::h1_an_error_that_is_shared_is_everybodys_after_one_execution;
    x x x x x - x x g_values::h1_an_error_that_is_not_shared_costs_two_executions_where_two_are_allowed;
    x x x x x - x x g_values::h1_without_a_limit_errors_that_are_not_shared_go_on_until_one_succeeds;
    x x x x x x x x g_values::h2_a_call_after_the_landing_runs_its_own_work_though_followers_still_collect;
    - x x x - x - x h_deadlines::h4_a_time_limit_ends_its_callers_wait_and_disturbs_nobody_else;
    - x x x - - - x h_deadlines::h4_a_leaders_own_limit_does_not_interrupt_its_work;
    - x x x - x - x h_deadlines::h4_a_caller_that_takes_over_is_not_interrupted_by_its_limit;
    x x x x x x x x h_deadlines::h5_from_its_age_limit_on_a_flight_takes_no_newcomer_and_touches_no_newer_one;
    x x x x x x x x h_deadlines::h5_a_young_flight_is_joined;
    - x x x - x - x h_deadlines::h6_with_a_limit_of_zero_a_call_leads_or_returns_at_once;
    - x x x - x - x h_deadlines::h6_a_limit_too_long_for_the_clock_is_none;

    - x x - - x - - options::a_follower_that_fails_on_abandon_is_the_only_one_to_get_an_error;
    - x x - - x - - options::a_follower_that_fails_on_abandon_gets_the_value_if_there_is_one;
    - x x - - - - - options::a_value_that_is_not_shared_abandons_its_followers;
    - x x - - - - - options::the_cap_of_the_leader_that_panics_counts_not_that_of_its_followers;
    - x x - - x - - options::the_cap_of_the_caller_that_took_over_counts_once_it_has_panicked;
    - x x - - x - - options::a_caller_that_takes_over_past_its_own_cap_makes_the_last_attempt;
    - x x - - - - - options::share_if_travels_with_the_work_of_its_caller;
    - x x - - - - - options::the_value_of_the_last_allowed_attempt_is_shared_whatever_share_if_says;
    - x x - - - - - options::share_if_is_not_asked_about_a_lone_callers_value;
    - x x - - - - - options::a_calls_own_options_win_over_the_groups;

    x x x x x x x x reports::the_counters_tell_what_happened;
    x x x x x x x x reports::the_attempts_of_a_flight_are_counted;
    x x x x x x x x reports::waiters_are_counted_while_they_wait;
}

/// Circles of waiting threads, for the ways that wait as long as it takes.
#[cfg(feature = "deadlock-detection")]
mod deadlock_detection {
    matrix! {
    //  do_call, call, call_with, do_call_wait_timeout, try_do_call, try_lead, do_many, run_many
        x x x - x - x x e_circles::e2_of_two_threads_that_would_wait_for_each_other_one_is_refused;
        x x x - x - x x e_circles::e2_of_three_threads_in_a_circle_one_is_refused;
        x x x - x - x x e_circles::e2_a_diamond_is_no_circle;
        x x x - x - x x e_circles::e2_a_refused_call_leaves_no_waiter_behind;
        x x x - x - x x e_circles::e2_a_circle_that_a_take_over_makes_possible_is_refused_too;
    }
}
