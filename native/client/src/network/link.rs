//! One connection and its state: the versions of its broker, its authentication, its probe.

use std::time::Instant;

use super::connection::Connection;
use super::standing::{SigningIn, Suspicion};
use pybroker_wire::api_versions::ServedVersions;

/// The purpose of a request.
#[derive(Debug)]
pub(super) enum Purpose<T> {
    Handshake,
    /// SaslHandshake that probes the listener's security protocol.
    Probe,
    /// SaslHandshake.
    Mechanism,
    /// SaslAuthenticate.
    Token,
    Metadata,
    Caller(T),
}

#[derive(Debug)]
pub(super) struct Link<T> {
    pub(super) connection: Connection<Purpose<T>>,
    /// Set after ApiVersions; until then no other request is sent.
    pub(super) versions: Option<Vec<ServedVersions>>,
    pub(super) began: Instant,
    pub(super) deadline: Option<Instant>,
    /// Whether the broker has responded to a request other than those that make a connection ready.
    pub(super) is_proven: bool,
    /// Why the connection begins with a probe.
    pub(super) probes: Option<Suspicion>,
    pub(super) signing_in: Option<SigningIn>,
    /// When the session has to be renewed.
    pub(super) renews_at: Option<Instant>,
}

impl<T> Link<T> {
    pub(super) fn new(
        connection: Connection<Purpose<T>>,
        began: Instant,
        deadline: Option<Instant>,
        probes: Option<Suspicion>,
    ) -> Self {
        let (versions, signing_in, renews_at) = (None, None, None);
        Self { connection, versions, began, deadline, is_proven: false, probes, signing_in, renews_at }
    }

    /// Whether requests of callers can be sent.
    pub(super) fn is_ready(&self) -> bool {
        self.versions.is_some() && self.signing_in.is_none()
    }
}
