//! Client quotas: limits on bytes sent, bytes received and request time in a second (KIP-13, KIP-55, KIP-124).
//!
//! Owns the recent usage of each entity, and the cached quotas of clients. A quota is shared by all connections of its
//! entity, on all processors; a client without quotas costs one load and a branch (docs/adr/0061). Must not know which
//! entity's quota applies to a client: the control plane returns it once for a principal with a client id, and again after a
//! change of quotas.

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

/// The settings of quotas; complete, no value has a default here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuotaSettings {
    /// `quota.window.*`.
    pub window: Window,
    /// The most cached clients, and the most entities beyond those of open connections; those idle for longest are removed
    /// first.
    pub remembered: usize,
    /// Idle time after which they are removed, in milliseconds.
    pub forgotten_after_ms: u64,
}

/// The limited resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum QuotaKind {
    /// Bytes of Produce requests a second: `producer_byte_rate`.
    Produce,
    /// Bytes of Fetch responses a second: `consumer_byte_rate`.
    Fetch,
    /// Percent of a thread's time: `request_percentage`.
    Request,
}

/// A quota from the control plane, and the entity that shares it.
#[derive(Clone, Debug, PartialEq)]
pub struct QuotaLimit {
    pub per_second: f64,
    /// The user that shares it; `None` for all users together.
    pub user: Option<String>,
    /// The client id that shares it; `None` for all client ids together.
    pub client_id: Option<String>,
}

/// The quotas that apply to a client.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClientLimits {
    pub produce: Option<QuotaLimit>,
    pub fetch: Option<QuotaLimit>,
    pub request: Option<QuotaLimit>,
}

/// The quotas of all clients of a data plane.
#[derive(Debug)]
pub struct Quotas {
    /// The version of the quotas in force; 0 for no quotas.
    version: AtomicU64,
    clients: Mutex<Clients>,
    keys: [RandomState; 2],
}

impl Quotas {
    /// Without cached clients.
    pub fn new(settings: QuotaSettings) -> Self {
        let keys = [RandomState::new(), RandomState::new()];
        Self { version: AtomicU64::new(0), clients: Mutex::new(Clients::new(settings)), keys }
    }

    /// The version of the quotas in force; 0 if no client has quotas.
    pub fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// Sets the version of the quotas: those of every client are requested again. Usage is kept.
    pub fn set_version(&self, version: u64) {
        self.clients.lock().forget_clients();
        self.version.store(version, Ordering::Release);
    }

    /// The key of a client: a hash under keys of this process, as client ids may be long.
    fn client(&self, identity: &Identity, client_id: &str) -> Key {
        self.key(&(identity, client_id))
    }

    fn key(&self, of: &impl std::hash::Hash) -> Key {
        (self.keys[0].hash_one(of), self.keys[1].hash_one(of))
    }

    /// The quotas of a client if cached; `Some(None)`: it has none.
    fn known(&self, client: Key, now_ms: u64) -> Option<Option<Arc<ClientQuotas>>> {
        self.clients.lock().known(client, now_ms)
    }

    /// Caches the quotas that the control plane has returned for a client, from quotas of `version`.
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
