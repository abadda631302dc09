//! One client connection: its input buffer, its requests in work, its responses in order.
//!
//! Invariant: `slots[i]` belongs to request `first + i`. Responses leave from the front only, so an early response waits
//! behind those before it. Only the thread that has locked the connection uses it: its own processor, or another thread in
//! [`crate::scheduling::cross_thread`].

pub(crate) mod bare_tokens;
pub(crate) mod connection_number;
pub(crate) mod identity;
mod in_work;
mod memory;
pub(crate) mod read_state;
pub(crate) mod response;
pub(crate) mod slot;
mod timing;

use std::collections::VecDeque;
use std::sync::Arc;

use rustix::event::epoll::EventFlags;
use rustix::io::Errno;

use crate::accepting::accepted::Accepted;
use crate::connection::identity::Authentication;
use crate::connection::read_state::ReadState;
use crate::connection::response::{Progress, Response};
pub use crate::connection::slot::{Closing, Delayed, Requested, Slot, Unanswered};
use crate::data_plane::api_versions::Software;
use crate::data_plane::events::ControlRequest;
use crate::hot_path::{HotPathApi, Rights, Who};
use crate::measures::times::{ControlSteps, RequestTimes};
use crate::quota::Metering;
use crate::scheduling::clock::Clock;
use crate::transport::{Received, Transport};
use pybroker_wire::frame::RequestHead;

/// Bytes of one read before the size of the frame is known.
const READ_BYTES: usize = 16 << 10;
/// The most buffer space reserved ahead of received bytes: a peer that announces a large frame has to send it before memory
/// is taken for it.
const READ_AHEAD_BYTES: usize = 1 << 20;

/// The most unsent responses whose times are kept; further responses of a slow peer are not timed.
const TIMED_RESPONSES: usize = 1024;

/// The first epoll interest: readable bytes, and the peer's close, which is reported even if nothing is read.
pub const FIRST_INTEREST: EventFlags = EventFlags::IN.union(EventFlags::RDHUP);

/// The content of the input buffer.
#[derive(Debug, PartialEq, Eq)]
pub enum Framing {
    /// A whole frame: its range in the buffer, without the size prefix.
    Frame(std::ops::Range<usize>),
    /// No whole frame yet.
    Incomplete,
    /// The size prefix has a size that is not allowed.
    BadSize(i32),
}

/// A request in work: its state and its times.
#[derive(Debug)]
struct Request {
    slot: Slot,
    times: RequestTimes,
}

/// One client connection.
#[derive(Debug)]
pub struct Connection {
    /// Its number: unique over the life of the data plane.
    pub number: u64,
    /// The socket, the listener and the authentication.
    pub accepted: Accepted,
    /// The client's software; `None` if the client has not sent it.
    pub software: Option<Arc<Software>>,
    /// The client as the authorizer knows it, after the first lookup.
    who: Option<Who>,
    /// The reason why the next request does not begin.
    pub reading: ReadState,
    /// The request from which on responses are dropped; set only by a decision of the control plane.
    pub unanswered: Option<Unanswered>,
    /// The client's quotas, and the end of a mute.
    pub metering: Metering,
    /// Whether and when the connection closes; nothing further is read then.
    pub closing: Option<Closing>,
    /// Whether the connection waits for memory for its next request ([`crate::limits::request_memory`]).
    pub waits_for_memory: bool,
    /// Whether the peer has closed its side: its requests need not wait for data.
    pub peer_closed: bool,
    /// Whether bytes arrived while a control request is unanswered: they are read after the response.
    pub muted: bool,
    /// Whether the timer that frees a large input buffer is set.
    pub trim_due: bool,
    /// Whether the control plane has received an event of this connection.
    pub known_above: bool,
    /// When bytes were last received or sent, in milliseconds of the processor's clock.
    pub last_active: u64,
    /// When bytes were last received, in nanoseconds of that clock.
    pub arrived_ns: u64,
    /// The time cached for the current turn, ns; 0 outside of a turn.
    pub now_ns: u64,
    /// The current epoll interest.
    pub interest: EventFlags,
    /// Whether the socket's send buffer is full.
    pub blocked: bool,
    input: Vec<u8>,
    consumed: usize,
    /// Size of the last frame: the estimate for the next.
    expected: usize,
    first: u64,
    slots: VecDeque<Request>,
    /// The unanswered control request. Kafka executes one request of a connection at a time. Here this holds for the control
    /// plane, whose scheduling is fair over connections.
    control: Option<u64>,
    /// The control plane's times of that request; created for the first one.
    steps: Option<Arc<ControlSteps>>,
    out: VecDeque<Response>,
    out_bytes: u64,
    /// Bytes of responses queued and written since the connection was accepted.
    queued: u64,
    written: u64,
    /// Responses in `out`, or just written: the end of each in the bytes of `queued`, and its request's times.
    timed: VecDeque<(u64, RequestTimes)>,
    /// Memory of what is in `slots` and `out`.
    memory: u64,
    /// The part of `memory` that is included in the sum over all connections.
    accounted: u64,
    /// Memory reserved for the request that is being received or executed.
    reserved: u64,
    /// Whether that request has been received completely.
    received: bool,
}

