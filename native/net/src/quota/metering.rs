//! The cached quotas of a connection's client, and the mute of the connection (KIP-219).

use std::sync::Arc;
use std::time::Duration;

use super::clients::Key;
use super::metered::{ClientQuotas, Metered, Throttle};
use super::{ClientLimits, Quotas};
use crate::connection::identity::Identity;

/// The longest client id that a connection keeps; a longer one is looked up at every request.
const KEPT_CLIENT_ID_BYTES: usize = 256;

/// The client of the last request.
#[derive(Debug)]
struct Client {
    version: u64,
    client_id: Box<str>,
    quotas: Option<Arc<ClientQuotas>>,
}

/// The client whose quotas are requested from the control plane.
#[derive(Debug)]
struct Requested {
    key: Key,
    client_id: Box<str>,
}

/// The quota state of a connection.
#[derive(Debug, Default)]
pub struct Metering {
    client: Option<Client>,
    requested: Option<Requested>,
    /// The end of the mute, on the data plane's clock in milliseconds.
    muted_until: Option<u64>,
    /// Whether a timer for the end is set.
    is_timed: bool,
    /// The time of the current turn that has been recorded with its request.
    counted: Duration,
}

impl Metering {
    /// Whether no further request may begin: the client's quotas are being requested, or the connection is muted.
    pub fn is_stopped(&self) -> bool {
        self.requested.is_some() || self.muted_until.is_some()
    }

    /// Whether the last request had the same client, and quotas of the same version.
    pub fn is_client(&self, version: u64, client_id: &str) -> bool {
        let Some(client) = &self.client else { return version == 0 };
        client.version == version && *client.client_id == *client_id
    }

    /// Whether the quotas of a client are known. If not, the caller requests them from the control plane, and the connection
    /// is paused until [`Metering::reported`].
    pub fn knows(&mut self, quotas: &Quotas, identity: &Identity, client_id: &str, now_ms: u64) -> bool {
        let version = quotas.version();
        if version == 0 {
            self.client = None;
            return true;
        }
        let key = quotas.client(identity, client_id);
        match quotas.known(key, now_ms) {
            Some(found) => {
                self.become_client(version, client_id.into(), found);
                true
            }
            None => {
                self.requested = Some(Requested { key, client_id: client_id.into() });
                false
            }
        }
    }

    /// Sets the quotas that the control plane has returned, from quotas of `version`. Returns whether they had been
    /// requested.
    pub fn reported(&mut self, quotas: &Quotas, version: u64, limits: &ClientLimits, now_ms: u64) -> bool {
        let Some(Requested { key, client_id }) = self.requested.take() else { return false };
        let found = quotas.note(key, version, limits, now_ms);
        self.become_client(version, client_id, found);
        true
    }

    fn become_client(&mut self, version: u64, client_id: Box<str>, quotas: Option<Arc<ClientQuotas>>) {
        // A client id that is not kept gets version 0, which equals no version in force.
        let (version, client_id) =
            if client_id.len() > KEPT_CLIENT_ID_BYTES { (0, "".into()) } else { (version, client_id) };
        self.client = Some(Client { version, client_id, quotas });
    }

    /// Forgets the client, after a reauthentication as another principal.
    pub fn forget_client(&mut self) {
        self.client = None;
    }

    fn quotas(&self) -> Option<&Arc<ClientQuotas>> {
        self.client.as_ref()?.quotas.as_ref()
    }

    /// A new request of `bytes`; `None` without a quota.
    pub fn begin(&self, bytes: usize) -> Option<Metered> {
        self.quotas().map(|quotas| Metered::begin(quotas, bytes))
    }

    /// Records the time of a request that the control plane executed; mutes the connection if its quota is exceeded.
    pub fn spend(&mut self, spent: Duration, now_ms: u64) -> Throttle {
        let throttle = self.quotas().map_or(Throttle::default(), |quotas| quotas.spend(spent, now_ms));
        self.mute(throttle.until_ms);
        throttle
    }

    /// Begins a turn of the connection; returns whether its time is limited.
    pub fn begin_turn(&mut self) -> bool {
        self.counted = Duration::ZERO;
        self.quotas().is_some_and(|quotas| quotas.counts_time())
    }

    /// Records the part of the turn that was recorded with its request.
    pub fn counted(&mut self, spent: Duration) {
        self.counted += spent;
    }

    /// Records the rest of a turn: reading and sending.
    pub fn end_turn(&mut self, spent: Duration, now_ms: u64) {
        let left = spent.saturating_sub(self.counted);
        if let Some(quotas) = self.quotas() {
            quotas.spend_quietly(left, now_ms);
        }
    }

    /// Mutes the connection until a time; an earlier time than the current end, or 0, changes nothing.
    pub fn mute(&mut self, until_ms: u64) {
        if until_ms > self.muted_until.unwrap_or(0) {
            (self.muted_until, self.is_timed) = (Some(until_ms), false);
        }
    }

    /// Whether the connection is muted and no timer is set.
    pub fn wants_timer(&self) -> bool {
        self.muted_until.is_some() && !self.is_timed
    }

    /// The time for the timer that has to be set.
    pub fn take_timer(&mut self) -> Option<u64> {
        self.muted_until.filter(|_| !std::mem::replace(&mut self.is_timed, true))
    }

    /// Ends a mute that is over. Returns whether it is; the timer of an earlier end changes nothing.
    pub fn unmute(&mut self, now_ms: u64) -> bool {
        let over = self.muted_until.is_some_and(|until| until <= now_ms);
        if over {
            self.muted_until = None;
        }
        over
    }
}
