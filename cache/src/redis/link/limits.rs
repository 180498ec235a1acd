//! How long a link waits.

use parking_lot::Mutex;
use redis::io::tcp::TcpSettings;
use std::time::{Duration, Instant};

/// How long a link waits for the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    /// For a connection, which includes that the server lets this client in.
    pub(crate) connect: Duration,
    /// For a reply; for threads also for a connection that nobody uses.
    pub(crate) response: Duration,
    /// So many connections at most, for threads, beside that for what is pushed.
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

    /// For a connection to one server of a cluster: while the client looks where the keys are it connects to all servers that it
    /// has no connection to, and nobody's requests go on. A server that does not answer is looked for again and again, so a request
    /// for another may wait for that twice, and then needs time for its own reply.
    #[cfg(all(feature = "redis-cluster", any(feature = "redis-smol", feature = "redis-tokio")))]
    pub(super) fn connect_to_each(self) -> Duration {
        self.connect.min(self.response / 3)
    }

    /// For tasks. With these a peer that has vanished, and says nothing, is given up by the kernel: after as long as one that does
    /// not answer, instead of a quarter of an hour. One that only hangs goes on to acknowledge what it is sent, until it has no room
    /// for more. What is set already stays, but for what [all](for_requests) have.
    #[cfg(any(feature = "redis-smol", feature = "redis-tokio"))]
    pub(super) fn tcp(self, settings: TcpSettings) -> TcpSettings {
        let gone = self.response.saturating_mul(DEAD).clamp(Duration::from_secs(2), LONGEST);
        let settings = for_requests(settings, gone);
        #[cfg(not(target_family = "wasm"))]
        let settings = if settings.keepalive().is_none() { settings.set_keepalive(keepalive(gone)) } else { settings };
        settings
    }

    /// For threads, which close a connection that has not answered in time. No longer than for tasks either: the kernel refuses
    /// more than 24 days.
    pub(super) fn tcp_of_threads(self, settings: TcpSettings) -> TcpSettings {
        for_requests(settings, self.response.min(LONGEST))
    }
}

/// What a peer does not acknowledge for so long is given up, whatever the limit of a reply.
const LONGEST: Duration = Duration::from_secs(60);

/// What the peer does not acknowledge for so long is given up, and at once if the connection is closed. Otherwise the kernel would
/// go on to send it for minutes after that: a write that has failed would be carried out over what was written since. And a request
/// is sent without waiting until the one before it has been acknowledged, a round trip later.
fn for_requests(settings: TcpSettings, after: Duration) -> TcpSettings {
    let settings = settings.set_linger_time(Duration::ZERO).set_nodelay(true);
    #[cfg(any(target_os = "android", target_os = "fuchsia", target_os = "linux"))]
    let settings = if settings.user_timeout().is_none() { settings.set_user_timeout(after) } else { settings };
    #[cfg(not(any(target_os = "android", target_os = "fuchsia", target_os = "linux")))]
    let _ = after;
    settings
}

/// A connection that has not answered for so many times the limit of a reply is given up: a router may have forgotten it, and
/// then nobody says so. A server that only hangs for a while keeps it.
#[cfg(any(feature = "redis-smol", feature = "redis-tokio"))]
pub(super) const DEAD: u32 = 10;

/// A peer that has been silent for so long is asked whether it is there, and again after as long.
#[cfg(all(not(target_family = "wasm"), any(feature = "redis-smol", feature = "redis-tokio")))]
fn keepalive(after: Duration) -> redis::io::tcp::socket2::TcpKeepalive {
    let keepalive = redis::io::tcp::socket2::TcpKeepalive::new().with_time(after);
    // Elsewhere it cannot be set, and is a minute or so.
    #[cfg(any(target_os = "android", target_os = "freebsd", target_os = "linux", target_vendor = "apple", windows))]
    let keepalive = keepalive.with_interval(after);
    keepalive
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

/// Leave to give up connections that work, as the server behind them is not the right one any more: once in two seconds, as
/// others may lead to the same.
#[derive(Debug, Default)]
pub(super) struct Retreats(Mutex<Option<Instant>>);

impl Retreats {
    const PAUSE: Duration = Duration::from_secs(2);

    pub(super) fn may(&self) -> bool {
        let (mut last, now) = (self.0.lock(), Instant::now());
        let may = last.is_none_or(|last| now.duration_since(last) >= Self::PAUSE);
        if may {
            *last = Some(now);
        }
        may
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

    #[cfg(any(feature = "redis-smol", feature = "redis-tokio"))]
    #[test]
    fn a_peer_that_vanishes_is_given_up_after_a_while_unless_the_user_says_when() {
        let limits = |response| Limits { response, ..Limits::default() };
        for (response, seconds) in [(Duration::ZERO, 2), (Duration::from_millis(500), 5), (Duration::MAX, 60)] {
            let tcp = limits(response).tcp(TcpSettings::default());
            #[cfg(target_os = "linux")]
            assert_eq!(tcp.user_timeout(), Some(Duration::from_secs(seconds)));
            assert!(tcp.keepalive().is_some(), "{seconds}");
            assert!(tcp.nodelay());
            // There is no other way to see that.
            assert!(format!("{tcp:?}").contains("linger_time: Some(0ns)"), "{tcp:?}");
        }
        #[cfg(target_os = "linux")]
        {
            let of_the_user = TcpSettings::default().set_user_timeout(Duration::from_secs(7));
            assert_eq!(Limits::default().tcp(of_the_user.clone()).user_timeout(), Some(Duration::from_secs(7)));
            assert_eq!(Limits::default().tcp_of_threads(of_the_user).user_timeout(), Some(Duration::from_secs(7)));
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_thread_is_not_waited_for_longer_than_it_waits_itself() {
        let limits = Limits::default();
        let tcp = limits.tcp_of_threads(TcpSettings::default());
        assert_eq!((tcp.user_timeout(), tcp.nodelay()), (Some(limits.response), true));
        let tcp = Limits { response: Duration::MAX, ..limits }.tcp_of_threads(TcpSettings::default());
        assert_eq!(tcp.user_timeout(), Some(Duration::from_secs(60)));
    }
}
