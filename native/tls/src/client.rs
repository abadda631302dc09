//! TLS on the client's side: trusted certificates, the client's own certificate, and the sessions with them.
//!
//! [`TlsSession`] has no socket: ciphertext in, ciphertext out. The caller connects it to a socket. Must not know the
//! defaults of settings, nor where certificates are stored.

use std::io::{self, IoSlice, Read, Write};
use std::sync::Arc;

use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{AlertDescription, CertificateError, ClientConfig, ClientConnection, Error, RootCertStore};

use crate::material::KeyMaterial;
use crate::verifier::{self, Verifier};
use crate::{TlsError, protocols, provider};

/// The most sessions kept for resumption, over all servers of a client.
const REMEMBERED: usize = 256;

/// The trusted certificates.
#[derive(Debug, Clone)]
pub enum Trust {
    /// The certificate authorities of the operating system.
    System,
    /// These, and certificates signed by them.
    Certificates(Vec<CertificateDer<'static>>),
}

/// The TLS settings of a client.
#[derive(Debug)]
pub struct TlsSettings {
    pub trust: Trust,
    /// The client's own certificate and key.
    pub identity: Option<KeyMaterial>,
    /// Whether the server's certificate has to match the host of the connection.
    pub verifies_name: bool,
    /// `TLSv1.2`, `TLSv1.3`.
    pub protocols: Vec<String>,
    /// IANA's names; `None`: all secure ones.
    pub cipher_suites: Option<Vec<String>>,
}

/// The state shared by all connections of a client: settings, and the sessions to resume.
#[derive(Debug, Clone)]
pub struct Tls {
    config: Arc<ClientConfig>,
}

impl Tls {
    /// # Errors
    /// Everything but `BadHost` and `Session`.
    pub fn new(settings: TlsSettings) -> Result<Self, TlsError> {
        let provider = Arc::new(provider(settings.cipher_suites.as_deref())?);
        let versions = protocols(&settings.protocols)?;
        let trusted = match settings.trust {
            Trust::Certificates(certificates) => certificates,
            Trust::System => system_roots()?,
        };
        let mut roots = RootCertStore::empty();
        for certificate in &trusted {
            // Java accepts all certificates in a trust store. One that cannot be a trust anchor is skipped, not an error.
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

    /// The configuration of sessions.
    pub fn config(&self) -> &Arc<ClientConfig> {
        &self.config
    }

    /// Create a session to a host, by the name or address of the connection.
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

fn system_roots() -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let found = rustls_native_certs::load_native_certs();
    if found.certs.is_empty() {
        let detail = found.errors.first().map_or("none was found".to_owned(), ToString::to_string);
        return Err(TlsError::NoRoots { detail });
    }
    Ok(found.certs)
}

/// The TLS session of one connection, without its socket.
#[derive(Debug)]
pub struct TlsSession {
    connection: ClientConnection,
}

impl TlsSession {
    /// Whether requests cannot be sent yet.
    pub fn is_handshaking(&self) -> bool {
        self.connection.is_handshaking()
    }

    /// Whether there is ciphertext to send.
    pub fn wants_write(&self) -> bool {
        self.connection.wants_write()
    }

    /// Accept plaintext to send, as much as fits; 0: ciphertext has to be sent first.
    pub fn write(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        self.connection.writer().write_vectored(slices)
    }

    /// Send ciphertext, with one write.
    pub fn write_tls(&mut self, socket: &mut dyn Write) -> io::Result<usize> {
        self.connection.write_tls(socket)
    }

    /// Process received ciphertext, and return how many bytes. The caller must have read all plaintext before.
    ///
    /// # Errors
    /// `Session`; the alert for the server is then in the ciphertext to send.
    pub fn take(&mut self, mut ciphertext: &[u8]) -> Result<usize, TlsError> {
        let before = ciphertext.len();
        self.connection.read_tls(&mut ciphertext).map_err(|error| TlsError::Session { detail: error.to_string() })?;
        let is_first = self.connection.protocol_version().is_none();
        self.connection
            .process_new_packets()
            .map_err(|error| TlsError::Session { detail: describe(&error, is_first) })?;
        Ok(before - ciphertext.len())
    }

    /// Read plaintext; `WouldBlock` if there is none, 0 if the server has closed the session.
    pub fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.connection.reader().read(out)
    }

    /// Announce to the server that nothing follows.
    pub fn end(&mut self) {
        self.connection.send_close_notify();
    }
}

/// Describe an error for the user of the client. `is_first`: no version was negotiated yet.
fn describe(error: &Error, is_first: bool) -> String {
    match error {
        Error::InvalidCertificate(certificate) => {
            format!("the broker's certificate is refused: {}", fault(certificate))
        }
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
