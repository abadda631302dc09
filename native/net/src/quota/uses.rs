//! What entities have used of their quotas, for metrics: Kafka's `byte-rate`, `request-time` and `throttle-time` of
//! `kafka.server:type={Produce,Fetch,Request}`, as counts that only grow (docs/adr/0092).
//!
//! Owns who is shown: those that have used the most.

use std::cmp::Reverse;

use super::{QuotaKind, Quotas};

/// What one entity has used of one quota since it is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuotaUse {
    /// Empty where users share the quota.
    pub user: String,
    /// Empty where client ids share the quota.
    pub client_id: String,
    /// Bytes; of [`QuotaKind::Request`] nanoseconds of a thread.
    pub used: u64,
    /// Milliseconds that its clients were to wait for this quota.
    pub throttled_ms: u64,
}

impl Quotas {
    /// What entities have used of a quota, the `most` that have used the most of it; and how many others there are. Who
    /// has not been seen for as long as it takes to be forgotten is left out.
    pub fn uses(&self, kind: QuotaKind, most: usize, now_ms: u64) -> (Vec<QuotaUse>, usize) {
        let meters = self.clients.lock().meters(now_ms);
        // Numbers that change while they are compared would have no order.
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
