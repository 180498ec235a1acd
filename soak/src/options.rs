//! The command line.

use std::str::FromStr;
use std::time::Duration;

/// What is soaked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Subject {
    Groups,
    Cache,
}

/// What the command line asks for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Options {
    pub(crate) subject: Subject,
    pub(crate) time: Duration,
    pub(crate) seed: u64,
    /// The round to begin with.
    pub(crate) round: u64,
    /// Callers of each kind.
    pub(crate) threads: usize,
    /// After how long a call counts as lost.
    pub(crate) stuck: Duration,
}

pub(crate) const USAGE: &str = "\
usage: oneflight-soak [--subject groups|cache] [--minutes M] [--seed S] [--round R] [--threads N] [--stuck SECONDS]

  --subject   what is soaked: the groups (default) or the cache in memory
  --minutes   for how long, fractions allowed; 1 by default
  --seed      of all random numbers; 1 by default. Which thread is faster is not in it.
  --round     the round to begin with; 0 by default
  --threads   how many callers of each kind there are; 3 by default
  --stuck     after how many seconds a call counts as lost; 60 by default";

impl Options {
    /// Reads them; the error is what is wrong.
    pub(crate) fn read(mut arguments: impl Iterator<Item = String>) -> Result<Self, String> {
        let minute = Duration::from_secs(60);
        let mut options = Self { subject: Subject::Groups, time: minute, seed: 1, round: 0, threads: 3, stuck: minute };
        while let Some(name) = arguments.next() {
            let value = arguments.next().ok_or_else(|| format!("{name} needs a value"))?;
            match name.as_str() {
                "--subject" => {
                    options.subject = match value.as_str() {
                        "groups" => Subject::Groups,
                        "cache" => Subject::Cache,
                        _ => return Err(format!("no such subject: {value}")),
                    }
                }
                "--minutes" => options.time = seconds(number::<f64>(&name, &value)? * 60.0)?,
                "--seed" => options.seed = number(&name, &value)?,
                "--round" => options.round = number(&name, &value)?,
                "--threads" => options.threads = number::<usize>(&name, &value)?.max(1),
                "--stuck" => options.stuck = seconds(number(&name, &value)?)?,
                _ => return Err(format!("no such option: {name}")),
            }
        }
        Ok(options)
    }
}

fn number<T: FromStr>(name: &str, value: &str) -> Result<T, String> {
    value.parse().map_err(|_| format!("{name}: not such a number: {value}"))
}

fn seconds(seconds: f64) -> Result<Duration, String> {
    Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string())
}
