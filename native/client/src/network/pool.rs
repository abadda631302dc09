//! Buffers that are reused instead of freed: fresh memory costs page faults, used memory does not.

use parking_lot::Mutex;

/// A bounded stack of byte buffers, shared by the I/O thread and the callers.
#[derive(Debug)]
pub struct BufferPool {
    spare: Mutex<Vec<Vec<u8>>>,
    most: usize,
}

impl BufferPool {
    /// Keeps at most `most` buffers.
    pub fn new(most: usize) -> Self {
        Self { spare: Mutex::new(Vec::with_capacity(most)), most }
    }

    /// A used buffer, if there is one; its length and content are arbitrary.
    pub fn take(&self) -> Option<Vec<u8>> {
        self.spare.lock().pop()
    }

    /// Return a buffer; it is dropped if the pool is full.
    pub fn put(&self, buffer: Vec<u8>) {
        let mut spare = self.spare.lock();
        if spare.len() < self.most && buffer.capacity() > 0 {
            spare.push(buffer);
        }
    }
}
