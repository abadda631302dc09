//! TLS over another transport: encrypts what is sent, decrypts what is received.
//!
//! No decrypted byte stays inside: `receive` returns all that it decrypts, so epoll's readiness of the socket is readiness
//! of the connection. `send` encrypts a piece and returns `AGAIN` until the socket has taken its whole ciphertext. The
//! repeated call, from the same position, counts the piece. `owes` returns whether messages of the protocol itself
//! (handshake, tickets, key updates, alerts) wait for the socket.
//!
//! Buffers: a connection has memory only for an incomplete record and for unsent ciphertext. Received records are decrypted,
//! and pieces of files and responses are encrypted, in buffers of the thread.
//!
//! Source: RFC 8446, RFC 5246.

use std::cell::RefCell;
use std::fmt;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use rustix::io::Errno;
use rustls::server::UnbufferedServerConnection;
use rustls::unbuffered::{ConnectionState, EncodeError, EncryptError, UnbufferedStatus};
use rustls::{CommonState, ServerConfig};

use super::{Received, Transport};
use pybroker_storage::FileSlice;

#[cfg(test)]
mod tests;

/// The largest record on the wire (RFC 5246, 6.2.3; RFC 8446, 5.2 allows less).
const RECORD_BYTES: usize = 5 + (16 << 10) + 2048;
/// The most bytes kept of a handshake: rustls accepts no message above 64 KiB.
const HANDSHAKE_BYTES: usize = (64 << 10) + RECORD_BYTES;
/// Bytes of one read during a handshake: a peer that announces more has to send it first.
const HANDSHAKE_READ_BYTES: usize = 4 << 10;
/// The most bytes of one read.
const READ_BYTES: usize = 256 << 10;
/// Plaintext that is encrypted in one step: four records.
const PIECE_BYTES: usize = 64 << 10;
/// The most that four records and a key update before them add to their plaintext.
const OVERHEAD_BYTES: usize = 1 << 10;

thread_local! {
    /// The received bytes, behind the connection's incomplete record; decrypted in place.
    static OPENED: RefCell<Vec<u8>> = RefCell::new(vec![0; HANDSHAKE_BYTES + READ_BYTES]);
    /// A part of a segment file, before it is encrypted.
    static PIECE: RefCell<Vec<u8>> = RefCell::new(vec![0; PIECE_BYTES]);
    /// The same part, encrypted.
    static SEALED: RefCell<Vec<u8>> = RefCell::new(vec![0; PIECE_BYTES + OVERHEAD_BYTES]);
}

/// A session of the library, whose `Debug` output has no content.
struct Session(UnbufferedServerConnection);

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Session")
    }
}

/// The TLS transport.
#[derive(Debug)]
pub struct Tls {
    socket: Transport,
    session: Session,
    /// Ciphertext of an incomplete record or handshake message.
    incoming: Vec<u8>,
    /// Ciphertext for the socket; the first `sent` bytes are sent.
    outgoing: Vec<u8>,
    sent: usize,
    /// Bytes of the caller whose ciphertext is in `outgoing`, and that no call to send has counted yet.
    uncounted: usize,
    /// Whether the peer has closed its side, by an alert.
    ended: bool,
    handshaking: bool,
    /// The peer's certificate, DER, until it is taken.
    certificate: Option<Vec<u8>>,
    /// The reason why the session failed, until it is taken.
    failure: Option<String>,
    /// Whether the session has failed: nothing more is received, and only the rest of `outgoing` is sent.
    failed: bool,
}

/// The task for a session that can send.
enum Task<'a> {
    Nothing,
    Encrypt(&'a [u8], &'a mut [u8]),
    End,
}

/// The result of one step of the session.
enum Step {
    /// Another step may follow.
    Next,
    /// More bytes are needed.
    Waits,
    /// Nothing is left to do.
    Idle,
    /// This many bytes are encrypted.
    Encrypted(usize),
    /// The peer has closed its side.
    Ended,
}

