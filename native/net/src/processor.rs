//! A processor: one thread, one epoll set, the connections that were dealt to it.
//!
//! The life of a request here: bytes are read, a frame is cut, its head decides whether it stays on the hot path
//! (Produce, Fetch) or goes up; the answer is queued behind those before it and written at once. Nothing in this file
//! blocks but `epoll_wait`.

use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{Timespec, epoll};
use rustix::io::Errno;

use super::connection::{Accepted, Closing, Connection, FIRST_INTEREST, Slot};
use super::data_plane::{Shared, connection_number, processor_of};
use super::events::{Event, Level};
use super::inbox::Message;
use super::response::Response;
use super::timer_wheel::TimerWheel;
use pybroker_replica::Waiter;

/// The epoll token of the inbox; connections use their number, which never reaches it.
const INBOX: u64 = u64::MAX;
/// Reads of one connection before the others get their turn.
const READS_A_TURN: usize = 4;
/// Messages, deadlines and satisfied requests that are looked at before sockets get their turn.
pub(super) const AT_ONCE: usize = 128;

/// What a timer is for.
#[derive(Debug)]
pub(super) enum Deadline {
    /// A fetch has waited for `max_wait_ms`, or a produce for `timeout_ms`.
    Waiting(Waiter),
    /// A connection may have idled too long.
    Idle(u64),
    /// A connection may no longer need the buffer of a large request.
    Trim(u64),
}

/// Why a connection ends.
#[derive(Debug)]
pub(super) enum End {
    /// The peer closed, or the socket failed: nothing to log.
    Gone,
    /// The peer broke the protocol: one line in the log.
    Refused(String),
}

impl From<Errno> for End {
    fn from(_: Errno) -> Self {
        End::Gone
    }
}

/// The state of one processor thread.
pub struct Processor {
    pub(super) index: usize,
    pub(super) shared: Arc<Shared>,
    epoll: OwnedFd,
    accepted: u64,
    pub(super) deadlines: TimerWheel<Deadline>,
    /// Requests that an append on this thread satisfied, served when the present event is done: own ones, and at most one
    /// fetch of another processor.
    pub(super) woken: VecDeque<Waiter>,
    /// Deadlines that have passed and are not looked at yet.
    due: VecDeque<Deadline>,
    /// Whether the inbox may hold messages that nobody wakes this thread for.
    more_messages: bool,
    /// When the stop is due, in milliseconds of the processor's clock.
    stop_at: Option<u64>,
}

