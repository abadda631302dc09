//! Sending and receiving the bytes of a connection, unencrypted or through TLS. All use of its socket is here.
//!
//! Must not know frames or requests. With TLS, decrypted bytes may be buffered while the socket is empty: the caller reads
//! until `WouldBlock` ([`Transport::may_hold_more`]). No byte of a request is sent before the handshake is complete
//! ([`Transport::takes_requests`]).

use std::io::{self, IoSlice, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};

use socket2::Socket;

use pybroker_tls::{TlsError, TlsSession};

/// Bytes of ciphertext of one read.
const CIPHERTEXT: usize = 64 * 1024;

/// The transport of a connection.
#[derive(Debug)]
pub enum Transport {
    Plaintext(Socket),
    Tls(Box<Secured>),
}

/// A socket and its TLS session.
#[derive(Debug)]
pub struct Secured {
    socket: Socket,
    session: TlsSession,
    /// Received ciphertext, of which `at..end` is not processed yet.
    arrivals: Box<[u8]>,
    at: usize,
    end: usize,
    /// Whether bytes have arrived from the broker.
    has_received: bool,
}

impl Transport {
    /// The transport over a connecting socket; `session`: through TLS.
    pub fn new(socket: Socket, session: Option<TlsSession>) -> Self {
        match session {
            None => Self::Plaintext(socket),
            Some(session) => {
                let arrivals = vec![0; CIPHERTEXT].into_boxed_slice();
                Self::Tls(Box::new(Secured { socket, session, arrivals, at: 0, end: 0, has_received: false }))
            }
        }
    }

    /// The error of a failed connection attempt.
    pub fn take_error(&self) -> io::Result<Option<io::Error>> {
        self.socket().take_error()
    }

    fn socket(&self) -> &Socket {
        match self {
            Self::Plaintext(socket) => socket,
            Self::Tls(secured) => &secured.socket,
        }
    }

    /// Read; 0 if the broker has closed the connection.
    ///
    /// # Errors
    /// `WouldBlock`: no bytes are available. A [`TlsError`] is wrapped in the error.
    pub fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plaintext(socket) => socket.read(out),
            Self::Tls(secured) => secured.read(out),
        }
    }

    /// Accept bytes of requests, and return how many.
    ///
    /// # Errors
    /// `WouldBlock`: none can be accepted.
    pub fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Self::Plaintext(socket) => socket.write_vectored(slices),
            Self::Tls(secured) => {
                let mut taken = secured.session.write(slices)?;
                secured.flush()?;
                if taken == 0 {
                    taken = secured.session.write(slices)?;
                    secured.flush()?;
                }
                if taken == 0 { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(taken) }
            }
        }
    }

    /// Send accepted bytes, as far as the socket takes them.
    pub fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plaintext(_) => Ok(()),
            Self::Tls(secured) => secured.flush(),
        }
    }

    /// Whether bytes wait for the socket.
    pub fn wants_write(&self) -> bool {
        match self {
            Self::Plaintext(_) => false,
            Self::Tls(secured) => secured.session.wants_write(),
        }
    }

    /// Whether requests can be sent.
    pub fn takes_requests(&self) -> bool {
        match self {
            Self::Plaintext(_) => true,
            Self::Tls(secured) => !secured.session.is_handshaking(),
        }
    }

    /// Whether the TLS handshake waits for the broker's first byte.
    pub fn waits_for_tls(&self) -> bool {
        matches!(self, Self::Tls(secured) if !secured.has_received)
    }

    /// Whether more bytes may be available after a short read.
    pub fn may_hold_more(&self) -> bool {
        matches!(self, Self::Tls(_))
    }
}

impl Secured {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.session.read(out) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                done => return done,
            }
            if self.at == self.end {
                (self.at, self.end) = (0, self.socket.read(&mut self.arrivals)?);
                if self.end == 0 {
                    return self.ended();
                }
                self.has_received = true;
            }
            match self.session.take(&self.arrivals[self.at..self.end]) {
                Ok(taken) => self.at += taken,
                Err(error) => {
                    // The alert may be lost: the connection has failed in any case.
                    let _ = self.flush();
                    return Err(io::Error::new(io::ErrorKind::InvalidData, error));
                }
            }
            self.flush()?;
        }
    }

    /// The broker's socket has ended. Frames have their length, so that a session without a close alert loses nothing
    /// unnoticed.
    fn ended(&self) -> io::Result<usize> {
        if self.session.is_handshaking() {
            let detail =
                "the broker closed the connection in the middle of the TLS handshake: its listener may speak no TLS";
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, detail));
        }
        Ok(0)
    }

    fn flush(&mut self) -> io::Result<()> {
        while self.session.wants_write() {
            match self.session.write_tls(&mut self.socket) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

impl AsFd for Transport {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket().as_fd()
    }
}

/// The TLS error inside of a transport's error.
pub fn tls_failure(error: &io::Error) -> Option<&TlsError> {
    error.get_ref().and_then(|inner| inner.downcast_ref())
}
