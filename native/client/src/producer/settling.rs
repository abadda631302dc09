//! The outcome of batches: from a response, from a failed request, and from a timeout.
//!
//! A batch is retried at once if the response or the metadata names another leader. Every other retry waits for the
//! back-off.

use std::time::Instant;

use super::batch::Batch;
use super::delivery::Written;
use super::sender::Sender;
use super::transaction::{Gate, is_fatal};
use crate::counters::Peak;
use crate::error::ClientError;
use crate::network::apis::PRODUCE;
use crate::network::cluster::NodeId;
use crate::network::connection::Frame;
use pybroker_wire::ErrorCode;
use pybroker_wire::frame::RESPONSE_BODY;
use pybroker_wire::init_producer_id::ProducerIdentity;
use pybroker_wire::produce::{ProduceResponse, ProducedPartition};

impl Sender {
    /// Set the outcome of a request's batches from its response (with acks=0 there is none: sent counts as written).
    pub(super) fn complete(
        &mut self,
        node: NodeId,
        batches: Vec<(usize, Batch)>,
        version: i16,
        frame: Option<Frame>,
        now: Instant,
    ) {
        let response = match frame.map(|f| ProduceResponse::parse(f.bytes(), RESPONSE_BODY, version)).transpose() {
            Ok(response) => response,
            Err(e) => {
                let error = ClientError::Malformed {
                    server: self.network.server(node),
                    api: PRODUCE.name,
                    detail: e.to_string(),
                };
                batches.into_iter().for_each(|(_, batch)| self.fail(batch, error.clone()));
                return;
            }
        };
        if let Some(response) = &response {
            self.network.cluster.take_endpoints(&response.endpoints);
        }
        for (queue, batch) in batches {
            let Some(response) = &response else {
                self.succeed(batch, Written { base_offset: -1, log_append_time_ms: -1 }, now);
                continue;
            };
            let waiting = &self.queues[queue].waiting;
            match find(response, &waiting.topic, waiting.index) {
                Some(produced) => self.check(queue, batch, produced, now),
                None => {
                    let detail = "an answer without the partition that was sent".to_owned();
                    let error = ClientError::Malformed { server: self.network.server(node), api: PRODUCE.name, detail };
                    self.fail(batch, error);
                }
            }
        }
    }

    fn check(&mut self, queue: usize, batch: Batch, produced: &ProducedPartition, now: Instant) {
        let code = produced.error;
        if code == ErrorCode::NONE {
            let written = Written { base_offset: produced.base_offset, log_append_time_ms: produced.log_append_time };
            return self.succeed(batch, written, now);
        }
        if code == ErrorCode::DUPLICATE_SEQUENCE_NUMBER {
            return self.succeed(batch, Written { base_offset: -1, log_append_time_ms: -1 }, now);
        }
        let topic = self.queues[queue].waiting.topic.to_string();
        let hint = produced.current_leader;
        let is_known = hint.is_some_and(|leader| self.network.cluster.take_hint(&topic, produced.index, leader));
        if code.requests_metadata() && !is_known {
            self.network.cluster.stale = true;
        }
        let error = ClientError::Broker { topic, partition: produced.index, code, message: message(produced) };
        if code == ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER {
            self.handle_out_of_order(queue, batch, error, now)
        } else if code.is_retriable() {
            self.retry(queue, batch, error, now)
        } else {
            self.fail(batch, error)
        }
    }

    /// Handle the rejection of a batch because earlier ones are missing. If these are retried or may be in flight, the batch
    /// is retried too. Otherwise the batch gets a new sequence number in a new identity (KIP-360). A transaction, or a
    /// producer that continues another, cannot change its identity: the batch fails.
    fn handle_out_of_order(&mut self, queue: usize, mut batch: Batch, error: ClientError, now: Instant) {
        let of_queue = &mut self.queues[queue];
        let is_behind_another = of_queue.again.iter().any(|other| other.id < batch.id);
        let is_bound = batch.mark.is_some() || self.shared.config.continues.is_some();
        if is_behind_another || (!is_bound && of_queue.in_flight > 0) {
            return self.retry(queue, batch, error, now);
        }
        if is_bound || batch.sequence.is_none() {
            return self.fail(batch, error);
        }
        of_queue.renumber(&mut batch);
        self.reset_identity(batch.identity);
        self.retry(queue, batch, error, now);
    }

