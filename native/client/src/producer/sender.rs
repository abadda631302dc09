//! The producer's I/O thread: sends the batches that are ready in requests to their leaders, and completes each batch by the
//! response.
//!
//! Owns sequence numbers and retries. Order: batches of a partition are sent in the order of their opening. With idempotence
//! a batch is retried before any later one is sent, and only when no batch of its partition is in flight.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;

use super::batch::{Batch, Sealed};
use super::partition_queue::PartitionQueue;
use super::state::ProducerState;
use super::transaction::Stop;
use crate::error::ClientError;
use crate::network::apis::{INIT_PRODUCER_ID, PRODUCE, PRODUCE_THAT_ADDS, PRODUCE_TO_ADDED};
use crate::network::cluster::NodeId;
use crate::network::pool::BufferPool;
use crate::network::request;
use crate::network::{Event, Network, Wait};
use pybroker_wire::ErrorCode;
use pybroker_wire::TopicRef;
use pybroker_wire::frame::{NewRequest, RESPONSE_BODY};
use pybroker_wire::init_producer_id::{self, InitProducerIdResponse, ProducerIdentity};
use pybroker_wire::produce::{PartitionBatch, ProduceHead};

/// The longest sleep; every event wakes the thread earlier.
const IDLE: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) enum Token {
    Produce(Vec<(usize, Batch)>),
    Identity,
}

/// State of the I/O thread.
#[derive(Debug)]
pub struct Sender {
    pub(super) shared: Arc<ProducerState>,
    pub(super) network: Network<Token>,
    pub(super) queues: Vec<PartitionQueue>,
    queue_of: FxHashMap<(Arc<str>, i32), usize>,
    /// `None`: an identity has to be requested before anything is sent.
    pub(super) identity: Option<ProducerIdentity>,
    /// The error that ended a producer that has to keep its identity.
    pub(super) ended: Option<ClientError>,
    identity_requested: bool,
    /// Consecutive failed requests for an identity, and the end of the back-off before the next one.
    identity_failures: u32,
    identity_hold: Option<Instant>,
    /// When the last batch was acknowledged.
    pub(super) acknowledged_at: Option<Instant>,
    /// Produce requests in flight.
    in_flight: usize,
    /// The number of the last stop that was executed.
    last_stop: u64,
    /// Where the next round begins, so that no partition is always last.
    turn: usize,
}

impl Sender {
    pub fn new(shared: Arc<ProducerState>) -> Self {
        let pool = Arc::new(BufferPool::new(4));
        let network = Network::new(&shared.config.connection, &shared.waker, pool, &shared.accumulator.counters);
        let identity = match &shared.config.continues {
            Some(from) => Some(ProducerIdentity { id: from.producer_id, epoch: from.epoch }),
            None if shared.config.enable_idempotence && shared.config.transactional_id.is_none() => None,
            // The identity of a transaction is in its batches.
            None => Some(ProducerIdentity::NONE),
        };
        *shared.identity.lock() = shared.config.continues.is_some().then_some(identity).flatten().map(Ok);
        Self {
            shared,
            network,
            queues: Vec::new(),
            queue_of: FxHashMap::default(),
            identity,
            ended: None,
            identity_requested: false,
            identity_failures: 0,
            identity_hold: None,
            acknowledged_at: None,
            in_flight: 0,
            last_stop: 0,
            turn: 0,
        }
    }

    /// Run until the producer is closed and no batch waits.
    pub fn run(mut self) {
        let mut events = Vec::new();
        loop {
            let now = Instant::now();
            self.take_news();
            let closing = self.shared.accumulator.closed.load(Ordering::Acquire);
            if closing {
                self.give_up_all();
                return;
            }
            let wake_at = self.send_ready(now);
            let shared = Arc::clone(&self.shared);
            let seen = self.last_stop;
            let news = || {
                shared.accumulator.has_news()
                    || !shared.directory.lock().requested.is_empty()
                    || shared.transactions.has_news(seen)
            };
            self.network.poll(wake_at, &mut events, news);
            for event in events.drain(..) {
                self.step(event, Instant::now());
            }
            self.shared.accumulator.counters.set_leader_changes(self.network.cluster.leader_changes);
            *self.shared.network_failure.lock() = self.network.last_failure.clone();
            self.shared.set_refusal(self.network.refusal.clone());
        }
    }

