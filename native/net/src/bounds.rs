//! What bounds a connection: when it is not read from, what memory it may take, when it has to go.
//!
//! Who sends much, reads little or says nothing is the one that waits or is closed; the others on the processor go on.
//! Must not know what requests mean.

use std::sync::atomic::Ordering;

use super::connection::{Connection, Slot};
use super::events::Level;
use super::processor::{Deadline, End, Processor};
use super::request_memory::Wish;
use pybroker_replica::Waiter;

/// How long a connection keeps the buffer of a large request without asking for another.
const TRIM_AFTER_MS: u64 = 1000;

impl Processor {
    /// The peer has closed its side while it is not read from. What it sent before is still worked on, for it may have
    /// left on purpose (`acks=0`), but none of its fetches waits for data any more.
    pub(super) fn peer_closed(&mut self, connection: &mut Connection) -> Result<(), End> {
        if connection.at_end() {
            return Err(End::Gone);
        }
        connection.peer_closed = true;
        for request in connection.waiting_requests() {
            if let Some(Slot::Fetch(fetch)) = connection.slot_mut(request)
                && fetch.claim()
            {
                self.woken.push_back(Waiter { connection: connection.number, request });
            }
        }
        Ok(())
    }

    /// Whether a connection has the memory for the request that it is sending, or need not have any.
    pub(super) fn has_memory(&self, connection: &mut Connection) -> bool {
        if !self.shared.request_memory.is_bounded() {
            return true;
        }
        let Some(bytes) = connection.wanted_memory() else { return true };
        match self.shared.request_memory.take(connection.number, bytes) {
            Wish::Granted => {
                connection.reserve(bytes);
                true
            }
            Wish::Waits { first } => {
                connection.waits_for_memory = true;
                if first {
                    let limit = self.shared.settings.queued_request_bytes;
                    let text =
                        format!("requests take queued.max.request.bytes, which is {limit}: no more are received");
                    self.shared.events.line(Level::Warning, text);
                }
                false
            }
        }
    }

    /// Whether nothing more of this connection may be begun now.
    pub(super) fn paused(&self, connection: &Connection) -> bool {
        connection.control_unanswered() || self.stopped_reading(connection)
    }

    /// Whether this connection is not to be read from. An unanswered control request is no reason: its connection most
    /// often sends nothing meanwhile, and to look away and back costs two system calls.
    pub(super) fn stopped_reading(&self, connection: &Connection) -> bool {
        let settings = &self.shared.settings;
        connection.parked.is_some()
            || connection.intercepted
            || connection.throttled
            || connection.waits_for_memory
            || connection.blocked
            || connection.closing.is_some()
            || connection.in_work() >= settings.requests_in_work_per_connection
            || connection.out_bytes() >= settings.queued_response_bytes_per_connection
    }

    pub(super) fn reap(&mut self, number: u64) {
        let (now, idle) = (self.shared.now(), self.shared.settings.connections_max_idle_ms.max(0) as u64);
        let Some(open) = self.shared.open.get(number) else { return };
        let mut connection = open.lock();
        let due = connection.last_active + idle;
        // As Kafka's, it ends a connection that waits for data or for other members as well, but not one whose request is
        // being worked on.
        if due > now || connection.is_worked_on() {
            self.deadlines.insert(due.max(now + 1 + idle / 2), Deadline::Idle(number));
            return;
        }
        let text = format!("connection from {} closed: idle for {idle} ms", connection.accepted.peer);
        self.shared.events.line(Level::Info, text);
        self.end(&mut connection, End::Gone);
    }

    /// Gives back the buffer of a large request, unless another came meanwhile.
    pub(super) fn trim(&mut self, number: u64) {
        let now = self.shared.now();
        let Some(open) = self.shared.open.get(number) else { return };
        let mut connection = open.lock();
        connection.trim_due = connection.last_active + TRIM_AFTER_MS > now;
        if connection.trim_due {
            self.deadlines.insert(connection.last_active + TRIM_AFTER_MS, Deadline::Trim(number));
        } else {
            connection.trim();
        }
    }

    /// Closes own connections, those first that hold most memory in unread answers, until all answers take no more than
    /// they may.
    pub(super) fn shed(&mut self) {
        let limit = self.shared.settings.queued_response_bytes;
        if self.shared.response_memory.load(Ordering::Relaxed) <= limit {
            return;
        }
        let numbers = self.shared.open.numbers(self.index);
        let holding = |number| Some((self.shared.open.get(number)?.lock().memory(), number));
        let mut holders: Vec<_> = numbers.into_iter().filter_map(holding).filter(|(memory, _)| *memory > 0).collect();
        holders.sort_unstable();
        while self.shared.response_memory.load(Ordering::Relaxed) > limit
            && let Some((memory, number)) = holders.pop()
        {
            let Some(open) = self.shared.open.get(number) else { continue };
            let why = format!(
                "it left answers of {memory} bytes unread, and all unread answers take more than \
                 queued.max.response.bytes, which is {limit}"
            );
            self.end(&mut open.lock(), End::Refused(why));
        }
    }

    /// Gives back the memory of a request that is done with, and soon that of the buffer it was received in.
    pub(super) fn release_memory(&mut self, connection: &mut Connection) {
        let reserved = connection.release_reserved();
        if reserved > 0 {
            connection.trim();
            self.shared.request_memory.give_back(reserved);
            self.shared.offer_request_memory();
        }
        if connection.has_large_buffer() && !connection.trim_due {
            connection.trim_due = true;
            self.deadlines.insert(self.shared.now() + TRIM_AFTER_MS, Deadline::Trim(connection.number));
        }
    }

    /// Lets a connection that waited for memory for its request try again, and then the next.
    pub(super) fn resume_receiving(&mut self, number: u64) {
        if let Some(open) = self.shared.open.get(number) {
            let mut connection = open.lock();
            connection.waits_for_memory = false;
            let done = self.receive(&mut connection);
            self.settle(&mut connection, done);
        }
        self.shared.offer_request_memory();
    }
}
