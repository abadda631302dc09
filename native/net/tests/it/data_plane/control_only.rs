//! A listener whose requests all go to the control plane: those of the hot path, and ApiVersions, are answered by it too.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use super::support::{Fetched, Plane, batch, fetch_request, produce_request, read_frame};
use pybroker_net::{ControlRequest, Event};
use pybroker_replica::Waiter;

const API_VERSIONS: i16 = 18;
const METADATA: i16 = 3;
const BEYOND_KAFKAS: i16 = 10_001;

fn connect(plane: &Plane) -> TcpStream {
    let port = plane.listen_control_only();
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

/// A request of an API, version 0, that holds nothing.
fn request(api_key: i16, correlation_id: i32) -> Vec<u8> {
    let mut frame = [&api_key.to_be_bytes()[..], &[0, 0], &correlation_id.to_be_bytes(), &[0, 1, b't']].concat();
    frame.splice(0..0, (frame.len() as u32).to_be_bytes());
    frame
}

#[test]
fn the_control_plane_answers_every_request_one_after_the_other() {
    let plane = Plane::start();
    plane.topic("t", 1);
    plane.data_plane().publish_api_versions([(0, vec![9])].into());
    let mut socket = connect(&plane);
    let requests = [
        fetch_request(3, "t", 0, 0, 1, 60_000),
        produce_request(4, "t", 0, -1, &batch(&["a"])),
        request(API_VERSIONS, 5),
        request(BEYOND_KAFKAS, 6),
    ];
    socket.write_all(&requests.concat()).unwrap();
    for (api_key, correlation_id) in [(1, 3), (0, 4), (API_VERSIONS, 5), (BEYOND_KAFKAS, 6)] {
        let requested = requested(&plane);
        assert_eq!((requested.api_key.0, requested.correlation_id), (api_key, correlation_id));
        plane.data_plane().respond(Waiter { connection: requested.connection, request: requested.request }, vec![1]);
        assert_eq!(read_frame(&mut socket), [0, 0, 0, correlation_id as u8, 1]);
    }
    assert_eq!(plane.partition("t", 0).log().log_end_offset(), 0, "no record of the request was appended");
}

#[test]
fn behind_a_last_answer_no_request_is_looked_at() {
    let plane = Plane::start();
    let mut socket = connect(&plane);
    socket.write_all(&[request(API_VERSIONS, 5), request(METADATA, 6)].concat()).unwrap();
    let first = requested(&plane);
    plane.data_plane().respond_last(Waiter { connection: first.connection, request: first.request }, vec![1]);
    assert_eq!(read_frame(&mut socket), [0, 0, 0, 5, 1]);
    assert_eq!(socket.read(&mut [0]).unwrap(), 0, "the connection ends");
    let counters = plane.data_plane().counters();
    assert!(counters.apis.iter().all(|api| api.api_key != METADATA || api.requests == 0), "it was never begun");
}

#[test]
fn a_last_answer_comes_behind_those_of_requests_that_waited() {
    let plane = Plane::start();
    plane.topic("t", 1);
    let mut socket = plane.connect();
    socket.write_all(&[fetch_request(3, "t", 0, 0, 1, 60_000), request(METADATA, 4)].concat()).unwrap();
    let last = requested(&plane);
    plane.data_plane().respond_last(Waiter { connection: last.connection, request: last.request }, vec![1]);
    assert!(Fetched::read(&mut socket, 3).records.is_empty());
    assert_eq!(read_frame(&mut socket), [0, 0, 0, 4, 1]);
    assert_eq!(socket.read(&mut [0]).unwrap(), 0, "the connection ends");
}

#[test]
fn other_listeners_serve_the_hot_path_as_before() {
    let plane = Plane::start();
    plane.topic("t", 1);
    let _other = connect(&plane);
    let mut socket = plane.connect();
    socket.write_all(&fetch_request(3, "t", 0, 0, 0, 0)).unwrap();
    assert!(Fetched::read(&mut socket, 3).records.is_empty());
    socket.write_all(&request(BEYOND_KAFKAS, 4)).unwrap();
    assert_eq!(socket.read(&mut [0]).unwrap(), 0, "closed: no API of clients has such a key");
}