impl Connection {
    /// A new connection.
    pub fn new(number: u64, accepted: Accepted, now: u64) -> Self {
        Self {
            number,
            accepted,
            software: None,
            who: None,
            reading: ReadState::Ready,
            unanswered: None,
            metering: Metering::default(),
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

    /// Requests in work, and responses not yet queued.
    pub fn in_work(&self) -> usize {
        self.slots.len()
    }

    /// Whether the connection has one waiting request and nothing else: no bytes buffered or queued, no pending close.
    pub fn only_waits(&self) -> bool {
        self.slots.len() == 1
            && self.out.is_empty()
            && self.consumed == self.input.len()
            && self.closing.is_none()
            && self.reading.is_ready()
            && self.unanswered.is_none()
            && !self.metering.is_stopped()
            && !self.waits_for_memory
            && self.reserved == 0
    }

    /// Whether a closing connection has nothing left to send.
    pub fn finished(&self) -> bool {
        match self.closing {
            None => false,
            Some(Closing::WhenWritten) => self.out_bytes == 0,
            Some(Closing::WhenResponded) => self.out_bytes == 0 && self.slots.is_empty(),
        }
    }

    /// Bytes of queued responses not yet written.
    pub fn out_bytes(&self) -> u64 {
        self.out_bytes
    }

    /// The bytes of a frame that [`Connection::next_frame`] found.
    pub fn frame_mut(&mut self, at: std::ops::Range<usize>) -> &mut [u8] {
        &mut self.input[at]
    }

    /// The bytes of a frame, and the name of the connection's listener.
    pub fn frame_of_listener(&mut self, at: std::ops::Range<usize>) -> (&mut [u8], &str) {
        (&mut self.input[at], &self.accepted.listener)
    }

    /// Reads once into the input buffer. `Err(AGAIN)`: no bytes are available.
    pub fn read(&mut self) -> Result<Received, Errno> {
        if self.consumed > 0 {
            self.input.drain(..self.consumed);
            self.consumed = 0;
        }
        let capacity = self.missing().max(self.expected).clamp(READ_BYTES, READ_AHEAD_BYTES);
        self.input.reserve(capacity);
        self.accepted.transport.receive(&mut self.input)
    }

    /// Whether the size prefix of a frame is the header of a TLS handshake (RFC 8446, 5.1): type 22, version 3.x.
    pub fn speaks_tls(&self, size: i32) -> bool {
        !matches!(self.accepted.transport, Transport::Tls(_)) && matches!(size.to_be_bytes(), [0x16, 3, 0..=4, _])
    }

    /// Bytes that the frame in the buffer still lacks, if its size is known.
    fn missing(&self) -> usize {
        match self.input.first_chunk::<4>() {
            Some(size) => (u32::from_be_bytes(*size) as usize + 4).saturating_sub(self.input.len()),
            None => 0,
        }
    }

    /// Finds the next frame; its size may be at most `max` bytes.
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

    /// Whether every request of this connection goes to the control plane.
    pub fn is_control_only(&self) -> bool {
        self.accepted.control_only
    }

    /// Sets the result of the authentication.
    pub fn become_proved(&mut self, authentication: Authentication) {
        (self.accepted.authentication, self.who) = (authentication, None);
        self.metering.forget_client();
    }

    /// The client, as the authorizer knows it.
    pub fn who(&mut self, rights: &Rights) -> Who {
        let Accepted { authentication, peer, .. } = &self.accepted;
        let identity = || authentication.identity().map(|identity| &**identity);
        *self.who.get_or_insert_with(|| rights.who(identity(), peer.ip()))
    }

    /// The client id of a request; empty if it has none.
    pub fn client_id(&self, head: &RequestHead, at: std::ops::Range<usize>) -> &str {
        head.client_id(&self.input[at]).unwrap_or_default()
    }

    /// The event for the control plane with this request.
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

    /// Puts back a frame that cannot be handled yet.
    pub fn unread(&mut self, frame: &std::ops::Range<usize>) {
        (self.consumed, self.received) = (frame.start - 4, false);
    }

    /// Whether the peer has closed its side and every byte that it sent has been read.
    pub fn at_end(&self) -> bool {
        self.consumed == self.input.len() && self.accepted.transport.at_end()
    }

    /// The number of the next request.
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

    /// Queues the response to the next request at once.
    pub fn respond_next(&mut self, response: Response, mut times: RequestTimes) {
        times.responded(self.now_ns, response.throttle_ns(self.now_ns));
        self.metering.mute(response.muted_until());
        self.memory += response.memory();
        if self.slots.is_empty() {
            self.first += 1;
            self.enqueue(response, times);
        } else {
            self.slots.push_back(Request { slot: Slot::Ready(response), times });
        }
    }

    /// Moves a request from parked to waiting, in its slot.
    pub fn let_wait(&mut self, request: u64, waiting: Slot) {
        let memory = waiting.memory();
        if let Some(slot) = self.slot_mut(request) {
            *slot = waiting;
            self.memory += memory;
        }
    }

    /// Takes a waiting request out of its slot. The slot keeps its position until [`Connection::respond`] fills it.
    pub fn take_out(&mut self, request: u64) -> Option<Slot> {
        let slot = self.slot_mut(request)?;
        let api = match slot {
            Slot::Fetch(_) => HotPathApi::Fetch,
            Slot::Produce(_) => HotPathApi::Produce,
            Slot::Control(_) | Slot::Held(_) | Slot::Delayed(_) | Slot::Ready(_) => return None,
        };
        let waiting = std::mem::replace(slot, Slot::Delayed(api));
        self.memory -= waiting.memory();
        Some(waiting)
    }

    /// The slot of a request in work.
    pub fn slot_mut(&mut self, request: u64) -> Option<&mut Slot> {
        Some(&mut self.request_mut(request)?.slot)
    }

    fn request_mut(&mut self, request: u64) -> Option<&mut Request> {
        self.slots.get_mut(usize::try_from(request.checked_sub(self.first)?).ok()?)
    }

    /// Fills a request's slot with its response, and queues the responses that are ready at the front.
    pub fn respond(&mut self, request: u64, response: Response) {
        if self.control == Some(request) {
            self.control = None;
            self.muted = false;
        }
        self.metering.mute(response.muted_until());
        let (memory, now) = (response.memory(), self.now_ns);
        let at = usize::try_from(request.wrapping_sub(self.first)).unwrap_or(usize::MAX);
        if let Some(Request { slot, times }) = self.slots.get_mut(at) {
            match (&*slot, &self.steps) {
                (Slot::Control(_) | Slot::Held(_), Some(steps)) => times.responded_above(now, steps),
                _ => times.responded(now, response.throttle_ns(now)),
            }
            *slot = Slot::Ready(response);
            self.memory += memory;
        }
        self.release();
    }

    /// Removes the last request without a response (`acks=0`), and returns its times. Nothing is read behind a parked request,
    /// so it is the last one too.
    pub fn drop_last_slot(&mut self) -> Option<RequestTimes> {
        let is_delayed = matches!(self.slots.back(), Some(Request { slot: Slot::Delayed(_), .. }));
        let last = if is_delayed { self.slots.pop_back() } else { None };
        last.map(|last| last.times)
    }

    fn release(&mut self) {
        while matches!(self.slots.front(), Some(Request { slot: Slot::Ready(_), .. })) {
            if let Some(Request { slot: Slot::Ready(response), times }) = self.slots.pop_front() {
                self.first += 1;
                self.enqueue(response, times);
            }
        }
    }

    /// Queues the response to the request before `first`.
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
        if self.timed.len() < TIMED_RESPONSES {
            self.timed.push_back((self.queued, times));
        }
        let response = match self.out.back_mut() {
            // The front may be partly written: bytes are only appended to its buffer.
            Some(last) => last.coalesce(response),
            None => Some(response),
        };
        self.out.extend(response);
    }

    /// Writes queued responses until none is left or the socket is full.
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

    /// Removes and returns the requests in work; the connection is about to end.
    pub fn take_slots(&mut self) -> impl Iterator<Item = Slot> {
        self.memory = 0;
        std::mem::take(&mut self.slots).into_iter().map(|request| request.slot)
    }
}
