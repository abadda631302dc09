//! The fetches that wait for a partition to grow: one list per partition, completed by appends.
//!
//! A long-poll Fetch registers one [`WaitingFetch`] with every partition that it reads. Appends subtract their size.
//! The append that brings the missing bytes to zero or below claims the fetch and wakes its owner. Exactly one party
//! claims a fetch: an append, its timer, or the close of its connection.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering, fence};

use indexmap::IndexMap;
use parking_lot::Mutex;
use rustc_hash::FxBuildHasher;

/// Capacity that an empty list keeps.
const KEEP_CAPACITY: usize = 64;

/// The identity of a waiting request, without knowledge of connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Waiter {
    /// The connection's number in the net layer.
    pub connection: u64,
    /// The request's number on that connection.
    pub request: u64,
}

/// A Fetch that waits for `fetch.min.bytes`.
#[derive(Debug)]
pub struct WaitingFetch {
    waiter: Waiter,
    /// Missing bytes. Never increases; the fetch is satisfied at zero or below.
    missing: AtomicI64,
    /// Set once, by the thread that completes the fetch.
    claimed: AtomicBool,
    /// Whether its session has a later request. The response is then empty.
    superseded: AtomicBool,
}

impl WaitingFetch {
    /// Creates the state for a fetch of `waiter` that lacks `missing` bytes.
    pub fn new(waiter: Waiter, missing: i64) -> Arc<Self> {
        let (claimed, superseded) = (AtomicBool::new(false), AtomicBool::new(false));
        Arc::new(Self { waiter, missing: AtomicI64::new(missing), claimed, superseded })
    }

    /// Ends the wait because its session has a later request, which covers the same partitions. Returns true for the
    /// one caller that must wake the owner.
    pub fn supersede(&self) -> bool {
        let claimed = self.claim();
        if claimed {
            self.superseded.store(true, Ordering::Release);
        }
        claimed
    }

    /// Returns whether [`WaitingFetch::supersede`] ended its wait.
    pub fn is_superseded(&self) -> bool {
        self.superseded.load(Ordering::Acquire)
    }

    /// Returns the request to wake.
    pub fn waiter(&self) -> Waiter {
        self.waiter
    }

    /// Claims the right to complete this fetch. Returns true exactly once.
    pub fn claim(&self) -> bool {
        !self.claimed.swap(true, Ordering::AcqRel)
    }

    /// Counts `bytes` that arrived. Returns true for the one caller that must wake the owner.
    fn arrived(&self, bytes: i64) -> bool {
        self.missing.fetch_sub(bytes, Ordering::AcqRel) <= bytes && self.claim()
    }
}

/// The waiting fetches of one partition. Adding and removing a fetch take constant time.
#[derive(Debug, Default)]
pub struct WaitingList {
    /// Length of `fetches`, readable without the lock: an append to a partition without waiting fetches costs one
    /// load.
    count: AtomicUsize,
    /// By address, which is unique while the list owns the fetch. The offset is the end of the range that the fetch
    /// has read.
    fetches: Mutex<IndexMap<usize, (Arc<WaitingFetch>, i64), FxBuildHasher>>,
}

fn address(fetch: &Arc<WaitingFetch>) -> usize {
    Arc::as_ptr(fetch) as usize
}

impl WaitingList {
    /// Adds a fetch that has read up to the offset `seen`. The caller must check the log again afterwards, because an
    /// append before this call did not see the fetch.
    pub fn register(&self, fetch: &Arc<WaitingFetch>, seen: i64) {
        let mut fetches = self.fetches.lock();
        fetches.insert(address(fetch), (Arc::clone(fetch), seen));
        self.count.store(fetches.len(), Ordering::SeqCst);
        fence(Ordering::SeqCst);
    }

    /// Removes a fetch. Does nothing if it is not in the list.
    pub fn deregister(&self, fetch: &Arc<WaitingFetch>) {
        let mut fetches = self.fetches.lock();
        if fetches.swap_remove(&address(fetch)).is_some() {
            self.count.store(fetches.len(), Ordering::SeqCst);
            if fetches.capacity() > KEEP_CAPACITY && fetches.len() < fetches.capacity() / 4 {
                let capacity = (2 * fetches.len()).max(KEEP_CAPACITY);
                fetches.shrink_to(capacity);
            }
        }
    }

