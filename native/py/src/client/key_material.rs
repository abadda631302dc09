//! Key material of a client from Python: bytes of stores, with their passwords.

use pybroker_client::tls::{KeyMaterial, TlsError, TlsSettings, Trust, certificates_of_pem, key_of_pem, read_pkcs12};
use pyo3::prelude::*;

/// The attributes of `pybroker.client.security.tls.KeyMaterial`; stores are bytes, with a password if they are PKCS #12.
#[derive(FromPyObject)]
pub struct Material {
    trusted_pem: Option<Vec<u8>>,
    trusted_pkcs12: Option<(Vec<u8>, String)>,
    chain_pem: Option<Vec<u8>>,
    key_pem: Option<Vec<u8>>,
    key_password: Option<String>,
    key_pkcs12: Option<(Vec<u8>, String)>,
    verifies_name: bool,
    protocols: Vec<String>,
    cipher_suites: Option<Vec<String>>,
}

impl Material {
    /// The native settings.
    pub fn settings(self) -> Result<TlsSettings, TlsError> {
        let trust = match (self.trusted_pem, self.trusted_pkcs12) {
            (Some(pem), _) => Trust::Certificates(certificates_of_pem(&pem)?),
            (None, Some((bytes, password))) => {
                let certificates = read_pkcs12(&bytes, &password)?.certificates;
                if certificates.is_empty() {
                    let detail = "no entry is a trusted certificate; keytool -importcert makes one".to_owned();
                    return Err(TlsError::Material { what: "PKCS12", detail });
                }
                Trust::Certificates(certificates)
            }
            (None, None) => Trust::System,
        };
        let identity = match (self.chain_pem, self.key_pem, self.key_pkcs12) {
            (Some(chain), Some(key), _) => Some(KeyMaterial {
                chain: certificates_of_pem(&chain)?,
                key: key_of_pem(&key, self.key_password.as_deref())?,
            }),
            (_, _, Some((bytes, password))) => Some(read_pkcs12(&bytes, &password)?.identity.ok_or_else(|| {
                let detail = "no entry is a private key with its certificate".to_owned();
                TlsError::Material { what: "PKCS12", detail }
            })?),
            _ => None,
        };
        let (verifies_name, protocols, cipher_suites) = (self.verifies_name, self.protocols, self.cipher_suites);
        Ok(TlsSettings { trust, identity, verifies_name, protocols, cipher_suites })
    }
}
