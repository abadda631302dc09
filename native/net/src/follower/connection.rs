//! A fetcher's connection to its leader: sends requests, receives whole responses. Never blocks; its thread polls.
//!
//! Must not know the content of a frame. Memory grows with the bytes received, not with the size announced.

use std::io::{self, IoSlice};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use rustix::event::epoll;
use rustix::io::Errno;
use socket2::{Domain, Protocol, Socket, TcpKeepalive, Type};

use crate::data_plane::settings::{FetchSource, ReplicationSettings};
use crate::transport::Transport;
use pybroker_secure::Transport as Outbound;
use pybroker_tls::TlsSession;

/// Bytes of the size prefix of a frame.
const SIZE: usize = 4;
/// Buffer space for one receive, before a frame's size is known.
const CAPACITY: usize = 64 << 10;
/// The most bytes that one read through TLS returns.
const MOST_READ: usize = 64 << 10;
/// Interval of keepalive probes on an idle connection: the shortest that the system supports.
const PROBE_EVERY: Duration = Duration::from_secs(1);
/// A response with a larger size is invalid.
const LONGEST_RESPONSE: usize = 1 << 30;

/// A connection to a leader.
#[derive(Debug)]
pub struct Connection {
    link: Link,
    /// Whether the socket has connected.
    connected: bool,
    out: Vec<u8>,
    sent: usize,
    input: Vec<u8>,
}

/// The transport of the connection.
#[derive(Debug)]
enum Link {
    Plaintext(Transport),
    Tls(Outbound),
}

/// The result of a receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrived {
    /// Bytes arrived; a response may be complete.
    Bytes,
    /// No bytes are available.
    Nothing,
}

impl Connection {
    /// Starts a connection to one of the leader's addresses, by the number of the attempt; `session`: through TLS.
    ///
    /// # Errors
    /// When the name has no address, or the system rejects it at once.
    pub fn open(
        source: &FetchSource,
        attempt: usize,
        settings: &ReplicationSettings,
        session: Option<TlsSession>,
        epoll: impl AsFd,
        token: u64,
    ) -> io::Result<Self> {
        let FetchSource { host, port, .. } = source;
        let addresses: Vec<SocketAddr> = (host.as_str(), *port).to_socket_addrs()?.collect();
        let Some(address) = addresses.get(attempt % addresses.len().max(1)) else {
            return Err(io::Error::new(io::ErrorKind::NotFound, format!("{host} has no address")));
        };
        let socket = Socket::new(Domain::for_address(*address), Type::STREAM, Some(Protocol::TCP))?;
        socket.set_nonblocking(true)?;
        if let Ok(bytes @ 1..) = usize::try_from(settings.socket_receive_buffer_bytes) {
            socket.set_recv_buffer_size(bytes)?;
        }
        close_when_path_is_cut(&socket, Duration::from_millis(settings.path_timeout_ms))?;
        let connected = match socket.connect(&(*address).into()) {
            Ok(()) => true,
            Err(error) if error.raw_os_error() == Some(libc::EINPROGRESS) => false,
            Err(error) => return Err(error),
        };
        let link = match session {
            None => Link::Plaintext(Transport::plaintext(TcpStream::from(socket))?),
            Some(_) => Link::Tls(Outbound::new(socket, session)),
        };
        let interest = epoll::EventFlags::IN | epoll::EventFlags::OUT;
        epoll::add(epoll, link.as_fd(), epoll::EventData::new_u64(token), interest)?;
        Ok(Self { link, connected, out: Vec::new(), sent: 0, input: Vec::new() })
    }

    /// Whether requests can be sent.
    pub fn is_connected(&self) -> bool {
        self.connected
    }

    /// Completes a connection attempt, when the socket becomes writable for the first time.
    ///
    /// # Errors
    /// The reason why the attempt failed.
    pub fn finish_connecting(&mut self) -> io::Result<()> {
        let error = match &self.link {
            Link::Plaintext(transport) => transport.take_error()?,
            Link::Tls(transport) => transport.take_error()?,
        };
        if let Some(error) = error {
            return Err(error);
        }
        self.connected = true;
        Ok(())
    }

    /// The buffer to write the next request to, behind the unsent bytes.
    pub fn out(&mut self) -> &mut Vec<u8> {
        if self.sent == self.out.len() {
            self.out.clear();
            self.sent = 0;
        }
        &mut self.out
    }

