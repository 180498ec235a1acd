use super::*;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::hash::BuildHasherDefault;
use core::sync::atomic::AtomicU32;
use hashbrown::DefaultHashBuilder;
use std::hash::DefaultHasher;

type Strings = Table<String, (), DefaultHashBuilder>;

fn table(shards: usize) -> Strings {
    Table::new(shards, DefaultHashBuilder::default(), None)
}

fn lead<K: Hash + Eq + Clone, S: BuildHasher>(table: &Table<K, (), S>, key: &K) -> FlightId {
    match table.join_or_lead(table.hash(key), key, || key.clone(), None, |_, _| ()) {
        Found::Led(id) => id,
        Found::Joined(..) => panic!("there is a flight of this key"),
    }
}

fn joins<S: BuildHasher>(table: &Table<String, (), S>, key: &str) -> Option<FlightId> {
    match table.join_or_lead(table.hash(key), key, || key.to_string(), None, |_, _| ()) {
        Found::Joined(id, (), _) => Some(id),
        Found::Led(id) => {
            remove(table, id).expect("it has just been put there");
            None
        }
    }
}

fn remove<K, S>(table: &Table<K, (), S>, id: FlightId) -> Option<K> {
    let (_, entry) = table.update(id, |_, _| (Verdict::Remove, ()))?;
    Some(entry.expect("it was to be removed").key)
}

fn forget(table: &Strings, key: &str) {
    table.peek(key, |entry, _| entry.expect("there is a flight of this key").admission.forget());
}

#[test]
fn with_a_key_of_eight_bytes_an_entry_takes_32_and_a_shard_128() {
    assert_eq!(size_of::<Entry<u64, crate::primitive::Arc<()>>>(), 32);
    assert_eq!(size_of::<Option<Entry<u64, crate::primitive::Arc<()>>>>(), 32);
    assert_eq!(size_of::<CachePadded<Shard<u64, crate::primitive::Arc<()>>>>(), 128);
}

#[test]
fn shards_are_a_power_of_two_within_what_a_hash_can_name() {
    for (asked, made) in [(0, 1), (1, 1), (2, 2), (3, 4), (200, 256), (usize::MAX, Strings::MAX_SHARDS)] {
        assert_eq!(table(asked).shards.len(), made, "{asked}");
    }
}

#[test]
fn keys_spread_over_the_shards_whatever_the_hasher_does() {
    for step in [1_u64, 1 << 8, 1 << 32] {
        let shards: std::collections::HashSet<usize> =
            (0..1_000_u64).map(|n| KeyHash::new(n * step).shard(256)).collect();
        assert!(shards.len() > 128, "step {step}: {} shards used", shards.len());
    }
    let in_shard: std::collections::HashSet<u32> = (0..1_000_u64).map(|n| KeyHash::new(n).in_shard()).collect();
    assert_eq!(in_shard.len(), 1_000);
}

#[test]
fn an_entry_is_found_by_its_key_and_removed_by_its_identity() {
    let table = table(4);
    let id = lead(&table, &"k".to_string());
    assert_eq!(table.len(), 1);
    assert_eq!(joins(&table, "k").expect("it is on").sequence, id.sequence);
    assert!(joins(&table, "other").is_none());
    assert_eq!(remove(&table, id).as_deref(), Some("k"));
    assert_eq!(remove(&table, id), None);
    assert_eq!(table.len(), 0);
}

#[test]
fn an_old_leader_cannot_remove_a_newer_flight_of_its_key() {
    let table = table(1);
    let key = "k".to_string();
    let old = lead(&table, &key);
    forget(&table, "k");
    let new = lead(&table, &key);
    assert_ne!(old.sequence, new.sequence);
    assert_eq!(joins(&table, "k").expect("the new one is on").sequence, new.sequence);
    assert!(remove(&table, old).is_some(), "a forgotten flight stays until it ends");
    assert!(remove(&table, old).is_none());
    assert_eq!(joins(&table, "k").expect("the new one is still on").sequence, new.sequence);
    assert!(remove(&table, new).is_some());
}

#[test]
fn an_entry_that_is_kept_stays() {
    let table = table(1);
    let id = lead(&table, &"k".to_string());
    let (answer, entry) = table.update(id, |_, _| (Verdict::Keep, 7)).expect("it is on");
    assert_eq!(answer, 7);
    assert!(entry.is_none());
    assert!(joins(&table, "k").is_some());
}

/// The numbers of a shard go round after 2^32 flights; a flight that lasts that long keeps its own.
#[test]
fn a_number_that_is_still_worn_by_an_old_flight_is_not_given_again() {
    let table = table(1);
    let key = "k".to_string();
    let old = lead(&table, &key);
    forget(&table, "k");
    let second = lead(&table, &key);
    forget(&table, "k");
    table.shards[0].with(|entries| entries.begun = u64::from(old.sequence.0.get()) - 1 + (1 << 32));
    let new = lead(&table, &key);
    assert!(![old.sequence, second.sequence].contains(&new.sequence));
    assert_eq!(table.len(), 3);
    for id in [old, second, new] {
        assert!(remove(&table, id).is_some());
    }
    table.shards[0].with(|entries| entries.begun = u64::from(u32::MAX));
    let round = lead(&table, &key);
    let next = lead(&table, &"other".to_string());
    assert_eq!((round.sequence, next.sequence), (Sequence::of(0), Sequence::of(1)));
}

