//! TLS from the client's side: whom a client trusts, what it proves of itself, and the sessions that follow from it.
//!
//! Owns the only use of rustls in this crate. [`TlsSession`] has no socket: ciphertext in, ciphertext out. The network puts
//! it over its sockets (`crate::network::transport`), Python's connections over asyncio's streams. Must not know the names
//! of settings' defaults or where certificates are stored (`docs/adr/0060`).

mod material;
mod verifier;

use std::io::{self, IoSlice, Read, Write};
use std::sync::Arc;

use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{
    AlertDescription, CertificateError, ClientConfig, ClientConnection, Error, RootCertStore, SupportedProtocolVersion,
    version,
};

pub use self::material::{KeyMaterial, Pkcs12, certificates_of_pem, key_of_pem, read_pkcs12};
use self::verifier::Verifier;

/// Sessions that are remembered to be resumed, of all servers of a client.
const REMEMBERED: usize = 256;

/// What is wrong with TLS: its settings, or what a server does.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TlsError {
    /// Certificates or a key that cannot be used. `what` names them.
    #[error("{what}: {detail}")]
    Material { what: &'static str, detail: String },
    /// A name of a protocol or of a cipher suite that is not there.
    #[error("{value}: must be among {known}")]
    Unknown { value: String, known: String },
    /// The system has no certificates to trust.
    #[error("the system names no certificate authorities ({detail}): name a trust store")]
    NoRoots { detail: String },
    /// A host that no certificate can be for.
    #[error("{host:?} is no name that a certificate can be for")]
    BadHost { host: String },
    /// The handshake failed, or a record after it cannot be read.
    #[error("TLS: {detail}")]
    Session { detail: String },
}

/// Whose certificates are believed.
#[derive(Debug, Clone)]
pub enum Trust {
    /// The certificate authorities of the operating system.
    System,
    /// These, and who they have signed.
    Certificates(Vec<CertificateDer<'static>>),
}

/// All that a client's TLS depends on.
#[derive(Debug)]
pub struct TlsSettings {
    pub trust: Trust,
    /// What the client shows of itself.
    pub identity: Option<KeyMaterial>,
    /// Whether a certificate has to be for the host that was connected to.
    pub verifies_name: bool,
    /// `TLSv1.2`, `TLSv1.3`.
    pub protocols: Vec<String>,
    /// IANA's names; `None`: all that are safe.
    pub cipher_suites: Option<Vec<String>>,
}

/// What every connection of a client shares: settings, and the sessions to resume.
#[derive(Debug, Clone)]
pub struct Tls {
    config: Arc<ClientConfig>,
}

impl Tls {
    /// # Errors
    /// Everything but `BadHost` and `Session`.
    pub fn new(settings: TlsSettings) -> Result<Self, TlsError> {
        let provider = Arc::new(provider(settings.cipher_suites.as_deref())?);
        let versions = settings.protocols.iter().map(|name| protocol(name)).collect::<Result<Vec<_>, _>>()?;
        let trusted = match settings.trust {
            Trust::Certificates(certificates) => certificates,
            Trust::System => system_roots()?,
        };
        let mut roots = RootCertStore::empty();
        for certificate in &trusted {
            // Java takes what it finds; a certificate that cannot be an anchor is of no use, and no reason to stop.
            if let Err(error) = roots.add(certificate.clone()) {
                log::warn!("a trusted certificate is left out: {error}");
            }
        }
        let refused = |what| move |error: String| TlsError::Material { what, detail: error };
        let webpki = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider)).build();
        let webpki = webpki.map_err(|error| refused("the trusted certificates")(error.to_string()))?;
        let verifier = Verifier::new(webpki, trusted, settings.verifies_name);
        let builder = ClientConfig::builder_with_provider(provider).with_protocol_versions(&versions);
        let builder = builder.map_err(|error| refused("protocols and cipher suites")(error.to_string()))?;
        let builder = builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier));
        let mut config = match settings.identity {
            None => builder.with_no_client_auth(),
            Some(KeyMaterial { chain, key }) => builder
                .with_client_auth_cert(chain, key)
                .map_err(|error| refused("the client's certificate and key")(error.to_string()))?,
        };
        config.resumption = Resumption::in_memory_sessions(REMEMBERED);
        Ok(Self { config: Arc::new(config) })
    }

    /// A session to a host, by the name or address that was connected to.
    ///
    /// # Errors
    /// `BadHost`.
    pub fn session(&self, host: &str) -> Result<TlsSession, TlsError> {
        let bad = || TlsError::BadHost { host: host.to_owned() };
        let name = ServerName::try_from(host.to_owned()).map_err(|_| bad())?;
        let connection = ClientConnection::new(Arc::clone(&self.config), name).map_err(|_| bad())?;
        Ok(TlsSession { connection })
    }
}

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

