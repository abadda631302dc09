//! One client connection: its input buffer, its requests in work, its answers in order.
//!
//! Invariant: `slots[i]` belongs to request `first + i`. Answers leave from the front only, so a response that is ready
//! early waits behind those before it. Everything here is touched by who has locked the connection: its own processor, but for
//! [`super::elsewhere`].

use std::collections::VecDeque;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use rustix::io::Errno;

use super::lane::{LaneApi, PendingFetch, PendingProduce};
use super::response::{Progress, Response};
use crate::wire::frame::RequestHead;

/// Bytes read at once when nothing is known of what comes.
const READ_BYTES: usize = 16 << 10;
/// The most that is made room for ahead of bytes that have arrived: a peer that announces a large frame has to send it
/// before memory is taken for it.
const READ_AHEAD_BYTES: usize = 1 << 20;
/// An empty input buffer larger than this is given back when the connection idles.
const KEEP_BYTES: usize = 64 << 10;

/// A connection as the acceptor hands it over.
#[derive(Debug)]
pub struct Accepted {
    /// The socket, non-blocking.
    pub stream: TcpStream,
    /// The listener's name.
    pub listener: Arc<str>,
    /// The address dialled.
    pub local: SocketAddr,
    /// The client's address.
    pub peer: SocketAddr,
}

/// What became of a request.
#[derive(Debug)]
pub enum Slot {
    /// Python answers it; the number is its correlation id.
    Control(i32),
    /// As [`Slot::Control`], but kept waiting for what others do: it takes none of the room for control requests.
    Held(i32),
    /// A fetch waits for data.
    Fetch(Box<PendingFetch>),
    /// A produce waits for its batches to be committed.
    Produce(Box<PendingProduce>),
    /// It stands in [`Connection::parked`].
    Parked,
    /// Its answer, not yet at the front.
    Ready(Response),
}

/// A frame that the control plane looks at before the lane can go on.
#[derive(Debug)]
pub struct Parked {
    /// The request's number.
    pub request: u64,
    /// Which API of the lane it is of.
    pub api: LaneApi,
    /// Its head.
    pub head: RequestHead,
    /// The frame without its size prefix.
    pub frame: Vec<u8>,
}

/// When a connection that is about to end does so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closing {
    /// When what is queued is written.
    WhenWritten,
    /// When what is in work is answered and written.
    WhenAnswered,
}

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

/// A connection.
#[derive(Debug)]
pub struct Connection {
    /// Its number: unique over the life of the data plane.
    pub number: u64,
    /// Where it came from.
    pub accepted: Accepted,
    /// The frame that waits for the control plane; nothing further is read meanwhile.
    pub parked: Option<Parked>,
    /// Whether it waits for room in the queue of control requests.
    pub throttled: bool,
    /// Whether it is about to end; nothing further is read then.
    pub closing: Option<Closing>,
    /// Whether the control plane has seen this connection.
    pub known_above: bool,
    /// When bytes last came or went, in milliseconds of the processor's clock.
    pub last_active: u64,
    /// What the epoll set looks for.
    pub interest: rustix::event::epoll::EventFlags,
    /// Whether the socket took less than was to be written.
    pub blocked: bool,
    input: Vec<u8>,
    consumed: usize,
    /// Size of the last frame, which is the best guess for the next.
    expected: usize,
    first: u64,
    slots: VecDeque<Slot>,
    out: VecDeque<Response>,
    out_bytes: u64,
}

impl Connection {
    /// A fresh connection.
    pub fn new(number: u64, accepted: Accepted, now: u64) -> Self {
        Self {
            number,
            accepted,
            parked: None,
            throttled: false,
            closing: None,
            known_above: false,
            last_active: now,
            interest: rustix::event::epoll::EventFlags::IN,
            blocked: false,
            input: Vec::new(),
            consumed: 0,
            expected: 0,
            first: 0,
            slots: VecDeque::new(),
            out: VecDeque::new(),
            out_bytes: 0,
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
            && !self.throttled
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

    /// Reads once into the input buffer. `Ok(0)`: the peer has closed. `Err(AGAIN)`: nothing there.
    /// The second value tells whether the buffer was filled, so that more may wait.
    pub fn read(&mut self) -> Result<(usize, bool), Errno> {
        if self.consumed > 0 {
            self.input.drain(..self.consumed);
            self.consumed = 0;
        }
        let room = self.missing().max(self.expected).clamp(READ_BYTES, READ_AHEAD_BYTES);
        self.input.reserve(room);
        let (_, spare) = (self.input.len(), self.input.capacity() - self.input.len());
        let read = rustix::net::recv(
            &self.accepted.stream,
            rustix::buffer::spare_capacity(&mut self.input),
            rustix::net::RecvFlags::empty(),
        )?;
        Ok((read.0, read.0 == spare))
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
                Framing::Frame(begin..self.consumed)
            }
            _ => Framing::BadSize(size),
        }
    }

