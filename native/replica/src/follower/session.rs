//! The follower's side of an incremental fetch session (KIP-227).
//!
//! Owns the session's id and epoch. Must not know the requested partitions.

use crate::fetch_session::FetchSessionId;

/// The session; see the module. With id 0 it has not begun: the next request names all partitions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FetcherSession {
    id: i32,
    next_epoch: i32,
}

impl FetcherSession {
    /// Returns id and epoch of the next request. Epoch 0 requests a new session, and ends the one with that id.
    pub fn next(&self) -> (FetchSessionId, i32) {
        (FetchSessionId(self.id), self.next_epoch)
    }

    /// Returns whether the next request names every partition.
    pub fn is_full(&self) -> bool {
        self.next_epoch == 0
    }

    /// Advances the epoch after a request was sent.
    pub fn sent(&mut self) {
        if self.next_epoch > 0 {
            self.next_epoch = if self.next_epoch == i32::MAX { 1 } else { self.next_epoch + 1 };
        }
    }

    /// Applies the session id of a response. With id 0 the next request is full again.
    pub fn responded(&mut self, id: i32) {
        if id == 0 {
            *self = Self::default();
        } else if self.next_epoch == 0 {
            *self = Self { id, next_epoch: 1 };
        }
    }

    /// Resets the session after the leader rejected it: the next request ends it and requests a new one.
    pub fn refused(&mut self, is_unknown: bool) {
        self.id = if is_unknown { 0 } else { self.id };
        self.next_epoch = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::{FetchSessionId, FetcherSession};

    #[test]
    fn a_session_counts_its_requests_from_one_and_begins_anew_when_it_is_refused() {
        let mut session = FetcherSession::default();
        assert_eq!((session.next(), session.is_full()), ((FetchSessionId(0), 0), true));
        session.sent();
        session.responded(7);
        assert_eq!(session.next(), (FetchSessionId(7), 1));
        session.sent();
        session.responded(7);
        assert_eq!((session.next(), session.is_full()), ((FetchSessionId(7), 2), false));
        session.refused(false);
        assert_eq!(session.next(), (FetchSessionId(7), 0));
        session.refused(true);
        assert_eq!(session.next(), (FetchSessionId(0), 0));
        session.sent();
        session.responded(0);
        assert!(session.is_full());
        let mut oldest = FetcherSession { id: 7, next_epoch: i32::MAX };
        oldest.sent();
        assert_eq!(oldest.next(), (FetchSessionId(7), 1));
    }
}
