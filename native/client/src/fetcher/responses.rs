//! Handling of responses in the fetcher's I/O thread: batches for the caller, the next position, errors, preferred replicas.
//!
//! As in Kafka's consumer: after an error of a replica that is not the leader, the fetcher reads from the leader again. Only
//! the leader's OFFSET_OUT_OF_RANGE resets the position.

use std::sync::Arc;
use std::time::Instant;

use super::chunk::{Chunk, Extent, by_first_offset};
use super::inbox::Start;
use super::part::ERROR_REST;
use super::reader::Reader;
use crate::clock::now_ms;
use crate::config::OffsetReset;
use crate::error::ClientError;
use crate::network::apis::FETCH;
use crate::network::cluster::NodeId;
use crate::network::connection::Frame;
use pybroker_record::LeaderEpoch;
use pybroker_wire::fetch::{DivergingEpoch, FetchResponse, FetchedPartition, ReceivedPartition};
use pybroker_wire::frame::RESPONSE_BODY;
use pybroker_wire::list_offsets::{EARLIEST, LATEST, ListedOffset};
use pybroker_wire::{ErrorCode, TopicRef};

/// The end of the readable records: the last stable offset with `read_committed` (KIP-98), else the high watermark.
fn readable_end(partition: &FetchedPartition, read_committed: bool) -> i64 {
    let stable = partition.last_stable_offset;
    if read_committed && stable >= 0 { stable } else { partition.high_watermark }
}

impl Reader {
    /// Retry a partition after the back-off, or at once if it gets a new leader.
    pub(super) fn hold(&mut self, index: usize, now: Instant) {
        let part = &mut self.parts[index];
        part.busy = false;
        part.failures = part.failures.saturating_add(1);
        part.hold(now + self.shared.config.connection.backoff(part.failures));
    }

    pub(super) fn malformed(&mut self, node: NodeId, api: &'static str, detail: &str, parts: Vec<usize>, now: Instant) {
        let error = ClientError::Malformed { server: self.network.server(node), api, detail: detail.to_owned() };
        self.refuse(parts, error, now);
    }

    pub(super) fn take_offset(&mut self, response: &ListedOffset, parts: &[usize], now: Instant) {
        let Some(index) = self.find(parts, &response.topic, response.index) else { return };
        if response.error != ErrorCode::NONE {
            self.network.cluster.stale |= response.error.requests_metadata();
            return self.take_error(index, response.error, now);
        }
        if response.offset < 0 {
            // No record is as new as the timestamp: read the records that arrive from here on.
            self.parts[index].start = Start::Time(LATEST);
            return;
        }
        let part = &mut self.parts[index];
        (part.start, part.failures) = (Start::Offset(response.offset), 0);
        self.shared.found(&(Arc::clone(&part.topic), part.index), part.mark, response.offset);
    }

    fn find(&self, parts: &[usize], topic: &TopicRef, index: i32) -> Option<usize> {
        parts.iter().copied().find(|i| self.parts[*i].is_meant(topic, index))
    }

    pub(super) fn take_records(&mut self, node: NodeId, version: i16, frame: Frame, parts: &[usize], now: Instant) {
        let response = match FetchResponse::parse(frame.bytes(), RESPONSE_BODY, version) {
            Ok(response) => response,
            Err(e) => return self.malformed(node, FETCH.name, &e.to_string(), parts.to_vec(), now),
        };
        if response.error != ErrorCode::NONE {
            self.network.cluster.stale |= response.error.requests_metadata();
            parts.iter().for_each(|i| self.take_error(*i, response.error, now));
            return;
        }
        self.network.cluster.take_endpoints(&response.endpoints);
        let frame = Arc::new(frame);
        let mut chunks = Vec::with_capacity(response.partitions.len());
        for received in response.partitions {
            let partition = &received.partition;
            let Some(index) = self.find(parts, &partition.topic, partition.index) else { continue };
            if partition.error != ErrorCode::NONE {
                self.take_hint(index, partition);
                self.take_error(index, partition.error, now);
                continue;
            }
            self.parts[index].failures = 0;
            if partition.preferred_read_replica.0 >= 0 {
                let until = now + self.shared.config.connection.metadata_max_age;
                self.parts[index].prefer(partition.preferred_read_replica.0, until);
            }
            if let Some(parts) = partition.diverging {
                self.take_divergence(index, parts, now);
            } else if partition.records > 0 {
                let mark = self.parts[index].mark;
                chunks.extend(self.take_batches(index, received, &frame, now).map(|chunk| (mark, chunk)));
            }
        }
        self.shared.deliver(chunks);
    }