    fn take_news(&mut self) {
        let requested = std::mem::take(&mut self.shared.directory.lock().requested);
        for topic in &requested {
            self.network.cluster.want(topic);
            self.network.cluster.stale = true;
        }
        for waiting in self.shared.accumulator.take_listed() {
            let (topic, index) = (Arc::clone(&waiting.topic), waiting.index);
            let continues = self.shared.config.continues.as_ref();
            let queue = *self.queue_of.entry((topic, index)).or_insert_with(|| {
                let place = continues.and_then(|from| from.sequences.get(&(waiting.topic.to_string(), waiting.index)));
                self.queues.push(PartitionQueue::new(waiting, place.copied().unwrap_or(0)));
                self.queues.len() - 1
            });
            self.queues[queue].listed = true;
        }
        for (number, topic, index) in self.shared.transactions.take_added() {
            if let Some(queue) = self.queue_of.get(&(topic.into(), index)) {
                self.queues[*queue].added_to = number;
            }
        }
    }

    /// Fail the waiting batches of transactions that are not to be committed.
    fn drop_stopped(&mut self) {
        let Some(Stop { number, through, error, all }) = self.shared.transactions.stopped() else { return };
        self.last_stop = number;
        for index in 0..self.queues.len() {
            while let Some(batch) = self.queues[index].take_stopped(through, all) {
                self.give_up(batch, error.clone());
            }
        }
    }

    /// Send every batch that is ready; returns when the next one is.
    fn send_ready(&mut self, now: Instant) -> Instant {
        let mut wake_at = now + IDLE;
        self.expire(now);
        self.drop_stopped();
        if let Some(error) = self.ended.clone() {
            self.fail_waiting(&error);
            return wake_at;
        }
        if self.identity.is_none() && !self.query_identity(now) {
            return self.identity_hold.map_or(wake_at, |hold| wake_at.min(hold));
        }
        loop {
            let by_node = self.ready_lanes(now, &mut wake_at);
            let mut sent = false;
            for (node, queues) in by_node {
                if self.network.ready(node, now) && self.network.in_flight(node) < self.shared.config.max_in_flight {
                    sent |= self.send_request(node, &queues, now);
                }
            }
            self.turn = self.turn.wrapping_add(1);
            if !sent {
                return wake_at;
            }
        }
    }

    fn ready_lanes(&mut self, now: Instant, wake_at: &mut Instant) -> FxHashMap<NodeId, Vec<usize>> {
        let hurried = self.shared.accumulator.is_hurried();
        let (linger, ordered) = (self.shared.config.linger, self.shared.config.enable_idempotence);
        let identity = self.identity.unwrap_or(ProducerIdentity::NONE);
        let mut by_node: FxHashMap<NodeId, Vec<usize>> = FxHashMap::default();
        let count = self.queues.len();
        for queue_index in (0..count).map(|i| (i + self.turn) % count) {
            let queue = &mut self.queues[queue_index];
            let leader = self.network.cluster.leader(&queue.waiting.topic, queue.waiting.index);
            if let Some(hold) = queue.held(leader, now) {
                *wake_at = (*wake_at).min(hold);
                continue;
            }
            if queue.again.is_empty() {
                let Some(front) = queue.listed.then(|| queue.waiting.front()).flatten() else {
                    queue.listed = false;
                    continue;
                };
                if let Some(mark) = front.mark
                    && !mark.implicit
                    && queue.added_to != mark.number
                {
                    if queue.wanted_in != mark.number {
                        queue.wanted_in = mark.number;
                        self.shared.transactions.want(Arc::clone(&queue.waiting.topic), queue.waiting.index);
                    }
                    continue;
                }
                if front.mark.is_none() && queue.has_other_identity_in_flight(identity) {
                    continue;
                }
                if !front.full && !hurried && front.opened + linger > now {
                    *wake_at = (*wake_at).min(front.opened + linger);
                    continue;
                }
            } else if ordered && queue.in_flight > 0 {
                continue;
            }
            match leader {
                Some(leader) => by_node.entry(leader.node).or_default().push(queue_index),
                None => self.network.cluster.stale = true,
            }
        }
        by_node
    }

