//! The state shared by a fetcher's caller and its I/O thread.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use parking_lot::{Condvar, Mutex};

use super::chunk::Chunk;
use super::inbox::{Inbox, Mark};
use crate::config::FetcherConfig;
use crate::counters::Counters;
use crate::error::ClientError;
use crate::network::pool::BufferPool;
use crate::network::waker::{Signal, Waker};

/// The shared state of a fetcher.
#[derive(Debug)]
pub struct FetcherState {
    pub config: FetcherConfig,
    pub inbox: Mutex<Inbox>,
    pub arrived: Condvar,
    /// Raised when a chunk or an error has arrived, for an event loop.
    pub signal: Signal,
    pub waker: Arc<Waker>,
    pub pool: Arc<BufferPool>,
    pub counters: Arc<Counters>,
    pub closed: AtomicBool,
    /// Why authentication failed: nothing will arrive.
    pub refusal: Mutex<Option<ClientError>>,
}

impl FetcherState {
    /// Whether another response may be requested.
    pub fn has_capacity(&self) -> bool {
        self.inbox.lock().waiting_responses() < self.config.queued_responses
    }

    /// Add a response's chunks for the caller.
    pub fn deliver(&self, chunks: Vec<(Mark, Chunk)>) {
        if self.inbox.lock().deliver(chunks) {
            self.announce();
        }
    }

    /// Set the start offset of a partition, after its look-up.
    pub fn found(&self, key: &(Arc<str>, i32), mark: Mark, offset: i64) {
        self.inbox.lock().found(key, mark, offset);
        self.announce();
    }

    /// Add a partition's error for the caller.
    pub fn deliver_error(&self, mark: Mark, error: ClientError) {
        if self.inbox.lock().deliver_error(mark, error) {
            self.announce();
        }
    }

    /// Set or clear the authentication failure.
    pub fn set_refusal(&self, refusal: Option<ClientError>) {
        let is_refused = refusal.is_some();
        let was_refused = std::mem::replace(&mut *self.refusal.lock(), refusal).is_some();
        if is_refused && !was_refused {
            self.announce();
        }
    }

    /// Wake the callers that wait for records, and the event loop that polls the descriptor.
    pub fn announce(&self) {
        self.arrived.notify_one();
        self.signal.raise();
    }
}
