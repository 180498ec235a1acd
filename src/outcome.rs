//! What callers get back, and what a group tells about itself.

use core::time::Duration;

/// What a call came to: the value, and how it was got.
///
/// # Examples
///
/// ```
/// use oneflight::{Role, SyncGroup};
///
/// let group: SyncGroup<String, u32> = SyncGroup::new();
/// let out = group.call("k").run(|| 7)?;
/// assert_eq!((out.value, out.role, out.shared), (7, Role::Led, false));
/// # Ok::<(), oneflight::CallError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Outcome<V> {
    /// The value.
    pub value: V,
    /// What this caller did for it.
    pub role: Role,
    /// Whether the value was there for somebody else too: whether anybody waited for it when the flight landed. Those of
    /// them who are dropped, or whose time is up, before they have it count as well.
    pub shared: bool,
}

/// What a caller did for its value.
///
/// # Examples
///
/// ```
/// use oneflight::{Role, SyncGroup};
///
/// let group: SyncGroup<String, u32> = SyncGroup::new();
/// let lead = group.try_lead("k");
/// let role = std::thread::scope(|threads| {
///     let follower = threads.spawn(|| group.call("k").run(|| 7).unwrap().role);
///     while group.waiters("k") == 0 {
///         std::thread::yield_now();
///     }
///     drop(lead); // without a value
///     follower.join().unwrap()
/// });
/// assert_eq!(role, Role::TookOver);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// It was the first caller and ran its own work.
    Led,
    /// It waited for a leader.
    Followed,
    /// It ran its own work after an earlier leader of the same flight had left without a value.
    TookOver,
}

/// What a group has done since it was made. All counters start at zero and only grow.
///
/// # Examples
///
/// ```
/// let group: oneflight::SyncGroup<String, u32> = oneflight::SyncGroup::new();
/// group.do_call("k", || 7);
/// let stats = group.stats();
/// let saved = stats.joins as f64 / (stats.flights + stats.joins) as f64;
/// assert_eq!((stats.flights, saved), (1, 0.0));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Flights begun: calls (and guards) that found no flight to join.
    pub flights: u64,
    /// Calls that joined a flight and waited.
    pub joins: u64,
    /// Leads taken over after an earlier leader of the same flight had left without a value. `flights + take_overs` is how
    /// often a closure was started for a key, leads held as guards counted too.
    pub take_overs: u64,
    /// Leads that ended without a value for the others: a panic, a dropped guard, a value that was not to be shared.
    pub abandons: u64,
    /// Waits that ended by their time limit.
    pub timeouts: u64,
    /// Flights that were forgotten.
    pub forgets: u64,
}

#[cfg(any(feature = "std", feature = "critical-section"))]
impl Stats {
    pub(crate) fn add(&mut self, other: &Self) {
        let Self { flights, joins, take_overs, abandons, timeouts, forgets } = other;
        self.flights += flights;
        self.joins += joins;
        self.take_overs += take_overs;
        self.abandons += abandons;
        self.timeouts += timeouts;
        self.forgets += forgets;
    }
}

/// A flight as it was at one moment.
///
/// # Examples
///
/// ```
/// let group: oneflight::SyncGroup<String, u32> = oneflight::SyncGroup::new();
/// let lead = group.try_lead("k");
/// let flight = group.flight_info("k").expect("it is led");
/// assert_eq!((flight.waiters, flight.attempts, flight.forgotten, flight.age), (0, 1, false, None));
/// # drop(lead);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FlightInfo {
    /// Callers that waited for its value.
    pub waiters: usize,
    /// Closures started for it so far, the running one included.
    pub attempts: u32,
    /// Whether it was closed to newcomers, by `forget` or because it grew too old and a new flight of its key began.
    pub forgotten: bool,
    /// How long it had been on. Only known with `max_flight_age`, since no clock is read without, and not once it was closed.
    pub age: Option<Duration>,
}
