//! Different executors behind one function type: it runs tasks side by side and returns what they came to.

use std::future::Future;
use std::pin::Pin;
use std::thread;

use tokio::runtime;

use crate::block_on;
use crate::price_list::Price;

/// A caller, for an executor to run.
pub type Task = Pin<Box<dyn Future<Output = Price> + Send>>;

/// Runs tasks to their ends.
pub type Run = fn(Vec<Task>) -> Vec<Price>;

/// All of them, with their names.
pub const ALL: [(&str, Run); 5] = [
    ("smol on one thread", smol_on_one_thread),
    ("smol on two threads", smol_on_two_threads),
    ("tokio, current_thread", tokio_current_thread),
    ("tokio, multi_thread", tokio_multi_thread),
    ("a hand-written block_on", hand_written),
];

fn smol_on_one_thread(tasks: Vec<Task>) -> Vec<Price> {
    let executor = smol::LocalExecutor::new();
    let tasks: Vec<_> = tasks.into_iter().map(|task| executor.spawn(task)).collect();
    smol::block_on(executor.run(all_of(tasks)))
}

fn smol_on_two_threads(tasks: Vec<Task>) -> Vec<Price> {
    let executor = smol::Executor::new();
    let tasks: Vec<_> = tasks.into_iter().map(|task| executor.spawn(task)).collect();
    let (working, done) = async_channel::bounded::<()>(1);
    thread::scope(|threads| {
        for _ in 0..2 {
            threads.spawn(|| smol::block_on(executor.run(done.recv())));
        }
        let prices = smol::block_on(all_of(tasks));
        drop(working);
        prices
    })
}

fn tokio_current_thread(tasks: Vec<Task>) -> Vec<Price> {
    on_tokio(&runtime::Builder::new_current_thread().build().expect("a runtime"), tasks)
}

fn tokio_multi_thread(tasks: Vec<Task>) -> Vec<Price> {
    on_tokio(&runtime::Builder::new_multi_thread().worker_threads(2).build().expect("a runtime"), tasks)
}

fn on_tokio(runtime: &runtime::Runtime, tasks: Vec<Task>) -> Vec<Price> {
    let tasks: Vec<_> = tasks.into_iter().map(|task| runtime.spawn(task)).collect();
    let prices = runtime.block_on(all_of(tasks));
    prices.into_iter().map(|price| price.expect("a task that was neither aborted nor panicked")).collect()
}

/// A thread for each task.
fn hand_written(tasks: Vec<Task>) -> Vec<Price> {
    let threads: Vec<_> = tasks.into_iter().map(|task| thread::spawn(|| block_on(task))).collect();
    threads.into_iter().map(|thread| thread.join().expect("a task that did not panic")).collect()
}

/// What tasks that run already come to.
pub(crate) async fn all_of<T>(tasks: Vec<impl Future<Output = T>>) -> Vec<T> {
    let mut outputs = Vec::with_capacity(tasks.len());
    for task in tasks {
        outputs.push(task.await);
    }
    outputs
}
