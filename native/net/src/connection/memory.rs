//! The memory of a connection: for the request that it receives, and for responses that its peer has not read.

use super::{Connection, READ_AHEAD_BYTES, READ_BYTES};

/// An empty input buffer larger than this is freed when the connection is idle.
const KEEP_BYTES: usize = 64 << 10;

impl Connection {
    /// Whether the input buffer is as large as only a large request needs.
    pub fn has_large_buffer(&self) -> bool {
        self.input.capacity() > READ_AHEAD_BYTES
    }

    /// Size of the incomplete frame in the buffer, if it needs more than one small read and no memory is reserved for it
    /// yet.
    pub fn wanted_memory(&self) -> Option<u64> {
        let size = self.input[self.consumed..].first_chunk::<4>()?;
        let size = u64::from(u32::from_be_bytes(*size));
        (self.reserved == 0 && size > READ_BYTES as u64).then_some(size)
    }

    /// Records the memory reserved for the request that is being received.
    pub fn reserve(&mut self, bytes: u64) {
        (self.reserved, self.received) = (bytes, false);
    }

    /// The bytes reserved for a completed request, to be released; 0 if it is not complete.
    pub fn release_reserved(&mut self) -> u64 {
        let done = self.received && self.control.is_none() && self.reading.delayed().is_none();
        if done { std::mem::take(&mut self.reserved) } else { 0 }
    }

    /// The bytes reserved for a request, complete or not: the connection ends.
    pub fn take_reserved(&mut self) -> u64 {
        std::mem::take(&mut self.reserved)
    }

    /// The memory of the responses of this connection: the last reported value and the current one; `None` if equal.
    pub fn account(&mut self) -> Option<(u64, u64)> {
        let before = std::mem::replace(&mut self.accounted, self.memory);
        (before != self.memory).then_some((before, self.memory))
    }

    /// Memory of the responses and the waiting requests.
    pub fn memory(&self) -> u64 {
        self.memory
    }

    /// Frees memory that an idle connection does not need.
    pub fn trim(&mut self) {
        if self.consumed == self.input.len() && self.input.capacity() > KEEP_BYTES {
            self.input = Vec::new();
            self.consumed = 0;
        }
    }
}
