//! SASL authentication of a connection: SaslHandshake, SaslAuthenticate until the mechanism completes, and again before the
//! session expires (KIP-368).
//!
//! A connection that reauthenticates completes its earlier requests in order, and accepts no others until the broker has
//! responded. A rejection is a result ([`ClientError::AuthenticationFailed`]): waiting callers get it at once, while the
//! connection is retried with `reconnect.backoff.ms`.

use std::time::{Duration, Instant};

use pybroker_secure::tls_failure;
use pybroker_wire::ErrorCode;
use pybroker_wire::frame::RESPONSE_BODY;
use pybroker_wire::sasl::{self, SaslAuthenticateResponse, SaslHandshakeResponse};

use super::apis::{Api, SASL_AUTHENTICATE, SASL_HANDSHAKE};
use super::cluster::NodeId;
use super::connection::{Frame, SpeaksTls};
use super::standing::{SigningIn, host, refused};
use super::{Event, Network, Purpose, Wait};
use crate::clock::now_ms;
use crate::error::ClientError;
use crate::random::split_mix;
use crate::sasl::Step;

/// The percentage of a session's lifetime after which it is renewed: at least this, plus up to the second number.
const RENEWED_FROM: u64 = 85;
const RENEWED_WITHIN: u64 = 10;

impl<T> Network<T> {
    /// Start authentication, if the client has credentials; false if not.
    pub(super) fn maybe_sign_in(&mut self, node: NodeId, now: Instant, events: &mut Vec<Event<T>>) -> bool {
        let Some(credentials) = self.config.credentials.clone() else { return false };
        if let Some(link) = self.links.get_mut(&node) {
            link.signing_in = Some(SigningIn::Mechanism);
            link.renews_at = None;
        }
        let write = |out: &mut Vec<u8>| sasl::write_handshake(out, credentials.mechanism());
        self.request_sign_in(node, SASL_HANDSHAKE, Purpose::Mechanism, now, events, write);
        true
    }

    /// Reauthenticate connections whose sessions expire soon; returns when the next one is due.
    pub(super) fn renew_sessions(&mut self, now: Instant, events: &mut Vec<Event<T>>) -> Option<Instant> {
        let due = self.links.iter().filter(|(_, link)| link.renews_at.is_some_and(|at| at <= now));
        let due: Vec<NodeId> = due.map(|(node, _)| *node).collect();
        for node in due {
            self.maybe_sign_in(node, now, events);
        }
        self.links.values().filter_map(|link| link.renews_at).min()
    }

    fn request_sign_in(
        &mut self,
        node: NodeId,
        api: Api,
        purpose: Purpose<T>,
        now: Instant,
        events: &mut Vec<Event<T>>,
        write: impl FnOnce(&mut Vec<u8>),
    ) {
        match self.target(node, api) {
            Ok(target) => self.request(target, purpose, Wait::of(self.config.request_timeout), now, write),
            Err(error) => self.refuse_to_go_on(node, error.to_string(), now, events),
        }
    }

    fn send_token(&mut self, node: NodeId, token: &[u8], now: Instant, events: &mut Vec<Event<T>>) {
        let version = self.target(node, SASL_AUTHENTICATE).map_or(0, |target| target.version);
        let write = |out: &mut Vec<u8>| sasl::write_authenticate(out, version, token);
        self.request_sign_in(node, SASL_AUTHENTICATE, Purpose::Token, now, events, write);
    }

    /// Handle the response to SaslHandshake.
    pub(super) fn take_mechanism(&mut self, node: NodeId, frame: &Frame, now: Instant, events: &mut Vec<Event<T>>) {
        let Some(credentials) = self.config.credentials.clone() else { return };
        let (mechanism, server) = (credentials.mechanism(), self.server(node));
        let begun = match SaslHandshakeResponse::parse(frame.bytes(), RESPONSE_BODY) {
            Err(error) => Err(format!("unreadable SaslHandshake response: {error}")),
            Ok(SaslHandshakeResponse { error: ErrorCode::UNSUPPORTED_SASL_MECHANISM, mechanisms }) => Err(format!(
                "the listener has not enabled sasl.mechanism={mechanism}; it has {}",
                mechanisms.join(", ")
            )),
            Ok(SaslHandshakeResponse { error: ErrorCode::ILLEGAL_SASL_STATE, .. }) => {
                Err("the listener takes no SASL: security.protocol names the wrong one".to_owned())
            }
            Ok(SaslHandshakeResponse { error, .. }) if error != ErrorCode::NONE => Err(error.to_string()),
            Ok(_) => credentials.begin(host(&server), now_ms()).map_err(|error| error.to_string()),
        };
        match begun {
            Ok((exchange, token)) => {
                if let Some(link) = self.links.get_mut(&node) {
                    link.signing_in = Some(SigningIn::Tokens(exchange));
                }
                self.send_token(node, &token, now, events);
            }
            Err(detail) => self.refuse_to_go_on(node, detail, now, events),
        }
    }

