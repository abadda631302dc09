//! Client quotas: what clients may send, receive and have done in a second (KIP-13, KIP-55, KIP-124).
//!
//! Owns what clients have used of late, by whom the control plane says a quota is shared, and which quotas it has named for
//! whom. A quota is shared by all connections of its entity, on all processors; who has none meets one load and a branch
//! (docs/adr/0061). Must not know which entity's quota binds a client: that is asked of the control plane once for a
//! principal with a client id, and again when a quota has changed.

mod clients;
mod entity;
mod metered;
mod metering;
mod rate;
mod uses;

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::connection::identity::Identity;
use clients::{Clients, Key};
use entity::Entity;
pub use metered::{ClientQuotas, Metered, Throttle};
pub use metering::Metering;
pub use rate::Window;
pub use uses::QuotaUse;

/// What quotas are measured by; complete, nothing has a default here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuotaSettings {
    /// `quota.window.*`.
    pub window: Window,
    /// Clients that are remembered, and entities whose use is, beyond those of open connections; those that have been
    /// idle longest go first.
    pub remembered: usize,
    /// After how long without a request they are forgotten, in milliseconds.
    pub forgotten_after_ms: u64,
}

/// What is limited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum QuotaKind {
    /// Bytes of Produce requests a second: `producer_byte_rate`.
    Produce,
    /// Bytes of answers to Fetch a second: `consumer_byte_rate`.
    Fetch,
    /// Percent of a thread's time: `request_percentage`.
    Request,
}

/// A quota as the control plane names it, and who shares it.
#[derive(Clone, Debug, PartialEq)]
pub struct QuotaLimit {
    pub per_second: f64,
    /// The user whose connections share it; `None`: the users of all connections do.
    pub user: Option<String>,
    /// The client id whose connections share it; `None`: whatever they call themselves.
    pub client_id: Option<String>,
}

/// The quotas that bind a client.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClientLimits {
    pub produce: Option<QuotaLimit>,
    pub fetch: Option<QuotaLimit>,
    pub request: Option<QuotaLimit>,
}

/// The quotas of all clients of a data plane.
#[derive(Debug)]
pub struct Quotas {
    /// Of the quotas in force; 0: there are none.
    version: AtomicU64,
    clients: Mutex<Clients>,
    keys: [RandomState; 2],
}

impl Quotas {
    /// Quotas of which nothing is known yet.
    pub fn new(settings: QuotaSettings) -> Self {
        let keys = [RandomState::new(), RandomState::new()];
        Self { version: AtomicU64::new(0), clients: Mutex::new(Clients::new(settings)), keys }
    }

    /// The version of the quotas in force; 0 where nobody has any.
    pub fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// Puts other quotas in force: every client is asked about again. What was used stays counted.
    pub fn set_version(&self, version: u64) {
        self.clients.lock().forget_clients();
        self.version.store(version, Ordering::Release);
    }

    /// What stands for a client: a hash under keys of this process, as client ids are as long as clients want.
    fn client(&self, identity: &Identity, client_id: &str) -> Key {
        self.key(&(identity, client_id))
    }

    fn key(&self, of: &impl std::hash::Hash) -> Key {
        (self.keys[0].hash_one(of), self.keys[1].hash_one(of))
    }

    /// The quotas of a client where they are known; `Some(None)`: it has none.
    fn known(&self, client: Key, now_ms: u64) -> Option<Option<Arc<ClientQuotas>>> {
        self.clients.lock().known(client, now_ms)
    }

    /// Remembers what the control plane has said of a client by quotas of `version`.
    fn note(&self, client: Key, version: u64, limits: &ClientLimits, now_ms: u64) -> Option<Arc<ClientQuotas>> {
        let mut clients = self.clients.lock();
        let mut bound = |kind: QuotaKind, limit: &Option<QuotaLimit>| {
            let limit: &QuotaLimit = limit.as_ref()?;
            let key = self.key(&(kind, &limit.user, &limit.client_id));
            Some(clients.limited(key, limit.per_second, now_ms, || Entity::new(kind, limit, key.1)))
        };
        let quotas = ClientQuotas {
            produce: bound(QuotaKind::Produce, &limits.produce),
            fetch: bound(QuotaKind::Fetch, &limits.fetch),
            request: bound(QuotaKind::Request, &limits.request),
        };
        let quotas = quotas.has_any().then(|| Arc::new(quotas));
        if self.version() == version {
            clients.note(client, quotas.clone(), now_ms);
        }
        quotas
    }
}

#[cfg(test)]
mod tests;
