//! OAUTHBEARER (RFC 7628): a token issued by another server, with the extensions of KIP-342.

use super::outcome::SaslError;
use crate::secret::Secret;

/// Separates the fields of a message; alone it is the response to a server that has rejected the token.
pub const SEPARATOR: u8 = 1;
/// Maximum number of bytes of a server's message in a log line.
const MOST_WORDS: usize = 500;

/// A token and its extensions.
#[derive(Debug, Clone)]
pub struct Bearer {
    token: Secret,
    /// Unix time in milliseconds at which the token expires; `None` if unknown.
    expires_ms: Option<i64>,
    extensions: Vec<(String, String)>,
}

impl Bearer {
    /// A token; the caller has checked that the token and its extensions contain no control characters.
    pub fn new(token: Secret, expires_ms: Option<i64>, extensions: Vec<(String, String)>) -> Self {
        Self { token, expires_ms, extensions }
    }

    /// Reject an expired token.
    pub fn check(&self, now_ms: i64) -> Result<(), SaslError> {
        match self.expires_ms {
            Some(until) if until <= now_ms => {
                Err(SaslError::NoToken { detail: format!("it expired {} ms ago", now_ms - until) })
            }
            _ => Ok(()),
        }
    }

    /// Returns the client's only SASL message: the token and its extensions.
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

/// Returns a server's message about a token as text for a log line: truncated, and without control characters.
pub fn described(token: &[u8]) -> String {
    let text = String::from_utf8_lossy(&token[..token.len().min(MOST_WORDS)]);
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}
