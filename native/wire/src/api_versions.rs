//! ApiVersions (API key 18), versions 0 to 3: the APIs that a broker serves. It is the first request on every
//! connection.
//!
//! The broker's response consists of bytes that the control plane publishes. Version notes: 1 adds the throttle time,
//! 3 is flexible and adds the client's name and version (KIP-511). The response's header has no tagged fields in any
//! version. Source: Kafka's `ApiVersionsRequest` and `ApiVersionsResponse` schemas.

use super::primitives::{Malformed, Reader, Writer};
use super::{ApiKey, EXPECTED, ErrorCode};

/// First flexible version.
const FLEXIBLE: i16 = 3;
/// The first version whose response has `throttle_time_ms`.
const WITH_THROTTLE_TIME: i16 = 1;

/// The name and version of a client.
#[derive(Clone, Copy, Debug)]
pub struct ClientSoftware<'a> {
    pub name: &'a str,
    pub version: &'a str,
}

/// Appends a request's message after its header in `out`.
pub fn write_request(out: &mut Vec<u8>, version: i16, software: ClientSoftware<'_>) {
    let mut writer = Writer::new(out, version >= FLEXIBLE);
    writer.tags_none();
    if version >= FLEXIBLE {
        writer.string(software.name);
        writer.string(software.version);
        writer.tags_none();
    }
}

/// The versions of one API that a broker serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServedVersions {
    pub api_key: ApiKey,
    pub min: i16,
    pub max: i16,
}

/// An ApiVersions response.
#[derive(Debug, PartialEq, Eq)]
pub struct ApiVersionsResponse {
    pub error: ErrorCode,
    /// Empty if the broker does not serve the request's version.
    pub served: Vec<ServedVersions>,
}

impl ApiVersionsResponse {
    /// Parses the message at `body` of `frame`. A broker that does not serve `version` responds in version 0; the
    /// fields after its error code are then ignored.
    ///
    /// # Errors
    /// When a length exceeds the frame.
    pub fn parse(frame: &[u8], body: usize, version: i16) -> Result<Self, Malformed> {
        let mut reader = Reader::new(frame, body, version >= FLEXIBLE);
        let error = reader.error_code()?;
        if error == ErrorCode::UNSUPPORTED_VERSION {
            return Ok(Self { error, served: Vec::new() });
        }
        let count = reader.array_len()?;
        let mut served = Vec::with_capacity(count.min(EXPECTED));
        for _ in 0..count {
            let (api_key, min, max) = (ApiKey(reader.i16()?), reader.i16()?, reader.i16()?);
            served.push(ServedVersions { api_key, min, max });
            reader.tags()?;
        }
        if version >= WITH_THROTTLE_TIME {
            reader.i32()?; // throttle_time_ms
        }
        reader.tags()?;
        Ok(Self { error, served })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn written(version: i16, response: &ApiVersionsResponse) -> Vec<u8> {
        let mut frame = vec![0xee; 4];
        let mut writer = Writer::new(&mut frame, version >= FLEXIBLE);
        writer.error_code(response.error);
        writer.array_len(response.served.len());
        for served in &response.served {
            writer.i16(served.api_key.0);
            writer.i16(served.min);
            writer.i16(served.max);
            writer.tags_none();
        }
        if version >= 1 {
            writer.i32(7);
        }
        writer.tags_none();
        frame
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes: Vec<u8>, body in 0_usize..20, version in 0_i16..=3) {
            let _ = ApiVersionsResponse::parse(&bytes, body, version);
        }

        #[test]
        fn a_response_is_read_as_it_was_written(
            version in 0_i16..=3, error in 0_i16..30, cut: prop::sample::Index,
            served in prop::collection::vec(any::<[i16; 3]>(), 0..9),
        ) {
            let served = served.into_iter().map(|[key, min, max]| ServedVersions { api_key: ApiKey(key), min, max });
            let sent = ApiVersionsResponse { error: ErrorCode(error), served: served.collect() };
            let frame = written(version, &sent);
            prop_assert!(ApiVersionsResponse::parse(&frame[..4 + cut.index(frame.len() - 4)], 4, version).is_err());
            prop_assert_eq!(ApiVersionsResponse::parse(&frame, 4, version), Ok(sent));
        }

        #[test]
        fn a_request_says_what_the_client_is_from_version_3_on(version in 0_i16..=3, name in "[a-z]{1,9}") {
            let mut out = Vec::new();
            write_request(&mut out, version, ClientSoftware { name: &name, version: "1.0" });
            let mut reader = Reader::new(&out, 0, version >= FLEXIBLE);
            reader.header_tags().unwrap();
            if version >= FLEXIBLE {
                prop_assert_eq!((reader.string().unwrap(), reader.string().unwrap()), (&*name, "1.0"));
                reader.tags().unwrap();
            }
            prop_assert_eq!(reader.left(), 0);
        }
    }

    #[test]
    fn a_refused_version_is_answered_in_version_0() {
        let refused = ApiVersionsResponse { error: ErrorCode::UNSUPPORTED_VERSION, served: Vec::new() };
        assert_eq!(ApiVersionsResponse::parse(&written(0, &refused), 4, 3), Ok(refused));
    }
}
