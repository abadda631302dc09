//! What a peer can make the data plane hold, and who pays for it.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::TcpStream;

use pybroker_net::{ControlRequest, Event};

use super::support::{Fetched, Plane, Produced, batch, fetch_request, frame, produce_request, read_frame, values};
use super::unresolved;

const METADATA: i16 = 3;

fn control(plane: &Plane) -> ControlRequest {
    match plane.event(|event| matches!(event, Event::Control(_))) {
        Event::Control(request) => request,
        other => panic!("{other:?}"),
    }
}

fn is_control(event: &Event) -> bool {
    matches!(event, Event::Control(_))
}

/// Sends a request and has it answered, so that everything which the peer sent before it has been looked at.
fn round_trip(plane: &Plane, socket: &mut TcpStream, correlation: i32) {
    socket.write_all(&frame(METADATA, 0, correlation, b"")).unwrap();
    let request = loop {
        let request = control(plane);
        if request.correlation_id == correlation {
            break request;
        }
        plane.respond(request.connection, request.request, b"");
    };
    plane.respond(request.connection, request.request, b"");
    assert_eq!(read_frame(socket), correlation.to_be_bytes());
}

#[test]
fn one_control_request_of_a_connection_is_in_work_at_a_time() {
    let plane = Plane::start();
    let (mut pipelining, mut other) = (plane.connect(), plane.connect());
    for correlation in 0..50 {
        pipelining.write_all(&frame(METADATA, 0, correlation, b"")).unwrap();
    }
    let first = control(&plane);
    other.write_all(&frame(METADATA, 0, 7, b"")).unwrap();
    assert_eq!(control(&plane).correlation_id, 7, "what else the first connection sent waits");
    assert!(!plane.events().iter().any(is_control));
    plane.respond(first.connection, first.request, b"");
    for correlation in 1..50 {
        let next = control(&plane);
        assert_eq!(next.correlation_id, correlation);
        assert!(!plane.events().iter().any(is_control));
        plane.respond(next.connection, next.request, b"");
    }
    for correlation in 0..50_i32 {
        assert_eq!(read_frame(&mut pipelining), correlation.to_be_bytes());
    }
}

#[test]
fn room_for_control_requests_goes_to_who_waits_longest() {
    let plane = Plane::with(|settings| settings.queued_max_requests = 1);
    plane.publish_api_versions(HashMap::from([(0, b"zero".to_vec())]));
    let mut sockets: Vec<_> = (0..6).map(|_| plane.connect()).collect();
    for socket in &mut sockets {
        // ApiVersions takes no room: its answer shows that what came with it has been looked at.
        let requests = [frame(18, 0, 0, b""), frame(METADATA, 0, 1, b""), frame(METADATA, 0, 2, b"")];
        socket.write_all(&requests.concat()).unwrap();
        assert_eq!(read_frame(socket)[4..], *b"zero");
    }
    let mut served = Vec::new();
    while served.len() < 12 {
        let request = control(&plane);
        assert!(!plane.events().iter().any(is_control), "two at once");
        served.push((request.connection, request.correlation_id));
        plane.respond(request.connection, request.request, b"");
    }
    for (connection, _) in &served {
        let turns: Vec<_> = (0..).zip(&served).filter(|(_, (who, _))| who == connection).map(|(at, _)| at).collect();
        assert_eq!(turns.len(), 2);
    }
    let first: std::collections::HashSet<_> = served[..6].iter().map(|(connection, _)| connection).collect();
    assert_eq!(first.len(), 6, "{served:?}: each has its turn before one has two");
}

#[test]
fn a_peer_that_closes_while_its_requests_wait_is_noticed() {
    let plane = Plane::with(|settings| settings.requests_in_work_per_connection = 64);
    plane.topic("t", 1);
    let mut sockets: Vec<_> = (0..20).map(|_| plane.connect()).collect();
    for socket in &mut sockets {
        for correlation in 0..100 {
            socket.write_all(&fetch_request(correlation, "t", 0, 0, 1, 600_000)).unwrap();
        }
    }
    plane.wait_until(|| plane.partition("t", 0).waiting() == 20 * 64);
    drop(sockets);
    plane.wait_until(|| plane.connections() == 0);
    assert_eq!(plane.partition("t", 0).waiting(), 0);
}

#[test]
fn what_a_peer_sent_before_it_closed_is_appended_although_it_was_not_read_from() {
    let plane = Plane::start();
    plane.topic("t", 1);
    let mut socket = plane.connect();
    socket.write_all(&produce_request(1, "lacking", 0, 0, &batch(&["x"]))).unwrap();
    let delayed = unresolved(&plane);
    for _ in 0..100 {
        socket.write_all(&produce_request(2, "t", 0, 0, &batch(&["a", "b"]))).unwrap();
    }
    plane.topic("lacking", 2);
    drop(socket);
    plane.retry(delayed.connection, delayed.request);
    plane.wait_until(|| plane.connections() == 0);
    assert_eq!(plane.partition("lacking", 0).log().log_end_offset(), 1);
    assert_eq!(plane.partition("t", 0).log().log_end_offset(), 200);
}

