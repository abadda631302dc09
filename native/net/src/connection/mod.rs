//! One client connection: its input buffer, its requests in work, its answers in order.
//!
//! Invariant: `slots[i]` belongs to request `first + i`. Answers leave from the front only, so a response that is ready
//! early waits behind those before it. Everything here is touched by who has locked the connection: its own processor, but for
//! [`crate::scheduling::cross_thread`].

pub(crate) mod bare_tokens;
pub(crate) mod connection_number;
pub(crate) mod identity;
mod in_work;
mod memory;
pub(crate) mod response;
pub(crate) mod slot;
mod timing;

use std::collections::VecDeque;
use std::sync::Arc;

use rustix::event::epoll::EventFlags;
use rustix::io::Errno;

use crate::accepting::accepted::Accepted;
use crate::connection::identity::Authentication;
use crate::connection::response::{Progress, Response};
pub use crate::connection::slot::{Asked, Closing, Parked, Slot, Unanswered};
use crate::data_plane::api_versions::Software;
use crate::data_plane::events::ControlRequest;
use crate::hot_path::{HotPathApi, Rights, Who};
use crate::measures::times::{ControlSteps, RequestTimes};
use crate::quota::Metering;
use crate::scheduling::clock::Clock;
use crate::transport::{Received, Transport};
use pybroker_wire::frame::RequestHead;

/// Bytes read at once when nothing is known of what comes.
const READ_BYTES: usize = 16 << 10;
/// The most that is made room for ahead of bytes that have arrived: a peer that announces a large frame has to send it
/// before memory is taken for it.
const READ_AHEAD_BYTES: usize = 1 << 20;

/// Answers on their way out whose times are kept; of a peer that leaves more unread, those beyond are not timed.
const TIMED_ANSWERS: usize = 1024;

/// What the epoll set looks for at first: bytes, and the peer's end, which shows although nothing is read.
pub const FIRST_INTEREST: EventFlags = EventFlags::IN.union(EventFlags::RDHUP);

/// What the input buffer holds.
#[derive(Debug, PartialEq, Eq)]
pub enum Framing {
    /// A whole frame: where it lies in the buffer, size prefix left out.
    Frame(std::ops::Range<usize>),
    /// Not yet a whole frame.
    Incomplete,
    /// The size prefix names a size that is not allowed.
    BadSize(i32),
}

/// A request in work: what has become of it, and how long that took.
#[derive(Debug)]
struct Request {
    slot: Slot,
    times: RequestTimes,
}

/// A connection.
#[derive(Debug)]
pub struct Connection {
    /// Its number: unique over the life of the data plane.
    pub number: u64,
    /// Where it came from.
    pub accepted: Accepted,
    /// What its client says that it is; `None` for one that does not say.
    pub software: Option<Arc<Software>>,
    /// Who the peer is to an authorizer, once that was asked.
    who: Option<Who>,
    /// The frame that waits for the control plane; nothing further is read meanwhile.
    pub parked: Option<Parked>,
    /// Whether the next frame waits for a decision of the control plane; nothing further is read meanwhile.
    pub intercepted: bool,
    /// Whether it has shown a certificate of which the control plane has yet to say whose it is; nothing further is read
    /// meanwhile.
    pub unnamed: bool,
    /// From where on answers are dropped; `None` but after a decision of the control plane.
    pub unanswered: Option<Unanswered>,
    /// What it knows of its client's quotas, and until when it is muted for them.
    pub metering: Metering,
    /// Whether it waits for room in the queue of control requests.
    pub throttled: bool,
    /// Whether it is about to end; nothing further is read then.
    pub closing: Option<Closing>,
    /// Whether it has been given room for its next control request.
    pub has_room: bool,
    /// Whether it waits for memory for the request that it sends ([`crate::limits::request_memory`]).
    pub waits_for_memory: bool,
    /// Whether the peer is known to send nothing more, so that nothing of it need wait for data.
    pub peer_closed: bool,
    /// Whether bytes have come while a control request is unanswered: they are looked for again when it is.
    pub muted: bool,
    /// Whether the timer that gives back the memory of a large input buffer is set.
    pub trim_due: bool,
    /// Whether the control plane has seen this connection.
    pub known_above: bool,
    /// When bytes last came or went, in milliseconds of the processor's clock.
    pub last_active: u64,
    /// When bytes last came, in nanoseconds of that clock.
    pub arrived_ns: u64,
    /// The time as it was last looked at in the present turn; 0 outside of one.
    pub now_ns: u64,
    /// What the epoll set looks for.
    pub interest: EventFlags,
    /// Whether the socket took less than was to be written.
    pub blocked: bool,
    input: Vec<u8>,
    consumed: usize,
    /// Size of the last frame, which is the best guess for the next.
    expected: usize,
    first: u64,
    slots: VecDeque<Request>,
    /// The control request that is unanswered. Kafka works on one request of a connection at a time; here that holds
    /// for the control plane, whose turns are then fair over connections.
    control: Option<u64>,
    /// What the control plane notes of it; made for the first.
    steps: Option<Arc<ControlSteps>>,
    out: VecDeque<Response>,
    out_bytes: u64,
    /// Bytes of answers queued and written since the connection came.
    queued: u64,
    written: u64,
    /// Answers in `out`, or written just now: up to where each reaches in all that was queued, and its request's times.
    timed: VecDeque<(u64, RequestTimes)>,
    /// Memory of what is in `slots` and `out`.
    memory: u64,
    /// What of `memory` all connections' sum knows of.
    accounted: u64,
    /// Memory taken for the request that is being received or worked on.
    reserved: u64,
    /// Whether that request has been received and is being worked on.
    received: bool,
}

