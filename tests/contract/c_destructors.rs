//! C7, C8 and rule 7: the group is called from destructors, and from whatever else of the user's it runs.

use crate::support::acting::acts_for;
use crate::support::callers::{Blown, CALLER, Callers, LEADER, blow};
use crate::support::gate::Gate;
use crate::support::limits::{until, within_limit};
use crate::support::things::{Hook, Hooked, Sites};
use crate::support::way::{Answer, AnyGroup, Options, Setup, Way, group, group_with};
use crate::support::work::IntoWork;
use core::cell::RefCell;
use core::panic::AssertUnwindSafe;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use core::time::Duration;
use oneflight::{CallError, Equivalent, Role, SyncGroup};
use std::collections::BTreeSet;
use std::panic::catch_unwind;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;

/// Does something when it is dropped.
struct OnDrop<F: FnOnce()>(Option<F>);

impl<F: FnOnce()> OnDrop<F> {
    fn new(act: F) -> Self {
        Self(Some(act))
    }
}

impl<F: FnOnce()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        if let Some(act) = self.0.take() {
            act();
        }
    }
}

/// Starts a thread that makes a call from a destructor while it panics. Sends what the call came to.
fn call_while_panicking<G: AnyGroup<u32, u32>>(
    group: &G,
    work: impl IntoWork<u32>,
) -> (thread::JoinHandle<()>, mpsc::Receiver<Result<Answer<u32>, CallError>>) {
    let (result, results) = mpsc::channel();
    let group = group.clone();
    let thread = thread::Builder::new().name(CALLER.to_owned()).spawn(move || {
        let _call = OnDrop::new(|| {
            assert!(thread::panicking());
            let _ = result.send(group.call(1, Options::none(), work));
        });
        blow(Blown)
    });
    (thread.expect("a thread can be started"), results)
}

/// C7.
pub(crate) fn c7_a_call_from_a_destructor_while_the_thread_panics_leads<W: Way>() {
    let group = group::<W, u32, u32>();
    let (thread, results) = call_while_panicking(&group, || 1);
    assert!(thread.join().is_err_and(|payload| payload.is::<Blown>()));
    assert_eq!(results.recv().expect("the call ended").map(|answer| answer.value), Ok(1));
    assert_eq!(group.in_flight(), 0);
}

/// C7.
pub(crate) fn c7_a_call_from_a_destructor_while_the_thread_panics_follows_and_takes_over<W: Way>() {
    let group = group::<W, u32, u32>();
    for leader_panics in [false, true] {
        let leader = group.leader(1, move || if leader_panics { blow(Blown) } else { 1 });
        let (thread, results) = call_while_panicking(&group, || 2);
        until("the follower waits", || group.waiters(&1) == 1);
        let ended = leader.release().ended();
        assert_eq!(ended.is_err(), leader_panics);
        assert!(thread.join().is_err_and(|payload| payload.is::<Blown>()));
        let answer = results.recv().expect("the call ended").expect("it was not refused");
        assert_eq!(answer.value, if leader_panics { 2 } else { 1 });
        assert!(answer.may_be(if leader_panics { Role::TookOver } else { Role::Followed }));
        assert_eq!(group.in_flight(), 0);
    }
}

/// What a thread-local's destructor does.
type AtExit = OnDrop<Box<dyn FnOnce()>>;

std::thread_local! {
    static AT_EXIT: RefCell<Option<AtExit>> = const { RefCell::new(None) };
}

/// C7, for threads that end in the ordinary way: their thread-locals, the crate's included, may be gone already.
pub(crate) fn c7_a_call_from_a_thread_locals_destructor_leads_and_follows<W: Way>() {
    let group = group::<W, u32, u32>();
    let call_at_exit = || {
        let (result, results) = mpsc::channel();
        let group = group.clone();
        let thread = thread::spawn(move || {
            let call = OnDrop::new(Box::new(move || {
                let _ = result.send(group.call(1, Options::none(), || 2));
            }) as Box<dyn FnOnce()>);
            AT_EXIT.set(Some(call));
        });
        (thread, results)
    };
    let value = |results: mpsc::Receiver<Result<Answer<u32>, CallError>>| {
        results.recv().expect("the call ended").map(|answer| answer.value)
    };

    let (thread, results) = call_at_exit();
    thread.join().expect("it does not panic");
    assert_eq!(value(results), Ok(2));

    let leader = group.leader(1, || 1);
    let (thread, results) = call_at_exit();
    until("the follower waits", || group.waiters(&1) == 1);
    assert_eq!(leader.value(), 1);
    assert_eq!(value(results), Ok(1));
    thread.join().expect("it does not panic");
    assert_eq!(group.in_flight(), 0);
}

