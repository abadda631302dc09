//! The SASL authentication of a fetcher's connection: SaslHandshake, then SaslAuthenticate until the mechanism completes,
//! and again before the session expires (KIP-368).
//!
//! Handles the responses and returns the next request; the thread sends nothing else meanwhile. The mechanisms are those of
//! clients (`native/secure/src/sasl`).

use std::io;

use pybroker_secure::sasl::{Credentials, Exchange, Step};
use pybroker_wire::frame::{NewRequest, RESPONSE_BODY, finish_request};
use pybroker_wire::sasl::{self, SaslAuthenticateResponse, SaslHandshakeResponse};
use pybroker_wire::{ApiKey, ErrorCode};

const HANDSHAKE_VERSION: i16 = 1;
/// The first version whose response has the lifetime of the session.
const AUTHENTICATE_VERSION: i16 = 1;
/// The percentage of a session's lifetime after which the fetcher reauthenticates.
const RENEWED_AT: u64 = 85;
/// The longest time to reauthentication, whatever the leader returns: 24 days, the longest timeout of the system's wait.
const LONGEST_MS: u64 = i32::MAX as u64;

/// One SASL exchange in progress.
#[derive(Debug)]
pub struct SigningIn {
    credentials: Credentials,
    /// The leader's host.
    host: String,
    /// `None` until the leader accepts the mechanism.
    exchange: Option<Exchange>,
}

/// The next step after a response.
#[derive(Debug)]
pub enum Responded {
    /// Send this request.
    Send(Vec<u8>),
    /// The leader has authenticated this broker. Reauthenticate after so many ms, if there is a number.
    Done { renews_in_ms: Option<u64> },
}

impl SigningIn {
    /// Starts an exchange with the leader at a host; returns its first request.
    pub fn begin(credentials: Credentials, host: &str, correlation_id: i32) -> (Self, Vec<u8>) {
        let mut frame = head(ApiKey::SASL_HANDSHAKE, HANDSHAKE_VERSION, correlation_id);
        sasl::write_handshake(&mut frame, credentials.mechanism());
        finish_request(&mut frame, 0);
        (Self { credentials, host: host.to_owned(), exchange: None }, frame)
    }

    /// Handles the response to the last request; `now_ms` is Unix time.
    ///
    /// # Errors
    /// The reason why authentication failed, in one sentence without secrets.
    pub fn step(&mut self, frame: &[u8], correlation_id: i32, now_ms: i64) -> io::Result<Responded> {
        let mechanism = self.credentials.mechanism();
        let stepped = match &mut self.exchange {
            None => self.take_mechanism(frame, correlation_id, now_ms),
            Some(exchange) => take_token(exchange, frame, correlation_id),
        };
        stepped.map_err(|why| {
            io::Error::new(io::ErrorKind::PermissionDenied, format!("authentication by {mechanism} failed: {why}"))
        })
    }

    fn take_mechanism(&mut self, frame: &[u8], correlation_id: i32, now_ms: i64) -> Result<Responded, String> {
        let response = SaslHandshakeResponse::parse(frame, RESPONSE_BODY);
        let response = response.map_err(|error| format!("unreadable SaslHandshake response: {error}"))?;
        match response.error {
            ErrorCode::NONE => {}
            ErrorCode::UNSUPPORTED_SASL_MECHANISM => {
                let enabled = response.mechanisms.join(", ");
                return Err(format!(
                    "the listener has not enabled it (sasl.mechanism.inter.broker.protocol); it has {enabled}"
                ));
            }
            ErrorCode::ILLEGAL_SASL_STATE => return Err("the listener takes no SASL".to_owned()),
            other => return Err(other.to_string()),
        }
        let (exchange, token) = self.credentials.begin(&self.host, now_ms).map_err(|error| error.to_string())?;
        self.exchange = Some(exchange);
        Ok(Responded::Send(token_request(&token, correlation_id)))
    }
}

