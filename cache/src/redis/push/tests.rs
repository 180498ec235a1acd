use super::*;

/// Who writes down what it is told.
fn told() -> (Arc<Mutex<Vec<Push>>>, Told) {
    let log = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&log);
    (log, Box::new(move |push| told.lock().push(push)))
}

fn told_all() -> (Arc<Mutex<Vec<PushedMessage>>>, ToldAll) {
    let log = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&log);
    (log, Box::new(move |push| told.lock().push(push)))
}

fn message(what: char, writer: u64, id: u64) -> Vec<u8> {
    format!("{what}{writer:016x}{id:016x}").into_bytes()
}

const OWN: u64 = u64::MAX - 1;

#[test]
fn who_watches_a_key_is_told_of_that_key_and_of_all() {
    let pushes = Pushes::new(OWN);
    let (log, told) = told();
    let _watch = pushes.watch("c".to_owned(), 7, told);
    pushes.heard(b"c", &message('r', 1, 7));
    pushes.heard(b"c", &message('r', 1, 8));
    pushes.heard(b"d", &message('r', 1, 7));
    pushes.heard(b"c", &message('w', 1, 7));
    pushes.heard(b"c", &message('w', 1, 8));
    pushes.heard(b"c", &message('a', 1, 0));
    assert_eq!(*log.lock(), [Push::Released, Push::Written, Push::Written]);
}

#[test]
fn own_writes_are_not_told_and_own_releases_are() {
    let pushes = Pushes::new(OWN);
    let ((log, told), (all_log, all_told)) = (told(), told_all());
    let _watch = pushes.watch("c".to_owned(), 7, told);
    let _all = pushes.watch_all(["c".to_owned()], all_told);
    for what in ['w', 'a', 'r'] {
        pushes.heard(b"c", &message(what, OWN, 7));
    }
    assert_eq!(*log.lock(), [Push::Released]);
    assert_eq!(*all_log.lock(), [], "of a release only those who watch its key");
}

#[test]
fn who_watches_everything_is_told_of_each_key() {
    let pushes = Pushes::new(OWN);
    let (log, told) = told_all();
    let watch = pushes.watch_all(["c".to_owned(), "d".to_owned()], told);
    pushes.listens(0, b"c");
    assert!(!watch.is_listening(), "only to one of two");
    pushes.listens(0, b"d");
    assert!(watch.is_listening());
    pushes.heard(b"c", &message('w', 1, 7));
    pushes.heard(b"d", &message('a', 1, 0));
    pushes.broke(0);
    assert!(!watch.is_listening());
    use PushedMessage::{AllWritten, Listening, Written};
    assert_eq!(*log.lock(), [Listening, Listening, Written(7), AllWritten]);
    drop(watch);
    pushes.heard(b"c", &message('w', 1, 7));
    assert_eq!(log.lock().len(), 4, "not after it was dropped");
}

#[test]
fn a_watch_listens_from_the_confirmation_until_the_connection_breaks_and_again() {
    let pushes = Pushes::new(OWN);
    let (log, told) = told();
    let watch = pushes.watch("c".to_owned(), 7, told);
    assert!(!watch.is_listening());
    pushes.listens(0, b"other");
    assert!(!watch.is_listening());
    pushes.listens(0, b"c");
    assert!(watch.is_listening());
    pushes.broke(0);
    assert!(!watch.is_listening());
    assert_eq!(pushes.silent(), [Arc::<str>::from("c")]);
    pushes.listens(0, b"c");
    assert!(!watch.is_listening(), "the connection that broke says so late");
    pushes.listens(1, b"c");
    pushes.broke(0);
    assert!(watch.is_listening());
    assert!(pushes.silent().is_empty());
    assert_eq!(*log.lock(), [Push::Listening, Push::Listening]);
}

#[cfg(any(feature = "redis-smol", feature = "redis-tokio"))]
#[test]
fn a_channel_that_is_lost_is_silent_and_the_others_are_not() {
    let pushes = Pushes::new(OWN);
    let ((log, told), (all_log, all_told)) = (told(), told_all());
    let watch = pushes.watch("c".to_owned(), 7, told);
    let all = pushes.watch_all(["c".to_owned(), "d".to_owned()], all_told);
    pushes.listens(1, b"c");
    pushes.listens(1, b"d");
    pushes.lost(0, b"c");
    assert!(watch.is_listening(), "by a connection that is gone");
    pushes.lost(1, b"c");
    pushes.lost(1, b"c");
    pushes.lost(1, b"e");
    pushes.lost(1, b"\xff");
    assert!(!watch.is_listening() && !all.is_listening());
    assert_eq!(pushes.silent(), [Arc::<str>::from("c")]);
    pushes.listens(1, b"c");
    assert!(watch.is_listening() && all.is_listening());
    assert_eq!(*all_log.lock(), [PushedMessage::Listening; 3]);
    assert_eq!(*log.lock(), [Push::Listening, Push::Listening]);
}

