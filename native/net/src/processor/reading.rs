//! Reading: from a connection's socket to whole frames, and when reading is paused.
//!
//! A client that sends too much, or does not read its responses, does not delay the other connections of the processor.
//! Must not know the content of requests.

use std::sync::Arc;
use std::time::Instant;

use rustix::event::epoll;
use rustix::io::Errno;

use super::{Deadline, End, Processor};
use crate::accepting::accepted::Accepted;
use crate::connection::connection_number::connection_number;
use crate::connection::identity::{Authentication, Identity};
use crate::connection::read_state::ReadState;
use crate::connection::{Connection, FIRST_INTEREST, Framing, Slot};
use crate::data_plane::events::{Event, Level, PeerCertificate};
use crate::limits::request_memory::MemoryGrant;
use crate::scheduling::clock::NANOSECONDS_OF_MS;
use crate::transport::Received;
use pybroker_replica::Waiter;

/// Maximum reads of one connection before other connections are served.
const READS_A_TURN: usize = 4;
/// The hint for a client that starts a TLS handshake where none is expected.
const TLS_TO_PLAINTEXT: &str = ". It begins as TLS does, which this listener does not speak: the client may be set to SSL \
                                or SASL_SSL";
/// Time after which a connection without another large request releases the buffer of the last one.
pub(super) const TRIM_AFTER_MS: u64 = 1000;

impl Processor {
    pub(super) fn accept(&mut self, accepted: Accepted) {
        self.accepted += 1;
        let number = connection_number(self.accepted, self.index);
        if self.stop_at.is_some() || accepted.transport.watch(&self.epoll, number, FIRST_INTEREST).is_err() {
            self.reactor.capacity.give_back(&accepted.listener, accepted.peer.ip());
            return;
        }
        let now = self.reactor.clock.now();
        if let Ok(idle) = u64::try_from(self.reactor.settings.connections_max_idle_ms) {
            self.deadlines.insert(now + idle, Deadline::Idle(number));
        }
        if let Some(handshake) = accepted.handshake_timeout_ms {
            self.deadlines.insert(now + handshake, Deadline::Handshake(number));
        }
        if accepted.authentication.identity().is_none() {
            self.deadlines.insert(now + accepted.authentication_timeout_ms, Deadline::Authentication(number));
        }
        self.reactor.open.insert(Connection::new(number, accepted, now));
    }

    /// Handles a socket that is readable or writable.
    pub(super) fn drive(&mut self, number: u64, flags: epoll::EventFlags) {
        let Some(open) = self.reactor.open.get(number) else { return };
        let mut connection = open.lock();
        let began = connection.metering.begin_turn().then(Instant::now);
        let done = self.turn(&mut connection, flags);
        self.complete(&mut connection, done);
        if let Some(began) = began {
            connection.metering.end_turn(began.elapsed(), self.reactor.clock.now());
        }
    }

    fn turn(&mut self, connection: &mut Connection, flags: epoll::EventFlags) -> Result<(), End> {
        if flags.contains(epoll::EventFlags::OUT) {
            self.send(connection, self.reactor.clock.now())?;
            self.work(connection)?;
        }
        let lost = flags.intersects(epoll::EventFlags::HUP | epoll::EventFlags::ERR);
        if self.paused(connection) {
            if lost {
                return Err(End::Gone);
            }
            connection.muted |= flags.contains(epoll::EventFlags::IN);
            return if flags.contains(epoll::EventFlags::RDHUP) { self.peer_closed(connection) } else { Ok(()) };
        }
        if !lost && !flags.contains(epoll::EventFlags::IN) {
            return Ok(());
        }
        self.receive(connection)
    }

    /// Reads and handles incoming bytes, with at most [`READS_A_TURN`] reads.
    pub(super) fn receive(&mut self, connection: &mut Connection) -> Result<(), End> {
        for _ in 0..READS_A_TURN {
            if self.paused(connection) || !self.has_memory(connection) {
                return Ok(());
            }
            let more = match connection.read() {
                Ok(Received { bytes: 0, .. }) => return Err(End::Gone),
                Ok(Received { more, .. }) => more,
                Err(Errno::AGAIN | Errno::INTR) => return Ok(()),
                Err(error) => return Err(connection.failed(error)),
            };
            self.name_peer(connection);
            connection.arrived_ns = self.look_at_clock(connection);
            connection.last_active = connection.arrived_ns / NANOSECONDS_OF_MS;
            self.work(connection)?;
            if !more {
                return Ok(());
            }
            self.send(connection, connection.last_active)?;
        }
        Ok(())
    }

