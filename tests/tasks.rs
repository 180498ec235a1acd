//! What only tasks do: being dropped, parked, polled by another, woken. Polled by hand, so that nothing depends on timing.
//!
//! The ids in the names are those of the list of faults that users of such systems met.
//!
//! | | flight-owned work | inline work | threads beside |
//! |---|---|---|---|
//! | the leader is dropped, parked, leaked | `driving` | `inline` | `mixed` |
//! | followers leave, everybody leaves | `leaving` | `leaving` | `mixed` |
//! | panics, values that are not shared | `handed_back` | `inline` | |
//! | wakers that poll, panic, call the group | `wakers` | `wakers` | |
//! | work that goes on by itself | `detached` | | `detached` |
//! | several keys | | `many`, `many_told` | |
//! | the value once it has landed | `landed` | | |
//! | closures and works that call the group when they are dropped | `destructors` | `destructors` | |
//! | several keys that call the group when they are dropped | | `many_destructors` | `many_destructors` |
//! | several keys whose work fails | | `many_errors` | `many_errors` |

#[path = "tasks/by_hand.rs"]
mod by_hand;
#[path = "tasks/destructors.rs"]
mod destructors;
#[path = "tasks/detached.rs"]
mod detached;
#[path = "tasks/driving.rs"]
mod driving;
#[path = "tasks/handed_back.rs"]
mod handed_back;
#[path = "tasks/inline.rs"]
mod inline;
#[path = "tasks/landed.rs"]
mod landed;
#[path = "tasks/leaving.rs"]
mod leaving;
#[path = "tasks/many.rs"]
mod many;
#[path = "tasks/many_destructors.rs"]
mod many_destructors;
#[path = "tasks/many_errors.rs"]
mod many_errors;
#[path = "tasks/many_told.rs"]
mod many_told;
#[path = "tasks/mixed.rs"]
mod mixed;
#[path = "tasks/wakers.rs"]
mod wakers;
