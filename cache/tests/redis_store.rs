//! The store on a real server, for threads and for tasks: what each step does, and what it does to others' keys.
//!
//! | file | is about |
//! |---|---|
//! | `leases.rs` | every return of every step of a lease |
//! | `values.rs` | what is put, read and removed |
//! | `generations.rs` | clearing, and servers that forget |
//! | `servers.rs` | servers that refuse: out of memory, other types, unknown scripts, users who may not |
//! | `pushes.rs` | what others are told |
//! | `caches.rs` | what one process writes, and another serves |
//! | `standalone.rs` | leases without a cache |
//! | `tasks.rs` | what only tasks have, and clusters |

mod redis_support;

#[path = "redis_store/bench.rs"]
mod bench;
#[path = "redis_store/caches.rs"]
mod caches;
#[path = "redis_store/generations.rs"]
mod generations;
#[path = "redis_store/leases.rs"]
mod leases;
#[path = "redis_store/pushes.rs"]
mod pushes;
#[path = "redis_store/servers.rs"]
mod servers;
#[path = "redis_store/standalone.rs"]
mod standalone;
#[path = "redis_store/tasks.rs"]
mod tasks;
#[path = "redis_store/values.rs"]
mod values;