const KEY: Sites = ["clone of a key", "drop of a key"];
const VALUE: Sites = ["clone of a value", "drop of a value"];
const CLOSURE: Sites = ["clone of a closure", "drop of a closure"];
const MAKE_KEY: Sites = ["clone of a key's maker", "drop of a key's maker"];
const SHARE_IF: Sites = ["clone of a predicate", "drop of a predicate"];

/// Where something was done.
#[derive(Clone, Default)]
struct Seen(Arc<Mutex<BTreeSet<&'static str>>>);

impl Seen {
    fn add(&self, site: &'static str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(site);
    }

    fn assert_all(&self, sites: &[&str]) {
        let seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for site in sites {
            assert!(seen.contains(site), "nothing was done at the {site}");
        }
    }
}

/// C8.
pub(crate) fn c8_destructors_of_keys_values_and_closures_may_call_the_same_key_and_another<W: Way>() {
    let (hook, seen, ended) = (Hook::new(), Seen::default(), Arc::new(AtomicBool::new(false)));
    let group = group_with::<W, Hooked, Hooked>(Setup::one_shard());
    hook.set({
        let (group, seen, ended, plain) = (group.clone(), seen.clone(), Arc::clone(&ended), Hook::new());
        move |site| {
            // The test itself is not to wait for the leader that it has yet to release.
            let own = !acts_for(LEADER) && !acts_for(CALLER) && !ended.load(Ordering::Relaxed);
            if own || !site.starts_with("drop") {
                return;
            }
            seen.add(site);
            for number in [1, 2] {
                let value = plain.thing(VALUE, number);
                let called = group.call(plain.thing(KEY, number), Options::none(), move || value);
                assert_eq!(called.map(|answer| answer.value.number), Ok(number), "{site}");
            }
        }
    });
    let (value, unused) = (hook.thing(VALUE, 1), hook.thing(CLOSURE, 1));
    let leader = group.leader(hook.thing(KEY, 1), move || value);
    let follower = group.follower(hook.thing(KEY, 1), move || unused);
    let values = [leader.value(), follower.value()];
    ended.store(true, Ordering::Relaxed);
    assert!(values.into_iter().all(|value| value.number == 1));
    assert_eq!(group.in_flight(), 0);
    seen.assert_all(&[KEY[1], VALUE[1], CLOSURE[1]]);
}

/// All that can be done with a group, on the key of the call that is on and on one of its own.
fn meddle(group: &SyncGroup<Hooked, Hooked>, same: &Hooked, other: &Hooked) {
    assert_eq!(group.do_call(other, || other.clone()), *other);
    // What comes of it depends on where it is done; that it comes is the point.
    let _ = group.call(same).wait_timeout(Duration::ZERO).run(|| same.clone());
    let _ = (group.waiters(same), group.flight_info(same));
    assert!(group.forget_unshared(other));
    assert!(!group.forget(other));
    assert!(group.snapshot().len() <= group.stats().flights as usize);
    assert!(group.try_lead(other).is_some());
    assert!(!format!("{group:?}").is_empty());
}

/// A call in which everything of the user's acts.
fn acting_call(group: &SyncGroup<Hooked, Hooked>, hook: &Hook, value: u32, during: impl FnOnce()) -> u32 {
    let [in_make_key, in_share_if, in_work] = [MAKE_KEY, SHARE_IF, CLOSURE].map(|sites| hook.thing(sites, 1));
    let key = hook.thing(KEY, 1);
    let make_key = || {
        let _held = in_make_key;
        hook.act("a key's maker");
        hook.thing(KEY, 1)
    };
    let share_if = |value: &Hooked| {
        let _held = in_share_if;
        hook.act("a predicate");
        value.number > 0
    };
    let outcome = group.call_with(&key, make_key).share_if(share_if).run(|| {
        let _held = in_work;
        hook.act("work");
        during();
        hook.thing(VALUE, value)
    });
    outcome.expect("it waits as long as it takes").value.number
}

/// Rule 7. All that a group runs of the user's, but `Hash` and `Eq`, does all that can be done with the group. One shard:
/// whatever lock were held, something of it would need it.
#[test]
fn rule_7_no_lock_is_held_while_code_of_the_users_runs() {
    within_limit(|| {
        let (hook, seen) = (Hook::new(), Seen::default());
        let group: Arc<SyncGroup<Hooked, Hooked>> = Arc::new(SyncGroup::builder().shards(1).build());
        hook.set({
            let (group, seen, plain, numbers) = (Arc::clone(&group), seen.clone(), Hook::new(), AtomicU32::new(2));
            move |site| {
                seen.add(site);
                // Of its own at each site: several threads are at it.
                let other = plain.thing(KEY, numbers.fetch_add(1, Ordering::Relaxed));
                meddle(&group, &plain.thing(KEY, 1), &other);
            }
        });
        // The leader lands with its value, or keeps it and leaves the flight.
        for value in [1, 0] {
            let (begun, end) = (Gate::new(), Gate::new());
            thread::scope(|scope| {
                let leader = scope.spawn(|| {
                    acting_call(&group, &hook, value, || {
                        begun.open();
                        end.wait();
                    })
                });
                begun.wait();
                let followers = [1, 1].map(|value| {
                    let (group, hook) = (&group, &hook);
                    scope.spawn(move || acting_call(group, hook, value, || ()))
                });
                until("the followers wait", || group.waiters(&Hook::new().thing(KEY, 1)) == 2);
                end.open();
                assert_eq!(leader.join().expect("no panic"), value);
                assert!(followers.into_iter().all(|follower| follower.join().expect("no panic") == 1));
            });
            assert_eq!(group.in_flight(), 0);
        }
        seen.assert_all(&["a key's maker", "a predicate", "work", VALUE[0]]);
        seen.assert_all(&[KEY, VALUE, CLOSURE, MAKE_KEY, SHARE_IF].map(|[_, drop]| drop));
    });
}

/// Drops its `Bomb` with a panic.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        if !thread::panicking() {
            blow(Blown);
        }
    }
}

