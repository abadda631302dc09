//! Peers that use TLS in legal and illegal ways, and the cost of that: rustls's own client over loopback.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use proptest::prelude::*;
use pybroker_tls::{ClientAuth, KeyMaterial, ServerTls, ServerTlsSettings};
use rcgen::{CertificateParams, CertifiedIssuer, DnType, KeyPair};
use rustix::io::Errno;
use rustix::net::RecvFlags;
use rustls::client::Resumption;
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::{ClientConfig, ClientConnection, ConnectionTrafficSecrets, HandshakeKind, RootCertStore};

use super::{HANDSHAKE_BYTES, RECORD_BYTES, Tls};
use crate::transport::Transport;
use crate::transport::adversarial::Adversarial;

const PATIENCE: Duration = Duration::from_secs(20);
/// The most memory for a peer that requests key updates, however many.
const KEY_UPDATES_BYTES: usize = 1 << 10;

/// A certificate authority for both sides' certificates.
struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    fn sign(&self, name: &str) -> KeyMaterial {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(["localhost".to_owned()]).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        let certificate = params.signed_by(&key, &self.0).unwrap();
        let chain = vec![certificate.der().clone()];
        KeyMaterial { chain, key: PrivatePkcs8KeyDer::from(key.serialize_der()).into() }
    }

    fn server(&self, client_auth: ClientAuth) -> ServerTls {
        let settings = ServerTlsSettings {
            identity: self.sign("broker"),
            trusted: vec![self.0.der().clone()],
            client_auth,
            protocols: vec!["TLSv1.3".to_owned(), "TLSv1.2".to_owned()],
            cipher_suites: None,
        };
        ServerTls::new(settings).unwrap()
    }

    fn client(&self, version: &'static rustls::SupportedProtocolVersion, shown: Option<&KeyMaterial>) -> ClientConfig {
        let mut roots = RootCertStore::empty();
        roots.add(self.0.der().clone()).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_provider(provider).with_protocol_versions(&[version]).unwrap();
        let builder = builder.with_root_certificates(roots);
        let mut config = match shown {
            None => builder.with_no_client_auth(),
            Some(shown) => builder.with_client_auth_cert(shown.chain.clone(), shown.key.clone_key()).unwrap(),
        };
        config.resumption = Resumption::in_memory_sessions(8);
        config
    }
}

/// The server side, and the socket of its peer.
fn over(server: &ServerTls, cut: impl FnOnce(TcpStream) -> Transport) -> (Tls, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let peer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    peer.set_nodelay(true).unwrap();
    let transport = cut(listener.accept().unwrap().0);
    (Tls::server(transport, server.config()).unwrap(), peer)
}

fn whole(stream: TcpStream) -> Transport {
    Transport::plaintext(stream).unwrap()
}

/// Both ends of a connection, driven alternately on one thread.
struct Ends {
    server: Tls,
    /// The plaintext that the server has received.
    plain: Vec<u8>,
    client: ClientConnection,
    socket: TcpStream,
}

impl Ends {
    fn new(server: &ServerTls, client: &Arc<ClientConfig>, cut: impl FnOnce(TcpStream) -> Transport) -> Self {
        let (server, socket) = over(server, cut);
        socket.set_nonblocking(true).unwrap();
        let client = ClientConnection::new(Arc::clone(client), "localhost".try_into().unwrap()).unwrap();
        Self { server, plain: Vec::new(), client, socket }
    }

    fn shaken(server: &ServerTls, client: &Arc<ClientConfig>) -> Self {
        let mut ends = Self::new(server, client, whole);
        ends.until(|ends| !ends.server.is_handshaking() && !ends.client.is_handshaking()).unwrap();
        ends
    }

