//! The fetcher's I/O thread: looks up start offsets, keeps one Fetch in flight to each leader, and requests the next records
//! before the caller has read the last ones.
//!
//! Reads batch headers only, to find the offset of the next Fetch; the caller reads the records.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;

use super::inbox::{Mark, Start, Wanted};
use super::part::{ERROR_REST, Kept, Part};
use super::state::FetcherState;
use crate::error::ClientError;
use crate::network::apis::{FETCH, FETCH_BY_NAME, LIST_OFFSETS};
use crate::network::cluster::NodeId;
use crate::network::{Event, Network, Target, Wait};
use pybroker_record::{LeaderEpoch, PartitionIndex};
use pybroker_wire::fetch::{FetchPartition, FetchRequest, ReplicaState, names_by_id};
use pybroker_wire::frame::RESPONSE_BODY;
use pybroker_wire::list_offsets::{self, RequestedOffset};
use pybroker_wire::{ErrorCode, TopicRef};

/// The longest sleep; every event wakes the thread earlier.
const IDLE: Duration = Duration::from_secs(1);
/// Time a Fetch may take beyond `fetch.max.wait.ms`.
const FETCH_GRACE: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub(super) enum Token {
    Fetch { parts: Vec<Mark> },
    Offsets { parts: Vec<Mark> },
}

/// State of the I/O thread.
#[derive(Debug)]
pub struct Reader {
    pub(super) shared: Arc<FetcherState>,
    pub(super) network: Network<Token>,
    pub(super) parts: Vec<Part>,
    /// The index of a partition in `parts`.
    places: FxHashMap<Mark, usize>,
    /// The partition that is first in the next Fetch: large responses must not starve the last ones.
    turn: usize,
}

impl Reader {
    pub fn new(shared: Arc<FetcherState>) -> Self {
        let pool = Arc::clone(&shared.pool);
        let network = Network::new(&shared.config.connection, &shared.waker, pool, &shared.counters);
        Self { shared, network, parts: Vec::new(), places: FxHashMap::default(), turn: 0 }
    }

    /// Run until the fetcher is closed.
    pub fn run(mut self) {
        let mut events = Vec::new();
        while !self.shared.closed.load(Ordering::Acquire) {
            self.take_change();
            let now = Instant::now();
            let wake_at = self.query(now);
            let (shared, had_capacity) = (Arc::clone(&self.shared), self.shared.has_capacity());
            let news = || {
                let closed = shared.closed.load(Ordering::Acquire);
                closed || shared.inbox.lock().has_changed() || shared.has_capacity() != had_capacity
            };
            self.network.poll(wake_at, &mut events, news);
            for event in events.drain(..) {
                self.step(event, Instant::now());
            }
            self.shared.set_refusal(self.network.refusal.clone());
            self.shared.counters.set_leader_changes(self.network.cluster.leader_changes);
        }
    }

    /// Apply a change of the partitions. Unchanged partitions keep their state, and their request in flight.
    fn take_change(&mut self) {
        let Some(wanted) = self.shared.inbox.lock().take_change() else { return };
        self.network.cluster.want_only(wanted.iter().map(|w| &*w.topic));
        // A paused or moved partition keeps its leader epoch and preferred replica.
        let kept_of = |part: &Part| ((Arc::clone(&part.topic), part.index), part.kept());
        let kept: FxHashMap<(Arc<str>, i32), Kept> = self.parts.iter().map(kept_of).collect();
        let mut old: FxHashMap<Mark, Part> = self.parts.drain(..).map(|part| (part.mark, part)).collect();
        let part = |wanted: Wanted| {
            let kept = kept.get(&(Arc::clone(&wanted.topic), wanted.index)).copied().unwrap_or(Kept::NOTHING);
            old.remove(&wanted.mark).unwrap_or_else(|| Part::new(wanted, kept))
        };
        self.parts = wanted.into_iter().map(part).collect();
        self.places = self.parts.iter().enumerate().map(|(place, part)| (part.mark, place)).collect();
    }