impl Tls {
    /// The server side; the client begins.
    ///
    /// # Errors
    /// The library's, for settings that it rejects.
    pub fn server(socket: Transport, config: &Arc<ServerConfig>) -> Result<Self, rustls::Error> {
        Ok(Self::over(socket, Session(UnbufferedServerConnection::new(Arc::clone(config))?)))
    }

    fn over(socket: Transport, session: Session) -> Self {
        Self {
            socket,
            session,
            incoming: Vec::new(),
            outgoing: Vec::new(),
            sent: 0,
            uncounted: 0,
            ended: false,
            handshaking: true,
            certificate: None,
            failure: None,
            failed: false,
        }
    }

    /// Whether the handshake is in progress.
    pub fn is_handshaking(&self) -> bool {
        self.handshaking
    }

    /// Whether ciphertext waits for the socket.
    pub fn owes(&self) -> bool {
        !self.outgoing.is_empty()
    }

    /// The peer's certificate, DER; returned once, after the handshake.
    pub fn take_certificate(&mut self) -> Option<Vec<u8>> {
        self.certificate.take()
    }

    /// The reason why the session failed; returned once.
    pub fn take_failure(&mut self) -> Option<String> {
        self.failure.take()
    }

    /// See [`Transport::receive`].
    pub fn receive(&mut self, input: &mut Vec<u8>) -> Result<Received, Errno> {
        if self.ended {
            return Ok(Received { bytes: 0, more: false });
        }
        let capacity = input.capacity() - input.len();
        // Plaintext is shorter than its ciphertext: the spare capacity of `input` is enough.
        let (most, at_once) = if self.handshaking {
            (HANDSHAKE_BYTES, HANDSHAKE_READ_BYTES)
        } else {
            (capacity.max(RECORD_BYTES), READ_BYTES)
        };
        let wanted = most.saturating_sub(self.incoming.len()).min(at_once);
        if wanted == 0 {
            self.failure = Some("TLS: a record, or a message of a handshake, that is too long".to_owned());
            return Err(Errno::PROTO);
        }
        OPENED.with_borrow_mut(|opened| self.receive_in(opened, wanted, input))
    }

    /// Receives behind the incomplete record, in a buffer of the thread, and keeps the new incomplete record.
    fn receive_in(&mut self, opened: &mut [u8], wanted: usize, input: &mut Vec<u8>) -> Result<Received, Errno> {
        let held = self.incoming.len();
        opened[..held].copy_from_slice(&self.incoming);
        let received = self.socket.receive_into(&mut opened[held..held + wanted])?;
        if received.bytes == 0 {
            return Ok(received);
        }
        let before = input.len();
        self.incoming = Vec::new();
        let stepped = self.step_all(&mut opened[..held + received.bytes], input);
        match self.flush() {
            Ok(()) | Err(Errno::AGAIN | Errno::INTR) => {}
            Err(error) => return stepped.and(Err(error)),
        }
        stepped?;
        match input.len() - before {
            0 if !self.ended => Err(Errno::AGAIN),
            bytes => Ok(Received { bytes, more: received.more || self.ended }),
        }
    }

    /// See [`Transport::at_end`].
    pub fn at_end(&self) -> bool {
        self.ended || self.socket.at_end()
    }

    /// See [`Transport::send`].
    pub fn send(&mut self, bytes: &[u8], more: bool) -> Result<usize, Errno> {
        self.flush()?;
        if self.uncounted > 0 {
            return Ok(std::mem::take(&mut self.uncounted));
        }
        let piece = &bytes[..bytes.len().min(PIECE_BYTES)];
        SEALED.with_borrow_mut(|sealed| {
            let len = self.encrypt(piece, sealed)?;
            let sealed = &sealed[..len];
            let sent = if self.owes() { Err(Errno::AGAIN) } else { self.socket.send(sealed, more) };
            match sent {
                Ok(sent) if sent == len => return Ok(piece.len()),
                Ok(sent) => self.outgoing.extend_from_slice(&sealed[sent..]),
                Err(Errno::AGAIN | Errno::INTR) => self.outgoing.extend_from_slice(sealed),
                Err(error) => return Err(error),
            }
            self.uncounted = piece.len();
            self.flush()?;
            Ok(std::mem::take(&mut self.uncounted))
        })
    }

