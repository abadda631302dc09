//! The fetcher's I/O thread: finds where partitions begin, keeps one Fetch under way at each leader, and asks for the next
//! records before the last ones are read.
//!
//! Reads batch headers only, to know where the next Fetch starts; records are the caller's business.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;

use super::chunk::{Chunk, Extent};
use super::inbox::{Mark, Start, Wanted};
use super::state::FetcherState;
use crate::clock::now_ms;
use crate::config::OffsetReset;
use crate::error::ClientError;
use crate::network::apis::{FETCH, LIST_OFFSETS};
use crate::network::cluster::NodeId;
use crate::network::connection::Frame;
use crate::network::{Event, Network};
use pybroker_record::{LeaderEpoch, PartitionIndex};
use pybroker_wire::fetch::{FetchPartition, FetchRequest, FetchResponse, ReceivedPartition, ReplicaState};
use pybroker_wire::frame::RESPONSE_BODY;
use pybroker_wire::list_offsets::{self, AskedOffset, EARLIEST, LATEST, ListedOffset};
use pybroker_wire::{ErrorCode, TopicRef};

/// The longest sleep; anything that happens wakes the thread earlier.
const IDLE: Duration = Duration::from_secs(1);
/// Time a Fetch may take beyond `fetch.max.wait.ms`.
const FETCH_GRACE: Duration = Duration::from_secs(30);

/// One assigned partition.
#[derive(Debug)]
struct Part {
    topic: Arc<str>,
    index: i32,
    start: Start,
    mark: Mark,
    paused: bool,
    /// A request that concerns it is under way.
    busy: bool,
    hold_until: Option<Instant>,
    /// Requests in a row that failed.
    failures: u32,
    /// Epoch of the leader that it was read from last; -1 before that.
    leader_epoch: LeaderEpoch,
}

impl Part {
    /// Whether a leader of this epoch has come since the last Fetch; from now on it is known.
    fn leads_anew(&mut self, epoch: LeaderEpoch) -> bool {
        let known = self.leader_epoch;
        self.leader_epoch = known.max(epoch);
        known.0 >= 0 && epoch > known
    }
}

#[derive(Debug)]
enum Token {
    Fetch { parts: Vec<Mark> },
    Offsets { parts: Vec<Mark> },
}