fn take_token(exchange: &mut Exchange, frame: &[u8], correlation_id: i32) -> Result<Responded, String> {
    let response = SaslAuthenticateResponse::parse(frame, RESPONSE_BODY, AUTHENTICATE_VERSION);
    let response = response.map_err(|error| format!("unreadable SaslAuthenticate response: {error}"))?;
    if response.error != ErrorCode::NONE {
        let reported = exchange.failure().map(|reported| format!(" ({reported})")).unwrap_or_default();
        return Err(format!("{}{reported}", response.message.unwrap_or_else(|| response.error.to_string())));
    }
    match exchange.step(response.token).map_err(|error| error.to_string())? {
        Step::Send(token) => Ok(Responded::Send(token_request(&token, correlation_id))),
        Step::Done => {
            let lifetime = u64::try_from(response.session_lifetime_ms).unwrap_or(0);
            let renews_in_ms =
                (lifetime > 0).then(|| (lifetime.min(LONGEST_MS * 2) * RENEWED_AT / 100).min(LONGEST_MS));
            Ok(Responded::Done { renews_in_ms })
        }
    }
}

fn token_request(token: &[u8], correlation_id: i32) -> Vec<u8> {
    let mut frame = head(ApiKey::SASL_AUTHENTICATE, AUTHENTICATE_VERSION, correlation_id);
    sasl::write_authenticate(&mut frame, AUTHENTICATE_VERSION, token);
    finish_request(&mut frame, 0);
    frame
}

fn head(api_key: ApiKey, api_version: i16, correlation_id: i32) -> Vec<u8> {
    let mut frame = Vec::with_capacity(256);
    NewRequest { api_key, api_version, correlation_id, client_id: "replica-fetcher" }.begin(&mut frame);
    frame
}

#[cfg(test)]
mod tests {
    use pybroker_secure::Secret;

    use super::*;

    fn plain() -> Credentials {
        Credentials::Plain { username: "broker".into(), password: Secret::new("secret".into()) }
    }

    fn handshake(error: ErrorCode) -> Vec<u8> {
        let mut frame = vec![0; RESPONSE_BODY];
        frame.extend_from_slice(&error.0.to_be_bytes());
        frame.extend_from_slice(&1_i32.to_be_bytes());
        frame.extend_from_slice(b"\x00\x05PLAIN");
        frame
    }

    fn authenticated(error: ErrorCode, lifetime_ms: i64) -> Vec<u8> {
        let mut frame = vec![0; RESPONSE_BODY];
        frame.extend_from_slice(&error.0.to_be_bytes());
        frame.extend_from_slice(b"\x00\x05wrong");
        frame.extend_from_slice(&0_i32.to_be_bytes());
        frame.extend_from_slice(&lifetime_ms.to_be_bytes());
        frame
    }

    #[test]
    fn a_leader_that_takes_mechanism_and_token_says_when_to_come_again() {
        for (lifetime, renews) in [(0, None), (1000, Some(850)), (i64::MAX, Some(LONGEST_MS))] {
            let (mut signing_in, frame) = SigningIn::begin(plain(), "leader", 7);
            assert!(frame.ends_with(b"\x00\x05PLAIN"));
            let sent = signing_in.step(&handshake(ErrorCode::NONE), 8, 0).unwrap();
            assert!(matches!(sent, Responded::Send(frame) if frame.ends_with(b"\0broker\0secret")));
            let done = signing_in.step(&authenticated(ErrorCode::NONE, lifetime), 9, 0).unwrap();
            assert!(matches!(done, Responded::Done { renews_in_ms } if renews_in_ms == renews));
        }
    }

    #[test]
    fn a_refusal_says_why_and_no_secret() {
        let (mut signing_in, _) = SigningIn::begin(plain(), "leader", 7);
        let refused = signing_in.step(&handshake(ErrorCode::UNSUPPORTED_SASL_MECHANISM), 8, 0).unwrap_err();
        assert!(refused.to_string().contains("it has PLAIN"), "{refused}");
        let (mut signing_in, _) = SigningIn::begin(plain(), "leader", 7);
        signing_in.step(&handshake(ErrorCode::NONE), 8, 0).unwrap();
        let refused = signing_in.step(&authenticated(ErrorCode::SASL_AUTHENTICATION_FAILED, 0), 9, 0).unwrap_err();
        assert_eq!(refused.to_string(), "authentication by PLAIN failed: wrong");
    }

    #[test]
    fn cut_responses_are_refused() {
        let whole = handshake(ErrorCode::NONE);
        for end in 0..whole.len() {
            let (mut signing_in, _) = SigningIn::begin(plain(), "leader", 7);
            assert!(signing_in.step(&whole[..end], 8, 0).is_err());
        }
    }
}
