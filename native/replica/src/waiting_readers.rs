//! The fetches that wait for a partition, by what may be read: up to the high watermark, with `read_committed` up to the
//! last stable offset, and by replicas up to the log end.
//!
//! The high watermark rises with nearly every append, whose size is what arrived. The last stable offset stands still while
//! a transaction is open and then jumps: what arrived are the bytes that it has passed since it was last noted.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use super::ids::Offset;
use super::{Waiter, WaitingFetch, WaitingList};

/// How far a fetch reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    /// A consumer of what is committed to the log: up to the high watermark.
    HighWatermark,
    /// A consumer of what transactions committed: up to the last stable offset.
    LastStable,
    /// A replica: all there is.
    LogEnd,
}

/// See the module.
#[derive(Debug)]
pub struct WaitingReaders {
    uncommitted: WaitingList,
    committed: WaitingList,
    replicas: WaitingList,
    /// The last stable offset when it was last noted. Only rises, so that each byte is counted once.
    stable: AtomicI64,
}

impl WaitingReaders {
    /// Nobody yet, with the last stable offset at `stable`.
    pub fn new(stable: i64) -> Self {
        let list = WaitingList::default;
        Self { uncommitted: list(), committed: list(), replicas: list(), stable: AtomicI64::new(stable) }
    }

    /// Lets a fetch wait that has seen what lies below `seen`; see [`WaitingList::register`].
    pub fn register(&self, fetch: &Arc<WaitingFetch>, isolation: Isolation, seen: i64) {
        let list = match isolation {
            Isolation::HighWatermark => &self.uncommitted,
            Isolation::LastStable => &self.committed,
            Isolation::LogEnd => &self.replicas,
        };
        list.register(fetch, seen);
    }

    /// Takes a fetch out again. Nothing happens if it is not there.
    pub fn deregister(&self, fetch: &Arc<WaitingFetch>) {
        self.uncommitted.deregister(fetch);
        self.committed.deregister(fetch);
        self.replicas.deregister(fetch);
    }

    /// `bytes` more are in the log, which ends at `end`.
    pub fn appended(&self, end: i64, bytes: usize, wake: &mut dyn FnMut(Waiter)) {
        self.replicas.arrived(end, || bytes, wake);
    }

    /// `bytes` more lie below the high watermark, the last of them below `end`.
    pub fn arrived(&self, end: i64, bytes: impl FnOnce() -> usize, wake: &mut dyn FnMut(Waiter)) {
        self.uncommitted.arrived(end, bytes, wake);
    }

    /// The last stable offset stands at `stable`; `bytes_between` measures what lies in a run of offsets.
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

    /// Wakes the replicas that wait.
    pub fn wake_replicas(&self, wake: &mut dyn FnMut(Waiter)) {
        self.replicas.wake_all(wake);
    }

    /// The partition goes away or changes its role: wakes everybody.
    pub fn wake_all(&self, wake: &mut dyn FnMut(Waiter)) {
        self.uncommitted.wake_all(wake);
        self.committed.wake_all(wake);
        self.replicas.wake_all(wake);
    }

    /// How many wait.
    pub fn len(&self) -> usize {
        self.uncommitted.len() + self.committed.len() + self.replicas.len()
    }

    /// Whether nobody waits.
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
