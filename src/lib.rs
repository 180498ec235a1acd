//! Request coalescing: the first caller of a key does the work, everyone else shares the result.
//!
//! When a popular cache entry expires, every request that misses runs the same query at once: a cache stampede. A group lets
//! the first caller of a key run it while the others wait and share its value, and loses nothing when that caller panics, is
//! dropped or is not polled any more.
//!
//! - [`SyncGroup`]: for threads.
//! - [`AsyncGroup`]: for tasks on any executor, and threads beside them.
//! - [`refresh`]: arithmetic for caches, whether a read should refresh a value before it expires.
//!
//! ```
//! use oneflight::SyncGroup;
//! use std::sync::atomic::{AtomicU32, Ordering};
//!
//! let group: SyncGroup<String, u32> = SyncGroup::new();
//! let queries = AtomicU32::new(0);
//! std::thread::scope(|scope| {
//!     for _ in 0..4 {
//!         scope.spawn(|| {
//!             let price = group.do_call("product:42", || {
//!                 queries.fetch_add(1, Ordering::Relaxed);
//!                 1999 // a slow query, say
//!             });
//!             assert_eq!(price, 1999);
//!         });
//!     }
//! });
//! assert!((1..=4).contains(&queries.into_inner())); // one for each flight, however many callers it had
//! ```
//!
//! # Words
//!
//! A *flight* is one computation in progress for one key. Its *leader* is the caller that runs the work; the others are its
//! *followers*, and *waiters* while they wait. The leader *lands* with a value, or *abandons* the flight without one (a panic,
//! a dropped guard, a value that is not to be shared); then one waiter *takes over* with its own work. To *forget* a key
//! is to detach its flight, so that the next caller starts afresh.
//!
//! # Before you use it
//!
//! - **The key must hold all that the work reads**: tenant, user, locale. Otherwise one caller's data reaches another.
//! - **Coalesce reads, never writes.**
//! - **After a write, [`forget`](SyncGroup::forget) first**: a follower may be given what a flight read before the
//!   follower's own call began.
//! - **Once means once a flight and process**, while nobody abandons. It is no lock and no promise about outside effects.
//! - **A group stores nothing.** Between a miss in your cache and your call, somebody's whole flight may have landed. A group
//!   cannot know: look at the cache again at the beginning of the work.
//!
//! ```
//! # use oneflight::SyncGroup;
//! # use std::collections::HashMap;
//! # use std::sync::{Arc, Mutex};
//! # let cache: Mutex<HashMap<u32, Arc<str>>> = Mutex::default();
//! # let group: SyncGroup<u32, Arc<str>> = SyncGroup::new();
//! # let render = |_: u32| -> Arc<str> { "page".into() };
//! # let cached = |id: &u32| cache.lock().unwrap().get(id).cloned();
//! let page = cached(&42).unwrap_or_else(|| {
//!     group.do_call(&42, || {
//!         cached(&42).unwrap_or_else(|| {
//!             let page = render(42);
//!             cache.lock().unwrap().insert(42, page.clone());
//!             page
//!         })
//!     })
//! });
//! # assert_eq!(&*page, "page");
//! ```
//!
//! # Defaults
//!
//! [`SyncGroupBuilder`] and [`AsyncGroupBuilder`] list every setting with its default. Errors are values: with `V = Result<T, E>` an `Err` is shared
//! like any other value, and [`share_ok`](Call::share_ok) keeps it to the caller whose work it was.
//!
//! # Features
//!
//! - **`std`** (default): threads, time limits, re-entrancy reports.
//! - **`critical-section`**: [`AsyncGroup`] without `std` (`default-features = false`), on the `critical-section` crate, whose
//!   implementation the target's runtime supplies. One of the two is needed: without, the crate does not compile, and says so.
//! - **`deadlock-detection`**: a call that would close a circle of threads that wait for each other gets
//!   [`CallError::WouldDeadlock`]. Costs a process-wide lock for each call that has to sleep, and for each
//!   poll of a batch of tasks or of inline work that has waited before; and an allocation for each flight that others join or
//!   whose work it owns.
//! - **`loom`**: under `--cfg loom` the groups are built on loom's types, so that your own loom models can run through them.
//!   Build a new group in each iteration. A `wait_timeout` other than zero never fires there, and `deadlock-detection` is
//!   off. Without `--cfg loom` the feature does nothing.
//!
//! # Limits
//!
//! - A leader that never returns holds up its followers; [`wait_timeout`](Call::wait_timeout) bounds their waiting, and
//!   [`max_flight_age`](SyncGroupBuilder::max_flight_age) how many gather behind it.
//! - A task that runs its work inside its own future ([`do_call_inline`](AsyncGroup::do_call_inline)) and is not polled any
//!   more holds up its followers. With [`do_call`](AsyncGroup::do_call) only two can: if the task that drove last and the
//!   standby that was woken with it are both parked, the flight goes on with the next poll of any caller, or the next caller.
//! - A parked task that leads holds up threads that wait beside it, until it is polled or dropped.
//! - An executor that polls other tasks from inside the work of a flight (inside `wake`, or in a `block_on` in the work) makes a
//!   call of the same key by such a task look like one from inside the work: it is told [`CallError::Reentrant`].
//! - Tasks whose works wait for each other in a circle hang, as with locks.
//! - Without `std` there is no clock (no `max_flight_age`) and no re-entrancy report. Interrupts are masked while a table or a flight
//!   is looked at, for longer the more tasks wait. Nor can a panic be caught: build with `panic = "abort"`, as is usual there. Where
//!   panics unwind, one of the work reaches whoever drives, and the caller whose work it was panics as well; and after one of a
//!   waker, or of work that a caller other than its own drove, other callers of that flight may wait for ever.
//! - A [`Lead`] that is leaked, or a task's call that leads, keeps its flight on; [`forget`](SyncGroup::forget) frees the key.
//!   What such a call has left in the flight may outlive the group.
//! - Without `deadlock-detection`, threads that wait for each other in a circle hang, as with locks.
//! - What is told by thread (re-entrancy) is told to the first 2^31 - 1 threads of a process. While the thread-locals of a thread
//!   are destroyed, a batch that is polled there is not told of its own keys: it waits.

