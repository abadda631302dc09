//! Stores of certificates and keys: PEM, keys that a password protects, PKCS #12.

use pybroker_tls::{certificates_of_pem, key_of_pem, read_pkcs12};

/// Reads the bytes as each of them.
pub fn decode(bytes: &[u8]) {
    if let Ok(certificates) = certificates_of_pem(bytes) {
        assert!(!certificates.is_empty());
    }
    let _ = key_of_pem(bytes, None);
    let _ = key_of_pem(bytes, Some("secret"));
    let _ = read_pkcs12(bytes, "secret");
}
