//! Network threads that come and go under connections, and listeners that are closed while others serve.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::support::{Fetched, Plane, Produced, batch, fetch_request, frame, produce_request, read_frame, values};
use pybroker_net::Event;

fn append(socket: &mut TcpStream, correlation: i32) -> i64 {
    socket.write_all(&produce_request(correlation, "t", 0, -1, &batch(&["x"]))).unwrap();
    Produced::read(socket, correlation).base_offset
}

#[test]
fn connections_and_what_they_wait_for_outlive_their_threads() {
    let plane = Plane::with(|settings| settings.network_threads = 4);
    plane.topic("t", 1);
    let mut sockets: Vec<_> = (0..8).map(|_| plane.connect()).collect();
    for (offset, socket) in (0..).zip(&mut sockets) {
        assert_eq!(append(socket, 1), offset);
    }
    let mut correlation = 1;
    for count in [2, 1, 3, 8, 4, 1, 4] {
        correlation += 2;
        let end = plane.partition("t", 0).log().log_end_offset();
        for socket in &mut sockets[1..] {
            socket.write_all(&fetch_request(correlation, "t", 0, end, 1, 60_000)).unwrap();
        }
        plane.wait_until(|| plane.partition("t", 0).waiting() == 7);
        plane.data_plane().set_network_threads(count).unwrap();
        assert_eq!(plane.data_plane().network_threads(), count);
        assert_eq!(append(&mut sockets[0], correlation), end);
        for socket in &mut sockets[1..] {
            assert_eq!(values(&Fetched::read(socket, correlation).records), ["x"]);
        }
        // Connections of now are dealt to the threads that there are.
        for mut socket in (0..5).map(|_| plane.connect()) {
            append(&mut socket, correlation + 1);
        }
    }
    plane.wait_until(|| plane.connections() == 8);
    plane.shut_down();
}

#[test]
fn deadlines_and_answers_of_the_control_plane_reach_connections_whose_thread_has_left() {
    let plane = Plane::with(|settings| settings.network_threads = 3);
    plane.topic("t", 1);
    let mut sockets: Vec<_> = (0..3).map(|_| plane.connect()).collect();
    for (number, socket) in sockets.iter_mut().enumerate() {
        append(socket, 1);
        socket.write_all(&frame(19, 0, number as i32, &[])).unwrap();
    }
    plane.data_plane().set_network_threads(1).unwrap();
    for _ in 0..3 {
        let Event::Control(request) = plane.event(|event| matches!(event, Event::Control(_))) else { unreachable!() };
        plane.respond(request.connection, request.request, &[7]);
    }
    for (number, socket) in (0..).zip(&mut sockets) {
        assert_eq!(read_frame(socket), [0, 0, 0, number, 7]);
        socket.write_all(&fetch_request(9, "t", 0, 3, 1, 50)).unwrap();
        assert_eq!(Fetched::read(socket, 9).records.len(), 0, "it waits its 50 ms and no longer");
    }
}

/// Producers and consumers of every thread, while their threads come and go.
#[test]
fn no_request_fails_while_threads_come_and_go() {
    const APPENDS: i64 = 300;
    let plane = Plane::with(|settings| settings.network_threads = 3);
    plane.topic("t", 1);
    let producers: Vec<_> = (0..3).map(|_| plane.connect()).collect();
    let consumers: Vec<_> = (0..3).map(|_| plane.connect()).collect();
    let done = AtomicBool::new(false);
    std::thread::scope(|threads| {
        threads.spawn(|| {
            for count in [6, 3, 1, 2, 4, 8].iter().cycle() {
                plane.data_plane().set_network_threads(*count).unwrap();
                if done.load(Ordering::Acquire) {
                    return;
                }
            }
        });
        let working: Vec<_> = producers
            .into_iter()
            .map(|mut socket| {
                threads
                    .spawn(move || (0..APPENDS as i32 / 3).for_each(|correlation| _ = append(&mut socket, correlation)))
            })
            .chain(consumers.into_iter().map(|mut socket| {
                threads.spawn(move || {
                    let (mut offset, mut correlation) = (0, 0);
                    while offset < APPENDS {
                        socket.write_all(&fetch_request(correlation, "t", 0, offset, 1, 60_000)).unwrap();
                        offset += values(&Fetched::read(&mut socket, correlation).records).len() as i64;
                        correlation += 1;
                    }
                })
            }))
            .collect();
        let ended: Vec<_> = working.into_iter().map(|thread| thread.join()).collect();
        done.store(true, Ordering::Release);
        assert!(ended.iter().all(Result::is_ok));
    });
    assert_eq!(plane.partition("t", 0).log().log_end_offset(), APPENDS);
}

#[test]
fn a_number_of_threads_that_may_not_be_changes_nothing() {
    let plane = Plane::start();
    for count in [0, 65] {
        let error = plane.data_plane().set_network_threads(count).unwrap_err();
        assert_eq!(error.to_string(), format!("num.network.threads is {count}; it has to be 1 to 64"));
    }
    assert_eq!(plane.data_plane().network_threads(), 2);
    plane.shut_down();
    assert!(plane.data_plane().set_network_threads(3).is_err(), "nothing begins after the end");
}

#[test]
fn a_closed_listener_ends_its_connections_when_they_are_answered_and_leaves_others() {
    let plane = Plane::start();
    plane.topic("t", 1);
    let port = plane.listen_control_only();
    let mut others: Vec<_> = (0..3).map(|_| TcpStream::connect(("127.0.0.1", port)).unwrap()).collect();
    for (number, socket) in others.iter_mut().enumerate() {
        socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        socket.write_all(&frame(3, 1, number as i32, &[])).unwrap();
    }
    let requested: Vec<_> = (0..3)
        .map(|_| match plane.event(|event| matches!(event, Event::Control(_))) {
            Event::Control(request) => (request.connection, request.request),
            other => panic!("{other:?}"),
        })
        .collect();
    let mut socket = plane.connect();
    assert_eq!(append(&mut socket, 1), 0);
    assert!(plane.data_plane().unlisten("CONTROL"));
    assert!(!plane.data_plane().unlisten("CONTROL"));
    assert!(TcpStream::connect(("127.0.0.1", port)).is_err(), "its port is free");
    for (connection, request) in requested {
        plane.respond(connection, request, &[7]);
    }
    for socket in &mut others {
        let mut rest = Vec::new();
        socket.read_to_end(&mut rest).unwrap();
        assert_eq!((rest.len(), rest[8]), (9, 7), "the answer, and then the end");
    }
    plane.wait_until(|| plane.connections() == 1);
    assert_eq!(append(&mut socket, 2), 1);
    // A listener of the same name is another one.
    plane.listen_control_only();
    assert!(plane.data_plane().unlisten("PLAINTEXT"));
    assert_eq!(socket.read(&mut [0]).unwrap(), 0);
}
