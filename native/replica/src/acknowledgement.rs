//! Who waits before an append is acknowledged: for it to be committed, to be durable, or both.
//!
//! Three words that are never mixed. *Appended*: in this log, all that `acks=1` asks for. *Committed*: below the high
//! watermark, what `acks=all` asks for. *Durable*: synced to the device, what `flush=group` asks for with either
//! (docs/adr/0012-group-flush.md). A partition has one list for each of the two waits, completed as the high watermark
//! and the recovery point rise.
//!
//! A Produce that may not be acknowledged yet registers one [`WaitingProduce`] for every wait at every partition it wrote to.
//! It is claimed once, as a waiting Fetch is: by the wait that ends last, by its timer, or by a partition that fails.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};

use parking_lot::Mutex;

use super::Waiter;
use super::ids::LeaderEpoch;

/// A list is searched for requests that need no answer any more whenever it has grown to twice what was left, from here on.
const SEARCH_FROM: usize = 256;

/// What an append still lacks before it may be acknowledged, at one partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Awaited {
    /// The epoch that it was appended at.
    pub leader_epoch: LeaderEpoch,
    /// Where it ends in the log.
    pub end_offset: i64,
    /// It has to be committed: the high watermark has to reach its end.
    pub committed: bool,
    /// It has to be durable: a sync has to reach its end.
    pub durable: bool,
}

impl Awaited {
    /// How many waits that is.
    pub fn waits(&self) -> usize {
        usize::from(self.committed) + usize::from(self.durable)
    }
}

/// Where an append stands that is to be acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// All that was awaited has come: it may be acknowledged.
    Reached,
    /// It is committed, and fewer replicas are in sync now than `min.insync.replicas`.
    TooFewInSync,
    /// This broker does not lead any more: nobody knows yet whether the append stays.
    NotLeader,
    /// The log has failed.
    Offline,
    /// Something has not come yet.
    Waiting,
}

/// A Produce that is appended and not yet acknowledged.
#[derive(Debug)]
pub struct WaitingProduce {
    waiter: Waiter,
    /// Waits, over all partitions, that have not ended.
    missing: AtomicUsize,
    /// Set once, by the thread that completes it.
    claimed: AtomicBool,
}

impl WaitingProduce {
    /// A Produce of `waiter` with so many waits ([`Awaited::waits`]) over all its partitions.
    pub fn new(waiter: Waiter, waits: usize) -> Arc<Self> {
        Arc::new(Self { waiter, missing: AtomicUsize::new(waits), claimed: AtomicBool::new(false) })
    }

    /// Takes the right to complete it; true exactly once.
    pub fn claim(&self) -> bool {
        !self.claimed.swap(true, Ordering::AcqRel)
    }

    /// Counts a wait that has ended; true for the one caller that thereby has to wake the owner.
    fn ended(&self) -> bool {
        self.missing.fetch_sub(1, Ordering::AcqRel) == 1 && self.claim()
    }
}

/// The Produces that wait for one partition's high watermark, or for its recovery point.
#[derive(Debug, Default)]
pub struct AcknowledgementList {
    /// Length of `waiting`, readable without the lock.
    count: AtomicUsize,
    waiting: Mutex<Registered>,
}

#[derive(Debug, Default)]
struct Registered {
    /// Each with the offset that is to be reached.
    produces: Vec<(i64, Arc<WaitingProduce>)>,
    /// How many were left when those were last dropped that need no answer any more.
    kept: usize,
}

impl AcknowledgementList {
    /// Adds a Produce. The caller looks at the offset again afterwards, and calls [`Self::reached`] if it has passed
    /// meanwhile. Those whose time is up are dropped now and then, so that an offset that stands still holds no memory.
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

    /// The high watermark, or the recovery point, stands at `offset`: ends every wait that was for no more.
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

    /// The partition fails, goes away or changes its role: wakes everybody, who will then see why.
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

    /// How many wait.
    pub fn len(&self) -> usize {
        self.count.load(Ordering::SeqCst)
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
