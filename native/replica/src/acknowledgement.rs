//! Requests that wait for the acknowledgement of an append: until it is committed, durable, or both.
//!
//! Three terms are never mixed. *Appended*: in this log, required by `acks=1`. *Committed*: below the high watermark,
//! required by `acks=all`. *Durable*: synced to the device, required by `flush=group` with either
//! (docs/adr/0012-group-flush.md). A partition has one list for each of the two waits. The high watermark and the
//! recovery point complete them.
//!
//! A Produce that cannot be acknowledged yet registers one [`WaitingProduce`] for every wait on every partition. Like
//! a waiting Fetch it is claimed once: by the last completed wait, by its timer, or by a partition that fails.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};

use parking_lot::Mutex;

use super::Waiter;
use super::ids::LeaderEpoch;

/// A list is searched for completed requests when it has grown to twice its size after the last search, and at least
/// to this size.
const SEARCH_FROM: usize = 256;

/// The missing conditions for the acknowledgement of an append to one partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Awaited {
    /// The leader epoch of the append.
    pub leader_epoch: LeaderEpoch,
    /// The end offset of the append (exclusive).
    pub end_offset: i64,
    /// Whether the high watermark must reach the end offset.
    pub committed: bool,
    /// Whether a sync must reach the end offset.
    pub durable: bool,
}

impl Awaited {
    /// Returns the number of waits.
    pub fn waits(&self) -> usize {
        usize::from(self.committed) + usize::from(self.durable)
    }
}

/// The progress of an append that waits for its acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// All conditions are fulfilled: it can be acknowledged.
    Reached,
    /// It is committed, but fewer replicas are in sync than `min.insync.replicas`.
    TooFewInSync,
    /// This broker is not the leader any more. Whether the append stays is unknown.
    NotLeader,
    /// The log has failed.
    Offline,
    /// A condition is not fulfilled yet.
    Waiting,
}

/// A Produce whose append is not acknowledged yet.
#[derive(Debug)]
pub struct WaitingProduce {
    waiter: Waiter,
    /// Number of unfinished waits, over all partitions.
    missing: AtomicUsize,
    /// Set once, by the thread that completes the request.
    claimed: AtomicBool,
}

impl WaitingProduce {
    /// Creates the state for a Produce with this number of waits ([`Awaited::waits`]) over all its partitions.
    pub fn new(waiter: Waiter, waits: usize) -> Arc<Self> {
        Arc::new(Self { waiter, missing: AtomicUsize::new(waits), claimed: AtomicBool::new(false) })
    }

    /// Claims the right to complete the request. Returns true exactly once.
    pub fn claim(&self) -> bool {
        !self.claimed.swap(true, Ordering::AcqRel)
    }

    /// Counts a finished wait. Returns true for the one caller that must wake the request.
    fn ended(&self) -> bool {
        self.missing.fetch_sub(1, Ordering::AcqRel) == 1 && self.claim()
    }
}

/// The Produces that wait for a partition's high watermark or recovery point.
#[derive(Debug, Default)]
pub struct AcknowledgementList {
    /// Length of `waiting`, readable without the lock.
    count: AtomicUsize,
    waiting: Mutex<Registered>,
}

#[derive(Debug, Default)]
struct Registered {
    /// Each request with the offset to reach.
    produces: Vec<(i64, Arc<WaitingProduce>)>,
    /// The number of requests that the last search has kept.
    kept: usize,
}

impl AcknowledgementList {
    /// Adds a Produce. The caller must check the offset again afterwards, and call [`Self::reached`] if it was
    /// reached meanwhile. Sometimes removes completed requests, so that they use no memory while the offset does not
    /// move.
    pub fn register(&self, end_offset: i64, produce: &Arc<WaitingProduce>) {
        let mut waiting = self.waiting.lock();
        if waiting.produces.len() >= SEARCH_FROM.max(2 * waiting.kept) {
            waiting.produces.retain(|(_, produce)| !produce.claimed.load(Ordering::Acquire));
            waiting.kept = waiting.produces.len();
        }
        waiting.produces.push((end_offset, Arc::clone(produce)));
        self.count.store(waiting.produces.len(), Ordering::SeqCst);
        fence(Ordering::SeqCst);
    }

    /// Completes every wait for an offset up to `offset`, the new high watermark or recovery point.
    pub fn reached(&self, offset: i64, wake: &mut dyn FnMut(Waiter)) {
        fence(Ordering::SeqCst);
        if self.count.load(Ordering::SeqCst) == 0 {
            return;
        }
        let mut waiting = self.waiting.lock();
        waiting.produces.retain(|(end_offset, produce)| {
            let done = *end_offset <= offset;
            if done && produce.ended() {
                wake(produce.waiter);
            }
            !done
        });
        waiting.kept = waiting.kept.min(waiting.produces.len());
        self.count.store(waiting.produces.len(), Ordering::SeqCst);
    }

    /// Wakes all requests, because the partition fails, is removed or changes its role. They check the reason
    /// themselves.
    pub fn wake_all(&self, wake: &mut dyn FnMut(Waiter)) {
        let mut waiting = self.waiting.lock();
        for (_, produce) in waiting.produces.drain(..) {
            if produce.claim() {
                wake(produce.waiter);
            }
        }
        waiting.kept = 0;
        self.count.store(0, Ordering::SeqCst);
    }

    /// Returns the number of waiting requests.
    pub fn len(&self) -> usize {
        self.count.load(Ordering::SeqCst)
    }

    /// Returns whether no request waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: Waiter = Waiter { connection: 1, request: 2 };

    fn woken(list: &AcknowledgementList, offset: i64) -> Vec<Waiter> {
        let mut out = Vec::new();
        list.reached(offset, &mut |waiter| out.push(waiter));
        out
    }

    #[test]
    fn a_produce_is_woken_once_by_the_wait_that_ends_last() {
        let (first, second) = (AcknowledgementList::default(), AcknowledgementList::default());
        let produce = WaitingProduce::new(ONE, 2);
        first.register(5, &produce);
        second.register(9, &produce);
        assert_eq!(woken(&first, 4), []);
        assert_eq!(woken(&first, 5), []);
        assert!(first.is_empty());
        assert_eq!(woken(&second, 20), [ONE]);
        assert_eq!(woken(&second, 21), []);
    }

    #[test]
    fn a_partition_that_fails_wakes_at_once() {
        let list = AcknowledgementList::default();
        list.register(5, &WaitingProduce::new(ONE, 2));
        let mut out = Vec::new();
        list.wake_all(&mut |waiter| out.push(waiter));
        assert_eq!(out, [ONE]);
        assert!(list.is_empty());
    }

    #[test]
    fn what_its_timer_has_claimed_is_not_woken() {
        let list = AcknowledgementList::default();
        let produce = WaitingProduce::new(ONE, 1);
        list.register(5, &produce);
        assert!(produce.claim());
        assert_eq!(woken(&list, 5), []);
        assert_eq!(list.len(), 0);
    }

    #[test]
    fn those_whose_time_is_up_hold_no_memory_while_the_offset_stands_still() {
        let list = AcknowledgementList::default();
        let lasting = WaitingProduce::new(ONE, 1);
        list.register(5, &lasting);
        for _ in 0..10_000 {
            let produce = WaitingProduce::new(ONE, 1);
            list.register(5, &produce);
            assert!(produce.claim());
        }
        assert!(list.len() <= SEARCH_FROM, "{} are left", list.len());
        assert_eq!(woken(&list, 5), [ONE], "the one that still waits");
    }
}
