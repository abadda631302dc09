//! OAUTHBEARER (RFC 7628): a token that somebody else has issued, with the extensions of KIP-342.

use super::outcome::SaslError;
use crate::secret::Secret;

/// Between the fields of a message; alone it is the answer to a server that has refused.
pub const SEPARATOR: u8 = 1;
/// The most of a server's words that is repeated.
const MOST_WORDS: usize = 500;

/// A token and what is sent with it.
#[derive(Debug, Clone)]
pub struct Bearer {
    token: Secret,
    /// Unix time in milliseconds from which on it is not used; `None`: it says none.
    expires_ms: Option<i64>,
    extensions: Vec<(String, String)>,
}

impl Bearer {
    /// A token of which the caller has checked that it has no control characters, and its extensions likewise.
    pub fn new(token: Secret, expires_ms: Option<i64>, extensions: Vec<(String, String)>) -> Self {
        Self { token, expires_ms, extensions }
    }

    /// Refuses a token that has run out.
    pub fn check(&self, now_ms: i64) -> Result<(), SaslError> {
        match self.expires_ms {
            Some(until) if until <= now_ms => {
                Err(SaslError::NoToken { detail: format!("it ran out {} ms ago", now_ms - until) })
            }
            _ => Ok(()),
        }
    }

    /// The client's only message.
    pub fn first_token(&self) -> Vec<u8> {
        let mut out = format!("n,,\u{1}auth=Bearer {}", self.token.expose()).into_bytes();
        for (name, value) in &self.extensions {
            out.push(SEPARATOR);
            out.extend_from_slice(format!("{name}={value}").as_bytes());
        }
        out.extend_from_slice(&[SEPARATOR, SEPARATOR]);
        out
    }
}

/// What a server says of a token, without what no line of a log should have.
pub fn described(token: &[u8]) -> String {
    let text = String::from_utf8_lossy(&token[..token.len().min(MOST_WORDS)]);
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}
