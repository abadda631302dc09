//! SASL on the client's side: authenticating to a broker.
//!
//! Owns the mechanisms as state machines without I/O: a token in, a token out. Must not know frames, sockets or the source
//! of credentials. The network drives an exchange through SaslHandshake and SaslAuthenticate; Python's connections drive the
//! same exchanges through `native/py`. Kerberos is a system library that Python calls: its tokens are made there
//! ([`TokenMaker`]).

mod bearer;
mod outcome;
mod scram;

use std::fmt::Debug;
use std::sync::Arc;

use aws_lc_rs::rand;
use parking_lot::RwLock;

pub use self::bearer::Bearer;
pub use self::outcome::{SaslError, Step};
pub use self::scram::Hash;
use self::scram::Scram;
use crate::secret::Secret;

/// Random bytes of a nonce: 144 bits, as RFC 5802 leaves to the client.
const NONCE_BYTES: usize = 18;

/// The current bearer token; the code that renews tokens replaces it.
#[derive(Debug, Default)]
pub struct TokenCell {
    current: RwLock<Option<Arc<Bearer>>>,
}

impl TokenCell {
    /// Set the token of new connections; `None`: there is none.
    pub fn set(&self, bearer: Option<Bearer>) {
        *self.current.write() = bearer.map(Arc::new);
    }
}

/// Makes the tokens of a mechanism that is not in this crate. A call may take as long as a request to another server.
pub trait TokenMaker: Debug + Send + Sync {
    /// The mechanism's name in SaslHandshake.
    fn mechanism(&self) -> &'static str;

    /// Start an exchange with the server at a host; returns its first token.
    ///
    /// # Errors
    /// `Failed`.
    fn begin(&self, host: &str) -> Result<(Box<dyn TokenSteps>, Vec<u8>), SaslError>;
}

/// One exchange of a mechanism that is not in this crate.
pub trait TokenSteps: Debug + Send {
    /// Handle a token of the server.
    ///
    /// # Errors
    /// `Failed`.
    fn step(&mut self, token: &[u8]) -> Result<Step, SaslError>;
}

/// The client's credentials, with their mechanism.
#[derive(Debug, Clone)]
pub enum Credentials {
    /// RFC 4616.
    Plain { username: String, password: Secret },
    /// RFC 5802 and RFC 7677. `is_token`: a delegation token's id and HMAC (KIP-48).
    Scram { hash: Hash, username: String, password: Secret, is_token: bool },
    /// RFC 7628.
    OauthBearer(Arc<TokenCell>),
    /// Kerberos (RFC 4752); the system library makes the tokens.
    Library(Arc<dyn TokenMaker>),
}

impl Credentials {
    /// The mechanism's name in SaslHandshake.
    pub fn mechanism(&self) -> &'static str {
        match self {
            Self::Plain { .. } => "PLAIN",
            Self::Scram { hash, .. } => hash.mechanism(),
            Self::OauthBearer(_) => "OAUTHBEARER",
            Self::Library(maker) => maker.mechanism(),
        }
    }

    /// Start an exchange with the server at `host`; returns its first token. `now_ms` (Unix time) is compared with the
    /// expiry of a bearer token.
    ///
    /// # Errors
    /// `NoToken`, `NoRandomness`, `Failed`.
    pub fn begin(&self, host: &str, now_ms: i64) -> Result<(Exchange, Vec<u8>), SaslError> {
        let mut nonce = [0; NONCE_BYTES];
        rand::fill(&mut nonce).map_err(|_| SaslError::NoRandomness)?;
        self.begin_with(&scram::encoded(&nonce), host, now_ms)
    }

    /// As [`Credentials::begin`], with a nonce of the caller: printable characters without a comma.
    ///
    /// # Errors
    /// `NoToken`, `Failed`.
    pub fn begin_with(&self, nonce: &str, host: &str, now_ms: i64) -> Result<(Exchange, Vec<u8>), SaslError> {
        match self {
            Self::Plain { username, password } => {
                let token = format!("\0{username}\0{}", password.expose());
                Ok((Exchange::Plain, token.into_bytes()))
            }
            Self::Scram { hash, username, password, is_token } => {
                let (scram, first) = Scram::begin(*hash, username, password, *is_token, nonce);
                Ok((Exchange::Scram(scram), first))
            }
            Self::OauthBearer(cell) => {
                let current = cell.current.read().clone();
                let bearer = current.ok_or_else(|| SaslError::NoToken { detail: "none was given yet".to_owned() })?;
                bearer.check(now_ms)?;
                Ok((Exchange::OauthBearer { failure: None }, bearer.first_token()))
            }
            Self::Library(maker) => {
                let (steps, token) = maker.begin(host)?;
                Ok((Exchange::Library(steps), token))
            }
        }
    }
}

/// One exchange in progress.
#[derive(Debug)]
pub enum Exchange {
    Plain,
    Scram(Scram),
    /// `failure`: the server's error about the token; the client sends an empty response, and then the server fails the
    /// exchange (RFC 7628, 3.2.3).
    OauthBearer {
        failure: Option<String>,
    },
    Library(Box<dyn TokenSteps>),
}

impl Exchange {
    /// Handle a token of the server. After an error the exchange must not be used any more.
    ///
    /// # Errors
    /// See [`SaslError`].
    pub fn step(&mut self, token: &[u8]) -> Result<Step, SaslError> {
        match self {
            Self::Plain if token.is_empty() => Ok(Step::Done),
            Self::Plain => Err(SaslError::Endless { mechanism: "PLAIN" }),
            Self::Scram(scram) => scram.step(token),
            Self::OauthBearer { failure: None } if token.is_empty() => Ok(Step::Done),
            Self::OauthBearer { failure: failure @ None } => {
                *failure = Some(bearer::described(token));
                Ok(Step::Send(vec![bearer::SEPARATOR]))
            }
            Self::OauthBearer { failure: Some(detail) } => Err(SaslError::Refused { detail: std::mem::take(detail) }),
            Self::Library(steps) => steps.step(token),
        }
    }

    /// The server's error about the credentials before it failed the exchange, if the mechanism has one.
    pub fn failure(&self) -> Option<&str> {
        match self {
            Self::OauthBearer { failure } => failure.as_deref(),
            Self::Plain | Self::Scram(_) | Self::Library(_) => None,
        }
    }
}

#[cfg(test)]
mod tests;
