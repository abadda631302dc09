//! A transport for tests with rare but legal socket behaviour: it sends and receives a few bytes at a time, returns `AGAIN`
//! and `INTR` where a call would succeed, and fails at a chosen call.

use std::os::fd::{AsFd, BorrowedFd};

use rustix::io::Errno;

use super::plaintext::Plaintext;
use super::{Received, Transport};
use pybroker_storage::FileSlice;

/// Of this many calls, some return `AGAIN` or `INTR` instead.
const OUT_OF: u64 = 8;

/// A plaintext transport with a schedule of short and failed calls.
#[derive(Debug)]
pub struct Adversarial {
    socket: Plaintext,
    state: u64,
    /// The most bytes of one call.
    most: usize,
    /// The number of calls until one fails for good; `None` for never.
    until_failure: Option<u32>,
}

impl Adversarial {
    /// A transport over a connected socket; `seed` determines the schedule.
    pub fn over(stream: std::net::TcpStream, seed: u64, most: usize, until_failure: Option<u32>) -> Transport {
        let socket = Plaintext::new(stream).unwrap();
        Transport::Adversarial(Box::new(Self { socket, state: seed | 1, most, until_failure }))
    }

    /// The next number of the schedule (xorshift).
    fn roll(&mut self) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        self.state
    }

    /// The most bytes of the next call, or its error.
    fn allowance(&mut self) -> Result<usize, Errno> {
        if let Some(left) = &mut self.until_failure {
            *left = left.checked_sub(1).ok_or(Errno::CONNRESET)?;
        }
        match self.roll() % OUT_OF {
            0..3 => Err(Errno::AGAIN),
            3 => Err(Errno::INTR),
            _ => Ok(1 + self.roll() as usize % self.most),
        }
    }

    /// See [`Transport::receive`].
    pub fn receive(&mut self, input: &mut Vec<u8>) -> Result<Received, Errno> {
        let mut piece = Vec::with_capacity(self.allowance()?);
        let received = self.socket.receive(&mut piece)?;
        input.extend_from_slice(&piece);
        Ok(received)
    }

    /// See [`Transport::receive_into`].
    pub fn receive_into(&mut self, capacity: &mut [u8]) -> Result<Received, Errno> {
        let most = self.allowance()?.min(capacity.len());
        self.socket.receive_into(&mut capacity[..most])
    }

    /// See [`Transport::at_end`].
    pub fn at_end(&self) -> bool {
        self.socket.at_end()
    }

    /// See [`Transport::send`].
    pub fn send(&mut self, bytes: &[u8], more: bool) -> Result<usize, Errno> {
        let most = self.allowance()?.min(bytes.len());
        self.socket.send(&bytes[..most], more)
    }

    /// See [`Transport::send_file`].
    pub fn send_file(&mut self, slice: &FileSlice, from: usize) -> Result<usize, Errno> {
        let most = self.allowance()?.min(slice.len - from);
        let slice = FileSlice { len: from + most, ..slice.clone() };
        self.socket.send_file(&slice, from)
    }
}

impl AsFd for Adversarial {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