    /// Sends as much as the socket takes, and sets `epoll`'s interest for the rest.
    ///
    /// # Errors
    /// When the connection is lost.
    pub fn send(&mut self, epoll: impl AsFd, token: u64) -> io::Result<()> {
        if let Link::Tls(transport) = &mut self.link {
            transport.flush()?;
        }
        while self.sent < self.out.len() && self.link.takes_requests() {
            match self.link.send(&self.out[self.sent..]) {
                Ok(bytes) => self.sent += bytes,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        let waits = self.sent < self.out.len() && self.link.takes_requests();
        let out = if waits || self.link.owes() { epoll::EventFlags::OUT } else { epoll::EventFlags::empty() };
        let interest = epoll::EventFlags::IN | out;
        Ok(epoll::modify(epoll, self.link.as_fd(), epoll::EventData::new_u64(token), interest)?)
    }

    /// Whether received bytes may be buffered that epoll does not report.
    pub fn may_hold_more(&self) -> bool {
        matches!(self.link, Link::Tls(_))
    }

    /// Receives once.
    ///
    /// # Errors
    /// When the connection is lost; `PROTO` for an invalid size.
    pub fn receive(&mut self) -> io::Result<Arrived> {
        self.make_space()?;
        match self.link.receive(&mut self.input) {
            Ok(0) => Err(Errno::CONNRESET.into()),
            Ok(_) => Ok(Arrived::Bytes),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(Arrived::Nothing),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(Arrived::Bytes),
            Err(error) => Err(error),
        }
    }

    /// The first complete response, without its size; `None` if there is none.
    ///
    /// # Errors
    /// `PROTO` for an invalid size.
    pub fn respond(&self) -> Result<Option<&[u8]>, Errno> {
        let Some(size) = self.response_size()? else { return Ok(None) };
        Ok(self.input.get(SIZE..SIZE + size))
    }

    /// Removes the first response. An empty buffer larger than `kept` bytes is freed.
    pub fn responded(&mut self, kept: usize) {
        if let Ok(Some(size)) = self.response_size() {
            self.input.drain(..(SIZE + size).min(self.input.len()));
        }
        if self.input.is_empty() && self.input.capacity() > kept {
            self.input = Vec::new();
        }
    }

    fn response_size(&self) -> Result<Option<usize>, Errno> {
        let Some(&size) = self.input.first_chunk::<SIZE>() else { return Ok(None) };
        match usize::try_from(i32::from_be_bytes(size)) {
            Ok(size) if size <= LONGEST_RESPONSE => Ok(Some(size)),
            _ => Err(Errno::PROTO),
        }
    }

    fn make_space(&mut self) -> Result<(), Errno> {
        let (len, wanted) = (self.input.len(), self.response_size()?.map_or(0, |size| SIZE + size));
        // At most twice the bytes received: an announced size alone takes no memory.
        let target = wanted.min((2 * len).max(4 * CAPACITY)).max(len + 1);
        if self.input.capacity() <= len || self.input.capacity() < target {
            self.input.reserve(target.max(CAPACITY) - len);
        }
        Ok(())
    }
}

impl Link {
    fn takes_requests(&self) -> bool {
        match self {
            Self::Plaintext(_) => true,
            Self::Tls(transport) => transport.takes_requests(),
        }
    }

    /// Whether TLS messages wait for the socket.
    fn owes(&self) -> bool {
        matches!(self, Self::Tls(transport) if transport.wants_write())
    }

    fn send(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plaintext(transport) => Ok(transport.send(bytes, false)?),
            Self::Tls(transport) => transport.write_vectored(&[IoSlice::new(bytes)]),
        }
    }

    /// Reads into the spare capacity of `input`, and returns the number of bytes; 0 if the peer has closed the connection.
    fn receive(&mut self, input: &mut Vec<u8>) -> io::Result<usize> {
        match self {
            Self::Plaintext(transport) => Ok(transport.receive(input)?.bytes),
            Self::Tls(transport) => {
                let arrivals = input.len();
                input.resize(input.capacity().min(arrivals + MOST_READ), 0);
                let read = transport.read(&mut input[arrivals..]);
                input.truncate(arrivals + *read.as_ref().unwrap_or(&0));
                read
            }
        }
    }
}

/// Makes the system close a connection whose peer acknowledges nothing for so long: data, a SYN, or the probes that are sent
/// while a Fetch waits for its response (RFC 5482, RFC 9293 3.8.4). The system of a stopped process still acknowledges.
fn close_when_path_is_cut(socket: &Socket, timeout: Duration) -> io::Result<()> {
    let probe = TcpKeepalive::new().with_time(PROBE_EVERY).with_interval(PROBE_EVERY);
    socket.set_tcp_keepalive(&probe)?;
    socket.set_tcp_user_timeout(Some(timeout))
}

impl AsFd for Link {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Plaintext(transport) => transport.socket(),
            Self::Tls(transport) => transport.as_fd(),
        }
    }
}
