//! Which clients are known, and what the entities that share quotas have used: as much as memory is allowed for.
//!
//! An entity's use is one for all who hold it, so it is not dropped while a connection or a client that is known does:
//! there would be two counts of it.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::QuotaSettings;
use super::entity::Entity;
use super::metered::{ClientQuotas, Limited, Meter};

/// A keyed hash of a client or an entity.
pub type Key = (u64, u64);

/// How often what has been idle for long is looked for.
const LOOK_EVERY_MS: u64 = 60_000;

#[derive(Debug)]
struct Client {
    quotas: Option<Arc<ClientQuotas>>,
    /// When a connection last asked for it.
    asked_ms: u64,
}

/// See the module.
#[derive(Debug)]
pub struct Clients {
    settings: QuotaSettings,
    known: FxHashMap<Key, Client>,
    meters: FxHashMap<Key, Arc<Meter>>,
    looked_ms: u64,
}

impl Clients {
    /// Nobody is known.
    pub fn new(settings: QuotaSettings) -> Self {
        Self { settings, known: FxHashMap::default(), meters: FxHashMap::default(), looked_ms: 0 }
    }

    /// The quotas of a client, where they are known.
    pub fn known(&mut self, client: Key, now_ms: u64) -> Option<Option<Arc<ClientQuotas>>> {
        let known = self.known.get_mut(&client)?;
        known.asked_ms = now_ms;
        Some(known.quotas.clone())
    }

    /// Remembers the quotas of a client.
    pub fn note(&mut self, client: Key, quotas: Option<Arc<ClientQuotas>>, now_ms: u64) {
        self.make_room(now_ms);
        self.known.insert(client, Client { quotas, asked_ms: now_ms });
    }

    /// Forgets every client, as other quotas are in force; what entities have used is kept.
    pub fn forget_clients(&mut self) {
        self.known.clear();
    }

    /// A limit, and what its entity has used.
    pub fn limited(&mut self, key: Key, per_second: f64, now_ms: u64, entity: impl FnOnce() -> Entity) -> Limited {
        let window = self.settings.window;
        let meter = self.meters.entry(key).or_insert_with(|| Arc::new(Meter::new(entity(), window, now_ms)));
        Limited { per_second, meter: Arc::clone(meter) }
    }

    /// What entities have used that are not to be forgotten yet.
    pub fn meters(&self, now_ms: u64) -> Vec<Arc<Meter>> {
        let is_known = |meter: &&Arc<Meter>| meter.idle_ms(now_ms) < self.settings.forgotten_after_ms;
        self.meters.values().filter(is_known).map(Arc::clone).collect()
    }

    /// How many clients and how many entities are remembered.
    #[cfg(test)]
    pub fn len(&self) -> (usize, usize) {
        (self.known.len(), self.meters.len())
    }

    /// Drops what has been idle for long, and the longest idle where there is too much.
    fn make_room(&mut self, now_ms: u64) {
        let QuotaSettings { remembered, forgotten_after_ms, .. } = self.settings;
        if now_ms >= self.looked_ms + LOOK_EVERY_MS {
            self.looked_ms = now_ms;
            self.known.retain(|_, client| now_ms.saturating_sub(client.asked_ms) < forgotten_after_ms);
            self.meters.retain(|_, meter| meter.is_held() || meter.idle_ms(now_ms) < forgotten_after_ms);
        }
        if self.known.len() >= remembered {
            let since = oldest_quarter(self.known.values().map(|client| client.asked_ms));
            self.known.retain(|_, client| client.asked_ms > since);
        }
        if self.meters.len() >= remembered {
            let idle = self.meters.values().filter(|meter| !meter.is_held()).map(|meter| meter.used_ms());
            let since = oldest_quarter(idle);
            self.meters.retain(|_, meter| meter.is_held() || meter.used_ms() > since);
        }
    }
}

/// The time that a quarter of all is not later than: of what was used last at these times, the quarter that goes.
fn oldest_quarter(times: impl Iterator<Item = u64>) -> u64 {
    let mut times: Vec<_> = times.collect();
    let quarter = times.len() / 4;
    if times.is_empty() { 0 } else { *times.select_nth_unstable(quarter).1 }
}