    /// Send one request with at most one batch of each partition. False if nothing could be sent.
    fn send_request(&mut self, node: NodeId, queues: &[usize], now: Instant) -> bool {
        let identity = self.identity.unwrap_or(ProducerIdentity::NONE);
        let mut taken: Vec<(usize, Batch)> = Vec::new();
        let mut parts: Vec<PartitionBatch> = Vec::new();
        let mut size = 0;
        for &index in queues {
            let Some(batch) = self.take_batch(index, size) else { continue };
            size += batch.size();
            self.seal(index, batch, identity, &mut taken, &mut parts);
        }
        if taken.is_empty() {
            return false;
        }
        let mut order: Vec<usize> = (0..parts.len()).collect();
        order.sort_by(|a, b| (&parts[*a].topic, parts[*a].index).cmp(&(&parts[*b].topic, parts[*b].index)));
        let parts: Vec<PartitionBatch> = order.into_iter().map(|i| parts[i].clone()).collect();
        let api = match taken[0].1.mark {
            None => PRODUCE,
            Some(mark) if mark.implicit => PRODUCE_THAT_ADDS,
            Some(_) => PRODUCE_TO_ADDED,
        };
        let target = match self.network.target(node, api) {
            Ok(target) => target,
            Err(error) => {
                taken.into_iter().for_each(|(_, batch)| self.fail(batch, error.clone()));
                return true;
            }
        };
        let config = &self.shared.config;
        let correlation_id = self.network.next_correlation_id();
        let timeout_ms = config.connection.request_timeout.as_millis() as i32;
        let client_id = self.network.client_id();
        let head = NewRequest { api_key: PRODUCE.key, api_version: target.version, correlation_id, client_id };
        let produce =
            ProduceHead { transactional_id: config.transactional_id.as_deref(), acks: config.acks, timeout_ms };
        let request = request::encode_produce(head, produce, &parts);
        drop(parts);
        for (queue, _) in &taken {
            let queue = &mut self.queues[*queue];
            queue.in_flight += 1;
            queue.sent_to = self.network.cluster.leader(&queue.waiting.topic, queue.waiting.index);
        }
        self.in_flight += 1;
        let deadline = now + config.connection.request_timeout;
        let (token, responded) = (Token::Produce(taken), config.acks != 0);
        self.network.send(target, request, token, responded, deadline);
        true
    }

    /// Remove the batch of a partition to send next, if it fits in a request that has `size` bytes already.
    fn take_batch(&mut self, index: usize, size: usize) -> Option<Batch> {
        let limit = self.shared.config.max_request_size;
        self.queues[index].take_next(|next| size == 0 || size + next <= limit)
    }

    fn seal(
        &mut self,
        index: usize,
        mut batch: Batch,
        identity: ProducerIdentity,
        taken: &mut Vec<(usize, Batch)>,
        parts: &mut Vec<PartitionBatch>,
    ) {
        let queue = &mut self.queues[index];
        let own = if batch.sequence.is_some() { batch.identity } else { identity };
        let identity = batch.mark.map_or(own, |mark| mark.identity);
        if let Some(mark) = batch.mark {
            queue.count_for(identity);
            self.shared.transactions.note_sent(mark);
        }
        if identity != ProducerIdentity::NONE && batch.sequence.is_none() {
            batch.sequence = Some(queue.take_sequence(batch.records));
            batch.identity = identity;
        }
        queue.sent_as = identity;
        batch.attempts += 1;
        let accumulator = &self.shared.accumulator;
        if batch.attempts == 1 {
            accumulator.counters.sent(batch.opened.elapsed());
        }
        match batch.seal(identity, || accumulator.spare.take().unwrap_or_default()) {
            Ok(Sealed { bytes: records, emptied }) => {
                if let Some(builder) = emptied {
                    accumulator.keep_builder(builder, batch.reserved);
                }
                parts.push(PartitionBatch {
                    topic: TopicRef::Name(Arc::clone(&queue.waiting.topic)),
                    index: queue.waiting.index,
                    records,
                });
                taken.push((index, batch));
            }
            Err(detail) => {
                let (topic, partition) = (queue.waiting.topic.to_string(), queue.waiting.index);
                self.fail(batch, ClientError::Unbuildable { topic, partition, detail });
            }
        }
    }

    fn step(&mut self, event: Event<Token>, now: Instant) {
        match event {
            Event::Metadata => {
                self.publish_topics();
                self.leave_silent(now);
            }
            Event::Responded { token: Token::Produce(batches), version, frame, node } => {
                self.returned(&batches);
                self.complete(node, batches, version, frame, now);
            }
            Event::Failed { token: Token::Produce(batches), error, .. } => {
                self.returned(&batches);
                self.network.cluster.stale = true;
                for (queue, batch) in batches {
                    self.retry(queue, batch, error.clone(), now);
                }
            }
            Event::Responded { token: Token::Identity, version, frame, .. } => {
                self.identity_requested = false;
                match frame.map(|f| InitProducerIdResponse::parse(f.bytes(), RESPONSE_BODY, version)) {
                    Some(Ok(InitProducerIdResponse { error: ErrorCode::NONE, identity })) => {
                        self.take_identity(identity)
                    }
                    Some(Ok(InitProducerIdResponse { error: code, .. })) if !code.is_retriable() => {
                        let error = ClientError::Broker {
                            topic: String::new(),
                            partition: -1,
                            code,
                            message: Some("InitProducerId".to_owned()),
                        };
                        self.fail_waiting(&error);
                        self.shared.set_identity(Some(Err(error)));
                        self.hold_identity(now);
                    }
                    _ => self.hold_identity(now),
                }
            }
            Event::Failed { token: Token::Identity, .. } => {
                self.identity_requested = false;
                self.hold_identity(now);
            }
        }
    }

