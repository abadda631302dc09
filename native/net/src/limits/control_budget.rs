//! The limit on control requests in work (`queued.max.requests`), and the queue of connections that wait for a slot.
//!
//! Owns the count over all processors. The queue is fair: a connection that finds no free slot waits behind earlier ones,
//! and a freed slot goes to the first of them, never to a later connection. Must not know what a connection is.

use std::collections::VecDeque;

use parking_lot::Mutex;

/// The slots of control requests.
#[derive(Debug)]
pub struct ControlBudget {
    max: usize,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    in_work: usize,
    /// Waiting connections, oldest first. Invariant: empty while `in_work` is below the limit.
    waiting: VecDeque<u64>,
}

impl ControlBudget {
    /// Slots for `max` requests.
    pub fn new(max: usize) -> Self {
        Self { max, inner: Mutex::default() }
    }

    /// Takes a slot for a request of this connection; `false` if none is free: the connection waits until
    /// [`ControlBudget::leave`] returns it.
    pub fn enter(&self, connection: u64) -> bool {
        let mut inner = self.inner.lock();
        let is_free = inner.in_work < self.max;
        if is_free {
            inner.in_work += 1;
        } else {
            inner.waiting.push_back(connection);
        }
        is_free
    }

    /// Frees one slot. Returns the next waiting connection, which owns the slot then.
    #[must_use]
    pub fn leave(&self) -> Option<u64> {
        let mut inner = self.inner.lock();
        let next = inner.waiting.pop_front();
        if next.is_none() {
            inner.in_work -= 1;
        }
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_passes_to_the_connection_that_has_waited_longest() {
        let budget = ControlBudget::new(2);
        assert!(budget.enter(1) && budget.enter(2));
        assert!(!budget.enter(3) && !budget.enter(4));
        assert_eq!(budget.leave(), Some(3));
        assert!(!budget.enter(1), "who comes later does not overtake");
        assert_eq!((budget.leave(), budget.leave()), (Some(4), Some(1)));
        assert_eq!((budget.leave(), budget.leave()), (None, None));
        assert!(budget.enter(5));
    }
}
