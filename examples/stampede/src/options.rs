//! The command line: every limit is checked here, before anything is built.

use core::time::Duration;
use std::fs::OpenOptions;
use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{ArgMatches, CommandFactory as _, FromArgMatches as _, Parser, ValueEnum, value_parser};

use crate::catalogue::PRODUCTS;
use crate::processes::{ONLY_WITH_REDIS, Shared};

/// More than this would only measure how much memory the machine has: each request is kept until the end.
const MOST_REQUESTS: f64 = 5_000_000.0;

/// Shows what a cache stampede does to a real database, and what oneflight-cache does about it.
///
/// A shop of 50,000 products in SQLite caches rendered product pages for a short time. The same traffic is sent to it with
/// each strategy, one after the other.
#[derive(Debug, Parser)]
#[command(name = "stampede")]
pub(crate) struct Options {
    /// What is done about pages that expire
    #[arg(long, value_enum, default_value_t = Strategy::All)]
    pub(crate) strategy: Strategy,

    /// Which of oneflight's caches is used
    #[arg(long, value_enum, default_value_t = Api::Sync)]
    pub(crate) api: Api,

    /// Threads that serve requests; as many queries can run at once
    #[arg(long, default_value_t = 64, value_parser = value_parser!(u16).range(1..=1024))]
    pub(crate) threads: u16,

    /// Requests a second, of all threads together
    #[arg(long, default_value_t = 12_000, value_parser = value_parser!(u32).range(1..=100_000))]
    pub(crate) rate: u32,

    /// Seconds that a rendered page stays in the cache
    #[arg(long, value_name = "SECONDS", default_value = "5", value_parser = seconds)]
    pub(crate) ttl: Duration,

    /// Seconds of traffic, for each strategy
    #[arg(long, default_value = "10", value_parser = seconds)]
    pub(crate) seconds: Duration,

    /// Different products that are asked for, the most popular far more often than the last
    #[arg(long, default_value_t = 8, value_parser = value_parser!(u32).range(1..=i64::from(PRODUCTS)))]
    pub(crate) keys: u32,

    /// The same seed gives the same shop and the same traffic
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,

    /// Print only the figures, as JSON
    #[arg(long)]
    pub(crate) json: bool,

    /// Also write the result as a picture
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) shared: Shared,
}

/// What can be done about pages that expire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Strategy {
    /// Nothing: whoever finds no fresh page queries
    None,
    /// One queries, and all others wait for its page
    Flight,
    /// The same, and before a page expires one request has it refreshed
    Early,
    /// An expired page is still shown, while one query is on
    Stale,
    /// One after the other
    All,
}

impl Strategy {
    /// What scripts call it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Flight => "flight",
            Self::Early => "early",
            Self::Stale => "stale",
            Self::All => "all",
        }
    }

    /// What people call it.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::None => "Cache alone",
            Self::Flight => "One flight",
            Self::Early => "Early refresh",
            Self::Stale => "Stale meanwhile",
            Self::All => "All",
        }
    }
}

/// The caches that can be tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Api {
    /// blocking::Cache: requests are threads
    Sync,
    /// Cache: requests are tasks
    Async,
}

impl Options {
    /// Reads the command line; what makes no sense ends the program here with a message and exit code 2.
    pub(crate) fn from_command_line() -> Self {
        let matches = Self::command().get_matches();
        let checked =
            Self::from_arg_matches(&matches).map_err(|error| error.format(&mut Self::command())).and_then(|options| {
                match options.check(&matches) {
                    Ok(()) => Ok(options),
                    Err(message) => Err(Self::command().error(ErrorKind::ValueValidation, message)),
                }
            });
        checked.unwrap_or_else(|error| error.exit())
    }

    /// What no single option can tell.
    fn check(&self, matches: &ArgMatches) -> Result<(), String> {
        if self.shared.is_wanted() {
            return self.shared.check();
        }
        let is_given = |option: &&str| matches.value_source(option) == Some(ValueSource::CommandLine);
        if let Some(option) = ONLY_WITH_REDIS.into_iter().find(is_given) {
            return Err(format!("--{option} is for processes that share a server: add --redis"));
        }
        if f64::from(self.rate) * self.seconds.as_secs_f64() > MOST_REQUESTS {
            return Err(format!("--rate times --seconds is more than {MOST_REQUESTS} requests: lower one of them"));
        }
        if let Some(file) = &self.svg {
            // Now, not after half a minute of work. Opened for appending: an older picture stays until there is a new one.
            OpenOptions::new()
                .append(true)
                .create(true)
                .open(file)
                .map_err(|error| format!("--svg {}: cannot be written: {error}", file.display()))?;
        }
        Ok(())
    }
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number of seconds".to_owned())?;
    if !(0.01..=600.0).contains(&seconds) {
        return Err("not in 0.01..=600 seconds".to_owned());
    }
    Ok(Duration::from_secs_f64(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &[&str]) -> Result<Options, clap::Error> {
        Options::try_parse_from(core::iter::once(&"stampede").chain(arguments))
    }

    fn check(arguments: &[&str]) -> Result<(), String> {
        let matches = Options::command().get_matches_from(core::iter::once(&"stampede").chain(arguments));
        Options::from_arg_matches(&matches).expect("each alone is fine").check(&matches)
    }

    #[test]
    fn the_defaults_are_valid_and_expire_several_times() {
        let options = parse(&[]).expect("defaults parse");
        check(&[]).expect("defaults are valid");
        assert!(options.seconds >= 2 * options.ttl);
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_the_usage_exit_code() {
        let nonsense = [
            ["--api", "none"],
            ["--strategy", "sync"],
            ["--threads", "0"],
            ["--rate", "0"],
            ["--ttl", "0"],
            ["--ttl", "-1"],
            ["--ttl", "NaN"],
            ["--seconds", "0"],
            ["--seconds", "inf"],
            ["--seconds", "soon"],
            ["--keys", "0"],
            ["--keys", "50001"],
            ["--seed", "-1"],
        ];
        for arguments in nonsense {
            let error = parse(&arguments).expect_err(&arguments.join(" "));
            assert_eq!(error.exit_code(), 2, "{arguments:?}");
        }
    }

    #[test]
    fn a_run_that_would_not_fit_in_memory_is_refused() {
        assert!(check(&["--rate", "100000", "--seconds", "600"]).is_err());
    }

    #[test]
    fn a_picture_that_cannot_be_written_is_refused_before_the_run() {
        assert!(check(&["--svg", "no/such/directory/picture.svg"]).is_err());
    }

    #[test]
    fn options_of_one_mode_are_refused_in_the_other() {
        assert_eq!(check(&["--redis"]), Ok(()));
        assert_eq!(
            check(&["--redis-url", "redis://localhost:1", "--processes", "3", "--callers", "3", "--json"]),
            Ok(())
        );
        assert!(check(&["--redis", "--processes", "8", "--callers", "7"]).is_err());
        for arguments in
            [["--processes", "8"], ["--callers", "128"], ["--scenario", "all"], ["--way", "all"], ["--cycles", "40"]]
        {
            let message = check(&arguments).expect_err(arguments[0]);
            assert!(message.contains(arguments[0]) && message.contains("--redis"), "{message}");
        }
        for arguments in [["--strategy", "all"], ["--rate", "12000"], ["--seed", "1"], ["--svg", "picture.svg"]] {
            for mode in [["--redis"].as_slice(), &["--redis-url", "redis://localhost"]] {
                let error = parse(&[mode, &arguments].concat()).expect_err(arguments[0]);
                assert_eq!(error.exit_code(), 2, "{arguments:?}");
            }
        }
    }
}
