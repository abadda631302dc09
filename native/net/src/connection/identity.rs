//! The principal of a connection, and the requests allowed before authentication.
//!
//! The control plane authenticates: it handles the SASL exchange, and decides its result and the session's lifetime. Must
//! not know mechanisms, nor what a principal may do.

use std::sync::Arc;

use pybroker_wire::ApiKey;

/// A principal, in Kafka's two parts: `User` and `alice`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Identity {
    pub kind: Box<str>,
    pub name: Box<str>,
}

/// The state of a connection's authentication.
#[derive(Clone, Debug)]
pub enum Authentication {
    /// Not authenticated, on a listener that requires authentication.
    Awaited,
    /// Not authenticated; every frame is a token of the exchange, without a header (`bare_tokens`).
    Tokens,
    /// Authenticated. Reauthentication is required at `until`, on the data plane's clock in milliseconds (KIP-368).
    Proved { identity: Arc<Identity>, until: Option<u64> },
}

impl Authentication {
    /// The state of a new connection: authenticated if its listener has an `identity`, else awaited.
    pub fn of_listener(identity: Option<&Arc<Identity>>) -> Self {
        identity.map_or(Self::Awaited, |identity| Self::Proved { identity: Arc::clone(identity), until: None })
    }

    /// The principal; `None` before authentication.
    pub fn identity(&self) -> Option<&Arc<Identity>> {
        match self {
            Self::Awaited | Self::Tokens => None,
            Self::Proved { identity, .. } => Some(identity),
        }
    }

    /// The reason to reject a request and close its connection; `None` if the request is allowed.
    ///
    /// Source: Kafka's `SaslServerAuthenticator`. It accepts ApiVersions and the two SASL requests before an exchange is
    /// complete, and only the SASL requests after a session has expired.
    pub fn refusal(&self, api_key: ApiKey, now: u64) -> Option<String> {
        let is_sasl = matches!(api_key, ApiKey::SASL_HANDSHAKE | ApiKey::SASL_AUTHENTICATE);
        match self {
            Self::Awaited if !is_sasl && api_key != ApiKey::API_VERSIONS => {
                Some(format!("API {api_key} before the client has authenticated"))
            }
            Self::Proved { until: Some(until), .. } if *until <= now && !is_sasl => {
                Some(format!("API {api_key} after the client's session has expired (connections.max.reauth.ms)"))
            }
            Self::Awaited | Self::Tokens | Self::Proved { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn before_a_proof_and_after_its_end_only_what_brings_one_may_come() {
        let alice = Arc::new(Identity { kind: "User".into(), name: "alice".into() });
        let proved = |until| Authentication::Proved { identity: Arc::clone(&alice), until };
        let may = |state: &Authentication, key| state.refusal(key, 100).is_none();
        let states = [Authentication::of_listener(None), proved(None), proved(Some(101)), proved(Some(100))];
        for (key, allowed) in [
            (ApiKey::PRODUCE, [false, true, true, false]),
            (ApiKey::API_VERSIONS, [true, true, true, false]),
            (ApiKey::SASL_HANDSHAKE, [true; 4]),
            (ApiKey::SASL_AUTHENTICATE, [true; 4]),
        ] {
            assert_eq!(states.each_ref().map(|state| may(state, key)), allowed, "{key}");
        }
        assert_eq!(states[0].identity(), None);
        assert_eq!(Authentication::of_listener(Some(&alice)).identity(), Some(&alice));
    }
}
