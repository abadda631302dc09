//! Certificates and keys from their stored form: PEM (RFC 7468), password-protected keys, PKCS #12.

use p12_keystore::{KeyStore, KeyStoreEntry, Pkcs12ImportPolicy};
use pkcs8::{EncryptedPrivateKeyInfoRef, SecretDocument};
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

use super::TlsError;

const ENCRYPTED_BEGINS: &str = "-----BEGIN ENCRYPTED PRIVATE KEY-----";
const ENCRYPTED_ENDS: &str = "-----END ENCRYPTED PRIVATE KEY-----";
/// The header of a key encrypted in OpenSSL's own format.
const OPENSSLS_OWN: &str = "Proc-Type: 4,ENCRYPTED";

/// A certificate with the chain to its authority, and its key.
#[derive(Debug)]
pub struct KeyMaterial {
    pub chain: Vec<CertificateDer<'static>>,
    pub key: PrivateKeyDer<'static>,
}

/// The content of a PKCS #12 file.
#[derive(Debug)]
pub struct Pkcs12 {
    pub identity: Option<KeyMaterial>,
    /// The trusted certificates; in a file without such entries the certificates of its chain.
    pub certificates: Vec<CertificateDer<'static>>,
}

/// Parse the certificates in a PEM text, at least one.
///
/// # Errors
/// `Material`.
pub fn certificates_of_pem(text: &[u8]) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let failed = |detail: String| TlsError::Material { what: "certificates", detail };
    let found: Result<Vec<_>, pem::Error> = CertificateDer::pem_slice_iter(text).collect();
    let found = found.map_err(|error| failed(format!("no readable PEM: {error}")))?;
    if found.is_empty() {
        return Err(failed("the text has no -----BEGIN CERTIFICATE-----".to_owned()));
    }
    Ok(found)
}

/// Parse the private key in a PEM text: PKCS #8, or the own format of RSA or EC; PKCS #8 with a password.
///
/// # Errors
/// `Material`. The message contains neither key nor password.
pub fn key_of_pem(text: &[u8], password: Option<&str>) -> Result<PrivateKeyDer<'static>, TlsError> {
    let failed = |detail: &str| TlsError::Material { what: "private key", detail: detail.to_owned() };
    let text = std::str::from_utf8(text).map_err(|_| failed("no readable PEM: it is not text"))?;
    if let Some(begin) = text.find(ENCRYPTED_BEGINS) {
        let rest = &text[begin..];
        let end = rest.find(ENCRYPTED_ENDS).ok_or_else(|| failed("no readable PEM: its end is missing"))?;
        let password = password.ok_or_else(|| failed("it is encrypted, and no password is given"))?;
        let (_, document) = SecretDocument::from_pem(&rest[..end + ENCRYPTED_ENDS.len()])
            .map_err(|_| failed("no readable PEM of an encrypted key"))?;
        let sealed = EncryptedPrivateKeyInfoRef::try_from(document.as_bytes())
            .map_err(|_| failed("its encryption is not one of PKCS #5, version 2"))?;
        let opened = sealed
            .decrypt(password)
            .map_err(|_| failed("it cannot be decrypted: the password is wrong, or the encryption not PBES2"))?;
        return Ok(PrivatePkcs8KeyDer::from(opened.as_bytes().to_vec()).into());
    }
    if text.contains(OPENSSLS_OWN) {
        return Err(failed("it is encrypted in OpenSSL's own form: convert it with `openssl pkcs8 -topk8`"));
    }
    PrivateKeyDer::from_pem_slice(text.as_bytes()).map_err(|error| match error {
        pem::Error::NoItemsFound => failed("the text has no -----BEGIN PRIVATE KEY-----"),
        other => failed(&format!("no readable PEM: {other}")),
    })
}

/// Read a PKCS #12 file.
///
/// # Errors
/// `Material`: the password is wrong, or the file is invalid.
pub fn read_pkcs12(bytes: &[u8], password: &str) -> Result<Pkcs12, TlsError> {
    let failed = |detail: String| TlsError::Material { what: "PKCS12", detail };
    let store = KeyStore::from_pkcs12(bytes, password, Pkcs12ImportPolicy::Strict)
        .map_err(|error| failed(format!("it cannot be read, or the password is wrong: {error}")))?;
    let mut found = Pkcs12 { identity: None, certificates: Vec::new() };
    let der = |certificate: &p12_keystore::Certificate| CertificateDer::from(certificate.as_der().to_vec());
    for (_, entry) in store.entries() {
        if let KeyStoreEntry::Certificate(certificate) = entry {
            found.certificates.push(der(certificate));
        }
    }
    if let Some((_, entry)) = store.private_key_chain() {
        let chain: Vec<_> = entry.certs().iter().map(der).collect();
        if found.certificates.is_empty() {
            found.certificates.clone_from(&chain);
        }
        let key = PrivatePkcs8KeyDer::from(entry.key().as_der().to_vec()).into();
        found.identity = Some(KeyMaterial { chain, key });
    }
    Ok(found)
}
