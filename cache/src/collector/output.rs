//! What a batch loader may return.

use crate::error::Error;
use std::sync::Arc;

/// Makes the error of one caller out of that of a batch. Callers of different keys cannot share one error, and that of the cache
/// need not be [`Clone`].
type MakeError<E> = Arc<dyn Fn() -> Error<E> + Send + Sync>;

/// What a batch comes to for one of its keys.
pub(crate) type Outcome<V, E> = Result<V, MakeError<E>>;

/// What the loader of a collector returns: `Result<Vec<V>, X>`, a value for each key in their order or an error that is
/// everybody's; or `Vec<Result<V, X>>`, for each key one or the other.
///
/// Another number of values or results than there are keys is [`Error::WrongCount`], for all of the batch.
///
/// Each caller gets the error for itself. So `X` is [`Clone`], and becomes the error `E` of the cache; an error that cannot be
/// cloned goes into an [`Arc`]. It is implemented for these two, and for nothing else.
///
/// # Examples
///
/// ```
/// use oneflight_cache::{BoxError, Error, StoreError, blocking::Cache};
///
/// fn root(key: i64) -> Result<f64, StoreError> {
///     if key < 0 { Err(BoxError::from("negative").into()) } else { Ok((key as f64).sqrt()) }
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
    label = "neither `Result<Vec<{V}>, X>` nor `Vec<Result<{V}, X>>` with `X: Clone + Into<{E}>`",
    note = "an error that is not `Clone` goes into an `Arc`"
)]
pub trait BatchOutput<V, E>: Spread<V, E> {}

impl<V, E, T: Spread<V, E>> BatchOutput<V, E> for T {}

/// Seals [`BatchOutput`].
#[doc(hidden)]
pub trait Spread<V, E> {
    #[doc(hidden)]
    fn spread(self, asked: usize) -> Vec<Outcome<V, E>>;
}

impl<V, E, X> Spread<V, E> for Result<Vec<V>, X>
where
    X: Clone + Into<E> + Send + Sync + 'static,
{
    fn spread(self, asked: usize) -> Vec<Outcome<V, E>> {
        match self {
            Ok(values) if values.len() == asked => values.into_iter().map(Ok).collect(),
            Ok(values) => wrong_count(values.len(), asked),
            Err(error) => for_all(failed(error), asked),
        }
    }
}

impl<V, E, X> Spread<V, E> for Vec<Result<V, X>>
where
    X: Clone + Into<E> + Send + Sync + 'static,
{
    fn spread(self, asked: usize) -> Vec<Outcome<V, E>> {
        if self.len() != asked {
            return wrong_count(self.len(), asked);
        }
        self.into_iter().map(|result| result.map_err(failed)).collect()
    }
}

fn failed<E, X: Clone + Into<E> + Send + Sync + 'static>(error: X) -> MakeError<E> {
    Arc::new(move || Error::Load(Arc::new(error.clone().into())))
}

/// Which value belongs to which key is not known.
fn wrong_count<V, E>(returned: usize, asked: usize) -> Vec<Outcome<V, E>> {
    for_all(Arc::new(move || Error::WrongCount { returned, asked }), asked)
}

fn for_all<V, E>(make: MakeError<E>, asked: usize) -> Vec<Outcome<V, E>> {
    vec![make; asked].into_iter().map(Err).collect()
}
