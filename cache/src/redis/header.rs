//! What is stored before the bytes of a value, in the same string.

use crate::entry::Entry;
use crate::fill::Version;
use crate::time::{Time, millis};
use std::time::Duration;

/// | bytes | |
/// |---|---|
/// | 0 to 3 | [`MAGIC`] |
/// | 4 | the kind, [`VALUE`] |
/// | 5 | the [codec's number](super::Codec::id) |
/// | 6, 7 | the length of the header: at least [`LENGTH`], more in versions to come |
/// | 8 to 11 | the version |
/// | 12 to 15 | the load's cost, in microseconds |
/// | 16 to 23 | how long it is fresh from when its load began, in milliseconds; [`FOR_EVER`] |
/// | 24 to 31 | how long it is of some use after that, in milliseconds |
///
/// All numbers are little-endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) version: Version,
    pub(crate) cost: u32,
    pub(crate) ttl: u64,
    pub(crate) stale: u64,
}

/// How long the server keeps a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keep {
    /// Not at all.
    Not,
    /// So many milliseconds, at least one.
    Millis(u64),
    /// Until somebody removes it.
    ForEver,
}

pub(crate) const LENGTH: usize = 32;
const MAGIC: [u8; 4] = *b"1flt";
const VALUE: u8 = 1;
const FOR_EVER: u64 = u64::MAX;

/// What stands for "for ever" where a value is fresh for a while and of use for ever after: ten years. Without an expiry nobody
/// could tell how long it has been there.
const LONG: u64 = 10 * 365 * 24 * 3_600 * 1_000;

impl Header {
    /// The header of `entry`, and how long it is to be kept from `now` on.
    pub(crate) fn of<V>(entry: &Entry<V>, now: Time) -> (Self, Keep) {
        let (fresh, end) = (entry.fresh_until(), entry.stale_until());
        let cost = u32::try_from(entry.cost().as_micros()).unwrap_or(u32::MAX);
        let mut header = Self { version: entry.version(), cost, ttl: FOR_EVER, stale: 0 };
        if fresh == Time::NEVER {
            return (header, Keep::ForEver);
        }
        header.ttl = millis(fresh.since(entry.loaded_at()));
        let keep = if end == Time::NEVER {
            header.stale = LONG;
            // What has been stale for a while has as much less to live.
            let gone = millis(now.since(fresh));
            (millis(fresh.since(now)) + LONG).saturating_sub(gone).max(1)
        } else {
            header.stale = millis(end.since(fresh));
            millis(end.since(now))
        };
        (header, if keep == 0 { Keep::Not } else { Keep::Millis(keep) })
    }

    /// Appends it to `bytes`.
    pub(crate) fn write(&self, codec: u8, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&MAGIC);
        bytes.extend_from_slice(&[VALUE, codec]);
        bytes.extend_from_slice(&(LENGTH as u16).to_le_bytes());
        bytes.extend_from_slice(&self.version.to_le_bytes());
        bytes.extend_from_slice(&self.cost.to_le_bytes());
        bytes.extend_from_slice(&self.ttl.to_le_bytes());
        bytes.extend_from_slice(&self.stale.to_le_bytes());
    }

    /// The header of what is on the server, and the bytes of the value. `None` for whatever this codec has not written.
    pub(crate) fn parse(codec: u8, bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (header, _) = bytes.split_first_chunk::<LENGTH>()?;
        if header[..4] != MAGIC || header[4] != VALUE || header[5] != codec {
            return None;
        }
        let length = usize::from(u16::from_le_bytes(*header[6..].first_chunk()?));
        // Bytes between the numbers that are known here and the value are those of a later version.
        let value = if length < LENGTH { None } else { bytes.get(length..) }?;
        let parsed = Self {
            version: u32::from_le_bytes(*header[8..].first_chunk()?),
            cost: u32::from_le_bytes(*header[12..].first_chunk()?),
            ttl: u64::from_le_bytes(*header[16..].first_chunk()?),
            stale: u64::from_le_bytes(*header[24..].first_chunk()?),
        };
        Some((parsed, value))
    }

    /// The entry of a value that the server keeps for `left` more milliseconds; `None` if it keeps it for ever.
    ///
    /// Nobody knows when a value without an expiry was stored: so it is as if loaded now, and fresh for ever.
    pub(crate) fn entry<V>(&self, value: V, left: Option<u64>, now: Time) -> Entry<V> {
        let cost = Duration::from_micros(self.cost.into());
        let Some(left) = left else {
            return Entry::new(value, self.version, now, Time::NEVER, Time::NEVER, cost);
        };
        let end = now.after(Duration::from_millis(left));
        // More than it ever had can be left only if somebody else has set its expiry.
        let fresh = Duration::from_millis(left.saturating_sub(self.stale).min(self.ttl));
        let fresh_until = match self.stale.checked_sub(left) {
            Some(gone) => now.before(Duration::from_millis(gone)),
            None => now.after(fresh),
        };
        let loaded_at = match self.ttl {
            FOR_EVER => now.min(fresh_until),
            ttl => fresh_until.before(Duration::from_millis(ttl)),
        };
        Entry::new(value, self.version, loaded_at, fresh_until, end.max(fresh_until), cost)
    }
}

