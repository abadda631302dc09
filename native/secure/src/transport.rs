//! How the bytes of a connection come and go: as they are, or through TLS. Everything that touches its socket does it here.
//!
//! Must not know frames or requests. With TLS decrypted bytes may lie inside while the socket is empty: who reads goes on
//! until `WouldBlock` ([`Transport::may_hold_more`]). Nothing of a request leaves before the handshake is over, so that
//! there is nothing to write for as long ([`Transport::takes_requests`]).

use std::io::{self, IoSlice, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};

use socket2::Socket;

use pybroker_tls::{TlsError, TlsSession};

/// Ciphertext that one call of the system reads.
const CIPHERTEXT: usize = 64 * 1024;

/// See the module.
#[derive(Debug)]
pub enum Transport {
    Plaintext(Socket),
    Tls(Box<Secured>),
}

/// A socket and the session over it.
#[derive(Debug)]
pub struct Secured {
    socket: Socket,
    session: TlsSession,
    /// Ciphertext that came, of which `at..end` was not taken yet.
    came: Box<[u8]>,
    at: usize,
    end: usize,
    /// Bytes have arrived from the broker.
    has_received: bool,
}

impl Transport {
    /// Over a socket that is connecting; `session`: through TLS.
    pub fn new(socket: Socket, session: Option<TlsSession>) -> Self {
        match session {
            None => Self::Plaintext(socket),
            Some(session) => {
                let came = vec![0; CIPHERTEXT].into_boxed_slice();
                Self::Tls(Box::new(Secured { socket, session, came, at: 0, end: 0, has_received: false }))
            }
        }
    }

    /// Why connecting failed, where it did.
    pub fn take_error(&self) -> io::Result<Option<io::Error>> {
        self.socket().take_error()
    }

    fn socket(&self) -> &Socket {
        match self {
            Self::Plaintext(socket) => socket,
            Self::Tls(secured) => &secured.socket,
        }
    }

    /// Reads; 0: the broker has closed the connection.
    ///
    /// # Errors
    /// `WouldBlock`: nothing is there. A [`TlsError`] comes inside of the error.
    pub fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plaintext(socket) => socket.read(out),
            Self::Tls(secured) => secured.read(out),
        }
    }

    /// Takes bytes of requests, and returns how many.
    ///
    /// # Errors
    /// `WouldBlock`: none can be taken now.
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

    /// Sends what was taken and lies here, as far as the socket takes it.
    pub fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plaintext(_) => Ok(()),
            Self::Tls(secured) => secured.flush(),
        }
    }

    /// Whether something lies here that waits for the socket to take it.
    pub fn wants_write(&self) -> bool {
        match self {
            Self::Plaintext(_) => false,
            Self::Tls(secured) => secured.session.wants_write(),
        }
    }

    /// Whether requests can leave.
    pub fn takes_requests(&self) -> bool {
        match self {
            Self::Plaintext(_) => true,
            Self::Tls(secured) => !secured.session.is_handshaking(),
        }
    }

    /// Whether the handshake of TLS waits for the broker's first byte.
    pub fn waits_for_tls(&self) -> bool {
        matches!(self, Self::Tls(secured) if !secured.has_received)
    }

    /// Whether a read that gave less than was asked for says nothing about the next one.
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
                (self.at, self.end) = (0, self.socket.read(&mut self.came)?);
                if self.end == 0 {
                    return self.ended();
                }
                self.has_received = true;
            }
            match self.session.take(&self.came[self.at..self.end]) {
                Ok(taken) => self.at += taken,
                Err(error) => {
                    // The alert is a courtesy: the connection is over either way.
                    let _ = self.flush();
                    return Err(io::Error::new(io::ErrorKind::InvalidData, error));
                }
            }
            self.flush()?;
        }
    }

    /// The broker's socket has ended. Frames carry their lengths, so that a session without an end loses nothing unseen.
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

/// What TLS says in an error of a transport.
pub fn tls_failure(error: &io::Error) -> Option<&TlsError> {
    error.get_ref().and_then(|inner| inner.downcast_ref())
}
