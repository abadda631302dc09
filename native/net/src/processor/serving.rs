//! Serving: a request is begun from a frame, then completed on the hot path or sent to the control plane, and evaluated
//! again after a wait.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use super::{AT_ONCE, Deadline, End, Processor};
use crate::connection::bare_tokens;
use crate::connection::connection_number::{CONTROL_PLANE, processor_of};
use crate::connection::identity::Authentication;
use crate::connection::read_state::ReadState;
use crate::connection::response::Response;
use crate::connection::{Closing, Connection, Delayed, Framing, Requested, Slot, Unanswered};
use crate::data_plane::api_versions::Software;
use crate::data_plane::events::{Event, UnresolvedRequest};
use crate::delayed_operations::interception::Decision;
use crate::delayed_operations::verification::{TransactionQuery, Verification, Verified};
use crate::hot_path::{self, Authorization, HotPathApi, HotPathRequest, Outcome, Unresolved, Who};
use crate::measures::counters::API_KEYS;
use crate::measures::times::RequestTimes;
use crate::quota::Metered;
use crate::scheduling::clock::NANOSECONDS_OF_MS;
use crate::scheduling::cross_thread;
use crate::scheduling::reactor::Reactor;
use pybroker_replica::Waiter;
use pybroker_wire::frame::RequestHead;
use pybroker_wire::{ApiKey, TopicRef};

/// Appends of larger frames wake the owner of a fetch on another thread: sending their records would delay the appending
/// processor.
const SMALL_APPEND_BYTES: usize = 16 << 10;
/// Bytes of the size in front of a frame.
const FRAME_SIZE_BYTES: usize = 4;

/// A new request of the hot path: its header, and the range of its frame.
struct Fresh {
    head: RequestHead,
    at: std::ops::Range<usize>,
}

impl Processor {
    /// Begins a request: on the hot path, or at the control plane.
    pub(super) fn begin(&mut self, connection: &mut Connection, at: std::ops::Range<usize>) -> Result<(), End> {
        if matches!(connection.accepted.authentication, Authentication::Tokens) {
            return self.hand_up(connection, &bare_tokens::HEAD, at);
        }
        let frame = connection.frame_mut(at.clone());
        let head = RequestHead::parse(frame).map_err(|error| End::Refused(error.to_string()))?;
        let now_ms = self.time(connection) / NANOSECONDS_OF_MS;
        if let Some(why) = connection.accepted.authentication.refusal(head.api_key, now_ms) {
            return Err(End::Refused(why));
        }
        if let Some(quotas) = self.reactor.hot_path.quotas.get()
            && !self.is_metered(quotas, connection, &head, &at)
        {
            return Ok(());
        }
        // A request that waited for a slot has been decided on already.
        if self.reactor.intercepted.contains(head.api_key) && connection.reading.is_ready() {
            self.intercept(connection, &head, at);
            return Ok(());
        }
        self.serve(connection, head, at)
    }

    /// The time, as cached for the current turn of a connection, ns.
    pub(super) fn time(&self, connection: &mut Connection) -> u64 {
        if connection.now_ns == 0 {
            connection.now_ns = self.reactor.clock.now_ns();
        }
        connection.now_ns
    }

    /// Reads the clock and caches the time, ns.
    pub(super) fn look_at_clock(&self, connection: &mut Connection) -> u64 {
        connection.now_ns = self.reactor.clock.now_ns();
        connection.now_ns
    }

    /// Executes a request on the hot path, or sends it to the control plane.
    fn serve(&mut self, connection: &mut Connection, head: RequestHead, at: std::ops::Range<usize>) -> Result<(), End> {
        let hot = hot_path::of(head.api_key).filter(|_| !connection.is_control_only());
        match hot {
            Some(api) => {
                hot_path::check_version(api, head.api_version).map_err(End::Refused)?;
                self.counters().begun(head.api_key, FRAME_SIZE_BYTES + at.len());
                let waiter = Waiter { connection: connection.number, request: connection.next_request() };
                let times = RequestTimes::begin(head.api_key, connection.arrived_ns, self.time(connection));
                let (who, metered) = (self.who(connection), connection.metering.begin(at.len()));
                let began = metered.as_ref().and_then(Metered::began);
                connection.open(Slot::Delayed(api), times);
                let (frame, listener) = connection.frame_of_listener(at.clone());
                let (decided, verified) = (None, None);
                let request = HotPathRequest { api, head: &head, waiter, listener, who, decided, verified, metered };
                let outcome = self.evaluate(request, frame);
                connection.metering.counted(began.map_or(Duration::ZERO, |began| began.elapsed()));
                self.look_at_clock(connection);
                self.conclude(connection, api, waiter.request, outcome, Some(Fresh { head, at }))
            }
            None => self.hand_up(connection, &head, at),
        }
    }