/// Where the version is, also in bytes that cannot be read: the first and the last of the four, as `GETRANGE` counts them.
const VERSION_AT: (usize, usize) = (8, 11);

/// What is at the version's place, zero where there is nothing. The script that acquires compares the same bytes.
pub(crate) fn version_of(bytes: &[u8]) -> Version {
    let mut version = [0; 4];
    let there = bytes.get(VERSION_AT.0..).unwrap_or_default();
    version.iter_mut().zip(there).for_each(|(to, from)| *to = *from);
    Version::from_le_bytes(version)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: Header = Header { version: 0x0403_0201, cost: 5, ttl: 60_000, stale: 30_000 };
    const CODEC: u8 = 9;
    const NOW: Time = Time::START;

    fn now() -> Time {
        NOW.after(Duration::from_secs(1_000_000))
    }

    fn stored(value: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        HEADER.write(CODEC, &mut bytes);
        assert_eq!(bytes.len(), LENGTH);
        bytes.extend_from_slice(value);
        bytes
    }

    /// The entry, kept and read back `after` that.
    fn read_back(entry: &Entry<()>, after: Duration) -> Entry<()> {
        let (header, keep) = Header::of(entry, now());
        let left = match keep {
            Keep::Not => panic!("it is not kept"),
            Keep::Millis(millis) => Some(millis - u64::try_from(after.as_millis()).unwrap()),
            Keep::ForEver => None,
        };
        header.entry((), left, now().after(after))
    }

    #[test]
    fn what_is_written_is_read() {
        for value in [b"".as_slice(), b"\0", b"value"] {
            assert_eq!(Header::parse(CODEC, &stored(value)), Some((HEADER, value)));
            assert_eq!(version_of(&stored(value)), HEADER.version);
        }
        assert_eq!(stored(b"")[VERSION_AT.0..=VERSION_AT.1], [1, 2, 3, 4]);
    }

    #[test]
    fn what_is_not_ours_is_not_read() {
        let bytes = stored(b"value");
        for length in 0..LENGTH {
            assert_eq!(Header::parse(CODEC, &bytes[..length]), None);
        }
        assert_eq!(Header::parse(CODEC + 1, &bytes), None, "of another codec");
        for at in 0..6 {
            for bit in 0..8 {
                let mut bytes = bytes.clone();
                bytes[at] ^= 1 << bit;
                assert_eq!(Header::parse(CODEC, &bytes), None, "byte {at}, bit {bit}");
            }
        }
        for length in [0, LENGTH as u16 - 1, bytes.len() as u16 + 1, u16::MAX] {
            let mut bytes = bytes.clone();
            bytes[6..8].copy_from_slice(&length.to_le_bytes());
            assert_eq!(Header::parse(CODEC, &bytes), None, "a header of {length} bytes");
        }
        let mut longer = bytes;
        longer[6..8].copy_from_slice(&(LENGTH as u16 + 2).to_le_bytes());
        assert_eq!(Header::parse(CODEC, &longer), Some((HEADER, b"lue".as_slice())), "of a later version");
    }

    #[test]
    fn missing_bytes_of_a_version_are_zero() {
        let bytes = [1, 2, 3, 4, 5, 6, 7, 8, 0x11, 0x22, 0x33, 0x44, 0x55];
        assert_eq!(
            [0, 8, 9, 11, 12, 13].map(|length| version_of(&bytes[..length])),
            [0, 0, 0x11, 0x0033_2211, 0x4433_2211, 0x4433_2211]
        );
    }

    /// Bytes at random, and valid ones that are cut, changed and lengthened.
    #[test]
    fn no_bytes_make_it_panic_or_read_beyond_them() {
        let mut random = fastrand::Rng::with_seed(0x0f1e);
        let mut read = 0;
        for round in 0..300_000_u32 {
            let length = random.usize(..64);
            let mut bytes: Vec<u8> = (0..length).map(|_| random.u8(..)).collect();
            if round % 3 > 0 {
                let valid = stored(&bytes);
                bytes = valid[..random.usize(..=valid.len())].to_vec();
                for _ in 0..random.usize(..4) {
                    if !bytes.is_empty() {
                        let at = random.usize(..bytes.len());
                        bytes[at] ^= 1 << random.u8(..8);
                    }
                }
            }
            let version = version_of(&bytes);
            let Some((header, value)) = Header::parse(CODEC, &bytes) else { continue };
            read += 1;
            assert_eq!(header.version, version);
            assert!(bytes.len() >= LENGTH && bytes.ends_with(value) && value.len() <= bytes.len() - LENGTH);
            for left in [None, Some(0), Some(1), Some(random.u64(..)), Some(u64::MAX)] {
                let entry = header.entry((), left, now());
                assert!(entry.loaded_at() <= entry.fresh_until() && entry.fresh_until() <= entry.stale_until());
            }
        }
        assert!((30_000..200_000).contains(&read), "{read} of 300,000 could be read");
    }

    #[test]
    fn times_come_back() {
        let second = Duration::from_secs(1);
        let loaded_at = now().before(second * 3);
        let entry = Entry::new((), 7, loaded_at, now().after(second * 57), now().after(second * 87), second / 4);
        assert_eq!(Header::of(&entry, now()).1, Keep::Millis(87_000));
        assert_eq!(read_back(&entry, Duration::ZERO), entry);
        assert_eq!(read_back(&entry, second * 10), entry);
        assert_eq!(read_back(&entry, second * 80), entry, "while it is stale");
    }

    /// Case I3.
    #[test]
    fn short_long_and_endless_lives() {
        let kept = |fresh: Duration, stale: Duration| {
            let fresh_until = now().after(fresh);
            let entry = Entry::new((), 7, now(), fresh_until, fresh_until.after(stale), Duration::ZERO);
            (Header::of(&entry, now()).1, entry)
        };
        let (nano, milli, zero) = (Duration::from_nanos(1), Duration::from_millis(1), Duration::ZERO);
        assert_eq!(kept(zero, zero).0, Keep::Not);
        for short in [nano, milli - nano, milli] {
            assert_eq!(kept(short, zero).0, Keep::Millis(1));
        }
        assert_eq!(kept(milli + nano, zero).0, Keep::Millis(2));
        assert_eq!(kept(zero, nano).0, Keep::Millis(1));
        for long in [Duration::from_millis(u64::MAX), Duration::MAX] {
            let (keep, entry) = kept(long, zero);
            assert_eq!(keep, Keep::ForEver);
            assert_eq!(read_back(&entry, milli).fresh_until(), Time::NEVER);
        }
        let (keep, entry) = kept(milli, Duration::MAX);
        assert_eq!(keep, Keep::Millis(1 + LONG));
        let back = read_back(&entry, milli * 5);
        assert_eq!((back.fresh_until(), back.stale_until()), (now().after(milli), Time::NEVER));
    }

    #[test]
    fn what_has_been_stale_for_a_while_stays_so() {
        let second = Duration::from_secs(1);
        for stale in [second * 60, Duration::MAX] {
            let fresh_until = now().before(second * 20);
            let loaded_at = fresh_until.before(second * 5);
            let entry = Entry::new((), 7, loaded_at, fresh_until, fresh_until.after(stale), second);
            assert_eq!(read_back(&entry, second * 3), entry);
        }
    }

    /// Case I11.
    #[test]
    fn a_value_without_an_expiry_is_fresh_for_ever() {
        let entry = HEADER.entry((), None, now());
        assert_eq!((entry.loaded_at(), entry.fresh_until()), (now(), Time::NEVER));
        assert_eq!(entry.freshness(now()).left, Duration::MAX);
    }

    #[test]
    fn an_expiry_that_others_have_set_does_not_make_it_fresher() {
        let entry = HEADER.entry((), Some(90_000_000), now());
        assert_eq!(entry.fresh_until(), now().after(Duration::from_secs(60)));
        let shorter = HEADER.entry((), Some(31_000), now());
        assert_eq!(shorter.fresh_until(), now().after(Duration::from_secs(1)));
    }
}
