//! The load that a cache is to save.

use core::sync::atomic::{AtomicU32, Ordering};
use core::time::Duration;
use std::io::{self, Write as _};
use std::{process, thread};

use super::protocol::{self, Event, Moment};

/// A slow query to a database, which holds a version of the value.
pub(crate) struct Loader {
    takes: Duration,
    database: AtomicU32,
}

impl Loader {
    pub(crate) fn new(takes: Duration) -> Self {
        Self { takes, database: AtomicU32::new(1) }
    }

    /// The database has another version from now on.
    pub(crate) fn set_database(&self, version: u32) {
        self.database.store(version, Ordering::SeqCst);
    }

    /// Loads the value: reads the database, takes its time, and tells the coordinator of both ends. `looked` is when the
    /// caller looked into the cache for the last time.
    pub(crate) fn load(&self, looked: Moment) -> String {
        let begun = Moment::now();
        let version = self.database.load(Ordering::SeqCst);
        tell(&Event::Begun);
        thread::sleep(self.takes);
        tell(&Event::Loaded { looked, begun, ended: Moment::now() });
        protocol::value(version)
    }
}

/// Tells the coordinator. Ends the process if nobody listens any more.
pub(crate) fn tell(event: &Event) {
    let told = serde_json::to_string(event).map_err(io::Error::from).and_then(|mut line| {
        line.push('\n');
        let mut output = io::stdout().lock();
        output.write_all(line.as_bytes())?;
        output.flush()
    });
    if told.is_err() {
        process::exit(1);
    }
}
