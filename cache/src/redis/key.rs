//! Typed keys as bytes.

use std::borrow::Cow;
use std::rc::Rc;
use std::sync::Arc;

/// A key that can be written as bytes, so that different keys of one type have different bytes.
///
/// Owned and borrowed forms of a key have the same bytes: `String` and `str`, `(String, u64)` and `(&str, u64)`. Keys of
/// different types may have the same bytes, such as `7` and `"7"`: a store is for keys of one type, and another type needs
/// another [prefix](crate::redis::Builder::prefix). `get_or_load` makes the owned key by `ToOwned`, so it takes `&str` for a
/// `String`, and a key of several parts owned.
///
/// | type | bytes |
/// |---|---|
/// | strings, `char` | UTF-8 |
/// | slices, vectors and arrays of `u8` | as they are |
/// | integers | decimal |
/// | `bool` | `0`, `1` |
/// | tuples of two to four | each part after its length and a colon |
/// | `Option` | `-`, or `+` and the bytes |
/// | references, `Box`, `Rc`, `Arc`, `Cow` | those of what they refer to |
///
/// # Examples
///
/// A key of one's own is best written as a tuple:
///
/// ```
/// use oneflight_cache::redis::CacheKey;
///
/// #[derive(Clone, PartialEq, Eq, Hash)]
/// struct Page {
///     tenant: u32,
///     path: String,
/// }
///
/// impl CacheKey for Page {
///     fn append_to(&self, bytes: &mut Vec<u8>) {
///         (self.tenant, &self.path).append_to(bytes);
///     }
/// }
///
/// let mut bytes = Vec::new();
/// Page { tenant: 12, path: "/a".to_owned() }.append_to(&mut bytes);
/// assert_eq!(bytes, b"2:122:/a");
/// ```
pub trait CacheKey {
    /// Appends the bytes of the key to `bytes`, and leaves alone what is there already.
    fn append_to(&self, bytes: &mut Vec<u8>);
}

impl CacheKey for [u8] {
    fn append_to(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(self);
    }
}

impl<const N: usize> CacheKey for [u8; N] {
    fn append_to(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(self);
    }
}

impl CacheKey for str {
    fn append_to(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(self.as_bytes());
    }
}

impl CacheKey for char {
    fn append_to(&self, bytes: &mut Vec<u8>) {
        self.encode_utf8(&mut [0; 4]).append_to(bytes);
    }
}

impl CacheKey for bool {
    fn append_to(&self, bytes: &mut Vec<u8>) {
        bytes.push(if *self { b'1' } else { b'0' });
    }
}

impl<T: CacheKey> CacheKey for Option<T> {
    fn append_to(&self, bytes: &mut Vec<u8>) {
        match self {
            None => bytes.push(b'-'),
            Some(key) => {
                bytes.push(b'+');
                key.append_to(bytes);
            }
        }
    }
}

