//! What keys and channels are called on the server.

use super::key::CacheKey;

/// Over so many channels the keys of a store are spread.
pub(crate) const CHANNELS: u64 = 64;

/// What everything of one store is called. Two stores with different prefixes or schemas share no name.
#[derive(Debug)]
pub(crate) struct Names {
    /// `{<length of the prefix>:<prefix>:<schema>`. The length settles where the prefix ends, whatever is in it.
    head: String,
}

/// What the value, the lease and the epoch of a key are called: `{<head>:<generation>:<key>}:v`, `:l`, `:g`.
///
/// The hash tag of a cluster is what is between the first `{` and the first `}` after it. The first `{` is the first byte, and
/// the first `}` is at most as far as the one that follows the key. So all three share a tag, even if the prefix or the key
/// contains braces; and it is never empty, which would mean no tag.
#[derive(Clone)]
pub(crate) struct Name {
    bytes: Vec<u8>,
    /// Where the generation is.
    generation: usize,
}

const DIGITS: usize = 16;
const SUFFIX: usize = 3;

impl Names {
    pub(crate) fn new(prefix: &str, schema: u32) -> Self {
        Self { head: format!("{{{}:{prefix}:{schema}", prefix.len()) }
    }

    /// What the number is called that is a part of the name of each key.
    pub(crate) fn generation(&self) -> String {
        format!("{}}}:gen", self.head)
    }

    /// The names of a key in a generation that is yet to be [set](Name::set_generation).
    pub(crate) fn name(&self, key: &(impl CacheKey + ?Sized)) -> Name {
        let mut bytes = Vec::with_capacity(self.head.len() + DIGITS + 2 + SUFFIX + 32);
        bytes.extend_from_slice(self.head.as_bytes());
        bytes.push(b':');
        let generation = bytes.len();
        bytes.extend_from_slice(&[b'0'; DIGITS]);
        bytes.push(b':');
        key.append_to(&mut bytes);
        bytes.extend_from_slice(b"}:v");
        Name { bytes, generation }
    }

    /// The channel of this number, which is less than [`CHANNELS`].
    pub(crate) fn channel(&self, number: u64) -> String {
        format!("{}:{number:02}}}:c", self.head)
    }
}

impl Name {
    pub(crate) fn set_generation(&mut self, number: u64) {
        self.bytes[self.generation..][..DIGITS].copy_from_slice(format!("{number:016x}").as_bytes());
    }

    pub(crate) fn value(&self) -> &[u8] {
        &self.bytes
    }

    pub(crate) fn lease(&self) -> Vec<u8> {
        self.ending(b'l')
    }

    pub(crate) fn epoch(&self) -> Vec<u8> {
        self.ending(b'g')
    }

    fn ending(&self, letter: u8) -> Vec<u8> {
        let mut bytes = self.bytes.clone();
        if let Some(last) = bytes.last_mut() {
            *last = letter;
        }
        bytes
    }

    /// A number for the key in all generations. Two keys may share one, which costs no more than a hint too many.
    pub(crate) fn id(&self) -> u64 {
        let head = &self.bytes[..self.generation];
        let key = &self.bytes[self.generation + DIGITS..self.bytes.len() - SUFFIX];
        fnv(fnv(FNV_OFFSET, head), key)
    }
}

const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;

/// FNV-1a (Fowler, Noll, Vo; draft-eastlake-fnv): the same in all processes, of all versions.
fn fnv(hash: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(hash, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3))
}

/// A number for any bytes at all.
pub(crate) fn hash(bytes: &[u8]) -> u64 {
    fnv(FNV_OFFSET, bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    /// The slot of a name, as the cluster specification defines it: CRC-16/XMODEM of the hash tag, modulo 16,384.
    fn slot(name: &[u8]) -> u16 {
        let tag = name.iter().position(|byte| *byte == b'{').and_then(|open| {
            let rest = &name[open + 1..];
            let length = rest.iter().position(|byte| *byte == b'}')?;
            (length > 0).then(|| &rest[..length])
        });
        let crc = tag.unwrap_or(name).iter().fold(0_u16, |crc, byte| {
            (0..8).fold(crc ^ u16::from(*byte) << 8, |crc, _| crc << 1 ^ if crc & 0x8000 == 0 { 0 } else { 0x1021 })
        });
        crc % 16_384
    }

    const PREFIXES: [&str; 9] = ["", "a", "a:b", "{", "}", "{}", "a}b", "1:a", "7:x:1"];

    fn keys() -> Vec<Vec<u8>> {
        let mut keys: Vec<Vec<u8>> =
            ["", "\0", "k", "b:k", "{", "}", "{}", "}{", "{a}b", "a}:v", "}:l", "k}:v", ":", "0:k"]
                .iter()
                .map(|key| key.as_bytes().to_vec())
                .collect();
        keys.extend([vec![0xff], vec![0xff, 0xfe], vec![b'x'; 65_536], vec![b'x'; 65_535]]);
        keys
    }

    #[test]
    fn slots_are_those_of_the_specification() {
        assert_eq!(slot(b"123456789"), 0x31c3);
        assert_eq!(slot(b"{user1000}.following"), slot(b"user1000"));
        assert_ne!(slot(b"foo{}{bar}"), slot(b"bar"), "an empty tag is none");
        assert_eq!(slot(b"foo{{bar}}zap"), slot(b"{bar"));
    }

    /// Cases I8 and K9.
    #[test]
    fn all_names_differ_and_those_of_a_key_share_a_slot() {
        let mut seen = HashSet::new();
        let mut count = 0;
        for prefix in PREFIXES {
            for schema in [0, 1, u32::MAX] {
                let names = Names::new(prefix, schema);
                let others = (0..CHANNELS).map(|number| names.channel(number)).chain([names.generation()]);
                count += others.map(|name| seen.insert(name.into_bytes())).count();
                for key in keys() {
                    let mut name = names.name(&key);
                    for generation in [0, 1, u64::MAX] {
                        name.set_generation(generation);
                        let three = [name.value().to_vec(), name.lease(), name.epoch()];
                        assert_eq!(three.iter().map(|name| slot(name)).collect::<HashSet<_>>().len(), 1, "{three:?}");
                        count += three.map(|name| seen.insert(name)).len();
                    }
                }
            }
        }
        assert_eq!(seen.len(), count);
    }

    #[test]
    fn a_name_is_written_as_the_docs_say() {
        let names = Names::new("shop", 2);
        let mut name = names.name("k");
        name.set_generation(0xabc);
        assert_eq!(name.value(), b"{4:shop:2:0000000000000abc:k}:v");
        assert_eq!(name.lease(), b"{4:shop:2:0000000000000abc:k}:l");
        assert_eq!(name.epoch(), b"{4:shop:2:0000000000000abc:k}:g");
        assert_eq!(names.generation(), "{4:shop:2}:gen");
        assert_eq!(names.channel(7), "{4:shop:2:07}:c");
    }

    #[test]
    fn the_id_of_a_key_is_the_same_in_all_generations_and_differs_from_others() {
        let mut ids = HashSet::new();
        for prefix in PREFIXES {
            for key in keys() {
                let mut name = Names::new(prefix, 0).name(&key);
                let id = name.id();
                name.set_generation(77);
                assert_eq!(name.id(), id);
                ids.insert(id);
            }
        }
        assert_eq!(ids.len(), PREFIXES.len() * keys().len());
        assert_eq!(hash(b"a"), 0xaf63_dc4c_8601_ec8c, "as published");
    }
}
