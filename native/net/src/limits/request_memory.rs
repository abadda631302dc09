//! Memory for requests that are being received, over all connections: what `queued.max.request.bytes` bounds.
//!
//! A frame that does not arrive whole in one read takes its size from here before more of it is read, and gives it back
//! when the request is answered or its connection ends. As in Kafka's `SimpleMemoryPool`, a request may begin while any
//! memory is left, so that the bound is passed by at most one request, and none larger than the pool waits for ever.

use std::collections::VecDeque;

use parking_lot::Mutex;

/// See the module.
#[derive(Debug)]
pub struct RequestMemory {
    /// The bound in bytes; `None`: there is none.
    limit: Option<u64>,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    used: u64,
    /// Connections that wait for memory, in the order in which they came.
    waiting: VecDeque<u64>,
    /// Whether the log says that the bound holds; said again only after nobody waited.
    said: bool,
}

/// What became of a wish for memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    /// It is granted.
    Granted,
    /// None is left: the connection waits until [`RequestMemory::next`] names it.
    Waits {
        /// Whether this is the first that waits since nobody did.
        first: bool,
    },
}

impl RequestMemory {
    /// `limit` bytes; a negative number is no bound.
    pub fn new(limit: i64) -> Self {
        Self { limit: u64::try_from(limit).ok(), inner: Mutex::default() }
    }

    /// Whether there is a bound.
    pub fn is_bounded(&self) -> bool {
        self.limit.is_some()
    }

    /// Takes `bytes` for a request of this connection, or lets the connection wait.
    pub fn take(&self, connection: u64, bytes: u64) -> Wish {
        let Some(limit) = self.limit else { return Wish::Granted };
        let mut inner = self.inner.lock();
        if inner.used < limit {
            inner.used += bytes;
            return Wish::Granted;
        }
        inner.waiting.push_back(connection);
        Wish::Waits { first: !std::mem::replace(&mut inner.said, true) }
    }

    /// Gives `bytes` back.
    pub fn give_back(&self, bytes: u64) {
        if self.is_bounded() {
            self.inner.lock().used -= bytes;
        }
    }

    /// The connection that waits longest, if memory is left for it: it is to try again, and then to ask here for the next.
    pub fn next(&self) -> Option<u64> {
        let limit = self.limit?;
        let mut inner = self.inner.lock();
        if inner.used >= limit {
            return None;
        }
        let next = inner.waiting.pop_front();
        inner.said &= next.is_some();
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_begins_while_memory_is_left_and_the_next_waits_for_it() {
        let memory = RequestMemory::new(100);
        assert_eq!(memory.take(1, 90), Wish::Granted);
        assert_eq!(memory.take(2, 90), Wish::Granted);
        assert_eq!(memory.take(3, 1), Wish::Waits { first: true });
        assert_eq!(memory.take(4, 1), Wish::Waits { first: false });
        memory.give_back(80);
        assert_eq!(memory.next(), None, "100 bytes are still taken");
        memory.give_back(90);
        assert_eq!((memory.next(), memory.next(), memory.next()), (Some(3), Some(4), None));
        assert_eq!(memory.take(5, 200), Wish::Granted);
        assert_eq!(memory.take(6, 1), Wish::Waits { first: true }, "nobody waited in between");
    }

    #[test]
    fn without_a_bound_nobody_waits() {
        let memory = RequestMemory::new(-1);
        assert_eq!(memory.take(1, u64::MAX), Wish::Granted);
        memory.give_back(u64::MAX);
        assert_eq!(memory.next(), None);
    }
}
