//! TLS: the trusted certificates and the own certificate of one side of a connection; the only user of rustls.
//!
//! Certificates and keys are passed as bytes and become the shared state of all sessions, of a client ([`Tls`]) or a server
//! ([`ServerTls`]). Must not know sockets, files, nor the names and defaults of settings (`docs/adr/0058`).

mod client;
mod material;
mod server;
mod verifier;

use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::{SupportedProtocolVersion, version};

pub use client::{Tls, TlsSession, TlsSettings, Trust};
pub use material::{KeyMaterial, Pkcs12, certificates_of_pem, key_of_pem, read_pkcs12};
pub use server::{ClientAuth, ServerTls, ServerTlsSettings};

/// TLS errors, in settings or from a peer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TlsError {
    /// Certificates or a key that cannot be used. `what` names them.
    #[error("{what}: {detail}")]
    Material { what: &'static str, detail: String },
    /// An unknown name of a protocol or of a cipher suite.
    #[error("{value}: must be among {known}")]
    Unknown { value: String, known: String },
    /// The system has no certificates to trust.
    #[error("the system names no certificate authorities ({detail}): name a trust store")]
    NoRoots { detail: String },
    /// A host that cannot be in a certificate.
    #[error("{host:?} is no name that a certificate can be for")]
    BadHost { host: String },
    /// The handshake failed, or a later record is invalid.
    #[error("TLS: {detail}")]
    Session { detail: String },
}

/// The algorithms of these cipher suites, by IANA's names; `None`: all secure ones.
fn provider(cipher_suites: Option<&[String]>) -> Result<CryptoProvider, TlsError> {
    let mut provider = aws_lc_rs::default_provider();
    let Some(wanted) = cipher_suites else { return Ok(provider) };
    let known: Vec<String> = provider.cipher_suites.iter().map(|suite| iana_name(suite.suite())).collect();
    if let Some(unknown) = wanted.iter().find(|name| !known.contains(name)) {
        return Err(TlsError::Unknown { value: unknown.clone(), known: known.join(", ") });
    }
    provider.cipher_suites.retain(|suite| wanted.contains(&iana_name(suite.suite())));
    Ok(provider)
}

/// IANA's name; rustls has `TLS13_...` for suites of TLS 1.3.
fn iana_name(suite: rustls::CipherSuite) -> String {
    format!("{suite:?}").replacen("TLS13_", "TLS_", 1)
}

fn protocol(name: &str) -> Result<&'static SupportedProtocolVersion, TlsError> {
    match name {
        "TLSv1.3" => Ok(&version::TLS13),
        "TLSv1.2" => Ok(&version::TLS12),
        _ => Err(TlsError::Unknown { value: name.to_owned(), known: "TLSv1.2, TLSv1.3".to_owned() }),
    }
}

fn protocols(names: &[String]) -> Result<Vec<&'static SupportedProtocolVersion>, TlsError> {
    names.iter().map(|name| protocol(name)).collect()
}
