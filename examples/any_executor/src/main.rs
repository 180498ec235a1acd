//! `any_executor`: shows what one group does for callers on different executors, a line each.
//!
//! ```text
//! cargo run -p any_executor
//! ```

use any_executor::{executors, scenes};

fn main() {
    for (name, run) in executors::ALL {
        println!("{}", scenes::one_executor(name, run));
    }
    println!("{}", scenes::all_at_once());
    println!("{}", scenes::leader_dropped());
    println!("{}", scenes::borrowed_work());
    println!("{}", scenes::detached_on_smol());
    println!("{}", scenes::detached_on_tokio());
}