    /// Handle the response to a token.
    pub(super) fn take_token(
        &mut self,
        node: NodeId,
        version: i16,
        frame: &Frame,
        now: Instant,
        events: &mut Vec<Event<T>>,
    ) {
        let Some(link) = self.links.get_mut(&node) else { return };
        let Some(SigningIn::Tokens(exchange)) = &mut link.signing_in else { return };
        let response = match SaslAuthenticateResponse::parse(frame.bytes(), RESPONSE_BODY, version) {
            Ok(response) => response,
            Err(error) => {
                let detail = format!("unreadable SaslAuthenticate response: {error}");
                return self.refuse_to_go_on(node, detail, now, events);
            }
        };
        if response.error != ErrorCode::NONE {
            let reported = exchange.failure().map(|reported| format!(" ({reported})")).unwrap_or_default();
            let words = response.message.unwrap_or_else(|| response.error.to_string());
            return self.refuse_to_go_on(node, format!("{words}{reported}"), now, events);
        }
        match exchange.step(response.token) {
            Ok(Step::Send(token)) => self.send_token(node, &token, now, events),
            Ok(Step::Done) => {
                link.signing_in = None;
                let lifetime = u64::try_from(response.session_lifetime_ms).unwrap_or(0);
                let mut seed = self.next_correlation_id as u64;
                let share = RENEWED_FROM + split_mix(&mut seed) % RENEWED_WITHIN;
                let lasts = Duration::from_millis(lifetime / 100 * share + lifetime % 100 * share / 100);
                link.renews_at = (lifetime > 0).then(|| now + lasts);
                self.become_ready(node);
            }
            Err(error) => self.refuse_to_go_on(node, error.to_string(), now, events),
        }
    }

    fn refuse_to_go_on(&mut self, node: NodeId, detail: String, now: Instant, events: &mut Vec<Event<T>>) {
        let mechanism = self.config.credentials.as_ref().map_or("SASL", |credentials| credentials.mechanism());
        let detail = format!("authentication by {mechanism} failed: {detail}");
        let error = ClientError::AuthenticationFailed { server: self.server(node), detail };
        self.drop_link(node, error, now, events);
    }

    /// Convert a transport's error for callers. Before a connection is ready, a TLS failure is an authentication failure.
    pub(super) fn broken(&mut self, node: NodeId, failure: &std::io::Error) -> ClientError {
        self.maybe_suspect(node);
        let server = self.server(node);
        let is_new = self.links.get(&node).is_some_and(|link| link.connection.is_new);
        let speaks_tls = failure.get_ref().is_some_and(|inner| inner.is::<SpeaksTls>());
        match tls_failure(failure) {
            Some(failure) if is_new => refused(server, failure),
            // If the client uses TLS too, a probe without TLS got this response.
            _ if speaks_tls && is_new && self.config.tls.is_none() => {
                let right = if self.config.credentials.is_some() { "SASL_SSL" } else { "SSL or SASL_SSL" };
                ClientError::AuthenticationFailed {
                    server,
                    detail: format!("{failure}: set security.protocol={right}"),
                }
            }
            _ => ClientError::Disconnected { server, detail: failure.to_string() },
        }
    }

    /// A connection is ready for requests.
    pub(super) fn become_ready(&mut self, node: NodeId) {
        self.backoffs.remove(&node);
        self.refusal = None;
        if let Some(link) = self.links.get_mut(&node) {
            link.deadline = None;
            link.connection.is_new = false;
        }
    }
}
