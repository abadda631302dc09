//! One socket to one broker: requests out in order, responses in order.
//!
//! Owns the bytes under way and what each awaited response belongs to. Knows no API; the network decides what to send.
//! Never blocks: it does what the socket allows and reports what it waits for.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Instant;

use socket2::{Domain, Protocol, Socket, Type};

use super::pool::BufferPool;
use super::request::Segment;
use crate::config::ConnectionConfig;
use crate::tls::TlsSession;
use pybroker_secure::Transport;

/// Responses up to this size are read together with what follows them.
const STAGING: usize = 16 * 1024;
/// A response longer than this is refused as nonsense.
const LONGEST_RESPONSE: usize = 1 << 30;
/// A response before a connection is ready, to ApiVersions or to a token, is no longer: what says so is no Kafka broker.
const LONGEST_FIRST_RESPONSE: usize = 1 << 20;
/// Segments per `writev`.
const SLICES: usize = 16;

/// A received response: `bytes()` starts with the correlation id.
#[derive(Debug)]
pub struct Frame {
    /// Longer than the response when it was used before: going round beats being zeroed again.
    buffer: Vec<u8>,
    len: usize,
    pool: Arc<BufferPool>,
}

impl Frame {
    /// The response without its size.
    pub fn bytes(&self) -> &[u8] {
        &self.buffer[..self.len]
    }

    /// A response that no connection received.
    #[cfg(test)]
    pub fn of(buffer: Vec<u8>) -> Self {
        Self { len: buffer.len(), buffer, pool: Arc::new(BufferPool::new(0)) }
    }
}

impl Drop for Frame {
    fn drop(&mut self) {
        self.pool.put(std::mem::take(&mut self.buffer));
    }
}

/// One request that was handed over for sending.
#[derive(Debug)]
pub struct Pending<T> {
    pub token: T,
    pub version: i16,
    pub correlation_id: i32,
    pub deadline: Instant,
    /// False for Produce with acks=0: done when it is written.
    pub expects_response: bool,
    /// When it was handed over, of requests whose answers are timed.
    pub asked_at: Option<Instant>,
    /// Without an answer by then the broker is silent.
    pub silent_at: Instant,
    /// Number of the byte after the request's last one in this connection's output.
    end: u64,
}

/// A connection and what is under way on it.
#[derive(Debug)]
pub struct Connection<T> {
    transport: Transport,
    pub connected: bool,
    out: VecDeque<Segment>,
    /// Bytes of the first segment that are gone.
    out_offset: usize,
    written: u64,
    queued: u64,
    /// In the order of their requests, which is the order of their responses.
    pending: VecDeque<Pending<T>>,
    staging: Box<[u8]>,
    staged: usize,
    /// A response that is longer than what was staged: the buffer and how much of it is there.
    partial: Option<(Frame, usize)>,
    /// The broker was asked nothing yet but what it serves and whom it lets in.
    pub is_new: bool,
    pool: Arc<BufferPool>,
}

impl<T> Connection<T> {
    /// Begin to connect, through TLS where a session is given; `connected` stays false until the socket is writable.
    pub fn open(
        address: SocketAddr,
        config: &ConnectionConfig,
        session: Option<TlsSession>,
        pool: Arc<BufferPool>,
    ) -> io::Result<Self> {
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
        socket.set_nonblocking(true)?;
        socket.set_tcp_nodelay(true)?;
        if let Some(bytes) = config.send_buffer_bytes {
            socket.set_send_buffer_size(bytes)?;
        }
        if let Some(bytes) = config.receive_buffer_bytes {
            socket.set_recv_buffer_size(bytes)?;
        }
        match socket.connect(&address.into()) {
            Ok(()) => {}
            Err(e) if e.raw_os_error() == Some(libc::EINPROGRESS) => {}
            Err(e) => return Err(e),
        }
        Ok(Self {
            transport: Transport::new(socket, session),
            connected: false,
            out: VecDeque::new(),
            out_offset: 0,
            written: 0,
            queued: 0,
            pending: VecDeque::new(),
            staging: vec![0; STAGING].into_boxed_slice(),
            staged: 0,
            partial: None,
            is_new: true,
            pool,
        })
    }