#[test]
fn memory_is_given_back_after_a_burst_and_kept_for_a_few() {
    let table: Table<u64, (), DefaultHashBuilder> = Table::new(1, DefaultHashBuilder::default(), None);
    let capacity = || table.shards[0].with(|entries| entries.flights.capacity());
    let ids: Vec<FlightId> = (0..10_000).map(|key| lead(&table, &key)).collect();
    assert!(capacity() >= 10_000);
    for (done, id) in ids.into_iter().enumerate() {
        let before = capacity();
        assert!(remove(&table, id).is_some());
        let (left, after) = (10_000 - (done + 1), capacity());
        assert!(after <= (left * 16).max(28), "{left} flights left, room for {after}");
        // The newest stands elsewhere. An entry that is taken out may leave its place unusable, so the room is not exact.
        let Some(older) = left.checked_sub(1) else { break };
        match [before, before - 1].map(|room| room > 14 && older < room / 8) {
            [true, true] => assert!(after < before - 1 && after >= 2 * older, "{older} left: from {before} to {after}"),
            [false, false] => assert!(after >= before - 1, "too early, {older} left: from {before} to {after}"),
            _ => {}
        }
    }
    let few = capacity();
    assert!(few > 0, "the room for a few is kept");
    for key in 0..few as u64 {
        let id = lead(&table, &key);
        assert_eq!(capacity(), few, "a lone caller allocates nothing");
        assert!(remove(&table, id).is_some());
        assert_eq!(capacity(), few, "and frees nothing");
    }
}

#[test]
fn growing_finds_every_entry_again_without_hashing_keys_again() {
    /// Hashes like its number, once.
    #[derive(Clone)]
    struct Once(u64, alloc::sync::Arc<AtomicU32>);
    impl Hash for Once {
        fn hash<H: core::hash::Hasher>(&self, state: &mut H) {
            assert_eq!(self.1.fetch_add(1, Ordering::Relaxed), 0, "hashed again");
            self.0.hash(state);
        }
    }
    impl PartialEq for Once {
        fn eq(&self, other: &Self) -> bool {
            self.0 == other.0
        }
    }
    impl Eq for Once {}

    let table: Table<Once, (), BuildHasherDefault<DefaultHasher>> = Table::new(2, BuildHasherDefault::default(), None);
    let ids: Vec<FlightId> = (0..2_000).map(|n| lead(&table, &Once(n, alloc::sync::Arc::default()))).collect();
    for (n, id) in ids.into_iter().enumerate() {
        assert_eq!(remove(&table, id).map(|key| key.0), Some(n as u64));
    }
}

#[test]
fn the_key_is_made_by_the_one_who_leads_and_by_nobody_else() {
    let table = table(1);
    let made = AtomicU32::new(0);
    let call = |key: &str| {
        let make = || {
            made.fetch_add(1, Ordering::Relaxed);
            key.to_string()
        };
        match table.join_or_lead(table.hash(key), key, make, None, |_, _| ()) {
            Found::Led(_) => "led",
            Found::Joined(..) => "joined",
        }
    };
    assert_eq!((call("a"), made.load(Ordering::Relaxed)), ("led", 1));
    assert_eq!((call("a"), made.load(Ordering::Relaxed)), ("joined", 1));
    assert_eq!((call("b"), made.load(Ordering::Relaxed)), ("led", 2));
}

#[test]
fn no_clock_is_read_without_an_age_limit() {
    let table = table(1);
    assert!(table.clock().is_none());
    assert_eq!(table.time(), Time { now: NonZeroU32::MIN, limit: None });
}

#[test]
fn an_aged_flight_is_skipped_but_stays_until_it_ends() {
    let clock = AgeClock::new(core::time::Duration::ZERO);
    let table: Strings = Table::new(1, DefaultHashBuilder::default(), Some(clock));
    let key = "k".to_string();
    let old = lead(&table, &key);
    let new = lead(&table, &key);
    assert_eq!(table.len(), 2);
    assert!(remove(&table, old).is_some());
    assert!(remove(&table, new).is_some());
}

/// No test would notice by what a group does that its tables are slow: all keys of a shard in one place.
#[test]
fn each_part_of_a_hash_serves_its_purpose() {
    let hash = KeyHash(0xABCD_1234_5678_EF01);
    assert_eq!(hash.bits(), 0xABCD_1234_5678_EF01);
    assert_eq!(hash.shard(1 << 16), 0xABCD);
    assert_eq!(hash.shard(256), 0xCD);
    assert_eq!(hash.in_shard(), 0x1234_5678);
    // hashbrown's position and hashbrown's tag.
    assert_eq!(table_hash(0x1234_5678), 0x1234_5678_1234_5678);
    // Hashes that differ in one bit only, whichever it is, lie in different shards or places.
    let parts = |hash| (KeyHash::new(hash).shard(1 << 16), KeyHash::new(hash).in_shard());
    assert!((0..64).all(|bit| parts(1 << bit) != parts(0)));
}

/// Or it would look young again when the clock has gone round.
#[test]
fn a_flight_that_is_met_when_it_is_too_old_is_closed_for_good() {
    let clock = Some(AgeClock::new(core::time::Duration::ZERO));
    let table: Table<u64, (), DefaultHashBuilder> = Table::new(1, DefaultHashBuilder::default(), clock);
    let forgotten = || {
        let mut forgotten = Vec::new();
        table.for_each_shard(|entries| {
            forgotten.extend(entries.iter().filter(|entry| entry.admission.is_forgotten()).map(|entry| entry.key));
        });
        forgotten
    };
    // The first one moves to the hash table when the next one begins, and the other keys are not touched.
    let others = [2, 3].map(|key| lead(&table, &key));
    let old = lead(&table, &1);
    assert!(forgotten().is_empty());
    let newer = lead(&table, &1);
    assert_eq!(forgotten(), [1]);
    let newest = lead(&table, &1);
    assert_eq!(forgotten(), [1, 1]);
    for id in [newest, others[0], old, newer, others[1]] {
        assert!(remove(&table, id).is_some());
    }
}
