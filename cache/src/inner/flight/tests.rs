//! What is asked for within the time of the thread that asks.

use crate::blocking::Cache;
use crate::entry::Entry;
use crate::error::{BoxError, Error};
use crate::fill::{Epoch, Token};
use crate::lease::{Acquired, BlockingLease, Claim, Publication};
use crate::store::BlockingStore;
use crate::time::Time;
use crate::time_limit::TimeLimit;
use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

const HOUR: Duration = Duration::from_secs(3_600);
/// Passes soon.
const SOON: Duration = Duration::from_millis(20);
/// Longer than anything takes on the busiest machine.
const BUSY: Duration = Duration::from_secs(30);

/// The name of a request, and whether whoever asks has so much time and no more.
type Step = (&'static str, bool);

/// A server that has nothing, and tells what it is asked for.
struct Server {
    steps: Sender<Step>,
    gives_leases: bool,
    /// Whether it does not answer who gives a lease up. As the clients of others, it waits for as long as there is time.
    hangs: bool,
}

impl Server {
    fn cache(gives_leases: bool, hangs: bool) -> (Cache<u64, u32, BoxError, Self>, Receiver<Step>) {
        let (steps, taken) = channel();
        (Cache::builder().store(Self { steps, gives_leases, hangs }).build_blocking(), taken)
    }

    fn step(&self, name: &'static str) {
        // The test may be over.
        let _ = self.steps.send((name, TimeLimit::left().is_some()));
    }
}

impl BlockingStore<u64, u32> for Server {
    type Error = io::Error;
    type Displaced = ();
    type Lease = Self;

    fn lease(&self) -> Option<&Self> {
        Some(self)
    }

    fn get(&self, _: &u64, _: Time) -> io::Result<Option<Entry<u32>>> {
        self.step("get");
        Ok(None)
    }

    fn put(&self, _: &u64, _: Entry<u32>, _: Time) -> io::Result<()> {
        unreachable!("nothing is put")
    }

    fn remove(&self, _: &u64) -> io::Result<()> {
        unreachable!("nothing is removed")
    }

    fn clear(&self) -> io::Result<()> {
        unreachable!("nothing is removed")
    }
}

impl BlockingLease<u64, u32> for Server {
    type Error = io::Error;

    fn acquire(&self, _: &u64, _: Claim, _: Time) -> io::Result<Acquired<u32>> {
        self.step("acquire");
        if self.gives_leases { Ok(Acquired::Leader { epoch: 1 }) } else { Err(io::ErrorKind::TimedOut.into()) }
    }

    fn renew(&self, _: &u64, _: Token, _: Duration) -> io::Result<bool> {
        Ok(true)
    }

    fn publish(&self, _: &u64, _: Token, _: Epoch, _: Entry<u32>, _: Time) -> io::Result<Publication> {
        self.step("publish");
        Ok(Publication::Stored)
    }

    fn release(&self, _: &u64, _: Token) -> io::Result<()> {
        self.step("release");
        match TimeLimit::left() {
            Some(left) if self.hangs => {
                std::thread::sleep(left);
                Err(io::ErrorKind::TimedOut.into())
            }
            _ => Ok(()),
        }
    }
}

#[test]
fn what_is_asked_for_before_a_load_has_the_time_of_its_caller() {
    let (cache, steps) = Server::cache(false, false);
    assert_eq!(*cache.call(&1).timeout(HOUR).refresh(|| Ok(7)).unwrap(), 7);
    assert_eq!(steps.try_iter().collect::<Vec<_>>(), [("get", true), ("acquire", true), ("release", true)]);
    assert_eq!(*cache.refresh(&1, || Ok(8)).unwrap(), 8);
    assert_eq!(steps.try_iter().collect::<Vec<_>>(), [("get", false), ("acquire", false), ("release", false)]);
}

#[test]
fn what_is_asked_for_after_a_load_has_its_time() {
    let (cache, steps) = Server::cache(true, false);
    let call = || cache.call(&1).timeout(HOUR);
    assert_eq!(*call().refresh(|| Ok(7)).unwrap(), 7);
    assert_eq!(steps.try_iter().collect::<Vec<_>>(), [("get", true), ("acquire", true), ("publish", false)]);
    assert!(matches!(call().refresh(|| Err("it fails".into())), Err(Error::Load(_))));
    assert_eq!(steps.try_iter().collect::<Vec<_>>(), [("get", true), ("acquire", true), ("release", false)]);
}

#[test]
fn a_lease_that_is_not_given_up_in_time_is_given_up_beside_its_caller() {
    let (cache, steps) = Server::cache(false, true);
    let late = cache.call(&1).timeout(SOON).refresh(|| unreachable!("its time is up"));
    assert!(matches!(late, Err(Error::Deadline)), "{late:?}");
    // By another thread, which has all the time there is. If the machine was busy, the caller did not ask.
    while steps.recv_timeout(BUSY).expect("it is given up") != ("release", false) {}
}
