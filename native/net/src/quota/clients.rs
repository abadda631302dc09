//! The cache of clients' quotas, and the usage of the entities that share quotas, within a memory limit.
//!
//! An entity's usage is shared by all its clients. It is not dropped while a cached client or a connection refers to it:
//! there would be two usages of one entity.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::QuotaSettings;
use super::entity::Entity;
use super::metered::{ClientQuotas, Limited, Meter};

/// A keyed hash of a client or an entity.
pub type Key = (u64, u64);

/// Interval of removing idle entries.
const LOOK_EVERY_MS: u64 = 60_000;

#[derive(Debug)]
struct Client {
    quotas: Option<Arc<ClientQuotas>>,
    /// When a connection last requested it.
    requested_ms: u64,
}

/// The cached clients and the usage of entities.
#[derive(Debug)]
pub struct Clients {
    settings: QuotaSettings,
    known: FxHashMap<Key, Client>,
    meters: FxHashMap<Key, Arc<Meter>>,
    looked_ms: u64,
}

impl Clients {
    /// Without clients.
    pub fn new(settings: QuotaSettings) -> Self {
        Self { settings, known: FxHashMap::default(), meters: FxHashMap::default(), looked_ms: 0 }
    }

    /// The quotas of a client, if cached.
    pub fn known(&mut self, client: Key, now_ms: u64) -> Option<Option<Arc<ClientQuotas>>> {
        let known = self.known.get_mut(&client)?;
        known.requested_ms = now_ms;
        Some(known.quotas.clone())
    }

    /// Caches the quotas of a client.
    pub fn note(&mut self, client: Key, quotas: Option<Arc<ClientQuotas>>, now_ms: u64) {
        self.make_space(now_ms);
        self.known.insert(client, Client { quotas, requested_ms: now_ms });
    }

    /// Drops all clients, as other quotas are in force; the usage of entities is kept.
    pub fn forget_clients(&mut self) {
        self.known.clear();
    }

    /// A limit with its entity's usage.
    pub fn limited(&mut self, key: Key, per_second: f64, now_ms: u64, entity: impl FnOnce() -> Entity) -> Limited {
        let window = self.settings.window;
        let meter = self.meters.entry(key).or_insert_with(|| Arc::new(Meter::new(entity(), window, now_ms)));
        Limited { per_second, meter: Arc::clone(meter) }
    }

    /// The usage of entities that have not been idle for too long.
    pub fn meters(&self, now_ms: u64) -> Vec<Arc<Meter>> {
        let is_known = |meter: &&Arc<Meter>| meter.idle_ms(now_ms) < self.settings.forgotten_after_ms;
        self.meters.values().filter(is_known).map(Arc::clone).collect()
    }

    /// The numbers of cached clients and of entities.
    #[cfg(test)]
    pub fn len(&self) -> (usize, usize) {
        (self.known.len(), self.meters.len())
    }

    /// Removes entries that have been idle for long, and the longest idle quarter if there are too many.
    fn make_space(&mut self, now_ms: u64) {
        let QuotaSettings { remembered, forgotten_after_ms, .. } = self.settings;
        if now_ms >= self.looked_ms + LOOK_EVERY_MS {
            self.looked_ms = now_ms;
            self.known.retain(|_, client| now_ms.saturating_sub(client.requested_ms) < forgotten_after_ms);
            self.meters.retain(|_, meter| meter.is_held() || meter.idle_ms(now_ms) < forgotten_after_ms);
        }
        if self.known.len() >= remembered {
            let since = oldest_quarter(self.known.values().map(|client| client.requested_ms));
            self.known.retain(|_, client| client.requested_ms > since);
        }
        if self.meters.len() >= remembered {
            let idle = self.meters.values().filter(|meter| !meter.is_held()).map(|meter| meter.used_ms());
            let since = oldest_quarter(idle);
            self.meters.retain(|_, meter| meter.is_held() || meter.used_ms() > since);
        }
    }
}

/// The largest time of the oldest quarter of these times: the quarter to remove.
fn oldest_quarter(times: impl Iterator<Item = u64>) -> u64 {
    let mut times: Vec<_> = times.collect();
    let quarter = times.len() / 4;
    if times.is_empty() { 0 } else { *times.select_nth_unstable(quarter).1 }
}
