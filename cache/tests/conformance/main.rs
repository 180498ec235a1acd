//! What a store with leases must do: one suite for the model of a server and for real ones.
//!
//! A case is a function that is generic over the [`Bench`](bench::Bench): which store, and how a test lays hands on its server.
//! The list below makes each a test of each bench, named for example `model_threads::release::k1_anothers_lease_is_left_alone`. The
//! suite asks as threads do; [`Tasks`](tasks::Tasks) makes the requests of a store for tasks wait.
//!
//! Time passes at least as long as a case says, and perhaps much longer: no case relies on how fast the machine is.
//!
//! Letters and numbers are those of the cases in the project's list of faults that real users met.

mod bench;
mod model_bench;
#[cfg(feature = "redis")]
mod redis_bench;
mod suite;
mod tasks;

#[path = "../support/model/mod.rs"]
mod model;
#[cfg(feature = "redis")]
#[path = "../redis_support/mod.rs"]
mod redis_support;

macro_rules! cases {
    ($($module:ident { $($case:ident)+ })+) => {
        cases! { @bench model_threads: crate::model_bench::Threads, $($module { $($case)+ })+ }
        cases! { @bench model_tasks: crate::model_bench::OfTasks, $($module { $($case)+ })+ }
        #[cfg(feature = "redis")]
        cases! { @bench redis_threads: crate::redis_bench::OnRedis<crate::redis_bench::Threads>, $($module { $($case)+ })+ }
        #[cfg(feature = "redis-smol")]
        cases! { @bench redis_smol: crate::redis_bench::OnRedis<crate::redis_bench::tasks::Smol>, $($module { $($case)+ })+ }
        #[cfg(feature = "redis-tokio")]
        cases! { @bench redis_tokio: crate::redis_bench::OnRedis<crate::redis_bench::tasks::Tokio>, $($module { $($case)+ })+ }
        #[cfg(feature = "redis-cluster")]
        cases! { @bench redis_cluster: crate::redis_bench::OnRedis<crate::redis_bench::tasks::Cluster>, $($module { $($case)+ })+ }
    };
    (@bench $name:ident: $bench:ty, $($module:ident { $($case:ident)+ })+) => {
        mod $name {
            $(mod $module {
                $(#[test]
                fn $case() {
                    let bench = <$bench as crate::bench::Bench>::new();
                    crate::suite::$module::$case(&bench);
                })+
            })+
        }
    };
}

cases! {
    acquire {
        without_a_value_the_first_leads_and_the_others_are_told_who_does
        the_same_token_again_leads_in_the_same_epoch_for_longer
        a_value_fills_whoever_has_not_seen_it
        a_value_that_was_seen_is_to_be_replaced
        a_value_that_was_seen_and_is_gone_is_not_loaded
        a_value_that_has_ended_is_absent
        what_cannot_be_read_is_told_and_then_replaced
        a_lease_that_has_run_out_is_free_and_its_epoch_goes_on
        an_epoch_that_has_ended_does_not_come_back
        an_epoch_lasts_as_long_as_any_has_asked
        of_many_at_once_exactly_one_leads
        of_many_at_once_exactly_one_takes_over
    }
    renew {
        a_renewed_lease_lasts_longer
        a_renewal_may_shorten_a_lease
        a_lease_that_has_run_out_is_lost
        anothers_lease_is_left_alone
        what_was_written_has_no_lease
    }
    publish {
        the_holder_stores_and_gives_the_lease_up
        the_holder_stores_over_what_it_has_seen
        without_a_lease_it_is_late_and_leaves_the_next_ones_lease
        late_is_late_also_when_nobody_has_the_lease
        the_holder_stores_over_what_came_late
        without_a_lease_a_value_supersedes
        k2_a_value_stored_since_supersedes_and_stays
        a_removal_invalidates
        a_put_supersedes
        a_put_that_is_being_refreshed_invalidates
        a_removal_invalidates_also_when_another_leads_by_now
        what_was_removed_and_put_back_is_another
        a_clear_invalidates
        a_flush_invalidates
        an_epoch_that_was_lost_invalidates_and_the_lease_can_be_given_up
        an_epoch_that_was_lost_leaves_the_value_that_is_refreshed
        twice_is_not_published_twice
        by_the_same_token_after_a_write_only_the_new_epoch_counts
        what_is_over_removes_what_is_there_and_gives_the_lease_up
        what_is_over_removes_nothing_that_another_has_or_loads
        what_is_over_is_as_a_write_while_nobody_has_the_lease
    }
    release {
        the_lease_is_free_at_once
        k1_anothers_lease_is_left_alone
        a_lease_that_is_nobodys_may_be_given_up
        what_was_released_may_still_be_published_late
        an_abandoned_lease_is_free_before_long
    }
    writes {
        a_removal_takes_the_value_and_the_lease
        a_put_takes_the_lease_and_replaces_the_value
        clear_takes_all_values_and_leases
        a_refresh_that_a_write_meets_does_not_undo_it
    }
    values {
        an_entry_is_the_same_in_another_process
        a_stale_entry_is_found_until_its_end
        i10_what_looks_like_nothing_is_a_value
        i8_odd_keys_are_distinct
        i3_odd_lives_are_no_errors
        i3_odd_leases_are_no_errors
        many_are_found_in_their_order
    }
    faults {
        what_cannot_be_read_is_not_there
        a_foreign_type_is_an_error_and_is_left_alone
        a_full_store_refuses_what_is_new_and_lets_go
        a_full_store_refuses_what_is_published_and_the_lease_can_be_given_up
        a_full_store_has_room_for_what_is_over
    }
    pushes {
        who_listens_is_told_so
        what_frees_the_lease_is_pushed
        writes_of_another_process_are_pushed
        clearing_is_pushed_to_all
        nothing_is_pushed_about_other_keys_or_once_dropped
    }
}
