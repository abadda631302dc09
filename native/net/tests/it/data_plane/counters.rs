//! What is counted: requests, bytes and errors by API, and what is in work however it ends.

use std::io::Write;

use super::support::{Fetched, Plane, Produced, batch, fetch_request, frame, produce_request, read_frame};
use pybroker_net::{ApiCounters, ControlRequest, Event};
use pybroker_replica::TopicTable;

const PRODUCE: i16 = 0;
const FETCH: i16 = 1;
const CREATE_TOPICS: i16 = 19;

fn counters(plane: &Plane, api_key: i16) -> ApiCounters {
    let all = plane.data_plane().counters().apis;
    all.into_iter().find(|api| api.api_key == api_key).unwrap_or_default()
}

fn in_work(plane: &Plane) -> Vec<(i16, u64)> {
    let all = plane.data_plane().counters().apis;
    all.iter().filter(|api| api.in_work > 0).map(|api| (api.api_key, api.in_work)).collect()
}

fn control_request(plane: &Plane) -> ControlRequest {
    match plane.event(|event| matches!(event, Event::Control(_))) {
        Event::Control(request) => request,
        other => panic!("{other:?}"),
    }
}

#[test]
fn requests_and_bytes_are_counted_by_api_and_by_processor() {
    let plane = Plane::start();
    plane.topic("t", 1);
    let mut socket = plane.connect();
    let (produce, fetch) = (produce_request(1, "t", 0, -1, &batch(&["a"])), fetch_request(2, "t", 0, 0, 1, 0));
    socket.write_all(&produce).unwrap();
    let produced = read_frame(&mut socket).len() as u64 + 4;
    let mut fetched = 0;
    for _ in 0..2 {
        socket.write_all(&fetch).unwrap();
        fetched += read_frame(&mut socket).len() as u64 + 4;
    }
    let expected =
        ApiCounters { requests: 1, bytes_in: produce.len() as u64, bytes_out: produced, ..ApiCounters::default() };
    assert_eq!(counters(&plane, PRODUCE), expected);
    let bytes_in = 2 * fetch.len() as u64;
    let expected = ApiCounters { api_key: FETCH, requests: 2, bytes_in, bytes_out: fetched, ..ApiCounters::default() };
    assert_eq!(counters(&plane, FETCH), expected);
    let processors = plane.data_plane().counters().processors;
    assert_eq!(processors.iter().map(|it| it.requests).collect::<Vec<_>>(), [3, 0]);
    assert_eq!(
        (processors[0].bytes_in, processors[0].bytes_out),
        (produce.len() as u64 + bytes_in, produced + fetched)
    );
}

#[test]
fn errors_are_counted_by_code() {
    let plane = Plane::start();
    plane.topic("t", 1);
    let mut socket = plane.connect();
    for _ in 0..2 {
        socket.write_all(&produce_request(1, "t", 3, -1, &batch(&["a"]))).unwrap();
        assert_eq!(Produced::read(&mut socket, 1).error, 3);
    }
    socket.write_all(&fetch_request(2, "t", 0, 7, 1, 0)).unwrap();
    assert_eq!(Fetched::read(&mut socket, 2).error, 1);
    assert_eq!(counters(&plane, PRODUCE).errors, [(3, 2)]);
    assert_eq!(counters(&plane, FETCH).errors, [(1, 1)]);
}

#[test]
fn a_produce_without_an_answer_is_no_longer_in_work() {
    let plane = Plane::start();
    plane.topic("t", 1);
    let mut socket = plane.connect();
    socket.write_all(&produce_request(1, "t", 0, 0, &batch(&["a"]))).unwrap();
    plane.wait_until(|| counters(&plane, PRODUCE).requests == 1 && counters(&plane, PRODUCE).in_work == 0);
    // One that fails has no answer either: its connection is closed.
    socket.write_all(&produce_request(2, "t", 3, 0, &batch(&["a"]))).unwrap();
    plane.wait_until(|| plane.connections() == 0);
    let counted = counters(&plane, PRODUCE);
    assert_eq!((counted.requests, counted.in_work, counted.bytes_out, counted.errors), (2, 0, 0, vec![(3, 1)]));
}

#[test]
fn what_waits_is_in_work_until_it_is_answered() {
    let plane = Plane::start();
    plane.topic("t", 1);
    let mut waiting = plane.connect();
    waiting.write_all(&fetch_request(1, "t", 0, 0, 1, 60_000)).unwrap();
    plane.wait_until(|| in_work(&plane) == [(FETCH, 1)]);
    let mut metadata_request = plane.connect();
    let requested = frame(CREATE_TOPICS, 2, 9, b"body");
    metadata_request.write_all(&requested).unwrap();
    let request = control_request(&plane);
    assert_eq!((&*request.listener, request.peer), ("PLAINTEXT", metadata_request.local_addr().unwrap()));
    assert_eq!(in_work(&plane), [(FETCH, 1), (CREATE_TOPICS, 1)]);
    plane.respond(request.connection, request.request, b"done");
    let response = read_frame(&mut metadata_request);
    assert_eq!(response, [0, 0, 0, 9, b'd', b'o', b'n', b'e']);
    plane.wait_until(|| in_work(&plane) == [(FETCH, 1)]);
    let counted = counters(&plane, CREATE_TOPICS);
    assert_eq!((counted.bytes_in, counted.bytes_out), (requested.len() as u64, response.len() as u64 + 4));
    // The fetch is answered by the thread of this append, or by its own.
    let mut producer = plane.connect();
    producer.write_all(&produce_request(2, "t", 0, -1, &batch(&["a"]))).unwrap();
    let fetched = read_frame(&mut waiting).len() as u64 + 4;
    plane.wait_until(|| in_work(&plane).is_empty());
    assert_eq!(counters(&plane, FETCH).bytes_out, fetched);
}

#[test]
fn what_a_connection_leaves_behind_is_not_in_work() {
    let plane = Plane::start();
    plane.topic("t", 1);
    for (request, key) in [
        (fetch_request(1, "t", 0, 0, 1, 60_000), FETCH),
        (frame(CREATE_TOPICS, 2, 2, b""), CREATE_TOPICS),
        (produce_request(3, "unknown", 0, -1, &batch(&["a"])), PRODUCE),
    ] {
        let mut socket = plane.connect();
        socket.write_all(&request).unwrap();
        plane.wait_until(|| in_work(&plane) == [(key, 1)]);
        drop(socket);
        plane.wait_until(|| in_work(&plane).is_empty());
        assert_eq!((counters(&plane, key).requests, counters(&plane, key).bytes_out), (1, 0));
    }
}

#[test]
fn a_request_that_comes_up_before_it_is_decided_is_counted_once() {
    let plane = Plane::start();
    plane.publish(TopicTable::default().into());
    let mut socket = plane.connect();
    socket.write_all(&produce_request(1, "unknown", 0, -1, &batch(&["a"]))).unwrap();
    let Event::Unresolved(request) = plane.event(|event| matches!(event, Event::Unresolved(_))) else { unreachable!() };
    plane.retry(request.connection, request.request);
    assert_eq!(Produced::read(&mut socket, 1).error, 3);
    let counted = counters(&plane, PRODUCE);
    assert_eq!((counted.requests, counted.in_work, counted.errors), (1, 0, vec![(3, 1)]));
}
