//! Memory for requests that are being received, over all connections, limited by `queued.max.request.bytes`.
//!
//! A frame that does not arrive whole in one read reserves its size here before more of it is read. The memory is released
//! when the request is complete or its connection ends. As in Kafka's `SimpleMemoryPool`, a request may begin while any
//! memory is left. So at most one request exceeds the limit, and a request larger than the pool does not wait for ever.

use std::collections::VecDeque;

use parking_lot::Mutex;

/// The memory pool of requests.
#[derive(Debug)]
pub struct RequestMemory {
    /// The limit in bytes; `None` for no limit.
    limit: Option<u64>,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    used: u64,
    /// Connections that wait for memory, oldest first.
    waiting: VecDeque<u64>,
    /// Whether the log reports that memory is exhausted; reported again only after no connection waited.
    reported: bool,
}

/// The result of a reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryGrant {
    /// The memory is reserved.
    Granted,
    /// No memory is left: the connection waits until [`RequestMemory::next`] returns it.
    Waits {
        /// Whether no connection waited before.
        first: bool,
    },
}

impl RequestMemory {
    /// A pool of `limit` bytes; negative for no limit.
    pub fn new(limit: i64) -> Self {
        Self { limit: u64::try_from(limit).ok(), inner: Mutex::default() }
    }

    /// Whether there is a limit.
    pub fn is_bounded(&self) -> bool {
        self.limit.is_some()
    }

    /// Reserves `bytes` for a request of this connection, or adds the connection to the waiting ones.
    pub fn take(&self, connection: u64, bytes: u64) -> MemoryGrant {
        let Some(limit) = self.limit else { return MemoryGrant::Granted };
        let mut inner = self.inner.lock();
        if inner.used < limit {
            inner.used += bytes;
            return MemoryGrant::Granted;
        }
        inner.waiting.push_back(connection);
        MemoryGrant::Waits { first: !std::mem::replace(&mut inner.reported, true) }
    }

    /// Releases `bytes`.
    pub fn give_back(&self, bytes: u64) {
        if self.is_bounded() {
            self.inner.lock().used -= bytes;
        }
    }

    /// The connection that has waited longest, if memory is left: it has to try again, and then call this for the next one.
    pub fn next(&self) -> Option<u64> {
        let limit = self.limit?;
        let mut inner = self.inner.lock();
        if inner.used >= limit {
            return None;
        }
        let next = inner.waiting.pop_front();
        inner.reported &= next.is_some();
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_begins_while_memory_is_left_and_the_next_waits_for_it() {
        let memory = RequestMemory::new(100);
        assert_eq!(memory.take(1, 90), MemoryGrant::Granted);
        assert_eq!(memory.take(2, 90), MemoryGrant::Granted);
        assert_eq!(memory.take(3, 1), MemoryGrant::Waits { first: true });
        assert_eq!(memory.take(4, 1), MemoryGrant::Waits { first: false });
        memory.give_back(80);
        assert_eq!(memory.next(), None, "100 bytes are still taken");
        memory.give_back(90);
        assert_eq!((memory.next(), memory.next(), memory.next()), (Some(3), Some(4), None));
        assert_eq!(memory.take(5, 200), MemoryGrant::Granted);
        assert_eq!(memory.take(6, 1), MemoryGrant::Waits { first: true }, "nobody waited in between");
    }

    #[test]
    fn without_a_bound_nobody_waits() {
        let memory = RequestMemory::new(-1);
        assert_eq!(memory.take(1, u64::MAX), MemoryGrant::Granted);
        memory.give_back(u64::MAX);
        assert_eq!(memory.next(), None);
    }
}