impl Connection {
    /// A fresh connection.
    pub fn new(number: u64, accepted: Accepted, now: u64) -> Self {
        Self {
            number,
            accepted,
            software: None,
            who: None,
            parked: None,
            intercepted: false,
            unnamed: false,
            unanswered: None,
            metering: Metering::default(),
            throttled: false,
            has_room: false,
            waits_for_memory: false,
            peer_closed: false,
            muted: false,
            trim_due: false,
            closing: None,
            known_above: false,
            last_active: now,
            arrived_ns: 0,
            now_ns: 0,
            interest: FIRST_INTEREST,
            blocked: false,
            input: Vec::new(),
            consumed: 0,
            expected: 0,
            first: 0,
            slots: VecDeque::new(),
            control: None,
            steps: None,
            out: VecDeque::new(),
            out_bytes: 0,
            queued: 0,
            written: 0,
            timed: VecDeque::new(),
            memory: 0,
            accounted: 0,
            reserved: 0,
            received: false,
        }
    }

    /// Requests in work and answers not yet at the front.
    pub fn in_work(&self) -> usize {
        self.slots.len()
    }

    /// Whether one waiting request is all that the connection has: nothing is buffered, queued or about to end.
    pub fn only_waits(&self) -> bool {
        self.slots.len() == 1
            && self.out.is_empty()
            && self.consumed == self.input.len()
            && self.closing.is_none()
            && self.parked.is_none()
            && !self.intercepted
            && !self.unnamed
            && self.unanswered.is_none()
            && !self.throttled
            && !self.metering.is_stopped()
            && !self.waits_for_memory
            && self.reserved == 0
    }

    /// Whether a connection that is about to end may go now.
    pub fn finished(&self) -> bool {
        match self.closing {
            None => false,
            Some(Closing::WhenWritten) => self.out_bytes == 0,
            Some(Closing::WhenAnswered) => self.out_bytes == 0 && self.slots.is_empty(),
        }
    }

    /// Bytes of answers not yet written.
    pub fn out_bytes(&self) -> u64 {
        self.out_bytes
    }

    /// The buffer, for a frame that [`Connection::next_frame`] found.
    pub fn frame_mut(&mut self, at: std::ops::Range<usize>) -> &mut [u8] {
        &mut self.input[at]
    }

    /// The buffer, and the name of the listener that it came by.
    pub fn frame_of_listener(&mut self, at: std::ops::Range<usize>) -> (&mut [u8], &str) {
        (&mut self.input[at], &self.accepted.listener)
    }

    /// Reads once into the input buffer. `Err(AGAIN)`: nothing there.
    pub fn read(&mut self) -> Result<Received, Errno> {
        if self.consumed > 0 {
            self.input.drain(..self.consumed);
            self.consumed = 0;
        }
        let room = self.missing().max(self.expected).clamp(READ_BYTES, READ_AHEAD_BYTES);
        self.input.reserve(room);
        self.accepted.transport.receive(&mut self.input)
    }