    /// Request a new identity: some sequence numbers of this one will never be written.
    fn reset_identity(&mut self, identity: ProducerIdentity) {
        if self.identity == Some(identity) {
            self.identity = None;
            self.shared.set_identity(None);
        }
    }

    pub(super) fn succeed(&mut self, batch: Batch, written: Written, now: Instant) {
        if let Some(observer) = &self.shared.observer {
            observer.acknowledged(&batch.strides, now);
        }
        // The time without an acknowledgement: since the last one, or since this batch was opened.
        let since = self.acknowledged_at.map_or(batch.opened, |at| at.max(batch.opened));
        self.acknowledged_at = Some(now);
        let gap_us = now.saturating_duration_since(since).as_micros() as u64;
        self.shared.accumulator.counters.raise(Peak::GapUs, gap_us);
        batch.decided.count(batch.records, true);
        self.shared.accumulator.complete(batch, Ok(written));
    }

    pub(super) fn retry(&mut self, queue: usize, batch: Batch, error: ClientError, now: Instant) {
        if batch.attempts > self.shared.config.retries {
            return self.fail(batch, error);
        }
        let rest = self.shared.config.connection.backoff(batch.attempts);
        self.queues[queue].send_again(batch, error, now + rest);
    }

    pub(super) fn fail(&mut self, batch: Batch, error: ClientError) {
        if batch.mark.is_some() {
            self.fail_transaction(&error, batch.sequence.is_some());
            return self.give_up(batch, error);
        }
        // The broker will never receive these sequence numbers: later batches need a new identity (KIP-360).
        match &self.shared.config.continues {
            Some(_) => drop(self.ended.get_or_insert_with(|| error.clone())),
            None if batch.sequence.is_some() => self.reset_identity(batch.identity),
            None => {}
        }
        self.give_up(batch, error);
    }

    /// A transaction without one of its batches cannot be committed: no more of it is sent.
    fn fail_transaction(&mut self, error: &ClientError, lost_sequence: bool) {
        let (fatal, transactions) = (is_fatal(error), &self.shared.transactions);
        if let Some(met) = transactions.fail(error, fatal, lost_sequence) {
            self.shared.accumulator.incomplete.lock().set_gate(Gate::Shut(met.clone()));
            transactions.stop(met, fatal);
        }
    }

    /// Fail a batch: its records are not sent any more.
    pub(super) fn give_up(&mut self, batch: Batch, error: ClientError) {
        if let Some(observer) = &self.shared.observer {
            observer.failed(&batch.strides);
        }
        if !matches!(error, ClientError::TransactionAborted) {
            self.shared.first_failure.lock().get_or_insert_with(|| error.clone());
        }
        batch.decided.count(batch.records, false);
        // The end of a transaction reports its failed records.
        if batch.mark.is_none() {
            self.shared.failures.note(&batch, &error);
        }
        self.shared.accumulator.complete(batch, Err(error));
    }

    /// Fail batches that are older than `delivery.timeout.ms`.
    pub(super) fn expire(&mut self, now: Instant) {
        let limit = self.shared.config.delivery_timeout;
        for index in 0..self.queues.len() {
            while let Some(batch) = self.queues[index].take_expired(now, limit) {
                let failure = batch.last_error.as_ref().or(self.network.last_failure.as_ref());
                let detail = failure.map_or("no leader answered".to_owned(), ToString::to_string);
                let waiting = &self.queues[index].waiting;
                let (topic, partition) = (waiting.topic.to_string(), waiting.index);
                let error = ClientError::DeliveryTimeout {
                    topic,
                    partition,
                    records: batch.records,
                    timeout_ms: limit.as_millis() as u64,
                    detail,
                };
                self.fail(batch, error);
            }
        }
    }
}

/// The result of a partition's batch; `None` if the response does not contain the partition.
fn find<'a>(response: &'a ProduceResponse, topic: &str, index: i32) -> Option<&'a ProducedPartition> {
    let topics = response.topics.iter().filter(|(named, _)| named.is_named(topic));
    topics.flat_map(|(_, partitions)| partitions).find(|partition| partition.index == index)
}

/// The broker's error message about a batch: the one about the whole batch, or the first about a record.
fn message(produced: &ProducedPartition) -> Option<String> {
    let of_records = || produced.record_errors.iter().find_map(|(_, message)| message.clone());
    produced.error_message.clone().or_else(of_records)
}
