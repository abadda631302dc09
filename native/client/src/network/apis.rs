//! The APIs that this client uses, in the versions that Kafka 4 supports with topic names.
//!
//! All other requests of a client use `pybroker.protocol`.

use pybroker_wire::ApiKey;
use pybroker_wire::api_versions::ServedVersions;

/// One API, as this client uses it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Api {
    pub key: ApiKey,
    pub name: &'static str,
    pub min: i16,
    pub max: i16,
}

/// Version 13 has topic ids (KIP-516): no gain for a producer that gets names.
pub const PRODUCE: Api = Api { key: ApiKey::PRODUCE, name: "Produce", min: 3, max: 12 };
/// Produce to partitions that were added to the transaction before.
pub const PRODUCE_TO_ADDED: Api = Api { max: 11, ..PRODUCE };
/// Produce that adds its partitions to the transaction (KIP-890).
pub const PRODUCE_THAT_ADDS: Api = Api { min: 12, ..PRODUCE };
/// From version 13 on requests have topic ids; from 16 on errors come with the leaders' endpoints (KIP-951).
pub const FETCH: Api = Api { key: ApiKey::FETCH, name: "Fetch", min: 4, max: 18 };
/// Fetch of topics whose ids are unknown.
pub const FETCH_BY_NAME: Api = Api { max: 12, ..FETCH };
pub const LIST_OFFSETS: Api = Api { key: ApiKey::LIST_OFFSETS, name: "ListOffsets", min: 1, max: 7 };
pub const METADATA: Api = Api { key: ApiKey::METADATA, name: "Metadata", min: 1, max: 13 };
pub const API_VERSIONS: Api = Api { key: ApiKey::API_VERSIONS, name: "ApiVersions", min: 0, max: 3 };
/// After version 0, tokens follow without frames.
pub const SASL_HANDSHAKE: Api = Api { key: ApiKey::SASL_HANDSHAKE, name: "SaslHandshake", min: 1, max: 1 };
pub const SASL_AUTHENTICATE: Api = Api { key: ApiKey::SASL_AUTHENTICATE, name: "SaslAuthenticate", min: 0, max: 2 };
pub const INIT_PRODUCER_ID: Api = Api { key: ApiKey::INIT_PRODUCER_ID, name: "InitProducerId", min: 0, max: 4 };

impl Api {
    /// The highest version that both sides support, or the broker's range (-1, -1 if the broker lacks the API).
    pub fn choose(&self, served: &[ServedVersions]) -> Result<i16, (i16, i16)> {
        let theirs = served.iter().find(|it| it.api_key == self.key).ok_or((-1, -1))?;
        let version = self.max.min(theirs.max);
        if version >= self.min && version >= theirs.min { Ok(version) } else { Err((theirs.min, theirs.max)) }
    }
}

#[cfg(test)]
mod tests {
    use super::{FETCH, FETCH_BY_NAME, PRODUCE, ServedVersions};

    #[test]
    fn the_highest_version_is_chosen_that_both_speak() {
        let served = |min, max| [ServedVersions { api_key: FETCH.key, min, max }];
        assert_eq!((FETCH.choose(&served(0, 18)), FETCH.choose(&served(0, 17))), (Ok(18), Ok(17)));
        assert_eq!(FETCH_BY_NAME.choose(&served(0, 18)), Ok(12));
        assert_eq!(FETCH.choose(&served(0, 7)), Ok(7));
        assert_eq!(FETCH.choose(&served(0, 3)), Err((0, 3)));
        assert_eq!(FETCH_BY_NAME.choose(&served(13, 18)), Err((13, 18)));
        assert_eq!(PRODUCE.choose(&served(0, 18)), Err((-1, -1)));
    }
}
