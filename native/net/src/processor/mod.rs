//! A processor: one thread, one epoll set, the connections that were dealt to it.
//!
//! The life of a request here: bytes are read, a frame is cut, its head decides whether it stays on the hot path
//! (Produce, Fetch) or goes up; the answer is queued behind those before it and written at once. Nothing here blocks but
//! `epoll_wait`. Each file has one job: reading, serving, answering, timing, ending, and which threads serve.

mod answering;
mod ending;
mod metering;
mod reading;
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

/// The epoll token of the inbox; connections use their number, which never reaches it.
const INBOX: u64 = u64::MAX;
/// The epoll token of the first processor that is served beside the own one; others follow by number.
const FIRST_GUEST: u64 = INBOX - MOST_PROCESSORS as u64;
/// Messages, deadlines and satisfied requests that are looked at before sockets get their turn.
const AT_ONCE: usize = 128;

/// What a timer is for.
#[derive(Debug)]
enum Deadline {
    /// A fetch has waited for `max_wait_ms`, or a produce for `timeout_ms`.
    Waiting(Waiter),
    /// A connection may have idled too long.
    Idle(u64),
    /// A connection may not have completed its handshake.
    Handshake(u64),
    /// A connection may not have said who it is.
    Authentication(u64),
    /// A connection may no longer need the buffer of a large request.
    Trim(u64),
    /// A connection may no longer be muted.
    Muted(u64),
}

/// Why a connection ends.
#[derive(Debug)]
enum End {
    /// The peer closed, or the socket failed: nothing to log.
    Gone,
    /// The peer broke the protocol: one line in the log.
    Refused(String),
}

impl Connection {
    /// How it ends when its transport has failed.
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
    /// Requests that an append on this thread satisfied, served when the present event is done: own ones, and at most one
    /// fetch of another processor.
    woken: VecDeque<Waiter>,
    /// Deadlines that have passed and are not looked at yet.
    due: VecDeque<Deadline>,
    /// Whether the inbox may hold messages that nobody wakes this thread for.
    more_messages: bool,
    /// Whether the thread whose own processor this is has orders.
    ordered: bool,
    /// When the stop is due, in milliseconds of the processor's clock.
    stop_at: Option<u64>,
}

impl Processor {
    /// A processor that waits for connections.
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

    /// Waits for something to do, for as long as `timeout` says, and does it. However much there is of one kind, the others
    /// get their turn in between. `events` are those of this pass afterwards; `fired` is empty before and after.
    fn pass(&mut self, events: &mut Vec<epoll::Event>, fired: &mut Vec<Deadline>, timeout: Option<&Timespec>) {
        events.clear();
        if epoll::wait(&self.epoll, rustix::buffer::spare_capacity(events), timeout).is_err() {
            return;
        }
        for event in events.iter() {
            match event.data.u64() {
                INBOX => self.more_messages = true,
                // That of a guest is no connection's.
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

    /// What is counted here.
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
                Message::Answer { to, payload } => self.answer(to, &payload),
                Message::LastAnswer { to, payload } => self.answer_last(to, &payload),
                Message::Hold(waiter) => self.hold(waiter),
                Message::Wake(waiter) => self.woken.push_back(waiter),
                Message::Retry { waiter, verdict } => self.retry(waiter, verdict),
                Message::Verified { waiter, answers } => self.verified(waiter, answers),
                Message::Close { connection } => self.close_when_written(connection),
                Message::Settle { connection } => self.settle_written(connection),
                Message::Resume { connection } => self.resume(connection),
                Message::Memory { connection } => self.resume_receiving(connection),
                Message::Shed => self.shed(),
                Message::Named { connection, identity } => self.named(connection, &identity),
                Message::Quotas { connection, version, limits } => self.quotas_said(connection, version, &limits),
                Message::Decide { connection, decision } => self.decide(connection, decision),
                Message::CloseListener(name) => self.close_listener(&name),
                Message::Orders => self.ordered = true,
                Message::CloseAll => self.close_all(),
                Message::Stop { grace_ms } => self.stop(grace_ms),
            }
        }
    }
}
