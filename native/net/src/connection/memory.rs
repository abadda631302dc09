//! The memory that a connection takes: for the request that it receives, and for the answers that its peer has not read.

use super::{Connection, READ_AHEAD_BYTES, READ_BYTES};

/// An empty input buffer larger than this is given back when the connection idles.
const KEEP_BYTES: usize = 64 << 10;

impl Connection {
    /// Whether the input buffer is one that only a large request needs.
    pub fn has_large_buffer(&self) -> bool {
        self.input.capacity() > READ_AHEAD_BYTES
    }

    /// Size of the frame that has begun and not yet arrived, where more than one small read is needed for it and no
    /// memory is taken for it yet.
    pub fn wanted_memory(&self) -> Option<u64> {
        let size = self.input[self.consumed..].first_chunk::<4>()?;
        let size = u64::from(u32::from_be_bytes(*size));
        (self.reserved == 0 && size > READ_BYTES as u64).then_some(size)
    }

    /// Memory was taken for the request that is being received.
    pub fn reserve(&mut self, bytes: u64) {
        (self.reserved, self.received) = (bytes, false);
    }

    /// What was taken for a request, if that is done with: it is to be given back.
    pub fn release_reserved(&mut self) -> u64 {
        let done = self.received && self.control.is_none() && self.parked.is_none();
        if done { std::mem::take(&mut self.reserved) } else { 0 }
    }

    /// What was taken for a request, whether that is done with or not: the connection ends.
    pub fn take_reserved(&mut self) -> u64 {
        std::mem::take(&mut self.reserved)
    }

    /// Memory of the answers that wait here, as all connections' sum knows it and as it is now.
    pub fn account(&mut self) -> Option<(u64, u64)> {
        let before = std::mem::replace(&mut self.accounted, self.memory);
        (before != self.memory).then_some((before, self.memory))
    }

    /// Memory of the answers and the waiting requests.
    pub fn memory(&self) -> u64 {
        self.memory
    }

    /// Gives back memory that an idle connection does not need.
    pub fn trim(&mut self) {
        if self.consumed == self.input.len() && self.input.capacity() > KEEP_BYTES {
            self.input = Vec::new();
            self.consumed = 0;
        }
    }
}
