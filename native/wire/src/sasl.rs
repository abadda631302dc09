//! SaslHandshake (API key 17), version 1, and SaslAuthenticate (API key 36), versions 0 to 2, from the client's side.
//!
//! The broker's side is declared in Python. Version notes: after a handshake of version 0, tokens are sent without
//! frames (before Kafka 1.0), which is not supported. SaslAuthenticate 1 adds the session's lifetime (KIP-368), 2 is
//! flexible. Source: Kafka's schemas of the four messages.

use super::primitives::{Malformed, Reader, Writer};
use super::{EXPECTED, ErrorCode};

/// First flexible version of SaslAuthenticate.
const FLEXIBLE: i16 = 2;
/// First version that contains the session's lifetime.
const WITH_LIFETIME: i16 = 1;

/// Appends a request for a mechanism after its header in `out`.
pub fn write_handshake(out: &mut Vec<u8>, mechanism: &str) {
    Writer::new(out, false).string(mechanism);
}

/// Appends a token of the exchange after its header in `out`.
pub fn write_authenticate(out: &mut Vec<u8>, version: i16, token: &[u8]) {
    let mut writer = Writer::new(out, version >= FLEXIBLE);
    writer.tags_none();
    writer.bytes(token);
    writer.tags_none();
}

/// A SaslHandshake response.
#[derive(Debug, PartialEq, Eq)]
pub struct SaslHandshakeResponse {
    pub error: ErrorCode,
    /// The mechanisms that the listener has enabled.
    pub mechanisms: Vec<String>,
}

impl SaslHandshakeResponse {
    /// Parses the message at `body` of `frame`.
    ///
    /// # Errors
    /// When a length exceeds the frame.
    pub fn parse(frame: &[u8], body: usize) -> Result<Self, Malformed> {
        let mut reader = Reader::new(frame, body, false);
        let error = reader.error_code()?;
        let count = reader.array_len()?;
        let mut mechanisms = Vec::with_capacity(count.min(EXPECTED));
        for _ in 0..count {
            mechanisms.push(reader.string()?.to_owned());
        }
        Ok(Self { error, mechanisms })
    }
}

/// A SaslAuthenticate response.
#[derive(Debug, PartialEq, Eq)]
pub struct SaslAuthenticateResponse<'a> {
    pub error: ErrorCode,
    /// The broker's error message.
    pub message: Option<String>,
    /// The server's token.
    pub token: &'a [u8],
    /// The lifetime of the session, ms; 0 for no limit.
    pub session_lifetime_ms: i64,
}

impl<'a> SaslAuthenticateResponse<'a> {
    /// Parses the message at `body` of `frame`.
    ///
    /// # Errors
    /// When a length exceeds the frame.
    pub fn parse(frame: &'a [u8], body: usize, version: i16) -> Result<Self, Malformed> {
        let mut reader = Reader::new(frame, body, version >= FLEXIBLE);
        reader.header_tags()?;
        let error = reader.error_code()?;
        let message = reader.nullable_string()?.map(str::to_owned);
        let token = reader.nullable_bytes()?.unwrap_or_default();
        let session_lifetime_ms = if version >= WITH_LIFETIME { reader.i64()? } else { 0 };
        reader.tags()?;
        Ok(Self { error, message, token, session_lifetime_ms })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes: Vec<u8>, body in 0_usize..20, version in 0_i16..=2) {
            let _ = SaslHandshakeResponse::parse(&bytes, body);
            let _ = SaslAuthenticateResponse::parse(&bytes, body, version);
        }

        #[test]
        fn an_authenticate_response_is_read_as_it_was_written(
            version in 0_i16..=2, error: i16, message: Option<String>, token: Vec<u8>, lifetime: i64,
            cut: prop::sample::Index,
        ) {
            let mut frame = vec![0xee; 4];
            let mut writer = Writer::new(&mut frame, version >= FLEXIBLE);
            writer.tags_none();
            writer.i16(error);
            writer.nullable_string(message.as_deref());
            writer.bytes(&token);
            if version >= WITH_LIFETIME {
                writer.i64(lifetime);
            }
            writer.tags_none();
            let session_lifetime_ms = if version >= WITH_LIFETIME { lifetime } else { 0 };
            let sent = SaslAuthenticateResponse { error: ErrorCode(error), message, token: &token, session_lifetime_ms };
            prop_assert_eq!(SaslAuthenticateResponse::parse(&frame, 4, version), Ok(sent));
            let short = &frame[..4 + cut.index(frame.len() - 4)];
            prop_assert!(SaslAuthenticateResponse::parse(short, 4, version).is_err());
        }

        #[test]
        fn a_handshake_response_is_read_as_it_was_written(error: i16, mechanisms: Vec<String>) {
            let mut frame = vec![0xee; 4];
            let mut writer = Writer::new(&mut frame, false);
            writer.i16(error);
            writer.array_len(mechanisms.len());
            mechanisms.iter().for_each(|mechanism| writer.string(mechanism));
            let sent = SaslHandshakeResponse { error: ErrorCode(error), mechanisms };
            prop_assert_eq!(SaslHandshakeResponse::parse(&frame, 4), Ok(sent));
        }

        #[test]
        fn a_token_travels_as_it_is(version in 0_i16..=2, token: Vec<u8>) {
            let mut out = Vec::new();
            write_authenticate(&mut out, version, &token);
            let mut reader = Reader::new(&out, 0, version >= FLEXIBLE);
            reader.header_tags().unwrap();
            prop_assert_eq!(reader.nullable_bytes().unwrap(), Some(&token[..]));
            reader.tags().unwrap();
            prop_assert_eq!(reader.left(), 0);
        }
    }
}
