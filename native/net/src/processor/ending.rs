//! Ending connections: one, those that use too much memory, or all.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::{Deadline, End, Processor};
use crate::connection::{Closing, Connection, Slot};
use crate::data_plane::events::{Event, Level};
use crate::hot_path::HotPathApi;
use pybroker_replica::Waiter;

impl Processor {
    /// Removes a connection and all its waiting requests.
    pub(super) fn end(&mut self, connection: &mut Connection, why: End) {
        let number = connection.number;
        self.reactor.open.remove(number);
        let peer = connection.accepted.peer;
        if let End::Refused(why) = why {
            if let Some(line) = self.reactor.refusals.line(peer, &why, self.reactor.clock.now()) {
                self.reactor.events.line(Level::Warning, line);
            }
            // Earlier responses are still sent, as far as the socket takes them at once.
            let _ = self.send(connection, self.reactor.clock.now());
        }
        if connection.has_control_in_work() {
            self.reactor.control_done();
        }
        for slot in connection.take_slots() {
            self.drop_request(slot);
        }
        if let Some((before, now)) = connection.account() {
            self.reactor.account_responses(number, before, now);
        }
        let reserved = connection.take_reserved();
        if reserved > 0 {
            self.reactor.request_memory.give_back(reserved);
            self.reactor.offer_request_memory();
        }
        if connection.known_above {
            self.reactor.events.push(Event::ConnectionClosed { connection: number });
        }
        connection.accepted.transport.end();
        // The socket closes when the last reference to the connection is dropped. Until then epoll must not report it.
        connection.accepted.transport.unwatch(&self.epoll);
        self.reactor.capacity.give_back(&connection.accepted.listener, connection.accepted.peer.ip());
    }

    /// Ends a request without a response: its connection has ended.
    fn drop_request(&self, slot: Slot) {
        let api_key = match slot {
            Slot::Ready(_) => return,
            Slot::Control(requested) | Slot::Held(requested) => requested.api_key,
            Slot::Produce(_) => {
                self.counters().wait_ended(HotPathApi::Produce.key());
                HotPathApi::Produce.key()
            }
            Slot::Fetch(fetch) => {
                fetch.abandon();
                self.counters().wait_ended(HotPathApi::Fetch.key());
                HotPathApi::Fetch.key()
            }
            Slot::Delayed(api) => api.key(),
        };
        self.counters().ended(api_key, 0);
    }

    pub(super) fn close_when_written(&mut self, number: u64) {
        let Some(open) = self.reactor.open.get(number) else { return };
        let mut connection = open.lock();
        connection.closing = Some(Closing::WhenWritten);
        self.complete(&mut connection, Ok(()));
    }

    /// Completes waiting fetches with the data available, and closes idle connections.
    pub(super) fn stop(&mut self, grace_ms: u64) {
        self.stop_at = Some(self.reactor.clock.now() + grace_ms);
        for number in self.reactor.open.numbers(self.index) {
            self.close_when_responded(number);
        }
    }

    /// Completes the waiting fetches of a connection with the data available, and closes it when its requests in work are
    /// answered.
    pub(super) fn close_when_responded(&mut self, number: u64) {
        let Some(open) = self.reactor.open.get(number) else { return };
        let waiting = open.lock().waiting_requests();
        for request in waiting {
            self.expire(Deadline::Waiting(Waiter { connection: number, request }));
        }
        self.serve_woken();
        let mut connection = open.lock();
        if self.reactor.open.get(number).is_some() {
            connection.closing = Some(Closing::WhenResponded);
            self.complete(&mut connection, Ok(()));
        }
    }

    /// Closes the connections of a closed listener; those of another listener with the same name stay.
    pub(super) fn close_listener(&mut self, name: &Arc<str>) {
        for number in self.reactor.open.numbers(self.index) {
            let came_by = self.reactor.open.get(number).map(|open| Arc::clone(&open.lock().accepted.listener));
            if came_by.is_some_and(|listener| Arc::ptr_eq(&listener, name)) {
                self.close_when_responded(number);
            }
        }
    }

    pub(super) fn stopped(&self) -> bool {
        match self.stop_at {
            Some(at) => self.reactor.open.is_empty(self.index) || self.reactor.clock.now() >= at,
            None => false,
        }
    }

    /// Closes connections of this processor, those with most memory in unread responses first, until the memory of all
    /// responses is below its limit.
    pub(super) fn shed(&mut self) {
        let limit = self.reactor.settings.queued_response_bytes;
        if self.reactor.response_memory.load(Ordering::Relaxed) <= limit {
            return;
        }
        let numbers = self.reactor.open.numbers(self.index);
        let holding = |number| Some((self.reactor.open.get(number)?.lock().memory(), number));
        let mut holders: Vec<_> = numbers.into_iter().filter_map(holding).filter(|(memory, _)| *memory > 0).collect();
        holders.sort_unstable();
        while self.reactor.response_memory.load(Ordering::Relaxed) > limit
            && let Some((memory, number)) = holders.pop()
        {
            let Some(open) = self.reactor.open.get(number) else { continue };
            let why = format!(
                "it left answers of {memory} bytes unread, and all unread answers take more than \
                 queued.max.response.bytes, which is {limit}"
            );
            self.end(&mut open.lock(), End::Refused(why));
        }
    }

    /// Closes every connection at once.
    pub(super) fn close_all(&mut self) {
        for number in self.reactor.open.numbers(self.index) {
            let Some(open) = self.reactor.open.get(number) else { continue };
            self.end(&mut open.lock(), End::Gone);
        }
    }
}
