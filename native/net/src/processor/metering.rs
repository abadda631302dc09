//! Quotas of a connection's client: the control plane asked about it, and the connection muted where it is to wait.

use std::sync::Arc;

use super::{Deadline, Processor};
use crate::connection::Connection;
use crate::data_plane::events::{Event, QuotaAsked};
use crate::quota::{ClientLimits, Quotas};
use pybroker_wire::frame::RequestHead;

impl Processor {
    /// Whether the quotas of a request's client are known; if not, the frame stays in the input buffer until the control
    /// plane has said them. Who has proved nothing yet has none, nor have brokers at the listeners of controllers.
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
            self.reactor.events.push(Event::QuotaAsked(QuotaAsked { connection, identity, client_id }));
        }
        connection.metering = metering;
        if !knows {
            connection.unread(at);
            connection.known_above = true;
        }
        knows
    }

    /// Goes on with a connection of whose client the quotas are known now.
    pub(super) fn quotas_said(&mut self, number: u64, version: u64, limits: &ClientLimits) {
        let reactor = Arc::clone(&self.reactor);
        let Some(quotas) = reactor.hot_path.quotas.get() else { return };
        let Some(open) = reactor.open.get(number) else { return };
        let mut connection = open.lock();
        if connection.metering.said(quotas, version, limits, reactor.clock.now()) {
            let done = self.work(&mut connection);
            self.settle(&mut connection, done);
        }
    }

    /// Sets the timer that ends a mute, where one has begun.
    pub(super) fn time_mute(&mut self, connection: &mut Connection) {
        if let Some(until) = connection.metering.take_timer() {
            self.deadlines.insert(until, Deadline::Muted(connection.number));
        }
    }

    /// Goes on with a connection whose client has waited as long as it was to.
    pub(super) fn unmute(&mut self, number: u64) {
        let Some(open) = self.reactor.open.get(number) else { return };
        let mut connection = open.lock();
        if !connection.metering.unmute(self.reactor.clock.now()) {
            return;
        }
        // What came meanwhile is looked for again.
        connection.muted = false;
        let done = self.work(&mut connection).and_then(|()| self.receive(&mut connection));
        self.settle(&mut connection, done);
    }
}
