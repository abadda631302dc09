//! What a connection knows of its client's quotas, and until when it is muted (KIP-219).

use std::sync::Arc;
use std::time::Duration;

use super::clients::Key;
use super::metered::{ClientQuotas, Metered, Throttle};
use super::{ClientLimits, Quotas};
use crate::connection::identity::Identity;

/// The longest client id that a connection keeps; a longer one is looked up at every request.
const KEPT_CLIENT_ID_BYTES: usize = 256;

/// The client that the last request came from.
#[derive(Debug)]
struct Client {
    version: u64,
    client_id: Box<str>,
    quotas: Option<Arc<ClientQuotas>>,
}

/// The client that the control plane is asked about.
#[derive(Debug)]
struct Asked {
    key: Key,
    client_id: Box<str>,
}

/// See the module.
#[derive(Debug, Default)]
pub struct Metering {
    client: Option<Client>,
    asked: Option<Asked>,
    /// Until when nothing is read, on the data plane's clock in milliseconds.
    muted_until: Option<u64>,
    /// Whether a timer is set for that.
    is_timed: bool,
    /// What of the time of the turn in progress has been counted.
    counted: Duration,
}

impl Metering {
    /// Whether nothing further of the connection may be begun: its client is being asked about, or it is muted.
    pub fn is_stopped(&self) -> bool {
        self.asked.is_some() || self.muted_until.is_some()
    }

    /// Whether the last request came from the same client, by quotas of the same version.
    pub fn is_client(&self, version: u64, client_id: &str) -> bool {
        let Some(client) = &self.client else { return version == 0 };
        client.version == version && *client.client_id == *client_id
    }

    /// Whether the quotas of a client are known, or can be had; if not, the control plane is to be asked, and the
    /// connection stands still until [`Metering::said`].
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
                self.asked = Some(Asked { key, client_id: client_id.into() });
                false
            }
        }
    }

    /// Takes what the control plane has said by quotas of `version`; whether it was asked.
    pub fn said(&mut self, quotas: &Quotas, version: u64, limits: &ClientLimits, now_ms: u64) -> bool {
        let Some(Asked { key, client_id }) = self.asked.take() else { return false };
        let found = quotas.note(key, version, limits, now_ms);
        self.become_client(version, client_id, found);
        true
    }

    fn become_client(&mut self, version: u64, client_id: Box<str>, quotas: Option<Arc<ClientQuotas>>) {
        // One that is not kept equals no version that is in force.
        let (version, client_id) =
            if client_id.len() > KEPT_CLIENT_ID_BYTES { (0, "".into()) } else { (version, client_id) };
        self.client = Some(Client { version, client_id, quotas });
    }

    /// Forgets who the client is: it has proved to be another.
    pub fn forget_client(&mut self) {
        self.client = None;
    }

    fn quotas(&self) -> Option<&Arc<ClientQuotas>> {
        self.client.as_ref()?.quotas.as_ref()
    }

    /// A request of `bytes` that begins, where something of it counts.
    pub fn begin(&self, bytes: usize) -> Option<Metered> {
        self.quotas().map(|quotas| Metered::begin(quotas, bytes))
    }

    /// Counts the time of a request that the control plane has worked on; mutes the connection where that is too much.
    pub fn spend(&mut self, spent: Duration, now_ms: u64) -> Throttle {
        let throttle = self.quotas().map_or(Throttle::default(), |quotas| quotas.spend(spent, now_ms));
        self.mute(throttle.until_ms);
        throttle
    }

    /// Whether the time that a turn of the connection takes counts; a turn begins.
    pub fn begin_turn(&mut self) -> bool {
        self.counted = Duration::ZERO;
        self.quotas().is_some_and(|quotas| quotas.counts_time())
    }

    /// Notes that of the turn in progress this was counted with its request.
    pub fn counted(&mut self, spent: Duration) {
        self.counted += spent;
    }

    /// Counts what is left of a turn, which is reading and sending.
    pub fn end_turn(&mut self, spent: Duration, now_ms: u64) {
        let left = spent.saturating_sub(self.counted);
        if let Some(quotas) = self.quotas() {
            quotas.spend_quietly(left, now_ms);
        }
    }

    /// Reads nothing until a time; 0 changes nothing, as does one that is earlier than the one before.
    pub fn mute(&mut self, until_ms: u64) {
        if until_ms > self.muted_until.unwrap_or(0) {
            (self.muted_until, self.is_timed) = (Some(until_ms), false);
        }
    }

    /// Whether the connection is muted and no timer ends that yet.
    pub fn wants_timer(&self) -> bool {
        self.muted_until.is_some() && !self.is_timed
    }

    /// When the timer is due that is to be set now.
    pub fn take_timer(&mut self) -> Option<u64> {
        self.muted_until.filter(|_| !std::mem::replace(&mut self.is_timed, true))
    }

    /// Whether the connection may be read again; a timer that came for an earlier end changes nothing.
    pub fn unmute(&mut self, now_ms: u64) -> bool {
        let over = self.muted_until.is_some_and(|until| until <= now_ms);
        if over {
            self.muted_until = None;
        }
        over
    }
}
