//! Responding on a thread that does not own the connection: to a fetch on the thread of the append that completes the fetch,
//! to a control request on the control plane's thread.
//!
//! To wake the owner costs more than a small response: a system call and a thread switch. So the appending processor
//! responds to the first small fetch itself, after its producer. The control plane sends a small response itself. They use
//! the connection only if no other thread has locked it and the request is all its work. Everything else is left to the
//! owner.
//!
//! Without `try_respond`, EndTxn on an idle broker takes 1.26 times as long, and the broker 1.38 times the CPU for each
//! transaction (row 87 of `bench/REPORT.md`).

use rustix::event::epoll::EventFlags;

use crate::connection::bare_tokens;
use crate::connection::{Connection, Slot};
use crate::hot_path::HotPathApi;
use crate::measures::counters::ThreadCounters;
use crate::measures::times::RequestTimes;
use crate::scheduling::clock::NANOSECONDS_OF_MS;
use crate::scheduling::inbox::Message;
use crate::scheduling::reactor::Reactor;
use pybroker_replica::Waiter;

/// Larger responses are left to the owner: the control plane should not copy them into sockets.
const SMALL_RESPONSE_BYTES: usize = 16 << 10;

/// Responds to a fetch on another processor's connection, on the thread that writes `counters`; `false` if the owner has to
/// respond.
pub fn try_serve(reactor: &Reactor, counters: &ThreadCounters, waiter: Waiter) -> bool {
    let Some(open) = reactor.open.get(waiter.connection) else { return true };
    let Some(mut connection) = open.try_lock() else { return false };
    if !connection.only_waits() {
        return false;
    }
    match connection.slot_mut(waiter.request) {
        Some(Slot::Fetch(_)) => {}
        Some(Slot::Produce(_)) => return false,
        Some(Slot::Control(_) | Slot::Held(_) | Slot::Delayed(_) | Slot::Ready(_)) | None => return true,
    }
    connection.now_ns = reactor.clock.now_ns();
    let now = connection.now_ns;
    if let Some(times) = connection.times_mut(waiter.request) {
        times.resume(now);
    }
    if let Some(Slot::Fetch(fetch)) = connection.take_out(waiter.request) {
        let response = fetch.complete(&reactor.hot_path, &connection.accepted.listener, counters);
        counters.ended(HotPathApi::Fetch.key(), response.size());
        counters.wait_ended(HotPathApi::Fetch.key());
        connection.now_ns = reactor.clock.now_ns();
        connection.respond(waiter.request, response);
    }
    write(reactor, &mut connection, &|times, now| counters.took(times, now));
    true
}

/// Responds to a control request on this thread; `false` if the connection's owner has to respond.
pub fn try_respond(reactor: &Reactor, to: Waiter, payload: &[u8]) -> bool {
    let Some(open) = reactor.open.get(to.connection) else { return true };
    let Some(mut connection) = open.try_lock() else { return false };
    // A connection without interest in reads needs its interest restored after the response; only the owner does that.
    let plain = connection.only_waits() && connection.interest.contains(EventFlags::IN);
    if !plain || payload.len() > SMALL_RESPONSE_BYTES {
        return false;
    }
    let (requested, counts) = match connection.slot_mut(to.request) {
        Some(&mut Slot::Control(requested)) => (requested, true),
        Some(&mut Slot::Held(requested)) => (requested, false),
        Some(Slot::Fetch(_) | Slot::Produce(_) | Slot::Delayed(_) | Slot::Ready(_)) | None => return true,
    };
    connection.now_ns = reactor.clock.now_ns();
    let response = bare_tokens::respond(&mut connection, requested, payload);
    reactor.counters.ended_by_control_plane(requested.api_key, response.size());
    connection.respond(to.request, response);
    write(reactor, &mut connection, &|times, now| reactor.counters.took_by_control_plane(times, now));
    drop(connection);
    if counts {
        reactor.control_done();
    }
    true
}

fn write(reactor: &Reactor, connection: &mut Connection, took: &dyn Fn(&RequestTimes, u64)) {
    let written = connection.write(connection.now_ns / NANOSECONDS_OF_MS);
    if connection.has_sent() {
        let now = reactor.clock.now_ns();
        while let Some(times) = connection.take_sent() {
            took(&times, now);
        }
    }
    connection.now_ns = 0;
    if let Some((before, now)) = connection.account() {
        reactor.account_responses(connection.number, before, now);
    }
    if written.is_err() || connection.out_bytes() > 0 || connection.metering.wants_timer() {
        // The owner writes the rest, sets the timer of a muted connection, or gets the same error and ends the connection.
        let connection = connection.number;
        reactor.inboxes.post(connection, Message::Complete { connection });
    }
}
