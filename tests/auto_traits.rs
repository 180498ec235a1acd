//! Auto traits and sizes of every public type, in both directions, and that `Debug` never blocks.

#![cfg(feature = "std")]

#[path = "support/gate.rs"]
mod gate;
#[path = "support/limits.rs"]
mod limits;

use core::cell::Cell;
use core::hash::{BuildHasher, Hash, Hasher};
use core::marker::PhantomData;
use core::panic::{RefUnwindSafe, UnwindSafe};
use gate::Gate;
use limits::{until, within_limit};
use oneflight::{
    AsyncGroup, AsyncGroupBuilder, Call, CallError, DefaultHashBuilder, FlightInfo, Lead, OnAbandon, Outcome, Role,
    Stats, SyncGroup, SyncGroupBuilder,
};
use std::rc::Rc;
use std::sync::{Arc, OnceLock};
use std::thread;

/// `yes`: it compiles because the type has the trait. `no`: it compiles because the type has not; if it had, there would be
/// two ways to choose `IfItHas`'s parameter, and the compiler would ask which.
macro_rules! has {
    (yes $trait:ident $type:ty) => {
        const _: fn() = || {
            fn has<T: $trait + ?Sized>() {}
            has::<$type>();
        };
    };
    (no $trait:ident $type:ty) => {
        const _: fn() = || {
            trait IfItHas<A> {
                fn ambiguous() {}
            }
            impl<T: ?Sized> IfItHas<()> for T {}
            struct Has;
            impl<T: $trait + ?Sized> IfItHas<Has> for T {}
            let _ = <$type as IfItHas<_>>::ambiguous;
        };
    };
}

macro_rules! table {
    ($($send:tt $sync:tt $unpin:tt $unwind:tt $ref_unwind:tt $type:ty;)+) => { $(
        has!($send Send $type);
        has!($sync Sync $type);
        has!($unpin Unpin $type);
        has!($unwind UnwindSafe $type);
        has!($ref_unwind RefUnwindSafe $type);
    )+ };
}

/// `Send` and not `Sync`.
type OneThreadAtATime = Cell<u32>;
/// Neither.
type OneThread = Rc<u32>;
/// A hasher of one thread.
type LocalHasher = PhantomData<OneThread>;

type SyncCall<V, M, P> = Call<'static, SyncGroup<u32, V>, V, u32, M, P>;
type AsyncCall<V, M, P> = Call<'static, AsyncGroup<u32, V>, V, u32, M, P>;
type MakeKey = fn() -> u32;
type ShareIf<V> = fn(&V) -> bool;

table! {
//  Send
//  |   Sync
//  |   |   Unpin
//  |   |   |   UnwindSafe
//  |   |   |   |   RefUnwindSafe
//  |   |   |   |   |
    yes yes yes yes yes SyncGroup<u32, u32>;
    yes yes yes yes yes SyncGroup<OneThreadAtATime, u32>;
    // A landed value is shared by several callers at once, so it must be `Sync` for the group to be even `Send`.
    no  no  yes yes yes SyncGroup<u32, OneThreadAtATime>;
    no  no  yes yes yes SyncGroup<OneThread, u32>;
    no  no  yes yes yes SyncGroup<u32, OneThread>;
    no  no  yes yes yes SyncGroup<u32, u32, LocalHasher>;

    yes yes yes yes yes AsyncGroup<u32, u32>;
    yes yes yes yes yes AsyncGroup<OneThreadAtATime, u32>;
    no  no  yes yes yes AsyncGroup<u32, OneThreadAtATime>;
    no  no  yes yes yes AsyncGroup<OneThread, u32>;
    no  no  yes yes yes AsyncGroup<u32, OneThread>;
    no  no  yes yes yes AsyncGroup<u32, u32, LocalHasher>;

    yes yes yes no  no  SyncGroupBuilder<u32, u32>;
    yes yes yes no  no  SyncGroupBuilder<OneThread, OneThread>;
    no  no  yes no  no  SyncGroupBuilder<u32, u32, LocalHasher>;
    yes yes yes no  no  AsyncGroupBuilder<u32, u32>;
    no  no  yes no  no  AsyncGroupBuilder<u32, u32, LocalHasher>;

    // The guard may be sent: what it refers to is a shared group.
    yes yes yes no  no  Lead<'static, u32, u32, DefaultHashBuilder>;
    no  no  yes no  no  Lead<'static, u32, OneThreadAtATime, DefaultHashBuilder>;
    no  no  yes no  no  Lead<'static, u32, OneThread, DefaultHashBuilder>;

    // A call may be sent to where it is run. It is run once, by whoever has it: nothing needs it to be `Sync`.
    yes no  yes no  no  SyncCall<u32, MakeKey, ShareIf<u32>>;
    yes no  yes no  no  SyncCall<u32, OneThreadAtATime, ShareIf<u32>>;
    yes no  yes no  no  SyncCall<u32, MakeKey, OneThreadAtATime>;
    no  no  yes no  no  SyncCall<OneThread, MakeKey, ShareIf<OneThread>>;
    no  no  yes no  no  SyncCall<u32, OneThread, ShareIf<u32>>;
    yes no  yes no  no  AsyncCall<u32, MakeKey, ShareIf<u32>>;
    no  no  yes no  no  AsyncCall<u32, OneThread, ShareIf<u32>>;

    yes yes yes yes yes CallError;
    yes yes yes yes yes FlightInfo;
    yes yes yes yes yes OnAbandon;
    yes yes yes yes yes Outcome<u32>;
    yes no  yes yes no  Outcome<OneThreadAtATime>;
    no  no  yes yes yes Outcome<OneThread>;
    yes yes yes yes yes Role;
    yes yes yes yes yes Stats;
}