    /// The client of a connection, as the authorizer knows it; `None` without an authorizer.
    fn who(&self, connection: &mut Connection) -> Option<Who> {
        self.reactor.hot_path.rights.get().map(|rights| connection.who(rights))
    }

    /// Evaluates a request on the hot path; wakes the requests that an append completes.
    fn evaluate(&mut self, request: HotPathRequest<'_>, frame: &mut [u8]) -> Outcome {
        let near = frame.len() <= SMALL_APPEND_BYTES;
        let (reactor, index, woken) = (&*self.reactor, self.index, &mut self.woken);
        let mut wake = |waiter| wake(reactor, index, near, woken, waiter);
        let counters = reactor.counters.of(index);
        hot_path::handle(&reactor.hot_path, request, frame, &mut wake, counters)
    }

    /// Applies the outcome of a request, which has its slot. `fresh` is `None` for a retried request.
    fn conclude(
        &mut self,
        connection: &mut Connection,
        api: HotPathApi,
        request: u64,
        outcome: Outcome,
        fresh: Option<Fresh>,
    ) -> Result<(), End> {
        let now = connection.now_ns;
        match outcome {
            Outcome::Response(response) => {
                self.counters().ended(api.key(), response.size());
                connection.respond(request, response);
            }
            Outcome::Silent(throttle) => {
                connection.metering.mute(throttle.until_ms);
                self.counters().ended(api.key(), 0);
                if let Some(mut times) = connection.drop_last_slot() {
                    times.responded(now, throttle.until_ms.saturating_mul(NANOSECONDS_OF_MS).saturating_sub(now));
                    self.counters().took(&times, now);
                }
            }
            Outcome::Wait(fetch) => {
                let max_wait_ms = fetch.max_wait_ms();
                // The fetch of a peer that has closed does not wait: it gets the data available.
                if connection.peer_closed && fetch.claim() {
                    self.woken.push_back(Waiter { connection: connection.number, request });
                }
                self.let_wait(connection, api, request, Slot::Fetch(fetch), max_wait_ms);
            }
            Outcome::WaitForAcknowledgement(produce) => {
                let max_wait_ms = produce.max_wait_ms();
                self.let_wait(connection, api, request, Slot::Produce(produce), max_wait_ms);
            }
            Outcome::Unresolved(mut unresolved) => {
                let (requested, verification) = unresolved.verify.take().unzip();
                if let Some(Fresh { head, at }) = fresh {
                    let frame = connection.frame_mut(at).to_vec();
                    let delayed = Delayed { request, api, head, frame, decision: None, verification, requested: true };
                    connection.reading = ReadState::Delayed(Box::new(delayed));
                    connection.known_above = true;
                } else if !connection.reading.delayed_mut().is_some_and(|delayed| delayed.query_again(verification)) {
                    return Err(End::Refused("a request that stays unresolved after its retry".into()));
                }
                connection.wait(request);
                let event = unresolved_event(connection, request, api, *unresolved, requested);
                self.reactor.events.push(Event::Unresolved(event));
            }
            // The request is counted with its slot.
            Outcome::Close(why) => return Err(End::Refused(why)),
        }
        Ok(())
    }

    /// Lets a request wait in its slot, and sets its timer.
    fn let_wait(
        &mut self,
        connection: &mut Connection,
        api: HotPathApi,
        request: u64,
        waiting: Slot,
        max_wait_ms: u64,
    ) {
        self.counters().wait_begun(api.key());
        let waiter = Waiter { connection: connection.number, request };
        let now_ms = connection.now_ns / NANOSECONDS_OF_MS;
        self.deadlines.insert(now_ms + max_wait_ms, Deadline::Waiting(waiter));
        connection.wait(request);
        connection.let_wait(request, waiting);
    }

