//! Detects listeners with another security protocol than the client's, and distinguishes them from a broker that restarts.
//!
//! A listener without TLS closes the connection at a ClientHello, and a listener with SASL at the first request of a client
//! without it. A broker that stops does the same. So the next connection to the node begins with a SaslHandshake for no
//! mechanism, which every listener of Kafka responds to: a listener with SASL with its mechanisms
//! (UNSUPPORTED_SASL_MECHANISM), a listener without with ILLEGAL_SASL_STATE. Only such a response is an authentication
//! failure. After a probe without a response, the next connection begins without a probe.

use std::time::Instant;

use pybroker_wire::ErrorCode;
use pybroker_wire::frame::RESPONSE_BODY;
use pybroker_wire::sasl::{self, SaslHandshakeResponse};

use super::apis::{API_VERSIONS, SASL_HANDSHAKE};
use super::cluster::NodeId;
use super::connection::Frame;
use super::standing::Suspicion;
use super::{Event, Network, Purpose, Target, Wait};
use crate::error::ClientError;

impl<T> Network<T> {
    /// Start the next connection to a node with a probe, if the listener may have another security protocol.
    pub(super) fn maybe_suspect(&mut self, node: NodeId) {
        let Some(link) = self.links.get(&node) else { return };
        let unanswered = !link.connection.is_new && !link.is_proven && link.connection.in_flight() > 0;
        let suspicion = if link.probes.is_some() {
            return;
        } else if link.connection.waits_for_tls() {
            Suspicion::Plaintext
        } else if unanswered && self.config.credentials.is_none() {
            Suspicion::Sasl
        } else {
            return;
        };
        self.suspicions.insert(node, suspicion);
    }

    /// Send a probe for the listener's protocol.
    pub(super) fn probe(&mut self, node: NodeId, now: Instant) {
        let target = Target { node, api: SASL_HANDSHAKE, version: SASL_HANDSHAKE.max };
        let wait = Wait::of(self.config.request_timeout);
        self.request(target, Purpose::Probe, wait, now, |out| sasl::write_handshake(out, ""));
    }

    /// Handle the response to a probe.
    pub(super) fn take_probe(&mut self, node: NodeId, frame: &Frame, now: Instant, events: &mut Vec<Event<T>>) {
        let Some(suspicion) = self.links.get_mut(&node).and_then(|link| link.probes.take()) else { return };
        let server = self.server(node);
        let error = match (suspicion, SaslHandshakeResponse::parse(frame.bytes(), RESPONSE_BODY)) {
            (_, Ok(SaslHandshakeResponse { error: ErrorCode::UNSUPPORTED_SASL_MECHANISM, mechanisms })) => {
                self.has_sasl(suspicion, server, &mechanisms.join(", "))
            }
            (Suspicion::Plaintext, Ok(SaslHandshakeResponse { error: ErrorCode::ILLEGAL_SASL_STATE, .. })) => {
                let detail = "the listener does not speak TLS: set security.protocol=PLAINTEXT".to_owned();
                ClientError::AuthenticationFailed { server, detail }
            }
            (Suspicion::Sasl, Ok(SaslHandshakeResponse { error: ErrorCode::ILLEGAL_SASL_STATE, .. })) => {
                return self.shake_hands(node, API_VERSIONS.max, now);
            }
            _ => ClientError::Disconnected { server, detail: "an unexpected response to SaslHandshake".to_owned() },
        };
        if matches!(error, ClientError::AuthenticationFailed { .. }) {
            // A connection without a probe would become ready at a listener with SASL, and clear the authentication failure.
            self.suspicions.insert(node, suspicion);
        }
        self.drop_link(node, error, now, events);
    }

    fn has_sasl(&self, suspicion: Suspicion, server: String, mechanisms: &str) -> ClientError {
        let has_tls = self.config.tls.is_some() && suspicion != Suspicion::Plaintext;
        let right = if has_tls { "SASL_SSL" } else { "SASL_PLAINTEXT" };
        let what = if suspicion == Suspicion::Plaintext { "does not speak TLS" } else { "expects SASL" };
        let sasl = if self.config.credentials.is_some() {
            String::new()
        } else {
            format!(" and sasl.mechanism to one of {mechanisms}")
        };
        let detail = format!("the listener {what}: set security.protocol={right}{sasl}");
        ClientError::AuthenticationFailed { server, detail }
    }
}
