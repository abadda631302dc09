//! SCRAM-SHA-256 and SCRAM-SHA-512 (RFC 5802, RFC 7677): both sides prove that they know the password, and neither sends it.

use std::num::NonZeroU32;

use aws_lc_rs::{constant_time, digest, hmac, pbkdf2};
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;

use super::outcome::{SaslError, Step};
use crate::secret::Secret;

/// Fewer are rejected, as in Kafka's client (RFC 7677, 4).
const LEAST_ITERATIONS: u32 = 4096;
/// More are rejected: a server could keep the client busy with them. Kafka's brokers store 16,384 at most.
const MOST_ITERATIONS: u32 = 1 << 18;
/// No channel binding: `n,,` in base 64.
const NO_CHANNEL: &str = "biws";

/// The hash function of the mechanism.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hash {
    Sha256,
    Sha512,
}

impl Hash {
    /// The mechanism's name.
    pub fn mechanism(self) -> &'static str {
        match self {
            Self::Sha256 => "SCRAM-SHA-256",
            Self::Sha512 => "SCRAM-SHA-512",
        }
    }

    fn hmac(self) -> hmac::Algorithm {
        match self {
            Self::Sha256 => hmac::HMAC_SHA256,
            Self::Sha512 => hmac::HMAC_SHA512,
        }
    }

    fn digest(self) -> &'static digest::Algorithm {
        match self {
            Self::Sha256 => &digest::SHA256,
            Self::Sha512 => &digest::SHA512,
        }
    }

    fn pbkdf2(self) -> pbkdf2::Algorithm {
        match self {
            Self::Sha256 => pbkdf2::PBKDF2_HMAC_SHA256,
            Self::Sha512 => pbkdf2::PBKDF2_HMAC_SHA512,
        }
    }

    fn mac(self, key: &[u8], message: &[u8]) -> hmac::Tag {
        hmac::sign(&hmac::Key::new(self.hmac(), key), message)
    }
}

/// Bytes in base 64.
pub fn encoded(bytes: &[u8]) -> String {
    BASE64.encode(bytes)
}

/// One SCRAM exchange.
#[derive(Debug)]
pub struct Scram {
    hash: Hash,
    password: Secret,
    nonce: String,
    /// The client's first message without the channel-binding header.
    first_bare: String,
    state: State,
}

#[derive(Debug)]
enum State {
    /// The server's first message is awaited.
    First,
    /// The server's final message is awaited, with this signature.
    Final { signature: Vec<u8> },
    /// The final message has arrived.
    Ended,
}

impl Scram {
    /// Start an exchange; returns the client's first message.
    pub fn begin(hash: Hash, username: &str, password: &Secret, is_token: bool, nonce: &str) -> (Self, Vec<u8>) {
        let username = username.replace('=', "=3D").replace(',', "=2C");
        let extension = if is_token { ",tokenauth=true" } else { "" };
        let first_bare = format!("n={username},r={nonce}{extension}");
        let first = format!("n,,{first_bare}").into_bytes();
        let password = password.clone();
        (Self { hash, password, nonce: nonce.to_owned(), first_bare, state: State::First }, first)
    }

    /// See [`super::Exchange::step`].
    pub fn step(&mut self, token: &[u8]) -> Result<Step, SaslError> {
        match std::mem::replace(&mut self.state, State::Ended) {
            State::First => self.prove(token),
            State::Final { signature } => {
                let found = attributes(token, "final message")?;
                match found.as_slice() {
                    [('e', why), ..] => Err(SaslError::Refused { detail: (*why).to_owned() }),
                    [('v', theirs), ..] => {
                        let theirs = BASE64.decode(theirs).unwrap_or_default();
                        constant_time::verify_slices_are_equal(&theirs, &signature)
                            .map_err(|_| SaslError::WrongSignature)?;
                        Ok(Step::Done)
                    }
                    _ => Err(SaslError::Malformed { what: "final message" }),
                }
            }
            State::Ended => Err(SaslError::Endless { mechanism: self.hash.mechanism() }),
        }
    }

    /// Compute the client's final message from the server's first message.
    fn prove(&mut self, token: &[u8]) -> Result<Step, SaslError> {
        let malformed = || SaslError::Malformed { what: "first message" };
        let found = attributes(token, "first message")?;
        if let [('e', why), ..] = found.as_slice() {
            return Err(SaslError::Refused { detail: (*why).to_owned() });
        }
        let [('r', nonce), ('s', salt), ('i', iterations), ..] = found.as_slice() else { return Err(malformed()) };
        if nonce.len() <= self.nonce.len() || !nonce.starts_with(&self.nonce) {
            return Err(SaslError::ForeignNonce);
        }
        let salt = BASE64.decode(salt).map_err(|_| malformed())?;
        let requested: u64 = iterations.parse().map_err(|_| malformed())?;
        let (least, most) = (LEAST_ITERATIONS, MOST_ITERATIONS);
        let refused = || SaslError::Iterations { requested, least, most };
        let iterations = u32::try_from(requested).ok().filter(|n| (least..=most).contains(n)).ok_or_else(refused)?;
        let iterations = NonZeroU32::new(iterations).ok_or_else(refused)?;

        let hash = self.hash;
        let mut salted = vec![0; hash.digest().output_len()];
        pbkdf2::derive(hash.pbkdf2(), iterations, &salt, self.password.expose().as_bytes(), &mut salted);
        let client_key = hash.mac(&salted, b"Client Key");
        let stored_key = digest::digest(hash.digest(), client_key.as_ref());
        let without_proof = format!("c={NO_CHANNEL},r={nonce}");
        let server_first = std::str::from_utf8(token).map_err(|_| malformed())?;
        let signed = format!("{},{server_first},{without_proof}", self.first_bare);
        let client_signature = hash.mac(stored_key.as_ref(), signed.as_bytes());
        let proof: Vec<u8> = client_key.as_ref().iter().zip(client_signature.as_ref()).map(|(a, b)| a ^ b).collect();
        let server_key = hash.mac(&salted, b"Server Key");
        self.state = State::Final { signature: hash.mac(server_key.as_ref(), signed.as_bytes()).as_ref().to_vec() };
        Ok(Step::Send(format!("{without_proof},p={}", encoded(&proof)).into_bytes()))
    }
}

/// Parse the attributes of a message in order: a letter, `=`, and a value without commas.
fn attributes<'a>(token: &'a [u8], what: &'static str) -> Result<Vec<(char, &'a str)>, SaslError> {
    let malformed = SaslError::Malformed { what };
    let text = std::str::from_utf8(token).map_err(|_| malformed.clone())?;
    let parsed = text.split(',').map(|part| {
        let mut characters = part.chars();
        let name = characters.next().filter(char::is_ascii_alphabetic)?;
        characters.as_str().strip_prefix('=').map(|value| (name, value))
    });
    parsed.collect::<Option<Vec<_>>>().ok_or(malformed)
}
