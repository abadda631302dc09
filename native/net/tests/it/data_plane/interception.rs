//! Requests that the control plane decides about: they wait in their order, and become what is decided.

use std::io::{Read, Write};

use super::support::{Fetched, Plane, Produced, batch, fetch_request, produce_request, read_frame, values};
use pybroker_net::{ControlRequest, Decision, Event};

const PRODUCE: i16 = 0;
const FETCH: i16 = 1;

fn intercepted(plane: &Plane) -> ControlRequest {
    match plane.event(|event| matches!(event, Event::Intercepted(_))) {
        Event::Intercepted(request) => request,
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_intercepted_request_waits_for_its_decision_and_those_behind_it_too() {
    let plane = Plane::start();
    plane.topic("t", 1);
    plane.data_plane().intercept(&[PRODUCE]);
    let mut socket = plane.connect();
    let two = [produce_request(7, "t", 0, -1, &batch(&["a"])), fetch_request(8, "t", 0, 0, 1, 0)].concat();
    socket.write_all(&two).unwrap();
    let request = intercepted(&plane);
    assert_eq!((request.api_key.0, request.api_version, request.correlation_id), (PRODUCE, 7, 7));
    assert_eq!(request.client_id.as_deref(), Some("test"));
    assert_eq!(plane.partition("t", 0).log().log_end_offset(), 0);
    plane.data_plane().decide(request.connection, Decision::Proceed);
    assert_eq!(Produced::read(&mut socket, 7).base_offset, 0);
    assert_eq!(values(&Fetched::read(&mut socket, 8).records), ["a"]);
}

#[test]
fn an_answer_of_the_control_plane_takes_its_place_behind_those_before_it() {
    let plane = Plane::start();
    plane.topic("t", 1);
    plane.data_plane().intercept(&[PRODUCE]);
    let mut socket = plane.connect();
    let two = [fetch_request(5, "t", 0, 0, 1, 60_000), produce_request(6, "t", 0, -1, &batch(&["a"]))].concat();
    socket.write_all(&two).unwrap();
    let request = intercepted(&plane);
    plane.data_plane().decide(request.connection, Decision::Response(vec![1, 2]));
    plane.data_plane().intercept(&[]);
    let mut producer = plane.connect();
    producer.write_all(&produce_request(7, "t", 0, -1, &batch(&["b"]))).unwrap();
    assert_eq!(Produced::read(&mut producer, 7).base_offset, 0);
    assert_eq!(values(&Fetched::read(&mut socket, 5).records), ["b"]);
    assert_eq!(read_frame(&mut socket), [0, 0, 0, 6, 1, 2]);
}

#[test]
fn a_request_without_its_answer_is_worked_on_and_ends_its_connection() {
    for acks in [-1, 0] {
        let plane = Plane::start();
        plane.topic("t", 1);
        plane.data_plane().intercept(&[PRODUCE]);
        let mut socket = plane.connect();
        let request = produce_request(7, "t", 0, acks, &batch(&["a"]));
        socket.write_all(&[request, fetch_request(8, "t", 0, 0, 1, 0)].concat()).unwrap();
        let request = intercepted(&plane);
        plane.data_plane().decide(request.connection, Decision::ProceedUnanswered { close: true });
        assert_eq!(socket.read(&mut [0; 1]).unwrap(), 0);
        assert_eq!(plane.partition("t", 0).log().log_end_offset(), 1);
        plane.wait_until(|| plane.connections() == 0);
    }
}

#[test]
fn a_fetch_that_waits_ends_its_connection_when_it_would_be_answered() {
    let plane = Plane::start();
    plane.topic("t", 1);
    plane.data_plane().intercept(&[FETCH]);
    let (mut consumer, mut producer) = (plane.connect(), plane.connect());
    consumer.write_all(&fetch_request(1, "t", 0, 0, 1, 60_000)).unwrap();
    let request = intercepted(&plane);
    plane.data_plane().decide(request.connection, Decision::ProceedUnanswered { close: true });
    plane.wait_until(|| plane.partition("t", 0).waiting() == 1);
    producer.write_all(&produce_request(2, "t", 0, -1, &batch(&["x"]))).unwrap();
    assert_eq!(Produced::read(&mut producer, 2).error, 0);
    assert_eq!(consumer.read(&mut [0; 1]).unwrap(), 0);
}

#[test]
fn nothing_that_follows_a_silent_request_is_answered_and_the_connection_stays() {
    let plane = Plane::start();
    plane.topic("t", 1);
    plane.data_plane().intercept(&[PRODUCE]);
    let mut socket = plane.connect();
    socket.write_all(&produce_request(7, "t", 0, -1, &batch(&["a"]))).unwrap();
    let request = intercepted(&plane);
    plane.data_plane().decide(request.connection, Decision::ProceedUnanswered { close: false });
    plane.data_plane().intercept(&[]);
    socket.write_all(&produce_request(8, "t", 0, -1, &batch(&["b"]))).unwrap();
    plane.wait_until(|| plane.partition("t", 0).log().log_end_offset() == 2);
    socket.set_nonblocking(true).unwrap();
    assert_eq!(socket.read(&mut [0; 1]).unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
    assert_eq!(plane.connections(), 1);
}

#[test]
fn a_decision_about_what_was_not_asked_for_changes_nothing() {
    let plane = Plane::start();
    plane.topic("t", 1);
    let mut socket = plane.connect();
    plane.data_plane().intercept(&[PRODUCE]);
    socket.write_all(&produce_request(7, "t", 0, -1, &batch(&["a"]))).unwrap();
    let request = intercepted(&plane);
    for _ in 0..2 {
        plane.data_plane().decide(request.connection, Decision::Proceed);
        plane.data_plane().decide(request.connection + (1 << 20), Decision::Proceed);
    }
    assert_eq!(Produced::read(&mut socket, 7).error, 0);
    assert_eq!(plane.partition("t", 0).log().log_end_offset(), 1);
}

#[test]
fn listeners_may_close_and_open_again_and_connections_end_at_once() {
    let plane = Plane::start();
    plane.topic("t", 1);
    let mut socket = plane.connect();
    socket.write_all(&produce_request(7, "t", 0, -1, &batch(&["a"]))).unwrap();
    Produced::read(&mut socket, 7);
    plane.data_plane().stop_accepting();
    plane.data_plane().close_connections();
    assert_eq!(socket.read(&mut [0; 1]).unwrap(), 0);
    assert!(std::net::TcpStream::connect(socket.peer_addr().unwrap()).is_err());
    plane.data_plane().resume_accepting().unwrap();
    plane.listen_again();
    let mut socket = plane.connect();
    socket.write_all(&produce_request(8, "t", 0, -1, &batch(&["b"]))).unwrap();
    assert_eq!(Produced::read(&mut socket, 8).base_offset, 1);
}