    /// Puts back a frame that cannot be worked on now.
    pub fn unread(&mut self, frame: &std::ops::Range<usize>) {
        self.consumed = frame.start - 4;
    }

    /// Gives back memory that an idle connection does not need.
    pub fn trim(&mut self) {
        if self.consumed == self.input.len() && self.input.capacity() > KEEP_BYTES {
            self.input = Vec::new();
            self.consumed = 0;
        }
    }

    /// The number that the next request gets.
    pub fn next_request(&self) -> u64 {
        self.first + self.slots.len() as u64
    }

    /// Opens the next request's slot.
    pub fn open(&mut self, slot: Slot) {
        self.slots.push_back(slot);
    }

    /// Answers the next request at once.
    pub fn answer_next(&mut self, response: Response) {
        if self.slots.is_empty() {
            self.first += 1;
            self.enqueue(response);
        } else {
            self.slots.push_back(Slot::Ready(response));
        }
    }

    /// The slot of a request that is in work.
    pub fn slot_mut(&mut self, request: u64) -> Option<&mut Slot> {
        self.slots.get_mut(usize::try_from(request.checked_sub(self.first)?).ok()?)
    }

    /// Fills a request's slot and moves what is ready at the front to the way out.
    pub fn answer(&mut self, request: u64, response: Response) {
        if let Some(slot) = self.slot_mut(request) {
            *slot = Slot::Ready(response);
        }
        self.release();
    }

    /// Takes out the parked request's slot without an answer (`acks=0`). It is the last: nothing is read behind it.
    pub fn drop_parked_slot(&mut self) {
        if matches!(self.slots.back(), Some(Slot::Parked)) {
            self.slots.pop_back();
        }
    }

    fn release(&mut self) {
        while matches!(self.slots.front(), Some(Slot::Ready(_))) {
            if let Some(Slot::Ready(response)) = self.slots.pop_front() {
                self.first += 1;
                self.enqueue(response);
            }
        }
    }

    fn enqueue(&mut self, response: Response) {
        self.out_bytes += response.size();
        let response = match self.out.back_mut() {
            // The front may be half written: its buffer still only grows at its end.
            Some(last) => last.coalesce(response),
            None => Some(response),
        };
        self.out.extend(response);
    }

    /// Writes queued answers until none is left or the socket is full.
    pub fn write(&mut self, now: u64) -> Result<(), Errno> {
        loop {
            let more = self.out.len() > 1;
            let Some(front) = self.out.front_mut() else { break };
            self.last_active = now;
            let size = front.size();
            match front.write_to(&self.accepted.stream, more)? {
                Progress::Done => {
                    self.out_bytes -= size;
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

    /// The fetches that wait on this connection, taken out; it is about to end.
    pub fn take_waiting(&mut self) -> Vec<PendingFetch> {
        let slots = std::mem::take(&mut self.slots);
        slots.into_iter().filter_map(|slot| if let Slot::Fetch(fetch) = slot { Some(*fetch) } else { None }).collect()
    }

    /// Numbers of the requests whose fetches wait.
    pub fn waiting_requests(&self) -> Vec<u64> {
        let is_fetch = |(at, slot): (usize, &Slot)| matches!(slot, Slot::Fetch(_)).then_some(self.first + at as u64);
        self.slots.iter().enumerate().filter_map(is_fetch).collect()
    }

    /// How many control requests of this connection are unanswered.
    pub fn control_in_work(&self) -> usize {
        self.slots.iter().filter(|slot| matches!(slot, Slot::Control(_))).count()
    }
}
