//! One socket to one broker: sends requests in order, receives responses in order.
//!
//! Owns the bytes in flight and the request of each awaited response. Knows no API; the network decides which requests to
//! send. Never blocks: it does what the socket allows and reports the readiness that it waits for.

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

/// Responses up to this size are read together with the bytes that follow.
const STAGING: usize = 16 * 1024;
/// A longer response is rejected as invalid.
const LONGEST_RESPONSE: usize = 1 << 30;
/// The limit of a response before a connection is ready, to ApiVersions or to a token: no Kafka broker sends a larger one.
const LONGEST_FIRST_RESPONSE: usize = 1 << 20;
/// Segments of one `writev`.
const SLICES: usize = 16;

/// A received response: `bytes()` starts with the correlation id.
#[derive(Debug)]
pub struct Frame {
    /// May be longer than the response after an earlier use: it is not zeroed again.
    buffer: Vec<u8>,
    len: usize,
    pool: Arc<BufferPool>,
}

impl Frame {
    /// The response without its size prefix.
    pub fn bytes(&self) -> &[u8] {
        &self.buffer[..self.len]
    }

    /// A response for tests, without a connection.
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

/// One request that was queued for sending.
#[derive(Debug)]
pub struct Pending<T> {
    pub token: T,
    pub version: i16,
    pub correlation_id: i32,
    pub deadline: Instant,
    /// False for Produce with acks=0: complete when it is written.
    pub expects_response: bool,
    /// When it was queued, for requests whose latency is measured.
    pub requested_at: Option<Instant>,
    /// When the broker counts as silent without a response.
    pub silent_at: Instant,
    /// Position of the request's end in this connection's output.
    end: u64,
}

/// A connection and its requests in flight.
#[derive(Debug)]
pub struct Connection<T> {
    transport: Transport,
    pub connected: bool,
    out: VecDeque<Segment>,
    /// Bytes of the first segment that are sent.
    out_offset: usize,
    written: u64,
    queued: u64,
    /// In the order of their requests, which is the order of their responses.
    pending: VecDeque<Pending<T>>,
    staging: Box<[u8]>,
    staged: usize,
    /// A response longer than the staging buffer: its buffer and the bytes received.
    partial: Option<(Frame, usize)>,
    /// Whether only requests were sent that make the connection ready.
    pub is_new: bool,
    pool: Arc<BufferPool>,
}

impl<T> Connection<T> {
    /// Start connecting, through TLS if a session is given; `connected` stays false until the socket is writable.
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

    /// Complete a connection attempt, when the socket becomes writable for the first time.
    pub fn finish_connecting(&mut self) -> io::Result<()> {
        if let Some(error) = self.transport.take_error()? {
            return Err(error);
        }
        self.connected = true;
        Ok(())
    }

    /// Whether bytes wait for the socket, or the connection is being made.
    pub fn wants_write(&self) -> bool {
        let waits = self.transport.wants_write() || (!self.out.is_empty() && self.transport.takes_requests());
        !self.connected || waits
    }

    /// Requests without a response so far.
    pub fn in_flight(&self) -> usize {
        self.pending.len()
    }

    /// The tokens of requests without a response, oldest first.
    pub fn awaited(&self) -> impl Iterator<Item = &T> {
        self.pending.iter().map(|pending| &pending.token)
    }

    /// When the broker counts as silent; `None` if no response is awaited.
    pub fn silent_at(&self) -> Option<Instant> {
        self.pending.front().map(|pending| pending.silent_at)
    }

    /// Whether the socket is connected and the broker has sent no TLS bytes.
    pub fn waits_for_tls(&self) -> bool {
        self.connected && self.transport.waits_for_tls()
    }

    /// Whether a response is overdue beyond the time that the broker may delay it.
    pub fn is_silent(&self, now: Instant) -> bool {
        self.silent_at().is_some_and(|at| at <= now)
    }

    /// When the oldest request times out.
    pub fn deadline(&self) -> Option<Instant> {
        self.pending.front().map(|p| p.deadline)
    }

    /// Queue a request for `flush`; returns its size in bytes.
    pub fn enqueue(&mut self, segments: Vec<Segment>, mut pending: Pending<T>) -> u64 {
        let bytes = segments.iter().map(|s| s.len() as u64).sum::<u64>();
        self.queued += bytes;
        pending.end = self.queued;
        self.out.extend(segments.into_iter().filter(|s| !s.is_empty()));
        self.pending.push_back(pending);
        bytes
    }

    /// Send as much as the socket takes.
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

    /// Remove the next request without response (acks=0) whose bytes are written, if no earlier response is awaited.
    pub fn pop_unanswered(&mut self) -> Option<Pending<T>> {
        let first = self.pending.front()?;
        if first.expects_response || first.end > self.written { None } else { self.pending.pop_front() }
    }

    /// Receive; each complete response is added to `received` with its request.
    pub fn receive(&mut self, received: &mut Vec<(Pending<T>, Frame)>) -> io::Result<()> {
        loop {
            let (result, capacity) = match &mut self.partial {
                Some((frame, have)) => {
                    let rest = &mut frame.buffer[*have..frame.len];
                    let capacity = rest.len();
                    (self.transport.read(rest), capacity)
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
                    count == capacity
                }
                None => {
                    self.staged += count;
                    false
                }
            };
            self.take_frames(received)?;
            // A short read means that the socket is empty: another read would be wasted. After a whole long response a poll
            // is better than another read.
            if (count < capacity || whole_frame) && !self.transport.may_hold_more() {
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

    /// Remove the requests that get no response; the connection must not be used afterwards.
    pub fn abandon(&mut self) -> VecDeque<Pending<T>> {
        std::mem::take(&mut self.pending)
    }
}

/// The listener responds with a TLS record to a client without TLS.
#[derive(Debug, thiserror::Error)]
#[error("the listener speaks TLS")]
pub struct SpeaksTls;

/// The message about a size that no broker sends.
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
    /// A request to be queued.
    pub fn new(token: T, version: i16, correlation_id: i32, deadline: Instant, expects_response: bool) -> Self {
        Self {
            token,
            version,
            correlation_id,
            deadline,
            expects_response,
            requested_at: None,
            silent_at: deadline,
            end: 0,
        }
    }
}

impl<T> AsFd for Connection<T> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.transport.as_fd()
    }
}
