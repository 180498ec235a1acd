//! What must always hold, and how it is told that it does not.

use oneflight::CallError;
use oneflight_cache::Source;
use std::fmt;
use std::process;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// A promise that was broken.
#[derive(Debug)]
pub(crate) enum Breach {
    /// More executions of a key ran at once than it can have had flights.
    Overlap { running: u32, flights: u32 },
    /// An execution went on after another one of the same flight had begun.
    Outlived { execution: u64, by: u64 },
    /// A call got the value of another key.
    ForeignKey { got: u32 },
    /// A call got a value that no execution of its key had produced by then.
    Invented { execution: u64 },
    /// A call got a value that another call had returned with before it began.
    Late { execution: u64 },
    /// A call got the value of a flight that had been forgotten before the call began.
    Forgotten { execution: u64 },
    /// A call joined a flight that had been too old for that.
    TooOld { execution: u64 },
    /// A value that was said to be its caller's alone reached several.
    NotAlone { execution: u64 },
    /// The role of a caller does not go with whose work it was.
    WrongRole { execution: u64, followed: bool },
    /// A call ran out of time before its time was up.
    TooSoon,
    /// A call was refused for no reason.
    Refused(CallError),
    /// A call that had to be refused as re-entrant was not.
    NotRefused,
    /// A batch came back with the wrong number of values.
    WrongLength { asked: usize, got: usize },
    /// A panic reached a call that it does not concern.
    Panicked(String),
    /// A call did not end.
    Lost(String),
    /// What is left when all calls have ended.
    Left { what: &'static str, count: i64 },
    /// A counter that does not agree with what was seen.
    Counter { what: &'static str, counted: u64, seen: u64 },
    /// A value, or a loader's error, older than the last write that had finished before the call began.
    Stale { value: u64, write: u64, from: Option<Source> },
    /// A key that nothing changes was loaded more than once.
    LoadedAgain { loads: u64 },
    /// A call of the cache failed for no reason.
    Failed(String),
    /// The process has grown, in KiB.
    Grown { by: u64, bound: u64 },
}

/// The seed and the round that are on.
static SEED: AtomicU64 = AtomicU64::new(0);
static ROUND: AtomicU64 = AtomicU64::new(0);

/// Says what breaches are to name from now on.
pub(crate) fn place(seed: u64, round: u64) {
    SEED.store(seed, Ordering::Relaxed);
    ROUND.store(round, Ordering::Relaxed);
}

/// Where we are.
pub(crate) fn placed() -> (u64, u64) {
    (SEED.load(Ordering::Relaxed), ROUND.load(Ordering::Relaxed))
}

impl Breach {
    /// Tells of it and ends the process: the first one counts, what comes after it may follow from it.
    #[track_caller]
    pub(crate) fn raise(self, key: impl Into<Option<u32>>) -> ! {
        static RAISED: AtomicBool = AtomicBool::new(false);
        if RAISED.swap(true, Ordering::SeqCst) {
            loop {
                std::thread::park();
            }
        }
        let (seed, round) = placed();
        let key = key.into().map_or_else(|| "no key".to_owned(), |key| format!("key {key}"));
        eprintln!("BREACH: seed {seed}, round {round}, {key}: {self}");
        eprintln!("        {self:?}, found at {}", std::panic::Location::caller());
        process::exit(1)
    }
}

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Overlap { running, flights } => {
                write!(f, "{running} executions run at once, of {flights} flights at most")
            }
            Self::Outlived { execution, by } => {
                write!(f, "execution {execution} goes on though {by} has begun in the same flight")
            }
            Self::ForeignKey { got } => write!(f, "a value of key {got} was returned"),
            Self::Invented { execution } => write!(f, "execution {execution} of this key has produced nothing"),
            Self::Late { execution } => {
                write!(f, "the value of execution {execution}, whose flight was over, reached a later call")
            }
            Self::Forgotten { execution } => {
                write!(f, "the value of execution {execution}, forgotten before, reached a later call")
            }
            Self::TooOld { execution } => write!(f, "a call joined execution {execution}, which was too old"),
            Self::NotAlone { execution } => {
                write!(f, "the value of execution {execution} was its caller's alone, and reached several")
            }
            Self::WrongRole { execution, followed } => {
                write!(f, "the role does not go with execution {execution} (followed: {followed})")
            }
            Self::TooSoon => f.write_str("timed out before its time was up"),
            Self::Refused(error) => write!(f, "refused: {error}"),
            Self::NotRefused => f.write_str("called from inside its own work, and not refused"),
            Self::WrongLength { asked, got } => write!(f, "{got} values for {asked} keys"),
            Self::Panicked(what) => write!(f, "a panic reached the wrong call: {what}"),
            Self::Lost(who) => write!(f, "calls do not end: {who}"),
            Self::Left { what, count } => write!(f, "left behind: {count} {what}"),
            Self::Counter { what, counted, seen } => write!(f, "{what}: counted {counted}, seen {seen}"),
            Self::Stale { value, write, from } => {
                write!(f, "a value ({from:?}) of time {value} after a write of time {write} had finished")
            }
            Self::LoadedAgain { loads } => write!(f, "loaded {loads} times though nothing changes it"),
            Self::Failed(error) => write!(f, "failed: {error}"),
            Self::Grown { by, bound } => write!(f, "memory has grown by {by} KiB, more than {bound}"),
        }
    }
}
