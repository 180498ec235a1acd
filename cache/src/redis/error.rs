//! Why a request to the server has failed.

use std::fmt;
use std::sync::Arc;

/// Why a request to the server has failed.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Error {
    /// There is no connection, it broke, or no answer came in time: the request may have been carried out or not.
    Away(Arc<dyn std::error::Error + Send + Sync>),
    /// The server refused the request, and did nothing: it is out of memory, read-only, loading, or does not permit it.
    Refused(Arc<dyn std::error::Error + Send + Sync>),
    /// There is something under the key's name that is not a string, so nobody of ours has put it there. It is left alone.
    WrongType,
    /// The value could not be made into bytes.
    Encode(Arc<dyn std::error::Error + Send + Sync>),
}

impl Error {
    /// Whether the server may have done what it was asked to do all the same.
    pub(crate) fn is_ambiguous(&self) -> bool {
        matches!(self, Self::Away(_))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Away(error) => write!(f, "the server cannot be reached: {error}"),
            Self::Refused(error) => write!(f, "the server refused: {error}"),
            Self::WrongType => f.write_str("there is something else than a string under the key's name"),
            Self::Encode(error) => write!(f, "the value cannot be encoded: {error}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Away(error) | Self::Refused(error) | Self::Encode(error) => Some(&**error),
            Self::WrongType => None,
        }
    }
}