#[test]
fn it_is_listening_by_the_time_that_this_is_told() {
    let pushes = Pushes::new(OWN);
    let flag = Arc::new(Mutex::new(None::<Arc<AtomicBool>>));
    let seen = Arc::clone(&flag);
    let _watch = pushes.watch(
        "c".to_owned(),
        7,
        Box::new(move |_| assert!(seen.lock().as_ref().is_some_and(|flag| flag.load(Ordering::Acquire)))),
    );
    *flag.lock() = Some(Arc::clone(&pushes.state.lock().channels["c"].listening));
    pushes.listens(0, b"c");
}

#[test]
fn who_comes_to_a_channel_that_is_listened_to_is_told_at_once_and_nobody_is_asked_to_subscribe() {
    let pushes = Pushes::new(OWN);
    let asked = Arc::new(Mutex::new(0));
    let count = Arc::clone(&asked);
    pushes.on_wanted(move || *count.lock() += 1);
    let (_, first) = told();
    drop(pushes.watch("c".to_owned(), 7, first));
    pushes.listens(0, b"c");
    let (log, second) = told();
    let watch = pushes.watch("c".to_owned(), 8, second);
    assert!(watch.is_listening());
    assert_eq!(*log.lock(), [Push::Listening]);
    assert_eq!(*asked.lock(), 1);
    let (_, all) = told_all();
    drop(pushes.watch_all(["c".to_owned(), "d".to_owned(), "e".to_owned()], all));
    assert_eq!(*asked.lock(), 2, "once for both");
}

#[test]
fn a_watch_that_is_dropped_leaves_nothing_behind_and_the_others_alone() {
    let pushes = Pushes::new(OWN);
    let ((log, told1), (gone, told2)) = (told(), told());
    let watch = pushes.watch("c".to_owned(), 7, told1);
    drop(pushes.watch("c".to_owned(), 7, told2));
    pushes.heard(b"c", &message('r', 1, 7));
    assert_eq!((log.lock().len(), gone.lock().len()), (1, 0));
    assert_eq!(Arc::strong_count(&gone), 1, "what it would have told is dropped");
    drop(watch);
    assert!(pushes.state.lock().channels["c"].keys.is_empty());
}

#[test]
fn who_is_told_may_watch_and_drop_watches() {
    let pushes = Pushes::new(OWN);
    let (inner, kept) = (Arc::clone(&pushes), Mutex::new(None));
    let watch = pushes.watch(
        "c".to_owned(),
        7,
        Box::new(move |_| *kept.lock() = Some(inner.watch("c".to_owned(), 9, Box::new(|_| ())))),
    );
    pushes.heard(b"c", &message('r', 1, 7));
    pushes.heard(b"c", &message('r', 1, 7));
    assert_eq!(pushes.state.lock().channels["c"].keys[&9].len(), 1);
    drop(watch);
}

#[test]
fn what_is_not_a_message_is_ignored() {
    let id = 0x0123_4567_89ab_cdef;
    let good = message('w', 1, id);
    assert_eq!(Message::parse(&good), Some(Message { what: What::Written, writer: 1, id }));
    assert_eq!(Message::parse(&good.to_ascii_uppercase()), None, "W is no kind");
    for length in 0..good.len() {
        assert_eq!(Message::parse(&good[..length]), None);
    }
    assert_eq!(Message::parse(&[&good[..], b"0"].concat()), None);
    // Each byte at each place: all that is accepted is a kind and hexadecimal digits.
    for place in 0..good.len() {
        for byte in 0..=u8::MAX {
            let mut bytes = good.clone();
            bytes[place] = byte;
            let expected = if place == 0 { b"rwa".contains(&byte) } else { byte.is_ascii_hexdigit() };
            assert_eq!(Message::parse(&bytes).is_some(), expected, "{byte} at {place}");
        }
    }
    let pushes = Pushes::new(OWN);
    let (log, told) = told();
    let _watch = pushes.watch("c".to_owned(), 7, told);
    pushes.heard(b"\xff", &message('r', 1, 7));
    pushes.listens(0, b"\xff");
    pushes.heard(b"c", b"\xff\xfe");
    assert_eq!(*log.lock(), []);
}

#[test]
fn memory_for_many_keys_is_given_back_when_nobody_watches_them() {
    let pushes = Pushes::new(OWN);
    let watches: Vec<_> = (0..10_000).map(|id| pushes.watch("c".to_owned(), id, Box::new(|_| {}))).collect();
    let room = || pushes.state.lock().channels["c"].keys.capacity();
    assert!(room() >= 10_000);
    drop(watches);
    assert!(room() <= 28, "{}", room());
}