    /// Send the requests that are due; returns when the next check is due.
    fn query(&mut self, now: Instant) -> Instant {
        let mut wake_at = now + IDLE;
        let capacity = self.shared.has_capacity();
        // ListOffsets is sent before Fetch: a broker handles one request of a connection at a time.
        let mut by_node: BTreeMap<(bool, NodeId), Vec<usize>> = BTreeMap::new();
        let (count, turn) = (self.parts.len(), self.turn);
        for index in (0..count).map(|i| (i + turn) % count) {
            let part = &mut self.parts[index];
            let leader = self.network.cluster.leader(&part.topic, part.index);
            if let Some(hold) = part.held(leader, now) {
                wake_at = wake_at.min(hold);
                continue;
            }
            let fetch = matches!(part.start, Start::Offset(_));
            if part.busy || (fetch && (part.paused || !capacity)) {
                continue;
            }
            match leader {
                Some(leader) if fetch && self.shared.config.stops_at_new_leader && part.leads_anew(leader.epoch) => {
                    let (topic, partition, epoch) = (part.topic.to_string(), part.index, leader.epoch.0);
                    // No request is sent for it until the caller sets a position.
                    part.busy = true;
                    self.shared.deliver_error(part.mark, ClientError::NewLeader { topic, partition, epoch });
                }
                Some(leader) => {
                    let node = if fetch { part.source(leader, &self.network.cluster, now) } else { leader.node };
                    by_node.entry((fetch, node)).or_default().push(index);
                }
                None => self.check_topic(index),
            }
        }
        for ((fetch, node), parts) in by_node {
            if self.network.ready(node, now) && self.network.in_flight(node) == 0 {
                if fetch { self.query_records(node, parts, now) } else { self.query_offsets(node, parts, now) }
            }
        }
        wake_at
    }

    fn check_topic(&mut self, index: usize) {
        let part = &mut self.parts[index];
        self.network.cluster.stale = true;
        let Some(topic) = self.network.cluster.topic(&part.topic) else { return };
        if topic.error_code != ErrorCode::NONE && !topic.error_code.is_retriable() {
            let (topic, partition, code) = (part.topic.to_string(), part.index, topic.error_code);
            part.rest_until(Instant::now() + ERROR_REST);
            let (mark, error) = (part.mark, ClientError::Broker { topic, partition, code, message: None });
            self.shared.deliver_error(mark, error);
        }
    }

    fn query_records(&mut self, node: NodeId, mut parts: Vec<usize>, now: Instant) {
        let target = match self.fetch_target(node, &parts) {
            Ok(target) => target,
            Err(error) => return self.refuse(parts, error, now),
        };
        let by_id = names_by_id(target.version);
        self.turn = self.turn.wrapping_add(1);
        // Partitions of a topic are adjacent; the first topic and partition change from request to request.
        let first = parts[0];
        parts.sort_by_key(|i| {
            (self.parts[*i].topic != self.parts[first].topic, Arc::clone(&self.parts[*i].topic), *i < first, *i)
        });
        let partitions = parts.iter().filter_map(|i| self.requested(*i, node, by_id)).collect();
        let config = &self.shared.config;
        let request = FetchRequest {
            replica: ReplicaState::CONSUMER,
            max_wait_ms: config.fetch_max_wait.as_millis() as i32,
            min_bytes: config.fetch_min_bytes,
            max_bytes: config.fetch_max_bytes,
            read_committed: config.read_committed,
            // Sessions (KIP-227) are not used: each request names its partitions.
            session_id: 0,
            session_epoch: -1,
            partitions,
            forgotten: Vec::new(),
            rack: &config.client_rack,
        };
        let held = config.fetch_max_wait;
        let wait = Wait { held, longest: held + FETCH_GRACE.max(config.connection.request_timeout) };
        for index in &parts {
            self.parts[*index].busy = true;
        }
        let token = Token::Fetch { parts: self.marks(&parts) };
        self.network.query(target, token, wait, now, |out| request.write(out, target.version));
    }

    fn marks(&self, parts: &[usize]) -> Vec<Mark> {
        parts.iter().map(|i| self.parts[*i].mark).collect()
    }

    /// The version of a Fetch to a node: the newest if the ids of all its topics are known, else the last one with names.
    fn fetch_target(&self, node: NodeId, parts: &[usize]) -> Result<Target, ClientError> {
        let has_id = |index: &usize| self.network.cluster.topic_id(&self.parts[*index].topic).is_some();
        self.network.target(node, if parts.iter().all(has_id) { FETCH } else { FETCH_BY_NAME })
    }

