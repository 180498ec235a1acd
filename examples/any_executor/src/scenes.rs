//! The scenes. Each begins some calls, waits until all are inside, lets the price list answer, and counts.

use std::fmt;
use std::rc::Rc;
use std::sync::Arc;
use std::thread;

use oneflight::AsyncGroup;
use tokio::runtime;

use crate::block_on;
use crate::executors::{self, Run, Task, all_of};
use crate::price_list::{Price, PriceList, wait_until};

type Prices = AsyncGroup<String, Price>;

const KEY: &str = "anvil";
const ANVIL: Price = 1_999;
const POSTAGE: Price = 450;

/// What a scene came to.
#[derive(Debug)]
pub struct Scene {
    /// What it showed.
    pub name: &'static str,
    /// How many asked.
    pub callers: usize,
    /// What those got who did not go away.
    pub prices: Vec<Price>,
    /// How often the work was begun.
    pub lookups: usize,
}

impl fmt::Display for Scene {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, callers, prices, lookups } = self;
        write!(f, "{name:<44} {callers:>2} callers, {:>2} answered, lookups: {lookups}", prices.len())
    }
}

/// Eight tasks of one executor.
#[must_use]
pub fn one_executor(name: &'static str, run: Run) -> Scene {
    let group = Arc::new(Prices::new());
    let list = PriceList::new();
    let tasks = (0..8).map(|_| task(&group, &list)).collect();

    let executor = thread::spawn(move || run(tasks));
    wait_until(|| group.waiters(KEY) == 7);
    list.answer(ANVIL);

    let prices = executor.join().expect("the executor did not panic");
    Scene { name, callers: 8, prices, lookups: list.lookups() }
}

/// Two tasks of each executor and a plain thread, in one flight.
#[must_use]
pub fn all_at_once() -> Scene {
    let group = Arc::new(Prices::new());
    let list = PriceList::new();

    let mut callers = 0;
    let mut running = Vec::new();
    for (_, run) in executors::ALL {
        let tasks = vec![task(&group, &list), task(&group, &list)];
        callers += tasks.len();
        running.push(thread::spawn(move || run(tasks)));
    }
    let (of_thread, list_of_thread) = (Arc::clone(&group), list.clone());
    callers += 1;
    running.push(thread::spawn(move || {
        let price = of_thread.do_call_blocking(KEY, || list_of_thread.look_up_blocking());
        vec![price]
    }));

    // Whoever was first leads, and all others wait, whatever they are.
    wait_until(|| group.waiters(KEY) == callers - 1);
    list.answer(ANVIL);

    let prices = running.into_iter().flat_map(|running| running.join().expect("nobody panicked")).collect();
    Scene { name: "all of them and a thread, at the same time", callers, prices, lookups: list.lookups() }
}

/// A leader on tokio is aborted halfway. A follower on smol goes on from there, with the same work.
#[must_use]
pub fn leader_dropped() -> Scene {
    let group = Arc::new(Prices::new());
    let list = PriceList::new();
    let runtime = runtime::Builder::new_multi_thread().worker_threads(2).build().expect("a runtime");

    let leader = runtime.spawn({
        let (group, list) = (Arc::clone(&group), list.clone());
        async move { group.do_call(KEY, || list.look_up_with_postage()).await }
    });
    list.answer(ANVIL);
    wait_until(|| list.unread() == 0);

    let follower = smol::spawn({
        let (group, list) = (Arc::clone(&group), list.clone());
        async move { group.do_call(KEY, || list.look_up_with_postage()).await }
    });
    wait_until(|| group.waiters(KEY) == 1);

    leader.abort();
    let aborted = runtime.block_on(leader).expect_err("it waits for the postage, so it has not ended");
    assert!(aborted.is_cancelled());

    list.answer(POSTAGE);
    let prices = vec![smol::block_on(follower)];
    Scene { name: "leader dropped on tokio, follower on smol", callers: 2, prices, lookups: list.lookups() }
}

/// Work that borrows, and that could not be sent to another thread.
#[must_use]
pub fn borrowed_work() -> Scene {
    let group = Prices::new();
    let list = PriceList::new();
    let quantities = Rc::new([2, 1, 3]);
    let total = || async { quantities.iter().sum::<Price>() * list.clone().look_up().await };

    let executor = smol::LocalExecutor::new();
    let tasks = (0..3).map(|_| executor.spawn(group.do_call_inline(KEY, total))).collect();
    let prices = smol::block_on(executor.run(async {
        while group.waiters(KEY) < 2 {
            smol::future::yield_now().await;
        }
        list.answer(ANVIL);
        all_of(tasks).await
    }));
    Scene { name: "do_call_inline with borrowed data", callers: 3, prices, lookups: list.lookups() }
}

/// Work that goes on without callers, on smol.
#[must_use]
pub fn detached_on_smol() -> Scene {
    let group = Prices::builder().spawner(|work| smol::spawn(work).detach()).build();
    detached("last caller gone, work goes on on smol", group)
}

/// Work that goes on without callers, on tokio.
#[must_use]
pub fn detached_on_tokio() -> Scene {
    let runtime = runtime::Builder::new_multi_thread().worker_threads(1).build().expect("a runtime");
    let tokio = runtime.handle().clone();
    let group = Prices::builder().spawner(move |work| drop(tokio.spawn(work))).build();
    detached("last caller gone, work goes on on tokio", group)
}

fn detached(name: &'static str, group: Prices) -> Scene {
    let group = Arc::new(group);
    let list = PriceList::new();

    // A client that asks and hangs up at once.
    let mut call = Box::pin(group.call(KEY).detach().run(|| list.clone().look_up_with_postage()));
    let at_once = block_on(smol::future::poll_once(&mut call));
    assert!(at_once.is_none(), "there was an answer before there was one");
    drop(call);

    // Nobody waits, and still somebody takes the answer.
    list.answer(ANVIL);
    wait_until(|| list.unread() == 0);

    // Another client comes, and gets what the first one began.
    let late = thread::spawn({
        let task = task(&group, &list);
        || block_on(task)
    });
    wait_until(|| group.waiters(KEY) == 1);
    list.answer(POSTAGE);

    let prices = vec![late.join().expect("it did not panic")];
    Scene { name, callers: 2, prices, lookups: list.lookups() }
}

/// A caller: what any service would write, on any executor.
fn task(group: &Arc<Prices>, list: &PriceList) -> Task {
    let (group, list) = (Arc::clone(group), list.clone());
    Box::pin(async move { group.do_call(KEY, || list.look_up()).await })
}