    /// The socket was reported writable for the first time: did connecting succeed?
    pub fn finish_connecting(&mut self) -> io::Result<()> {
        if let Some(error) = self.transport.take_error()? {
            return Err(error);
        }
        self.connected = true;
        Ok(())
    }

    /// Whether there are bytes that wait for the socket to take them, or a connection to be made.
    pub fn wants_write(&self) -> bool {
        let waits = self.transport.wants_write() || (!self.out.is_empty() && self.transport.takes_requests());
        !self.connected || waits
    }

    /// Requests that were not answered yet.
    pub fn in_flight(&self) -> usize {
        self.pending.len()
    }

    /// What the requests are for that were not answered yet, oldest first.
    pub fn awaited(&self) -> impl Iterator<Item = &T> {
        self.pending.iter().map(|pending| &pending.token)
    }

    /// From when on the broker is silent, where something is awaited.
    pub fn silent_at(&self) -> Option<Instant> {
        self.pending.front().map(|pending| pending.silent_at)
    }

    /// Whether the socket is connected and the broker has sent no byte of TLS.
    pub fn waits_for_tls(&self) -> bool {
        self.connected && self.transport.waits_for_tls()
    }

    /// Whether the broker keeps a request unanswered for longer than it may hold it back.
    pub fn is_silent(&self, now: Instant) -> bool {
        self.silent_at().is_some_and(|at| at <= now)
    }

    /// When the oldest request is overdue.
    pub fn deadline(&self) -> Option<Instant> {
        self.pending.front().map(|p| p.deadline)
    }

    /// Put a request in the queue; `flush` sends it. Its bytes.
    pub fn enqueue(&mut self, segments: Vec<Segment>, mut pending: Pending<T>) -> u64 {
        let bytes = segments.iter().map(|s| s.len() as u64).sum::<u64>();
        self.queued += bytes;
        pending.end = self.queued;
        self.out.extend(segments.into_iter().filter(|s| !s.is_empty()));
        self.pending.push_back(pending);
        bytes
    }

