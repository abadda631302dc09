//! SASL tokens as frames of their own, which follow a SaslHandshake of version 0 (KIP-43) until authentication is complete.
//!
//! Owns the translation: the control plane receives such a frame as a SaslAuthenticate of version 0, and the response is
//! sent as the token alone. A rejection is not sent; the control plane closes the connection. Must not know mechanisms.
//!
//! Source: Kafka's `SaslServerAuthenticator`, after a handshake that switched off the headers of SaslAuthenticate.

use crate::connection::Connection;
use crate::connection::identity::Authentication;
use crate::connection::response::Response;
use crate::connection::slot::Requested;
use pybroker_wire::frame::RequestHead;
use pybroker_wire::sasl::SaslAuthenticateResponse;
use pybroker_wire::{ApiKey, ErrorCode};

/// Version of the handshake that bare tokens follow, and of the SaslAuthenticate made from each token.
const VERSION: i16 = 0;
/// Bytes of the length before a token in SaslAuthenticate.
const LENGTH_BYTES: usize = 4;

/// The request header of a bare token for the control plane.
pub const HEAD: RequestHead = RequestHead::without_client(ApiKey::SASL_AUTHENTICATE, VERSION);

/// The body of a SaslAuthenticate with this token.
pub fn message(token: &[u8]) -> Vec<u8> {
    let mut message = Vec::with_capacity(LENGTH_BYTES + token.len());
    // The size of a frame is a positive 32-bit number.
    message.extend_from_slice(&(token.len() as u32).to_be_bytes());
    message.extend_from_slice(token);
    message
}

/// The control plane's response in its wire form. After the response to a handshake of version 0, the connection's frames
/// are bare tokens.
pub fn respond(connection: &mut Connection, requested: Requested, payload: &[u8]) -> Response {
    if requested.bare {
        return token_of(payload).map_or_else(Response::nothing, Response::bare);
    }
    let is_taken = payload.starts_with(&[0, 0]);
    let before = matches!(connection.accepted.authentication, Authentication::Awaited);
    if requested.api_key == ApiKey::SASL_HANDSHAKE && requested.api_version == VERSION && is_taken && before {
        connection.become_proved(Authentication::Tokens);
    }
    Response::from_payload(requested.correlation_id, payload)
}

/// The token in a response to SaslAuthenticate; `None` for a rejection.
fn token_of(payload: &[u8]) -> Option<&[u8]> {
    let reply = SaslAuthenticateResponse::parse(payload, 0, VERSION).ok()?;
    (reply.error == ErrorCode::NONE).then_some(reply.token)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_the_message_of_an_authentication_and_its_answer_a_token() {
        assert_eq!(message(b"abc"), [0, 0, 0, 3, b'a', b'b', b'c']);
        assert_eq!(token_of(&[0, 0, 0xff, 0xff, 0, 0, 0, 2, 7, 8]), Some(&[7, 8][..]));
        assert_eq!(token_of(&[0, 58, 0, 1, b'x', 0, 0, 0, 0]), None);
        assert_eq!(token_of(&[0, 0, 0xff]), None);
    }
}
