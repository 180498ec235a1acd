//! Many threads may share a group whose values they may share; its works need not be `Send` nor `'static`.

use core::hash::Hash;
use oneflight::SyncGroup;
use std::rc::Rc;
use std::sync::{Arc, LazyLock};

static GROUP: LazyLock<SyncGroup<String, Arc<str>>> = LazyLock::new(SyncGroup::new);

/// What the documentation asks for is enough.
fn serve<K, V>(group: &SyncGroup<K, V>, key: &K, value: V)
where
    K: Hash + Eq + Clone + Send,
    V: Clone + Send + Sync,
    for<'a> &'a K: Send,
{
    std::thread::scope(|scope| {
        scope.spawn(move || group.do_call(key, || value));
    });
}

fn main() {
    serve(&SyncGroup::new(), &1, 2);
    let text = "text".to_owned();
    let group: SyncGroup<u32, u32> = SyncGroup::new();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let local = Rc::new(7);
                let length = group.do_call(&1, || *local + text.len() as u32);
                assert_eq!(length, 11);
                assert_eq!(&*GROUP.do_call("k", || Arc::from(&*text)), "text");
            });
        }
    });
    let group = Arc::new(group);
    let other = Arc::clone(&group);
    std::thread::spawn(move || other.do_call(&2, || 3)).join().unwrap();
    let lead = GROUP.try_lead("k").expect("no flight is on");
    std::thread::spawn(move || drop(lead.land(Arc::from("sent")))).join().unwrap();
}
