//! Answering a fetch whose connection another processor owns, on the thread of the append that satisfied it.
//!
//! To wake the owner costs more than a small answer: a system call, a sleeping thread, a switch. So the appending
//! processor answers the first small fetch itself, after its producer. It takes the connection only in its plainest state
//! (nobody else holds it, the fetch is all that it has in work); whatever else there is to do is the owner's.

use super::connection::Slot;
use super::data_plane::Shared;
use super::inbox::Message;
use super::processor::Processor;
use crate::replica::Waiter;

/// Appends of larger frames wake the owner: to send what they brought would keep the appending processor from its own.
pub const SMALL_APPEND_BYTES: usize = 16 << 10;

impl Processor {
    /// Answers the fetch of another processor's connection, or has its owner do it.
    pub(super) fn serve_elsewhere(&mut self, waiter: Waiter) {
        if !self.try_serve_elsewhere(waiter) {
            self.shared.wake(waiter);
        }
    }

    fn try_serve_elsewhere(&mut self, waiter: Waiter) -> bool {
        let Some(open) = self.shared.open.get(waiter.connection) else { return true };
        let Some(mut connection) = open.try_lock() else { return false };
        if !connection.only_waits() {
            return false;
        }
        let Some(slot) = connection.slot_mut(waiter.request) else { return true };
        match slot {
            Slot::Fetch(_) => {}
            Slot::Produce(_) => return false,
            Slot::Control(_) | Slot::Held(_) | Slot::Parked | Slot::Ready(_) => return true,
        }
        if let Slot::Fetch(fetch) = std::mem::replace(slot, Slot::Parked) {
            let response = fetch.complete(&self.shared);
            connection.answer(waiter.request, response);
        }
        let written = connection.write(self.shared.now());
        if written.is_err() || connection.out_bytes() > 0 {
            // The owner writes the rest, or meets the same failure and ends the connection.
            settle_later(&self.shared, waiter.connection);
        }
        true
    }
}

fn settle_later(shared: &Shared, connection: u64) {
    shared.post(connection, Message::Settle { connection });
}