    /// Sends a request to the control plane.
    fn hand_up(
        &mut self,
        connection: &mut Connection,
        head: &RequestHead,
        at: std::ops::Range<usize>,
    ) -> Result<(), End> {
        // Controllers have APIs beyond Kafka's numbers, which Python implements.
        let control_only = connection.is_control_only();
        if !usize::try_from(head.api_key.0).is_ok_and(|key| control_only || key < API_KEYS) {
            return Err(End::Refused(format!("unknown API key {}", head.api_key)));
        }
        if head.api_key == ApiKey::API_VERSIONS && !control_only {
            let table = self.reactor.api_versions.load();
            let frame = connection.frame_mut(at.clone());
            let software = Software::of_request(head.api_version, &frame[head.body..]);
            if let Some(reply) = table.respond(head.api_version, &frame[head.body..]) {
                connection.software = software.map(Arc::new);
                let response = Response::from_payload(head.correlation_id, reply);
                self.respond_at_once(connection, head, &at, response);
                return Ok(());
            }
        }
        if !connection.reading.take_slot() && !self.reactor.control.enter(connection.number) {
            connection.unread(&at);
            connection.reading = ReadState::WaitsForSlot;
            return Ok(());
        }
        self.counters().begun(head.api_key, FRAME_SIZE_BYTES + at.len());
        let bare = matches!(connection.accepted.authentication, Authentication::Tokens);
        let times = RequestTimes::begin(head.api_key, connection.arrived_ns, connection.arrived_ns);
        let mut request = connection.control_request(&self.reactor.clock, head, at);
        if bare {
            request.body = bare_tokens::message(&request.body);
        }
        self.reactor.events.push(Event::Control(request));
        connection.known_above = true;
        let RequestHead { correlation_id, api_key, api_version, .. } = *head;
        connection.open(Slot::Control(Requested { correlation_id, api_key, api_version, bare }), times);
        Ok(())
    }

    /// Responds to the next request without executing it.
    fn respond_at_once(
        &self,
        connection: &mut Connection,
        head: &RequestHead,
        at: &std::ops::Range<usize>,
        response: Response,
    ) {
        self.counters().begun(head.api_key, FRAME_SIZE_BYTES + at.len());
        self.counters().ended(head.api_key, response.size());
        let times = RequestTimes::begin(head.api_key, connection.arrived_ns, self.time(connection));
        self.look_at_clock(connection);
        connection.respond_next(response, times);
    }

    /// Leaves a frame in the input buffer and requests the control plane's decision on it.
    fn intercept(&self, connection: &mut Connection, head: &RequestHead, at: std::ops::Range<usize>) {
        let request = connection.control_request(&self.reactor.clock, head, at.clone());
        connection.unread(&at);
        connection.reading = ReadState::Intercepted;
        connection.known_above = true;
        self.reactor.events.push(Event::Intercepted(request));
    }

    /// Applies the control plane's decision on an intercepted request, and resumes the connection.
    pub(super) fn decide(&mut self, number: u64, decision: Decision) {
        let Some(open) = self.reactor.open.get(number) else { return };
        let mut connection = open.lock();
        if !connection.reading.end_intercepted() {
            return;
        }
        let done = self.carry_out(&mut connection, decision).and_then(|()| self.work(&mut connection));
        self.complete(&mut connection, done);
    }

    fn carry_out(&mut self, connection: &mut Connection, decision: Decision) -> Result<(), End> {
        let max = connection.accepted.max_frame_bytes(self.reactor.settings.socket_request_max_bytes);
        let Framing::Frame(at) = connection.next_frame(max) else {
            return Ok(());
        };
        let head = RequestHead::parse(connection.frame_mut(at.clone()));
        let head = head.map_err(|error| End::Refused(error.to_string()))?;
        match decision {
            Decision::Proceed => self.serve(connection, head, at),
            Decision::ProceedUnanswered { close } => {
                let request = connection.next_request();
                connection.unanswered = Some(Unanswered { from: request, close });
                self.serve(connection, head, at)?;
                // A Produce with `acks=0` has no response: the connection has to be closed here or never.
                if close && connection.next_request() == request && connection.reading.is_ready() {
                    connection.closing = Some(Closing::WhenWritten);
                }
                Ok(())
            }
            Decision::Response(payload) => {
                let response = Response::from_payload(head.correlation_id, &payload);
                self.respond_at_once(connection, &head, &at, response);
                Ok(())
            }
        }
    }

    /// Begins the control request that waited for a slot: the connection owns a slot.
    pub(super) fn resume(&mut self, number: u64) {
        let open = self.reactor.open.get(number);
        let Some(mut connection) = open.as_ref().map(|open| open.lock()) else {
            self.reactor.control_done();
            return;
        };
        connection.reading = ReadState::OwnsSlot;
        let done = self.work(&mut connection);
        // If the connection cannot begin it (its peer does not read), the slot is freed for others.
        if connection.reading.take_slot() {
            self.reactor.control_done();
        }
        self.complete(&mut connection, done);
    }

    /// Evaluates an unresolved request again, with the control plane's decision.
    pub(super) fn retry(&mut self, waiter: Waiter, decision: Authorization) {
        self.evaluate_again(waiter, |delayed| delayed.decision = Some(decision));
    }

    /// Evaluates an unresolved transactional request again, with its coordinator's response.
    pub(super) fn verified(&mut self, waiter: Waiter, responses: Vec<Verified>) {
        let decide = |verification: &mut Verification| verification.decide(responses);
        self.evaluate_again(waiter, |delayed| delayed.verification.as_mut().map_or((), decide));
    }

