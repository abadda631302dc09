//! A fetcher's connection to its leader: requests out, whole answers in. Never blocks; its thread waits for both ends.
//!
//! Must not know what is in a frame, nor who it is from. Memory follows what has arrived, not what a size announces.

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

/// Bytes of the size in front of a frame.
const SIZE: usize = 4;
/// Room for what is received at once, before a frame's size is known.
const ROOM: usize = 64 << 10;
/// Bytes that one read through TLS gives at most.
const MOST_READ: usize = 64 << 10;
/// How often the system asks for an acknowledgement where none is due: the shortest time that it knows.
const PROBE_EVERY: Duration = Duration::from_secs(1);
/// An answer that announces more is none.
const LONGEST_ANSWER: usize = 1 << 30;

/// See the module.
#[derive(Debug)]
pub struct Connection {
    link: Link,
    /// Whether the socket has said that it is connected.
    connected: bool,
    out: Vec<u8>,
    sent: usize,
    input: Vec<u8>,
}

/// How the bytes come and go.
#[derive(Debug)]
enum Link {
    Plaintext(Transport),
    Tls(Outbound),
}

/// What a look at the socket brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrived {
    /// Bytes came; there may be an answer.
    Bytes,
    /// None are there now.
    Nothing,
}

impl Connection {
    /// Begins to connect to one of the addresses of a leader, the `attempt`th; `session`: through TLS.
    ///
    /// # Errors
    /// When the name has no address, or the system refuses at once.
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

    /// The socket is writable for the first time: it is connected, or has failed.
    ///
    /// # Errors
    /// Why it could not be connected.
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

    /// Where the next request is written, behind what is not sent yet.
    pub fn out(&mut self) -> &mut Vec<u8> {
        if self.sent == self.out.len() {
            self.out.clear();
            self.sent = 0;
        }
        &mut self.out
    }

    /// Sends what the socket takes, and has `epoll` say when it takes more.
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

    /// Whether answers may lie here of which epoll says nothing.
    pub fn may_hold_more(&self) -> bool {
        matches!(self.link, Link::Tls(_))
    }

    /// Receives once.
    ///
    /// # Errors
    /// When the connection is lost, `PROTO` for a size that is none.
    pub fn receive(&mut self) -> io::Result<Arrived> {
        self.make_room()?;
        match self.link.receive(&mut self.input) {
            Ok(0) => Err(Errno::CONNRESET.into()),
            Ok(_) => Ok(Arrived::Bytes),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(Arrived::Nothing),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(Arrived::Bytes),
            Err(error) => Err(error),
        }
    }

    /// The first answer that is there as a whole, without its size.
    ///
    /// # Errors
    /// `PROTO` for a size that is none.
    pub fn answer(&self) -> Result<Option<&[u8]>, Errno> {
        let Some(size) = self.answer_size()? else { return Ok(None) };
        Ok(self.input.get(SIZE..SIZE + size))
    }

    /// Drops the first answer. A buffer that grew beyond `kept` bytes is given back when it is empty.
    pub fn answered(&mut self, kept: usize) {
        if let Ok(Some(size)) = self.answer_size() {
            self.input.drain(..(SIZE + size).min(self.input.len()));
        }
        if self.input.is_empty() && self.input.capacity() > kept {
            self.input = Vec::new();
        }
    }

    fn answer_size(&self) -> Result<Option<usize>, Errno> {
        let Some(&size) = self.input.first_chunk::<SIZE>() else { return Ok(None) };
        match usize::try_from(i32::from_be_bytes(size)) {
            Ok(size) if size <= LONGEST_ANSWER => Ok(Some(size)),
            _ => Err(Errno::PROTO),
        }
    }

    fn make_room(&mut self) -> Result<(), Errno> {
        let (len, wanted) = (self.input.len(), self.answer_size()?.map_or(0, |size| SIZE + size));
        // Twice of what has come at most: a size that is announced costs nothing.
        let target = wanted.min((2 * len).max(4 * ROOM)).max(len + 1);
        if self.input.capacity() <= len || self.input.capacity() < target {
            self.input.reserve(target.max(ROOM) - len);
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

    /// Whether TLS has something to say that the socket has not taken.
    fn owes(&self) -> bool {
        matches!(self, Self::Tls(transport) if transport.wants_write())
    }

    fn send(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plaintext(transport) => Ok(transport.send(bytes, false)?),
            Self::Tls(transport) => transport.write_vectored(&[IoSlice::new(bytes)]),
        }
    }

    /// Reads into the room that `input` has, and returns how much came; 0: the other side has ended the connection.
    fn receive(&mut self, input: &mut Vec<u8>) -> io::Result<usize> {
        match self {
            Self::Plaintext(transport) => Ok(transport.receive(input)?.bytes),
            Self::Tls(transport) => {
                let came = input.len();
                input.resize(input.capacity().min(came + MOST_READ), 0);
                let read = transport.read(&mut input[came..]);
                input.truncate(came + *read.as_ref().unwrap_or(&0));
                read
            }
        }
    }
}

/// Has the system close a connection whose other end acknowledges nothing for so long: data, a SYN, or the probes that are sent
/// while a Fetch waits for its response (RFC 5482, RFC 9293 3.8.4). A process that is stopped still acknowledges.
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
