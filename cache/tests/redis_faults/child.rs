//! What a child does with its cache.
//!
//! | command | events |
//! |---|---|
//! | | `ready`, when there is a cache |
//! | `read ID KEY CALLERS LOAD VALUE` | for each caller `got ID VALUE SOURCE` or `failed ID ERROR`; for each load `load KEY VALUE` when it begins, `loaded KEY VALUE` when it ends |
//! | `open VALUE` | |
//! | `get ID KEY` | `got ID VALUE SOURCE`, `nothing ID ` or `failed ID ERROR` |
//! | `put ID KEY VALUE`, `invalidate ID KEY` | `done ID VALUE` or `failed ID ERROR` |
//! | `waiters KEY COUNT` | `waiters KEY`, when so many wait |
//!
//! LOAD is how many milliseconds a load takes, or `gate`: it ends when `open` is commanded for its value, or has been. VALUE is a word, or
//! `version`: the next version number of the database, taken when the load or the put begins.

use super::settings::Settings;
use super::subject::{Failure, Loader, Subject, subject};
use crate::redis_support::process::{obey, tell};
use crate::redis_support::{resp, until};
use oneflight_cache::Fetched;
use std::collections::HashSet;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// Runs a child.
pub(crate) fn run(role: &str) -> ! {
    let settings = Settings::parse(role);
    let child = Child { subject: subject(&settings), gates: Arc::default(), database: settings.database };
    tell("ready");
    obey(|command| child.command(command))
}

struct Child {
    subject: Arc<dyn Subject>,
    gates: Arc<Gates>,
    database: u16,
}

impl Child {
    fn command(&self, command: &str) {
        match *command.split(' ').collect::<Vec<_>>() {
            ["read", id, key, callers, load, value] => {
                for _ in 0..callers.parse().expect("a number") {
                    let id = id.to_owned();
                    let told = Box::new(move |result| tell_fetched(&id, result));
                    self.subject.get_or_load(key.to_owned(), self.loader(key, load, value), told);
                }
            }
            ["open", value] => self.gates.open(value),
            ["get", id, key] => {
                let id = id.to_owned();
                let told = Box::new(move |result: Result<Option<_>, _>| match result.transpose() {
                    Some(result) => tell_fetched(&id, result),
                    None => tell(&format!("nothing {id} ")),
                });
                self.subject.get(key.to_owned(), told);
            }
            ["put", id, key, value] => {
                let value = this_value(value, self.database);
                let (id, written) = (id.to_owned(), value.clone());
                self.subject.put(key.to_owned(), value, Box::new(move |result| tell_done(&id, &written, result)));
            }
            ["invalidate", id, key] => {
                let id = id.to_owned();
                self.subject.invalidate(key.to_owned(), Box::new(move |result| tell_done(&id, "", result)));
            }
            ["waiters", key, count] => {
                let (subject, key) = (Arc::clone(&self.subject), key.to_owned());
                let count: usize = count.parse().expect("a number");
                thread::spawn(move || {
                    until("so many wait", || (subject.waiters(&key) >= count).then_some(()));
                    tell(&format!("waiters {key}"));
                });
            }
            _ => panic!("not a command: {command}"),
        }
    }

    fn loader(&self, key: &str, load: &str, value: &str) -> Loader {
        let [key, load, value] = [key, load, value].map(str::to_owned);
        let (gates, database) = (Arc::clone(&self.gates), self.database);
        Box::new(move || {
            let value = this_value(&value, database);
            tell(&format!("load {key} {value}"));
            match load.as_str() {
                "gate" => gates.pass(&value),
                millis => thread::sleep(Duration::from_millis(millis.parse().expect("a number"))),
            }
            tell(&format!("loaded {key} {value}"));
            value
        })
    }
}

/// As the number is found in what is stored.
fn this_value(value: &str, database: u16) -> String {
    if value != "version" {
        return value.to_owned();
    }
    let version = resp::ask(database, &["INCR", "version"]).expect("nothing happens to the database");
    format!("v={:0>6}.", version)
}

fn tell_fetched(id: &str, result: Result<Fetched<String>, Failure>) {
    match result {
        Ok(fetched) => tell(&format!("got {id} {} {:?}", *fetched, fetched.source)),
        Err(error) => tell(&format!("failed {id} {error}")),
    }
}

fn tell_done(id: &str, value: &str, result: Result<(), Failure>) {
    match result {
        Ok(()) => tell(&format!("done {id} {value}")),
        Err(error) => tell(&format!("failed {id} {error}")),
    }
}

/// Gates that loads wait at, by their values.
#[derive(Default)]
struct Gates {
    open: Mutex<HashSet<String>>,
    changed: Condvar,
}

impl Gates {
    fn open(&self, value: &str) {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).insert(value.to_owned());
        self.changed.notify_all();
    }

    fn pass(&self, value: &str) {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.changed.wait_while(open, |open| !open.contains(value)).unwrap_or_else(PoisonError::into_inner));
    }
}
