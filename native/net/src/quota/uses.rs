//! The usage of quotas by entity, for metrics: Kafka's `byte-rate`, `request-time` and `throttle-time` of
//! `kafka.server:type={Produce,Fetch,Request}`, as monotonic counters (docs/adr/0092).
//!
//! Selects the entities to show: those with the highest usage.

use std::cmp::Reverse;

use super::{QuotaKind, Quotas};

/// The usage of one quota by one entity, since the entity is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuotaUse {
    /// Empty if users share the quota.
    pub user: String,
    /// Empty if client ids share the quota.
    pub client_id: String,
    /// Bytes; for [`QuotaKind::Request`] nanoseconds of a thread.
    pub used: u64,
    /// Sum of its clients' throttle times for this quota, in milliseconds.
    pub throttled_ms: u64,
}

impl Quotas {
    /// The `most` entities with the highest usage of a quota, and the number of entities left out. Entities that have been
    /// idle for too long are not counted.
    pub fn uses(&self, kind: QuotaKind, most: usize, now_ms: u64) -> (Vec<QuotaUse>, usize) {
        let meters = self.clients.lock().meters(now_ms);
        // Counters that change during the sort would have no order.
        let mut found: Vec<_> =
            meters.iter().filter(|meter| meter.entity.kind == kind).map(|meter| (meter.used(), meter)).collect();
        let left_out = found.len().saturating_sub(most);
        if left_out > 0 {
            if most > 0 {
                found.select_nth_unstable_by_key(most - 1, |(used, _)| Reverse(*used));
            }
            found.truncate(most);
        }
        let mut uses: Vec<_> = found
            .into_iter()
            .map(|(used, meter)| QuotaUse {
                user: meter.entity.user.as_ref().into(),
                client_id: meter.entity.client_id.as_ref().into(),
                used,
                throttled_ms: meter.throttled_ms(),
            })
            .collect();
        uses.sort_unstable_by(|a, b| (&a.user, &a.client_id).cmp(&(&b.user, &b.client_id)));
        (uses, left_out)
    }
}
