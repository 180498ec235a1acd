//! What a batch loader may return.

use std::sync::Arc;

/// Makes the error of one caller out of that of a batch. Callers of different keys cannot share one error, and that of the cache
/// need not be [`Clone`].
pub(crate) type MakeError<E> = Arc<dyn Fn() -> E + Send + Sync>;

/// What a batch comes to for one of its keys.
pub(crate) type Outcome<V, E> = Result<V, MakeError<E>>;

/// What the loader of a collector returns: `Result<Vec<V>, X>`, a value for each key in their order or an error that is
/// everybody's; or `Vec<Result<V, X>>`, for each key one or the other.
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
            Ok(values) => one_for_each(values, asked).into_iter().map(Ok).collect(),
            Err(error) => {
                let make: MakeError<E> = Arc::new(move || error.clone().into());
                vec![make; asked].into_iter().map(Err).collect()
            }
        }
    }
}

impl<V, E, X> Spread<V, E> for Vec<Result<V, X>>
where
    X: Clone + Into<E> + Send + Sync + 'static,
{
    fn spread(self, asked: usize) -> Vec<Outcome<V, E>> {
        let of_one = |result: Result<V, X>| {
            result.map_err(|error| {
                let make: MakeError<E> = Arc::new(move || error.clone().into());
                make
            })
        };
        one_for_each(self, asked).into_iter().map(of_one).collect()
    }
}

fn one_for_each<T>(values: Vec<T>, asked: usize) -> Vec<T> {
    let got = values.len();
    assert!(got == asked, "the loader returned {got} values for {asked} keys");
    values
}
