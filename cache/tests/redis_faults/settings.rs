//! What a process is told about the cache that it is to make.

use std::fmt;
use std::time::Duration;

/// Which cache, and where its callers run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The cache for threads.
    Threads,
    Smol,
    Tokio,
    /// Tasks without an executor: whoever calls polls.
    BlockOn,
}

impl Kind {
    pub(crate) const ALL: [Self; 4] = [Self::Threads, Self::Smol, Self::Tokio, Self::BlockOn];
}

/// The settings of a cache and its store. They travel to a process as words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    pub(crate) kind: Kind,
    /// Of the server, or of the network in front of it.
    pub(crate) url: String,
    /// The port of a server that nothing happens to, which hands out version numbers; 0 if there is none.
    pub(crate) database: u16,
    pub(crate) lease: Duration,
    pub(crate) max_hold: Duration,
    pub(crate) lease_wait: Duration,
    pub(crate) ttl: Duration,
    pub(crate) stale_while_revalidate: Duration,
    /// How long the client waits for an answer.
    pub(crate) response: Duration,
    /// Whether callers get an error when the server fails, or a wait for another process takes too long.
    pub(crate) fails_closed: bool,
}

impl Settings {
    /// Nothing ends before a test does, the time for an answer neither.
    pub(crate) fn new(kind: Kind, url: String) -> Self {
        Self {
            kind,
            url,
            database: 0,
            lease: Duration::from_secs(600),
            max_hold: Duration::from_secs(600),
            lease_wait: Duration::from_secs(600),
            ttl: Duration::from_secs(600),
            stale_while_revalidate: Duration::ZERO,
            response: Duration::from_secs(600),
            fails_closed: false,
        }
    }

    /// What [`fmt::Display`] has made of them.
    pub(crate) fn parse(words: &str) -> Self {
        let mut words = words.split(' ');
        let mut word = || words.next().expect("one word a setting");
        let name = word();
        let kind = Kind::ALL.into_iter().find(|kind| format!("{kind:?}") == name).expect("a kind");
        let url = word().to_owned();
        let mut number = || word().parse::<u64>().expect("a number");
        let database = number().try_into().expect("a port");
        let mut millis = || Duration::from_millis(number());
        Self {
            kind,
            url,
            database,
            lease: millis(),
            max_hold: millis(),
            lease_wait: millis(),
            ttl: millis(),
            stale_while_revalidate: millis(),
            response: millis(),
            fails_closed: millis() > Duration::ZERO,
        }
    }
}

impl fmt::Display for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            kind,
            url,
            database,
            lease,
            max_hold,
            lease_wait,
            ttl,
            stale_while_revalidate,
            response,
            fails_closed,
        } = self;
        write!(f, "{kind:?} {url} {database}")?;
        [lease, max_hold, lease_wait, ttl, stale_while_revalidate, response]
            .into_iter()
            .try_for_each(|duration| write!(f, " {}", duration.as_millis()))?;
        write!(f, " {}", u8::from(*fails_closed))
    }
}

#[test]
fn settings_arrive_as_they_were() {
    for kind in Kind::ALL {
        let settings =
            Settings { database: 7, fails_closed: true, ..Settings::new(kind, "redis://127.0.0.1:1".to_owned()) };
        assert_eq!(Settings::parse(&settings.to_string()), settings);
    }
}