    fn requested(&mut self, index: usize, node: NodeId, by_id: bool) -> Option<FetchPartition> {
        let part = &mut self.parts[index];
        let Start::Offset(offset) = part.start else { return None };
        let leader = self.network.cluster.leader(&part.topic, part.index)?;
        part.requested_epoch = leader.epoch;
        let topic = part.name(self.network.cluster.topic_id(&part.topic).filter(|_| by_id));
        // The broker does not compare epochs for a caller that checks positions at a new leader itself. Nor does a follower,
        // which may lack records that the leader has returned.
        let is_compared = !self.shared.config.stops_at_new_leader && leader.node == node;
        Some(FetchPartition {
            topic,
            index: PartitionIndex(part.index),
            fetch_offset: offset,
            max_bytes: self.shared.config.max_partition_fetch_bytes,
            leader_epoch: leader.epoch,
            last_fetched_epoch: if is_compared { part.last_epoch } else { LeaderEpoch(-1) },
            log_start_offset: -1,
        })
    }

    fn query_offsets(&mut self, node: NodeId, mut parts: Vec<usize>, now: Instant) {
        let target = match self.network.target(node, LIST_OFFSETS) {
            Ok(target) => target,
            Err(error) => return self.refuse(parts, error, now),
        };
        parts.sort_unstable();
        let requested = parts.iter().map(|i| &self.parts[*i]).filter_map(|part| match part.start {
            Start::Time(timestamp) => {
                Some(RequestedOffset { topic: TopicRef::Name(Arc::clone(&part.topic)), index: part.index, timestamp })
            }
            Start::Offset(_) => None,
        });
        let requested: Vec<RequestedOffset> = requested.collect();
        let read_committed = self.shared.config.read_committed;
        let wait = Wait::of(self.shared.config.connection.request_timeout);
        for index in &parts {
            let part = &mut self.parts[*index];
            let leader = self.network.cluster.leader(&part.topic, part.index);
            (part.busy, part.requested_epoch) = (true, leader.map_or(LeaderEpoch(-1), |leader| leader.epoch));
        }
        let token = Token::Offsets { parts: self.marks(&parts) };
        self.network.query(target, token, wait, now, |out| {
            list_offsets::write_request(out, target.version, read_committed, &requested);
        });
    }

    pub(super) fn refuse(&mut self, parts: Vec<usize>, error: ClientError, now: Instant) {
        let Some(first) = parts.first() else { return };
        let mark = self.parts[*first].mark;
        for index in parts {
            self.parts[index].rest_until(now + ERROR_REST);
        }
        self.shared.deliver_error(mark, error);
    }

    fn step(&mut self, event: Event<Token>, now: Instant) {
        match event {
            Event::Metadata => self.leave_silent(now),
            Event::Failed { token: Token::Fetch { parts } | Token::Offsets { parts }, .. } => {
                self.network.cluster.stale = true;
                for index in self.responded(&parts) {
                    if !self.parts[index].leave_preferred() {
                        self.hold(index, now);
                    }
                }
            }
            Event::Responded { token: Token::Fetch { parts }, node, version, frame: Some(frame) } => {
                let parts = self.responded(&parts);
                self.take_records(node, version, frame, &parts, now);
            }
            Event::Responded { token: Token::Offsets { parts }, node, version, frame: Some(frame) } => {
                let parts = self.responded(&parts);
                match list_offsets::parse_response(frame.bytes(), RESPONSE_BODY, version) {
                    Ok(responses) => responses.iter().for_each(|response| self.take_offset(response, &parts, now)),
                    Err(e) => self.malformed(node, LIST_OFFSETS.name, &e.to_string(), parts, now),
                }
            }
            Event::Responded { frame: None, .. } => {}
        }
    }

    /// Close the connection to a silent broker if a partition of its requests has another leader.
    fn leave_silent(&mut self, now: Instant) {
        let moved = |node: NodeId, mark: &Mark| {
            let part = self.places.get(mark).map(|place| &self.parts[*place]);
            part.is_some_and(|part| self.network.cluster.leads_elsewhere(&part.topic, part.index, node))
        };
        let silent = self.network.silent(now);
        let left: Vec<NodeId> = silent
            .filter_map(|(node, mut tokens)| {
                let is_left = tokens.any(|(Token::Fetch { parts } | Token::Offsets { parts })| {
                    parts.iter().any(|mark| moved(node, mark))
                });
                is_left.then_some(node)
            })
            .collect();
        let mut events = Vec::new();
        left.into_iter().for_each(|node| self.network.give_up_silent(node, now, &mut events));
        events.into_iter().for_each(|event| self.step(event, now));
    }

    /// Return the partitions of a completed request, without those that have changed since.
    fn responded(&mut self, marks: &[Mark]) -> Vec<usize> {
        let places: Vec<usize> = marks.iter().filter_map(|mark| self.places.get(mark).copied()).collect();
        places.iter().for_each(|i| self.parts[*i].busy = false);
        places
    }
}
