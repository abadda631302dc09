//! The waiting fetches of a partition, by isolation: up to the high watermark, up to the last stable offset
//! (`read_committed`), or up to the log end (replicas).
//!
//! The high watermark rises with nearly every append, by the bytes of the append. The last stable offset does not
//! move while a transaction is open, and then jumps. The bytes that it has passed since the last update count as
//! arrived.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use super::ids::Offset;
use super::{Waiter, WaitingFetch, WaitingList};

/// The upper bound of a fetch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    /// A `read_uncommitted` consumer: up to the high watermark.
    HighWatermark,
    /// A `read_committed` consumer: up to the last stable offset.
    LastStable,
    /// A replica: up to the log end.
    LogEnd,
}

/// The waiting fetches of a partition; see the module.
#[derive(Debug)]
pub struct WaitingReaders {
    uncommitted: WaitingList,
    committed: WaitingList,
    replicas: WaitingList,
    /// The last stable offset at the last update. Never decreases, so that each byte is counted once.
    stable: AtomicI64,
}

impl WaitingReaders {
    /// Creates empty lists, with the last stable offset `stable`.
    pub fn new(stable: i64) -> Self {
        let list = WaitingList::default;
        Self { uncommitted: list(), committed: list(), replicas: list(), stable: AtomicI64::new(stable) }
    }

    /// Adds a fetch that has read up to the offset `seen`; see [`WaitingList::register`].
    pub fn register(&self, fetch: &Arc<WaitingFetch>, isolation: Isolation, seen: i64) {
        let list = match isolation {
            Isolation::HighWatermark => &self.uncommitted,
            Isolation::LastStable => &self.committed,
            Isolation::LogEnd => &self.replicas,
        };
        list.register(fetch, seen);
    }

    /// Removes a fetch. Does nothing if it is not registered.
    pub fn deregister(&self, fetch: &Arc<WaitingFetch>) {
        self.uncommitted.deregister(fetch);
        self.committed.deregister(fetch);
        self.replicas.deregister(fetch);
    }

    /// Counts `bytes` that were appended; the log end offset is `end`. Wakes satisfied replica fetches.
    pub fn appended(&self, end: i64, bytes: usize, wake: &mut dyn FnMut(Waiter)) {
        self.replicas.arrived(end, || bytes, wake);
    }

    /// Counts `bytes` that the high watermark `end` has passed. Wakes satisfied fetches.
    pub fn arrived(&self, end: i64, bytes: impl FnOnce() -> usize, wake: &mut dyn FnMut(Waiter)) {
        self.uncommitted.arrived(end, bytes, wake);
    }

    /// Sets the last stable offset, and wakes satisfied fetches. `bytes_between` returns the bytes in a range of
    /// offsets.
    pub fn stable_at(
        &self,
        stable: i64,
        bytes_between: impl FnOnce(Range<Offset>) -> u64,
        wake: &mut dyn FnMut(Waiter),
    ) {
        let before = self.stable.fetch_max(stable, Ordering::SeqCst);
        if before < stable && !self.committed.is_empty() {
            self.committed.arrived(stable, || bytes_between(Offset(before)..Offset(stable)) as usize, wake);
        }
    }

    /// Wakes all waiting replica fetches.
    pub fn wake_replicas(&self, wake: &mut dyn FnMut(Waiter)) {
        self.replicas.wake_all(wake);
    }

    /// Wakes all fetches, because the partition is removed or changes its role.
    pub fn wake_all(&self, wake: &mut dyn FnMut(Waiter)) {
        self.uncommitted.wake_all(wake);
        self.committed.wake_all(wake);
        self.replicas.wake_all(wake);
    }

    /// Returns the number of waiting fetches.
    pub fn len(&self) -> usize {
        self.uncommitted.len() + self.committed.len() + self.replicas.len()
    }

    /// Returns whether no fetch waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: Waiter = Waiter { connection: 1, request: 2 };

    fn stable_at(readers: &WaitingReaders, stable: i64) -> Vec<Waiter> {
        let mut out = Vec::new();
        readers
            .stable_at(stable, |offsets| (offsets.end.0 - offsets.start.0) as u64 * 10, &mut |waiter| out.push(waiter));
        out
    }

    #[test]
    fn a_committed_reader_counts_what_the_stable_offset_passes_and_nothing_twice() {
        let readers = WaitingReaders::new(5);
        readers.register(&WaitingFetch::new(ONE, 30), Isolation::LastStable, 5);
        readers.arrived(9, || 1000, &mut |waiter| panic!("{waiter:?} woken by what is not committed"));
        assert_eq!(stable_at(&readers, 5), []);
        assert_eq!(stable_at(&readers, 7), []);
        assert_eq!(stable_at(&readers, 6), [], "an older thread's word");
        assert_eq!(stable_at(&readers, 8), [ONE]);
        assert_eq!(stable_at(&readers, 9), []);
    }

    #[test]
    fn what_came_while_nobody_waited_is_not_counted() {
        let readers = WaitingReaders::new(0);
        assert_eq!(stable_at(&readers, 100), []);
        let fetch = WaitingFetch::new(ONE, 1);
        readers.register(&fetch, Isolation::LastStable, 100);
        assert_eq!(stable_at(&readers, 100), []);
        readers.deregister(&fetch);
        assert!(readers.is_empty());
    }
}
