//! The cases.

use crate::bench::{Bench, HOUR, Many, Through, Value};
use crate::support::gate::Gate;
use crate::support::limits::until;
use crate::support::run::{Held, failure, held, run};
use crate::support::way::{Answer, BatchLoader, Fail};
use oneflight_cache::Source;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What a loader was asked for, call by call, each in the order of the alphabet.
type Calls = Arc<Mutex<Vec<Vec<String>>>>;

fn text(text: &str) -> Value {
    Some(text.to_owned())
}

/// A loader that makes `new k` of `k`, and notes what it was asked for.
fn news(calls: &Calls) -> BatchLoader<Value> {
    let calls = Arc::clone(calls);
    Arc::new(move |keys| {
        let mut sorted = keys.clone();
        sorted.sort();
        calls.lock().unwrap().push(sorted);
        Ok(keys.iter().map(|key| Some(format!("new {key}"))).collect())
    })
}

fn uncalled() -> BatchLoader<Value> {
    Arc::new(|keys| panic!("nothing is missing, but it loads {keys:?}"))
}

fn fails() -> BatchLoader<Value> {
    Arc::new(|_| Err(Fail(7)))
}

#[track_caller]
fn values(many: Many) -> Vec<Value> {
    many.expect("there are values").into_iter().map(|fetched| fetched.value).collect()
}

/// Puts a value, and waits until it is stale.
fn put_stale(bench: &Bench, key: &str) {
    bench.cache.put(key, text("short"));
    until("it is stale", || bench.cache.get(key).expect("it was put").source == Source::Stale);
}

/// A `get_or_load` of a process that loads until it is told to end.
fn loading(cache: &Arc<dyn crate::bench::AnyCache>, key: &'static str, value: Value) -> Held<Answer<Value>> {
    let cache = Arc::clone(cache);
    held(move || Ok(value), move |loader| cache.get_or_load(key, loader))
}

pub(crate) fn stored_stale_absent_and_loading_keys_in_one_call(bench: &Bench, through: Through) {
    bench.cache.put("hit", text("old"));
    bench.cache.put("none", None);
    put_stale(bench, "stale");
    let single = loading(&bench.cache, "loading", text("held"));
    let calls = Calls::default();
    const KEYS: [&str; 8] = ["hit", "b", "stale", "none", "loading", "a", "hit", "b"];
    let batch = run({
        let (cache, loader) = (Arc::clone(&bench.cache), news(&calls));
        move || cache.many(through, &KEYS, loader)
    });
    until("its own keys are stored, whoever waits", || {
        ["a", "b"].iter().all(|key| bench.cache.get(key).is_some()) && bench.cache.waiters("loading") == 1
    });
    assert!(!batch.has_ended());
    assert_eq!(single.end().unwrap().value, text("held"));
    let fetched = batch.end().unwrap();
    let expected =
        [text("old"), text("new b"), text("new stale"), None, text("held"), text("new a"), text("old"), text("new b")];
    assert_eq!(fetched.iter().map(|it| it.value.clone()).collect::<Vec<_>>(), expected);
    use Source::{Hit, Joined, Loaded, Stale};
    let sources: Vec<Source> = fetched.iter().map(|it| it.source).collect();
    assert_eq!(sources, [Hit, Loaded, Stale, Hit, Joined, Loaded, Hit, Loaded]);
    assert_eq!(*calls.lock().unwrap(), [["a", "b", "stale"]]);
    let again = bench.cache.many(through, &KEYS, uncalled()).unwrap();
    assert!(again.iter().all(|it| it.source == Hit), "{again:?}");
    assert_eq!(values(Ok(again)), expected);
}

pub(crate) fn no_keys_ask_for_nothing(bench: &Bench, through: Through) {
    assert!(values(bench.cache.many(through, &[], uncalled())).is_empty());
}

pub(crate) fn very_many_keys_come_in_their_order_by_one_call(bench: &Bench, through: Through) {
    let keys: Vec<String> = (0..bench.very_many).map(|key| key.to_string()).collect();
    let mut asked: Vec<&str> = keys.iter().rev().map(String::as_str).collect();
    asked.extend(["7", "500"]);
    for key in keys.iter().step_by(100) {
        bench.cache.put(key, text("put"));
    }
    let calls = Calls::default();
    let expected: Vec<Value> =
        asked.iter().map(|key| if is_put(key) { text("put") } else { Some(format!("new {key}")) }).collect();
    assert!(values(bench.cache.many(through, &asked, news(&calls))) == expected);
    assert_eq!(calls.lock().unwrap().iter().map(Vec::len).collect::<Vec<_>>(), [keys.len() / 100 * 99]);
    assert!(values(bench.cache.many(through, &asked, uncalled())) == expected);
}

