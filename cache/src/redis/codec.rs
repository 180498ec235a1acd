//! Values as bytes.

use crate::error::BoxError;
use std::sync::Arc;

/// Makes values into bytes and back. What is read back comes from the server, so it may be anything.
///
/// # Examples
///
/// A codec of one's own:
///
/// ```
/// use oneflight_cache::BoxError;
/// use oneflight_cache::redis::Codec;
///
/// struct Point {
///     x: f32,
///     y: f32,
/// }
///
/// struct Points;
///
/// impl Codec<Point> for Points {
///     fn id(&self) -> u8 {
///         100
///     }
///
///     fn encode(&self, point: &Point, bytes: &mut Vec<u8>) -> Result<(), BoxError> {
///         bytes.extend_from_slice(&point.x.to_le_bytes());
///         bytes.extend_from_slice(&point.y.to_le_bytes());
///         Ok(())
///     }
///
///     fn decode(&self, bytes: &[u8]) -> Result<Point, BoxError> {
///         let (x, y) = bytes.split_at_checked(4).ok_or("too short")?;
///         Ok(Point { x: f32::from_le_bytes(x.try_into()?), y: f32::from_le_bytes(y.try_into()?) })
///     }
/// }
///
/// let mut bytes = Vec::new();
/// Points.encode(&Point { x: 1.0, y: 2.0 }, &mut bytes)?;
/// assert_eq!(Points.decode(&bytes)?.y, 2.0);
/// assert!(Points.decode(&bytes[..7]).is_err());
/// # Ok::<(), BoxError>(())
/// ```
pub trait Codec<V>: Send + Sync + 'static {
    /// A number for the format, stored with each value: bytes of another format are a miss. Those below 64 are this crate's.
    fn id(&self) -> u8;

    /// Appends the bytes of `value` to `bytes`, and leaves alone what is there already.
    ///
    /// # Errors
    ///
    /// If there are none. Then the value is not stored.
    fn encode(&self, value: &V, bytes: &mut Vec<u8>) -> Result<(), BoxError>;

    /// The value of `bytes`. It must not panic, whatever they are, and not allocate more than in proportion to them.
    ///
    /// # Errors
    ///
    /// If they are not those of a value. Then they are a miss.
    fn decode(&self, bytes: &[u8]) -> Result<V, BoxError>;
}

/// For values that are bytes or text: `Vec<u8>`, `Box<[u8]>`, `Arc<[u8]>`, `String`, `Box<str>`, `Arc<str>`, and `Option` of
/// these.
///
/// # Examples
///
/// ```
/// use oneflight_cache::redis::{Bytes, Codec};
///
/// let mut bytes = Vec::new();
/// Bytes.encode(&"text".to_owned(), &mut bytes)?;
/// let text: String = Bytes.decode(&bytes)?;
/// assert_eq!(text, "text");
/// # Ok::<(), oneflight_cache::BoxError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bytes;

const BYTES: u8 = 1;

macro_rules! codec {
    ($($type:ty)*, $as_bytes:ident, |$bytes:ident| $value:expr) => { $(
        impl Codec<$type> for Bytes {
            fn id(&self) -> u8 {
                BYTES
            }

            fn encode(&self, value: &$type, bytes: &mut Vec<u8>) -> Result<(), BoxError> {
                bytes.extend_from_slice(value.$as_bytes());
                Ok(())
            }

            fn decode(&self, $bytes: &[u8]) -> Result<$type, BoxError> {
                Ok($value.into())
            }
        }
    )* };
}

codec!(Vec<u8> Box<[u8]> Arc<[u8]>, as_ref, |bytes| bytes);
codec!(String Box<str> Arc<str>, as_bytes, |bytes| std::str::from_utf8(bytes)?);

/// `-` is `None`; what is after `+` is the value.
impl<V> Codec<Option<V>> for Bytes
where
    Self: Codec<V>,
{
    fn id(&self) -> u8 {
        BYTES + 1
    }

    fn encode(&self, value: &Option<V>, bytes: &mut Vec<u8>) -> Result<(), BoxError> {
        match value {
            None => bytes.push(b'-'),
            Some(value) => {
                bytes.push(b'+');
                self.encode(value, bytes)?;
            }
        }
        Ok(())
    }

    fn decode(&self, bytes: &[u8]) -> Result<Option<V>, BoxError> {
        match bytes {
            b"-" => Ok(None),
            [b'+', value @ ..] => self.decode(value).map(Some),
            _ => Err("neither a value nor none".into()),
        }
    }
}