/// rustls names those of TLS 1.3 `TLS13_...`.
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

fn system_roots() -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let found = rustls_native_certs::load_native_certs();
    if found.certs.is_empty() {
        let detail = found.errors.first().map_or("none was found".to_owned(), ToString::to_string);
        return Err(TlsError::NoRoots { detail });
    }
    Ok(found.certs)
}

/// One connection's TLS, without its socket.
#[derive(Debug)]
pub struct TlsSession {
    connection: ClientConnection,
}

impl TlsSession {
    /// Whether requests cannot leave yet.
    pub fn is_handshaking(&self) -> bool {
        self.connection.is_handshaking()
    }

    /// Whether there is ciphertext to send.
    pub fn wants_write(&self) -> bool {
        self.connection.wants_write()
    }

    /// Takes plaintext to send, as much as there is room for; 0: ciphertext has to leave first.
    pub fn write(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        self.connection.writer().write_vectored(slices)
    }

    /// Sends ciphertext, once.
    pub fn write_tls(&mut self, socket: &mut dyn Write) -> io::Result<usize> {
        self.connection.write_tls(socket)
    }

    /// Takes some ciphertext that came, and returns how much. Plaintext must have been read before.
    ///
    /// # Errors
    /// `Session`; the alert that says so to the server is then among the ciphertext to send.
    pub fn take(&mut self, mut ciphertext: &[u8]) -> Result<usize, TlsError> {
        let before = ciphertext.len();
        self.connection.read_tls(&mut ciphertext).map_err(|error| TlsError::Session { detail: error.to_string() })?;
        let is_first = self.connection.protocol_version().is_none();
        self.connection.process_new_packets().map_err(|error| TlsError::Session { detail: describe(&error, is_first) })?;
        Ok(before - ciphertext.len())
    }

    /// Reads plaintext; `WouldBlock` where none is there, 0 where the server has ended the session.
    pub fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.connection.reader().read(out)
    }

    /// Announces to the server that nothing more comes.
    pub fn end(&mut self) {
        self.connection.send_close_notify();
    }
}

/// What a failure means to who set the client up. `is_first`: no version was agreed on yet.
fn describe(error: &Error, is_first: bool) -> String {
    match error {
        Error::InvalidCertificate(certificate) => format!("the broker's certificate is refused: {}", fault(certificate)),
        Error::InvalidMessage(_) if is_first => {
            format!("what answers there speaks no TLS, its listener may be PLAINTEXT or SASL_PLAINTEXT ({error})")
        }
        Error::AlertReceived(
            alert @ (AlertDescription::CertificateRequired
            | AlertDescription::BadCertificate
            | AlertDescription::UnknownCA
            | AlertDescription::CertificateUnknown
            | AlertDescription::CertificateExpired
            | AlertDescription::UnsupportedCertificate
            | AlertDescription::AccessDenied),
        ) => format!("the broker refused this client's certificate, or that it shows none ({alert:?})"),
        Error::AlertReceived(alert) => format!("the broker ended the handshake ({alert:?})"),
        other => other.to_string(),
    }
}

fn fault(error: &CertificateError) -> String {
    match error {
        CertificateError::UnknownIssuer => "nobody who is trusted has signed it (UnknownIssuer)".to_owned(),
        CertificateError::Other(other) if verifier::is_authoritys(other) => {
            "it is a certificate authority's own (CaUsedAsEndEntity), and not among those that are trusted".to_owned()
        }
        other => other.to_string(),
    }
}

