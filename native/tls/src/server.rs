//! TLS on the server's side: a listener's certificate, and the client certificates that it trusts.

use std::sync::Arc;

use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{CertificateError, DigitallySignedStruct, DistinguishedName, Error, RootCertStore, SignatureScheme};
use rustls::{NoKeyLog, ServerConfig};

use crate::material::KeyMaterial;
use crate::{TlsError, protocols, provider, verifier};

/// `ssl.client.auth`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientAuth {
    /// No client certificate is requested.
    None,
    /// A client may have no certificate; a certificate that it sends has to be valid.
    Requested,
    /// A client has to send a certificate.
    Required,
}

/// The TLS settings of a listener.
#[derive(Debug)]
pub struct ServerTlsSettings {
    /// The listener's own certificate and key.
    pub identity: KeyMaterial,
    /// The certificates that client certificates are verified with.
    pub trusted: Vec<CertificateDer<'static>>,
    pub client_auth: ClientAuth,
    /// `TLSv1.2`, `TLSv1.3`.
    pub protocols: Vec<String>,
    /// IANA's names; `None`: all secure ones.
    pub cipher_suites: Option<Vec<String>>,
}

/// The state shared by all connections of a listener: settings, and the key of session tickets.
#[derive(Debug, Clone)]
pub struct ServerTls {
    config: Arc<ServerConfig>,
}

impl ServerTls {
    /// # Errors
    /// `Material` and `Unknown`.
    pub fn new(settings: ServerTlsSettings) -> Result<Self, TlsError> {
        let refused = |what| move |error: String| TlsError::Material { what, detail: error };
        let provider = Arc::new(provider(settings.cipher_suites.as_deref())?);
        let versions = protocols(&settings.protocols)?;
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider)).with_protocol_versions(&versions);
        let builder = builder.map_err(|error| refused("protocols and cipher suites")(error.to_string()))?;
        let builder = match settings.client_auth {
            ClientAuth::None => builder.with_no_client_auth(),
            ClientAuth::Requested | ClientAuth::Required => {
                let mut roots = RootCertStore::empty();
                for certificate in &settings.trusted {
                    roots.add(certificate.clone()).map_err(|error| {
                        refused("the trusted certificates")(format!("one cannot be an authority's: {error}"))
                    })?;
                }
                let webpki = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
                let webpki = match settings.client_auth {
                    ClientAuth::Required => webpki,
                    ClientAuth::None | ClientAuth::Requested => webpki.allow_unauthenticated(),
                };
                let webpki = webpki.build().map_err(|error| refused("the trusted certificates")(error.to_string()))?;
                builder.with_client_cert_verifier(Arc::new(ClientVerifier { webpki, trusted: settings.trusted }))
            }
        };
        let KeyMaterial { chain, key } = settings.identity;
        let mut config = builder
            .with_single_cert(chain, key)
            .map_err(|error| refused("the listener's certificate and key")(error.to_string()))?;
        let ticketer = aws_lc_rs::Ticketer::new();
        config.ticketer = ticketer.map_err(|error| refused("the key of the tickets")(error.to_string()))?;
        config.key_log = Arc::new(NoKeyLog {});
        Ok(Self { config: Arc::new(config) })
    }

    /// The configuration of sessions.
    pub fn config(&self) -> &Arc<ServerConfig> {
        &self.config
    }
}

/// Verifies client certificates as webpki does, with one exception: a certificate that is itself trusted is accepted even if
/// it is a certificate authority's. Java accepts it, and `openssl req -x509` creates such certificates.
#[derive(Debug)]
struct ClientVerifier {
    webpki: Arc<dyn ClientCertVerifier>,
    trusted: Vec<CertificateDer<'static>>,
}

impl ClientCertVerifier for ClientVerifier {
    fn client_auth_mandatory(&self) -> bool {
        self.webpki.client_auth_mandatory()
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.webpki.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        let checked = self.webpki.verify_client_cert(end_entity, intermediates, now);
        match &checked {
            // webpki has checked the validity period before.
            Err(Error::InvalidCertificate(CertificateError::Other(other)))
                if verifier::is_authoritys(other) && self.trusted.contains(end_entity) =>
            {
                Ok(ClientCertVerified::assertion())
            }
            _ => checked,
        }
    }

    verifier::signatures_are_webpkis!();
}
