//! What the coordinator and the processes of callers say to each other: a line of JSON for each of these, in one direction
//! over the standard input and in the other over the standard output of the process.

use core::time::Duration;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use super::options::Ways;

/// The first line that a process gets.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Setup {
    /// The server that all share.
    pub(crate) url: String,
    /// Of the names of all keys.
    pub(crate) prefix: String,
    pub(crate) way: Ways,
    /// Threads that ask for the value.
    pub(crate) callers: usize,
    pub(crate) terms: Terms,
}

/// On which terms a value is loaded and kept.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Terms {
    /// How long a load takes.
    pub(crate) load: Duration,
    /// How long a value is fresh.
    pub(crate) ttl: Duration,
    /// How long a lease of ours lasts that is not renewed.
    pub(crate) lease: Duration,
    /// Whether it is renewed.
    pub(crate) renewed: bool,
    /// Whether there is one; otherwise only the callers of one process share a load.
    pub(crate) leased: bool,
    /// How long the naive lock lasts, in seconds.
    pub(crate) lock_seconds: u64,
    /// The time between two calls of one caller, where it goes on calling.
    pub(crate) pause: Duration,
}

/// What a process is told.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) enum Order {
    /// The database, which each load reads when it begins, has this version of the value from now on.
    Database(u32),
    /// Each caller asks for the value, once.
    Call,
    /// The first caller does.
    CallFirst,
    /// All others do.
    CallRest,
    /// Each caller asks for it again and again.
    Read,
    /// They do so no longer.
    Stop,
    /// What is stored?
    Look,
}

/// What a process tells.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Event {
    /// Its callers are connected.
    Ready,
    /// A load begins.
    Begun,
    /// A load is over.
    Loaded {
        /// When its caller looked into the cache for the last time before it.
        looked: Moment,
        begun: Moment,
        ended: Moment,
    },
    /// What became of one call of one caller.
    Answer {
        micros: u64,
        /// The version of the value, or why there is none.
        value: Result<u32, String>,
    },
    /// What became of the calls of one caller that went on calling.
    Answers { micros: Vec<u32>, failed: u32, error: Option<String> },
    /// The version of the value that is stored.
    Stored(Option<u32>),
}

/// A time of day, which is the same for all processes of one machine: microseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Moment(pub(crate) u64);

impl Moment {
    pub(crate) fn now() -> Self {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Self(since.as_micros().try_into().unwrap_or(u64::MAX))
    }
}

/// The value of a version: what is stored, and given to callers.
pub(crate) fn value(version: u32) -> String {
    format!("v{version}")
}

/// The version of a value.
pub(crate) fn version(value: &str) -> Result<u32, String> {
    value.strip_prefix('v').and_then(|version| version.parse().ok()).ok_or_else(|| format!("not a value: {value:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_is_one_line_and_understood() {
        let setup = Setup {
            url: "redis://127.0.0.1:1".to_owned(),
            prefix: "a\nb".to_owned(),
            way: Ways::Ours,
            callers: 3,
            terms: Terms {
                load: Duration::from_millis(1),
                ttl: Duration::from_micros(1),
                lease: Duration::MAX,
                renewed: true,
                leased: false,
                lock_seconds: 5,
                pause: Duration::ZERO,
            },
        };
        let line = serde_json::to_string(&setup).expect("it has no key that JSON lacks");
        assert!(!line.contains('\n'));
        let read: Setup = serde_json::from_str(&line).expect("it is read back");
        assert_eq!(format!("{read:?}"), format!("{setup:?}"));
    }

    #[test]
    fn a_value_tells_its_version_and_nothing_else_does() {
        assert_eq!(version(&value(7)), Ok(7));
        for other in ["", "v", "7", "v-1", "value"] {
            assert!(version(other).is_err(), "{other:?}");
        }
    }
}
