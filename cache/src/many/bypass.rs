//! Several keys past the cache.

use super::each_once;
use super::fly::counted;
use crate::entry::Fetched;
use crate::error::{Error, OfEach};
use crate::inner::Inner;
use std::future::Future;
use std::hash::Hash;
use std::time::Duration;

impl<V, S> Inner<V, S> {
    /// As [`bypass`](Self::bypass), for several keys, each of which is loaded once.
    pub(crate) async fn bypass_many<'q, Q, E, F>(
        &self,
        keys: impl IntoIterator<Item = &'q Q>,
        limit: Option<Duration>,
        loader: impl FnOnce(Vec<&'q Q>) -> F,
    ) -> Result<Vec<Fetched<V>>, Error<E>>
    where
        Q: Hash + Eq + ?Sized + 'q,
        V: Clone,
        F: Future<Output = OfEach<V, E>>,
    {
        let (once, order) = each_once(keys.into_iter());
        if once.is_empty() {
            return Ok(Vec::new());
        }
        let load = async {
            let asked = once.len();
            counted(loader(once).await, asked)?.into_iter().collect::<Result<Vec<V>, Error<E>>>()
        };
        let Fetched { value: values, source, age } = self.bypass(limit, load).await?;
        Ok(order.into_iter().map(|index| Fetched { value: values[index].clone(), source, age }).collect())
    }
}
