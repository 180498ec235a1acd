//! How long a link waits.

use std::time::Duration;

/// How long a link waits for the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    /// For a connection, which includes that the server lets this client in.
    pub(crate) connect: Duration,
    /// For a reply; for threads also for a connection that nobody uses.
    pub(crate) response: Duration,
    /// So many connections at most, for threads. Tasks share one.
    pub(crate) connections: usize,
}

impl Default for Limits {
    /// A second for a connection, half a second for a reply, 32 connections.
    fn default() -> Self {
        Self { connect: Duration::from_secs(1), response: Duration::from_millis(500), connections: 32 }
    }
}

impl Limits {
    /// Sockets refuse a limit of zero.
    pub(super) fn positive(self) -> Self {
        let least = Duration::from_millis(1);
        Self {
            connect: self.connect.max(least),
            response: self.response.max(least),
            connections: self.connections.max(1),
        }
    }
}

/// How long to wait before connecting again: longer each time, up to two seconds, and never as long as others do.
#[derive(Debug, Default)]
pub(super) struct Pauses {
    failures: u32,
}

impl Pauses {
    const FIRST: u64 = 100;
    const LAST: u64 = 2_000;

    /// It went well, so the next pause is a short one.
    pub(super) fn reset(&mut self) {
        self.failures = 0;
    }

    /// The next pause: between half of and the whole of 100 ms, 200 ms and so on.
    pub(super) fn next(&mut self) -> Duration {
        let longest = (Self::FIRST << self.failures.min(10)).min(Self::LAST);
        self.failures = self.failures.saturating_add(1);
        Duration::from_millis(fastrand::u64(longest / 2..=longest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_up_to_two_seconds_and_are_short_again_after_a_success() {
        let mut pauses = Pauses::default();
        for longest in [100, 200, 400, 800, 1_600, 2_000, 2_000] {
            let pause = pauses.next().as_millis();
            assert!((longest / 2..=longest).contains(&pause), "{pause} of {longest}");
        }
        (0..100).for_each(|_| assert!(pauses.next() <= Duration::from_secs(2)));
        pauses.reset();
        assert!(pauses.next() <= Duration::from_millis(100));
    }
}
