//! Request coalescing: the first caller of a key does the work, everyone else shares the result.
#![no_std]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

#[cfg(feature = "std")]
mod call;
#[cfg(all(feature = "deadlock-detection", not(loom)))]
mod deadlock;
mod error;
#[cfg(feature = "std")]
mod flight;
mod outcome;
#[cfg(feature = "std")]
mod primitive;
#[cfg(feature = "std")]
mod sync_group;
#[cfg(feature = "std")]
mod table;

#[cfg(feature = "std")]
pub use call::{Call, OnAbandon};
pub use error::CallError;
#[cfg(feature = "std")]
pub use hashbrown::{DefaultHashBuilder, Equivalent};
pub use outcome::{FlightInfo, Outcome, Role, Stats};
#[cfg(feature = "std")]
pub use sync_group::{Lead, SyncGroup, SyncGroupBuilder};
