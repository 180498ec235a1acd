//! Two tiers: what this process writes is never served old by it, whoever reads meanwhile.

#![cfg(loom)]

use loom::sync::atomic::{AtomicBool, Ordering};
use loom::sync::{Arc, Mutex};
use oneflight_cache::fill::{Epoch, Token};
use oneflight_cache::lease::{Acquired, Announces, BlockingLease, Claim, Publication, ToldWritten, Watch};
use oneflight_cache::{BlockingStore, Entry, Tiered, Time};
use oneflight_loom_tests::{KEY, check, join};
use std::convert::Infallible;
use std::time::Duration;

const HOUR: Duration = Duration::from_secs(3_600);

type Tier = Tiered<u32, u32, Far>;

/// One row, which may be shared with other processes.
#[derive(Default)]
struct Far(Mutex<Option<Entry<u32>>>);

impl Far {
    fn set(&self, entry: Option<Entry<u32>>) {
        *self.0.lock().expect("nothing panics") = entry;
    }
}

impl BlockingStore<u32, u32> for Far {
    type Error = Infallible;
    type Displaced = ();
    type Lease = Self;

    fn lease(&self) -> Option<&Self> {
        Some(self)
    }

    fn get(&self, _: &u32, _: Time) -> Result<Option<Entry<u32>>, Infallible> {
        Ok(self.0.lock().expect("nothing panics").clone())
    }

    fn put(&self, _: &u32, entry: Entry<u32>, _: Time) -> Result<(), Infallible> {
        self.set(Some(entry));
        Ok(())
    }

    fn remove(&self, _: &u32) -> Result<(), Infallible> {
        self.set(None);
        Ok(())
    }

    fn clear(&self) -> Result<(), Infallible> {
        self.set(None);
        Ok(())
    }
}

/// Of a holder that nobody takes the lease from.
impl BlockingLease<u32, u32> for Far {
    type Error = Infallible;

    fn acquire(&self, _: &u32, claim: Claim, _: Time) -> Result<Acquired<u32>, Infallible> {
        Ok(Acquired::Leader { epoch: claim.token })
    }

    fn renew(&self, _: &u32, _: Token, _: Duration) -> Result<bool, Infallible> {
        Ok(true)
    }

    fn publish(&self, _: &u32, _: Token, _: Epoch, entry: Entry<u32>, _: Time) -> Result<Publication, Infallible> {
        self.set(Some(entry));
        Ok(Publication::Stored)
    }

    fn release(&self, _: &u32, _: Token) -> Result<(), Infallible> {
        Ok(())
    }
}

struct Deaf;

impl Watch for Deaf {
    fn is_listening(&self) -> bool {
        false
    }
}

impl Announces<u32> for Far {
    fn key_number(&self, key: &u32) -> u64 {
        u64::from(*key)
    }

    fn watch_writes(&self, _: ToldWritten) -> Box<dyn Watch> {
        Box::new(Deaf)
    }
}

fn entry(value: u32) -> Entry<u32> {
    Entry::new(value, value, Time::START, Time::START.after(HOUR), Time::START.after(HOUR), HOUR)
}

fn put(tier: &Tier, value: u32) {
    BlockingStore::put(tier, &KEY, entry(value), Time::START).expect("it does not fail");
}

fn publish(tier: &Tier, value: u32) {
    let publication = BlockingLease::publish(tier, &KEY, 1, 1, entry(value), Time::START);
    assert_eq!(publication, Ok(Publication::Stored));
}

fn read(tier: &Tier) -> Option<u32> {
    BlockingStore::get(tier, &KEY, Time::START).expect("it does not fail").map(|entry| *entry.value())
}

/// A reader that may keep the old row near, while `write` is done, after which everybody reads `after`.
fn reader_meets(write: fn(&Tier), after: Option<u32>) {
    let tier = Arc::new(Tiered::new(4, HOUR, Far::default()));
    put(&tier, 1);
    // Loom sees nothing of a look at what is near, so it has to hear that it matters who comes first.
    let first = Arc::new(AtomicBool::new(true));
    let reading = loom::thread::spawn({
        let (tier, first) = (Arc::clone(&tier), Arc::clone(&first));
        move || {
            first.store(false, Ordering::Relaxed);
            read(&tier)
        }
    });
    first.store(false, Ordering::Relaxed);
    write(&tier);
    join(reading);
    assert_eq!(read(&tier), after);
}

#[test]
fn a_put_meets_a_reader() {
    check(|| reader_meets(|tier| put(tier, 2), Some(2)));
}

#[test]
fn a_removal_meets_a_reader() {
    let remove = |tier: &Tier| BlockingStore::<u32, u32>::remove(tier, &KEY).expect("it does not fail");
    check(move || reader_meets(remove, None));
}

#[test]
fn a_removal_of_everything_meets_a_reader() {
    let clear = |tier: &Tier| BlockingStore::<u32, u32>::clear(tier).expect("it does not fail");
    check(move || reader_meets(clear, None));
}

#[test]
fn a_publication_meets_a_reader() {
    check(|| reader_meets(|tier| publish(tier, 2), Some(2)));
}

#[test]
fn a_publication_meets_a_put() {
    check(|| {
        let tier = Arc::new(Tiered::new(4, HOUR, Far::default()));
        let publishing = loom::thread::spawn({
            let tier = Arc::clone(&tier);
            move || publish(&tier, 1)
        });
        put(&tier, 2);
        join(publishing);
        let last = BlockingStore::get(tier.far(), &KEY, Time::START).expect("it does not fail");
        assert_eq!(read(&tier), last.map(|entry| *entry.value()));
    });
}