    /// Requests the principal of a client certificate from the control plane; the connection's requests wait for the
    /// principal. A SASL connection gets its principal from SASL instead.
    fn name_peer(&self, connection: &mut Connection) {
        if let Some(certificate) = connection.accepted.transport.take_certificate()
            && connection.accepted.authentication.identity().is_some()
        {
            connection.reading = ReadState::Unnamed;
            connection.known_above = true;
            let (listener, peer) = (Arc::clone(&connection.accepted.listener), connection.accepted.peer);
            let event = PeerCertificate { connection: connection.number, listener, peer, certificate };
            self.reactor.events.push(Event::PeerCertificate(event));
        }
    }

    /// Resumes a connection after its certificate has been mapped to a principal.
    pub(super) fn named(&mut self, number: u64, identity: &Arc<Identity>) {
        let Some(open) = self.reactor.open.get(number) else { return };
        let mut connection = open.lock();
        if connection.reading.end_unnamed() {
            connection.become_proved(Authentication::of_listener(Some(identity)));
            let done = self.work(&mut connection);
            self.complete(&mut connection, done);
        }
    }

    /// Begins the request of every whole frame in the input buffer.
    pub(super) fn work(&mut self, connection: &mut Connection) -> Result<(), End> {
        while !self.paused(connection) {
            let max = connection.accepted.max_frame_bytes(self.reactor.settings.socket_request_max_bytes);
            match connection.next_frame(max) {
                Framing::Incomplete => break,
                Framing::BadSize(size) => {
                    let key = connection.accepted.max_frame_key();
                    let hint = if connection.speaks_tls(size) { TLS_TO_PLAINTEXT } else { "" };
                    let why = format!("a frame of {size} bytes; {key} allows 0 to {max}{hint}");
                    return Err(End::Refused(why));
                }
                Framing::Frame(at) => self.begin(connection, at)?,
            }
        }
        self.release_memory(connection);
        Ok(())
    }

    /// Whether no further request of this connection may begin.
    fn paused(&self, connection: &Connection) -> bool {
        connection.control_unanswered() || self.stopped_reading(connection)
    }

    /// Whether reading from this connection must stop. A control request in progress is no reason: a connection rarely
    /// sends while it waits for the response, and two changes of the epoll interest cost two system calls.
    pub(super) fn stopped_reading(&self, connection: &Connection) -> bool {
        let settings = &self.reactor.settings;
        connection.reading.is_paused()
            || connection.metering.is_stopped()
            || connection.waits_for_memory
            || connection.blocked
            || connection.closing.is_some()
            || connection.in_work() >= settings.requests_in_work_per_connection
            || connection.out_bytes() >= settings.queued_response_bytes_per_connection
    }

    /// Handles a peer's close of a connection from which nothing is read. Earlier requests of the peer are still
    /// executed, as they may need no response (`acks=0`), but its fetches no longer wait for data.
    fn peer_closed(&mut self, connection: &mut Connection) -> Result<(), End> {
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

    /// Whether a connection has reserved the memory for the request that it is sending, or needs none.
    fn has_memory(&self, connection: &mut Connection) -> bool {
        if !self.reactor.request_memory.is_bounded() {
            return true;
        }
        let Some(bytes) = connection.wanted_memory() else { return true };
        match self.reactor.request_memory.take(connection.number, bytes) {
            MemoryGrant::Granted => {
                connection.reserve(bytes);
                true
            }
            MemoryGrant::Waits { first } => {
                connection.waits_for_memory = true;
                if first {
                    let limit = self.reactor.settings.queued_request_bytes;
                    let text =
                        format!("requests take queued.max.request.bytes, which is {limit}: no more are received");
                    self.reactor.events.line(Level::Warning, text);
                }
                false
            }
        }
    }

    /// Releases the memory of a completed request, and sets a timer for the release of its buffer.
    fn release_memory(&mut self, connection: &mut Connection) {
        let reserved = connection.release_reserved();
        if reserved > 0 {
            connection.trim();
            self.reactor.request_memory.give_back(reserved);
            self.reactor.offer_request_memory();
        }
        if connection.has_large_buffer() && !connection.trim_due {
            connection.trim_due = true;
            self.deadlines.insert(self.reactor.clock.now() + TRIM_AFTER_MS, Deadline::Trim(connection.number));
        }
    }

    /// Retries the read of a connection that waited for memory, and then the next waiting connection.
    pub(super) fn resume_receiving(&mut self, number: u64) {
        if let Some(open) = self.reactor.open.get(number) {
            let mut connection = open.lock();
            connection.waits_for_memory = false;
            let done = self.receive(&mut connection);
            self.complete(&mut connection, done);
        }
        self.reactor.offer_request_memory();
    }
}
