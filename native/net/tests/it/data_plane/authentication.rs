//! A listener whose connections have to say who they are: what comes before, and after the end of a session.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use super::support::{Fetched, Plane, fetch_request, read_frame};
use pybroker_net::{ControlRequest, Event, Identity};
use pybroker_replica::Waiter;

const SASL_HANDSHAKE: i16 = 17;
const SASL_AUTHENTICATE: i16 = 36;
const METADATA: i16 = 3;

fn connect(port: u16) -> TcpStream {
    let socket = TcpStream::connect(("127.0.0.1", port)).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    socket
}

fn requested(plane: &Plane) -> ControlRequest {
    match plane.event(|event| matches!(event, Event::Control(_))) {
        Event::Control(request) => request,
        other => panic!("{other:?}"),
    }
}

/// A request of an API, version 0, with a body.
fn request(api_key: i16, correlation_id: i32, body: &[u8]) -> Vec<u8> {
    let mut frame = [&api_key.to_be_bytes()[..], &[0, 0], &correlation_id.to_be_bytes(), &[0, 1, b't'], body].concat();
    frame.splice(0..0, (frame.len() as u32).to_be_bytes());
    frame
}

fn is_closed(socket: &mut TcpStream) -> bool {
    // What was sent and not read makes the end a reset.
    !matches!(socket.read(&mut [0; 1]), Ok(1..))
}

/// Exchanges one SASL request; the control plane takes it for a proof of being alice.
fn authenticate(plane: &Plane, socket: &mut TcpStream, lifetime_ms: Option<u64>) {
    socket.write_all(&request(SASL_AUTHENTICATE, 1, b"proof")).unwrap();
    let requested = requested(plane);
    assert_eq!(requested.body, b"proof");
    let alice = Identity { kind: "User".into(), name: "alice".into() };
    plane.data_plane().authenticate(requested.connection, alice, lifetime_ms);
    plane.data_plane().respond(Waiter { connection: requested.connection, request: requested.request }, vec![]);
    assert_eq!(read_frame(socket), [0, 0, 0, 1]);
}

#[test]
fn nothing_is_served_before_the_peer_has_said_who_it_is() {
    let plane = Plane::start();
    plane.topic("t", 1);
    let port = plane.listen_authenticated();
    for early in [fetch_request(3, "t", 0, 0, 0, 0), request(METADATA, 3, b""), request(10_001, 3, b"")] {
        let mut socket = connect(port);
        socket.write_all(&early).unwrap();
        assert!(is_closed(&mut socket));
    }
    let mut socket = connect(port);
    socket.write_all(&request(SASL_HANDSHAKE, 7, b"")).unwrap();
    let shaken = requested(&plane);
    assert_eq!((shaken.api_key.0, shaken.identity), (SASL_HANDSHAKE, None));
    plane.data_plane().respond(Waiter { connection: shaken.connection, request: shaken.request }, vec![]);
    assert_eq!(read_frame(&mut socket), [0, 0, 0, 7]);
    authenticate(&plane, &mut socket, None);
    socket.write_all(&fetch_request(3, "t", 0, 0, 0, 0)).unwrap();
    assert!(Fetched::read(&mut socket, 3).records.is_empty());
    socket.write_all(&request(METADATA, 4, b"")).unwrap();
    let identity = requested(&plane).identity.unwrap();
    assert_eq!((&*identity.kind, &*identity.name), ("User", "alice"));
}

#[test]
fn a_large_frame_of_a_stranger_is_refused_by_its_size() {
    let plane = Plane::start();
    let port = plane.listen_authenticated();
    let mut socket = connect(port);
    // The size alone: no memory is taken for what it announces.
    socket.write_all(&513_u32.to_be_bytes()).unwrap();
    assert!(is_closed(&mut socket));
    let mut socket = connect(port);
    authenticate(&plane, &mut socket, None);
    socket.write_all(&request(METADATA, 2, &[0; 4096])).unwrap();
    assert_eq!(requested(&plane).body.len(), 4096);
}

#[test]
fn what_is_sent_behind_a_proof_waits_for_its_answer() {
    let plane = Plane::start();
    let mut socket = connect(plane.listen_authenticated());
    socket.write_all(&[request(SASL_AUTHENTICATE, 1, b"no proof"), request(METADATA, 2, b"")].concat()).unwrap();
    let refused = requested(&plane);
    plane.data_plane().respond(Waiter { connection: refused.connection, request: refused.request }, vec![9]);
    assert_eq!(read_frame(&mut socket), [0, 0, 0, 1, 9]);
    assert!(is_closed(&mut socket), "it is still nobody");
}

#[test]
fn an_expired_session_serves_what_renews_it_and_nothing_else() {
    let plane = Plane::start();
    let port = plane.listen_authenticated();
    let mut socket = connect(port);
    authenticate(&plane, &mut socket, Some(0));
    authenticate(&plane, &mut socket, Some(60_000));
    socket.write_all(&request(METADATA, 2, b"")).unwrap();
    assert_eq!(requested(&plane).correlation_id, 2);
    let mut late = connect(port);
    authenticate(&plane, &mut late, Some(0));
    late.write_all(&request(METADATA, 3, b"")).unwrap();
    assert!(is_closed(&mut late));
}

#[test]
fn who_does_not_authenticate_in_time_is_closed_whatever_else_it_sends() {
    let plane = Plane::start();
    let port = plane.listen_authenticated_within(400);
    let mut silent = connect(port);
    let mut begun = connect(port);
    begun.write_all(&request(SASL_HANDSHAKE, 7, b"")).unwrap();
    let shaken = requested(&plane);
    plane.data_plane().respond(Waiter { connection: shaken.connection, request: shaken.request }, vec![]);
    assert_eq!(read_frame(&mut begun), [0, 0, 0, 7]);
    let mut known = connect(port);
    authenticate(&plane, &mut known, None);
    for late in [&mut silent, &mut begun] {
        assert!(is_closed(late));
    }
    // Both are of one address: the second has no line.
    plane.event(|event| matches!(event, Event::Line { text, .. } if text.contains("authenticated within 400 ms")));
    known.write_all(&request(METADATA, 4, b"")).unwrap();
    assert_eq!(requested(&plane).correlation_id, 4);
}
