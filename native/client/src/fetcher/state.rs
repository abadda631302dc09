//! What a fetcher's caller and its I/O thread share.

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

/// See the module.
#[derive(Debug)]
pub struct FetcherState {
    pub config: FetcherConfig,
    pub inbox: Mutex<Inbox>,
    pub arrived: Condvar,
    /// Raised when something arrived, for an event loop.
    pub signal: Signal,
    pub waker: Arc<Waker>,
    pub pool: Arc<BufferPool>,
    pub counters: Arc<Counters>,
    pub closed: AtomicBool,
    /// One side does not believe the other: nothing will arrive.
    pub refusal: Mutex<Option<ClientError>>,
}

impl FetcherState {
    /// Whether another response may be asked for.
    pub fn has_room(&self) -> bool {
        self.inbox.lock().waiting_responses() < self.config.queued_responses
    }

    /// Hand a response's chunks over.
    pub fn deliver(&self, chunks: Vec<(Mark, Chunk)>) {
        if self.inbox.lock().deliver(chunks) {
            self.announce();
        }
    }

    /// Report to the caller where a partition begins.
    pub fn found(&self, key: &(Arc<str>, i32), mark: Mark, offset: i64) {
        self.inbox.lock().found(key, mark, offset);
        self.announce();
    }

    /// Report to the caller a failure that a partition met.
    pub fn deliver_error(&self, mark: Mark, error: ClientError) {
        if self.inbox.lock().deliver_error(mark, error) {
            self.announce();
        }
    }

    /// Report to the caller that no broker will let this client in, or that one did.
    pub fn set_refusal(&self, refusal: Option<ClientError>) {
        let is_refused = refusal.is_some();
        let was_refused = std::mem::replace(&mut *self.refusal.lock(), refusal).is_some();
        if is_refused && !was_refused {
            self.announce();
        }
    }

    /// Wakes those who wait for records, and the loop that watches the descriptor.
    pub fn announce(&self) {
        self.arrived.notify_one();
        self.signal.raise();
    }
}