    /// Whether a size in front of a frame is the head of a TLS handshake (RFC 8446, 5.1): type 22, version 3.x.
    pub fn speaks_tls(&self, size: i32) -> bool {
        !matches!(self.accepted.transport, Transport::Tls(_)) && matches!(size.to_be_bytes(), [0x16, 3, 0..=4, _])
    }

    /// Bytes that the frame in the buffer still lacks, as far as its size is known.
    fn missing(&self) -> usize {
        match self.input.first_chunk::<4>() {
            Some(size) => (u32::from_be_bytes(*size) as usize + 4).saturating_sub(self.input.len()),
            None => 0,
        }
    }

    /// Finds the next frame of at most `max` bytes.
    pub fn next_frame(&mut self, max: usize) -> Framing {
        let rest = &self.input[self.consumed..];
        let Some(prefix) = rest.first_chunk::<4>() else { return Framing::Incomplete };
        let size = i32::from_be_bytes(*prefix);
        match usize::try_from(size) {
            Ok(bytes) if bytes <= max => {
                if rest.len() - 4 < bytes {
                    return Framing::Incomplete;
                }
                let begin = self.consumed + 4;
                self.consumed = begin + bytes;
                self.expected = bytes + 4;
                self.received = true;
                Framing::Frame(begin..self.consumed)
            }
            _ => Framing::BadSize(size),
        }
    }

    /// Whether the control plane answers every request of this connection.
    pub fn is_control_only(&self) -> bool {
        self.accepted.control_only
    }

    /// Takes the connection for who it has proved to be.
    pub fn become_proved(&mut self, authentication: Authentication) {
        (self.accepted.authentication, self.who) = (authentication, None);
        self.metering.forget_client();
    }

    /// Who the peer is to an authorizer.
    pub fn who(&mut self, rights: &Rights) -> Who {
        let Accepted { authentication, peer, .. } = &self.accepted;
        let identity = || authentication.identity().map(|identity| &**identity);
        *self.who.get_or_insert_with(|| rights.who(identity(), peer.ip()))
    }

    /// What the client of a request calls itself.
    pub fn client_id(&self, head: &RequestHead, at: std::ops::Range<usize>) -> &str {
        head.client_id(&self.input[at]).unwrap_or_default()
    }

    /// A request for the control plane.
    pub fn control_request(
        &mut self,
        clock: &Arc<Clock>,
        head: &RequestHead,
        at: std::ops::Range<usize>,
    ) -> ControlRequest {
        let steps = self.next_steps(clock);
        let frame = &self.input[at];
        ControlRequest {
            connection: self.number,
            request: self.next_request(),
            api_key: head.api_key,
            api_version: head.api_version,
            correlation_id: head.correlation_id,
            client_id: head.client_id(frame).map(str::to_owned),
            listener: Arc::clone(&self.accepted.listener),
            identity: self.accepted.authentication.identity().cloned(),
            local: self.accepted.local,
            peer: self.accepted.peer,
            software: self.software.clone(),
            body: frame[head.body..].to_vec(),
            steps,
        }
    }

    /// Puts back a frame that cannot be worked on now.
    pub fn unread(&mut self, frame: &std::ops::Range<usize>) {
        (self.consumed, self.received) = (frame.start - 4, false);
    }

    /// Whether the peer has closed its side and everything that it sent has been read.
    pub fn at_end(&self) -> bool {
        self.consumed == self.input.len() && self.accepted.transport.at_end()
    }

    /// The number that the next request gets.
    pub fn next_request(&self) -> u64 {
        self.first + self.slots.len() as u64
    }

    /// Opens the next request's slot.
    pub fn open(&mut self, slot: Slot, times: RequestTimes) {
        if matches!(slot, Slot::Control(_)) {
            self.control = Some(self.next_request());
        }
        self.memory += slot.memory();
        self.slots.push_back(Request { slot, times });
    }

    /// Answers the next request at once, by now.
    pub fn answer_next(&mut self, response: Response, mut times: RequestTimes) {
        times.answered(self.now_ns, response.throttle_ns(self.now_ns));
        self.metering.mute(response.muted_until());
        self.memory += response.memory();
        if self.slots.is_empty() {
            self.first += 1;
            self.enqueue(response, times);
        } else {
            self.slots.push_back(Request { slot: Slot::Ready(response), times });
        }
    }

    /// Lets a request wait in the slot that it was parked in.
    pub fn let_wait(&mut self, request: u64, waiting: Slot) {
        let memory = waiting.memory();
        if let Some(slot) = self.slot_mut(request) {
            *slot = waiting;
            self.memory += memory;
        }
    }

