//! Ciphertext from who answers at a server's address: what a client's session of TLS reads before it believes anybody.

use std::sync::OnceLock;

use pybroker_tls::{Tls, TlsSettings, Trust, certificates_of_pem};

/// Somebody has to be trusted; the key is nobody's.
const AUTHORITY: &[u8] = include_bytes!("authority.pem");

/// Has a session take the bytes as a server's, as far as it takes them; nothing of them is plaintext.
pub fn decode(bytes: &[u8]) {
    static TLS: OnceLock<Tls> = OnceLock::new();
    let tls = TLS.get_or_init(|| {
        let protocols = vec!["TLSv1.3".to_owned(), "TLSv1.2".to_owned()];
        let trust = Trust::Certificates(certificates_of_pem(AUTHORITY).expect("a certificate"));
        let settings = TlsSettings { trust, identity: None, verifies_name: true, protocols, cipher_suites: None };
        Tls::new(settings).expect("sound settings")
    });
    let mut session = tls.session("localhost").expect("a host");
    let (mut left, mut plain) = (bytes, [0; 64]);
    while let Ok(taken @ 1..) = session.take(left) {
        left = &left[taken..];
        assert!(!matches!(session.read(&mut plain), Ok(1..)), "nobody has proved who it is");
    }
    assert!(session.is_handshaking());
}
