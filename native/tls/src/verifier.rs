//! Verifies server certificates as webpki does, with two exceptions that Kafka's clients have.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, OtherError, SignatureScheme};

/// The verifier methods for signatures, of both sides: delegated to `self.webpki`.
macro_rules! signatures_are_webpkis {
    () => {
        fn verify_tls12_signature(
            &self,
            message: &[u8],
            cert: &CertificateDer<'_>,
            dss: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            self.webpki.verify_tls12_signature(message, cert, dss)
        }

        fn verify_tls13_signature(
            &self,
            message: &[u8],
            cert: &CertificateDer<'_>,
            dss: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            self.webpki.verify_tls13_signature(message, cert, dss)
        }

        fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
            self.webpki.supported_verify_schemes()
        }
    };
}
pub(crate) use signatures_are_webpkis;

/// Verifies the certificates of servers.
///
/// The name need not match if `ssl.endpoint.identification.algorithm` is empty. And a certificate that is itself trusted is
/// accepted even if it is a certificate authority's, as `openssl req -x509` creates them: webpki rejects it after the check
/// of the validity period.
#[derive(Debug)]
pub struct Verifier {
    webpki: Arc<WebPkiServerVerifier>,
    trusted: Vec<CertificateDer<'static>>,
    verifies_name: bool,
}

impl Verifier {
    pub fn new(webpki: Arc<WebPkiServerVerifier>, trusted: Vec<CertificateDer<'static>>, verifies_name: bool) -> Self {
        Self { webpki, trusted, verifies_name }
    }
}

/// Whether webpki rejects a certificate because it is an authority's.
pub fn is_authoritys(error: &OtherError) -> bool {
    format!("{:?}", error.0) == "CaUsedAsEndEntity"
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let checked = self.webpki.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
        match &checked {
            Err(Error::InvalidCertificate(CertificateError::Other(other)))
                if is_authoritys(other) && self.trusted.contains(end_entity) =>
            {
                if self.verifies_name {
                    verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
                }
                Ok(ServerCertVerified::assertion())
            }
            // The name is checked last: a certificate rejected for it has passed all other checks.
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if !self.verifies_name => Ok(ServerCertVerified::assertion()),
            _ => checked,
        }
    }

    signatures_are_webpkis!();
}