    /// Sends the client's pending messages.
    fn send(&mut self) {
        while self.client.wants_write() {
            match self.client.write_tls(&mut self.socket) {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// Receives on the server; returns whether the peer has closed its side.
    fn receive(&mut self) -> Result<bool, Errno> {
        self.plain.reserve(16 << 10);
        match self.server.receive(&mut self.plain) {
            Ok(received) => Ok(received.bytes == 0),
            Err(Errno::AGAIN | Errno::INTR) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Sends and receives once at both ends; returns whether the client's close has arrived.
    fn turn(&mut self) -> Result<bool, Errno> {
        self.send();
        let ended = self.receive()?;
        match self.server.flush() {
            Ok(()) | Err(Errno::AGAIN | Errno::INTR) => {}
            Err(error) => return Err(error),
        }
        if self.client.read_tls(&mut self.socket).is_ok() {
            let _ = self.client.process_new_packets();
        }
        Ok(ended)
    }

    fn until(&mut self, done: impl Fn(&Self) -> bool) -> Result<(), Errno> {
        let deadline = Instant::now() + PATIENCE;
        while !done(self) {
            self.turn()?;
            assert!(Instant::now() < deadline, "it is not done within {PATIENCE:?}");
        }
        Ok(())
    }

    /// The error and the reason of a failing server side.
    fn failure(&mut self) -> (Errno, String) {
        let error = self.until(|_| false).unwrap_err();
        (error, self.server.take_failure().unwrap_or_default())
    }

    /// Sends data from the client, and receives it at the server.
    fn report(&mut self, words: &[u8]) {
        self.plain.clear();
        self.client.writer().write_all(words).unwrap();
        self.until(|ends| ends.plain.len() >= words.len()).unwrap();
        assert_eq!(self.plain, words);
    }
}

/// Sends bytes without a TLS session; returns the error and the reason of the server side.
fn refusal(server: &ServerTls, bytes: &[u8]) -> (Errno, String, Tls) {
    let (mut tls, mut peer) = over(server, whole);
    let (mut left, mut input) = (bytes, Vec::with_capacity(16 << 10));
    peer.set_nonblocking(true).unwrap();
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Ok(sent) = peer.write(left) {
            left = &left[sent..];
        }
        match tls.receive(&mut input) {
            Err(Errno::AGAIN | Errno::INTR) => assert!(Instant::now() < deadline, "it takes everything"),
            Err(error) => {
                assert!(input.is_empty());
                let failure = tls.take_failure().unwrap_or_default();
                return (error, failure, tls);
            }
            Ok(received) => panic!("{received:?}"),
        }
        assert!(tls.incoming.capacity() <= HANDSHAKE_BYTES, "{}", tls.incoming.capacity());
    }
}

const VERSIONS: [&rustls::SupportedProtocolVersion; 2] = [&rustls::version::TLS12, &rustls::version::TLS13];

#[test]
fn a_session_stands_however_the_socket_cuts_and_refuses_calls() {
    let authority = Authority::new();
    let server = authority.server(ClientAuth::Requested);
    for version in VERSIONS {
        let client = Arc::new(authority.client(version, Some(&authority.sign("alice"))));
        for (seed, most) in [1, 5, 100, 70_000].into_iter().enumerate() {
            let mut ends = Ends::new(&server, &client, |stream| Adversarial::over(stream, seed as u64 + 7, most, None));
            ends.until(|ends| !ends.server.is_handshaking() && !ends.client.is_handshaking()).unwrap();
            ends.report(&[7; 5000]);
            assert!(ends.server.take_certificate().is_some());
        }
    }
}

#[test]
fn what_is_no_tls_is_refused_at_its_first_bytes() {
    let server = Authority::new().server(ClientAuth::None);
    let api_versions = b"\0\0\0\x0a\0\x12\0\0\0\0\0\x07\xff\xff";
    for bytes in [&api_versions[..], b"GET / HTTP/1.1\r\n\r\n", &[0xff; 64]] {
        let (error, reported, _) = refusal(&server, bytes);
        assert_eq!(error, Errno::PROTO);
        assert!(reported.contains("is no TLS"), "{reported}");
    }
}

#[test]
fn a_message_of_a_handshake_takes_no_more_memory_than_a_handshake_may() {
    let server = Authority::new().server(ClientAuth::None);
    // A ClientHello of 16 MiB, in records of the largest size.
    let mut bytes = Vec::new();
    for number in 0..1024 {
        bytes.extend([0x16, 3, 1, 0x40, 0]);
        let begin = bytes.len();
        bytes.resize(begin + (16 << 10), 0);
        if number == 0 {
            bytes[begin..begin + 4].copy_from_slice(&[1, 0xff, 0xff, 0xff]);
        }
    }
    let (error, reported, tls) = refusal(&server, &bytes);
    assert_eq!(error, Errno::PROTO);
    assert!(!reported.is_empty());
    assert!(tls.incoming.capacity() <= HANDSHAKE_BYTES);
}

#[test]
fn a_record_that_is_longer_than_records_are_is_refused() {
    let authority = Authority::new();
    let server = authority.server(ClientAuth::None);
    let (error, ..) = refusal(&server, &[&[0x16, 3, 1, 0xff, 0xff][..], &[0; 8192]].concat());
    assert_eq!(error, Errno::PROTO);
    for version in VERSIONS {
        let mut ends = Ends::shaken(&server, &Arc::new(authority.client(version, None)));
        ends.socket.write_all(&[&[0x17, 3, 3, 0xff, 0xff][..], &[0; 8192]].concat()).unwrap();
        assert_eq!(ends.failure().0, Errno::PROTO);
        assert!(ends.plain.is_empty());
    }
}

#[test]
fn bytes_that_nobody_with_the_keys_has_written_are_refused() {
    let authority = Authority::new();
    let server = authority.server(ClientAuth::None);
    for version in VERSIONS {
        // Plaintext inside of a session, and an invalid record.
        for bytes in [&b"\0\0\0\x0a\0\x12\0\0\0\0\0\x07\xff\xff"[..], &[&[0x17, 3, 3, 0, 64][..], &[9; 64]].concat()] {
            let mut ends = Ends::shaken(&server, &Arc::new(authority.client(version, None)));
            ends.socket.write_all(bytes).unwrap();
            assert_eq!(ends.failure().0, Errno::PROTO);
            assert!(ends.plain.is_empty());
        }
    }
}

#[test]
fn a_record_that_was_cut_off_gives_nothing() {
    let authority = Authority::new();
    let server = authority.server(ClientAuth::None);
    for version in VERSIONS {
        let mut ends = Ends::shaken(&server, &Arc::new(authority.client(version, None)));
        ends.client.writer().write_all(&[7; 4000]).unwrap();
        let mut record = Vec::new();
        ends.client.write_tls(&mut record).unwrap();
        ends.socket.write_all(&record[..record.len() - 1]).unwrap();
        ends.socket.shutdown(std::net::Shutdown::Write).unwrap();
        let deadline = Instant::now() + PATIENCE;
        while !ends.receive().unwrap() {
            assert!(Instant::now() < deadline);
        }
        assert!(ends.plain.is_empty());
        assert!(ends.server.incoming.capacity() <= RECORD_BYTES.max(16 << 10) + RECORD_BYTES);
    }
}

#[test]
fn after_the_clients_end_answers_still_leave_and_after_both_ends_nothing_turns() {
    let authority = Authority::new();
    let server = authority.server(ClientAuth::None);
    for version in VERSIONS {
        let mut ends = Ends::shaken(&server, &Arc::new(authority.client(version, None)));
        ends.client.writer().write_all(b"last words").unwrap();
        ends.client.send_close_notify();
        let deadline = Instant::now() + PATIENCE;
        while !ends.turn().unwrap() {
            assert!(Instant::now() < deadline);
        }
        assert_eq!(ends.plain, b"last words");
        assert!(ends.server.at_end());
        assert_eq!(ends.server.send(b"answer", false), Ok(6));
        ends.server.end();
        // Both sides have closed: a call that would send has to return.
        assert!(ends.server.send(b"more", false).is_err());
        assert_eq!(ends.receive(), Ok(true));
        let mut response = [0; 6];
        ends.until(|ends| !ends.client.wants_write()).unwrap();
        while ends.client.reader().read(&mut response).is_err() {
            ends.turn().unwrap();
            assert!(Instant::now() < deadline);
        }
        assert_eq!(&response, b"answer");
    }
}

#[test]
fn a_client_that_ends_after_the_server_has_costs_one_look() {
    let authority = Authority::new();
    let mut ends = Ends::shaken(&authority.server(ClientAuth::None), &Arc::new(authority.client(VERSIONS[1], None)));
    ends.server.end();
    ends.client.send_close_notify();
    let deadline = Instant::now() + PATIENCE;
    while !ends.turn().unwrap() {
        assert!(Instant::now() < deadline);
    }
    assert!(ends.server.at_end());
}

#[test]
fn keys_that_are_changed_over_and_over_cost_no_memory_and_soon_the_session() {
    let authority = Authority::new();
    let server = authority.server(ClientAuth::None);
    let mut ends = Ends::shaken(&server, &Arc::new(authority.client(VERSIONS[1], None)));
    for number in 0..500 {
        // A peer that sends data in between may continue.
        if number % 16 == 15 {
            ends.report(b"still there");
        }
        ends.client.refresh_traffic_keys().unwrap();
        ends.send();
        ends.receive().unwrap();
        let kept = ends.server.outgoing.capacity() + ends.server.incoming.capacity();
        assert!(kept <= KEY_UPDATES_BYTES, "{kept}");
    }
    assert_eq!(ends.server.send(b"answer", false), Ok(6));
    let refused = (0..500).find_map(|_| {
        ends.client.refresh_traffic_keys().unwrap();
        ends.send();
        ends.receive().err()
    });
    assert_eq!(refused, Some(Errno::PROTO));
}

/// A record that the client's library would not send: content of a type, encrypted with the session's keys.
fn sealed(ends: Ends, is_13: bool, kind: u8, content: &[u8]) -> (Tls, TcpStream) {
    let Ends { server, client, mut socket, .. } = ends;
    let (number, ConnectionTrafficSecrets::Aes256Gcm { key, iv }) = client.dangerous_extract_secrets().unwrap().tx
    else {
        panic!("another suite");
    };
    let key = LessSafeKey::new(UnboundKey::new(&AES_256_GCM, key.as_ref()).unwrap());
    let mut nonce: [u8; 12] = iv.as_ref().try_into().unwrap();
    nonce[4..].iter_mut().zip(number.to_be_bytes()).for_each(|(byte, other)| *byte ^= other);
    let mut sealed = content.to_vec();
    let (outer, aad, explicit) = if is_13 {
        sealed.push(kind);
        let len = (sealed.len() + 16) as u16;
        (0x17, [&[0x17, 3, 3][..], &len.to_be_bytes()].concat(), &[][..])
    } else {
        let len = (content.len() as u16).to_be_bytes();
        (kind, [&number.to_be_bytes()[..], &[kind, 3, 3], &len].concat(), &nonce[4..])
    };
    key.seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::from(aad), &mut sealed).unwrap();
    let len = (explicit.len() + sealed.len()) as u16;
    socket.write_all(&[&[outer, 3, 3][..], &len.to_be_bytes(), explicit, &sealed].concat()).unwrap();
    (server, socket)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// For every change to a ClientHello: the handshake continues or fails, and nothing is decrypted.
    #[test]
    fn a_damaged_client_hello_is_answered_or_refused(
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
    ) {
        static SERVER: OnceLock<(ServerTls, Arc<ClientConfig>)> = OnceLock::new();
        let (server, client) = SERVER.get_or_init(|| {
            let authority = Authority::new();
            (authority.server(ClientAuth::Required), Arc::new(authority.client(VERSIONS[1], None)))
        });
        let mut hello = Vec::new();
        let mut fresh = ClientConnection::new(Arc::clone(client), "localhost".try_into().unwrap()).unwrap();
        fresh.write_tls(&mut hello).unwrap();
        for (at, byte) in damage {
            let at = at.index(hello.len());
            hello[at] = byte;
        }
        let (mut tls, mut peer) = over(server, whole);
        peer.write_all(&hello).unwrap();
        outcome(&mut tls);
        prop_assert!(tls.is_handshaking());
        prop_assert!(tls.incoming.capacity() <= HANDSHAKE_BYTES);
        prop_assert!(!tls.failed || tls.incoming.is_empty());
    }
}

/// The error of a session after its received bytes; `None` if it continues.
fn outcome(server: &mut Tls) -> Option<Errno> {
    let (deadline, mut plain) = (Instant::now() + PATIENCE, Vec::with_capacity(16 << 10));
    let mut byte = [0_u8; 1];
    while rustix::net::recv(server.socket.socket(), &mut byte[..], RecvFlags::PEEK | RecvFlags::DONTWAIT).is_err() {
        assert!(Instant::now() < deadline);
    }
    match server.receive(&mut plain) {
        Err(Errno::AGAIN) | Ok(_) => None,
        Err(error) => Some(error),
    }
}

#[test]
fn nobody_negotiates_again() {
    let authority = Authority::new();
    let server = authority.server(ClientAuth::None);
    for version in VERSIONS {
        let is_13 = *version == rustls::version::TLS13;
        let mut client = authority.client(version, None);
        client.enable_secret_extraction = true;
        let client = Arc::new(client);
        let mut fresh = ClientConnection::new(Arc::clone(&client), "localhost".try_into().unwrap()).unwrap();
        let mut hello = Vec::new();
        fresh.write_tls(&mut hello).unwrap();
        let (mut tls, mut socket) = sealed(Ends::shaken(&server, &client), is_13, 0x16, &hello[5..]);
        // TLS 1.2 responds by a warning (RFC 5246, 7.2.2: no_renegotiation), and there is no second handshake.
        assert_eq!(outcome(&mut tls), is_13.then_some(Errno::PROTO));
        assert!(!tls.is_handshaking());
        let mut response = [0; 5];
        socket.set_nonblocking(false).unwrap();
        while response[0] != 0x15 && !is_13 {
            socket.read_exact(&mut response).unwrap();
            let mut rest = vec![0; u16::from_be_bytes([response[3], response[4]]) as usize];
            socket.read_exact(&mut rest).unwrap();
        }
    }
}

#[test]
fn a_session_that_has_failed_is_not_asked_again_about_what_came_behind() {
    let authority = Authority::new();
    let server = authority.server(ClientAuth::None);
    let mut client = authority.client(VERSIONS[1], None);
    client.enable_secret_extraction = true;
    // An invalid key update, and valid ones behind it in the same record.
    let updates = [[24, 0, 0, 1, 9], [24, 0, 0, 1, 0], [24, 0, 0, 1, 1]].concat();
    let (mut tls, _socket) = sealed(Ends::shaken(&server, &Arc::new(client)), true, 0x16, &updates);
    assert_eq!(outcome(&mut tls), Some(Errno::PROTO));
    assert!(tls.take_failure().is_some());
    assert!(tls.send(b"answer", false).is_err());
    tls.end();
    assert!(tls.incoming.is_empty() && tls.outgoing.is_empty());
}

#[test]
fn records_of_one_byte_arrive_whole_and_in_order() {
    let authority = Authority::new();
    for version in VERSIONS {
        let mut ends = Ends::shaken(&authority.server(ClientAuth::None), &Arc::new(authority.client(version, None)));
        let words: Vec<u8> = (0..3000_u32).map(|number| number as u8).collect();
        let mut records = Vec::new();
        for word in &words {
            ends.client.writer().write_all(&[*word]).unwrap();
            ends.client.write_tls(&mut records).unwrap();
        }
        for piece in records.chunks(10_007) {
            ends.socket.write_all(piece).unwrap();
            ends.receive().unwrap();
        }
        ends.until(|ends| ends.plain.len() == words.len()).unwrap();
        assert_eq!(ends.plain, words);
        assert!(ends.server.incoming.is_empty());
    }
}

#[test]
fn a_resumed_session_is_who_the_first_one_was() {
    let authority = Authority::new();
    let server = authority.server(ClientAuth::Required);
    for version in VERSIONS {
        let alice = authority.sign("alice");
        let client = Arc::new(authority.client(version, Some(&alice)));
        for kind in [HandshakeKind::Full, HandshakeKind::Resumed] {
            let mut ends = Ends::shaken(&server, &client);
            // Tickets follow the handshake.
            ends.report(b"hello");
            ends.server.send(b"hello", false).unwrap();
            ends.until(|ends| !ends.server.owes()).unwrap();
            ends.turn().unwrap();
            assert_eq!(ends.client.handshake_kind(), Some(kind), "{version:?}");
            assert_eq!(ends.server.take_certificate().as_deref(), Some(alice.chain[0].as_ref()));
            assert_eq!(ends.server.take_certificate(), None);
        }
    }
}

#[test]
fn a_ticket_of_a_listener_that_asks_for_nothing_opens_no_other() {
    let authority = Authority::new();
    let (open, closed) = (authority.server(ClientAuth::None), authority.server(ClientAuth::Required));
    for version in VERSIONS {
        let client = Arc::new(authority.client(version, None));
        let mut ends = Ends::shaken(&open, &client);
        ends.report(b"hello");
        ends.server.send(b"hello", false).unwrap();
        ends.turn().unwrap();
        let mut other = Ends::new(&closed, &client, whole);
        let (error, reported) = other.failure();
        assert_eq!(error, Errno::PROTO);
        assert!(reported.contains("no certificates"), "{reported}");
        let mut again = Ends::shaken(&open, &client);
        again.report(b"hello");
        assert_eq!(again.client.handshake_kind(), Some(HandshakeKind::Resumed));
    }
}

#[test]
fn a_certificate_of_somebody_elses_authority_is_refused() {
    let (authority, other) = (Authority::new(), Authority::new());
    let server = authority.server(ClientAuth::Requested);
    for version in VERSIONS {
        let client = Arc::new(authority.client(version, Some(&other.sign("alice"))));
        let (error, reported) = Ends::new(&server, &client, whole).failure();
        assert_eq!(error, Errno::PROTO);
        assert!(reported.contains("invalid peer certificate"), "{reported}");
    }
}
