//! What the server answers, which may be anything.

use super::error::Error;
use super::name;
use super::steps::Seen;
use crate::fill::{Epoch, Token};
use crate::lease::Publication;
use redis::Value;
use std::time::Duration;

/// A value as it is on the server, and for how many more milliseconds; `None` for ever.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Raw {
    pub(crate) bytes: Vec<u8>,
    pub(crate) left: Option<u64>,
}

/// What came of asking for a lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    Leader(Epoch),
    Filled(Raw),
    Gone,
    Held { left: Duration, holder: Token },
}

/// The reply, unless it is an error. A single command that the server refuses has done nothing.
pub(crate) fn good(reply: Option<Value>) -> Result<Value, Error> {
    match reply {
        None => Err(Error::odd("too few replies")),
        Some(Value::ServerError(error)) => Err(error.into()),
        Some(reply) => Ok(reply),
    }
}

/// Whether the server says that it is a replica, and perhaps an outdated one: another may have taken over under its name.
pub(crate) fn is_demoted(reply: &Value) -> bool {
    /// What a script says before Redis 7 begins with `ERR`.
    const READ_ONLY: &str = "READONLY You can't write";
    let Value::ServerError(error) = reply else { return false };
    matches!(error.code(), "READONLY" | "MASTERDOWN")
        || error.details().is_some_and(|details| details.contains(READ_ONLY))
}

/// The answers to `PTTL` and `GET`.
pub(crate) fn raw(left: Option<Value>, value: Option<Value>) -> Result<Option<Raw>, Error> {
    let (left, value) = (good(left)?, good(value)?);
    match value {
        Value::Nil => Ok(None),
        Value::BulkString(bytes) => Ok(milliseconds(&left)?.map(|left| Raw { bytes, left })),
        _ => Err(Error::odd("a value that is no string")),
    }
}

/// What `PTTL` says: `None` if there is no such key, `Some(None)` if it has no expiry.
fn milliseconds(reply: &Value) -> Result<Option<Option<u64>>, Error> {
    match reply {
        Value::Int(-2) => Ok(None),
        Value::Int(-1) => Ok(Some(None)),
        Value::Int(left) => Ok(Some(Some(u64::try_from(*left).map_err(|_| Error::odd("an expiry that is negative"))?))),
        _ => Err(Error::odd("an expiry that is no number")),
    }
}

/// The answer to `GET` of the generation.
pub(crate) fn generation(reply: Option<Value>) -> Result<Option<u64>, Error> {
    match good(reply)? {
        Value::Nil => Ok(None),
        Value::BulkString(bytes) => Ok(Some(name::hash(&bytes))),
        _ => Err(Error::odd("a generation that is no string")),
    }
}

/// Only what was seen can be gone.
pub(crate) fn taken(reply: Value, seen: Seen) -> Result<Taken, Error> {
    let Value::Array(parts) = reply else { return Err(Error::odd("no list came of acquiring")) };
    let mut parts = parts.into_iter();
    let word = text(parts.next())?;
    match (word.as_slice(), parts.next(), parts.next()) {
        (b"leader", epoch, None) => Ok(Taken::Leader(number(&text(epoch)?))),
        // It cannot have expired in between.
        (b"filled", left, value) => raw(left, value)?.map(Taken::Filled).ok_or_else(|| Error::odd("filled by nothing")),
        (b"gone", None, None) if matches!(seen, Seen::Version(_)) => Ok(Taken::Gone),
        (b"held", Some(left), holder) => {
            let left =
                milliseconds(&left)?.map_or(Duration::ZERO, |left| left.map_or(Duration::MAX, Duration::from_millis));
            Ok(Taken::Held { left, holder: number(&text(holder)?) })
        }
        _ => Err(Error::odd("an unknown list came of acquiring")),
    }
}

pub(crate) fn publication(reply: Value) -> Result<Publication, Error> {
    match text(Some(reply))?.as_slice() {
        b"stored" => Ok(Publication::Stored),
        b"late" => Ok(Publication::Late),
        b"superseded" => Ok(Publication::Superseded),
        b"invalidated" => Ok(Publication::Invalidated),
        _ => Err(Error::odd("an unknown word came of publishing")),
    }
}

/// Of scripts that say yes or no.
pub(crate) fn yes(reply: &Value) -> Result<bool, Error> {
    match reply {
        Value::Int(0) => Ok(false),
        Value::Int(1) => Ok(true),
        _ => Err(Error::odd("neither yes nor no")),
    }
}

fn text(reply: Option<Value>) -> Result<Vec<u8>, Error> {
    match reply {
        Some(Value::BulkString(bytes)) => Ok(bytes),
        _ => Err(Error::odd("no string where there should be one")),
    }
}

