//! Why a call has no value.

use std::any::Any;
use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;

/// The error of a loader that may fail in many ways; what `?` makes of any other.
pub type BoxError = Box<dyn StdError + Send + Sync>;

/// The error of a store, whichever it is.
pub type StoreError = Arc<dyn StdError + Send + Sync>;

/// Why a call has no value. `E` is the error of the loaders.
///
/// What the loader has failed with is a part of the message. Its [`source`](StdError::source) it is if `E` is [`BoxError`] or
/// [`StoreError`]; any other is told by [`load_error`](Self::load_error).
///
/// # Examples
///
/// ```
/// # use oneflight_cache::{Error, blocking::Cache};
/// let users: Cache<u64, String> = Cache::builder().build_blocking();
/// match users.get_or_load(&7, || Err("no such user".into())) {
///     Err(Error::Load(error)) => assert_eq!(error.to_string(), "no such user"),
///     other => panic!("{other:?}"),
/// }
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum Error<E> {
    /// The loader's error, shared by everybody who waited for this load.
    Load(Arc<E>),
    /// The load took longer than the cache's [`load_timeout`](crate::Builder::load_timeout), and was dropped, if it was a task's. Of
    /// threads only those get it that have waited so long for a batch of a [`Collector`](crate::blocking::Collector), which goes on:
    /// others load themselves.
    LoadTimedOut,
    /// The time is up that this call was given.
    Deadline,
    /// More loads are on than [`max_loads`](crate::Builder::max_loads) allows, or more callers wait for this key than
    /// [`max_waiters`](crate::Builder::max_waiters).
    Overloaded,
    /// The loader has called the cache for its own key.
    Reentrant,
    /// The store has failed in an operation that is nothing without it. A read that loads falls back to its loader instead,
    /// unless it is [told not to](crate::Builder::on_store_error).
    Store(StoreError),
    /// Another process loads the value, and takes longer than [`lease_wait`](crate::Builder::lease_wait); only if
    /// [told so](crate::Builder::on_wait_timeout).
    Held,
    /// The loader of a [`Collector`](crate::Collector) has returned another number of values than it was asked for, so which is
    /// whose is not known. It is the error of all who asked for keys of that batch.
    WrongCount {
        /// How many values there were.
        returned: usize,
        /// How many keys.
        asked: usize,
    },
    /// The cache has been [closed](crate::Cache::close).
    Closed,
}

impl<E> Error<E> {
    /// What the loader has failed with, if that is why.
    ///
    /// # Examples
    ///
    /// Also where the type is known no more, as with `anyhow`, whose errors are looked into in the same way:
    ///
    /// ```
    /// # use oneflight_cache::{Error, blocking::Cache};
    /// #[derive(Debug)]
    /// enum DbError {
    ///     NoRow,
    /// }
    /// # impl std::fmt::Display for DbError {
    /// #     fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result { f.write_str("no row") }
    /// # }
    /// # impl std::error::Error for DbError {}
    ///
    /// fn page(users: &Cache<u64, String, DbError>) -> Result<String, Box<dyn std::error::Error>> {
    ///     Ok(format!("<h1>{}</h1>", *users.get_or_load(&7, || Err(DbError::NoRow))?))
    /// }
    ///
    /// let error = page(&Cache::builder().build_blocking()).unwrap_err();
    /// let cause = error.downcast_ref::<Error<DbError>>().and_then(Error::load_error);
    /// assert!(cause.is_some_and(|cause| matches!(**cause, DbError::NoRow)));
    /// ```
    #[must_use]
    pub fn load_error(&self) -> Option<&Arc<E>> {
        match self {
            Self::Load(error) => Some(error),
            _ => None,
        }
    }
}

