//! What a producer's callers and its I/O thread share.

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

/// See the module.
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
    /// Why no broker can be reached at present.
    pub network_failure: Mutex<Option<ClientError>>,
    /// One side does not believe the other: waiting is in vain.
    pub refusal: Mutex<Option<ClientError>>,
    /// What the broker last said to InitProducerId.
    pub identity: Mutex<Option<Result<ProducerIdentity, ClientError>>>,
    pub identity_changed: Condvar,
    pub transactions: Transactions,
}

impl ProducerState {
    /// Wake the callers that wait for a topic: metadata came, or none will.
    pub fn notify_topics(&self) {
        self.directory_changed.notify_all();
        self.accumulator.signal.raise();
    }

    /// Wake the callers that wait where no broker will let this client in.
    pub fn set_refusal(&self, refusal: Option<ClientError>) {
        let is_refused = refusal.is_some();
        let was_refused = std::mem::replace(&mut *self.refusal.lock(), refusal).is_some();
        if is_refused && !was_refused {
            self.notify_topics();
            self.identity_changed.notify_all();
        }
    }

    /// Set what the broker answered to InitProducerId, and wake the callers that wait for it; `None` while it is being
    /// asked.
    pub fn set_identity(&self, identity: Option<Result<ProducerIdentity, ClientError>>) {
        *self.identity.lock() = identity;
        self.identity_changed.notify_all();
    }
}
