//! The part of the command line that is about several processes.

use clap::{Args, ValueEnum, value_parser};
use serde::{Deserialize, Serialize};

/// What is to be shown with several processes.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Several processes that share a Redis server")]
pub(crate) struct Shared {
    /// Show what happens to processes that share a Redis server, which is started for it
    #[arg(long, conflicts_with_all = ["strategy", "api", "threads", "rate", "ttl", "seconds", "keys", "seed", "svg"])]
    pub(crate) redis: bool,

    /// The same with a server that runs; nothing is written there but keys with a random prefix, which are
    /// removed at the end
    #[arg(long, value_name = "URL", value_parser = url,
        conflicts_with_all = ["strategy", "api", "threads", "rate", "ttl", "seconds", "keys", "seed", "svg"])]
    pub(crate) redis_url: Option<String>,

    /// Processes that share the server
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = value_parser!(u16).range(2..=64))]
    pub(crate) processes: u16,

    /// Threads that ask for the value, in all processes together
    #[arg(long, value_name = "N", default_value_t = 128, value_parser = value_parser!(u16).range(2..=4096))]
    pub(crate) callers: u16,

    /// What happens to them
    #[arg(long, value_enum, default_value_t = Scenarios::All)]
    pub(crate) scenario: Scenarios,

    /// What is done about it
    #[arg(long, value_enum, default_value_t = Ways::All)]
    pub(crate) way: Ways,

    /// How many lives of the value `refresh` counts the loads of
    #[arg(long, value_name = "N", default_value_t = 40, value_parser = value_parser!(u32).range(1..=1000))]
    pub(crate) cycles: u32,
}

/// The options of [`Shared`] that mean nothing without `--redis` or `--redis-url`.
pub(crate) const ONLY_WITH_REDIS: [&str; 5] = ["processes", "callers", "scenario", "way", "cycles"];

impl Shared {
    /// Whether it is to be shown.
    pub(crate) fn is_wanted(&self) -> bool {
        self.redis || self.redis_url.is_some()
    }

    /// What no single option can tell.
    pub(crate) fn check(&self) -> Result<(), String> {
        if self.callers < self.processes {
            return Err(format!(
                "--callers {}: there must be one for each of {} processes",
                self.callers, self.processes
            ));
        }
        Ok(())
    }
}

/// What can happen to processes that share a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "snake_case")]
#[value(rename_all = "snake_case")]
pub enum Scenarios {
    /// There is no value, and all ask for it at once
    Cold,
    /// The process that loads it is killed
    Killed,
    /// The process that loads it stands still until another has stored a newer one, and goes on
    Paused,
    /// To load it takes three times as long as a lease
    LongLoad,
    /// It expires again and again, and is read all the time
    Refresh,
    /// One after the other
    All,
}

impl Scenarios {
    /// Those that are wanted, in the order in which they are tried and shown.
    #[must_use]
    pub fn chosen(self) -> Vec<Self> {
        match self {
            Self::All => vec![Self::Cold, Self::Killed, Self::Paused, Self::LongLoad, Self::Refresh],
            one => vec![one],
        }
    }

    /// What scripts call it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Cold => "cold",
            Self::Killed => "killed",
            Self::Paused => "paused",
            Self::LongLoad => "long_load",
            Self::Refresh => "refresh",
            Self::All => "all",
        }
    }
}

/// What can be done about a value that many processes want to load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ways {
    /// Nothing: whoever finds no value loads and stores it
    None,
    /// A lock by SET NX EX, for which all others poll
    Naive,
    /// oneflight-cache with its Redis store
    Ours,
    /// One after the other
    All,
}

impl Ways {
    /// Those that are wanted, in the order in which they are tried and shown.
    #[must_use]
    pub fn chosen(self) -> Vec<Self> {
        match self {
            Self::All => vec![Self::None, Self::Naive, Self::Ours],
            one => vec![one],
        }
    }

    /// What scripts call it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Naive => "naive",
            Self::Ours => "ours",
            Self::All => "all",
        }
    }
}

fn url(text: &str) -> Result<String, String> {
    // Its message only: the address may hold a password.
    redis::Client::open(text)
        .map_err(|_| "not the address of a Redis server, such as redis://localhost:6379".to_owned())?;
    Ok(text.to_owned())
}