/// For values that serde can serialise, in the format of [postcard](https://postcard.jamesmunns.com): small, and stable as
/// long as the type is. Fields have no names there. A type that has changed needs another
/// [schema](crate::redis::Builder::schema), or old bytes may be read as values of the new type.
///
/// With the feature `serde`.
///
/// # Examples
///
/// ```
/// use oneflight_cache::redis::{Codec, Serde};
///
/// let mut bytes = Vec::new();
/// Serde.encode(&(7_u64, Some("text".to_owned())), &mut bytes)?;
/// let value: (u64, Option<String>) = Serde.decode(&bytes)?;
/// assert_eq!(value, (7, Some("text".to_owned())));
/// # Ok::<(), oneflight_cache::BoxError>(())
/// ```
#[cfg(feature = "serde")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Serde;

#[cfg(feature = "serde")]
impl<V: serde::Serialize + serde::de::DeserializeOwned> Codec<V> for Serde {
    fn id(&self) -> u8 {
        8
    }

    fn encode(&self, value: &V, bytes: &mut Vec<u8>) -> Result<(), BoxError> {
        postcard::to_io(value, bytes)?;
        Ok(())
    }

    fn decode(&self, bytes: &[u8]) -> Result<V, BoxError> {
        match postcard::take_from_bytes(bytes)? {
            (value, []) => Ok(value),
            _ => Err("there are bytes after the value".into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Debug;

    fn back_and_forth<V: Debug + PartialEq>(codec: impl Codec<V>, value: V) -> Vec<u8> {
        let mut bytes = b"before".to_vec();
        codec.encode(&value, &mut bytes).unwrap();
        assert!(bytes.starts_with(b"before"));
        let bytes = bytes.split_off(6);
        assert_eq!(codec.decode(&bytes).unwrap(), value);
        bytes
    }

    /// Case I10 too: what looks like nothing is a value.
    #[test]
    fn values_come_back() {
        for bytes in [vec![], vec![0], vec![0xff; 1_000]] {
            assert_eq!(back_and_forth(Bytes, bytes.clone()), bytes);
            back_and_forth::<Arc<[u8]>>(Bytes, bytes.as_slice().into());
            back_and_forth::<Box<[u8]>>(Bytes, bytes.as_slice().into());
            back_and_forth(Bytes, Some(bytes));
        }
        for text in ["", "\0", "über"] {
            back_and_forth(Bytes, text.to_owned());
            back_and_forth::<Arc<str>>(Bytes, text.into());
            back_and_forth(Bytes, Some(Some(text.to_owned())));
        }
        back_and_forth(Bytes, None::<String>);
        back_and_forth(Bytes, Some(None::<String>));
    }

    #[test]
    fn what_is_no_value_is_an_error() {
        assert!(Codec::<String>::decode(&Bytes, &[0xff]).is_err());
        for bytes in [b"".as_slice(), b"--", b"x"] {
            assert!(Codec::<Option<String>>::decode(&Bytes, bytes).is_err());
        }
    }

    #[cfg(feature = "serde")]
    #[test]
    fn serde_reads_what_it_wrote_and_nothing_else() {
        type Value = (u64, Option<String>, Vec<bool>, Vec<u128>);
        let value: Value = (u64::MAX, Some("text".to_owned()), vec![true, false], vec![1, u128::MAX]);
        let bytes = back_and_forth(Serde, value);
        back_and_forth(Serde, ());
        back_and_forth(Serde, None::<u8>);
        for length in 0..bytes.len() {
            assert!(Codec::<Value>::decode(&Serde, &bytes[..length]).is_err());
        }
        assert!(Codec::<Value>::decode(&Serde, &[&bytes[..], &[0]].concat()).is_err());
        // A length of 2^63 bytes, of which there are none.
        let long = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f];
        assert!(Codec::<Vec<u8>>::decode(&Serde, &long).is_err());
        assert!(Codec::<Vec<u128>>::decode(&Serde, &long).is_err());
        let mut random = fastrand::Rng::with_seed(7);
        for _ in 0..100_000 {
            let length = random.usize(..40);
            let bytes: Vec<u8> = (0..length).map(|_| random.u8(..)).collect();
            let _ = Codec::<Value>::decode(&Serde, &bytes);
        }
    }
}