    /// See [`Transport::send_file`].
    pub fn send_file(&mut self, slice: &FileSlice, from: usize) -> Result<usize, Errno> {
        self.flush()?;
        if self.uncounted > 0 {
            return Ok(std::mem::take(&mut self.uncounted));
        }
        PIECE.with_borrow_mut(|piece| {
            let wanted = (slice.len - from).min(PIECE_BYTES);
            let read = slice.file.read_at(&mut piece[..wanted], slice.position + from as u64);
            match read.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))? {
                // The file ended before the slice: it was truncated after the plan. The frame cannot be completed.
                0 => Err(Errno::IO),
                read => self.send(&piece[..read], from + read < slice.len),
            }
        })
    }

    /// Sends the ciphertext that waits.
    ///
    /// # Errors
    /// As [`Transport::send`].
    pub fn flush(&mut self) -> Result<(), Errno> {
        while self.sent < self.outgoing.len() {
            self.sent += self.socket.send(&self.outgoing[self.sent..], false)?;
        }
        (self.outgoing, self.sent) = (Vec::new(), 0);
        Ok(())
    }

    /// Announces to the peer that nothing follows, as far as the socket takes that at once.
    pub fn end(&mut self) {
        if !self.handshaking {
            let _ = self.step_held(Task::End);
        }
        let _ = self.flush();
    }

    /// Encrypts a piece into `sealed`; returns the length of the ciphertext.
    fn encrypt(&mut self, piece: &[u8], sealed: &mut [u8]) -> Result<usize, Errno> {
        loop {
            match self.step_held(Task::Encrypt(piece, &mut *sealed))? {
                Step::Encrypted(len) => return Ok(len),
                Step::Next | Step::Ended => {}
                Step::Waits | Step::Idle => return Err(Errno::AGAIN),
            }
        }
    }

    /// Processes received records: plaintext is appended to `plain`, messages of the protocol to `outgoing`, and the rest is
    /// kept.
    fn step_all(&mut self, mut opened: &mut [u8], plain: &mut Vec<u8>) -> Result<(), Errno> {
        loop {
            let (done, step) = self.step(opened, plain, Task::Nothing);
            opened = &mut opened[done..];
            match step? {
                Step::Next | Step::Encrypted(_) => {}
                Step::Ended => self.ended = true,
                Step::Waits | Step::Idle => break,
            }
        }
        self.incoming = opened.to_vec();
        if self.handshaking && !self.common().is_handshaking() {
            self.handshaking = false;
            let shown = self.common().peer_certificates().and_then(|chain| chain.first());
            self.certificate = shown.map(|certificate| certificate.to_vec());
        }
        Ok(())
    }

    /// As [`Tls::step`], with only the incomplete record.
    fn step_held(&mut self, task: Task<'_>) -> Result<Step, Errno> {
        let mut held = std::mem::take(&mut self.incoming);
        let (done, step) = self.step(&mut held, &mut Vec::new(), task);
        held.drain(..done);
        self.incoming = held;
        step
    }

    /// One step of the session, and the number of received bytes that it has consumed.
    fn step(&mut self, opened: &mut [u8], plain: &mut Vec<u8>, task: Task<'_>) -> (usize, Result<Step, Errno>) {
        if self.failed {
            return (0, Err(Errno::PROTO));
        }
        let (done, step) = step(self.session.0.process_tls_records(opened), plain, &mut self.outgoing, task);
        (done.min(opened.len()), step.map_err(|error| self.fail(&error, opened)))
    }

    /// Records why the session failed, and queues the alert for the peer. The session is not used again: it would read the
    /// same bytes, which are overwritten.
    fn fail(&mut self, error: &rustls::Error, opened: &mut [u8]) -> Errno {
        self.failure = Some(self.describe(error, opened.first().copied()));
        // Pending messages are encoded in the library's order, the alert last.
        while self.common().wants_write() {
            let status = self.session.0.process_tls_records(opened);
            let (_, Ok(Step::Next)) = step(status, &mut Vec::new(), &mut self.outgoing, Task::Nothing) else { break };
        }
        self.failed = true;
        Errno::PROTO
    }

    fn describe(&self, error: &rustls::Error, first: Option<u8>) -> String {
        let begins_as_tls = matches!(first, Some(0x14..=0x17));
        match error {
            rustls::Error::InvalidMessage(_) if self.common().protocol_version().is_none() && !begins_as_tls => {
                "what it sent is no TLS, which this listener asks for: the peer may be set to PLAINTEXT or SASL_PLAINTEXT"
                    .to_owned()
            }
            error if self.handshaking => format!("the TLS handshake failed: {error}"),
            error => format!("TLS: {error}"),
        }
    }

    fn common(&self) -> &CommonState {
        &self.session.0
    }
}

