//! One load for all processes, whatever dies: real servers, real processes, and a network that fails.
//!
//! A case is a function of the [`Kind`] of cache; the list below makes each a test of each kind, named for example
//! `tokio::k4_a_killed_holder_is_succeeded_by_one_waiter`. Letters and numbers are those of the cases in the project's list of
//! faults that real users met.
//!
//! | file | what fails |
//! |---|---|
//! | `holders.rs` | the process that loads: killed, stopped, cut off |
//! | `servers.rs` | the server: killed, hung, restarted, flushed, full |
//! | `network.rs` | a single request or answer |
//! | `crowd.rs` | nothing; there are many processes and callers |
//! | `values.rs` | writes that meet loads, and bytes that are no values |
//! | `drops.rs` | futures that are dropped at every await point |
//! | `polls.rs` | futures that are dropped at each of their polls, by the number of it |
//! | `matrix.rs` | anything, at random instants |

mod redis_support;

#[path = "redis_faults/child.rs"]
mod child;
#[path = "redis_faults/crowd.rs"]
mod crowd;
#[path = "redis_faults/drops.rs"]
mod drops;
#[path = "redis_faults/holders.rs"]
mod holders;
#[path = "redis_faults/matrix.rs"]
mod matrix;
#[path = "redis_faults/network.rs"]
mod network;
#[path = "redis_faults/peer.rs"]
mod peer;
#[path = "redis_faults/polls.rs"]
mod polls;
#[path = "redis_faults/servers.rs"]
mod servers;
#[path = "redis_faults/settings.rs"]
mod settings;
#[path = "redis_faults/subject.rs"]
mod subject;
#[path = "redis_faults/values.rs"]
mod values;
#[path = "redis_faults/watcher.rs"]
mod watcher;

use peer::{Load, Peer};
use redis_support::process;
use redis_support::server::Server;
use settings::{Kind, Settings};

/// The test that children run.
const CHILD: &str = "a_child_reads_what_it_has_put";

#[test]
fn a_child_reads_what_it_has_put() {
    if let Some(role) = process::role() {
        child::run(&role);
    }
    let server = Server::start();
    for kind in Kind::ALL {
        let peer = Peer::start(&Settings::new(kind, server.url()));
        let key = format!("{kind:?}");
        assert_eq!(peer.get("before", &key), None);
        peer.say(&format!("put put {key} value"));
        peer.wait_for_write("put");
        assert_eq!(peer.get("after", &key).as_deref(), Some("value"));
        peer.read("hit", &key, 2, Load::Gate, "other");
        assert_eq!(peer.wait_for_answers("hit", 2).1, ["value"; 2]);
        assert_eq!(peer.loads(&key), 0);
        peer.say(&format!("invalidate gone {key}"));
        peer.wait_for_write("gone");
        assert_eq!(peer.get("gone", &key), None);
    }
}

macro_rules! cases {
    ($($module:ident::$case:ident;)+) => {
        cases! { @kind threads: Threads, $($module::$case;)+ }
        cases! { @kind smol: Smol, $($module::$case;)+ }
        cases! { @kind tokio: Tokio, $($module::$case;)+ }
        cases! { @kind block_on: BlockOn, $($module::$case;)+ }
    };
    (@kind $name:ident: $kind:ident, $($module:ident::$case:ident;)+) => {
        mod $name {
            $(#[test]
            fn $case() {
                crate::$module::$case(crate::settings::Kind::$kind);
            })+
        }
    };
}

cases! {
    holders::k2_a_holder_that_was_stopped_past_its_lease_does_not_overwrite_what_came_after;
    holders::k2_a_holder_that_comes_back_while_another_loads_is_late_and_the_other_stores_after_it;
    holders::k3_a_load_of_three_leases_is_one_load;
    holders::k3_who_has_waited_long_enough_loads;
    holders::k3_a_holder_that_cannot_renew_fails_nobody;
    holders::k4_a_killed_holder_is_succeeded_by_one_waiter;
    servers::k5_a_server_that_is_gone_costs_a_load_a_process;
    servers::k5_a_server_that_hangs_costs_a_load_a_process;
    servers::k5_who_asks_for_it_gets_an_error_when_the_server_is_gone;
    servers::k5_a_server_that_restarts_empty_costs_a_load_a_process;
    servers::k5_a_server_that_forgets_all_keys_costs_one_load_more;
    servers::k5_a_server_that_forgets_all_scripts_costs_nothing;
    servers::i7_a_full_server_costs_a_load_a_process_and_holds_up_nobody;
    network::k5_a_lost_request_or_answer_fails_nobody_and_holds_up_nobody;
    network::k5_a_slow_network_costs_no_loads;
    crowd::k8_five_hundred_waiters_in_four_processes_are_one_waiter_a_process;
    crowd::k8_a_lost_push_costs_a_poll;
    crowd::j2_eight_processes_refresh_once;
    values::i2_a_put_during_a_load_wins_in_every_process;
    values::i2_an_invalidation_during_a_load_wins_in_every_process;
    values::i6_bytes_that_are_no_value_are_loaded_and_overwritten;
    values::i11_a_value_without_a_life_is_a_hit;
    values::k7_every_lease_and_epoch_ends_by_itself;
    drops::k6_a_future_that_is_dropped_anywhere_leaves_each_key_its_own_value;
}
