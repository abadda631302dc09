//! TLS from the client's side: whom a client trusts, what it proves of itself, and the sessions that follow from it.
//!
//! [`TlsSession`] has no socket: ciphertext in, ciphertext out. Who
//! has one puts it over a socket of its own. Must not know settings' defaults, nor where certificates are stored.

use std::io::{self, IoSlice, Read, Write};
use std::sync::Arc;

use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{AlertDescription, CertificateError, ClientConfig, ClientConnection, Error, RootCertStore};

use crate::material::KeyMaterial;
use crate::verifier::{self, Verifier};
use crate::{TlsError, protocols, provider};

/// Sessions that are remembered to be resumed, of all servers of a client.
const REMEMBERED: usize = 256;

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
        let versions = protocols(&settings.protocols)?;
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

    /// What sessions are made of.
    pub fn config(&self) -> &Arc<ClientConfig> {
        &self.config
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
        self.connection
            .process_new_packets()
            .map_err(|error| TlsError::Session { detail: describe(&error, is_first) })?;
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
