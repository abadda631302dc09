//! The keys of the APIs that native code implements: the first number of a request.
//!
//! They are a part of those in `pybroker/protocol/api_keys.py` (a house test compares them).

use std::fmt;

/// An API's key. Every number is a valid value, because a peer may send any key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ApiKey(pub i16);

impl ApiKey {
    pub const PRODUCE: Self = Self(0);
    pub const FETCH: Self = Self(1);
    pub const LIST_OFFSETS: Self = Self(2);
    pub const METADATA: Self = Self(3);
    pub const SASL_HANDSHAKE: Self = Self(17);
    pub const API_VERSIONS: Self = Self(18);
    pub const INIT_PRODUCER_ID: Self = Self(22);
    pub const SASL_AUTHENTICATE: Self = Self(36);
}

/// Formats the number.
impl fmt::Display for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}
