//! Responding: the control plane's responses, and writing queued responses.

use rustix::event::epoll;
use rustix::io::Errno;

use super::{End, Processor};
use crate::connection::bare_tokens;
use crate::connection::{Closing, Connection, Slot};
use crate::scheduling::clock::NANOSECONDS_OF_MS;
use pybroker_replica::Waiter;

impl Processor {
    pub(super) fn respond(&mut self, to: Waiter, payload: &[u8]) {
        let Some(open) = self.reactor.open.get(to.connection) else { return };
        let mut connection = open.lock();
        let slot = connection.slot_mut(to.request);
        let counts = matches!(slot, Some(Slot::Control(_)));
        if let Some(&mut (Slot::Control(requested) | Slot::Held(requested))) = slot {
            let response = bare_tokens::respond(&mut connection, requested, payload);
            self.counters().ended(requested.api_key, response.size());
            self.look_at_clock(&mut connection);
            connection.respond(to.request, response);
        }
        if counts {
            self.reactor.control_done();
        }
        let done = self.work(&mut connection);
        self.complete(&mut connection, done);
    }

    /// Responds to a request and ends its connection: later requests of its client are dropped, and earlier requests that
    /// wait are completed with the data available.
    pub(super) fn respond_last(&mut self, to: Waiter, payload: &[u8]) {
        if let Some(open) = self.reactor.open.get(to.connection) {
            open.lock().closing = Some(Closing::WhenResponded);
        }
        self.respond(to, payload);
        self.close_when_responded(to.connection);
    }

    pub(super) fn hold(&mut self, waiter: Waiter) {
        let Some(open) = self.reactor.open.get(waiter.connection) else { return };
        let mut connection = open.lock();
        if let Some(slot) = connection.slot_mut(waiter.request)
            && let Slot::Control(requested) = *slot
        {
            *slot = Slot::Held(requested);
            if let Some(steps) = connection.steps() {
                steps.wait();
            }
            self.reactor.control_done();
        }
    }

    /// Completes work on a connection: writes its responses and sets its epoll interest, or ends the connection.
    pub(super) fn complete(&mut self, connection: &mut Connection, done: Result<(), End>) {
        match done.and_then(|()| self.write(connection)) {
            Ok(()) if !connection.finished() => {
                self.time_mute(connection);
                if let Some((before, now)) = connection.account() {
                    self.reactor.account_responses(connection.number, before, now);
                }
            }
            Ok(()) => self.end(connection, End::Gone),
            Err(end) => self.end(connection, end),
        }
        connection.now_ns = 0;
    }

    /// Writes queued responses, and records the times of those that were sent.
    pub(super) fn send(&self, connection: &mut Connection, now_ms: u64) -> Result<(), Errno> {
        let written = connection.write(now_ms);
        if connection.has_sent() {
            let now = self.look_at_clock(connection);
            while let Some(times) = connection.take_sent() {
                self.counters().took(&times, now);
            }
        }
        written
    }

    /// Writes queued responses, resumes frames that waited for them, and sets the epoll interest.
    fn write(&mut self, connection: &mut Connection) -> Result<(), End> {
        loop {
            if !connection.blocked {
                let now_ms = self.time(connection) / NANOSECONDS_OF_MS;
                self.send(connection, now_ms)?;
            }
            self.work(connection)?;
            // Responses to frames that had waited for memory have to be written too: epoll would never report a paused
            // connection whose socket is writable.
            if connection.blocked || connection.out_bytes() == 0 {
                break;
            }
        }
        let mut interest = epoll::EventFlags::empty();
        if !connection.peer_closed {
            interest |= epoll::EventFlags::RDHUP;
        }
        if !connection.muted && !self.stopped_reading(connection) {
            interest |= epoll::EventFlags::IN;
        }
        if connection.blocked || connection.accepted.transport.owes() {
            interest |= epoll::EventFlags::OUT;
        }
        if connection.interest != interest {
            connection.interest = interest;
            connection.accepted.transport.watch_for(&self.epoll, connection.number, interest)?;
        }
        Ok(())
    }

    /// Continues a write that another thread has begun.
    pub(super) fn complete_written(&mut self, number: u64) {
        let Some(open) = self.reactor.open.get(number) else { return };
        self.complete(&mut open.lock(), Ok(()));
    }
}