/// How tokens and epochs are written: 32 lower-case hexadecimal digits.
pub(crate) fn written(number: u128) -> [u8; 32] {
    let mut digits = [0; 32];
    for (place, digit) in digits.iter_mut().enumerate() {
        let four = (number >> (124 - 4 * place)) as usize & 0xf;
        *digit = b"0123456789abcdef"[four];
    }
    digits
}

/// The number that is written there; another one if it is none of ours, which has to do no more than differ from others.
fn number(bytes: &[u8]) -> u128 {
    let parsed = std::str::from_utf8(bytes).ok().and_then(|digits| u128::from_str_radix(digits, 16).ok());
    parsed.filter(|number| written(*number) == bytes).unwrap_or_else(|| name::hash(bytes).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn string(text: &str) -> Value {
        Value::BulkString(text.as_bytes().to_vec())
    }

    #[test]
    fn numbers_come_back_and_others_are_numbers_too() {
        for sample in [0, 1, 0xabcdef, u128::MAX, u128::MAX / 3] {
            assert_eq!(number(&written(sample)), sample);
            assert_eq!(written(sample).as_slice(), format!("{sample:032x}").as_bytes());
        }
        let others = ["", "1", "+0000000000000000000000000000001", "0000000000000000000000000000000A", "worker 7"];
        for other in others {
            assert_eq!(number(other.as_bytes()), name::hash(other.as_bytes()).into(), "{other}");
        }
    }

    #[test]
    fn a_replica_is_told_also_in_a_script_of_an_older_server() {
        let says = |text: &str| redis::parse_redis_value(format!("-{text}\r\n").as_bytes()).unwrap();
        let direct = "READONLY You can't write against a read only replica.";
        let older = format!("ERR Error running script (call to f_0): @user_script:14: @user_script: 14: -{direct}");
        let down = "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.";
        for reply in [direct, &format!("{direct} script: 0, on @user_script:14."), &older, down] {
            assert!(is_demoted(&says(reply)), "{reply}");
        }
        for reply in ["ERR no", "NOPERM no", "LOADING Redis is loading the dataset in memory", "OOM no"] {
            assert!(!is_demoted(&says(reply)), "{reply}");
        }
        assert!(!is_demoted(&string(direct)), "a value");
    }

    /// Case I11.
    #[test]
    fn a_value_without_time_left_is_none() {
        let value = || Some(string("x"));
        assert_eq!(raw(Some(Value::Int(-2)), value()).unwrap(), None, "it has expired in between");
        assert_eq!(raw(Some(Value::Int(5)), Some(Value::Nil)).unwrap(), None);
        assert_eq!(raw(Some(Value::Int(-1)), value()).unwrap().unwrap().left, None);
        assert_eq!(raw(Some(Value::Int(0)), value()).unwrap().unwrap().left, Some(0));
    }

    #[test]
    fn odd_answers_are_errors_that_leave_it_open_what_was_done() {
        let list = |parts: &[Value]| Value::Array(parts.to_vec());
        let odd_lists = [
            Value::Nil,
            Value::Int(1),
            list(&[]),
            list(&[string("leader")]),
            list(&[string("leader"), Value::Int(1)]),
            list(&[string("leader"), string("1"), string("2")]),
            list(&[string("filled"), Value::Int(1), Value::Nil]),
            list(&[string("filled"), Value::Int(1)]),
            list(&[string("filled"), Value::Int(-7), string("x")]),
            list(&[string("filled"), Value::Int(-2), string("x")]),
            list(&[string("held"), Value::Int(1)]),
            list(&[string("held"), string("1"), string("2")]),
            list(&[string("gone"), Value::Int(1)]),
            list(&[string("?")]),
        ];
        for odd in odd_lists {
            let error = taken(odd.clone(), Seen::Version(7)).unwrap_err();
            assert!(error.is_ambiguous(), "{odd:?}");
            assert!(publication(odd).is_err());
        }
        let gone = || list(&[string("gone")]);
        assert_eq!(taken(gone(), Seen::Version(7)).unwrap(), Taken::Gone);
        for seen in [Seen::Nothing, Seen::Whatever] {
            assert!(taken(gone(), seen).unwrap_err().is_ambiguous(), "{seen:?}");
        }
        assert!(good(None).unwrap_err().is_ambiguous());
        assert!(yes(&Value::Int(2)).is_err() && yes(&Value::Okay).is_err());
        assert!(raw(Some(Value::Int(-3)), Some(string("x"))).is_err());
        assert!(raw(Some(Value::Okay), Some(string("x"))).is_err());
        assert!(raw(Some(Value::Int(1)), Some(Value::Int(1))).is_err());
        assert!(generation(Some(Value::Int(1))).is_err());
    }
}
