//! A whole data plane over a transport with rare but legal socket behaviour.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use super::DataPlane;
use crate::accepting::accepted::Accepted;
use crate::accepting::connection_slots::Entry;
use crate::connection::identity::{Authentication, Identity};
use crate::scheduling::inbox::Message;
use crate::transport::Transport;
use crate::transport::adversarial::Adversarial;

#[path = "../../tests/it/data_plane/support.rs"]
#[allow(dead_code, reason = "the integration tests use the rest")]
mod support;

use support::{
    Fetched, Plane, Produced, batch, fetch_request, message_set, old_fetch_request, old_produce_request,
    produce_request, read_frame, values,
};

impl DataPlane {
    /// Gives the first processor a connection, as the acceptor does.
    fn place(&self, transport: Transport) {
        let address: SocketAddr = "127.0.0.1:0".parse().unwrap();
        let listener: Arc<str> = "TEST".into();
        assert_eq!(self.reactor.capacity.enter(&listener, address.ip(), 0), Entry::Taken);
        let nobody = Arc::new(Identity { kind: "User".into(), name: "ANONYMOUS".into() });
        let accepted = Accepted {
            transport,
            listener,
            control_only: false,
            authentication: Authentication::of_listener(Some(&nobody)),
            unauthenticated_max_bytes: 512,
            authentication_timeout_ms: 30_000,
            handshake_timeout_ms: None,
            local: address,
            peer: address,
        };
        self.reactor.inboxes.deal(0, Message::Accept(accepted));
    }
}

/// A client's socket, and the broker's socket of the same connection.
fn pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    client.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    (client, listener.accept().unwrap().0)
}

/// Values whose batch is larger than the copy limit of a response, so that its records are sent by `send_file`.
fn large() -> Vec<String> {
    (0..40).map(|number| format!("{number:01000}")).collect()
}

/// Sends two batches, and fetches them as stored and in an older format; all requests are sent before a response is read.
fn exchange(plane: &Plane, client: &mut TcpStream, topic: &str) {
    let large = large();
    let large: Vec<&str> = large.iter().map(String::as_str).collect();
    let requests = [
        produce_request(1, topic, 0, -1, &batch(&large)),
        produce_request(2, topic, 0, 1, &batch(&["a", "b"])),
        fetch_request(3, topic, 0, 0, 1, 0),
        fetch_request(4, topic, 0, 40, 1, 0),
        old_fetch_request(2, 5, topic, 0),
        old_produce_request(2, 6, topic, &message_set(1, &["c"])),
        // Waits for the append of another connection.
        fetch_request(7, topic, 0, 43, 1, 60_000),
    ];
    let mut sending = client.try_clone().unwrap();
    let sender = std::thread::spawn(move || std::io::Write::write_all(&mut sending, &requests.concat()).unwrap());
    assert_eq!(Produced::read(client, 1).base_offset, 0);
    assert_eq!(Produced::read(client, 2).base_offset, 40);
    let all = [&large[..], &["a", "b"]].concat();
    assert_eq!(values(&Fetched::read(client, 3).records), all);
    assert_eq!(values(&Fetched::read(client, 4).records), ["a", "b"]);
    assert!(Fetched::read_version(client, 5, 2).records.len() > 40 * 1000);
    assert_eq!(read_frame(client)[..4], [0, 0, 0, 6]);
    sender.join().unwrap();
    let mut other = plane.connect();
    std::io::Write::write_all(&mut other, &produce_request(8, topic, 0, -1, &batch(&["d"]))).unwrap();
    assert_eq!(Produced::read(&mut other, 8).base_offset, 43);
    assert_eq!(values(&Fetched::read(client, 7).records), ["d"]);
}

#[test]
fn answers_are_the_same_however_the_transport_cuts_and_refuses_calls() {
    let plane = Plane::start();
    for (id, most) in [1, 7, 100, 1000, 100_000, 1 << 20].into_iter().enumerate() {
        let topic = format!("t{id}");
        plane.topic(&topic, id as u8 + 1);
        let (mut client, server) = pair();
        plane.data_plane().place(Adversarial::over(server, 0x9e37_79b9 + id as u64, most, None));
        exchange(&plane, &mut client, &topic);
    }
    plane.wait_until(|| plane.connections() == 0);
}

#[test]
fn a_transport_that_fails_at_any_call_costs_its_connection_and_nothing_else() {
    let plane = Plane::start();
    plane.topic("t", 1);
    let large = large();
    let large: Vec<&str> = large.iter().map(String::as_str).collect();
    let mut producer = plane.connect();
    std::io::Write::write_all(&mut producer, &produce_request(1, "t", 0, -1, &batch(&large))).unwrap();
    assert_eq!(Produced::read(&mut producer, 1).error, 0);
    let mut whole = 0;
    for calls in (0..).step_by(7) {
        let (mut client, server) = pair();
        plane.data_plane().place(Adversarial::over(server, 1 + u64::from(calls), 2000, Some(calls)));
        let _ = std::io::Write::write_all(&mut client, &fetch_request(2, "t", 0, 0, 1, 0));
        // The broker may have closed the connection already.
        let _ = client.shutdown(std::net::Shutdown::Write);
        let mut received = Vec::new();
        let _ = std::io::Read::read_to_end(&mut client, &mut received);
        plane.wait_until(|| plane.connections() == 1);
        if received.len() > 40_000 {
            whole += 1;
        }
        if whole == 3 {
            break;
        }
    }
    std::io::Write::write_all(&mut producer, &fetch_request(3, "t", 0, 0, 1, 0)).unwrap();
    assert_eq!(values(&Fetched::read(&mut producer, 3).records), large);
}
