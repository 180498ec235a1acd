//! Hints about what becomes of a key. They may be lost where a connection fails, and here none does.

use crate::bench::{Bench, Caller, KEY, SHORT};
use oneflight_cache::lease::{BlockingLease, Publication, Push, Watch};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// What is pushed about a key, in its order.
struct Heard {
    watch: Box<dyn Watch>,
    pushes: Receiver<Push>,
}

impl Heard {
    #[track_caller]
    fn wait_for(&self, expected: Push) {
        loop {
            let push = self.pushes.recv_timeout(Duration::from_secs(30)).expect("it is pushed before long");
            if push == expected {
                break;
            }
        }
    }
}

/// Listens to a key.
#[track_caller]
fn listen<B: Bench>(caller: &Caller<'_, B>, key: &str) -> Heard {
    let (sender, pushes) = channel();
    // The receiver is gone when a case has ended.
    let told = Box::new(move |push| {
        let _ = sender.send(push);
    });
    let watch = caller.store.watch(&key.to_owned(), told).expect("it pushes");
    let heard = Heard { watch, pushes };
    heard.wait_for(Push::Listening);
    heard
}

pub(crate) fn who_listens_is_told_so<B: Bench>(bench: &B) {
    let caller = bench.caller();
    let [first, second] = [listen(&caller, KEY), listen(&caller, KEY)];
    assert!(first.watch.is_listening() && second.watch.is_listening());
}

pub(crate) fn what_frees_the_lease_is_pushed<B: Bench>(bench: &B) {
    let [first, second, third] = [bench.caller(), bench.caller(), bench.caller()];
    let heard = [listen(&third, KEY), listen(&third, KEY)];
    let wait = || heard.iter().for_each(|heard| heard.wait_for(Push::Released));
    let epoch = first.lead();
    assert_eq!(first.publish(epoch, b"a"), Publication::Stored);
    wait();
    first.lead_over(b"a");
    first.release();
    wait();
    first.remove();
    let epoch = second.lead_for(SHORT);
    bench.pass(SHORT * 2);
    first.lead();
    assert_eq!(second.publish(epoch, b"b"), Publication::Late);
    wait();
}

pub(crate) fn writes_of_another_process_are_pushed<B: Bench>(bench: &B) {
    let [first, second] = [bench.caller(), bench.caller()];
    let heard = listen(&second, KEY);
    first.put(b"a");
    heard.wait_for(Push::Written);
    first.remove();
    heard.wait_for(Push::Written);
}

pub(crate) fn clearing_is_pushed_to_all<B: Bench>(bench: &B) {
    let [first, second] = [bench.caller(), bench.caller()];
    let heard = [listen(&second, KEY), listen(&second, "another key")];
    first.clear();
    heard.iter().for_each(|heard| heard.wait_for(Push::Written));
}

pub(crate) fn nothing_is_pushed_about_other_keys_or_once_dropped<B: Bench>(bench: &B) {
    let (mut first, second) = (bench.caller(), bench.caller());
    let keys = ["one", "two"];
    let [one, two] = keys.map(|key| listen(&second, key));
    let Heard { watch, pushes } = listen(&second, "one");
    drop(watch);
    for key in keys {
        first.key = key.to_owned();
        first.put(b"a");
    }
    one.wait_for(Push::Written);
    two.wait_for(Push::Written);
    first.put(b"b");
    two.wait_for(Push::Written);
    assert_eq!(one.pushes.try_iter().collect::<Vec<_>>(), [], "it was the other key");
    assert_eq!(pushes.try_iter().collect::<Vec<_>>(), [], "it was dropped");
}