// Not derived: `E` need not be `Clone`.
impl<E> Clone for Error<E> {
    fn clone(&self) -> Self {
        match self {
            Self::Load(error) => Self::Load(Arc::clone(error)),
            Self::LoadTimedOut => Self::LoadTimedOut,
            Self::Deadline => Self::Deadline,
            Self::Overloaded => Self::Overloaded,
            Self::Reentrant => Self::Reentrant,
            Self::Store(error) => Self::Store(Arc::clone(error)),
            Self::Held => Self::Held,
            Self::WrongCount { returned, asked } => Self::WrongCount { returned: *returned, asked: *asked },
            Self::Closed => Self::Closed,
        }
    }
}

impl<E: fmt::Display> fmt::Display for Error<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Load(error) => write!(f, "the load failed: {error}"),
            Self::LoadTimedOut => f.write_str("the load took too long"),
            Self::Deadline => f.write_str("the value was not there in time"),
            Self::Overloaded => f.write_str("too many loads or callers at once"),
            Self::Reentrant => f.write_str("the loader called the cache for the key that it loads"),
            Self::Store(error) => write!(f, "the store failed: {error}"),
            Self::Held => f.write_str("another process loads the value, and takes too long"),
            Self::WrongCount { returned, asked } => {
                write!(f, "the loader returned {returned} values for {asked} keys")
            }
            Self::Closed => f.write_str("the cache is closed"),
        }
    }
}

// Not for `E: Error` alone: `BoxError`, the default, is none.
impl<E: fmt::Debug + fmt::Display + 'static> StdError for Error<E> {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match self {
            Self::Load(error) => boxed(&**error),
            Self::Store(error) => Some(&**error),
            _ => None,
        }
    }
}

/// The error in the box, if it is one.
fn boxed(error: &dyn Any) -> Option<&(dyn StdError + 'static)> {
    let shared = || error.downcast_ref::<StoreError>().map(|error| &**error as _);
    error.downcast_ref::<BoxError>().map(|error| &**error as _).or_else(shared)
}

/// An error of the crate's own that is nothing but its message.
#[derive(Debug)]
pub(crate) struct Message(pub(crate) &'static str);

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl StdError for Message {}

/// What comes of a load: a result of the user's, or what is the cache's own error already.
pub(crate) trait Loaded<T, E> {
    fn told(self) -> Result<T, Error<E>>;
}

impl<T, E> Loaded<T, E> for Result<T, E> {
    fn told(self) -> Result<T, Error<E>> {
        self.map_err(|error| Error::Load(Arc::new(error)))
    }
}

pub(crate) struct Told<T, E>(pub(crate) Result<T, Error<E>>);

impl<T, E> Loaded<T, E> for Told<T, E> {
    fn told(self) -> Result<T, Error<E>> {
        self.0
    }
}

/// What a loader of several keys comes to: for each of them, in their order; or an error of all.
pub(crate) type OfEach<T, E> = Result<Vec<Result<T, Error<E>>>, Error<E>>;

/// That, of a loader that brings all values or none.
pub(crate) fn of_each<T, E>(loaded: Result<Vec<T>, E>) -> OfEach<T, E> {
    Ok(loaded.told()?.into_iter().map(Ok).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    fn caused<E: fmt::Debug + fmt::Display + 'static>(error: E) -> Option<io::ErrorKind> {
        let error: Box<dyn StdError> = Box::new(Error::Load(Arc::new(error)));
        assert_eq!(error.to_string(), "the load failed: gone");
        error.source().map(|source| source.downcast_ref::<io::Error>().expect("it is the loader's").kind())
    }

    #[test]
    fn the_source_of_a_failed_load_is_what_is_in_the_box() {
        let error = || io::Error::new(io::ErrorKind::NotFound, "gone");
        assert_eq!(caused::<BoxError>(Box::new(error())), Some(io::ErrorKind::NotFound));
        assert_eq!(caused::<StoreError>(Arc::new(error())), Some(io::ErrorKind::NotFound));
        assert_eq!(caused(error()), None, "`load_error` tells it");
        assert_eq!(
            Error::Load(Arc::new(error())).load_error().map(|error| error.kind()),
            Some(io::ErrorKind::NotFound)
        );
        assert!(Error::<io::Error>::Closed.load_error().is_none());
    }
}
