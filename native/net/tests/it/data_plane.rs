//! The data plane over real sockets: frames in, answers out, in order, with bad input beside good.

mod authentication;
mod bounds;
mod control_only;
mod counters;
mod group_flush;
mod interception;
mod read_committed;
mod replication;
mod roles;
mod support;
mod threads;
mod transactions;

use std::io::{Read, Write};
use std::net::Shutdown;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pybroker_net::{Event, UnresolvedRequest};
use pybroker_record::Messages;
use pybroker_replica::TopicTable;
use support::{
    Fetched, Plane, Produced, batch, fetch_request, frame, message_set, old_fetch_request, old_produce_request,
    produce_request, read_frame, values,
};

fn unresolved(plane: &Plane) -> UnresolvedRequest {
    match plane.event(|event| matches!(event, Event::Unresolved(_))) {
        Event::Unresolved(request) => request,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_produce_is_answered_with_its_offset_and_a_fetch_gives_the_bytes_back() {
    let plane = Plane::start();
    plane.topic("t", 1);
    let mut socket = plane.connect();
    for expected in [0_i64, 2] {
        socket.write_all(&produce_request(7, "t", 0, -1, &batch(&["a", "b"]))).unwrap();
        let response = Produced::read(&mut socket, 7);
        assert_eq!((response.error, response.base_offset), (0, expected));
    }
    socket.write_all(&fetch_request(8, "t", 0, 0, 1, 0)).unwrap();
    let response = Fetched::read(&mut socket, 8);
    assert_eq!((response.error, response.high_watermark), (0, 4));
    assert_eq!(values(&response.records), ["a", "b", "a", "b"]);
}

#[test]
fn a_fetch_from_inside_a_batch_gives_the_whole_batch() {
    let plane = Plane::start();
    plane.topic("t", 1);
    let mut socket = plane.connect();
    socket.write_all(&produce_request(1, "t", 0, 1, &batch(&["a", "b", "c"]))).unwrap();
    Produced::read(&mut socket, 1);
    socket.write_all(&fetch_request(2, "t", 0, 2, 1, 0)).unwrap();
    assert_eq!(values(&Fetched::read(&mut socket, 2).records), ["a", "b", "c"]);
}

#[test]
fn old_versions_carry_old_messages_both_ways() {
    let plane = Plane::start();
    plane.topic("t", 1);
    let mut socket = plane.connect();
    for (version, first) in [(0, 0), (1, 3), (2, 6)] {
        let magic = i8::from(version == 2);
        let set = message_set(magic, &["a", "b", "c"]);
        socket.write_all(&old_produce_request(version, 7, "t", &set)).unwrap();
        let response = Produced::read(&mut socket, 7);
        assert_eq!((response.error, response.base_offset), (0, first));
    }
    socket.write_all(&produce_request(8, "t", 0, -1, &batch(&["x", "y"]))).unwrap();
    assert_eq!(Produced::read(&mut socket, 8).base_offset, 9);
    for version in 0..4 {
        let magic = i8::from(version >= 2);
        let (mut found, mut offset) = (Vec::new(), 1);
        // An answer ends with its segment, and messages without a time let one roll.
        while offset < 11 {
            socket.write_all(&old_fetch_request(version, 9, "t", offset)).unwrap();
            let response = Fetched::read_version(&mut socket, 9, version);
            assert_eq!((response.error, response.high_watermark), (0, 11));
            for message in Messages::new(&response.records).map(Result::unwrap) {
                offset = message.offset + 1;
                found.push((message.offset, message.magic, message.value.unwrap_or_default().to_vec()));
            }
        }
        let values = ["b", "c", "a", "b", "c", "a", "b", "c", "x", "y"];
        let wanted: Vec<_> = (1..).zip(values).map(|(at, value)| (at, magic, value.as_bytes().to_vec())).collect();
        assert_eq!(found, wanted, "version {version}");
    }
}

#[test]
fn a_waiting_fetch_of_an_old_version_is_answered_with_old_messages() {
    let plane = Plane::start();
    plane.topic("t", 1);
    let (mut consumer, mut producer) = (plane.connect(), plane.connect());
    consumer.write_all(&old_fetch_request(1, 1, "t", 0)).unwrap();
    plane.wait_until(|| plane.partition("t", 0).waiting() == 1);
    producer.write_all(&produce_request(2, "t", 0, -1, &batch(&["x"]))).unwrap();
    let response = Fetched::read_version(&mut consumer, 1, 1);
    let found: Vec<_> = Messages::new(&response.records).map(|message| message.unwrap().magic).collect();
    assert_eq!(found, [0]);
}

#[test]
fn a_waiting_fetch_wakes_with_the_append_and_not_with_its_time_limit() {
    let plane = Plane::start();
    plane.topic("t", 1);
    let (mut consumer, mut producer) = (plane.connect(), plane.connect());
    let begun = Instant::now();
    consumer.write_all(&fetch_request(1, "t", 0, 0, 1, 60_000)).unwrap();
    plane.wait_until(|| plane.partition("t", 0).waiting() == 1);
    producer.write_all(&produce_request(2, "t", 0, -1, &batch(&["x"]))).unwrap();
    assert_eq!(values(&Fetched::read(&mut consumer, 1).records), ["x"]);
    assert!(begun.elapsed() < Duration::from_secs(30));
    assert_eq!(plane.partition("t", 0).waiting(), 0);
}

#[test]
fn a_waiting_fetch_is_answered_empty_when_its_time_is_up() {
    let plane = Plane::start();
    plane.topic("t", 1);
    let mut socket = plane.connect();
    socket.write_all(&fetch_request(1, "t", 0, 0, 1, 50)).unwrap();
    let response = Fetched::read(&mut socket, 1);
    assert_eq!((response.error, response.records.len()), (0, 0));
    assert_eq!(plane.partition("t", 0).waiting(), 0);
}

/// Three network threads, six connections: appends satisfy fetches of connections that other threads own while these
/// are being driven, closed and written to.
#[test]
fn fetches_of_every_processor_follow_small_appends_of_every_processor() {
    const APPENDS: i64 = 400;
    let plane = Plane::with(|settings| settings.network_threads = 3);
    plane.topic("t", 1);
    let consumers: Vec<_> = (0..3).map(|_| plane.connect()).collect();
    let producers: Vec<_> = (0..3).map(|_| plane.connect()).collect();
    std::thread::scope(|threads| {
        for mut socket in producers {
            threads.spawn(move || {
                for correlation in 0..APPENDS as i32 / 3 + 1 {
                    socket.write_all(&produce_request(correlation, "t", 0, -1, &batch(&["x"]))).unwrap();
                    assert_eq!(Produced::read(&mut socket, correlation).error, 0);
                }
            });
        }
        for mut socket in consumers {
            threads.spawn(move || {
                let (mut offset, mut correlation) = (0, 0);
                while offset < APPENDS {
                    // The second is read behind the first, which may wait: its connection has more than one in work.
                    let mut frames = fetch_request(correlation, "t", 0, offset, 1, 60_000);
                    frames.extend(fetch_request(correlation + 1, "t", 0, 0, 1, 0));
                    socket.write_all(&frames[..frames.len() - correlation as usize % 2 * 10]).unwrap();
                    let fetched = values(&Fetched::read(&mut socket, correlation).records).len();
                    assert!(fetched > 0, "a fetch with a minute's time came back empty at offset {offset}");
                    socket.write_all(&frames[frames.len() - correlation as usize % 2 * 10..]).unwrap();
                    Fetched::read(&mut socket, correlation + 1);
                    offset += fetched as i64;
                    correlation += 3;
                }
            });
        }
    });
    assert_eq!(plane.partition("t", 0).waiting(), 0);
}

#[test]
fn a_fetch_waits_until_as_many_bytes_have_come_as_it_asked_for() {
    let plane = Plane::start();
    plane.topic("t", 1);
    let (mut consumer, mut producer) = (plane.connect(), plane.connect());
    let one = batch(&["x"]);
    consumer.write_all(&fetch_request(1, "t", 0, 0, 2 * one.len() as i32, 60_000)).unwrap();
    plane.wait_until(|| plane.partition("t", 0).waiting() == 1);
    producer.write_all(&produce_request(2, "t", 0, -1, &one)).unwrap();
    Produced::read(&mut producer, 2);
    assert_eq!(plane.partition("t", 0).waiting(), 1);
    producer.write_all(&produce_request(3, "t", 0, -1, &one)).unwrap();
    assert_eq!(values(&Fetched::read(&mut consumer, 1).records), ["x", "x"]);
}

#[test]
fn pipelined_requests_are_answered_in_their_order_even_when_an_early_one_waits() {
    let plane = Plane::start();
    plane.topic("t", 1);
    let mut socket = plane.connect();
    let mut frames = fetch_request(1, "t", 0, 0, 1, 60_000);
    for correlation in 2..6 {
        frames.extend(produce_request(correlation, "t", 0, 1, &batch(&["x"])));
    }
    socket.write_all(&frames).unwrap();
    assert_eq!(values(&Fetched::read(&mut socket, 1).records)[0], "x");
    for correlation in 2..6 {
        assert_eq!(Produced::read(&mut socket, correlation).base_offset, i64::from(correlation) - 2);
    }
}

#[test]
fn an_unknown_topic_goes_up_once_and_is_taken_up_again() {
    let plane = Plane::start();
    let mut socket = plane.connect();
    socket.write_all(&produce_request(1, "late", 0, 1, &batch(&["x"]))).unwrap();
    let request = unresolved(&plane);
    assert_eq!(request.topics, ["late"]);
    plane.topic("late", 2);
    plane.retry(request.connection, request.request);
    assert_eq!(Produced::read(&mut socket, 1).error, 0);

    socket.write_all(&produce_request(2, "never", 0, 1, &batch(&["x"]))).unwrap();
    let request = unresolved(&plane);
    plane.retry(request.connection, request.request);
    assert_eq!(Produced::read(&mut socket, 2).error, 3);
}

#[test]
fn control_requests_go_up_and_their_answers_come_back_behind_those_before_them() {
    let plane = Plane::start();
    plane.topic("t", 1);
    let mut socket = plane.connect();
    socket.write_all(&fetch_request(1, "t", 0, 0, 1, 60_000)).unwrap();
    socket.write_all(&frame(18, 0, 2, b"")).unwrap();
    let Event::Control(request) = plane.event(|event| matches!(event, Event::Control(_))) else { unreachable!() };
    assert_eq!(request.client_id.as_deref(), Some("test"));
    plane.respond(request.connection, request.request, b"payload");
    let mut producer = plane.connect();
    producer.write_all(&produce_request(1, "t", 0, 1, &batch(&["x"]))).unwrap();
    assert_eq!(values(&Fetched::read(&mut socket, 1).records), ["x"]);
    assert_eq!(read_frame(&mut socket), [&2_i32.to_be_bytes()[..], b"payload"].concat());
}

#[test]
fn bad_frames_close_their_connection_with_one_line_and_harm_no_other() {
    let plane = Plane::start();
    plane.topic("t", 1);
    let mut good = plane.connect();
    let negative = (-1_i32).to_be_bytes().to_vec();
    let large = i32::MAX.to_be_bytes().to_vec();
    let short = [&3_i32.to_be_bytes()[..], &[0, 0, 0]].concat();
    let unknown_key = frame(999, 0, 1, b"");
    let unknown_version = frame(0, 99, 1, b"");
    let absurd_array = frame(0, 3, 1, &[0xff, 0xff, 0, 1, 0, 0, 0, 0, 0x7f, 0xff, 0xff, 0xff]);
    for bytes in [negative, large, short, unknown_key, unknown_version, absurd_array] {
        let mut bad = plane.connect();
        bad.write_all(&bytes).unwrap();
        assert_eq!(bad.read(&mut [0; 8]).unwrap_or(0), 0);
        plane.event(|event| matches!(event, Event::Line { text, .. } if text.contains("closed")));
    }
    good.write_all(&produce_request(1, "t", 0, 1, &batch(&["x"]))).unwrap();
    assert_eq!(Produced::read(&mut good, 1).error, 0);
}

#[test]
fn a_corrupt_batch_is_refused_and_leaves_nothing() {
    let plane = Plane::start();
    plane.topic("t", 1);
    let mut socket = plane.connect();
    let mut bytes = batch(&["x"]);
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    socket.write_all(&produce_request(1, "t", 0, 1, &bytes)).unwrap();
    assert_eq!(Produced::read(&mut socket, 1).error, 2);
    assert_eq!(plane.partition("t", 0).log().log_end_offset(), 0);
}

#[test]
fn acks_zero_is_not_answered_and_an_error_closes_the_connection() {
    let plane = Plane::start();
    plane.topic("t", 1);
    let mut socket = plane.connect();
    socket.write_all(&produce_request(1, "t", 0, 0, &batch(&["x"]))).unwrap();
    socket.write_all(&produce_request(2, "t", 0, 1, &batch(&["y"]))).unwrap();
    assert_eq!(Produced::read(&mut socket, 2).base_offset, 1);
    socket.write_all(&produce_request(3, "t", 7, 0, &batch(&["z"]))).unwrap();
    assert_eq!(socket.read(&mut [0; 8]).unwrap_or(0), 0);
}

#[test]
fn a_connection_that_ends_takes_its_waiting_fetch_with_it() {
    let plane = Plane::start();
    plane.topic("t", 1);
    let mut socket = plane.connect();
    socket.write_all(&fetch_request(1, "t", 0, 0, 1, 60_000)).unwrap();
    plane.wait_until(|| plane.partition("t", 0).waiting() == 1);
    socket.shutdown(Shutdown::Both).unwrap();
    plane.wait_until(|| plane.partition("t", 0).waiting() == 0);
}

#[test]
fn shutting_down_answers_a_waiting_fetch() {
    let plane = Plane::start();
    plane.topic("t", 1);
    let mut socket = plane.connect();
    socket.write_all(&fetch_request(1, "t", 0, 0, 1, 60_000)).unwrap();
    plane.wait_until(|| plane.partition("t", 0).waiting() == 1);
    plane.shut_down();
    assert_eq!(Fetched::read(&mut socket, 1).error, 0);
}

#[test]
fn a_large_frame_that_comes_in_pieces_is_put_together() {
    let plane = Plane::start();
    plane.topic("t", 1);
    let mut socket = plane.connect();
    let value = "v".repeat(900_000);
    let request = produce_request(1, "t", 0, 1, &batch(&[&value]));
    for piece in request.chunks(70_001) {
        socket.write_all(piece).unwrap();
    }
    assert_eq!(Produced::read(&mut socket, 1).error, 0);
    socket.write_all(&fetch_request(2, "t", 0, 0, 1, 0)).unwrap();
    assert_eq!(values(&Fetched::read(&mut socket, 2).records), [value]);
}

#[test]
fn an_empty_table_is_published_and_forgets_its_topics() {
    let plane = Plane::start();
    plane.topic("t", 1);
    plane.publish(Arc::new(TopicTable::default()));
    let mut socket = plane.connect();
    socket.write_all(&fetch_request(1, "t", 0, 0, 1, 0)).unwrap();
    let request = unresolved(&plane);
    plane.retry(request.connection, request.request);
    assert_eq!(Fetched::read(&mut socket, 1).error, 3);
}

#[test]
fn control_requests_beyond_the_limit_wait_in_their_connection() {
    let plane = Plane::with(|settings| settings.queued_max_requests = 2);
    let mut sockets = [plane.connect(), plane.connect(), plane.connect(), plane.connect()];
    for socket in &mut sockets {
        for correlation in 0..3_i32 {
            socket.write_all(&frame(18, 0, correlation, b"")).unwrap();
        }
    }
    let mut responded = 0;
    while responded < 12 {
        let mut waiting = Vec::new();
        while waiting.is_empty() {
            waiting.extend(plane.events());
        }
        assert!(waiting.len() <= 2, "{} control requests at once", waiting.len());
        for event in waiting {
            if let Event::Control(request) = event {
                plane.respond(request.connection, request.request, b"");
                responded += 1;
            }
        }
    }
    for socket in &mut sockets {
        for correlation in 0..3_i32 {
            assert_eq!(read_frame(socket), correlation.to_be_bytes());
        }
    }
}

#[test]
fn an_idle_connection_is_closed_also_while_it_waits_for_data_and_one_that_is_worked_on_is_not() {
    let plane = Plane::with(|settings| settings.connections_max_idle_ms = 30);
    plane.topic("t", 1);
    let (mut idle, mut waiting, mut worked_on) = (plane.connect(), plane.connect(), plane.connect());
    waiting.write_all(&fetch_request(1, "t", 0, 0, 1, 60_000)).unwrap();
    worked_on.write_all(&frame(3, 0, 5, b"")).unwrap();
    assert_eq!(idle.read(&mut [0; 8]).unwrap(), 0);
    assert_eq!(waiting.read(&mut [0; 8]).unwrap(), 0);
    plane.wait_until(|| plane.partition("t", 0).waiting() == 0 && plane.connections() == 1);
    let Event::Control(request) = plane.event(|event| matches!(event, Event::Control(_))) else { unreachable!() };
    plane.respond(request.connection, request.request, b"");
    assert_eq!(read_frame(&mut worked_on), 5_i32.to_be_bytes());
    plane.wait_until(|| plane.connections() == 0);
}

#[test]
fn connections_beyond_the_limit_wait_until_one_ends_and_one_line_says_so() {
    let plane = Plane::with(|settings| settings.max_connections = 1);
    let first = plane.connect();
    plane.wait_until(|| plane.connections() == 1);
    let mut waiting: Vec<_> = (0..5).map(|_| plane.connect()).collect();
    for socket in &mut waiting {
        socket.write_all(&frame(18, 0, 1, b"")).unwrap();
    }
    plane.event(
        |event| matches!(event, Event::Line { text, .. } if text.starts_with("1 connections are open (a test)")),
    );
    assert_eq!(plane.connections(), 1);
    drop(first);
    for _ in 0..5 {
        // The request says which client was accepted; that client makes room for the next by closing.
        let event = plane.event(|event| matches!(event, Event::Control(_)));
        let Event::Control(request) = event else { unreachable!() };
        let at = waiting.iter().position(|socket| socket.local_addr().unwrap() == request.peer).unwrap();
        waiting.remove(at);
    }
    assert!(!plane.has_seen(|event| matches!(event, Event::Line { text, .. } if text.contains("are open"))));
}

#[test]
fn a_peer_that_does_not_read_its_answers_is_not_read_from_and_gets_them_all_later() {
    let plane = Plane::with(|settings| {
        settings.queued_response_bytes_per_connection = 1 << 20;
        settings.socket_send_buffer_bytes = 64 << 10;
        settings.socket_receive_buffer_bytes = 64 << 10;
    });
    plane.topic("t", 1);
    let mut socket = plane.connect();
    let value = "v".repeat(500_000);
    socket.write_all(&produce_request(0, "t", 0, 1, &batch(&[&value]))).unwrap();
    Produced::read(&mut socket, 0);
    let mut writer = socket.try_clone().unwrap();
    let metadata_request = std::thread::spawn(move || {
        for correlation in 1..200 {
            writer.write_all(&fetch_request(correlation, "t", 0, 0, 1, 0)).unwrap();
        }
    });
    metadata_request.join().unwrap();
    for correlation in 1..200 {
        assert_eq!(values(&Fetched::read(&mut socket, correlation).records), [value.as_str()]);
    }
}
