//! The state of a connection's authentication, the suspicion after its end, and the server's name for TLS.

use std::net::{SocketAddr, ToSocketAddrs};

use crate::error::ClientError;
use crate::sasl::Exchange;
use crate::tls::TlsError;

/// The state of a connection's authentication.
#[derive(Debug)]
pub enum SigningIn {
    /// The response to SaslHandshake is awaited.
    Mechanism,
    /// Tokens are exchanged.
    Tokens(Exchange),
}

/// The suspicion about a listener after its connection was closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Suspicion {
    /// The listener may not support TLS: it has sent no byte of the handshake.
    Plaintext,
    /// The listener may expect SASL: it has responded to ApiVersions alone.
    Sasl,
}

/// The host of `host:port`, in the form of certificates.
pub fn host(server: &str) -> &str {
    let host = server.rsplit_once(':').map_or(server, |(host, _)| host);
    host.trim_start_matches('[').trim_end_matches(']')
}

pub fn refused(server: String, failure: &TlsError) -> ClientError {
    ClientError::AuthenticationFailed { server, detail: failure.to_string() }
}

/// The address to try: a name with several addresses (::1 and 127.0.0.1 for localhost) gets the next one after each failure.
pub fn resolve(server: &str, attempt: u32) -> Result<SocketAddr, ClientError> {
    let bad = |detail: String| ClientError::BadAddress { server: server.to_owned(), detail };
    let addresses: Vec<_> = server.to_socket_addrs().map_err(|e| bad(e.to_string()))?.collect();
    let chosen = addresses.get(attempt as usize % addresses.len().max(1));
    chosen.copied().ok_or_else(|| bad("the name has no address".to_owned()))
}
