//! Transports: sending and receiving the bytes of a connection. All use of an accepted socket is here.
//!
//! The match on the variant costs a predicted branch for each system call. Every transport guarantees:
//! - `receive` returns whether more may be available. No decrypted byte stays inside, for epoll would not report it.
//! - `AGAIN` means: wait until the socket is readable or writable, and call again. A send that returned `AGAIN` is repeated
//!   from the same position: TLS may have encrypted from there already.
//! - The transport's own messages (a handshake, a ticket, an alert) leave by `flush`. While `owes` is true, the socket has
//!   to be polled for writability, whatever the connection waits for.
//! - `at_end` checks the socket without reading: the peer's close may arrive as an alert inside the stream.
//!
//! Must not know frames, requests or the state of a connection.

#[cfg(test)]
pub mod adversarial;
mod plaintext;
mod tls;

use std::io;
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::event::epoll;
use rustix::io::Errno;

use pybroker_storage::FileSlice;
use pybroker_tls::ServerTls;

use plaintext::Plaintext;
use tls::Tls;

/// The transport of a connection.
#[derive(Debug)]
pub enum Transport {
    /// Unencrypted.
    Plaintext(Plaintext),
    /// TLS over one of the others.
    Tls(Box<Tls>),
    /// Plaintext that rejects, shortens and fails calls by a schedule.
    #[cfg(test)]
    Adversarial(Box<adversarial::Adversarial>),
}

/// The result of a receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    /// The number of bytes; 0 if the peer has closed its side.
    pub bytes: usize,
    /// Whether more bytes may be available already.
    pub more: bool,
}

impl Transport {
    /// The plaintext transport of a socket; sets the socket's options.
    ///
    /// # Errors
    /// When the socket has failed.
    pub fn plaintext(stream: TcpStream) -> io::Result<Self> {
        Plaintext::new(stream).map(Self::Plaintext)
    }

    /// The server side of TLS over a socket; sets the socket's options.
    ///
    /// # Errors
    /// When the socket has failed.
    pub fn tls_server(stream: TcpStream, tls: &ServerTls) -> io::Result<Self> {
        let session = Tls::server(Self::plaintext(stream)?, tls.config());
        Ok(Self::Tls(Box::new(session.map_err(io::Error::other)?)))
    }

    /// Whether a TLS handshake is in progress.
    pub fn is_handshaking(&self) -> bool {
        matches!(self, Self::Tls(tls) if tls.is_handshaking())
    }

    /// Whether messages of the transport itself wait for the socket.
    pub fn owes(&self) -> bool {
        matches!(self, Self::Tls(tls) if tls.owes())
    }

    /// Sends the messages of [`Transport::owes`].
    ///
    /// # Errors
    /// As [`Transport::send`].
    pub fn flush(&mut self) -> Result<(), Errno> {
        if let Self::Tls(tls) = self { tls.flush() } else { Ok(()) }
    }

    /// Announces to the peer that nothing follows, if the protocol can.
    pub fn end(&mut self) {
        if let Self::Tls(tls) = self {
            tls.end();
        }
    }

    /// The peer's certificate, DER; returned once, after the handshake.
    pub fn take_certificate(&mut self) -> Option<Vec<u8>> {
        if let Self::Tls(tls) = self { tls.take_certificate() } else { None }
    }

    /// The peer's error that made a call fail; returned once.
    pub fn take_failure(&mut self) -> Option<String> {
        if let Self::Tls(tls) = self { tls.take_failure() } else { None }
    }

    /// Registers the socket with `epoll` under a token.
    ///
    /// # Errors
    /// When file descriptors or memory are exhausted.
    pub fn watch(&self, epoll: impl AsFd, token: u64, interest: epoll::EventFlags) -> Result<(), Errno> {
        epoll::add(epoll, self.socket(), epoll::EventData::new_u64(token), interest)
    }

    /// Changes the interest of [`Transport::watch`].
    ///
    /// # Errors
    /// When it is not registered.
    pub fn watch_for(&self, epoll: impl AsFd, token: u64, interest: epoll::EventFlags) -> Result<(), Errno> {
        epoll::modify(epoll, self.socket(), epoll::EventData::new_u64(token), interest)
    }

    /// Ends [`Transport::watch`]. The socket closes when the transport is dropped.
    pub fn unwatch(&self, epoll: impl AsFd) {
        let _ = epoll::delete(epoll, self.socket());
    }

    /// Receives once, into the spare capacity of `input`.
    ///
    /// # Errors
    /// `AGAIN`: no bytes are available. `INTR`: try again. Any other: the connection is lost.
    pub fn receive(&mut self, input: &mut Vec<u8>) -> Result<Received, Errno> {
        match self {
            Self::Plaintext(socket) => socket.receive(input),
            Self::Tls(tls) => tls.receive(input),
            #[cfg(test)]
            Self::Adversarial(socket) => socket.receive(input),
        }
    }

    /// Receives the socket's own bytes once: the ciphertext for a transport that decrypts.
    ///
    /// # Errors
    /// As [`Transport::receive`]; `OPNOTSUPP` if the transport itself encrypts.
    fn receive_into(&mut self, capacity: &mut [u8]) -> Result<Received, Errno> {
        match self {
            Self::Plaintext(socket) => socket.receive_into(capacity),
            Self::Tls(_) => Err(Errno::OPNOTSUPP),
            #[cfg(test)]
            Self::Adversarial(socket) => socket.receive_into(capacity),
        }
    }

    /// Whether the peer has closed its side and every byte that it sent has been received.
    pub fn at_end(&self) -> bool {
        match self {
            Self::Plaintext(socket) => socket.at_end(),
            Self::Tls(tls) => tls.at_end(),
            #[cfg(test)]
            Self::Adversarial(socket) => socket.at_end(),
        }
    }

    /// Sends bytes, and returns how many the socket took. `more`: others follow at once.
    ///
    /// # Errors
    /// `AGAIN`: the socket takes none. `INTR`: try again. Any other: the connection is lost.
    pub fn send(&mut self, bytes: &[u8], more: bool) -> Result<usize, Errno> {
        match self {
            Self::Plaintext(socket) => socket.send(bytes, more),
            Self::Tls(tls) => tls.send(bytes, more),
            #[cfg(test)]
            Self::Adversarial(socket) => socket.send(bytes, more),
        }
    }

    /// Sends a part of a file's slice from `from` on, and returns how many bytes the socket took.
    ///
    /// # Errors
    /// As [`Transport::send`]; `IO` if the file ends before the slice.
    pub fn send_file(&mut self, slice: &FileSlice, from: usize) -> Result<usize, Errno> {
        match self {
            Self::Plaintext(socket) => socket.send_file(slice, from),
            Self::Tls(tls) => tls.send_file(slice, from),
            #[cfg(test)]
            Self::Adversarial(socket) => socket.send_file(slice, from),
        }
    }

    /// The error of a connection attempt; `None` if it has succeeded.
    ///
    /// # Errors
    /// When the socket has failed.
    pub fn take_error(&self) -> io::Result<Option<io::Error>> {
        Ok(rustix::net::sockopt::socket_error(self.socket())?.err().map(Into::into))
    }

    pub(crate) fn socket(&self) -> BorrowedFd<'_> {
        match self {
            Self::Plaintext(socket) => socket.as_fd(),
            Self::Tls(tls) => tls.as_fd(),
            #[cfg(test)]
            Self::Adversarial(socket) => socket.as_fd(),
        }
    }
}
