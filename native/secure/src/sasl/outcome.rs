//! The result of a server's token: another token, the end, or an error.

/// The errors of an exchange. None disappears by a retry with the same credentials.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SaslError {
    /// The server's token cannot be parsed.
    #[error("the server's {what} cannot be read")]
    Malformed {
        /// The message concerned.
        what: &'static str,
    },
    /// The server's nonce does not continue the client's.
    #[error("the server answers to another exchange: its nonce does not begin with the client's")]
    ForeignNonce,
    /// An iteration count outside of the accepted range.
    #[error("the server asks for {requested} iterations, and {least} to {most} are taken")]
    Iterations { requested: u64, least: u32, most: u32 },
    /// The server did not prove that it knows the password.
    #[error("the server did not prove that it knows the password: its signature is wrong")]
    WrongSignature,
    /// The server ended the exchange.
    #[error("the server refused: {detail}")]
    Refused { detail: String },
    /// The server continues after the end of the mechanism.
    #[error("the server goes on where {mechanism} ends")]
    Endless { mechanism: &'static str },
    /// There is no token, or it has expired.
    #[error("there is no valid token: {detail}")]
    NoToken { detail: String },
    /// The maker of the tokens failed.
    #[error("{detail}")]
    Failed { detail: String },
    /// The system returned no random bytes.
    #[error("the system gives no random bytes")]
    NoRandomness,
}

/// The next step after a server's token.
#[derive(Debug, PartialEq, Eq)]
pub enum Step {
    /// Send this token, and await another.
    Send(Vec<u8>),
    /// The exchange is complete.
    Done,
}