    /// Takes a request that waits out of its slot, which keeps its turn until [`Connection::answer`] fills it.
    pub fn take_out(&mut self, request: u64) -> Option<Slot> {
        let slot = self.slot_mut(request)?;
        let api = match slot {
            Slot::Fetch(_) => HotPathApi::Fetch,
            Slot::Produce(_) => HotPathApi::Produce,
            Slot::Control(_) | Slot::Held(_) | Slot::Parked(_) | Slot::Ready(_) => return None,
        };
        let waiting = std::mem::replace(slot, Slot::Parked(api));
        self.memory -= waiting.memory();
        Some(waiting)
    }

    /// The slot of a request that is in work.
    pub fn slot_mut(&mut self, request: u64) -> Option<&mut Slot> {
        Some(&mut self.request_mut(request)?.slot)
    }

    fn request_mut(&mut self, request: u64) -> Option<&mut Request> {
        self.slots.get_mut(usize::try_from(request.checked_sub(self.first)?).ok()?)
    }

    /// Fills a request's slot, by now, and moves what is ready at the front to the way out.
    pub fn answer(&mut self, request: u64, response: Response) {
        if self.control == Some(request) {
            self.control = None;
            self.muted = false;
        }
        self.metering.mute(response.muted_until());
        let (memory, now) = (response.memory(), self.now_ns);
        let at = usize::try_from(request.wrapping_sub(self.first)).unwrap_or(usize::MAX);
        if let Some(Request { slot, times }) = self.slots.get_mut(at) {
            match (&*slot, &self.steps) {
                (Slot::Control(_) | Slot::Held(_), Some(steps)) => times.answered_above(now, steps),
                _ => times.answered(now, response.throttle_ns(now)),
            }
            *slot = Slot::Ready(response);
            self.memory += memory;
        }
        self.release();
    }

    /// Takes out the parked request's slot without an answer (`acks=0`). It is the last: nothing is read behind it.
    pub fn drop_parked_slot(&mut self) {
        if matches!(self.slots.back(), Some(Request { slot: Slot::Parked(_), .. })) {
            self.slots.pop_back();
        }
    }

    fn release(&mut self) {
        while matches!(self.slots.front(), Some(Request { slot: Slot::Ready(_), .. })) {
            if let Some(Request { slot: Slot::Ready(response), times }) = self.slots.pop_front() {
                self.first += 1;
                self.enqueue(response, times);
            }
        }
    }

    /// Queues the answer to the request before `first`.
    fn enqueue(&mut self, response: Response, mut times: RequestTimes) {
        if let Some(Unanswered { from, close }) = self.unanswered
            && self.first > from
        {
            if close {
                self.closing = Some(Closing::WhenWritten);
            }
            return;
        }
        if response.is_of_follower() {
            times.is_of_follower();
        }
        self.out_bytes += response.size();
        self.queued += response.size();
        if self.timed.len() < TIMED_ANSWERS {
            self.timed.push_back((self.queued, times));
        }
        let response = match self.out.back_mut() {
            // The front may be half written: its buffer still only grows at its end.
            Some(last) => last.coalesce(response),
            None => Some(response),
        };
        self.out.extend(response);
    }

    /// Writes queued answers until none is left or the socket is full.
    pub fn write(&mut self, now: u64) -> Result<(), Errno> {
        match self.accepted.transport.flush() {
            Ok(()) | Err(Errno::AGAIN | Errno::INTR) => {}
            Err(error) => return Err(error),
        }
        loop {
            let more = self.out.len() > 1;
            let Some(front) = self.out.front_mut() else { break };
            self.last_active = now;
            let (size, memory) = (front.size(), front.memory());
            match front.write_to(&mut self.accepted.transport, more)? {
                Progress::Done => {
                    self.out_bytes -= size;
                    self.written += size;
                    self.memory -= memory;
                    self.out.pop_front();
                }
                Progress::Blocked => {
                    self.blocked = true;
                    return Ok(());
                }
            }
        }
        self.blocked = false;
        Ok(())
    }

    /// What has become of the requests in work, taken out; the connection is about to end.
    pub fn take_slots(&mut self) -> impl Iterator<Item = Slot> {
        self.memory = 0;
        std::mem::take(&mut self.slots).into_iter().map(|request| request.slot)
    }
}
