//! Keys and values: counted while they live, and with a place for a panic in all their code that the library calls.

use crate::bomb::{Spot, pass};
use std::borrow::Borrow;
use std::hash::{BuildHasher, Hash, Hasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

/// How many are alive.
static KEYS: AtomicI64 = AtomicI64::new(0);
static PRODUCTS: AtomicI64 = AtomicI64::new(0);

/// How many keys and products are alive: nothing of a round may outlive it.
pub(crate) fn alive() -> [(&'static str, i64); 2] {
    [("keys", KEYS.load(Ordering::SeqCst)), ("values", PRODUCTS.load(Ordering::SeqCst))]
}

/// A key as callers have it.
#[derive(Debug)]
pub(crate) struct Id(pub(crate) u32);

/// A key as the group has it.
#[derive(Debug)]
pub(crate) struct Key(Id);

/// What an execution has made.
#[derive(Debug)]
pub(crate) struct Product {
    pub(crate) key: u32,
    pub(crate) execution: u64,
}

/// What a flight lands with.
pub(crate) type Answer = Result<Product, Arc<Product>>;

/// What is in an answer, whether it is a value or an error.
pub(crate) fn product(answer: &Answer) -> &Product {
    match answer {
        Ok(product) => product,
        Err(product) => product,
    }
}

impl Hash for Id {
    fn hash<H: Hasher>(&self, state: &mut H) {
        pass(Spot::Hash);
        self.0.hash(state);
    }
}

impl PartialEq for Id {
    fn eq(&self, other: &Self) -> bool {
        pass(Spot::Eq);
        self.0 == other.0
    }
}

impl Eq for Id {}

impl ToOwned for Id {
    type Owned = Key;

    fn to_owned(&self) -> Key {
        pass(Spot::ToOwned);
        Key::new(self.0)
    }
}

impl Key {
    pub(crate) fn new(number: u32) -> Self {
        KEYS.fetch_add(1, Ordering::SeqCst);
        Self(Id(number))
    }
}

impl Borrow<Id> for Key {
    fn borrow(&self) -> &Id {
        &self.0
    }
}

impl Drop for Key {
    fn drop(&mut self) {
        KEYS.fetch_sub(1, Ordering::SeqCst);
        pass(Spot::Drop);
    }
}

impl Product {
    pub(crate) fn new(key: u32, execution: u64) -> Self {
        PRODUCTS.fetch_add(1, Ordering::SeqCst);
        Self { key, execution }
    }
}

impl Clone for Product {
    fn clone(&self) -> Self {
        pass(Spot::Clone);
        Self::new(self.key, self.execution)
    }
}

impl Drop for Product {
    fn drop(&mut self) {
        PRODUCTS.fetch_sub(1, Ordering::SeqCst);
        pass(Spot::Drop);
    }
}

/// A hasher that may be so weak that keys collide.
#[derive(Clone, Debug)]
pub(crate) struct Hashing {
    state: RandomState,
    mask: u64,
}

impl Hashing {
    pub(crate) fn new(mask: u64) -> Self {
        Self { state: RandomState::new(), mask }
    }
}

/// Forgets most of what the other one has found.
#[derive(Debug)]
pub(crate) struct Masked<H>(H, u64);

impl BuildHasher for Hashing {
    type Hasher = Masked<<RandomState as BuildHasher>::Hasher>;

    fn build_hasher(&self) -> Self::Hasher {
        Masked(self.state.build_hasher(), self.mask)
    }
}

impl<H: Hasher> Hasher for Masked<H> {
    fn write(&mut self, bytes: &[u8]) {
        self.0.write(bytes);
    }

    fn finish(&self) -> u64 {
        self.0.finish() & self.1
    }
}
