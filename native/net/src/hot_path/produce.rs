//! Produce, from the frame to the response.

use std::sync::Arc;

use super::errors::{self, ListenerView};
use super::rights::{Checked, Refused};
use super::transactions::{self, IdRight, SentTransaction, Transaction};
use super::{HotPath, HotPathApi, HotPathRequest, Outcome, Right};
use crate::connection::response::Response;
use crate::data_plane::events::Event;
use crate::delayed_operations::verification::{FirstCheck, Refusal};
use crate::measures::counters::{Counted, ThreadCounters};
use crate::quota::{Metered, Throttle};
use pybroker_record::{Compression, InvalidBatch, LeaderEpoch, SentRecords};
use pybroker_replica::{Awaited, NotAppended, Partition, Produced, Topic, TopicTable, Waiter, WaitingProduce};
use pybroker_storage::{AppendError, TransactionCheck};
use pybroker_wire::frame::RequestHead;
use pybroker_wire::produce::{ProduceRequest, ProducedPartition, write_response};
use pybroker_wire::{ErrorCode, TopicRef};

/// First Produce version that accepts only v2 batches.
const BATCH_VERSION: i16 = 3;
/// First Produce version that may carry zstd.
const ZSTD_VERSION: i16 = 7;

/// A partition with an append that may not be acknowledged yet.
#[derive(Debug)]
struct Unacknowledged {
    topic: usize,
    partition: usize,
    replica: Arc<Partition>,
    awaited: Awaited,
}

/// A Produce between its appends and its response.
#[derive(Debug)]
pub struct PendingProduce {
    version: i16,
    correlation_id: i32,
    timeout_ms: u64,
    responded: Vec<(TopicRef, Vec<ProducedPartition>)>,
    unacknowledged: Vec<Unacknowledged>,
    waiting: Arc<WaitingProduce>,
    metered: Option<Metered>,
}

impl PendingProduce {
    /// The longest wait, ms.
    pub fn max_wait_ms(&self) -> u64 {
        self.timeout_ms
    }

    /// Claims the right to respond; see [`WaitingProduce::claim`].
    pub fn claim(&self) -> bool {
        self.waiting.claim()
    }

    /// Responds. Partitions that may not be acknowledged yet fail, or have timed out.
    pub fn complete(mut self, shared: &HotPath, listener: &str, counters: &ThreadCounters) -> Response {
        let table = shared.table.load();
        self.metered.iter_mut().for_each(Metered::resume);
        for Unacknowledged { topic, partition, replica, awaited } in &self.unacknowledged {
            let (name, responses) = &mut self.responded[*topic];
            let reply = &mut responses[*partition];
            if let Some(error) = errors::not_acknowledged(replica, awaited) {
                reply.error = known_to(self.version, error);
                reply.current_leader = errors::leader_after(&table, name, reply);
            }
        }
        respond(
            self.version,
            self.correlation_id,
            ListenerView { table: &table, listener },
            &self.responded,
            throttle(shared, self.metered.as_ref()),
            counters,
        )
    }
}

fn count_error(counters: &ThreadCounters, error: ErrorCode) {
    if error != ErrorCode::NONE {
        counters.error(HotPathApi::Produce.key(), error);
    }
}

/// The throttle time of a completed Produce.
fn throttle(shared: &HotPath, metered: Option<&Metered>) -> Throttle {
    metered.map_or(Throttle::default(), |metered| metered.produced(true, shared.clock.now()))
}

/// The response for this version and correlation id.
fn respond(
    version: i16,
    correlation_id: i32,
    view: ListenerView<'_>,
    responded: &[(TopicRef, Vec<ProducedPartition>)],
    throttle: Throttle,
    counters: &ThreadCounters,
) -> Response {
    let partitions = responded.iter().flat_map(|(_, partitions)| partitions);
    partitions.clone().for_each(|partition| count_error(counters, partition.error));
    let endpoints = view.endpoints(partitions.filter_map(|partition| partition.current_leader));
    let mut bytes = Response::begin(correlation_id, 128);
    write_response(&mut bytes, version, responded, &endpoints, throttle.time_ms);
    Response::finish(bytes, Vec::new()).muting(throttle)
}

