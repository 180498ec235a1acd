//! How fast oneflight is, beside the crates that users would pick instead and beside hand-written floors.
//!
//! `README.md` says how to run the benches and what they showed. This library is what they share:
//!
//! | module | job |
//! |---|---|
//! | [`suite`] | the workloads, part by part, and their targets |
//! | [`contender`] | everything that is measured, behind one small trait for threads and one for tasks |
//! | [`workload`] | what threads are made to do, and how long it took |
//! | [`fan_out`] | the workload that needs hundreds of sleeping threads |
//! | [`task_load`] | what tasks are made to do |
//! | [`task_work`] | work for tasks, which waits until it is told to go on |
//! | [`executor`] | executors to run tasks on |
//! | [`load`] | keys, and work of a known length |
//! | [`rounds`] | interleaved rounds, medians, ratios |
//! | [`report`] | figures, targets, the tables, the picture, the exit code |
//! | [`machine`] | cores, and whether a thread sleeps |
//! | [`options`] | the command line |

#![deny(clippy::std_instead_of_core, clippy::std_instead_of_alloc, clippy::alloc_instead_of_core)]

extern crate alloc;

pub mod contender;
pub mod crowd;
pub mod executor;
pub mod fan_out;
pub mod load;
pub mod machine;
pub mod options;
pub mod report;
pub mod rounds;
pub mod suite;
pub mod task_load;
pub mod task_work;
pub mod workload;