    /// Counts `bytes` that became readable and end at offset `end`, and wakes every satisfied fetch. `bytes` is
    /// evaluated only if a fetch waits. A fetch that registered after the bytes became readable has seen them, and
    /// does not count them again.
    pub fn arrived(&self, end: i64, bytes: impl FnOnce() -> usize, wake: &mut dyn FnMut(Waiter)) {
        fence(Ordering::SeqCst);
        if self.count.load(Ordering::SeqCst) == 0 {
            return;
        }
        let bytes = i64::try_from(bytes()).unwrap_or(i64::MAX);
        for (fetch, seen) in self.fetches.lock().values() {
            if *seen < end && fetch.arrived(bytes) {
                wake(fetch.waiter);
            }
        }
    }

    /// Wakes all fetches, because the partition is removed or changes its role. They check the reason themselves.
    pub fn wake_all(&self, wake: &mut dyn FnMut(Waiter)) {
        for (fetch, _) in self.fetches.lock().values() {
            if fetch.claim() {
                wake(fetch.waiter);
            }
        }
    }

    /// Returns the number of waiting fetches.
    pub fn len(&self) -> usize {
        self.count.load(Ordering::SeqCst)
    }

    /// Returns whether no fetch waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn woken(list: &WaitingList, bytes: usize) -> Vec<Waiter> {
        let mut out = Vec::new();
        list.arrived(1, || bytes, &mut |waiter| out.push(waiter));
        out
    }

    #[test]
    fn a_fetch_wakes_once_when_its_missing_bytes_have_arrived() {
        let list = WaitingList::default();
        let waiter = Waiter { connection: 1, request: 2 };
        list.register(&WaitingFetch::new(waiter, 10), 0);
        assert_eq!(woken(&list, 9), []);
        assert_eq!(woken(&list, 1), [waiter]);
        assert_eq!(woken(&list, 100), []);
    }

    #[test]
    fn what_a_fetch_has_seen_is_not_counted_again() {
        let list = WaitingList::default();
        let waiter = Waiter { connection: 1, request: 2 };
        list.register(&WaitingFetch::new(waiter, 1), 7);
        let woken = |end: i64| {
            let mut out = Vec::new();
            list.arrived(end, || 100, &mut |waiter| out.push(waiter));
            out
        };
        assert_eq!(woken(7), [], "the word of an append that was readable before the fetch looked");
        assert_eq!(woken(8), [waiter]);
    }

    #[test]
    fn a_claimed_fetch_is_not_woken() {
        let list = WaitingList::default();
        let fetch = WaitingFetch::new(Waiter { connection: 1, request: 2 }, 1);
        list.register(&fetch, 0);
        assert!(fetch.claim());
        assert_eq!(woken(&list, 5), []);
        list.deregister(&fetch);
        assert!(list.is_empty());
    }

    #[test]
    fn a_hundred_thousand_come_and_go_in_any_order_and_leave_no_memory_behind() {
        let list = WaitingList::default();
        let wait = |request| WaitingFetch::new(Waiter { connection: 1, request }, 1);
        let fetches: Vec<_> = (0..100_000).map(wait).collect();
        fetches.iter().for_each(|fetch| list.register(fetch, 0));
        assert_eq!(list.len(), 100_000);
        // A linear search would take a hundred thousand steps for each of these.
        fetches.iter().rev().for_each(|fetch| list.deregister(fetch));
        assert!(list.is_empty() && list.fetches.lock().capacity() <= 2 * KEEP_CAPACITY);
    }

    #[test]
    fn a_fetch_that_names_a_partition_twice_waits_for_it_once() {
        let list = WaitingList::default();
        let fetch = WaitingFetch::new(Waiter { connection: 1, request: 2 }, 10);
        list.register(&fetch, 0);
        list.register(&fetch, 0);
        assert_eq!((list.len(), woken(&list, 5)), (1, vec![]));
        list.deregister(&fetch);
        assert!(list.is_empty());
    }

    #[test]
    fn the_end_of_a_partition_wakes_everybody() {
        let list = WaitingList::default();
        for request in 0..3 {
            list.register(&WaitingFetch::new(Waiter { connection: 1, request }, 1 << 40), 0);
        }
        let mut count = 0;
        list.wake_all(&mut |_| count += 1);
        assert_eq!(count, 3);
    }
}
