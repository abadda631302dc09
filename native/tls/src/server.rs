//! TLS from the server's side: what a listener proves of itself, and which certificates of clients it believes.

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
    /// A client is not asked for a certificate.
    None,
    /// It may show none; one that it shows has to be good.
    Requested,
    /// It has to show one.
    Required,
}

/// All that a listener's TLS depends on.
#[derive(Debug)]
pub struct ServerTlsSettings {
    /// What the listener shows of itself.
    pub identity: KeyMaterial,
    /// Whose certificates of clients are believed.
    pub trusted: Vec<CertificateDer<'static>>,
    pub client_auth: ClientAuth,
    /// `TLSv1.2`, `TLSv1.3`.
    pub protocols: Vec<String>,
    /// IANA's names; `None`: all that are safe.
    pub cipher_suites: Option<Vec<String>>,
}

/// What every connection of a listener shares: settings, and the key of the tickets by which sessions are resumed.
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

    /// What sessions are made of.
    pub fn config(&self) -> &Arc<ServerConfig> {
        &self.config
    }
}

/// Which certificates of clients are believed: webpki's judgement, but that one which is itself among the trusted ones is
/// believed although it may be an authority's, as Java believes it and `openssl req -x509` makes it.
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
        let judged = self.webpki.verify_client_cert(end_entity, intermediates, now);
        match &judged {
            // webpki has checked the time of validity before that.
            Err(Error::InvalidCertificate(CertificateError::Other(other)))
                if verifier::is_authoritys(other) && self.trusted.contains(end_entity) =>
            {
                Ok(ClientCertVerified::assertion())
            }
            _ => judged,
        }
    }

    verifier::signatures_are_webpkis!();
}
