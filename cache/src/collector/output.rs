//! What a batch loader may return.

use crate::error::Error;
use std::sync::Arc;

/// What a batch comes to for one of its keys.
pub(crate) type Outcome<V, E> = Result<V, Error<E>>;

/// What the loader of a collector returns: `Result<Vec<V>, X>`, a value for each key in their order or an error that is
/// everybody's; or `Vec<Result<V, X>>`, for each key one or the other.
///
/// Another number of values or results than there are keys is [`Error::WrongCount`], for all of the batch.
///
/// `X` becomes the error `E` of the cache, once, and all whom it reaches share it: see [`Error::Load`]. It is implemented for
/// these two, and for nothing else.
///
/// # Examples
///
/// ```
/// use oneflight_cache::{BoxError, Error, blocking::Cache};
///
/// fn root(key: i64) -> Result<f64, BoxError> {
///     if key < 0 { Err("negative".into()) } else { Ok((key as f64).sqrt()) }
/// }
///
/// let cache: Cache<i64, f64> = Cache::builder().build_blocking();
/// // For each key a result of its own.
/// let roots = cache.collector(|keys: Vec<i64>| keys.into_iter().map(root).collect::<Vec<_>>());
/// let roots = roots.build();
/// assert_eq!(*roots.load(&4)?, 2.0);
/// assert!(matches!(roots.load(&-4), Err(Error::Load(_))));
/// # Ok::<(), oneflight_cache::Error<oneflight_cache::BoxError>>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "the loader of a collector cannot return `{Self}`",
    label = "neither `Result<Vec<{V}>, X>` nor `Vec<Result<{V}, X>>` with `X: Into<{E}>`"
)]
pub trait BatchOutput<V, E>: Spread<V, E> {}

impl<V, E, T: Spread<V, E>> BatchOutput<V, E> for T {}

/// Seals [`BatchOutput`].
#[doc(hidden)]
pub trait Spread<V, E> {
    #[doc(hidden)]
    fn spread(self, asked: usize) -> Vec<Outcome<V, E>>;
}

impl<V, E, X: Into<E>> Spread<V, E> for Result<Vec<V>, X> {
    fn spread(self, asked: usize) -> Vec<Outcome<V, E>> {
        match self {
            Ok(values) if values.len() == asked => values.into_iter().map(Ok).collect(),
            Ok(values) => wrong_count(values.len(), asked),
            Err(error) => for_all(failed(error), asked),
        }
    }
}

impl<V, E, X: Into<E>> Spread<V, E> for Vec<Result<V, X>> {
    fn spread(self, asked: usize) -> Vec<Outcome<V, E>> {
        if self.len() != asked {
            return wrong_count(self.len(), asked);
        }
        self.into_iter().map(|result| result.map_err(failed)).collect()
    }
}

fn failed<E>(error: impl Into<E>) -> Error<E> {
    Error::Load(Arc::new(error.into()))
}

/// Which value belongs to which key is not known.
fn wrong_count<V, E>(returned: usize, asked: usize) -> Vec<Outcome<V, E>> {
    for_all(Error::WrongCount { returned, asked }, asked)
}

fn for_all<V, E>(error: Error<E>, asked: usize) -> Vec<Outcome<V, E>> {
    vec![error; asked].into_iter().map(Err).collect()
}
