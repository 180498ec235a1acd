//! Where a link for tasks is made, and where it is used.

use super::server::Server;
use super::{answer, commands, eventually, get, is_away, text};
use crate::redis::error::Error;
use crate::redis::link::Link;
use redis::Value;
use std::future::Future;
use std::sync::Arc;

/// A runtime of tokio lives as long as this.
pub(super) struct Place {
    name: &'static str,
    made_in: Option<tokio::runtime::Runtime>,
    used_in: UsedIn,
}

enum UsedIn {
    /// A loop that polls and parks, and nothing else.
    Bare,
    Smol,
    Tokio(tokio::runtime::Runtime),
}

pub(super) fn tokio() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime")
}

/// All combinations that the features permit.
pub(super) fn everywhere(test: impl Fn(&Place)) {
    let used: [(&str, fn() -> UsedIn); 3] =
        [("a bare block_on", || UsedIn::Bare), ("smol", || UsedIn::Smol), ("tokio", || UsedIn::Tokio(tokio()))];
    let made_in_tokio = [
        #[cfg(feature = "redis-smol")]
        false,
        #[cfg(feature = "redis-tokio")]
        true,
    ];
    for is_made_in_tokio in made_in_tokio {
        for (name, used_in) in used {
            let place = Place { name, made_in: is_made_in_tokio.then(tokio), used_in: used_in() };
            eprintln!("made in tokio: {is_made_in_tokio}; used in: {name}");
            test(&place);
        }
    }
}

impl Place {
    /// Makes a link here.
    pub(super) fn make<L>(&self, make: impl FnOnce() -> Result<L, Error>) -> L {
        let _guard = self.made_in.as_ref().map(tokio::runtime::Runtime::enter);
        make().expect("a link can be made here")
    }

    /// Waits for a future here.
    pub(super) fn run<T>(&self, future: impl Future<Output = T>) -> T {
        match &self.used_in {
            UsedIn::Bare => futures_lite::future::block_on(future),
            UsedIn::Smol => smol::block_on(future),
            UsedIn::Tokio(runtime) => runtime.block_on(future),
        }
    }

    /// Runs tasks at the same time, on several threads where there are several, and waits for all.
    pub(super) fn run_all<F: Future<Output = ()> + Send + 'static>(&self, tasks: impl IntoIterator<Item = F>) {
        match &self.used_in {
            UsedIn::Tokio(runtime) => {
                let handles: Vec<_> = tasks.into_iter().map(|task| runtime.spawn(task)).collect();
                handles.into_iter().for_each(|handle| runtime.block_on(handle).expect("no panic"));
            }
            UsedIn::Smol => {
                let tasks: Vec<_> = tasks.into_iter().map(smol::spawn).collect();
                tasks.into_iter().for_each(smol::block_on);
            }
            UsedIn::Bare => std::thread::scope(|scope| {
                for task in tasks {
                    scope.spawn(move || futures_lite::future::block_on(task));
                }
            }),
        }
    }
}

pub(super) fn a_hundred_tasks_get_their_own_values(place: &Place, link: impl Link) {
    let link = Arc::new(link);
    place.run_all((0..100).map(|worker| {
        let link = Arc::clone(&link);
        async move {
            for number in 0..100 {
                let (key, value) = (format!("{worker}-{}", number % 7), format!("{worker} {number}"));
                let replies = link.send(commands([&["SET", &key, &value], &["GET", &key]])).await.unwrap();
                assert_eq!(replies, [Value::Okay, text(&value)]);
            }
        }
    }));
}

/// A command, which the server carries out when nobody waits for its reply any more.
pub(super) fn is_sent_once_though_its_reply_is_lost(place: &Place, server: &Server, link: &impl Link) {
    answer(|| place.run(link.send(commands([&["SET", "count", "0"]]))));
    for number in 1..4 {
        server.pause();
        assert!(is_away(&place.run(link.send(commands([&["INCR", "count"]])))));
        server.resume();
        let is = |number: u32| answer(|| place.run(get(link, "count"))) == text(&number.to_string());
        eventually("the server does it", || is(number));
        assert!(is(number));
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        eprintln!("done: {}", self.name);
    }
}
