//! The flights of one shard: the newest in the shard itself, the others in a hash table.
//!
//! Most flights end before the next one of their shard begins. They never touch the hash table, whose memory lies elsewhere:
//! all that they write is next to the shard's lock. A flight that lasts moves into the hash table when the next one begins,
//! so the place in the shard is the next one's however many last.

use super::{Entry, FlightId, table_hash};
use hashbrown::hash_table::HashTable;

/// The newest stands first, next to what the shard has before it.
#[repr(C)]
pub(super) struct Flights<K, T> {
    newest: Option<Entry<K, T>>,
    older: HashTable<Entry<K, T>>,
}

impl<K, T> Flights<K, T> {
    pub(super) fn new() -> Self {
        Self { newest: None, older: HashTable::new() }
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        usize::from(self.newest.is_some()) + self.older.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Entry<K, T>> {
        self.newest.iter().chain(&self.older)
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Entry<K, T>> {
        self.newest.iter_mut().chain(&mut self.older)
    }

    /// All entries of this hash, and perhaps some others.
    pub(super) fn iter_alike(&self, hash: u32) -> impl Iterator<Item = &Entry<K, T>> {
        self.newest.iter().chain(self.older.iter_hash(table_hash(hash)))
    }

    /// All entries of this hash, and perhaps some others.
    pub(super) fn iter_alike_mut(&mut self, hash: u32) -> impl Iterator<Item = &mut Entry<K, T>> {
        self.newest.iter_mut().chain(self.older.iter_hash_mut(table_hash(hash)))
    }

    /// Whether there is an entry of this hash.
    #[inline]
    pub(super) fn has_alike(&self, hash: u32) -> bool {
        let is_alike = |entry: &Entry<K, T>| entry.hash == hash;
        self.newest.as_ref().is_some_and(is_alike) || self.older.find(table_hash(hash), is_alike).is_some()
    }

    /// The entry of this hash that is the one `sought`, which is shown every entry of this hash until then, and perhaps some
    /// others.
    #[inline]
    pub(super) fn find(&mut self, hash: u32, mut sought: impl FnMut(&Entry<K, T>) -> bool) -> Option<&mut Entry<K, T>> {
        match &mut self.newest {
            Some(newest) if sought(newest) => Some(newest),
            _ => self.older.find_mut(table_hash(hash), sought),
        }
    }

    /// The entry is made in its place: to make it elsewhere and move it costs a lone call some nanoseconds.
    #[inline]
    pub(super) fn insert_with(&mut self, make: impl FnOnce() -> Entry<K, T>) {
        if self.newest.is_some() {
            self.move_newest();
        }
        self.newest.get_or_insert_with(make);
    }

    /// Calls `f` with the entry of the flight `id`, and takes the entry out if `f` says so: of what it took, the `part` comes
    /// back, so that no whole entry is moved about for its key. `None` if the flight is not there.
    ///
    /// It is found by its number, not its key: no code of the user's runs.
    #[inline]
    pub(super) fn remove_if<R>(
        &mut self,
        id: FlightId,
        f: impl FnOnce(&mut Entry<K, T>) -> bool,
        part: impl FnOnce(Entry<K, T>) -> R,
    ) -> Option<Option<R>> {
        match &self.newest {
            Some(newest) if newest.is(id) => Some(self.newest.take_if(f).map(part)),
            _ => self.remove_older_if(id, f, part),
        }
    }

    #[inline(never)]
    fn remove_older_if<R>(
        &mut self,
        id: FlightId,
        f: impl FnOnce(&mut Entry<K, T>) -> bool,
        part: impl FnOnce(Entry<K, T>) -> R,
    ) -> Option<Option<R>> {
        let mut occupied = self.older.find_entry(table_hash(id.hash.in_shard()), |entry| entry.is(id)).ok()?;
        if !f(occupied.get_mut()) {
            return Some(None);
        }
        let (entry, _) = occupied.remove();
        self.shrink_after_burst();
        Some(Some(part(entry)))
    }

    fn move_newest(&mut self) {
        // Room first: if there is no memory for it, nothing has moved.
        self.older.reserve(1, |entry| table_hash(entry.hash));
        if let Some(entry) = self.newest.take() {
            self.older.insert_unique(table_hash(entry.hash), entry, |entry| table_hash(entry.hash));
        }
    }

    /// Gives memory back once most of it is unused. What a few flights need is kept, and the room left is twice what is
    /// used, so a steady load does not pay for it.
    fn shrink_after_burst(&mut self) {
        const ALWAYS_KEPT: usize = 14;
        if self.older.capacity() > ALWAYS_KEPT && self.older.len() < self.older.capacity() / 8 {
            let room = (self.older.len() * 2).max(ALWAYS_KEPT);
            self.older.shrink_to(room, |entry| table_hash(entry.hash));
        }
    }

    #[cfg(test)]
    pub(super) fn capacity(&self) -> usize {
        self.older.capacity()
    }
}