/// Appends the batches of a Produce and responds, or lets the request wait: with `acks=all` until they are committed, under
/// `flush=group` until they are durable. An append to the only replica is committed at once.
pub fn handle(
    shared: &HotPath,
    requested: HotPathRequest<'_>,
    frame: &mut [u8],
    wake: &mut dyn FnMut(Waiter),
    counters: &ThreadCounters,
) -> Outcome {
    let head = requested.head;
    let request = match ProduceRequest::parse(frame, head.body, head.api_version) {
        Ok(request) => request,
        Err(error) => return Outcome::Close(format!("malformed Produce version {}: {error}", head.api_version)),
    };
    let table = shared.table.load();
    let (refused, transaction) = match admit(shared, &request, frame, &table, &requested) {
        Ok(admitted) => admitted,
        Err(outcome) => return outcome,
    };
    let HotPathRequest { waiter, metered, listener, .. } = requested;
    let mut unacknowledged = Vec::new();
    let mut responded = Vec::with_capacity(request.topics.len());
    for (at, topic) in request.topics.iter().enumerate() {
        if refused.contains(&topic.topic) && !matches!(transaction, Transaction::Refused(..)) {
            let partitions = topic.partitions.iter().map(|(index, _)| not_allowed(*index)).collect();
            responded.push((topic.topic.clone(), partitions));
            continue;
        }
        let found = table.find(&topic.topic);
        if let Some(internal) = found.filter(|topic| topic.internal) {
            let partitions = topic.partitions.iter().map(|(index, _)| not_written_by_clients(*index, &internal.name));
            responded.push((topic.topic.clone(), partitions.collect()));
            continue;
        }
        let mut partitions = Vec::with_capacity(topic.partitions.len());
        for (position, (index, records)) in topic.partitions.iter().enumerate() {
            let records = records.clone().map(|at| &mut frame[at]);
            let check = match transaction.check((at, position)) {
                Ok(check) => check,
                Err(refusal) => {
                    let reply = not_begun(request.version, *index, refusal);
                    let current_leader = errors::leader_after(&table, &topic.topic, &reply);
                    partitions.push(ProducedPartition { current_leader, ..reply });
                    continue;
                }
            };
            let counted = found.map(|topic| counters.of_topic(topic));
            let sent = Sent { index: *index, records, check, checked_in: transaction.epoch((at, position)), counted };
            let (reply, pending) = produce(shared, &request, &topic.topic, found, sent, wake);
            unacknowledged.extend(pending.map(|(replica, awaited)| {
                if awaited.durable {
                    shared.group_flush.request(&replica);
                }
                Unacknowledged { topic: at, partition: partitions.len(), replica, awaited }
            }));
            if reply.error != ErrorCode::NONE
                && let Some(counted) = counted
            {
                counted.not_appended(!errors::is_usual(reply.error));
            }
            partitions.push(reply);
        }
        responded.push((topic.topic.clone(), partitions));
    }
    if request.acks == 0 {
        let mut partitions = responded.iter().flat_map(|(_, partitions)| partitions);
        partitions.clone().for_each(|partition| count_error(counters, partition.error));
        return match partitions.find(|partition| partition.error != ErrorCode::NONE) {
            // The producer expects no response: only a closed connection reports the error (as in Kafka).
            Some(failed) => Outcome::Close(format!("Produce with acks=0 failed with error {}", failed.error)),
            None => Outcome::Silent(
                metered.map_or(Throttle::default(), |metered| metered.produced(false, shared.clock.now())),
            ),
        };
    }
    if !unacknowledged.is_empty() {
        return wait(head, request.timeout_ms, responded, unacknowledged, metered, waiter, wake);
    }
    let throttle = throttle(shared, metered.as_ref());
    let view = ListenerView { table: &table, listener };
    Outcome::Response(respond(head.api_version, head.correlation_id, view, &responded, throttle, counters))
}

/// The topics of a Produce that its client may not write to, and the transaction check of its batches; the outcome if the
/// control plane has to decide first.
fn admit<'a>(
    shared: &HotPath,
    request: &ProduceRequest,
    frame: &[u8],
    table: &TopicTable,
    requested: &HotPathRequest<'a>,
) -> Result<(Refused, Transaction<'a>), Outcome> {
    let &HotPathRequest { who, decided, verified, .. } = requested;
    let topics = request.topics.iter().map(|topic| &topic.topic);
    let of_transaction = transactions::has_transactional(request, frame);
    let id_right = if of_transaction { transactions::check(shared, who, request, decided) } else { IdRight::Granted };
    let refused = match shared.check(who, Right::Write, table, topics.clone(), decided) {
        Checked::Known(refused) if id_right != IdRight::Unknown => refused,
        Checked::Known(_) | Checked::Unknown => {
            let id = request.transactional_id.as_deref().filter(|_| of_transaction);
            return Err(errors::to_be_checked(table, topics, Right::Write, id));
        }
    };
    if decided.is_none()
        && let Some(outcome) = errors::unresolved(table, topics)
    {
        return Err(outcome);
    }
    let transaction = match id_right {
        IdRight::Granted if !of_transaction => Transaction::NoneBegins(FirstCheck::default()),
        IdRight::Granted => {
            let sent = SentTransaction { request, frame };
            transactions::begin(shared, &sent, table, &refused, verified)?
        }
        IdRight::Refused | IdRight::Unknown => Transaction::Refused(
            ErrorCode::TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
            "a batch of a transaction needs a transactional id that its client may write as",
        ),
    };
    Ok((refused, transaction))
}