#[test]
fn unread_answers_beyond_the_limit_close_the_connections_that_hold_most() {
    let plane = Plane::with(|settings| {
        settings.network_threads = 1;
        settings.queued_response_bytes = 40 << 20;
        settings.socket_send_buffer_bytes = 64 << 10;
    });
    let mut small = plane.connect();
    let mut hoarders: Vec<_> = (0..4).map(|_| plane.connect()).collect();
    let response = vec![0_u8; 16 << 20];
    small.write_all(&frame(METADATA, 0, 1, b"")).unwrap();
    let request = control(&plane);
    plane.respond(request.connection, request.request, &response[..4 << 20]);
    for socket in &mut hoarders {
        socket.write_all(&frame(METADATA, 0, 2, b"")).unwrap();
        let request = control(&plane);
        plane.respond(request.connection, request.request, &response);
    }
    // Two are closed; they are of one address, so that the second has no line.
    plane.event(|event| matches!(event, Event::Line { text, .. } if text.contains("queued.max.response.bytes")));
    plane.wait_until(|| plane.connections() == 3);
    assert_eq!(read_frame(&mut small).len(), (4 << 20) + 4, "who holds little is not closed");
    round_trip(&plane, &mut small, 9);
}

#[test]
fn half_requests_beyond_the_limit_wait_for_memory_and_small_ones_do_not() {
    let plane = Plane::with(|settings| settings.queued_request_bytes = 3 << 20);
    plane.topic("t", 1);
    let value = "v".repeat(900_000);
    let large = produce_request(1, "t", 0, 1, &batch(&[&value]));
    let mut sockets: Vec<_> = (0..8).map(|_| plane.connect()).collect();
    let mut writers = Vec::new();
    for socket in &mut sockets {
        socket.set_nonblocking(true).unwrap();
        // Sockets' own buffers take some; the broker reads no more of those beyond the limit.
        writers.push(socket.write(&large[..large.len() - 1]).unwrap_or(0));
        socket.set_nonblocking(false).unwrap();
    }
    let held = "requests take queued.max.request.bytes";
    plane.event(|event| matches!(event, Event::Line { text, .. } if text.starts_with(held)));
    let mut newcomer = plane.connect();
    round_trip(&plane, &mut newcomer, 5);
    // The rest of every request: each is answered, one after the other gets the memory of those that are done.
    let rest: Vec<_> = sockets
        .into_iter()
        .zip(writers)
        .map(|(mut socket, written)| {
            let rest = large[written..].to_vec();
            std::thread::spawn(move || {
                socket.write_all(&rest).unwrap();
                Produced::read(&mut socket, 1).error
            })
        })
        .collect();
    for thread in rest {
        assert_eq!(thread.join().unwrap(), 0);
    }
    assert_eq!(plane.partition("t", 0).log().log_end_offset(), 8);
}

#[test]
fn memory_of_half_requests_is_given_back_when_their_peers_go() {
    let plane = Plane::with(|settings| settings.queued_request_bytes = 1 << 20);
    plane.topic("t", 1);
    let large = produce_request(1, "t", 0, 1, &batch(&[&"v".repeat(1_000_000)]));
    let mut hoarder = plane.connect();
    hoarder.write_all(&large[..100_000]).unwrap();
    let mut second = plane.connect();
    second.write_all(&large[..100_000]).unwrap();
    let mut third = plane.connect();
    third.write_all(&large[..100_000]).unwrap();
    plane.event(|event| matches!(event, Event::Line { .. }));
    drop(hoarder);
    drop(second);
    third.write_all(&large[100_000..]).unwrap();
    assert_eq!(Produced::read(&mut third, 1).error, 0);
}

#[test]
fn usual_api_versions_requests_are_answered_without_the_control_plane() {
    let plane = Plane::start();
    plane.publish_api_versions(HashMap::from([(0, b"zero".to_vec()), (3, b"three".to_vec())]));
    let mut socket = plane.connect();
    let body = [0, 2, b'a', 2, b'1', 0];
    socket.write_all(&frame(18, 3, 4, &body)).unwrap();
    assert_eq!(read_frame(&mut socket)[4..], *b"three");
    socket.write_all(&frame(18, 0, 5, b"")).unwrap();
    assert_eq!(read_frame(&mut socket)[4..], *b"zero");
    assert!(!plane.events().iter().any(is_control));
    socket.write_all(&frame(18, 2, 6, b"")).unwrap();
    assert_eq!(control(&plane).api_version, 2);
}

#[test]
fn an_append_that_satisfies_thousands_of_fetches_answers_them_all() {
    let plane = Plane::start();
    plane.topic("t", 1);
    let mut consumers: Vec<_> = (0..40).map(|_| plane.connect()).collect();
    for consumer in &mut consumers {
        for correlation in 0..100 {
            consumer.write_all(&fetch_request(correlation, "t", 0, 0, 1, 600_000)).unwrap();
        }
    }
    plane.wait_until(|| plane.partition("t", 0).waiting() == 4000);
    let mut producer = plane.connect();
    producer.write_all(&produce_request(2, "t", 0, -1, &batch(&["x"]))).unwrap();
    assert_eq!(Produced::read(&mut producer, 2).error, 0);
    for consumer in &mut consumers {
        for correlation in 0..100 {
            assert_eq!(values(&Fetched::read(consumer, correlation).records), ["x"]);
        }
    }
    let mut rest = [0; 1];
    consumers[0].set_nonblocking(true).unwrap();
    assert!(consumers[0].read(&mut rest).is_err());
}