impl AsFd for Tls {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.socket()
    }
}

/// Executes the session's next state. Returns the number of received bytes consumed, and the result.
fn step<Side>(
    status: UnbufferedStatus<'_, '_, Side>,
    plain: &mut Vec<u8>,
    outgoing: &mut Vec<u8>,
    task: Task<'_>,
) -> (usize, Result<Step, rustls::Error>) {
    let UnbufferedStatus { mut discard, state, .. } = status;
    let step = match state {
        Err(error) => Err(error),
        Ok(ConnectionState::ReadTraffic(mut traffic)) => {
            let mut read = Ok(Step::Next);
            while let Some(record) = traffic.next_record() {
                match record {
                    Ok(record) => {
                        discard += record.discard;
                        plain.extend_from_slice(record.payload);
                    }
                    Err(error) => read = Err(error),
                }
            }
            read
        }
        Ok(ConnectionState::EncodeTlsData(mut data)) => {
            encode(outgoing, |capacity| data.encode(capacity));
            Ok(Step::Next)
        }
        Ok(ConnectionState::TransmitTlsData(data)) => {
            data.done();
            Ok(Step::Next)
        }
        Ok(ConnectionState::WriteTraffic(mut traffic)) => match task {
            Task::Nothing => Ok(Step::Idle),
            Task::End => {
                encrypt(outgoing, |capacity| traffic.queue_close_notify(capacity));
                Ok(Step::Idle)
            }
            Task::Encrypt(piece, sealed) => match traffic.encrypt(piece, sealed) {
                Ok(len) => Ok(Step::Encrypted(len)),
                Err(error) => Err(rustls::Error::General(error.to_string())),
            },
        },
        Ok(ConnectionState::PeerClosed) => Ok(Step::Ended),
        // Closed by both sides: this state is final.
        Ok(ConnectionState::BlockedHandshake | ConnectionState::Closed) => Ok(Step::Waits),
        // Early data, which no listener offers.
        Ok(_) => Err(rustls::Error::General("a state of TLS that is not served".to_owned())),
    };
    (discard, step)
}

/// Appends the output of `write`, which returns the space that it needs.
fn encode(outgoing: &mut Vec<u8>, mut write: impl FnMut(&mut [u8]) -> Result<usize, EncodeError>) {
    let begin = outgoing.len();
    let len = match write(&mut outgoing[begin..]) {
        Err(EncodeError::InsufficientSize(needed)) => {
            outgoing.resize(begin + needed.required_size, 0);
            write(&mut outgoing[begin..]).unwrap_or(0)
        }
        Ok(len) => len,
        Err(EncodeError::AlreadyEncoded) => 0,
    };
    outgoing.truncate(begin + len);
}

/// As [`encode`].
fn encrypt(outgoing: &mut Vec<u8>, mut write: impl FnMut(&mut [u8]) -> Result<usize, EncryptError>) {
    let begin = outgoing.len();
    let len = match write(&mut outgoing[begin..]) {
        Err(EncryptError::InsufficientSize(needed)) => {
            outgoing.resize(begin + needed.required_size, 0);
            write(&mut outgoing[begin..]).unwrap_or(0)
        }
        Ok(len) => len,
        Err(EncryptError::EncryptExhausted) => 0,
    };
    outgoing.truncate(begin + len);
}