/// Rules 4 and 7: a follower needs no key of its own. What would have made it is dropped, and may panic doing so.
#[test]
fn a_panic_in_the_drop_of_an_unneeded_key_maker_leaves_no_caller_behind() {
    within_limit(|| {
        let group: SyncGroup<String, u32> = SyncGroup::new();
        let lead = group.try_lead("k").expect("no flight is on");
        let bomb = Bomb;
        let make_key = move || {
            let _held = &bomb;
            "k".to_owned()
        };
        let called =
            catch_unwind(AssertUnwindSafe(|| group.call_with("k", make_key).wait_timeout(Duration::ZERO).run(|| 1)));
        assert!(called.is_err_and(|payload| payload.is::<Blown>()));
        assert_eq!(group.waiters("k"), 0);
        drop(lead);
        assert_eq!(group.in_flight(), 0);
    });
}

/// As above, for a caller that has just taken a vacant flight over: nobody would lead it, and its followers would hang.
#[test]
fn a_panic_in_the_drop_of_an_unneeded_key_maker_does_not_keep_a_lead_that_was_taken_over() {
    within_limit(|| {
        let group: SyncGroup<String, u32> = SyncGroup::new();
        // Mostly the newcomer is faster than the follower that has to wake up first.
        for _ in 0..20 {
            let lead = group.try_lead("k").expect("no flight is on");
            thread::scope(|scope| {
                let follower = scope.spawn(|| group.do_call_wait_timeout("k", Duration::from_secs(20), || 2));
                until("the follower waits", || group.waiters("k") == 1);
                let bomb = Bomb;
                let make_key = move || {
                    let _held = &bomb;
                    "k".to_owned()
                };
                drop(lead);
                let _ = catch_unwind(AssertUnwindSafe(|| group.call_with("k", make_key).run(|| 2)));
                assert_eq!(follower.join().expect("no panic"), Ok(2));
            });
            assert_eq!(group.in_flight(), 0);
        }
    });
}

