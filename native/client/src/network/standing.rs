//! Where a connection stands on its way to being ready, what its end leaves open, and by which name its server is known to
//! TLS.

use std::net::{SocketAddr, ToSocketAddrs};

use crate::error::ClientError;
use crate::sasl::Exchange;
use crate::tls::TlsError;

/// Where a connection stands.
#[derive(Debug)]
pub enum SigningIn {
    /// The broker has yet to take the mechanism.
    Mechanism,
    /// Tokens go to and fro.
    Tokens(Exchange),
}

/// What a closed connection leaves open about its listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Suspicion {
    /// It may speak no TLS: it has sent no byte of the handshake.
    Plaintext,
    /// It may expect SASL: it has responded to ApiVersions alone.
    Sasl,
}

/// The host of `host:port`, as certificates name it.
pub fn host(server: &str) -> &str {
    let host = server.rsplit_once(':').map_or(server, |(host, _)| host);
    host.trim_start_matches('[').trim_end_matches(']')
}

pub fn refused(server: String, failure: &TlsError) -> ClientError {
    ClientError::AuthenticationFailed { server, detail: failure.to_string() }
}

/// The address to try: a name with several (::1 and 127.0.0.1 for localhost) gets the next one after each failure.
pub fn resolve(server: &str, attempt: u32) -> Result<SocketAddr, ClientError> {
    let bad = |detail: String| ClientError::BadAddress { server: server.to_owned(), detail };
    let addresses: Vec<_> = server.to_socket_addrs().map_err(|e| bad(e.to_string()))?.collect();
    let chosen = addresses.get(attempt as usize % addresses.len().max(1));
    chosen.copied().ok_or_else(|| bad("the name has no address".to_owned()))
}
