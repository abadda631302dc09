//! A processor: an epoll set and the connections that were assigned to it, served by one thread.
//!
//! The steps of a request: bytes are read, a frame is cut, and its header decides between the hot path (Produce, Fetch) and
//! the control plane. The response is queued behind earlier ones and written at once. Nothing blocks except `epoll_wait`.
//! The files: reading, serving, responding, timing, ending, and threads.

mod ending;
mod metering;
mod reading;
mod responding;
mod serving;
pub mod threads;
mod timing;

use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::event::{Timespec, epoll};
use rustix::io::Errno;

use crate::connection::Connection;
use crate::connection::connection_number::MOST_PROCESSORS;
use crate::measures::counters::ThreadCounters;
use crate::scheduling::inbox::Message;
use crate::scheduling::reactor::Reactor;
use crate::scheduling::timer_wheel::TimerWheel;
use pybroker_replica::Waiter;

/// The epoll token of the inbox. The token of a connection is its number, which is always smaller.
const INBOX: u64 = u64::MAX;
/// The epoll token of the first adopted processor; the tokens of the others follow.
const FIRST_ADOPTED: u64 = INBOX - MOST_PROCESSORS as u64;
/// The most messages, deadlines and completed requests to handle before sockets are polled again.
const AT_ONCE: usize = 128;

/// The purpose of a timer.
#[derive(Debug)]
enum Deadline {
    /// A fetch reaches its `max_wait_ms`, or a produce its `timeout_ms`.
    Waiting(Waiter),
    /// Check whether a connection was idle for too long.
    Idle(u64),
    /// Check whether a connection has completed its handshake.
    Handshake(u64),
    /// Check whether a connection has authenticated.
    Authentication(u64),
    /// Check whether the buffer of a large request is unused.
    Trim(u64),
    /// Check whether the mute of a connection has ended.
    Muted(u64),
}

/// Why a connection ends.
#[derive(Debug)]
enum End {
    /// The peer closed the connection, or the socket failed: not logged.
    Gone,
    /// The peer broke the protocol: one log line.
    Refused(String),
}

impl Connection {
    /// The reason to end a connection whose transport has failed.
    fn failed(&mut self, error: Errno) -> End {
        self.accepted.transport.take_failure().map_or(End::from(error), End::Refused)
    }
}

impl From<Errno> for End {
    fn from(_: Errno) -> Self {
        End::Gone
    }
}

/// The state of one processor, which one thread serves at a time.
pub struct Processor {
    index: usize,
    reactor: Arc<Reactor>,
    epoll: OwnedFd,
    accepted: u64,
    deadlines: TimerWheel<Deadline>,
    /// Requests that an append on this thread completed: requests of this processor, and at most one fetch of another
    /// processor. They are served at the end of the current event.
    woken: VecDeque<Waiter>,
    /// Expired deadlines that have not been handled yet.
    due: VecDeque<Deadline>,
    /// Whether the inbox may hold messages without a wake-up.
    more_messages: bool,
    /// Whether the thread that owns this processor has received orders.
    ordered: bool,
    /// The time of the stop, in milliseconds of the processor's clock.
    stop_at: Option<u64>,
}

impl Processor {
    /// A processor without connections.
    pub fn new(index: usize, reactor: Arc<Reactor>) -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let inbox = reactor.inboxes.open(index)?;
        epoll::add(&epoll, inbox.fd(), epoll::EventData::new_u64(INBOX), epoll::EventFlags::IN)?;
        let now = reactor.clock.now();
        Ok(Self {
            index,
            reactor,
            epoll,
            accepted: 0,
            deadlines: TimerWheel::new(now),
            woken: VecDeque::new(),
            due: VecDeque::new(),
            more_messages: false,
            ordered: false,
            stop_at: None,
        })
    }

    /// Waits for events, at most for `timeout`, and handles them. The number of handled events of each kind is limited,
    /// so that other kinds do not wait. Afterwards `events` has the events of this pass; `fired` is empty before and
    /// after.
    fn pass(&mut self, events: &mut Vec<epoll::Event>, fired: &mut Vec<Deadline>, timeout: Option<&Timespec>) {
        events.clear();
        if epoll::wait(&self.epoll, rustix::buffer::spare_capacity(events), timeout).is_err() {
            return;
        }
        for event in events.iter() {
            match event.data.u64() {
                INBOX => self.more_messages = true,
                // The number of an adopted processor matches no connection.
                number => self.drive(number, event.flags),
            }
            self.serve_woken();
        }
        if self.more_messages {
            self.read_inbox();
            self.serve_woken();
        }
        self.pass_deadlines(fired);
        self.serve_woken();
    }

    /// The counters of this processor.
    fn counters(&self) -> &ThreadCounters {
        self.reactor.counters.of(self.index)
    }

    fn read_inbox(&mut self) {
        let reactor = Arc::clone(&self.reactor);
        let Some(inbox) = reactor.inboxes.of(self.index) else { return };
        inbox.woken();
        for _ in 0..AT_ONCE {
            let Some(message) = inbox.take() else {
                self.more_messages = false;
                return;
            };
            match message {
                Message::Accept(accepted) => self.accept(accepted),
                Message::Response { to, payload } => self.respond(to, &payload),
                Message::LastResponse { to, payload } => self.respond_last(to, &payload),
                Message::Hold(waiter) => self.hold(waiter),
                Message::Wake(waiter) => self.woken.push_back(waiter),
                Message::Retry { waiter, decision } => self.retry(waiter, decision),
                Message::Verified { waiter, responses } => self.verified(waiter, responses),
                Message::Close { connection } => self.close_when_written(connection),
                Message::Complete { connection } => self.complete_written(connection),
                Message::Resume { connection } => self.resume(connection),
                Message::Memory { connection } => self.resume_receiving(connection),
                Message::Shed => self.shed(),
                Message::Named { connection, identity } => self.named(connection, &identity),
                Message::Quotas { connection, version, limits } => self.quotas_reported(connection, version, &limits),
                Message::Decide { connection, decision } => self.decide(connection, decision),
                Message::CloseListener(name) => self.close_listener(&name),
                Message::Orders => self.ordered = true,
                Message::CloseAll => self.close_all(),
                Message::Stop { grace_ms } => self.stop(grace_ms),
            }
        }
    }
}