/// A key that panics in its destructor.
#[derive(PartialEq, Eq, Hash)]
struct Explosive(&'static str);

impl Drop for Explosive {
    fn drop(&mut self) {
        if !thread::panicking() {
            blow(Blown);
        }
    }
}

impl Equivalent<Explosive> for str {
    fn equivalent(&self, key: &Explosive) -> bool {
        self == key.0
    }
}

/// Rules 4 and 7: another caller may begin the flight while this one makes its key, which then is dropped unused.
#[test]
fn a_panic_in_the_drop_of_an_unneeded_key_leaves_no_caller_behind() {
    within_limit(|| {
        let group: SyncGroup<Explosive, u32> = SyncGroup::new();
        let mut lead = None;
        let make_key = || {
            lead = group.try_lead_with("k", || Explosive("k"));
            Explosive("k")
        };
        let called =
            catch_unwind(AssertUnwindSafe(|| group.call_with("k", make_key).wait_timeout(Duration::ZERO).run(|| 1)));
        assert!(called.is_err_and(|payload| payload.is::<Blown>()));
        assert_eq!(group.waiters("k"), 0);
        let landed = catch_unwind(AssertUnwindSafe(|| drop(lead)));
        assert!(landed.is_err_and(|payload| payload.is::<Blown>()), "the flight's own key is dropped with it");
        assert_eq!(group.in_flight(), 0);
    });
}

mod dropped_while_eq_panics {
    use crate::support::limits::within_limit;
    use core::hash::{Hash, Hasher};
    use core::mem::ManuallyDrop;
    use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
    use oneflight::SyncGroup;
    use std::panic::catch_unwind;
    use std::sync::LazyLock;

    // One lock: whoever holds it is met.
    static GROUP: LazyLock<SyncGroup<Key, u32>> = LazyLock::new(|| SyncGroup::builder().shards(1).build());
    static ARMED: AtomicBool = AtomicBool::new(false);
    static COMPARISONS: AtomicU32 = AtomicU32::new(0);

    /// All have one hash. The second comparison panics, and a key that is dropped asks the group something.
    #[derive(Clone)]
    struct Key(u32);

    impl Hash for Key {
        fn hash<H: Hasher>(&self, state: &mut H) {
            0_u8.hash(state);
        }
    }

    impl PartialEq for Key {
        fn eq(&self, other: &Self) -> bool {
            let armed = ARMED.load(Ordering::SeqCst);
            assert!(!armed || COMPARISONS.fetch_add(1, Ordering::SeqCst) != 1, "Eq that panics");
            self.0 == other.0
        }
    }

    impl Eq for Key {}

    impl Drop for Key {
        fn drop(&mut self) {
            let _ = GROUP.stats();
        }
    }

    /// C6 and C8 at once: the owned key, made in vain, is dropped by the panic, and not under the lock.
    #[test]
    fn a_key_whose_destructor_calls_the_group_is_dropped_outside_the_lock_when_eq_panics() {
        within_limit(|| {
            let lead = GROUP.try_lead(&Key(1)).expect("no flight is on");
            ARMED.store(true, Ordering::SeqCst);
            let key = ManuallyDrop::new(Key(2));
            assert!(catch_unwind(|| GROUP.do_call(&*key, || 1)).is_err());
            ARMED.store(false, Ordering::SeqCst);
            assert_eq!((COMPARISONS.load(Ordering::SeqCst), GROUP.do_call(&*key, || 2)), (2, 2));
            drop(lead);
            assert_eq!(GROUP.in_flight(), 0);
        });
    }
}
