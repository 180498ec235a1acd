//! What a store tells of what other processes do.

/// What is pushed about a key.
///
/// # Examples
///
/// ```
/// use oneflight_cache::lease::{Push, Told};
/// use std::sync::mpsc;
///
/// let (sender, receiver) = mpsc::channel();
/// let told: Told = Box::new(move |push| _ = sender.send(push));
/// told(Push::Listening); // as a store does
/// assert_eq!(receiver.recv(), Ok(Push::Listening));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Push {
    /// From now on what happens to the key is pushed, until a connection fails.
    Listening,
    /// A value was published, or the lease given up.
    Released,
    /// Another process has written the key.
    Written,
}

/// Listens to what is pushed about a key, until it is dropped.
///
/// # Examples
///
/// ```
/// use oneflight_cache::lease::Watch;
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicBool, Ordering};
///
/// /// Ends with the connection, or when it is dropped.
/// struct Subscription {
///     is_connected: Arc<AtomicBool>,
/// }
///
/// impl Watch for Subscription {
///     fn is_listening(&self) -> bool {
///         self.is_connected.load(Ordering::SeqCst)
///     }
/// }
/// # let is_connected = Arc::new(AtomicBool::new(true));
/// # let subscription = Subscription { is_connected: Arc::clone(&is_connected) };
/// # assert!(subscription.is_listening());
/// # is_connected.store(false, Ordering::SeqCst);
/// # assert!(!subscription.is_listening());
/// ```
pub trait Watch: Send + Sync {
    /// Whether it does at this moment. [`Push::Listening`] has been told, if so.
    fn is_listening(&self) -> bool;
}

/// Who is told what is pushed: must neither block nor call the store.
pub type Told = Box<dyn Fn(Push) + Send + Sync>;

/// What other processes have written.
///
/// # Examples
///
/// ```
/// use oneflight_cache::lease::{ToldWritten, Written};
/// use std::collections::HashMap;
/// use std::sync::{Arc, Mutex};
///
/// let kept = Arc::new(Mutex::new(HashMap::from([(1, "Ada"), (2, "Grace")])));
/// let told: ToldWritten = Box::new({
///     let kept = Arc::clone(&kept);
///     move |written| match written {
///         Written::Key(number) => _ = kept.lock().unwrap().remove(&number),
///         Written::Any => kept.lock().unwrap().clear(),
///     }
/// });
/// told(Written::Key(1));
/// assert_eq!(kept.lock().unwrap().len(), 1);
/// told(Written::Any);
/// assert!(kept.lock().unwrap().is_empty());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Written {
    /// The key of this number, as [`Announces::key_number`] has it.
    Key(u64),
    /// Any key may have been: all were, or nobody has listened for a while.
    Any,
}

/// Who is told what other processes write: must neither block nor call the store.
pub type ToldWritten = Box<dyn Fn(Written) + Send + Sync>;

/// A store that tells what other processes write, as it happens: what a [`Tiered`](crate::Tiered) one is made of.
///
/// # Examples
///
/// ```
/// // A table whose triggers send the number of a row.
/// use oneflight_cache::lease::{Announces, ToldWritten, Watch, Written};
/// use std::sync::{Arc, Mutex};
///
/// #[derive(Default)]
/// struct Table {
///     told: Arc<Mutex<Vec<ToldWritten>>>,
/// }
///
/// struct Listens;
///
/// impl Watch for Listens {
///     fn is_listening(&self) -> bool {
///         true
///     }
/// }
///
/// impl Announces<u64> for Table {
///     fn key_number(&self, key: &u64) -> u64 {
///         *key
///     }
///
///     fn watch_writes(&self, told: ToldWritten) -> Box<dyn Watch> {
///         self.told.lock().unwrap().push(told);
///         Box::new(Listens)
///     }
/// }
///
/// let table = Table::default();
/// let watch = table.watch_writes(Box::new(|written| assert_eq!(written, Written::Key(7))));
/// assert!(watch.is_listening());
/// for told in table.told.lock().unwrap().iter() {
///     told(Written::Key(table.key_number(&7)));
/// }
/// ```
pub trait Announces<K: ?Sized> {
    /// The number by which it tells of this key. If two keys share one, what is told of the one is told of the other.
    fn key_number(&self, key: &K) -> u64;

    /// Tells what other processes write until what it returns is dropped. What is told may come late, or be lost.
    fn watch_writes(&self, told: ToldWritten) -> Box<dyn Watch>;
}
