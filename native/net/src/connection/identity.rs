//! Who a connection is, as it has proved it, and what it may ask for before that.
//!
//! The control plane decides: it takes the proofs of a SASL exchange, and says when one is good and for how long. Must not
//! know mechanisms, nor what a principal may do.

use std::sync::Arc;

use pybroker_wire::ApiKey;

/// A principal, in Kafka's two parts: `User` and `alice`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Identity {
    pub kind: Box<str>,
    pub name: Box<str>,
}

/// What a connection has proved.
#[derive(Clone, Debug)]
pub enum Authentication {
    /// Nothing yet, on a listener that asks for it.
    Awaited,
    /// Nothing yet, and every frame is a token of the exchange, without a head (`bare_tokens`).
    Tokens,
    /// Who it is. From `until` on, on the data plane's clock in milliseconds, it has to prove that again (KIP-368).
    Proved { identity: Arc<Identity>, until: Option<u64> },
}

impl Authentication {
    /// What a fresh connection has proved, where its listener takes it for `identity`; `None`: it has to say first.
    pub fn of_listener(identity: Option<&Arc<Identity>>) -> Self {
        identity.map_or(Self::Awaited, |identity| Self::Proved { identity: Arc::clone(identity), until: None })
    }

    /// Who the connection is; `None` before it has said.
    pub fn identity(&self) -> Option<&Arc<Identity>> {
        match self {
            Self::Awaited | Self::Tokens => None,
            Self::Proved { identity, .. } => Some(identity),
        }
    }

    /// Why a request is refused with its connection; `None` where it may come.
    ///
    /// Source: Kafka's `SaslServerAuthenticator`, which takes ApiVersions and the two of SASL before an exchange is over, and
    /// those of SASL alone when a session has expired.
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