fn is_put(key: &str) -> bool {
    key.parse::<u32>().unwrap() % 100 == 0
}

pub(crate) fn one_key_that_fails_fails_the_call_and_is_free(bench: &Bench, through: Through) {
    bench.cache.put("hit", text("old"));
    put_stale(bench, "stale");
    assert_eq!(failure(bench.cache.many(through, &["hit", "bad"], fails())), 7);
    assert!(bench.cache.get("bad").is_none());
    let fetched = bench.cache.many(through, &["stale", "hit"], fails()).unwrap();
    assert_eq!((fetched[0].value.clone(), fetched[0].source), (text("short"), Source::Stale));
    assert_eq!(fetched[1].source, Source::Hit);
    let calls = Calls::default();
    let expected = [text("new bad"), text("old"), text("short")];
    // The refresh that has failed backs off.
    assert_eq!(values(bench.cache.many(through, &["bad", "hit", "stale"], news(&calls))), expected);
    assert_eq!(*calls.lock().unwrap(), [["bad"]]);
}

pub(crate) fn batches_in_opposite_orders_load_each_key_once(bench: &Bench, through: Through) {
    for round in 0..5 {
        let calls = Calls::default();
        let keys: Vec<String> = (0..4).map(|key| format!("{round} {key}")).collect();
        let batches: Vec<_> = [[0, 1, 2, 3], [3, 2, 1, 0], [1, 3, 0, 2]]
            .into_iter()
            .enumerate()
            .map(|(place, order)| {
                let keys = order.map(|at: usize| keys[at].clone());
                let process = if place == 1 { &bench.other } else { &None };
                let (cache, loader) = (Arc::clone(process.as_ref().unwrap_or(&bench.cache)), news(&calls));
                run(move || (cache.many(through, &keys.each_ref().map(String::as_str), loader), keys))
            })
            .collect();
        for batch in batches {
            let (fetched, keys) = batch.end();
            assert_eq!(values(fetched), keys.map(|key| Some(format!("new {key}"))));
        }
        assert_eq!(calls.lock().unwrap().concat().len(), 4, "each key is loaded once");
    }
}

pub(crate) fn a_write_during_a_batch_wins(bench: &Bench, through: Through) {
    let (begun, end) = (Gate::new(), Gate::new());
    let batch = run({
        let (cache, begun, end) = (Arc::clone(&bench.cache), begun.clone(), end.clone());
        move || {
            let loader = move |keys: Vec<String>| {
                begun.open();
                end.wait();
                Ok(keys.iter().map(|_| text("loaded")).collect())
            };
            cache.many(through, &["w", "x"], Arc::new(loader))
        }
    });
    begun.wait();
    bench.cache.put("w", text("written"));
    end.open();
    assert_eq!(values(batch.end()), [text("loaded"), text("loaded")]);
    assert_eq!(values(bench.cache.many(through, &["w", "x"], uncalled())), [text("written"), text("loaded")]);
}

/// By the settings the one would last for an hour, and the other for less than it takes until the first is stale.
pub(crate) fn a_value_lives_as_long_as_its_put_says(bench: &Bench, through: Through) {
    bench.cache.put_with_ttl("lasting", text("short"), HOUR);
    bench.cache.put_with_ttl("brief", text("long"), Duration::from_millis(1));
    until("it is stale", || bench.cache.get("brief").expect("it was put").source == Source::Stale);
    let calls = Calls::default();
    let fetched = bench.cache.many(through, &["lasting", "brief"], news(&calls));
    assert_eq!(values(fetched), [text("short"), text("new brief")]);
    assert_eq!(*calls.lock().unwrap(), [["brief"]]);
}

pub(crate) fn what_another_process_loads_is_waited_for_and_the_rest_is_stored_meanwhile(
    bench: &Bench,
    through: Through,
) {
    let other = bench.other.as_ref().expect("the store is shared");
    let elsewhere = loading(other, "elsewhere", text("theirs"));
    let calls = Calls::default();
    let batch = run({
        let (cache, loader) = (Arc::clone(&bench.cache), news(&calls));
        move || cache.many(through, &["elsewhere", "here"], loader)
    });
    until("its own key is stored", || bench.cache.get("here").is_some());
    assert!(!batch.has_ended());
    assert_eq!(elsewhere.end().unwrap().value, text("theirs"));
    assert_eq!(values(batch.end()), [text("theirs"), text("new here")]);
    assert_eq!(*calls.lock().unwrap(), [["here"]]);
    assert_eq!(values(other.many(through, &["here", "elsewhere"], uncalled())), [text("new here"), text("theirs")]);
}
