//! Which certificates of servers are believed: webpki's judgement, but for two things that Kafka's clients take.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, OtherError, SignatureScheme};

/// The methods of both sides' verifiers that judge signatures: `self.webpki` does.
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

/// See the module.
///
/// Names need not match where `ssl.endpoint.identification.algorithm` is empty. And a certificate that is itself among the
/// trusted ones is believed although it may be a certificate authority's, which is what `openssl req -x509` makes: webpki
/// refuses that after it has checked the time of validity.
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

/// Whether webpki refuses a certificate for being an authority's.
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
        let judged = self.webpki.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
        match &judged {
            Err(Error::InvalidCertificate(CertificateError::Other(other)))
                if is_authoritys(other) && self.trusted.contains(end_entity) =>
            {
                if self.verifies_name {
                    verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
                }
                Ok(ServerCertVerified::assertion())
            }
            // The name is looked at last: a certificate that fails for it has passed everything else.
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if !self.verifies_name => Ok(ServerCertVerified::assertion()),
            _ => judged,
        }
    }

    signatures_are_webpkis!();
}