/// Lets a Produce wait until all of its partitions may be acknowledged.
fn wait(
    head: &RequestHead,
    timeout_ms: i32,
    responded: Vec<(TopicRef, Vec<ProducedPartition>)>,
    unacknowledged: Vec<Unacknowledged>,
    metered: Option<Metered>,
    waiter: Waiter,
    wake: &mut dyn FnMut(Waiter),
) -> Outcome {
    let waits = unacknowledged.iter().map(|Unacknowledged { awaited, .. }| awaited.waits()).sum();
    let waiting = WaitingProduce::new(waiter, waits);
    for Unacknowledged { replica, awaited, .. } in &unacknowledged {
        replica.await_acknowledgement(awaited, &waiting, wake);
    }
    let (version, correlation_id) = (head.api_version, head.correlation_id);
    let timeout_ms = timeout_ms.max(0) as u64;
    let metered = metered.map(Metered::pause);
    let pending = PendingProduce { version, correlation_id, timeout_ms, responded, unacknowledged, waiting, metered };
    Outcome::WaitForAcknowledgement(Box::new(pending))
}

/// First Produce version whose clients know KAFKA_STORAGE_ERROR (KIP-112).
const STORAGE_ERROR_VERSION: i16 = 4;

/// The replica of an append that may not be acknowledged yet, and the condition that it waits for.
type Pending = (Arc<Partition>, Awaited);

/// The initial response for a partition.
fn untouched(index: i32) -> ProducedPartition {
    ProducedPartition {
        index,
        error: ErrorCode::NONE,
        base_offset: -1,
        log_append_time: -1,
        log_start_offset: -1,
        record_errors: Vec::new(),
        error_message: None,
        current_leader: None,
    }
}

/// The response for a partition of a topic that the client may not write to.
fn not_allowed(index: i32) -> ProducedPartition {
    ProducedPartition { error: ErrorCode::TOPIC_AUTHORIZATION_FAILED, ..untouched(index) }
}

/// The response for a partition of an internal topic: its coordinator loads only records that it has written.
fn not_written_by_clients(index: i32, topic: &str) -> ProducedPartition {
    let error_message = Some(format!("Cannot append to internal topic {topic}"));
    ProducedPartition { error: ErrorCode::INVALID_TOPIC_EXCEPTION, error_message, ..untouched(index) }
}

/// The response for a partition in which no transaction could begin.
fn not_begun(version: i16, index: i32, (error, error_message): Refusal) -> ProducedPartition {
    ProducedPartition { error: known_to(version, error), error_message, ..untouched(index) }
}

/// Makes the error of an unverified batch retriable if the leader epoch has changed since the first check: a change of
/// leader with a truncation removes the verification.
fn retriable_after_leader_change(
    partition: &Partition,
    refused: NotAppended,
    checked_in: Option<LeaderEpoch>,
) -> NotAppended {
    let is_unverified = matches!(refused, NotAppended::Log(AppendError::NotVerified { .. }));
    let has_changed = checked_in.is_some_and(|epoch| epoch != LeaderEpoch(partition.leader_epoch()));
    if is_unverified && has_changed { NotAppended::NotLeader } else { refused }
}

/// The records of a Produce for one partition.
struct Sent<'a> {
    index: i32,
    records: Option<&'a mut [u8]>,
    /// The transaction check of the batch.
    check: TransactionCheck,
    /// The leader epoch at the first check of the batch's transaction.
    checked_in: Option<LeaderEpoch>,
    /// The topic's counters; `None` for an unknown topic.
    counted: Option<Counted<'a>>,
}

