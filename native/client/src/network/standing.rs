//! Where a connection stands on its way to being ready, and by which name its server is known to TLS.

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

/// The host of `host:port`, as certificates name it.
pub fn host(server: &str) -> &str {
    let host = server.rsplit_once(':').map_or(server, |(host, _)| host);
    host.trim_start_matches('[').trim_end_matches(']')
}

pub fn refused(server: String, failure: &TlsError) -> ClientError {
    ClientError::AuthenticationFailed { server, detail: failure.to_string() }
}
