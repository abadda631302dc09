//! The state shared by a producer's callers and its I/O thread.

use std::sync::Arc;

use parking_lot::{Condvar, Mutex};

use super::accumulator::Accumulator;
use super::destination::Directory;
use super::failures::Failures;
use super::observer::DeliveryObserver;
use super::transaction::Transactions;
use crate::config::ProducerConfig;
use crate::error::ClientError;
use crate::network::waker::Waker;
use pybroker_wire::init_producer_id::ProducerIdentity;

/// The shared state of a producer.
#[derive(Debug)]
pub struct ProducerState {
    pub config: ProducerConfig,
    pub accumulator: Accumulator,
    pub observer: Option<Arc<dyn DeliveryObserver>>,
    pub directory: Mutex<Directory>,
    pub directory_changed: Condvar,
    pub waker: Arc<Waker>,
    /// The first failure of a record, for tools that only count.
    pub first_failure: Mutex<Option<ClientError>>,
    pub failures: Failures,
    /// Why no broker can be reached.
    pub network_failure: Mutex<Option<ClientError>>,
    /// Why authentication failed: waiting is useless.
    pub refusal: Mutex<Option<ClientError>>,
    /// The last result of InitProducerId.
    pub identity: Mutex<Option<Result<ProducerIdentity, ClientError>>>,
    pub identity_changed: Condvar,
    pub transactions: Transactions,
}

impl ProducerState {
    /// Wake the callers that wait for a topic: its metadata has arrived, or the producer has ended.
    pub fn notify_topics(&self) {
        self.directory_changed.notify_all();
        self.accumulator.signal.raise();
    }

    /// Set or clear the authentication failure, and wake the callers that wait.
    pub fn set_refusal(&self, refusal: Option<ClientError>) {
        let is_refused = refusal.is_some();
        let was_refused = std::mem::replace(&mut *self.refusal.lock(), refusal).is_some();
        if is_refused && !was_refused {
            self.notify_topics();
            self.identity_changed.notify_all();
        }
    }

    /// Set the result of InitProducerId, and wake the callers that wait for it; `None` while a request is in flight.
    pub fn set_identity(&self, identity: Option<Result<ProducerIdentity, ClientError>>) {
        *self.identity.lock() = identity;
        self.identity_changed.notify_all();
    }
}