impl Processor {
    /// A processor that waits for connections.
    pub fn new(index: usize, shared: Arc<Shared>) -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, shared.inboxes[index].fd(), epoll::EventData::new_u64(INBOX), epoll::EventFlags::IN)?;
        let now = shared.now();
        Ok(Self {
            index,
            shared,
            epoll,
            accepted: 0,
            deadlines: TimerWheel::new(now),
            woken: VecDeque::new(),
            due: VecDeque::new(),
            more_messages: false,
            stop_at: None,
        })
    }

    /// Serves until it is asked to stop. However much there is of one kind, the others get their turn in between.
    pub fn run(mut self) {
        let mut events = Vec::with_capacity(256);
        let mut fired = Vec::new();
        while !self.stopped() {
            events.clear();
            let timeout = self.timeout();
            if epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut events), timeout.as_ref()).is_err() {
                continue;
            }
            for event in &events {
                match event.data.u64() {
                    INBOX => self.more_messages = true,
                    number => self.drive(number, event.flags),
                }
                self.serve_woken();
            }
            if self.more_messages {
                self.read_inbox();
                self.serve_woken();
            }
            self.deadlines.advance(self.shared.now(), &mut fired);
            self.due.extend(fired.drain(..));
            for _ in 0..self.due.len().min(AT_ONCE) {
                let Some(deadline) = self.due.pop_front() else { break };
                self.expire(deadline);
            }
            self.serve_woken();
        }
        self.close_all();
    }

    fn timeout(&self) -> Option<Timespec> {
        if self.more_messages || !self.due.is_empty() || !self.woken.is_empty() {
            return Some(Timespec { tv_sec: 0, tv_nsec: 0 });
        }
        let until_stop = self.stop_at.map(|at| at.saturating_sub(self.shared.now()));
        let next = self.deadlines.next_due().into_iter().chain(until_stop).min()?;
        Timespec::try_from(Duration::from_millis(next)).ok()
    }

    fn stopped(&self) -> bool {
        match self.stop_at {
            Some(at) => self.shared.open.is_empty(self.index) || self.shared.now() >= at,
            None => false,
        }
    }

    fn read_inbox(&mut self) {
        let shared = Arc::clone(&self.shared);
        let inbox = &shared.inboxes[self.index];
        inbox.woken();
        for _ in 0..AT_ONCE {
            let Some(message) = inbox.take() else {
                self.more_messages = false;
                return;
            };
            match message {
                Message::Accept(accepted) => self.accept(accepted),
                Message::Answer { to, payload } => self.answer(to, &payload),
                Message::Hold(waiter) => self.hold(waiter),
                Message::Wake(waiter) => self.woken.push_back(waiter),
                Message::Retry(waiter) => self.retry(waiter),
                Message::Close { connection } => self.close_when_written(connection),
                Message::Settle { connection } => self.settle_written(connection),
                Message::Resume { connection } => self.resume(connection),
                Message::Memory { connection } => self.resume_receiving(connection),
                Message::Shed => self.shed(),
                Message::Decide { connection, decision } => self.decide(connection, decision),
                Message::CloseAll => self.close_all(),
                Message::Stop { grace_ms } => self.stop(grace_ms),
            }
        }
    }

    fn accept(&mut self, accepted: Accepted) {
        self.accepted += 1;
        let number = connection_number(self.accepted, self.index);
        let token = epoll::EventData::new_u64(number);
        if self.stop_at.is_some() || epoll::add(&self.epoll, &accepted.stream, token, FIRST_INTEREST).is_err() {
            self.shared.room.give_back();
            return;
        }
        let now = self.shared.now();
        if let Ok(idle) = u64::try_from(self.shared.settings.connections_max_idle_ms) {
            self.deadlines.insert(now + idle, Deadline::Idle(number));
        }
        self.shared.open.insert(Connection::new(number, accepted, now));
    }

    /// A socket is readable or writable.
    fn drive(&mut self, number: u64, flags: epoll::EventFlags) {
        let Some(open) = self.shared.open.get(number) else { return };
        let mut connection = open.lock();
        let done = self.turn(&mut connection, flags);
        self.settle(&mut connection, done);
    }

    /// Leaves a connection with the interest it now has, or ends it.
    pub(super) fn settle(&mut self, connection: &mut Connection, done: Result<(), End>) {
        match done.and_then(|()| self.write(connection)) {
            Ok(()) if !connection.finished() => {
                if let Some((before, now)) = connection.account() {
                    self.shared.account_answers(connection.number, before, now);
                }
            }
            Ok(()) => self.end(connection, End::Gone),
            Err(end) => self.end(connection, end),
        }
    }

    fn turn(&mut self, connection: &mut Connection, flags: epoll::EventFlags) -> Result<(), End> {
        if flags.contains(epoll::EventFlags::OUT) {
            connection.write(self.shared.now())?;
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

    /// Reads and works on what comes, until the others' turn is due.
    pub(super) fn receive(&mut self, connection: &mut Connection) -> Result<(), End> {
        for _ in 0..READS_A_TURN {
            if self.paused(connection) || !self.has_memory(connection) {
                return Ok(());
            }
            let filled = match connection.read() {
                Ok((0, _)) => return Err(End::Gone),
                Ok((_, filled)) => filled,
                Err(Errno::AGAIN | Errno::INTR) => return Ok(()),
                Err(error) => return Err(error.into()),
            };
            connection.last_active = self.shared.now();
            self.work(connection)?;
            if !filled {
                return Ok(());
            }
            connection.write(connection.last_active)?;
        }
        Ok(())
    }

    /// Writes what is queued, goes on with frames that waited for that, and sets the events that epoll reports.
    fn write(&mut self, connection: &mut Connection) -> Result<(), End> {
        loop {
            if !connection.blocked {
                connection.write(self.shared.now())?;
            }
            self.work(connection)?;
            // Answers of frames that had waited for room have to be written too: a connection that is paused with room
            // in its socket would never be looked at again.
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
        if connection.blocked {
            interest |= epoll::EventFlags::OUT;
        }
        if connection.interest != interest {
            connection.interest = interest;
            let token = epoll::EventData::new_u64(connection.number);
            epoll::modify(&self.epoll, &connection.accepted.stream, token, interest)?;
        }
        Ok(())
    }

    fn answer(&mut self, to: Waiter, payload: &[u8]) {
        let Some(open) = self.shared.open.get(to.connection) else { return };
        let mut connection = open.lock();
        let slot = connection.slot_mut(to.request);
        let counts = matches!(slot, Some(Slot::Control(_)));
        if let Some(&mut (Slot::Control(correlation_id) | Slot::Held(correlation_id))) = slot {
            connection.answer(to.request, Response::from_payload(correlation_id, payload));
        }
        if counts {
            self.shared.control_done();
        }
        let done = self.work(&mut connection);
        self.settle(&mut connection, done);
    }

    fn hold(&mut self, waiter: Waiter) {
        let Some(open) = self.shared.open.get(waiter.connection) else { return };
        let mut connection = open.lock();
        if let Some(slot) = connection.slot_mut(waiter.request)
            && let Slot::Control(correlation_id) = *slot
        {
            *slot = Slot::Held(correlation_id);
            self.shared.control_done();
        }
    }

    fn expire(&mut self, deadline: Deadline) {
        match deadline {
            Deadline::Waiting(waiter) => {
                let Some(open) = self.shared.open.get(waiter.connection) else { return };
                let mut connection = open.lock();
                // The number may have been served long ago, or belong to a later request that took a silent one's place.
                let claimed = match connection.slot_mut(waiter.request) {
                    Some(Slot::Fetch(fetch)) => fetch.claim(),
                    Some(Slot::Produce(produce)) => produce.claim(),
                    Some(Slot::Control(_) | Slot::Held(_) | Slot::Parked | Slot::Ready(_)) | None => false,
                };
                if claimed {
                    self.woken.push_back(waiter);
                }
            }
            Deadline::Idle(number) => self.reap(number),
            Deadline::Trim(number) => self.trim(number),
        }
    }

    fn close_when_written(&mut self, number: u64) {
        let Some(open) = self.shared.open.get(number) else { return };
        let mut connection = open.lock();
        connection.closing = Some(Closing::WhenWritten);
        self.settle(&mut connection, Ok(()));
    }

    /// Goes on with what another processor has begun to write.
    fn settle_written(&mut self, number: u64) {
        let Some(open) = self.shared.open.get(number) else { return };
        self.settle(&mut open.lock(), Ok(()));
    }

    /// Answers waiting fetches with what there is, and lets connections without work go.
    fn stop(&mut self, grace_ms: u64) {
        self.stop_at = Some(self.shared.now() + grace_ms);
        for number in self.shared.open.numbers(self.index) {
            let Some(open) = self.shared.open.get(number) else { continue };
            let waiting = open.lock().waiting_requests();
            for request in waiting {
                self.expire(Deadline::Waiting(Waiter { connection: number, request }));
            }
            self.serve_woken();
            let mut connection = open.lock();
            if self.shared.open.get(number).is_some() {
                connection.closing = Some(Closing::WhenAnswered);
                self.settle(&mut connection, Ok(()));
            }
        }
    }

    /// Drops a connection and everything that waits for it.
    pub(super) fn end(&mut self, connection: &mut Connection, why: End) {
        let number = connection.number;
        self.shared.open.remove(number);
        let peer = connection.accepted.peer;
        if let End::Refused(why) = why {
            self.shared.events.line(Level::Warning, format!("connection from {peer} closed: {why}"));
        }
        if connection.has_control_in_work() {
            self.shared.control_done();
        }
        for fetch in connection.take_waiting() {
            fetch.abandon();
        }
        if let Some((before, now)) = connection.account() {
            self.shared.account_answers(number, before, now);
        }
        let reserved = connection.take_reserved();
        if reserved > 0 {
            self.shared.request_memory.give_back(reserved);
            self.shared.offer_request_memory();
        }
        if connection.known_above {
            self.shared.events.push(Event::ConnectionClosed { connection: number });
        }
        // The socket closes when the last holder of the connection lets go; nothing is to be seen of it before that.
        let _ = epoll::delete(&self.epoll, &connection.accepted.stream);
        self.shared.room.give_back();
    }
}

/// Wakes a fetch: on this thread at the end of the event, on another through its inbox. The first that a small append
/// satisfies on other threads (`near`) stays on this thread as well.
pub fn wake(shared: &Shared, own: usize, near: bool, woken: &mut VecDeque<Waiter>, waiter: Waiter) {
    let on_another_thread = |waiter: &Waiter| processor_of(waiter.connection) != own;
    if !on_another_thread(&waiter) || (near && !woken.iter().any(on_another_thread)) {
        woken.push_back(waiter);
    } else {
        shared.wake(waiter);
    }
}