/// What has no name: the calls that groups make.
#[test]
fn calls_may_be_made_on_one_thread_and_run_on_another() {
    fn sendable<T: Send + Unpin>(_: &T) {}
    let group: SyncGroup<u32, u32> = SyncGroup::new();
    sendable(&group.call(&1));
    sendable(&group.call_with(&1, || 1).share_if(|_| true));
    let call = group.call(&1).max_attempts(2);
    thread::scope(|scope| {
        let called = scope.spawn(|| call.run(|| 7));
        assert_eq!(called.join().expect("no panic").map(|outcome| outcome.value), Ok(7));
    });
}

#[test]
fn what_is_kept_or_passed_often_is_small() {
    // With 100,000 keys in flight as guards, each guard counts.
    assert!(size_of::<Lead<'static, String, String, DefaultHashBuilder>>() <= 32);
    assert_eq!(size_of::<Option<Lead<'static, u64, u64, DefaultHashBuilder>>>(), size_of::<Lead<'_, u64, u64, ()>>());
    assert_eq!(size_of::<CallError>(), 1);
    assert_eq!(size_of::<Option<CallError>>(), 1);
    assert_eq!(size_of::<Outcome<u64>>(), 16);
    assert_eq!(size_of::<Result<Outcome<u64>, CallError>>(), 16);
    assert!(size_of::<FlightInfo>() <= 40);
}

/// A key whose `Eq` shows the group: under the lock of the shard that the key is in.
#[derive(Clone)]
struct Shows(Arc<OnceLock<Box<Show>>>);

type Show = dyn Fn() + Send + Sync;

impl PartialEq for Shows {
    fn eq(&self, _: &Self) -> bool {
        if let Some(show) = self.0.get() {
            show();
        }
        true
    }
}
impl Eq for Shows {}
impl Hash for Shows {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

#[test]
fn a_group_can_be_shown_where_its_lock_is_held() {
    within_limit(|| {
        let group: Arc<SyncGroup<Shows, u32>> = Arc::new(SyncGroup::builder().shards(1).build());
        let shown = Arc::new(OnceLock::new());
        let key = Shows(Arc::new(OnceLock::new()));
        let show = {
            let (group, shown) = (Arc::downgrade(&group), Arc::clone(&shown));
            move || {
                let group = group.upgrade().expect("it is being called");
                let _ = shown.set(format!("{group:?}"));
            }
        };
        assert!(key.0.set(Box::new(show)).is_ok());
        let lead = group.try_lead(&key).expect("no flight is on");
        assert_eq!(group.waiters(&key), 0);
        assert_eq!(shown.get().map(String::as_str), Some("SyncGroup { in_flight: 1, .. }"));
        drop(lead);
    });
}

/// From inside the work, with a follower, and with one shard: whatever lock were taken for it, somebody could hold it.
#[test]
fn everything_can_be_shown_from_inside_the_work() {
    within_limit(|| {
        let group: SyncGroup<u32, u32> = SyncGroup::builder().shards(1).build();
        let begun = Gate::new();
        let shown = thread::scope(|scope| {
            let leader = scope.spawn(|| {
                let mut shown = Vec::new();
                let outcome = group.call(&1).run(|| {
                    begun.open();
                    until("the follower waits", || group.waiters(&1) == 1);
                    let lead = group.try_lead(&2);
                    shown.push(format!("{group:?}"));
                    shown.push(format!("{:?}", group.call(&1).max_attempts(3)));
                    shown.push(format!("{:?}", lead.as_ref().expect("no flight of 2 is on")));
                    shown.push(format!("{:?}", group.flight_info(&1).expect("it is on")));
                    shown.push(format!("{:?}", group.stats()));
                    shown.push(format!("{:?}", SyncGroup::<u32, u32>::builder().shards(2)));
                    shown.push(format!("{:?}", (Role::Led, OnAbandon::Fail, CallError::TimedOut)));
                    7
                });
                shown.push(format!("{:?}", outcome.expect("nothing refuses it")));
                shown
            });
            begun.wait();
            let follower = scope.spawn(|| group.do_call(&1, || 8));
            assert_eq!(follower.join().expect("no panic"), 7);
            leader.join().expect("no panic")
        });
        let starts = [
            "SyncGroup { in_flight: 2",
            "Call { wait_timeout: None, max_attempts: 3",
            "Lead { attempt: 1",
            "FlightInfo { waiters: 1, attempts: 1, forgotten: false, age: None }",
            "Stats { flights: 2, joins: 1",
            "SyncGroupBuilder { settings: Settings { shards: 2",
            "(Led, Fail, TimedOut)",
            "Outcome { value: 7, role: Led, shared: true }",
        ];
        assert_eq!(shown.len(), starts.len());
        for (shown, start) in shown.iter().zip(starts) {
            assert!(shown.starts_with(start), "{shown}");
        }
    });
}

/// Groups of keys, values and hashers that have none of these traits have them all the same.
#[test]
fn groups_ask_nothing_of_what_they_hold() {
    struct Plain;
    struct PlainHasher;
    impl BuildHasher for PlainHasher {
        type Hasher = std::hash::DefaultHasher;
        fn build_hasher(&self) -> Self::Hasher {
            std::hash::DefaultHasher::new()
        }
    }
    let group: SyncGroup<Plain, Plain, PlainHasher> = SyncGroup::with_hasher(PlainHasher);
    assert_eq!(format!("{group:?}"), "SyncGroup { in_flight: 0, .. }");
    assert_eq!(group.in_flight(), 0);
    assert!(group.snapshot().is_empty());
    let group: SyncGroup<Plain, Plain> = SyncGroup::default();
    assert_eq!(group.stats(), Stats::default());
}