/// State of the I/O thread.
#[derive(Debug)]
pub struct Reader {
    shared: Arc<FetcherState>,
    network: Network<Token>,
    parts: Vec<Part>,
    /// Where a partition stands in `parts`.
    places: FxHashMap<Mark, usize>,
    /// Which partition stands first in the next Fetch: large responses must not starve the last ones.
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
            let wake_at = self.ask(now);
            let (shared, had_room) = (Arc::clone(&self.shared), self.shared.has_room());
            let news = || {
                let closed = shared.closed.load(Ordering::Acquire);
                closed || shared.inbox.lock().has_changed() || shared.has_room() != had_room
            };
            self.network.poll(wake_at, &mut events, news);
            for event in events.drain(..) {
                self.step(event, Instant::now());
            }
        }
    }

    /// Read what is wanted now. Partitions that did not change keep their state, and the request that is under way.
    fn take_change(&mut self) {
        let Some(wanted) = self.shared.inbox.lock().take_change() else { return };
        self.network.cluster.want_only(wanted.iter().map(|w| &*w.topic));
        // A partition that is paused or moved meets a new leader as the others do.
        let epoch_of = |part: &Part| ((Arc::clone(&part.topic), part.index), part.leader_epoch);
        let epochs: FxHashMap<(Arc<str>, i32), LeaderEpoch> = self.parts.iter().map(epoch_of).collect();
        let mut old: FxHashMap<Mark, Part> = self.parts.drain(..).map(|part| (part.mark, part)).collect();
        let part = |Wanted { topic, index, start, mark, paused }| {
            let leader_epoch = epochs.get(&(Arc::clone(&topic), index)).copied().unwrap_or(LeaderEpoch(-1));
            let new = || {
                let (busy, hold_until, failures) = (false, None, 0);
                Part { topic, index, start, mark, paused, busy, hold_until, failures, leader_epoch }
            };
            old.remove(&mark).unwrap_or_else(new)
        };
        self.parts = wanted.into_iter().map(part).collect();
        self.places = self.parts.iter().enumerate().map(|(place, part)| (part.mark, place)).collect();
    }

    /// Send what can be sent; returns when there is something to look at again.
    fn ask(&mut self, now: Instant) -> Instant {
        let mut wake_at = now + IDLE;
        let room = self.shared.has_room();
        let mut by_node: FxHashMap<(NodeId, bool), Vec<usize>> = FxHashMap::default();
        let (count, turn) = (self.parts.len(), self.turn);
        for index in (0..count).map(|i| (i + turn) % count) {
            let part = &mut self.parts[index];
            if let Some(hold) = part.hold_until.filter(|hold| *hold > now) {
                wake_at = wake_at.min(hold);
                continue;
            }
            let fetch = matches!(part.start, Start::Offset(_));
            if part.busy || (fetch && (part.paused || !room)) {
                continue;
            }
            match self.network.cluster.leader(&part.topic, part.index) {
                Some(leader) if fetch && self.shared.config.stops_at_new_leader && part.leads_anew(leader.epoch) => {
                    let (topic, partition, epoch) = (part.topic.to_string(), part.index, leader.epoch.0);
                    // Nothing is asked for it any more until the caller has it read from somewhere.
                    part.busy = true;
                    self.shared.deliver_error(part.mark, ClientError::NewLeader { topic, partition, epoch });
                }
                Some(leader) => by_node.entry((leader.node, fetch)).or_default().push(index),
                None => self.check_topic(index),
            }
        }
        for ((node, fetch), parts) in by_node {
            if self.network.ready(node, now) && self.network.in_flight(node) == 0 {
                if fetch { self.ask_records(node, parts, now) } else { self.ask_offsets(node, parts, now) }
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
            part.hold_until = Some(Instant::now() + IDLE);
            let (mark, error) = (part.mark, ClientError::Broker { topic, partition, code, message: None });
            self.shared.deliver_error(mark, error);
        }
    }

    fn ask_records(&mut self, node: NodeId, mut parts: Vec<usize>, now: Instant) {
        let target = match self.network.target(node, FETCH) {
            Ok(target) => target,
            Err(error) => return self.refuse(parts, error, now),
        };
        self.turn = self.turn.wrapping_add(1);
        // Partitions of a topic stand together; which topic and partition comes first changes from turn to turn.
        let first = parts[0];
        parts.sort_by_key(|i| {
            (self.parts[*i].topic != self.parts[first].topic, Arc::clone(&self.parts[*i].topic), *i < first, *i)
        });
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
            partitions: parts.iter().filter_map(|i| self.asked(*i)).collect(),
            forgotten: Vec::new(),
            rack: "",
        };
        let wait = config.fetch_max_wait + FETCH_GRACE.max(config.connection.request_timeout);
        for index in &parts {
            self.parts[*index].busy = true;
        }
        let token = Token::Fetch { parts: self.marks(&parts) };
        self.network.ask(target, token, wait, now, |out| request.write(out, target.version));
    }

    fn marks(&self, parts: &[usize]) -> Vec<Mark> {
        parts.iter().map(|i| self.parts[*i].mark).collect()
    }

    fn asked(&self, index: usize) -> Option<FetchPartition> {
        let part = &self.parts[index];
        let Start::Offset(offset) = part.start else { return None };
        let leader_epoch = self.network.cluster.leader(&part.topic, part.index).map_or(LeaderEpoch(-1), |l| l.epoch);
        Some(FetchPartition {
            topic: TopicRef::Name(Arc::clone(&part.topic)),
            index: PartitionIndex(part.index),
            fetch_offset: offset,
            max_bytes: self.shared.config.max_partition_fetch_bytes,
            leader_epoch,
            last_fetched_epoch: LeaderEpoch(-1),
            log_start_offset: -1,
        })
    }

    fn ask_offsets(&mut self, node: NodeId, mut parts: Vec<usize>, now: Instant) {
        let target = match self.network.target(node, LIST_OFFSETS) {
            Ok(target) => target,
            Err(error) => return self.refuse(parts, error, now),
        };
        parts.sort_unstable();
        let asked = parts.iter().map(|i| &self.parts[*i]).filter_map(|part| match part.start {
            Start::Time(timestamp) => {
                Some(AskedOffset { topic: TopicRef::Name(Arc::clone(&part.topic)), index: part.index, timestamp })
            }
            Start::Offset(_) => None,
        });
        let asked: Vec<AskedOffset> = asked.collect();
        let read_committed = self.shared.config.read_committed;
        let wait = self.shared.config.connection.request_timeout;
        for index in &parts {
            self.parts[*index].busy = true;
        }
        let token = Token::Offsets { parts: self.marks(&parts) };
        self.network.ask(target, token, wait, now, |out| {
            list_offsets::write_request(out, target.version, read_committed, &asked);
        });
    }

    fn refuse(&mut self, parts: Vec<usize>, error: ClientError, now: Instant) {
        let Some(first) = parts.first() else { return };
        let mark = self.parts[*first].mark;
        for index in parts {
            self.parts[index].hold_until = Some(now + IDLE);
        }
        self.shared.deliver_error(mark, error);
    }

    fn step(&mut self, event: Event<Token>, now: Instant) {
        match event {
            Event::Metadata => {}
            Event::Failed { token: Token::Fetch { parts } | Token::Offsets { parts }, .. } => {
                self.network.cluster.stale = true;
                self.answered(&parts).into_iter().for_each(|i| self.hold(i, now));
            }
            Event::Answered { token: Token::Fetch { parts }, node, version, frame: Some(frame) } => {
                let parts = self.answered(&parts);
                self.take_records(node, version, frame, &parts, now);
            }
            Event::Answered { token: Token::Offsets { parts }, node, version, frame: Some(frame) } => {
                let parts = self.answered(&parts);
                match list_offsets::parse_response(frame.bytes(), RESPONSE_BODY, version) {
                    Ok(answers) => answers.iter().for_each(|answer| self.take_offset(answer, &parts, now)),
                    Err(e) => self.malformed(node, LIST_OFFSETS.name, &e.to_string(), parts, now),
                }
            }
            Event::Answered { frame: None, .. } => {}
        }
    }

    /// The partitions that a request was for, without those that changed since; it is no longer under way.
    fn answered(&mut self, marks: &[Mark]) -> Vec<usize> {
        let places: Vec<usize> = marks.iter().filter_map(|mark| self.places.get(mark).copied()).collect();
        places.iter().for_each(|i| self.parts[*i].busy = false);
        places
    }

    fn hold(&mut self, index: usize, now: Instant) {
        let part = &mut self.parts[index];
        part.busy = false;
        part.failures = part.failures.saturating_add(1);
        part.hold_until = Some(now + self.shared.config.connection.backoff(part.failures));
    }

    fn malformed(&mut self, node: NodeId, api: &'static str, detail: &str, parts: Vec<usize>, now: Instant) {
        let error = ClientError::Malformed { server: self.network.server(node), api, detail: detail.to_owned() };
        self.refuse(parts, error, now);
    }

    fn take_offset(&mut self, answer: &ListedOffset, parts: &[usize], now: Instant) {
        let Some(index) = self.find(parts, &answer.topic, answer.index) else { return };
        if answer.error != ErrorCode::NONE {
            return self.take_error(index, answer.error, now);
        }
        if answer.offset < 0 {
            // No record is as young as the timestamp: read what comes from now on.
            self.parts[index].start = Start::Time(LATEST);
            return;
        }
        let part = &mut self.parts[index];
        (part.start, part.failures) = (Start::Offset(answer.offset), 0);
        self.shared.found(&(Arc::clone(&part.topic), part.index), part.mark, answer.offset);
    }

    fn find(&self, parts: &[usize], topic: &TopicRef, index: i32) -> Option<usize> {
        parts.iter().copied().find(|i| self.parts[*i].index == index && topic.is_named(&self.parts[*i].topic))
    }

    fn take_records(&mut self, node: NodeId, version: i16, frame: Frame, parts: &[usize], now: Instant) {
        let response = match FetchResponse::parse(frame.bytes(), RESPONSE_BODY, version) {
            Ok(response) => response,
            Err(e) => return self.malformed(node, FETCH.name, &e.to_string(), parts.to_vec(), now),
        };
        if response.error != ErrorCode::NONE {
            parts.iter().for_each(|i| self.take_error(*i, response.error, now));
            return;
        }
        let frame = Arc::new(frame);
        let mut chunks = Vec::with_capacity(response.partitions.len());
        for received in response.partitions {
            let partition = &received.partition;
            let Some(index) = self.find(parts, &partition.topic, partition.index) else { continue };
            if partition.error != ErrorCode::NONE {
                self.take_error(index, partition.error, now);
                continue;
            }
            self.parts[index].failures = 0;
            if partition.records > 0 {
                let mark = self.parts[index].mark;
                chunks.extend(self.take_batches(index, received, &frame, now).map(|chunk| (mark, chunk)));
            }
        }
        self.shared.deliver(chunks);
    }

    fn take_batches(
        &mut self,
        index: usize,
        ReceivedPartition { partition, records }: ReceivedPartition,
        frame: &Arc<Frame>,
        now: Instant,
    ) -> Option<Chunk> {
        let part = &mut self.parts[index];
        let Start::Offset(position) = part.start else { return None };
        match Extent::measure(&frame.bytes()[records.clone()]) {
            Ok(Extent { len: 0, .. }) => None,
            Ok(extent) => {
                part.start = Start::Offset(extent.next_offset);
                let config = &self.shared.config;
                Some(Chunk {
                    topic: Arc::clone(&part.topic),
                    index: part.index,
                    position,
                    next_offset: extent.next_offset,
                    leader_epoch: extent.leader_epoch,
                    high_watermark: partition.high_watermark,
                    aborted: partition.aborted,
                    check_crcs: config.check_crcs,
                    read_committed: config.read_committed,
                    max_decompressed_bytes: config.max_decompressed_bytes,
                    frame: Arc::clone(frame),
                    range: records.start..records.start + extent.len,
                })
            }
            Err(detail) => {
                let (topic, partition) = (part.topic.to_string(), part.index);
                let error = ClientError::CorruptBatch { topic, partition, offset: position, detail };
                self.refuse(vec![index], error, now);
                None
            }
        }
    }

    fn take_error(&mut self, index: usize, code: ErrorCode, now: Instant) {
        if code.asks_for_metadata() {
            self.network.cluster.stale = true;
        }
        self.hold(index, now);
        let part = &mut self.parts[index];
        let reset = match self.shared.config.auto_offset_reset {
            OffsetReset::Earliest => Some(EARLIEST),
            OffsetReset::Latest => Some(LATEST),
            OffsetReset::Before(span) => Some(now_ms().saturating_sub_unsigned(span.as_millis() as u64)),
            OffsetReset::None => None,
        };
        if let Some(time) = reset.filter(|_| code == ErrorCode::OFFSET_OUT_OF_RANGE) {
            part.start = Start::Time(time);
        } else if !code.is_retriable() {
            let (topic, partition) = (part.topic.to_string(), part.index);
            part.hold_until = Some(now + IDLE);
            let (mark, error) = (part.mark, ClientError::Broker { topic, partition, code, message: None });
            self.shared.deliver_error(mark, error);
        }
    }
}
