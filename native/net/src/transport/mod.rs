//! Transports: how the bytes of a connection come and go. Everything that touches an accepted socket does it here.
//!
//! The match on the variant costs a predicted branch for each system call. What every transport keeps:
//! - `receive` says whether more may be there. Nothing that has been decrypted stays inside, for epoll would say nothing of
//!   it.
//! - `AGAIN` means: wait until the socket is readable, or writable, and call again. A call to send that has said it is
//!   repeated from the same position: TLS may have encrypted from there already.
//! - What the transport itself has to say (a handshake, a ticket, an alert) leaves by `flush`; while `owes` says that
//!   some is left, the socket is to be watched for room, whatever the connection waits for.
//! - `at_end` looks at the socket without reading: the peer's end may come as an alert inside the stream.
//!
//! Must not know frames, requests or what a connection is in the middle of.

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

/// See the module.
#[derive(Debug)]
pub enum Transport {
    /// The bytes as they are.
    Plaintext(Plaintext),
    /// Encrypted, over one of the others.
    Tls(Box<Tls>),
    /// Plaintext that refuses, shortens and fails calls by a schedule.
    #[cfg(test)]
    Adversarial(Box<adversarial::Adversarial>),
}

/// Bytes that came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    /// How many; none: the peer has closed its side.
    pub bytes: usize,
    /// Whether more may be there already.
    pub more: bool,
}

impl Transport {
    /// The plaintext transport of a socket, which is set up for it.
    ///
    /// # Errors
    /// When the socket is gone.
    pub fn plaintext(stream: TcpStream) -> io::Result<Self> {
        Plaintext::new(stream).map(Self::Plaintext)
    }

    /// The server's side of TLS over a socket, which is set up for it.
    ///
    /// # Errors
    /// When the socket is gone.
    pub fn tls_server(stream: TcpStream, tls: &ServerTls) -> io::Result<Self> {
        let session = Tls::server(Self::plaintext(stream)?, tls.config());
        Ok(Self::Tls(Box::new(session.map_err(io::Error::other)?)))
    }

    /// Whether nothing but a handshake can pass yet.
    pub fn is_handshaking(&self) -> bool {
        matches!(self, Self::Tls(tls) if tls.is_handshaking())
    }

    /// Whether the transport has to say something of its own that the socket has not taken.
    pub fn owes(&self) -> bool {
        matches!(self, Self::Tls(tls) if tls.owes())
    }

    /// Has the socket take what [`Transport::owes`] speaks of.
    ///
    /// # Errors
    /// As [`Transport::send`].
    pub fn flush(&mut self) -> Result<(), Errno> {
        if let Self::Tls(tls) = self { tls.flush() } else { Ok(()) }
    }

    /// Says to the peer that nothing more comes, where there is a way to say that.
    pub fn end(&mut self) {
        if let Self::Tls(tls) = self {
            tls.end();
        }
    }

    /// The certificate that the peer has shown, DER; once, when a handshake is done.
    pub fn take_certificate(&mut self) -> Option<Vec<u8>> {
        if let Self::Tls(tls) = self { tls.take_certificate() } else { None }
    }

    /// What the peer did wrong, where a call failed for that; once.
    pub fn take_failure(&mut self) -> Option<String> {
        if let Self::Tls(tls) = self { tls.take_failure() } else { None }
    }

    /// Has `epoll` report readiness under a token.
    ///
    /// # Errors
    /// When descriptors or memory have run out.
    pub fn watch(&self, epoll: impl AsFd, token: u64, interest: epoll::EventFlags) -> Result<(), Errno> {
        epoll::add(epoll, self.socket(), epoll::EventData::new_u64(token), interest)
    }

    /// Changes what [`Transport::watch`] reports.
    ///
    /// # Errors
    /// When it is not watched.
    pub fn watch_for(&self, epoll: impl AsFd, token: u64, interest: epoll::EventFlags) -> Result<(), Errno> {
        epoll::modify(epoll, self.socket(), epoll::EventData::new_u64(token), interest)
    }

    /// Ends what [`Transport::watch`] began. The socket closes when the transport is dropped.
    pub fn unwatch(&self, epoll: impl AsFd) {
        let _ = epoll::delete(epoll, self.socket());
    }

    /// Receives once, into what `input` has room for.
    ///
    /// # Errors
    /// `AGAIN`: nothing is there. `INTR`: try again. Any other: the connection is lost.
    pub fn receive(&mut self, input: &mut Vec<u8>) -> Result<Received, Errno> {
        match self {
            Self::Plaintext(socket) => socket.receive(input),
            Self::Tls(tls) => tls.receive(input),
            #[cfg(test)]
            Self::Adversarial(socket) => socket.receive(input),
        }
    }

    /// Receives the socket's own bytes once: what lies below a transport that decrypts.
    ///
    /// # Errors
    /// As [`Transport::receive`]; `OPNOTSUPP` of a transport whose bytes are not the socket's.
    fn receive_into(&mut self, room: &mut [u8]) -> Result<Received, Errno> {
        match self {
            Self::Plaintext(socket) => socket.receive_into(room),
            Self::Tls(_) => Err(Errno::OPNOTSUPP),
            #[cfg(test)]
            Self::Adversarial(socket) => socket.receive_into(room),
        }
    }

    /// Whether the peer has closed its side and everything that it sent has been received.
    pub fn at_end(&self) -> bool {
        match self {
            Self::Plaintext(socket) => socket.at_end(),
            Self::Tls(tls) => tls.at_end(),
            #[cfg(test)]
            Self::Adversarial(socket) => socket.at_end(),
        }
    }

    /// Sends bytes, and returns how many were taken. `more`: others follow at once.
    ///
    /// # Errors
    /// `AGAIN`: none can be taken now. `INTR`: try again. Any other: the connection is lost.
    pub fn send(&mut self, bytes: &[u8], more: bool) -> Result<usize, Errno> {
        match self {
            Self::Plaintext(socket) => socket.send(bytes, more),
            Self::Tls(tls) => tls.send(bytes, more),
            #[cfg(test)]
            Self::Adversarial(socket) => socket.send(bytes, more),
        }
    }

    /// Sends some of a file's slice from `from` on, and returns how much was taken.
    ///
    /// # Errors
    /// As [`Transport::send`]; `IO` where the file has ended before the slice.
    pub fn send_file(&mut self, slice: &FileSlice, from: usize) -> Result<usize, Errno> {
        match self {
            Self::Plaintext(socket) => socket.send_file(slice, from),
            Self::Tls(tls) => tls.send_file(slice, from),
            #[cfg(test)]
            Self::Adversarial(socket) => socket.send_file(slice, from),
        }
    }

    /// Why a connection that was being made failed; `None` when it stands.
    ///
    /// # Errors
    /// When the socket is gone.
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
