//! Timing: how long the processor may sleep, and handling expired deadlines.

use std::time::Duration;

use super::reading::TRIM_AFTER_MS;
use super::{AT_ONCE, Deadline, End, Processor};
use crate::connection::Slot;
use crate::data_plane::events::Level;

impl Processor {
    /// The time until the next deadline; zero if there is work left, `None` for no limit.
    pub(super) fn rest(&self) -> Option<Duration> {
        if self.more_messages || !self.due.is_empty() || !self.woken.is_empty() {
            return Some(Duration::ZERO);
        }
        let until_stop = self.stop_at.map(|at| at.saturating_sub(self.reactor.clock.now()));
        let next = self.deadlines.next_due().into_iter().chain(until_stop).min()?;
        Some(Duration::from_millis(next))
    }

    /// Handles the deadlines that have expired; `fired` is empty before and after.
    pub(super) fn pass_deadlines(&mut self, fired: &mut Vec<Deadline>) {
        self.deadlines.advance(self.reactor.clock.now(), fired);
        self.due.extend(fired.drain(..));
        for _ in 0..self.due.len().min(AT_ONCE) {
            let Some(deadline) = self.due.pop_front() else { break };
            self.expire(deadline);
        }
    }

    pub(super) fn expire(&mut self, deadline: Deadline) {
        match deadline {
            Deadline::Waiting(waiter) => {
                let Some(open) = self.reactor.open.get(waiter.connection) else { return };
                let mut connection = open.lock();
                // The request may have completed long ago, or the number belong to a later request that reused a silent
                // request's number.
                let claimed = match connection.slot_mut(waiter.request) {
                    Some(Slot::Fetch(fetch)) => fetch.claim(),
                    Some(Slot::Produce(produce)) => produce.claim(),
                    Some(Slot::Control(_) | Slot::Held(_) | Slot::Delayed(_) | Slot::Ready(_)) | None => false,
                };
                let expired = connection.slot_mut(waiter.request).filter(|_| claimed).and_then(|slot| slot.waits_as());
                if let Some(api) = expired {
                    self.counters().wait_expired(api.key());
                    self.woken.push_back(waiter);
                }
            }
            Deadline::Idle(number) => self.reap(number),
            Deadline::Handshake(number) => self.end_slow_handshake(number),
            Deadline::Authentication(number) => self.end_unauthenticated(number),
            Deadline::Trim(number) => self.trim(number),
            Deadline::Muted(number) => self.unmute(number),
        }
    }

    fn reap(&mut self, number: u64) {
        let (now, idle) = (self.reactor.clock.now(), self.reactor.settings.connections_max_idle_ms.max(0) as u64);
        let Some(open) = self.reactor.open.get(number) else { return };
        let mut connection = open.lock();
        let due = connection.last_active + idle;
        // As in Kafka, this closes a connection that waits for data or for other members too, but not one whose request is
        // being executed.
        if due > now || connection.is_worked_on() {
            self.deadlines.insert(due.max(now + 1 + idle / 2), Deadline::Idle(number));
            return;
        }
        let text = format!("connection from {} closed: idle for {idle} ms", connection.accepted.peer);
        self.reactor.events.line(Level::Info, text);
        self.end(&mut connection, End::Gone);
    }

    fn end_slow_handshake(&mut self, number: u64) {
        let Some(open) = self.reactor.open.get(number) else { return };
        let mut connection = open.lock();
        if connection.accepted.transport.is_handshaking() {
            let within = connection.accepted.handshake_timeout_ms.unwrap_or(0);
            let why = format!("it has not completed the TLS handshake within {within} ms");
            self.end(&mut connection, End::Refused(why));
        }
    }

    fn end_unauthenticated(&mut self, number: u64) {
        let Some(open) = self.reactor.open.get(number) else { return };
        let mut connection = open.lock();
        if connection.accepted.authentication.identity().is_none() {
            let within = connection.accepted.authentication_timeout_ms;
            self.end(&mut connection, End::Refused(format!("it has not authenticated within {within} ms")));
        }
    }

    /// Frees the buffer of a large request, unless another such request has arrived.
    fn trim(&mut self, number: u64) {
        let now = self.reactor.clock.now();
        let Some(open) = self.reactor.open.get(number) else { return };
        let mut connection = open.lock();
        connection.trim_due = connection.last_active + TRIM_AFTER_MS > now;
        if connection.trim_due {
            self.deadlines.insert(connection.last_active + TRIM_AFTER_MS, Deadline::Trim(number));
        } else {
            connection.trim();
        }
    }
}
