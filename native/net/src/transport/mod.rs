//! Transports: how the bytes of a connection come and go. Everything that touches an accepted socket does it here.
//!
//! Plaintext is the one there is. The match on it costs nothing, as an enum of one variant has no tag; a second variant
//! costs a predicted branch for each system call.
//!
//! What another transport has to keep, and TLS in particular:
//! - `receive` says whether more may be there. TLS decrypts a record at a time: while decrypted bytes lie inside, epoll
//!   says nothing, so `more` stays true until they are taken, and a connection that was paused meanwhile has to be read
//!   again when it goes on, not only when epoll reports it.
//! - `AGAIN` means: wait for what the call waits for. TLS may have to write before it can read and the other way round
//!   (handshake, key update): `watch` and `watch_for` then translate what the connection wants into what the transport
//!   needs.
//! - `send_file` may not be `sendfile`: TLS reads a piece of the file and encrypts it, and what is encrypted has to be
//!   taken whole by the socket before the next piece, whatever the caller does meanwhile.
//! - `at_end` looks at the socket without reading: the peer's end may come as an alert inside the stream.
//!
//! Must not know frames, requests or what a connection is in the middle of.

#[cfg(test)]
pub mod adversarial;
mod plaintext;

use std::io;
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::event::epoll;
use rustix::io::Errno;

use pybroker_storage::FileSlice;

use plaintext::Plaintext;

/// See the module.
#[derive(Debug)]
pub enum Transport {
    /// The bytes as they are.
    Plaintext(Plaintext),
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
            #[cfg(test)]
            Self::Adversarial(socket) => socket.receive(input),
        }
    }

    /// Whether the peer has closed its side and everything that it sent has been received.
    pub fn at_end(&self) -> bool {
        match self {
            Self::Plaintext(socket) => socket.at_end(),
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

    fn socket(&self) -> BorrowedFd<'_> {
        match self {
            Self::Plaintext(socket) => socket.as_fd(),
            #[cfg(test)]
            Self::Adversarial(socket) => socket.as_fd(),
        }
    }
}
