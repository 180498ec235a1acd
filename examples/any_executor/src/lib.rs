//! One [`AsyncGroup`](oneflight::AsyncGroup), many executors.
//!
//! A group has no executor of its own, and does not care whose tasks call it. Each scene lets several callers ask for the
//! price of an anvil at the same time, and counts how often the price was looked up.
//!
//! | file | job |
//! |---|---|
//! | `scenes.rs` | the part to read: the ways to call a group, a scene each |
//! | `executors.rs` | smol, tokio and the hand-written one behind one function type |
//! | `block_on.rs` | the hand-written executor: one task, one thread, no dependencies |
//! | `price_list.rs` | what is looked up, as slowly as a scene wants |
//!
//! ```
//! println!("{}", any_executor::scenes::all_at_once());
//! ```

mod block_on;
pub mod executors;
mod price_list;
pub mod scenes;

pub use block_on::block_on;
pub use price_list::Price;
pub use scenes::Scene;
