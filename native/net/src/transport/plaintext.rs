//! Plaintext: bytes unencrypted, records from the page cache to the socket by `sendfile`.

use std::io;
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};

use super::Received;
use pybroker_storage::FileSlice;

/// The most bytes of one `sendfile`, so that other connections are served in between.
const SENDFILE_BYTES: usize = 1 << 20;

/// A TCP socket that never blocks.
#[derive(Debug)]
pub struct Plaintext {
    stream: TcpStream,
}

impl Plaintext {
    /// Sets the socket's options.
    pub fn new(stream: TcpStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        stream.set_nodelay(true)?;
        Ok(Self { stream })
    }

    /// See [`super::Transport::receive`].
    pub fn receive(&mut self, input: &mut Vec<u8>) -> Result<Received, Errno> {
        let capacity = input.capacity() - input.len();
        let (bytes, _) = rustix::net::recv(&self.stream, rustix::buffer::spare_capacity(input), RecvFlags::empty())?;
        Ok(Received { bytes, more: bytes == capacity })
    }

    /// See [`super::Transport::receive_into`].
    pub fn receive_into(&mut self, capacity: &mut [u8]) -> Result<Received, Errno> {
        let wanted = capacity.len();
        let (bytes, _) = rustix::net::recv(&self.stream, capacity, RecvFlags::empty())?;
        Ok(Received { bytes, more: bytes == wanted })
    }

    /// See [`super::Transport::at_end`].
    pub fn at_end(&self) -> bool {
        let mut byte = [0_u8; 1];
        matches!(rustix::net::recv(&self.stream, &mut byte[..], RecvFlags::PEEK | RecvFlags::DONTWAIT), Ok((0, _)))
    }

    /// See [`super::Transport::send`].
    pub fn send(&mut self, bytes: &[u8], more: bool) -> Result<usize, Errno> {
        let flags = if more { SendFlags::NOSIGNAL | SendFlags::MORE } else { SendFlags::NOSIGNAL };
        rustix::net::send(&self.stream, bytes, flags)
    }

    /// See [`super::Transport::send_file`].
    pub fn send_file(&mut self, slice: &FileSlice, from: usize) -> Result<usize, Errno> {
        let mut offset = slice.position + from as u64;
        let left = (slice.len - from).min(SENDFILE_BYTES);
        match rustix::fs::sendfile(&self.stream, &*slice.file, Some(&mut offset), left)? {
            // The file ended before the slice: it was truncated after the plan. The frame cannot be completed.
            0 => Err(Errno::IO),
            sent => Ok(sent),
        }
    }
}

impl AsFd for Plaintext {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}
