//! Room for control requests: how many may be in work, and which connections wait for their turn.
//!
//! Owns the count that `queued.max.requests` bounds, over all processors. Turns are fair: a connection that finds no
//! room waits behind those that came before it, and room that comes free passes to the first of them, never to a
//! connection that comes later. Must not know what a connection is.

use std::collections::VecDeque;

use parking_lot::Mutex;

/// See the module.
#[derive(Debug)]
pub struct ControlRoom {
    max: usize,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    in_work: usize,
    /// Connections in the order in which they came. Invariant: empty while `in_work` is below the limit.
    waiting: VecDeque<u64>,
}

impl ControlRoom {
    /// Room for `max` requests.
    pub fn new(max: usize) -> Self {
        Self { max, inner: Mutex::default() }
    }

    /// Takes room for a request of this connection; `false`: there is none, and the connection waits for its turn,
    /// which [`ControlRoom::leave`] names.
    pub fn enter(&self, connection: u64) -> bool {
        let mut inner = self.inner.lock();
        let room = inner.in_work < self.max;
        if room {
            inner.in_work += 1;
        } else {
            inner.waiting.push_back(connection);
        }
        room
    }

    /// Gives one request's room back; the connection whose turn it is now, if one waits. It has the room already.
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
        let room = ControlRoom::new(2);
        assert!(room.enter(1) && room.enter(2));
        assert!(!room.enter(3) && !room.enter(4));
        assert_eq!(room.leave(), Some(3));
        assert!(!room.enter(1), "who comes later does not overtake");
        assert_eq!((room.leave(), room.leave()), (Some(4), Some(1)));
        assert_eq!((room.leave(), room.leave()), (None, None));
        assert!(room.enter(5));
    }
}