#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]
#![cfg_attr(docsrs, feature(doc_cfg))]
// What needs std must say so: the crate works without it.
#![deny(clippy::std_instead_of_core, clippy::std_instead_of_alloc, clippy::alloc_instead_of_core)]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

// Nothing else is compiled then, so that this is the only error.
#[cfg(not(any(feature = "std", feature = "critical-section")))]
compile_error!(
    "oneflight needs a lock: enable its feature `std` (on by default) or, where there is no std, `critical-section`"
);

#[cfg(any(feature = "std", feature = "critical-section"))]
mod async_group;
#[cfg(any(feature = "std", feature = "critical-section"))]
mod call;
#[cfg(all(feature = "deadlock-detection", not(loom)))]
mod deadlock;
mod error;
#[cfg(any(feature = "std", feature = "critical-section"))]
mod flight;
#[cfg(any(feature = "std", feature = "critical-section"))]
mod group;
mod outcome;
#[cfg(any(feature = "std", feature = "critical-section"))]
mod primitive;
pub mod refresh;
#[cfg(any(feature = "std", feature = "critical-section"))]
mod settings;
#[cfg(feature = "std")]
mod sync_group;
#[cfg(any(feature = "std", feature = "critical-section"))]
mod table;

#[cfg(any(feature = "std", feature = "critical-section"))]
pub use async_group::{AsyncGroup, AsyncGroupBuilder};
#[cfg(any(feature = "std", feature = "critical-section"))]
pub use call::{Call, OnAbandon};
pub use error::CallError;
#[cfg(any(feature = "std", feature = "critical-section"))]
pub use group::Lead;
#[cfg(any(feature = "std", feature = "critical-section"))]
pub use hashbrown::{DefaultHashBuilder, Equivalent};
pub use outcome::{FlightInfo, Outcome, Role, Stats};
#[cfg(feature = "std")]
pub use sync_group::{SyncGroup, SyncGroupBuilder};

#[cfg(all(doctest, feature = "std"))]
#[doc = include_str!("../README.md")]
mod readme {}