    fn take_batches(
        &mut self,
        index: usize,
        ReceivedPartition { mut partition, records }: ReceivedPartition,
        frame: &Arc<Frame>,
        now: Instant,
    ) -> Option<Chunk> {
        let part = &mut self.parts[index];
        let Start::Offset(position) = part.start else { return None };
        match Extent::measure(&frame.bytes()[records.clone()]) {
            Ok(Extent { len: 0, .. }) => None,
            Ok(extent) => {
                part.start = Start::Offset(extent.next_offset);
                part.last_epoch = extent.leader_epoch;
                let config = &self.shared.config;
                let aborted = by_first_offset(std::mem::take(&mut partition.aborted));
                Some(Chunk {
                    topic: Arc::clone(&part.topic),
                    index: part.index,
                    position,
                    next_offset: extent.next_offset,
                    leader_epoch: extent.leader_epoch,
                    readable_end: readable_end(&partition, config.read_committed),
                    aborted,
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

    /// Apply the leader that an error names, without a Metadata request (KIP-951).
    fn take_hint(&mut self, index: usize, partition: &FetchedPartition) {
        let (part, cluster) = (&self.parts[index], &mut self.network.cluster);
        let hint = partition.current_leader;
        let is_known = hint.is_some_and(|leader| cluster.take_hint(&part.topic, part.index, leader));
        if partition.error.requests_metadata() && !is_known {
            cluster.stale = true;
        }
    }

    /// The log diverges from the records read: they were truncated (KIP-320). Reading continues where the logs diverge, or
    /// the caller gets an error.
    fn take_divergence(&mut self, index: usize, parts: DivergingEpoch, now: Instant) {
        let resets = self.reset().is_some();
        let part = &mut self.parts[index];
        let Start::Offset(position) = part.start else { return };
        if parts.end_offset < 0 || parts.epoch < 0 {
            return self.take_error(index, ErrorCode::OFFSET_OUT_OF_RANGE, now);
        }
        let (topic, partition, LeaderEpoch(epoch)) = (part.topic.to_string(), part.index, part.last_epoch);
        let DivergingEpoch { epoch: end_epoch, end_offset } = parts;
        let truncated = ClientError::LogTruncated { topic, partition, position, epoch, end_offset, end_epoch };
        if end_offset >= position {
            part.take_divergence(parts);
        } else if resets {
            log::warn!("{truncated}; reading goes on there");
            part.take_divergence(parts);
            self.shared.found(&(Arc::clone(&part.topic), part.index), part.mark, end_offset);
        } else {
            part.rest_until(now + ERROR_REST);
            self.shared.deliver_error(part.mark, truncated);
        }
    }

    /// The time to start at without a valid position, by `auto.offset.reset`.
    fn reset(&self) -> Option<i64> {
        match self.shared.config.auto_offset_reset {
            OffsetReset::Earliest => Some(EARLIEST),
            OffsetReset::Latest => Some(LATEST),
            OffsetReset::Before(span) => Some(now_ms().saturating_sub_unsigned(span.as_millis() as u64)),
            OffsetReset::None => None,
        }
    }

    fn take_error(&mut self, index: usize, code: ErrorCode, now: Instant) {
        let was_preferred = self.parts[index].leave_preferred();
        if was_preferred && code == ErrorCode::OFFSET_OUT_OF_RANGE {
            return; // The replica may lag: the next request is sent to the leader, at once.
        }
        self.hold(index, now);
        if let Some(time) = self.reset().filter(|_| code == ErrorCode::OFFSET_OUT_OF_RANGE) {
            let part = &mut self.parts[index];
            (part.start, part.last_epoch) = (Start::Time(time), LeaderEpoch(-1));
        } else if !code.is_retriable() {
            let part = &mut self.parts[index];
            let (topic, partition) = (part.topic.to_string(), part.index);
            part.rest_until(now + ERROR_REST);
            let (mark, error) = (part.mark, ClientError::Broker { topic, partition, code, message: None });
            self.shared.deliver_error(mark, error);
        }
    }
}