    fn evaluate_again(&mut self, waiter: Waiter, note: impl FnOnce(&mut Delayed)) {
        let Some(open) = self.reactor.open.get(waiter.connection) else { return };
        let mut connection = open.lock();
        let mut done = Ok(());
        let who = self.who(&mut connection);
        if let Some(mut delayed) = connection.reading.take_delayed(|delayed| delayed.request == waiter.request) {
            note(&mut delayed);
            let now = self.look_at_clock(&mut connection);
            if let Some(times) = connection.times_mut(waiter.request) {
                times.resume(now);
            }
            delayed.requested = false;
            let api = delayed.api;
            let metered = connection.metering.begin(delayed.frame.len());
            let (decided, verified) = (delayed.decision.as_ref(), delayed.verification.as_ref());
            let (head, listener) = (&delayed.head, &*connection.accepted.listener);
            let request = HotPathRequest { api, head, waiter, listener, who, decided, verified, metered };
            let outcome = self.evaluate(request, &mut delayed.frame);
            self.look_at_clock(&mut connection);
            connection.reading = ReadState::Delayed(delayed);
            done = self.conclude(&mut connection, api, waiter.request, outcome, None);
            connection.reading.take_delayed(|delayed| !delayed.requested);
        }
        let done = done.and_then(|()| self.work(&mut connection));
        self.complete(&mut connection, done);
    }

    /// Serves requests that can complete, and those that serving completes in turn, up to a limit, so that other work is not
    /// delayed.
    pub(super) fn serve_woken(&mut self) {
        for _ in 0..AT_ONCE {
            let Some(waiter) = self.woken.pop_front() else { return };
            if processor_of(waiter.connection) == self.index {
                self.serve_waiting(waiter);
            } else {
                if !cross_thread::try_serve(&self.reactor, self.counters(), waiter) {
                    self.reactor.inboxes.wake(waiter);
                }
            }
        }
    }

    /// Responds to a waiting request that was claimed, with the data available.
    fn serve_waiting(&mut self, waiter: Waiter) {
        let Some(open) = self.reactor.open.get(waiter.connection) else { return };
        let mut connection = open.lock();
        let (hot_path, counters) = (&self.reactor.hot_path, self.counters());
        let now = self.look_at_clock(&mut connection);
        if let Some(times) = connection.times_mut(waiter.request) {
            times.resume(now);
        }
        let slot = connection.take_out(waiter.request);
        let listener = &connection.accepted.listener;
        let responded = match slot {
            Some(Slot::Fetch(fetch)) => Some((HotPathApi::Fetch, fetch.complete(hot_path, listener, counters))),
            Some(Slot::Produce(produce)) => Some((HotPathApi::Produce, produce.complete(hot_path, listener, counters))),
            Some(Slot::Control(_) | Slot::Held(_) | Slot::Delayed(_) | Slot::Ready(_)) | None => None,
        };
        if let Some((api, response)) = responded {
            counters.ended(api.key(), response.size());
            counters.wait_ended(api.key());
            self.look_at_clock(&mut connection);
            connection.respond(waiter.request, response);
        }
        let done = self.work(&mut connection);
        self.complete(&mut connection, done);
    }
}

/// The event with the open questions of a request.
fn unresolved_event(
    connection: &Connection,
    request: u64,
    api: HotPathApi,
    found: Unresolved,
    transaction: Option<TransactionQuery>,
) -> UnresolvedRequest {
    let (mut topics, mut topic_ids) = (Vec::new(), Vec::new());
    for topic in found.unknown {
        match topic {
            TopicRef::Name(name) => topics.push(name.to_string()),
            TopicRef::Id(id) => topic_ids.push(id),
        }
    }
    UnresolvedRequest {
        connection: connection.number,
        request,
        api_key: api.key(),
        identity: connection.accepted.authentication.identity().cloned(),
        peer: connection.accepted.peer,
        topics,
        topic_ids,
        check: found.check.map(|(right, named)| (right as i8, named)),
        transactional_id: found.transactional_id,
        transaction,
    }
}

/// Wakes a fetch: on this thread at the end of the event, on another thread through its inbox. The first fetch of another
/// thread that a small append (`near`) completes is served on this thread as well.
fn wake(reactor: &Reactor, own: usize, near: bool, woken: &mut VecDeque<Waiter>, waiter: Waiter) {
    if waiter.connection == CONTROL_PLANE {
        // A coordinator waits: it has no connection on any processor.
        reactor.inboxes.wake(waiter);
        return;
    }
    let on_another_thread = |waiter: &Waiter| processor_of(waiter.connection) != own;
    if !on_another_thread(&waiter) || (near && !woken.iter().any(on_another_thread)) {
        woken.push_back(waiter);
    } else {
        reactor.inboxes.wake(waiter);
    }
}