/// The digits of a number, without the detour over a string.
fn append_decimal(mut number: u128, bytes: &mut Vec<u8>) {
    let mut digits = [0; 39];
    let mut first = digits.len();
    loop {
        first -= 1;
        digits[first] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    bytes.extend_from_slice(&digits[first..]);
}

macro_rules! unsigned {
    ($($type:ty)*) => { $(
        impl CacheKey for $type {
            fn append_to(&self, bytes: &mut Vec<u8>) {
                append_decimal(*self as u128, bytes);
            }
        }
    )* };
}

macro_rules! signed {
    ($($type:ty)*) => { $(
        impl CacheKey for $type {
            fn append_to(&self, bytes: &mut Vec<u8>) {
                if *self < 0 {
                    bytes.push(b'-');
                }
                append_decimal(self.unsigned_abs() as u128, bytes);
            }
        }
    )* };
}

unsigned!(u8 u16 u32 u64 u128 usize);
signed!(i8 i16 i32 i64 i128 isize);

macro_rules! pointers {
    ($([$($bounds:tt)*] $type:ty;)*) => { $(
        impl<$($bounds)*> CacheKey for $type {
            fn append_to(&self, bytes: &mut Vec<u8>) {
                (**self).append_to(bytes);
            }
        }
    )* };
}

pointers! {
    [] Vec<u8>;
    [] String;
    [T: CacheKey + ?Sized] &T;
    [T: CacheKey + ?Sized] Box<T>;
    [T: CacheKey + ?Sized] Rc<T>;
    [T: CacheKey + ?Sized] Arc<T>;
    [T: CacheKey + ToOwned + ?Sized] Cow<'_, T>;
}

/// One part of a tuple: its length, a colon, its bytes. So no part can be taken for the beginning of the next.
fn append_part(part: &(impl CacheKey + ?Sized), bytes: &mut Vec<u8>) {
    let at = bytes.len();
    part.append_to(bytes);
    // Written after the part, whose length is known only then, and turned round.
    let middle = bytes.len();
    append_decimal((middle - at) as u128, bytes);
    bytes.push(b':');
    bytes[at..].rotate_left(middle - at);
}

macro_rules! tuple {
    ($($part:ident)*) => {
        impl<$($part: CacheKey),*> CacheKey for ($($part,)*) {
            fn append_to(&self, bytes: &mut Vec<u8>) {
                #[allow(non_snake_case, reason = "each part is called as its type is")]
                let ($($part,)*) = self;
                $(append_part($part, bytes);)*
            }
        }
    };
}

tuple!(A B);
tuple!(A B C);
tuple!(A B C D);

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn bytes(key: impl CacheKey) -> Vec<u8> {
        let mut bytes = b"before".to_vec();
        key.append_to(&mut bytes);
        assert!(bytes.starts_with(b"before"));
        bytes.split_off(6)
    }

    #[test]
    fn each_type_has_the_bytes_of_the_table() {
        assert_eq!(bytes("a\0b"), b"a\0b");
        assert_eq!(bytes('ü'), "ü".as_bytes());
        assert_eq!(bytes([1, 2, 255]), [1, 2, 255]);
        assert_eq!((bytes(0), bytes(-1_i8), bytes(i8::MIN)), (b"0".to_vec(), b"-1".to_vec(), b"-128".to_vec()));
        assert_eq!(bytes(u128::MAX), u128::MAX.to_string().as_bytes());
        assert_eq!(bytes(i128::MIN), i128::MIN.to_string().as_bytes());
        assert_eq!(bytes((true, false)), b"1:11:0");
        assert_eq!((bytes(None::<u8>), bytes(Some(7))), (b"-".to_vec(), b"+7".to_vec()));
        assert_eq!(bytes(("tenant", 12, "0123456789")), b"6:tenant2:1210:0123456789");
    }

    #[test]
    fn owned_and_borrowed_forms_have_the_same_bytes() {
        let forms = [
            bytes("key"),
            bytes("key".to_owned()),
            bytes(Arc::new("key".to_owned())),
            bytes(Box::<str>::from("key")),
            bytes(Arc::<str>::from("key")),
            bytes(Cow::Borrowed("key")),
            bytes(Cow::<str>::Owned("key".to_owned())),
            bytes(b"key"),
            bytes(b"key".to_vec()),
            bytes(b"key".as_slice()),
        ];
        assert_eq!(HashSet::from(forms).len(), 1);
        assert_eq!(bytes(("a".to_owned(), 1_u64, vec![2])), bytes(("a", &1_u64, [2].as_slice())));
    }

    #[test]
    fn different_keys_of_a_type_have_different_bytes() {
        let parts = ["", "\0", ":", "1:", "a", "ab", "b", "1:a", "0:", "11"];
        let mut seen = HashSet::new();
        let mut keys = 0;
        for first in parts {
            for second in parts {
                for third in parts {
                    seen.insert(bytes((first, second, third)));
                    keys += 1;
                }
            }
        }
        assert_eq!(seen.len(), keys);
        let options = [Some(None), None, Some(Some("")), Some(Some("-")), Some(Some("+"))];
        assert_eq!(options.map(bytes).into_iter().collect::<HashSet<_>>().len(), options.len());
        let nested = [(("a", "b"), "c"), (("a", ""), "bc"), (("", "ab"), "c")];
        assert_eq!(nested.map(bytes).into_iter().collect::<HashSet<_>>().len(), nested.len());
    }
}
