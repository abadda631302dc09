//! What comes of a token of the server's: another token, the end, or a failure.

/// Why an exchange ended without success. None is better at the next try with the same credentials.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SaslError {
    /// The server's token cannot be read.
    #[error("the server's {what} cannot be read")]
    Malformed {
        /// Which of its messages.
        what: &'static str,
    },
    /// The server's nonce does not go on from the client's.
    #[error("the server answers to another exchange: its nonce does not begin with the client's")]
    ForeignNonce,
    /// An iteration count that nobody should compute with.
    #[error("the server asks for {asked} iterations, and {least} to {most} are taken")]
    Iterations { asked: u64, least: u32, most: u32 },
    /// The server does not know the password either.
    #[error("the server did not prove that it knows the password: its signature is wrong")]
    WrongSignature,
    /// The server ended the exchange.
    #[error("the server refused: {detail}")]
    Refused { detail: String },
    /// The server goes on where the mechanism ends.
    #[error("the server goes on where {mechanism} ends")]
    Endless { mechanism: &'static str },
    /// There is no token, or it has run out.
    #[error("there is no valid token: {detail}")]
    NoToken { detail: String },
    /// Who makes the tokens cannot.
    #[error("{detail}")]
    Failed { detail: String },
    /// The system gives no random bytes.
    #[error("the system gives no random bytes")]
    NoRandomness,
}

/// What comes after a token of the server's.
#[derive(Debug, PartialEq, Eq)]
pub enum Step {
    /// This token is sent, and another one awaited.
    Send(Vec<u8>),
    /// The client has what it needs; the exchange is over.
    Done,
}
