//! Who waits for what was appended to be committed: one list a partition, completed as the high watermark rises.
//!
//! A Produce that may not be acknowledged yet registers one [`WaitingProduce`] with every partition it wrote to. It is
//! claimed once, as a waiting Fetch is: by the partition that completes it last, by its timer, or by a partition that
//! fails.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};

use parking_lot::Mutex;

use super::Waiter;

/// A Produce that is appended and not yet acknowledged.
#[derive(Debug)]
pub struct WaitingProduce {
    waiter: Waiter,
    /// Partitions that have not committed its batches yet.
    missing: AtomicUsize,
    /// Set once, by the thread that completes it.
    claimed: AtomicBool,
}

impl WaitingProduce {
    /// A Produce of `waiter` that waits for `partitions` partitions.
    pub fn new(waiter: Waiter, partitions: usize) -> Arc<Self> {
        Arc::new(Self { waiter, missing: AtomicUsize::new(partitions), claimed: AtomicBool::new(false) })
    }

    /// Takes the right to complete it; true exactly once.
    pub fn claim(&self) -> bool {
        !self.claimed.swap(true, Ordering::AcqRel)
    }

    /// Counts a partition that committed; true for the one caller that thereby has to wake the owner.
    fn committed(&self) -> bool {
        self.missing.fetch_sub(1, Ordering::AcqRel) == 1 && self.claim()
    }
}

/// The Produces that wait for one partition's high watermark.
#[derive(Debug, Default)]
pub struct AcknowledgementList {
    /// Length of `waiting`, readable without the lock.
    count: AtomicUsize,
    /// Each with the offset that the high watermark has to reach.
    waiting: Mutex<Vec<(i64, Arc<WaitingProduce>)>>,
}

impl AcknowledgementList {
    /// Adds a Produce. The caller looks at the high watermark again afterwards, and calls [`Self::reached`] if it has
    /// passed meanwhile.
    pub fn register(&self, end_offset: i64, produce: &Arc<WaitingProduce>) {
        let mut waiting = self.waiting.lock();
        waiting.push((end_offset, Arc::clone(produce)));
        self.count.store(waiting.len(), Ordering::SeqCst);
        fence(Ordering::SeqCst);
    }

    /// The high watermark stands at `offset`: completes every Produce that waited for no more here.
    pub fn reached(&self, offset: i64, wake: &mut dyn FnMut(Waiter)) {
        fence(Ordering::SeqCst);
        if self.count.load(Ordering::SeqCst) == 0 {
            return;
        }
        let mut waiting = self.waiting.lock();
        waiting.retain(|(end_offset, produce)| {
            let done = *end_offset <= offset;
            if done && produce.committed() {
                wake(produce.waiter);
            }
            !done
        });
        self.count.store(waiting.len(), Ordering::SeqCst);
    }

    /// The partition fails or goes away: wakes everybody, who will then see why.
    pub fn wake_all(&self, wake: &mut dyn FnMut(Waiter)) {
        let mut waiting = self.waiting.lock();
        for (_, produce) in waiting.drain(..) {
            if produce.claim() {
                wake(produce.waiter);
            }
        }
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
    fn a_produce_is_woken_once_by_the_last_partition_that_commits() {
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
}
