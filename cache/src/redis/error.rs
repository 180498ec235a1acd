//! Why a request to the server has failed.

use crate::error::Message;
use redis::{ErrorKind, RedisError, ServerError};
use std::fmt;
use std::sync::Arc;

/// Why a request to the server has failed. No variant shows a key, a value or a password.
///
/// # Examples
///
/// ```
/// use oneflight_cache::redis::Error;
///
/// let error = Error::WrongType;
/// assert_eq!(error.to_string(), "there is something else than a string under the key's name");
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Error {
    /// There is no connection, it broke, or no answer came in time: the request may have been carried out or not.
    Away(Arc<dyn std::error::Error + Send + Sync>),
    /// The server refused the request, and did nothing: it is out of memory, read-only, loading, or does not permit it.
    Refused(Arc<dyn std::error::Error + Send + Sync>),
    /// All connections of this process were in use for too long: nothing was sent. See
    /// [`max_connections`](super::Builder::max_connections).
    Busy,
    /// There is something under the key's name that is not a string, so nobody of ours has put it there. It is left alone.
    WrongType,
    /// An address or a setting makes no sense, or there is no runtime to connect from: nobody was asked.
    Settings(Arc<dyn std::error::Error + Send + Sync>),
    /// The value could not be made into bytes.
    Encode(Arc<dyn std::error::Error + Send + Sync>),
}

impl Error {
    /// Whether the server may have done what it was asked to do all the same.
    pub(crate) fn is_ambiguous(&self) -> bool {
        matches!(self, Self::Away(_))
    }

    /// Something that is not as the protocol has it: it may have been carried out.
    pub(crate) fn odd(reply: &'static str) -> Self {
        Self::Away(Arc::new(Message(reply)))
    }
}

/// What a script says before Redis 7 of an operation on a value of another type begins with `ERR`.
const WRONG_TYPE: &str = "WRONGTYPE Operation against a key";

impl From<RedisError> for Error {
    /// What the client could not make sense of is [`Away`](Self::Away): it may have been carried out.
    fn from(error: RedisError) -> Self {
        if error.code() == Some("WRONGTYPE") || error.detail().is_some_and(|detail| detail.contains(WRONG_TYPE)) {
            return Self::WrongType;
        }
        match error.kind() {
            ErrorKind::Server(_)
            | ErrorKind::Extension
            | ErrorKind::AuthenticationFailed
            | ErrorKind::RESP3NotSupported => Self::Refused(Arc::new(error)),
            ErrorKind::InvalidClientConfig => Self::Settings(Arc::new(error)),
            _ => Self::Away(Arc::new(error)),
        }
    }
}

impl From<ServerError> for Error {
    fn from(error: ServerError) -> Self {
        RedisError::from(error).into()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Away(error) => write!(f, "the server cannot be reached: {error}"),
            Self::Refused(error) => write!(f, "the server refused: {error}"),
            Self::Settings(error) => write!(f, "a setting makes no sense: {error}"),
            Self::Busy => f.write_str("all connections are in use"),
            Self::WrongType => f.write_str("there is something else than a string under the key's name"),
            Self::Encode(error) => write!(f, "the value cannot be encoded: {error}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Away(error) | Self::Refused(error) | Self::Settings(error) | Self::Encode(error) => Some(&**error),
            Self::Busy | Self::WrongType => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    fn said(reply: &str) -> Error {
        let value = redis::parse_redis_value(format!("-{reply}\r\n").as_bytes()).unwrap();
        value.extract_error().unwrap_err().into()
    }

    #[test]
    fn what_the_server_says_is_refused_and_unambiguous() {
        for reply in [
            "ERR no",
            "OOM command not allowed when used memory > 'maxmemory'.",
            "READONLY You can't write against a read only replica.",
            "LOADING Redis is loading the dataset in memory",
            "NOPERM no",
            "NOAUTH Authentication required.",
            "BUSY Redis is busy running a script.",
            "MISCONF no",
            "NOSCRIPT no",
            "CLUSTERDOWN no",
            "MOVED 3300 127.0.0.1:1",
        ] {
            let error = said(reply);
            assert!(matches!(error, Error::Refused(_)) && !error.is_ambiguous(), "{reply}: {error:?}");
            assert!(error.to_string().starts_with("the server refused: "), "{error}");
        }
    }

    #[test]
    fn another_type_is_told_also_in_a_script_of_an_older_server() {
        let direct = "WRONGTYPE Operation against a key holding the wrong kind of value";
        let script = format!("{direct} script: 0, on @user_script:1.");
        let older = format!("ERR Error running script (call to f_0): @user_script:1: {direct}");
        for reply in [direct, &script, &older] {
            let error = said(reply);
            assert!(matches!(error, Error::WrongType) && !error.is_ambiguous(), "{reply}: {error:?}");
        }
    }

    #[test]
    fn what_goes_wrong_on_the_way_is_ambiguous() {
        use io::ErrorKind::{
            BrokenPipe, ConnectionRefused, ConnectionReset, Interrupted, TimedOut, UnexpectedEof, WouldBlock,
        };
        for kind in [BrokenPipe, ConnectionRefused, ConnectionReset, Interrupted, TimedOut, UnexpectedEof, WouldBlock] {
            let error = Error::from(RedisError::from(io::Error::from(kind)));
            assert!(matches!(error, Error::Away(_)) && error.is_ambiguous(), "{kind}: {error:?}");
        }
        let nonsense = Error::from(redis::parse_redis_value(b"?\r\n").unwrap_err());
        assert!(nonsense.is_ambiguous(), "{nonsense:?}");
        assert!(Error::odd("a reply of four").is_ambiguous());
    }

    #[test]
    fn a_url_that_makes_no_sense_is_not_blamed_on_a_server() {
        for url in ["", "http://127.0.0.1/", "redis://127.0.0.1:port/", "redis://127.0.0.1/?protocol=9"] {
            let error = Error::from(redis::Client::open(url).unwrap_err());
            assert!(matches!(error, Error::Settings(_)) && !error.is_ambiguous(), "{url}: {error:?}");
            assert!(error.to_string().starts_with("a setting makes no sense: "), "{error}");
        }
    }
}