    fn hold_identity(&mut self, now: Instant) {
        self.identity_failures = self.identity_failures.saturating_add(1);
        self.identity_hold = Some(now + self.shared.config.connection.backoff(self.identity_failures));
    }

    /// Close the connection to a silent broker that has batches of partitions with another leader since. The batches are
    /// sent to the new leader without waiting for `request.timeout.ms`.
    fn leave_silent(&mut self, now: Instant) {
        let cluster = &self.network.cluster;
        let elsewhere = |node: NodeId, queue: usize| {
            let waiting = &self.queues[queue].waiting;
            cluster.leads_elsewhere(&waiting.topic, waiting.index, node)
        };
        let moved = |node: NodeId, token: &Token| match token {
            Token::Produce(batches) => batches.iter().any(|(queue, _)| elsewhere(node, *queue)),
            Token::Identity => false,
        };
        let silent = self.network.silent(now);
        let left: Vec<NodeId> =
            silent.filter_map(|(node, mut tokens)| tokens.any(|token| moved(node, token)).then_some(node)).collect();
        let mut events = Vec::new();
        left.into_iter().for_each(|node| self.network.give_up_silent(node, now, &mut events));
        events.into_iter().for_each(|event| self.step(event, now));
    }

    fn returned(&mut self, batches: &[(usize, Batch)]) {
        self.in_flight -= 1;
        for (queue, _) in batches {
            self.queues[*queue].in_flight -= 1;
        }
    }

    fn publish_topics(&mut self) {
        let mut directory = self.shared.directory.lock();
        for name in self.network.cluster.wanted() {
            if let Some(topic) = self.network.cluster.topic(name) {
                directory.update(name, topic, self.shared.config.partitioner);
            }
        }
        drop(directory);
        self.shared.notify_topics();
    }

    /// Request an identity; returns false, as there is none yet. Waits until no batch is in flight, so that no batch of the
    /// old identity can arrive after one of the new.
    fn query_identity(&mut self, now: Instant) -> bool {
        if self.identity_requested || self.in_flight > 0 || self.identity_hold.is_some_and(|hold| hold > now) {
            return false;
        }
        let Some(node) = self.network.any_ready(now) else { return false };
        match self.network.target(node, INIT_PRODUCER_ID) {
            Ok(target) => {
                self.identity_requested = true;
                let wait = Wait::of(self.shared.config.connection.request_timeout);
                let write = |out: &mut Vec<u8>| init_producer_id::write_request(out, target.version);
                self.network.query(target, Token::Identity, wait, now, write);
            }
            Err(error) => {
                self.fail_waiting(&error);
                self.shared.set_identity(Some(Err(error)));
            }
        }
        false
    }

    fn take_identity(&mut self, identity: ProducerIdentity) {
        self.identity = Some(identity);
        (self.identity_failures, self.identity_hold) = (0, None);
        self.shared.set_identity(Some(Ok(identity)));
        // Batches that were sent keep their identity: they may be written, and only the identity lets the broker recognize
        // them.
        self.queues.iter_mut().for_each(|queue| queue.next_sequence = 0);
    }

    /// Fail every waiting batch.
    fn fail_waiting(&mut self, error: &ClientError) {
        for index in 0..self.queues.len() {
            while let Some(batch) = self.queues[index].take_next(|_| true) {
                self.fail(batch, error.clone());
            }
        }
    }

    /// The producer was closed: every batch that is not acknowledged fails.
    fn give_up_all(&mut self) {
        let error = ClientError::Closed { what: "producer" };
        let mut events = Vec::new();
        self.network.drop_all(&error, &mut events);
        for event in events {
            if let Event::Failed { token: Token::Produce(batches), error, .. } = event {
                batches.into_iter().for_each(|(_, batch)| self.fail(batch, error.clone()));
            }
        }
        self.fail_waiting(&error);
        let late = self.shared.directory.lock().leftovers();
        late.into_iter().for_each(|batch| self.fail(batch, error.clone()));
        self.shared.accumulator.finish();
        self.shared.notify_topics();
    }
}