    /// Send what the socket takes now.
    pub fn flush(&mut self) -> io::Result<()> {
        self.transport.flush()?;
        while !self.out.is_empty() {
            let mut slices: [IoSlice<'_>; SLICES] = std::array::from_fn(|_| IoSlice::new(&[]));
            let mut count = 0;
            for (slice, segment) in slices.iter_mut().zip(&self.out) {
                let skip = if count == 0 { self.out_offset } else { 0 };
                *slice = IoSlice::new(&segment.bytes()[skip..]);
                count += 1;
            }
            match self.transport.write_vectored(&slices[..count]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(sent) => self.advance(sent),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }

    fn advance(&mut self, sent: usize) {
        self.written += sent as u64;
        self.out_offset += sent;
        while let Some(first) = self.out.front() {
            if self.out_offset < first.len() {
                break;
            }
            self.out_offset -= first.len();
            self.out.pop_front();
        }
    }

    /// The next request without response (acks=0) whose bytes are all written and before which nothing is awaited.
    pub fn pop_unanswered(&mut self) -> Option<Pending<T>> {
        let first = self.pending.front()?;
        if first.expects_response || first.end > self.written { None } else { self.pending.pop_front() }
    }

    /// Read what has come; each whole response goes to `received` with the request it answers.
    pub fn receive(&mut self, received: &mut Vec<(Pending<T>, Frame)>) -> io::Result<()> {
        loop {
            let (result, room) = match &mut self.partial {
                Some((frame, have)) => {
                    let rest = &mut frame.buffer[*have..frame.len];
                    let room = rest.len();
                    (self.transport.read(rest), room)
                }
                None => (self.transport.read(&mut self.staging[self.staged..]), STAGING - self.staged),
            };
            let count = match result {
                Ok(0) => return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the broker closed the connection")),
                Ok(count) => count,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) => return Err(e),
            };
            let whole_frame = match &mut self.partial {
                Some((_, have)) => {
                    *have += count;
                    count == room
                }
                None => {
                    self.staged += count;
                    false
                }
            };
            self.take_frames(received)?;
            // A short read means that the socket is empty: asking again would cost a call for nothing. After a whole
            // long response the next one is worth a poll, not a try.
            if (count < room || whole_frame) && !self.transport.may_hold_more() {
                return Ok(());
            }
        }
    }

    fn take_frames(&mut self, received: &mut Vec<(Pending<T>, Frame)>) -> io::Result<()> {
        if let Some((frame, have)) = self.partial.take() {
            if have < frame.len {
                self.partial = Some((frame, have));
                return Ok(());
            }
            self.deliver(frame, received)?;
        }
        let mut at = 0;
        while self.staged - at >= 4 {
            let mut size = [0; 4];
            size.copy_from_slice(&self.staging[at..at + 4]);
            let len = usize::try_from(i32::from_be_bytes(size)).unwrap_or(usize::MAX);
            if !(4..=LONGEST_RESPONSE).contains(&len) || (self.is_new && len > LONGEST_FIRST_RESPONSE) {
                return Err(match size {
                    // A TLS record: an alert (21) or a handshake (22), of version 3.x.
                    [21 | 22, 3, 0..=4, _] => io::Error::new(io::ErrorKind::InvalidData, SpeaksTls),
                    _ => io::Error::new(io::ErrorKind::InvalidData, not_kafka(size)),
                });
            }
            at += 4;
            let have = len.min(self.staged - at);
            let mut frame = self.new_frame(len);
            frame.buffer[..have].copy_from_slice(&self.staging[at..at + have]);
            at += have;
            if have < len {
                self.partial = Some((frame, have));
                break;
            }
            self.deliver(frame, received)?;
        }
        self.staging.copy_within(at..self.staged, 0);
        self.staged -= at;
        Ok(())
    }

    fn new_frame(&self, len: usize) -> Frame {
        let mut buffer = self.pool.take().unwrap_or_default();
        if buffer.len() < len {
            buffer.resize(len, 0);
        }
        Frame { buffer, len, pool: Arc::clone(&self.pool) }
    }

    fn deliver(&mut self, frame: Frame, received: &mut Vec<(Pending<T>, Frame)>) -> io::Result<()> {
        let mut id = [0; 4];
        id.copy_from_slice(&frame.bytes()[..4]);
        match self.pending.pop_front() {
            Some(pending) if pending.correlation_id == i32::from_be_bytes(id) && pending.expects_response => {
                received.push((pending, frame));
                Ok(())
            }
            _ => Err(io::Error::new(io::ErrorKind::InvalidData, "a response to no request (correlation id)")),
        }
    }

    /// Everything that will not be answered any more; the connection is of no use afterwards.
    pub fn abandon(&mut self) -> VecDeque<Pending<T>> {
        std::mem::take(&mut self.pending)
    }
}

/// The listener responds with a record of TLS to a client that speaks none.
#[derive(Debug, thiserror::Error)]
#[error("the listener speaks TLS")]
pub struct SpeaksTls;

/// What a size says that no broker sends.
fn not_kafka(size: [u8; 4]) -> String {
    match size {
        [b'H', b'T', b'T', b'P'] => {
            "something other than Kafka answers there: its answer begins with \"HTTP\"".to_owned()
        }
        _ => {
            let (len, begin) = (u32::from_be_bytes(size), size.map(|byte| format!("{byte:02x}")).join(" "));
            format!("a response of {len} bytes: something other than Kafka answers there (it begins with {begin})")
        }
    }
}

impl<T> Pending<T> {
    /// A request about to be queued.
    pub fn new(token: T, version: i16, correlation_id: i32, deadline: Instant, expects_response: bool) -> Self {
        Self { token, version, correlation_id, deadline, expects_response, asked_at: None, silent_at: deadline, end: 0 }
    }
}

impl<T> AsFd for Connection<T> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.transport.as_fd()
    }
}
