//! The quotas of a connection's client: requesting them from the control plane, and muting the connection.

use std::sync::Arc;

use super::{Deadline, Processor};
use crate::connection::Connection;
use crate::data_plane::events::{Event, QuotaQuery};
use crate::quota::{ClientLimits, Quotas};
use pybroker_wire::frame::RequestHead;

impl Processor {
    /// Whether the quotas of a request's client are known. If not, the frame stays in the input buffer until the control
    /// plane has set them. Unauthenticated clients have no quotas, nor have brokers at controllers' listeners.
    pub(super) fn is_metered(
        &self,
        quotas: &Quotas,
        connection: &mut Connection,
        head: &RequestHead,
        at: &std::ops::Range<usize>,
    ) -> bool {
        if connection.metering.is_client(quotas.version(), connection.client_id(head, at.clone())) {
            return true;
        }
        let identity = connection.accepted.authentication.identity().filter(|_| !connection.is_control_only());
        let Some(identity) = identity.cloned() else { return true };
        let mut metering = std::mem::take(&mut connection.metering);
        let client_id = connection.client_id(head, at.clone());
        let knows = metering.knows(quotas, &identity, client_id, self.reactor.clock.now());
        if !knows {
            let (connection, client_id) = (connection.number, client_id.to_owned());
            self.reactor.events.push(Event::QuotaQuery(QuotaQuery { connection, identity, client_id }));
        }
        connection.metering = metering;
        if !knows {
            connection.unread(at);
            connection.known_above = true;
        }
        knows
    }

    /// Resumes a connection after its client's quotas have been set.
    pub(super) fn quotas_reported(&mut self, number: u64, version: u64, limits: &ClientLimits) {
        let reactor = Arc::clone(&self.reactor);
        let Some(quotas) = reactor.hot_path.quotas.get() else { return };
        let Some(open) = reactor.open.get(number) else { return };
        let mut connection = open.lock();
        if connection.metering.reported(quotas, version, limits, reactor.clock.now()) {
            let done = self.work(&mut connection);
            self.complete(&mut connection, done);
        }
    }

    /// Sets the timer that ends a mute, if one has begun.
    pub(super) fn time_mute(&mut self, connection: &mut Connection) {
        if let Some(until) = connection.metering.take_timer() {
            self.deadlines.insert(until, Deadline::Muted(connection.number));
        }
    }

    /// Resumes a connection at the end of its mute.
    pub(super) fn unmute(&mut self, number: u64) {
        let Some(open) = self.reactor.open.get(number) else { return };
        let mut connection = open.lock();
        if !connection.metering.unmute(self.reactor.clock.now()) {
            return;
        }
        // Bytes that arrived during the mute are read.
        connection.muted = false;
        let done = self.work(&mut connection).and_then(|()| self.receive(&mut connection));
        self.complete(&mut connection, done);
    }
}