/// Appends to one partition; returns its part of the response.
fn produce(
    shared: &HotPath,
    request: &ProduceRequest,
    name: &TopicRef,
    topic: Option<&Topic>,
    sent: Sent<'_>,
    wake: &mut dyn FnMut(Waiter),
) -> (ProducedPartition, Option<Pending>) {
    let index = sent.index;
    let mut reply = untouched(index);
    if !(-1..=1).contains(&request.acks) {
        reply.error = ErrorCode::INVALID_REQUIRED_ACKS;
        reply.error_message = Some(format!("acks is {}; it has to be -1 (all), 0 or 1", request.acks));
        return (reply, None);
    }
    let slot = match errors::slot_of(name, topic, index) {
        Ok(slot) => slot,
        Err(unknown) => {
            reply.error = unknown;
            return (reply, None);
        }
    };
    let Some(partition) = &slot.partition else {
        (reply.error, reply.current_leader) = errors::not_here(slot);
        reply.error = known_to(request.version, reply.error);
        return (reply, None);
    };
    let awaited = append(shared, request, partition, sent, &mut reply, wake);
    reply.error = known_to(request.version, reply.error);
    if reply.error == ErrorCode::NOT_LEADER_OR_FOLLOWER {
        reply.current_leader = Some(slot.current_leader());
    }
    (reply, awaited.map(|awaited| (Arc::clone(partition), awaited)))
}

/// Replaces KAFKA_STORAGE_ERROR for an older client, so that it refreshes its metadata, as in Kafka.
fn known_to(version: i16, error: ErrorCode) -> ErrorCode {
    let unknown = error == ErrorCode::KAFKA_STORAGE_ERROR && version < STORAGE_ERROR_VERSION;
    if unknown { ErrorCode::NOT_LEADER_OR_FOLLOWER } else { error }
}

/// Checks the records against the request's version: from version 3 on one v2 batch for each partition (KIP-98), and zstd
/// from version 7 on (KIP-110).
fn check_shape(sent: &SentRecords<'_>, version: i16) -> Result<(), (ErrorCode, String)> {
    if version >= BATCH_VERSION && (sent.old_format().is_some() || sent.headers().len() != 1) {
        let text = "a Produce carries exactly one record batch, of format 2, for each partition".to_owned();
        return Err((ErrorCode::INVALID_RECORD, text));
    }
    if version < ZSTD_VERSION && sent.has_codec(Compression::Zstd) {
        let text = format!("zstd needs Produce version {ZSTD_VERSION} or later; this is version {version}");
        return Err((ErrorCode::UNSUPPORTED_COMPRESSION_TYPE, text));
    }
    Ok(())
}

/// Parses the batches of a partition, and checks that the request's version allows them.
fn find(records: &mut [u8], version: i16) -> Result<SentRecords<'_>, (ErrorCode, String)> {
    let refused = |invalid: InvalidBatch| (errors::invalid_batch(&invalid), invalid.to_string());
    let sent = SentRecords::find(records).map_err(refused)?;
    check_shape(&sent, version)?;
    Ok(sent)
}

/// Appends, and returns the condition for the acknowledgement; `None` if there is no condition, or if the append was
/// rejected.
fn append(
    shared: &HotPath,
    request: &ProduceRequest,
    partition: &Partition,
    sent: Sent<'_>,
    reply: &mut ProducedPartition,
    wake: &mut dyn FnMut(Waiter),
) -> Option<Awaited> {
    let Sent { records, check, checked_in, counted, .. } = sent;
    let bytes = records.as_ref().map_or(0, |records| records.len());
    let sent = match find(records.unwrap_or_default(), request.version) {
        Ok(sent) => sent,
        Err((error, text)) => {
            (reply.error, reply.error_message) = (error, Some(text));
            return None;
        }
    };
    if sent.is_empty() {
        // Before version 3 an empty record set is no error. There is no offset to return (Kafka's `LogAppendInfo`).
        return None;
    }
    match partition.append_as_leader(sent, request.acks == -1, shared.wall_ms(), check, wake) {
        Ok(Produced { appended, awaited }) => {
            if appended.rolled {
                let (topic, index) = (Arc::clone(partition.topic()), partition.index());
                shared.events.push(Event::SegmentRolled { topic, index });
            }
            if let Some(counted) = counted {
                counted.appended(appended.bytes, appended.record_count);
            }
            reply.base_offset = appended.first_offset;
            reply.log_append_time = appended.log_append_time;
            reply.log_start_offset = appended.log_start_offset;
            awaited
        }
        Err(refused) => {
            let refused = retriable_after_leader_change(partition, refused, checked_in);
            errors::not_appended(shared, partition, refused, reply);
            if let Some(counted) = counted.filter(|_| errors::is_too_large(reply.error)) {
                counted.rejected(bytes);
            }
            None
        }
    }
}
